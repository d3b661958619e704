//! HTTP/2 through real sockets: many streams on one connection, and what ends them.

mod common;

use std::{
    collections::BTreeMap,
    convert::Infallible,
    io::{Read, Write},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use common::{Edge, host, prefix};
use http::{Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full};
use hyper::{
    body::{Frame, Incoming},
    client::conn::http2::{self, SendRequest},
};
use hyper_util::rt::{TokioExecutor, TokioIo};
use model::{
    backend::BackendKind,
    id::{BackendId, HttpResponseId},
    module::TlsVersion,
};
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::{CertificateDer, ServerName, pem::PemObject as _};
use testkit::{backend::Backend, wait};
use tokio::{net::TcpStream, task::JoinHandle, time::timeout};

type Body = http_body_util::combinators::BoxBody<Bytes, Infallible>;
type Sender = SendRequest<Body>;

const PATIENCE: Duration = Duration::from_secs(10);

async fn open(
    edge: &Edge,
    name: &str,
    versions: &[&'static rustls::SupportedProtocolVersion],
) -> (Sender, JoinHandle<hyper::Result<()>>) {
    let mut roots = RootCertStore::empty();
    let pem = std::fs::read(edge.running.authority_certificate()).expect("the authority");
    roots
        .add(CertificateDer::from_pem_slice(&pem).expect("PEM"))
        .expect("a certificate");
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(versions)
        .expect("versions");
    let mut config = builder.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec()];
    let stream = TcpStream::connect(edge.running.https)
        .await
        .expect("a connection");
    let name = ServerName::try_from(name.to_owned()).expect("a name");
    let stream = tokio_rustls::TlsConnector::from(Arc::new(config))
        .connect(name, stream)
        .await
        .expect("a handshake");
    let (sender, connection) = http2::handshake(TokioExecutor::new(), TokioIo::new(stream))
        .await
        .expect("HTTP/2");
    (sender, tokio::spawn(connection))
}

fn empty() -> Body {
    Full::new(Bytes::new()).boxed()
}

fn get(url: &str) -> Request<Body> {
    Request::get(url).body(empty()).expect("a request")
}

async fn send(sender: &mut Sender, request: Request<Body>) -> Response<Incoming> {
    timeout(PATIENCE, sender.send_request(request))
        .await
        .expect("in time")
        .expect("an answer")
}

async fn json(response: Response<Incoming>) -> serde_json::Value {
    let body = response
        .into_body()
        .collect()
        .await
        .expect("a whole body")
        .to_bytes();
    serde_json::from_slice(&body).expect("JSON")
}

fn served() -> (Edge, Backend) {
    let edge = Edge::start();
    let backend = Backend::start("app");
    let app = edge.backend("app", &[backend.address]);
    edge.declare(
        host("a.example")
            .route(prefix("/").to(&app))
            .route(prefix("/shut")),
    );
    (edge, backend)
}

#[test]
fn streams_share_a_connection_and_each_is_judged() {
    let (edge, backend) = served();
    edge.runtime.block_on(async {
        let (sender, _) = open(&edge, "a.example", rustls::ALL_VERSIONS).await;
        let mut streams = Vec::new();
        for number in 0..100 {
            let mut sender = sender.clone();
            streams.push(tokio::spawn(async move {
                let path = if number % 4 == 0 { "shut" } else { "open" };
                let response = send(
                    &mut sender,
                    get(&format!("https://a.example/{path}/{number}")),
                )
                .await;
                (path, response.status())
            }));
        }
        for stream in streams {
            let (path, status) = stream.await.expect("no panic");
            assert_eq!(
                status,
                if path == "shut" {
                    StatusCode::SERVICE_UNAVAILABLE
                } else {
                    StatusCode::OK
                }
            );
        }
    });
    assert_eq!(backend.requests(), 75);
    assert_eq!(edge.running.metrics().connections_accepted, 1);
}

#[test]
fn a_stream_becomes_an_ordinary_request_for_the_backend() {
    let (edge, _backend) = served();
    edge.runtime.block_on(async {
        let (mut sender, _) = open(&edge, "a.example", rustls::ALL_VERSIONS).await;
        let body = Pieces(["a", "b", "c"].into()).boxed();
        let request = Request::post("https://A.example:443/x/../y?z")
            .header(header::COOKIE, "a=1")
            .header(header::COOKIE, "b=2")
            .header("te", "trailers")
            .header("x-forwarded-for", "6.6.6.6")
            .body(body)
            .expect("a request");
        let seen = json(send(&mut sender, request).await).await;
        assert_eq!(
            (&seen["target"], &seen["body"], &seen["method"]),
            (&"/y?z".into(), &"abc".into(), &"POST".into())
        );
        let headers: Vec<(String, String)> =
            serde_json::from_value(seen["headers"].clone()).expect("pairs");
        let of = |name: &str| {
            headers
                .iter()
                .filter(|(n, _)| n == name)
                .map(|(_, v)| v.as_str())
                .collect::<Vec<_>>()
        };
        assert_eq!(of("cookie"), ["a=1; b=2"]);
        assert_eq!(
            (of("host"), of("te"), of("connection")),
            (vec!["a.example:443"], vec!["trailers"], vec!["te"])
        );
        assert_eq!(
            (of("x-forwarded-for"), of("transfer-encoding")),
            (vec!["127.0.0.1"], vec!["chunked"])
        );
    });
}

/// A body in pieces, whose length nobody knows.
struct Pieces(std::collections::VecDeque<&'static str>);

impl http_body::Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(
            self.0
                .pop_front()
                .map(|piece| Ok(Frame::data(Bytes::from_static(piece.as_bytes())))),
        )
    }
}

#[test]
fn a_connection_that_does_not_meet_the_demands_any_more_is_ended() {
    let (edge, backend) = served();
    let (mut sender, connection) = edge.runtime.block_on(async {
        let (mut sender, connection) = open(&edge, "a.example", &[&rustls::version::TLS12]).await;
        assert_eq!(
            send(&mut sender, get("https://a.example/")).await.status(),
            StatusCode::OK
        );
        (sender, connection)
    });
    let app = edge.backend("app", &[backend.address]);
    edge.declare(
        host("a.example")
            .tls_minimum(TlsVersion::V1_3)
            .route(prefix("/").to(&app)),
    );
    edge.runtime.block_on(async {
        let answer = send(&mut sender, get("https://a.example/")).await;
        assert_eq!(answer.status(), StatusCode::MISDIRECTED_REQUEST);
        drop(answer);
        timeout(PATIENCE, connection)
            .await
            .expect("it ends")
            .expect("no panic")
            .expect("in good order");
        assert!(
            sender
                .send_request(get("https://a.example/"))
                .await
                .is_err()
        );
    });
    assert_eq!(backend.requests(), 1);
}

#[test]
fn draining_says_goodbye_and_lets_streams_end() {
    let (edge, _backend) = served();
    edge.runtime.block_on(async {
        let (mut sender, connection) = open(&edge, "a.example", rustls::ALL_VERSIONS).await;
        assert_eq!(
            send(&mut sender, get("https://a.example/")).await.status(),
            StatusCode::OK
        );
        edge.running.drain();
        timeout(PATIENCE, connection)
            .await
            .expect("it ends")
            .expect("no panic")
            .expect("in good order");
    });
    edge.running.shutdown();
}

#[test]
fn streams_that_are_opened_and_reset_end_their_connection_and_nothing_else() {
    let (edge, _backend) = served();
    edge.runtime.block_on(async {
        let (sender, connection) = open(&edge, "a.example", rustls::ALL_VERSIONS).await;
        let mut ended = false;
        for _ in 0..20_000 {
            let mut sender = sender.clone();
            // Dropped before its answer: a RST_STREAM each.
            let sent = sender.send_request(get("https://a.example/"));
            ended = timeout(Duration::from_micros(1), sent)
                .await
                .is_ok_and(|answer| answer.is_err())
                || connection.is_finished();
            if ended {
                break;
            }
        }
        assert!(ended, "its connection is for nothing else");
        let (mut other, _) = open(&edge, "a.example", rustls::ALL_VERSIONS).await;
        assert_eq!(
            send(&mut other, get("https://a.example/")).await.status(),
            StatusCode::OK
        );
    });
    wait::until("nothing is left behind", PATIENCE, || {
        match edge.running.metrics() {
            metrics if metrics.requests_in_flight == 0 => Ok(()),
            metrics => Err(format!("{metrics:?}")),
        }
    });
}

#[test]
fn heads_are_bounded_as_on_http1() {
    let (edge, backend) = served();
    let many = (0..101).fold(Request::get("https://a.example/"), |request, number| {
        request.header(format!("x-{number}"), "1")
    });
    let large = Request::get("https://a.example/").header("x-a", "x".repeat(40_000));
    let long = Request::get(format!("https://a.example/{}", "x".repeat(9_000)));
    edge.runtime.block_on(async {
        for (request, status, code) in [
            (many, 431, "ERR_PORTCULLIS_HEADERS_TOO_LARGE"),
            (large, 431, "ERR_PORTCULLIS_HEADERS_TOO_LARGE"),
            (long, 414, "ERR_PORTCULLIS_URI_TOO_LONG"),
        ] {
            let (mut sender, _) = open(&edge, "a.example", rustls::ALL_VERSIONS).await;
            let answer = send(&mut sender, request.body(empty()).expect("a request")).await;
            assert_eq!(
                (
                    answer.status().as_u16(),
                    &answer.headers()["ngrok-error-code"]
                ),
                (status, &code.parse::<http::HeaderValue>().expect("a value"))
            );
            assert_eq!(
                send(&mut sender, get("https://a.example/")).await.status(),
                StatusCode::OK,
                "other streams go on"
            );
        }
    });
    assert_eq!(backend.requests(), 3);
}

/// Half a million bytes of headers, in pieces that never end.
#[test]
fn headers_without_end_end_their_connection() {
    let (edge, backend) = served();
    let config = edge.client().config_for(b"h2");
    let name = ServerName::try_from("a.example").expect("a name");
    let session = rustls::ClientConnection::new(config, name).expect("a session");
    let socket = testkit::client::connect(edge.running.https, None).expect("a connection");
    let mut stream = rustls::StreamOwned::new(session, socket);
    stream
        .write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0")
        .expect("sent");
    // HEADERS and then CONTINUATION (RFC 9113 section 6.10), all of them empty or nearly so.
    let frame = |kind: u8| [&[0, 0, 4, kind, 0, 0, 0, 0, 1][..], b"\x00\x01a\x00"].concat();
    let sent = stream
        .write_all(&frame(1))
        .and_then(|()| (0..200_000).try_for_each(|_| stream.write_all(&frame(9))));
    let mut rest = Vec::new();
    let ended = sent.is_err() || stream.read_to_end(&mut rest).is_ok();
    assert!(ended, "the connection is ended");
    assert_eq!(backend.requests(), 0);
}

#[test]
fn a_stream_whose_client_takes_nothing_is_let_go() {
    let edge = Edge::start_with(|options| options.timeouts.stalled = Duration::from_millis(600));
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let app = edge.backend("app", &[listener.local_addr().expect("bound")]);
    edge.declare(host("a.example").route(prefix("/").to(&app)));
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a connection");
        assert!(stream.read(&mut [0; 1024]).is_ok_and(|bytes| bytes > 0));
        stream
            .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 100000000\r\n\r\n")
            .expect("sent");
        while stream.write_all(&[0; 4096]).is_ok() {}
    });
    let (answer, _connection) = edge.runtime.block_on(async {
        let (mut sender, connection) = open(&edge, "a.example", rustls::ALL_VERSIONS).await;
        let answer = send(&mut sender, get("https://a.example/")).await;
        assert_eq!(answer.status(), StatusCode::OK);
        (answer, (sender, connection))
    });
    // Its window stays full while the body is not read; then the stream is reset.
    wait::until("the stream is cut", PATIENCE, || {
        match edge.running.metrics().cut {
            1 => Ok(()),
            other => Err(other),
        }
    });
    edge.runtime.block_on(async {
        assert!(
            timeout(PATIENCE, answer.into_body().collect())
                .await
                .expect("in time")
                .is_err()
        );
    });
}

#[test]
fn a_fixed_answer_has_no_body_where_none_goes() {
    let edge = Edge::start();
    let mut declared = host("fixed.test");
    for status in [200, 204] {
        let id = BackendId::HttpResponse(HttpResponseId::derived(&[&status.to_string()]));
        let kind = BackendKind::HttpResponse {
            status,
            headers: BTreeMap::new(),
            body: "fixed".to_owned(),
        };
        edge.put_backend(id.clone(), kind, &[]);
        declared = declared.route(prefix(&format!("/{status}")).to(&id));
    }
    edge.declare(declared);
    edge.runtime.block_on(async {
        let (mut sender, connection) = open(&edge, "fixed.test", rustls::ALL_VERSIONS).await;
        for (method, path, length, body) in [
            ("HEAD", "/200", Some("5"), ""),
            ("GET", "/200", Some("5"), "fixed"),
            ("HEAD", "/204", None, ""),
            ("GET", "/204", None, ""),
        ] {
            let url = format!("https://fixed.test{path}");
            let request = Request::builder().method(method).uri(url).body(empty());
            let answer = send(&mut sender, request.expect("a request")).await;
            let told = answer.headers().get(header::CONTENT_LENGTH).cloned();
            assert_eq!(
                told.as_ref().map(|v| v.as_bytes()),
                length.map(str::as_bytes),
                "{method} {path}"
            );
            let got = answer.into_body().collect().await.expect("a whole answer");
            assert_eq!(got.to_bytes(), body.as_bytes(), "{method} {path}");
        }
        drop(sender);
        timeout(PATIENCE, connection)
            .await
            .expect("in time")
            .expect("no panic")
            .expect("no protocol error");
    });
}
