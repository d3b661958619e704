//! Bodies go through in pieces, both ways at once, and in bounded memory; whoever takes too long
//! is let go.

mod common;

use std::{
    io::{Read, Write},
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use common::{Edge, host, prefix, scripted};
use testkit::{backend::Backend, client::read_answer, wait};

fn edge_with(backend: SocketAddr) -> Edge {
    edge_waiting(backend, Duration::from_secs(10))
}

/// An edge that waits so long for anybody.
fn edge_waiting(backend: SocketAddr, limit: Duration) -> Edge {
    let edge = Edge::start_with(|options| {
        options.timeouts.client = limit;
        options.timeouts.head = limit;
        options.timeouts.backend_head = limit;
        options.timeouts.backend_body = limit;
    });
    let app = edge.backend("app", &[backend]);
    edge.declare(host("a.example").route(prefix("/").to(&app)));
    edge
}

const SHORT: Duration = Duration::from_millis(600);

#[test]
fn a_piece_goes_on_before_the_next_is_there() {
    // Sends back each piece before it reads the next.
    let backend = scripted(|mut stream, _| {
        stream
            .write_all(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
            .expect("sent");
        let mut buffer = [0; 6];
        while stream.read_exact(&mut buffer).is_ok() && buffer.starts_with(b"1\r\n") {
            if stream.write_all(&buffer).is_err() {
                break;
            }
        }
        stream.write_all(b"0\r\n\r\n").unwrap_or_default();
    });
    let edge = edge_with(backend);
    let mut connection = edge.client().open("a.example").expect("a connection");
    write!(
        connection,
        "POST / HTTP/1.1\r\nhost: a.example\r\ntransfer-encoding: chunked\r\n\r\n"
    )
    .expect("sent");
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        connection
            .read_exact(&mut byte)
            .expect("a head before the body is sent");
        head.push(byte[0]);
    }
    for letter in ["a", "b", "c"] {
        write!(connection, "1\r\n{letter}\r\n").expect("sent");
        let mut echo = [0; 6];
        connection.read_exact(&mut echo).expect("echoed");
        assert_eq!(
            std::str::from_utf8(&echo),
            Ok(format!("1\r\n{letter}\r\n").as_str())
        );
    }
}

#[test]
fn a_client_that_does_not_read_holds_its_backend_back() {
    let sent = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&sent);
    let backend = scripted(move |mut stream, _| {
        stream
            .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 1000000000\r\n\r\n")
            .expect("sent");
        let block = vec![b'x'; 64 * 1024];
        while stream.write_all(&block).is_ok() {
            counter.fetch_add(block.len(), Ordering::SeqCst);
        }
    });
    let edge = edge_waiting(backend, SHORT);
    let mut connection = edge.client().open("a.example").expect("a connection");
    write!(connection, "GET / HTTP/1.1\r\nhost: a.example\r\n\r\n").expect("sent");
    connection.flush().expect("sent");
    // The client takes nothing: the edge gives up on it, and has taken no more than sockets hold.
    wait::until(
        "the client is let go",
        Duration::from_secs(10),
        || match edge.running.metrics() {
            metrics if metrics.requests_in_flight == 0 && metrics.passed == 1 => Ok(()),
            metrics => Err(format!("{metrics:?}")),
        },
    );
    let bytes = sent.load(Ordering::SeqCst);
    assert!(
        bytes < 32 * 1024 * 1024,
        "{bytes} bytes were taken from the backend"
    );
}

#[test]
fn an_upload_that_is_answered_early_goes_on() {
    // Answers at once, a lot, and reads the whole body only then.
    let backend = scripted(|mut stream, _| {
        let body = vec![b'y'; 4 * 1024 * 1024];
        write!(
            stream,
            "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n",
            body.len()
        )
        .expect("sent");
        let mut reader = stream.try_clone().expect("a handle");
        let reading = std::thread::spawn(move || {
            let mut upload = vec![0; 8 * 1024 * 1024];
            reader.read_exact(&mut upload).is_ok()
        });
        stream.write_all(&body).expect("sent");
        assert!(reading.join().expect("no panic"));
    });
    let edge = edge_with(backend);
    let mut connection = edge.client().open("a.example").expect("a connection");
    let body = vec![b'x'; 8 * 1024 * 1024];
    write!(
        connection,
        "POST / HTTP/1.1\r\nhost: a.example\r\ncontent-length: {}\r\n\r\n",
        body.len()
    )
    .expect("sent");
    // A client that takes nothing before it has sent everything.
    connection
        .write_all(&body)
        .expect("the upload is taken though the answer waits");
    let answer = read_answer(&mut connection, "POST").expect("an answer");
    assert_eq!((answer.status, answer.body.len()), (200, 4 * 1024 * 1024));
}

#[test]
fn continue_is_said_only_for_bodies_that_are_wanted() {
    let backend = Backend::start("app");
    let edge = edge_with(backend.address);
    let mut connection = edge.client().open("a.example").expect("a connection");
    write!(
        connection,
        "POST / HTTP/1.1\r\nhost: a.example\r\nexpect: 100-continue\r\ncontent-length: 5\r\n\r\n"
    )
    .expect("sent");
    assert_eq!(
        read_answer(&mut connection, "POST")
            .expect("an answer")
            .status,
        100
    );
    write!(connection, "hello").expect("sent");
    let answer = read_answer(&mut connection, "POST")
        .expect("an answer")
        .json();
    assert_eq!(answer["body"], "hello");
    assert!(!answer["headers"].to_string().contains("expect"));
    let mut refused = edge.client().open("a.example").expect("a connection");
    write!(
        refused,
        "POST /%00 HTTP/1.1\r\nhost: a.example\r\nexpect: 100-continue\r\ncontent-length: 5\r\n\r\n"
    )
    .expect("sent");
    assert_eq!(
        read_answer(&mut refused, "POST").expect("an answer").status,
        400
    );
    let mut unknown = edge.client().open("a.example").expect("a connection");
    write!(
        unknown,
        "POST / HTTP/1.1\r\nhost: a.example\r\nexpect: wonders\r\ncontent-length: 5\r\n\r\n"
    )
    .expect("sent");
    assert_eq!(
        read_answer(&mut unknown, "POST").expect("an answer").status,
        417
    );
}

#[test]
fn who_takes_too_long_is_let_go() {
    let silent = scripted(|stream, _| {
        std::thread::park_timeout(Duration::from_secs(30));
        drop(stream);
    });
    let edge = edge_waiting(silent, SHORT);
    let late = edge.client().get("a.example", "/").expect("an answer");
    assert_eq!(
        (late.status, late.header("ngrok-error-code")),
        (504, Some("ERR_PORTCULLIS_UPSTREAM_TIMEOUT"))
    );
    let mut slow = edge.client().open("a.example").expect("a connection");
    write!(
        slow,
        "POST / HTTP/1.1\r\nhost: a.example\r\ncontent-length: 5\r\n\r\nhe"
    )
    .expect("sent");
    let answer = read_answer(&mut slow, "POST").expect("an answer");
    assert_eq!(
        (answer.status, answer.header("ngrok-error-code")),
        (408, Some("ERR_PORTCULLIS_REQUEST_TIMEOUT"))
    );
    let mut half = edge.client().open("a.example").expect("a connection");
    write!(half, "GET / HTTP/1.1\r\nhost: a.ex").expect("sent");
    half.flush().expect("sent");
    let answer = read_answer(&mut half, "GET").expect("an answer");
    assert_eq!(
        (
            answer.status,
            answer.header("ngrok-error-code"),
            answer.header("connection")
        ),
        (408, Some("ERR_PORTCULLIS_REQUEST_TIMEOUT"), Some("close")),
        "half a head"
    );
    assert!(read_answer(&mut half, "GET").is_err(), "it has ended");
}

#[test]
fn an_answer_that_breaks_off_does_not_look_whole() {
    let backend = scripted(|mut stream, head| {
        let framing = if head.contains("/chunked") {
            "transfer-encoding: chunked\r\n\r\n5\r\nhello\r\n"
        } else {
            "content-length: 10\r\n\r\nhello"
        };
        write!(stream, "HTTP/1.1 200 OK\r\n{framing}").expect("sent");
    });
    let edge = edge_with(backend);
    for path in ["/length", "/chunked"] {
        let mut connection = edge.client().open("a.example").expect("a connection");
        write!(connection, "GET {path} HTTP/1.1\r\nhost: a.example\r\n\r\n").expect("sent");
        assert!(read_answer(&mut connection, "GET").is_err(), "{path}");
    }
}

#[test]
fn answers_without_a_body_are_framed_right() {
    let backend = scripted(|mut stream, head| {
        let answer = match head.split(' ').nth(1) {
            Some("/204") => "HTTP/1.1 204 No Content\r\n\r\n",
            Some("/304") => {
                "HTTP/1.1 304 Not Modified\r\ncontent-length: 100\r\netag: \"x\"\r\n\r\n"
            }
            _ if head.starts_with("HEAD") => "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n",
            _ => {
                "HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\nngrok-error-code: ERR_NGROK_1\r\nkeep-alive: x\r\n\r\nok"
            }
        };
        stream.write_all(answer.as_bytes()).expect("sent");
    });
    let edge = edge_with(backend);
    let mut connection = edge.client().open("a.example").expect("a connection");
    for (method, path, status, length) in [
        ("GET", "/204", 204, None),
        ("GET", "/304", 304, None),
        ("HEAD", "/", 200, Some("100")),
        ("GET", "/", 200, Some("2")),
    ] {
        let answer = testkit::client::exchange(&mut connection, "a.example", method, path, &[])
            .expect("an answer");
        assert_eq!(
            (answer.status, answer.header("content-length")),
            (status, length),
            "{method} {path}"
        );
        assert_eq!(
            (
                answer.header("ngrok-error-code"),
                answer.header("keep-alive")
            ),
            (None, None)
        );
    }
}

#[test]
fn an_upgrade_is_granted_by_a_right_101_alone() {
    let backend = scripted(|mut stream, _| {
        stream.write_all(b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-accept: AAAA\r\n\r\n").expect("sent");
    });
    let edge = edge_with(backend);
    let error = edge
        .client()
        .websocket("a.example", "/")
        .expect_err("refused")
        .to_string();
    assert_eq!(error, "502");
}

#[test]
fn an_answer_that_can_be_read_in_two_ways_is_not_passed_on() {
    let backend = scripted(|mut stream, head| {
        let framing = match head.split(' ').nth(1) {
            Some("/both") => "content-length: 3\r\ntransfer-encoding: chunked",
            Some("/coded") => "transfer-encoding: gzip, chunked",
            Some("/lengths") => "content-length: 5\r\ncontent-length: 3",
            Some("/twice") => "transfer-encoding: chunked\r\ntransfer-encoding: chunked",
            Some("/folded") => "x-a: 1\r\n b\r\ncontent-length: 3",
            _ => "content-length: +3",
        };
        write!(stream, "HTTP/1.1 200 OK\r\n{framing}\r\n\r\n0\r\n\r\n").expect("sent");
    });
    let edge = edge_with(backend);
    for path in ["/both", "/coded", "/lengths", "/twice", "/folded", "/sign"] {
        let answer = edge.client().get("a.example", path).expect("an answer");
        assert_eq!(
            (answer.status, answer.header("ngrok-error-code")),
            (502, Some("ERR_PORTCULLIS_UPSTREAM_INVALID")),
            "{path}"
        );
    }
}

#[test]
fn a_refusal_reaches_a_client_that_is_still_sending() {
    let backend = Backend::start("app");
    let edge = edge_with(backend.address);
    edge.declare(host("b.example").route(prefix("/")));
    let mut connection = edge.client().open("b.example").expect("a connection");
    let body = vec![b'x'; 4 * 1024 * 1024];
    write!(
        connection,
        "POST / HTTP/1.1\r\nhost: b.example\r\ncontent-length: {}\r\n\r\n",
        body.len()
    )
    .expect("sent");
    connection
        .write_all(&body)
        .expect("what nobody wants is taken all the same");
    assert_eq!(
        read_answer(&mut connection, "POST")
            .expect("an answer")
            .status,
        503
    );
}

#[test]
fn what_is_said_right_behind_an_upgrade_is_heard_when_it_is_granted() {
    let backend = Backend::start("app");
    let edge = edge_with(backend.address);
    let mut connection = edge.client().open("a.example").expect("a connection");
    let head = "GET / HTTP/1.1\r\nhost: a.example\r\nconnection: upgrade\r\nupgrade: websocket\r\n\
                sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    // A masked text frame, and its echo (RFC 6455 section 5.7).
    connection
        .write_all(&[head.as_bytes(), b"\x81\x82\0\0\0\0hi"].concat())
        .expect("sent");
    assert_eq!(
        read_answer(&mut connection, "GET")
            .expect("an answer")
            .status,
        101
    );
    let mut echo = [0; 4];
    connection.read_exact(&mut echo).expect("an echo");
    assert_eq!(&echo, b"\x81\x02hi");
}
