//! Requests through real sockets: what reaches a backend, what comes back, what is refused.

mod common;

use std::{io::Write, time::Duration};

use common::{Edge, address, exact, host, prefix};
use model::module::TlsVersion;
use testkit::{
    backend::Backend,
    client::{exchange, plain_get, read_answer},
    wait,
};

#[test]
fn an_open_route_reaches_its_backend_and_a_closed_one_does_not() {
    let edge = Edge::start();
    let backend = Backend::start("app");
    let app = edge.backend("app", &[backend.address]);
    edge.declare(
        host("a.example")
            .route(prefix("/").to(&app))
            .route(prefix("/admin")),
    );
    let client = edge.client();
    let answer = client.get("a.example", "/x/../y?q=%2f").expect("an answer");
    assert_eq!(answer.status, 200);
    let seen = answer.json();
    assert_eq!(
        (&seen["backend"], &seen["target"]),
        (&"app".into(), &"/y?q=%2f".into()),
        "normalised, the query as it came"
    );
    for path in ["/admin", "/admin/x", "//admin", "/%61dmin"] {
        let closed = client.get("a.example", path).expect("an answer");
        assert_eq!(closed.status, 503, "{path}");
        assert_eq!(closed.header("ngrok-error-code"), Some("ERR_NGROK_6015"));
        assert_eq!(closed.header("cache-control"), Some("no-store"));
        assert!(closed.header("retry-after").is_some());
    }
    assert_eq!(backend.requests(), 1);
}

#[test]
fn backends_see_the_edge_s_words_about_a_client_and_none_of_its_own() {
    let edge = Edge::start();
    let backend = Backend::start("app");
    let app = edge.backend("app", &[backend.address]);
    let route = prefix("/")
        .to(&app)
        .request_headers(&[("x-added", "1")], &["x-secret"]);
    edge.declare(
        host("a.example").route(route.response_headers(&[("x-seen", "2")], &["x-backend"])),
    );
    let sent = [
        ("X-Forwarded-For", "6.6.6.6"),
        ("X_Forwarded_For", "6.6.6.6"),
        ("Forwarded", "for=6.6.6.6"),
        ("X-Real-IP", "6.6.6.6"),
        ("x_secret", "s"),
        ("X-Secret", "s"),
        ("Connection", "x-hop, keep-alive"),
        ("X-Hop", "h"),
        ("Proxy-Authorization", "p"),
        ("X-Original-URL", "/admin"),
        ("Cookie", "a=1"),
        ("TE", "trailers"),
    ];
    let answer = edge
        .client()
        .from_address(address(9))
        .send("A.Example", "GET", "/", &sent)
        .expect("an answer");
    assert_eq!(answer.status, 200, "{}", answer.text());
    let headers: Vec<(String, String)> =
        serde_json::from_value(answer.json()["headers"].clone()).expect("headers");
    let all = |name: &str| {
        headers
            .iter()
            .filter(|(n, _)| n == name)
            .map(|(_, v)| v.as_str())
            .collect::<Vec<_>>()
    };
    assert_eq!(all("x-forwarded-for"), ["127.0.0.9"]);
    assert_eq!(all("x-forwarded-proto"), ["https"]);
    assert_eq!(
        (all("host"), all("x-forwarded-host")),
        (vec!["a.example"], vec!["a.example"])
    );
    assert_eq!((all("cookie"), all("x-added")), (vec!["a=1"], vec!["1"]));
    assert_eq!(
        (all("te"), all("connection")),
        (vec!["trailers"], vec!["te"]),
        "the edge's own"
    );
    for name in [
        "x_forwarded_for",
        "forwarded",
        "x-real-ip",
        "x-secret",
        "x_secret",
        "x-hop",
        "proxy-authorization",
        "x-original-url",
    ] {
        assert!(all(name).is_empty(), "{name}: {headers:?}");
    }
    assert_eq!(
        (answer.header("x-seen"), answer.header("x-backend")),
        (Some("2"), None)
    );
    assert!(answer.header("date").is_some() && answer.header("server").is_none());
}

#[test]
fn an_address_that_is_not_let_in_gets_403() {
    let edge = Edge::start();
    let backend = Backend::start("app");
    let app = edge.backend("app", &[backend.address]);
    let policy = edge.policy(&["127.0.0.7/32"]);
    edge.declare(host("a.example").route(prefix("/").to(&app).only_from(&policy)));
    assert_eq!(
        edge.client()
            .from_address(address(7))
            .get("a.example", "/")
            .expect("an answer")
            .status,
        200
    );
    let refused = edge
        .client()
        .from_address(address(8))
        .get("a.example", "/")
        .expect("an answer");
    assert_eq!(
        (refused.status, refused.header("ngrok-error-code")),
        (403, Some("ERR_NGROK_3203"))
    );
}

#[test]
fn connections_to_clients_and_backends_are_kept() {
    let edge = Edge::start_with(|options| options.workers = std::num::NonZeroUsize::new(1));
    let backend = Backend::start("app");
    let app = edge.backend("app", &[backend.address]);
    edge.declare(host("a.example").route(prefix("/").to(&app)));
    let mut connection = edge.client().open("a.example").expect("a connection");
    for _ in 0..20 {
        assert_eq!(
            exchange(&mut connection, "a.example", "GET", "/", &[])
                .expect("an answer")
                .status,
            200
        );
    }
    write!(
        connection,
        "POST / HTTP/1.1\r\nhost: a.example\r\ncontent-length: 5\r\n\r\nhello"
    )
    .expect("sent");
    assert_eq!(
        read_answer(&mut connection, "POST")
            .expect("an answer")
            .json()["body"],
        "hello"
    );
    write!(connection, "POST / HTTP/1.1\r\nhost: a.example\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n1\r\n!\r\n0\r\n\r\n").expect("sent");
    assert_eq!(
        read_answer(&mut connection, "POST")
            .expect("an answer")
            .json()["body"],
        "hello!"
    );
    let metrics = edge.running.metrics();
    assert_eq!(
        (
            metrics.passed,
            metrics.upstream_connects,
            metrics.connections_accepted
        ),
        (22, 1, 1),
        "{metrics:?}"
    );
}

#[test]
fn pipelined_requests_are_answered_in_turn() {
    let edge = Edge::start();
    let backend = Backend::start("app");
    let app = edge.backend("app", &[backend.address]);
    edge.declare(host("a.example").route(prefix("/").to(&app)));
    let mut connection = edge.client().open("a.example").expect("a connection");
    let one = |path: &str| format!("GET {path} HTTP/1.1\r\nhost: a.example\r\n\r\n");
    let bad = "GET /4 HTTP/1.1\r\nhost: a.example\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n";
    connection
        .write_all(
            [one("/1"), one("/2"), one("/3"), bad.to_owned()]
                .concat()
                .as_bytes(),
        )
        .expect("sent");
    for path in ["/1", "/2", "/3"] {
        assert_eq!(
            read_answer(&mut connection, "GET")
                .expect("an answer")
                .json()["target"],
            path
        );
    }
    let refused = read_answer(&mut connection, "GET").expect("an answer");
    assert_eq!(
        (refused.status, refused.header("connection")),
        (400, Some("close"))
    );
    assert!(
        read_answer(&mut connection, "GET").is_err(),
        "the connection ends with the refusal"
    );
    assert_eq!(backend.requests(), 3);
}

#[test]
fn names_that_nobody_declared_get_no_handshake() {
    let edge = Edge::start();
    edge.declare(host("a.example").route(prefix("/")));
    edge.declare(host("*.wild.example").route(prefix("/")));
    assert_eq!(
        edge.client()
            .get("a.example", "/")
            .expect("an answer")
            .status,
        503
    );
    assert_eq!(
        edge.client()
            .get("b.wild.example", "/")
            .expect("an answer")
            .status,
        503
    );
    for name in ["b.example", "x.y.wild.example", "wild.example"] {
        let error = edge
            .client()
            .get(name, "/")
            .expect_err("refused")
            .to_string();
        assert!(
            error.to_lowercase().contains("unrecognisedname")
                || error.to_lowercase().contains("unrecognized"),
            "{error}"
        );
    }
    wait::until("three are counted", Duration::from_secs(5), || {
        match edge.running.metrics().handshakes_failed {
            3 => Ok(()),
            other => Err(other),
        }
    });
}

#[test]
fn plain_http_redirects_declared_hosts_and_serves_nothing() {
    let edge = Edge::start();
    edge.declare(host("a.example").route(prefix("/")));
    let port = edge.running.https.port();
    let answer =
        plain_get(edge.running.http, "A.example:8080", "/x//y?q=1", &[]).expect("an answer");
    assert_eq!(answer.status, 308);
    assert_eq!(
        answer.header("location"),
        Some(format!("https://a.example:{port}/x/y?q=1").as_str())
    );
    let unknown = plain_get(edge.running.http, "b.example", "/", &[]).expect("an answer");
    assert_eq!((unknown.status, unknown.header("location")), (404, None));
    assert_eq!(
        plain_get(edge.running.http, "a.example", "/%00", &[])
            .expect("an answer")
            .status,
        400
    );
}

#[test]
fn demands_on_tls_are_asked_for_every_request() {
    let edge = Edge::start();
    let backend = Backend::start("app");
    let app = edge.backend("app", &[backend.address]);
    let declare = |minimum: Option<TlsVersion>| {
        let declared = host("a.example").route(prefix("/").to(&app));
        edge.declare(match minimum {
            None => declared,
            Some(version) => declared.tls_minimum(version),
        });
    };
    edge.declare(host("b.example").route(prefix("/").to(&app)));
    declare(None);
    let client = edge.client().with_tls_1_2();
    let mut connection = client.open("a.example").expect("a connection");
    assert_eq!(
        exchange(&mut connection, "a.example", "GET", "/", &[])
            .expect("an answer")
            .status,
        200
    );
    assert_eq!(
        exchange(&mut connection, "b.example", "GET", "/", &[])
            .expect("an answer")
            .status,
        200,
        "the same demands"
    );
    declare(Some(TlsVersion::V1_3));
    let mut other = client.open("b.example").expect("a connection");
    let misdirected = exchange(&mut other, "a.example", "GET", "/", &[]).expect("an answer");
    assert_eq!(
        misdirected.header("ngrok-error-code"),
        Some("ERR_PORTCULLIS_MISDIRECTED")
    );
    let outdated = exchange(&mut connection, "a.example", "GET", "/", &[]).expect("an answer");
    assert_eq!(
        outdated.header("ngrok-error-code"),
        Some("ERR_PORTCULLIS_HANDSHAKE_OUTDATED")
    );
    assert_eq!((misdirected.status, outdated.status), (421, 421));
    assert!(
        exchange(&mut connection, "a.example", "GET", "/", &[]).is_err(),
        "the connection has ended"
    );
    assert!(
        client.get("a.example", "/").is_err(),
        "TLS 1.2 gets no handshake any more"
    );
    assert_eq!(
        edge.client()
            .get("a.example", "/")
            .expect("an answer")
            .status,
        200
    );
    assert_eq!(backend.requests(), 3);
}

#[test]
fn an_open_route_without_endpoints_says_so() {
    let edge = Edge::start();
    let backend = Backend::start("app");
    let app = edge.backend("app", &[]);
    edge.declare(host("a.example").route(exact("/").to(&app)));
    let client = edge.client();
    let answer = client.get("a.example", "/").expect("an answer");
    assert_eq!(
        (answer.status, answer.header("ngrok-error-code")),
        (503, Some("ERR_PORTCULLIS_NO_ENDPOINTS"))
    );
    edge.set_endpoints(&app, &[backend.address]);
    assert_eq!(client.get("a.example", "/").expect("an answer").status, 200);
    edge.set_endpoints(&app, &[address(1)].map(|ip| (ip, 1).into()));
    let answer = client.get("a.example", "/").expect("an answer");
    assert_eq!(
        (answer.status, answer.header("ngrok-error-code")),
        (502, Some("ERR_PORTCULLIS_UPSTREAM_UNREACHABLE"))
    );
}

#[test]
fn the_edge_never_dials_itself_nor_what_the_policy_forbids() {
    let edge = Edge::start();
    let itself = edge.static_backend(&edge.running.https.to_string());
    let metadata = edge.static_backend("169.254.169.254:80");
    let by_name = edge.static_backend(&format!("localhost:{}", edge.running.http.port()));
    for (path, backend) in [
        ("/self", &itself),
        ("/metadata", &metadata),
        ("/name", &by_name),
    ] {
        edge.declare(host("a.example").route(prefix(path).to(backend)));
        let answer = edge.client().get("a.example", path).expect("an answer");
        assert_eq!(
            (answer.status, answer.header("ngrok-error-code")),
            (502, Some("ERR_PORTCULLIS_UPSTREAM_FORBIDDEN")),
            "{path}"
        );
    }
}

#[test]
fn an_endpoint_that_is_down_costs_no_request() {
    let edge = Edge::start();
    let backend = Backend::start("app");
    let app = edge.backend(
        "app",
        &[
            backend.address,
            (address(1), 1).into(),
            (address(2), 1).into(),
        ],
    );
    edge.declare(host("a.example").route(prefix("/").to(&app)));
    let client = edge.client();
    for _ in 0..30 {
        assert_eq!(client.get("a.example", "/").expect("an answer").status, 200);
    }
}

#[test]
fn a_kept_connection_that_the_backend_closed_costs_no_request() {
    let edge = Edge::start_with(|options| options.workers = std::num::NonZeroUsize::new(1));
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let app = edge.backend("app", &[listener.local_addr().expect("bound")]);
    edge.declare(host("a.example").route(prefix("/").to(&app)));
    // Answers one request a connection as if there could be more, then closes it.
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                if std::io::Read::read(&mut stream, &mut byte).unwrap_or(0) == 0 {
                    break;
                }
                head.push(byte[0]);
            }
            stream
                .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")
                .unwrap_or_default();
        }
    });
    let mut connection = edge.client().open("a.example").expect("a connection");
    for _ in 0..50 {
        assert_eq!(
            exchange(&mut connection, "a.example", "GET", "/", &[])
                .expect("an answer")
                .text(),
            "ok"
        );
    }
}

#[test]
fn a_drained_edge_lets_what_is_in_progress_end() {
    let edge = Edge::start();
    let backend = Backend::start("app");
    let app = edge.backend("app", &[backend.address]);
    edge.declare(host("a.example").route(prefix("/").to(&app)));
    let mut busy = edge.client().open("a.example").expect("a connection");
    write!(
        busy,
        "POST / HTTP/1.1\r\nhost: a.example\r\ncontent-length: 5\r\n\r\nhe"
    )
    .expect("sent");
    busy.flush().expect("sent");
    wait::until(
        "the request is in flight",
        Duration::from_secs(5),
        || match edge.running.metrics().requests_in_flight {
            1 => Ok(()),
            other => Err(other),
        },
    );
    edge.running.drain();
    write!(busy, "llo").expect("sent");
    let answer = read_answer(&mut busy, "POST").expect("an answer");
    assert_eq!(
        (answer.status, answer.header("connection")),
        (200, Some("close"))
    );
    edge.running.shutdown();
}
