//! What stands behind a body goes on where the protocol has a place for it, by the rules of
//! headers and one more (R16): HTTP/1 chunked at the backend, HTTP/1 and HTTP/2 at the client.

mod common;

use std::{
    io::{Read, Write},
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use common::{Edge, host, prefix, read_head, scripted};
use http::{HeaderMap, Request};
use http_body_util::{BodyExt, Empty, Full};
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls_pki_types::ServerName;
use testkit::{backend::Backend, client::read_answer};

/// What a backend says behind its answers: a gRPC status, and what may not stand there.
const TRAILERS: &str = "grpc-status: 7\r\n\
                        grpc-message: no\r\n\
                        x-checksum: abc\r\n\
                        x-hop: 1\r\n\
                        x-secret: s\r\n\
                        set-cookie: a=b\r\n\
                        content-length: 5\r\n\
                        content-type: text/html\r\n\
                        transfer-encoding: chunked\r\n\
                        connection: close\r\n\
                        location: /\r\n\
                        x-forwarded-for: 6.6.6.6\r\n\
                        x-remote-user: root\r\n\
                        ngrok-error-code: ERR_NGROK_1\r\n";

/// A backend whose answers have trailers, and an edge before it. One worker: one pool.
fn served() -> Edge {
    let backend = scripted(|mut stream, mut head| {
        while !head.is_empty() {
            let announced = if head.contains("/unannounced") {
                ""
            } else {
                "trailer: grpc-status, grpc-message, x-checksum, x-hop, x-secret, set-cookie, content-type, x-remote-user\r\n"
            };
            let more = if head.contains("/large") {
                format!("x-large: {}\r\n", "x".repeat(20_000))
            } else if head.contains("/many") {
                (0..200)
                    .map(|number| format!("x-{number}: 1\r\n"))
                    .collect()
            } else {
                String::new()
            };
            // Whether it was told that trailers are read.
            let told = head.contains("te: trailers\r\n") && head.contains("connection: te\r\n");
            let sent = write!(
                stream,
                "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\nconnection: x-hop\r\n{announced}x-told: {told}\r\n\r\n\
                 2\r\nok\r\n0\r\n{TRAILERS}{more}\r\n"
            );
            if sent.is_err() {
                return;
            }
            head = read_head(&mut stream);
        }
    });
    let edge = Edge::start_with(|options| options.workers = std::num::NonZeroUsize::new(1));
    let app = edge.backend("app", &[backend]);
    edge.declare(
        host("a.example").route(prefix("/").to(&app).response_headers(&[], &["x-secret"])),
    );
    edge
}

/// The answer over HTTP/1, as bytes: head, and what is behind it.
fn http1(edge: &Edge, path: &str, te: &str) -> (String, String) {
    let mut connection = edge.client().open("a.example").expect("a connection");
    write!(
        connection,
        "GET {path} HTTP/1.1\r\nhost: a.example\r\n{te}connection: close\r\n\r\n"
    )
    .expect("sent");
    let head = read_head(&mut connection);
    let mut rest = Vec::new();
    connection.read_to_end(&mut rest).unwrap_or_default();
    (head, String::from_utf8_lossy(&rest).into_owned())
}

#[test]
fn an_http1_client_that_asks_for_them_gets_those_that_are_announced() {
    let edge = served();
    let (head, body) = http1(&edge, "/", "te: trailers\r\n");
    assert!(
        head.contains("trailer: grpc-status, grpc-message, x-checksum\r\n"),
        "{head}"
    );
    assert!(head.contains("x-told: true"), "{head}");
    assert_eq!(
        body,
        "2\r\nok\r\n0\r\ngrpc-status: 7\r\ngrpc-message: no\r\nx-checksum: abc\r\n\r\n"
    );
    let (head, body) = http1(&edge, "/", "");
    assert!(
        !head.contains("trailer:") && head.contains("x-told: false"),
        "{head}"
    );
    assert_eq!(body, "2\r\nok\r\n0\r\n\r\n", "nobody asked");
    let (_, body) = http1(&edge, "/unannounced", "te: trailers\r\n");
    assert_eq!(body, "2\r\nok\r\n0\r\n\r\n", "HTTP/1 wants to know before");
}

/// Asks over HTTP/2; the body, and what came behind it, unless the answer broke off.
async fn ask<B>(edge: &Edge, request: Request<B>) -> Option<(Bytes, Option<HeaderMap>)>
where
    B: http_body::Body<Data = Bytes, Error = std::convert::Infallible> + Send + Unpin + 'static,
{
    let pem = std::fs::read(edge.running.authority_certificate()).expect("the authority");
    let config = testkit::client::Client::new(edge.running.https, &pem).config_for(b"h2");
    let stream = tokio::net::TcpStream::connect(edge.running.https)
        .await
        .expect("a connection");
    let stream = tokio_rustls::TlsConnector::from(Arc::clone(&config))
        .connect(ServerName::try_from("a.example").expect("a name"), stream)
        .await
        .expect("a handshake");
    let (mut sender, connection) = http2::handshake(TokioExecutor::new(), TokioIo::new(stream))
        .await
        .expect("HTTP/2");
    tokio::spawn(connection);
    let answered = async {
        let answer = sender.send_request(request).await.ok()?;
        let collected = answer.into_body().collect().await.ok()?;
        let trailers = collected.trailers().cloned();
        Some((collected.to_bytes(), trailers))
    };
    tokio::time::timeout(Duration::from_secs(10), answered)
        .await
        .expect("in time")
}

fn names(trailers: Option<&HeaderMap>) -> Vec<&str> {
    let mut names: Vec<_> = trailers
        .into_iter()
        .flat_map(HeaderMap::keys)
        .map(http::HeaderName::as_str)
        .collect();
    names.sort_unstable();
    names
}

#[test]
fn an_http2_client_gets_them_announced_or_not() {
    let edge = served();
    edge.runtime.block_on(async {
        for path in ["/", "/unannounced", "/"] {
            let request = Request::get(format!("https://a.example{path}"))
                .header("te", "trailers")
                .body(Empty::<Bytes>::new())
                .expect("a request");
            let (body, trailers) = ask(&edge, request).await.expect("an answer");
            assert_eq!(
                (body.as_ref(), names(trailers.as_ref())),
                (
                    &b"ok"[..],
                    vec!["grpc-message", "grpc-status", "x-checksum"]
                ),
                "{path}"
            );
            assert_eq!(trailers.expect("some")["grpc-status"], "7");
        }
        for path in ["/large", "/many"] {
            let request = Request::get(format!("https://a.example{path}"))
                .body(Empty::<Bytes>::new())
                .expect("a request");
            assert!(ask(&edge, request).await.is_none(), "{path}: breaks off");
        }
    });
    assert_eq!(
        edge.running.metrics().upstream_retries,
        0,
        "trailers leave a connection in step"
    );
}

fn echo() -> (Edge, Backend) {
    let edge = Edge::start();
    let backend = Backend::start("app");
    let app = edge.backend("app", &[backend.address]);
    let route = prefix("/").to(&app).request_headers(&[], &["x-secret"]);
    edge.declare(host("a.example").route(route));
    (edge, backend)
}

/// The trailers that the backend saw, in order.
fn seen(answer: &serde_json::Value) -> Vec<(String, String)> {
    let mut trailers: Vec<_> =
        serde_json::from_value(answer["trailers"].clone()).unwrap_or_default();
    trailers.sort_unstable();
    trailers
}

fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}

#[test]
fn a_backend_gets_those_of_a_request_that_are_announced() {
    let (edge, _backend) = echo();
    let mut connection = edge.client().open("a.example").expect("a connection");
    write!(
        connection,
        "POST / HTTP/1.1\r\nhost: a.example\r\ntransfer-encoding: chunked\r\nconnection: x-hop\r\n\
         trailer: x-checksum, x-hop, X_Forwarded_For, x-secret\r\ntrailer: cookie, ssl-client-verify, Content-MD5, x-two\r\n\r\n\
         2\r\nhi\r\n0\r\nx-checksum: abc\r\nx-two: 1\r\nx-two: 2\r\nx-hop: 1\r\nx_forwarded_for: 6.6.6.6\r\nx-secret: s\r\n\
         cookie: a=b\r\nssl-client-verify: SUCCESS\r\ncontent-md5: x\r\nx-unannounced: 1\r\n\r\n"
    )
    .expect("sent");
    let answer = read_answer(&mut connection, "POST")
        .expect("an answer")
        .json();
    assert_eq!(answer["body"], "hi");
    assert_eq!(
        seen(&answer),
        pairs(&[("x-checksum", "abc"), ("x-two", "1"), ("x-two", "2")])
    );
    assert!(
        answer["headers"]
            .to_string()
            .contains(r#"["trailer","x-checksum, x-two"]"#),
        "{answer}"
    );
}

#[test]
fn the_same_over_http2() {
    let (edge, _backend) = echo();
    let trailers = HeaderMap::from_iter(
        [
            ("x-checksum", "abc"),
            ("x-remote-user", "root"),
            ("x-unannounced", "1"),
        ]
        .map(|(name, value)| {
            (
                http::HeaderName::from_static(name),
                http::HeaderValue::from_static(value),
            )
        }),
    );
    let body =
        Full::new(Bytes::from_static(b"hi")).with_trailers(async move { Some(Ok(trailers)) });
    let request = Request::post("https://a.example/")
        .header("trailer", "x-checksum, x-remote-user")
        .body(Box::pin(body))
        .expect("a request");
    let (body, _) = edge
        .runtime
        .block_on(ask(&edge, request))
        .expect("an answer");
    let answer: serde_json::Value = serde_json::from_slice(&body).expect("JSON");
    assert_eq!(answer["body"], "hi");
    assert_eq!(seen(&answer), pairs(&[("x-checksum", "abc")]));
}
