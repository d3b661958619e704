//! Every limit refuses with its own status, page and code: 408, 413, 414, 431, 504.

mod common;

use std::{
    io::{Read, Write},
    time::{Duration, Instant},
};

use common::{Edge, host, prefix, scripted};
use testkit::{backend::Backend, client::read_answer};

/// An edge with this limit on bodies before an echoing backend.
fn edge_taking(bytes: u64) -> (Edge, Backend) {
    let edge = Edge::start_with(|options| options.limits.body_bytes = bytes);
    let backend = Backend::start("app");
    let app = edge.backend("app", &[backend.address]);
    edge.declare(
        host("a.example")
            .route(prefix("/").to(&app))
            .route(prefix("/shut")),
    );
    (edge, backend)
}

/// The status and code of the answer to these bytes, and whether the connection ends with it.
fn told(edge: &Edge, bytes: &str) -> (u16, Option<String>, bool) {
    let mut connection = edge.client().open("a.example").expect("a connection");
    connection.write_all(bytes.as_bytes()).expect("sent");
    let answer = read_answer(&mut connection, "POST").expect("an answer");
    let code = answer.header("ngrok-error-code").map(str::to_owned);
    (
        answer.status,
        code,
        answer.header("connection") == Some("close"),
    )
}

#[test]
fn a_body_that_is_too_large_is_refused_and_one_that_just_fits_is_not() {
    let (edge, backend) = edge_taking(10);
    let post = "POST / HTTP/1.1\r\nhost: a.example\r\n";
    let too_large = (
        413,
        Some(String::from("ERR_PORTCULLIS_BODY_TOO_LARGE")),
        true,
    );
    assert_eq!(
        told(
            &edge,
            &format!("{post}content-length: 10\r\n\r\n0123456789")
        )
        .0,
        200
    );
    assert_eq!(
        told(
            &edge,
            &format!("{post}transfer-encoding: chunked\r\n\r\na\r\n0123456789\r\n0\r\n\r\n")
        )
        .0,
        200
    );
    assert_eq!(backend.requests(), 2);
    assert_eq!(
        told(
            &edge,
            &format!("{post}content-length: 11\r\n\r\n0123456789a")
        ),
        too_large
    );
    assert_eq!(
        told(
            &edge,
            &format!("{post}expect: 100-continue\r\ncontent-length: 11\r\n\r\n")
        ),
        too_large,
        "before it is sent"
    );
    assert_eq!(
        told(
            &edge,
            &format!("{post}transfer-encoding: chunked\r\n\r\nb\r\n0123456789a\r\n")
        ),
        too_large
    );
    assert_eq!(
        told(
            &edge,
            "POST /shut HTTP/1.1\r\nhost: a.example\r\ncontent-length: 11\r\n\r\n0123456789a"
        )
        .0,
        503,
        "who is not let in learns nothing of it"
    );
    assert_eq!(
        backend.requests(),
        2,
        "no backend takes half a body for a whole one"
    );
}

#[test]
fn nothing_lasts_for_ever_however_busy_it_is() {
    let edge = Edge::start_with(|options| options.timeouts.total = Duration::from_millis(700));
    // Drips, and echoes what is said to it.
    let drips = scripted(|mut stream, head| {
        if head.starts_with("POST") {
            while stream.read(&mut [0; 64]).is_ok_and(|bytes| bytes > 0) {}
            return;
        }
        stream
            .write_all(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
            .expect("sent");
        while stream.write_all(b"4\r\ndrip\r\n").is_ok() {
            std::thread::park_timeout(Duration::from_millis(20));
        }
    });
    let echo = Backend::start("echo");
    let (drips, echo) = (
        edge.backend("drips", &[drips]),
        edge.backend("echo", &[echo.address]),
    );
    edge.declare(
        host("a.example")
            .route(prefix("/").to(&drips))
            .route(prefix("/ws").to(&echo)),
    );
    let mut download = edge.client().open("a.example").expect("a connection");
    write!(download, "GET / HTTP/1.1\r\nhost: a.example\r\n\r\n").expect("sent");
    let begun = Instant::now();
    let mut all = Vec::new();
    download.read_to_end(&mut all).unwrap_or_default();
    assert!(all.starts_with(b"HTTP/1.1 200") && !all.ends_with(b"0\r\n\r\n"));
    assert!(begun.elapsed() < Duration::from_secs(5));
    let mut upload = edge.client().open("a.example").expect("a connection");
    write!(
        upload,
        "POST / HTTP/1.1\r\nhost: a.example\r\ntransfer-encoding: chunked\r\n\r\n"
    )
    .expect("sent");
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_millis(900) {
        write!(upload, "1\r\nx\r\n")
            .and_then(|()| upload.flush())
            .unwrap_or_default();
        std::thread::park_timeout(Duration::from_millis(20));
    }
    let answer = read_answer(&mut upload, "POST").expect("an answer");
    assert_eq!(
        (answer.status, answer.header("ngrok-error-code")),
        (408, Some("ERR_PORTCULLIS_REQUEST_TIMEOUT")),
        "a client that drips"
    );
    let mut tunnel = edge
        .client()
        .websocket("a.example", "/ws")
        .expect("a tunnel");
    let begun = Instant::now();
    while tunnel.send("hi".into()).is_ok() && tunnel.read().is_ok() {
        assert!(
            begun.elapsed() < Duration::from_secs(5),
            "the tunnel is still open"
        );
        std::thread::park_timeout(Duration::from_millis(20));
    }
}

#[test]
fn a_head_that_drips_is_refused_in_time() {
    let edge = Edge::start_with(|options| options.timeouts.head = Duration::from_millis(600));
    edge.declare(host("a.example").route(prefix("/")));
    let mut connection = edge.client().open("a.example").expect("a connection");
    let begun = Instant::now();
    connection.write_all(b"GET / HTTP/1.1\r\n").expect("sent");
    while begun.elapsed() < Duration::from_millis(900) {
        connection
            .write_all(b"a: b\r\n")
            .and_then(|()| connection.flush())
            .unwrap_or_default();
        std::thread::park_timeout(Duration::from_millis(100));
    }
    let answer = read_answer(&mut connection, "GET").expect("an answer");
    assert_eq!(
        (answer.status, answer.header("ngrok-error-code")),
        (408, Some("ERR_PORTCULLIS_REQUEST_TIMEOUT"))
    );
}

/// Reads to the end, which comes within the connection's own patience; how much that was.
fn ends(stream: &mut impl Read) -> usize {
    let mut rest = Vec::new();
    let ended = stream.read_to_end(&mut rest);
    let late = ended.is_err_and(|error| {
        matches!(
            error.kind(),
            std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut
        )
    });
    assert!(!late, "it is still open");
    rest.len()
}

#[test]
fn a_connection_that_says_nothing_ends_in_every_phase() {
    let short = Duration::from_millis(300);
    let edge = Edge::start_with(|options| {
        options.timeouts.handshake = short;
        options.timeouts.idle = short;
        options.timeouts.head = short;
    });
    edge.declare(host("a.example").route(prefix("/")));
    let tcp = |to| testkit::client::connect(to, None).expect("a connection");
    assert_eq!(ends(&mut tcp(edge.running.https)), 0, "no handshake");
    let mut half = tcp(edge.running.https);
    half.write_all(&[22, 3, 1, 2, 0, 1]).expect("sent");
    assert_eq!(ends(&mut half), 0, "half a handshake");
    assert_eq!(ends(&mut tcp(edge.running.http)), 0, "the plain port");
    let mut half = tcp(edge.running.http);
    half.write_all(b"GET / HT").expect("sent");
    assert_eq!(
        read_answer(&mut half, "GET").expect("an answer").status,
        408
    );
    let mut silent = edge.client().open("a.example").expect("a connection");
    silent.flush().expect("a handshake");
    assert_eq!(ends(&mut silent), 0, "no request");
    let mut idle = edge.client().open("a.example").expect("a connection");
    let answer = testkit::client::exchange(&mut idle, "a.example", "GET", "/", &[]);
    assert_eq!(answer.expect("an answer").status, 503);
    assert_eq!(ends(&mut idle), 0, "no further request");
    // HTTP/2, whose first word or whose first stream never comes.
    for said in [
        &b""[..],
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0",
    ] {
        let name = "a.example".try_into().expect("a name");
        let session = rustls::ClientConnection::new(edge.client().config_for(b"h2"), name);
        let mut stream =
            rustls::StreamOwned::new(session.expect("a session"), tcp(edge.running.https));
        stream
            .write_all(said)
            .and_then(|()| stream.flush())
            .expect("sent");
        ends(&mut stream);
    }
}

#[test]
fn a_worker_has_so_many_requests_in_flight_and_room_is_made_again() {
    let edge = Edge::start_with(|options| {
        options.workers = std::num::NonZeroUsize::new(1);
        options.limits.requests = 1;
    });
    let backend = Backend::start("app");
    let app = edge.backend("app", &[backend.address]);
    edge.declare(host("a.example").route(prefix("/").to(&app)));
    let mut tunnel = edge.client().websocket("a.example", "/").expect("a tunnel");
    let refused = edge.client().get("a.example", "/").expect("an answer");
    assert_eq!(
        (
            refused.status,
            refused.header("ngrok-error-code"),
            refused.header("retry-after")
        ),
        (503, Some("ERR_PORTCULLIS_OVERLOADED"), Some("1"))
    );
    tunnel.close(None).expect("it ends");
    drop(tunnel);
    testkit::wait::until("there is room", Duration::from_secs(5), || {
        match edge
            .client()
            .get("a.example", "/")
            .expect("an answer")
            .status
        {
            200 => Ok(()),
            status => Err(status),
        }
    });
}
