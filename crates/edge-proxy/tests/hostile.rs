//! What a hostile client or backend may try once it speaks well-formed HTTP: nothing of it
//! reaches anybody else's answer, holds a request for ever or brings a worker down.

mod common;

use std::{
    io::{Read, Write},
    net::SocketAddr,
    num::NonZeroUsize,
    time::Duration,
};

use common::{Edge, host, prefix, read_head, scripted};
use testkit::{
    backend::Backend,
    client::{exchange, read_answer},
};

fn edge_to(backend: SocketAddr) -> Edge {
    let edge = Edge::start_with(|options| {
        options.workers = NonZeroUsize::new(1);
        options.timeouts.backend_head = Duration::from_millis(800);
    });
    let app = edge.backend("app", &[backend]);
    edge.declare(host("a.example").route(prefix("/").to(&app)));
    edge
}

/// Answers that say more than they may are followed by bytes that would be the answer to the next
/// request, if the connection were used for it.
#[test]
fn what_stands_behind_an_answer_answers_nobody() {
    let backend = scripted(|mut stream, mut head| {
        while !head.is_empty() {
            let answer = match head.split(' ').nth(1) {
                Some("/204") => "HTTP/1.1 204 No Content\r\n",
                Some("/304") => "HTTP/1.1 304 Not Modified\r\n",
                Some("/205") => "HTTP/1.1 205 Reset Content\r\ncontent-length: 0\r\n",
                Some("/head") => "HTTP/1.1 200 OK\r\ncontent-length: 62\r\n",
                Some("/length") => "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n",
                Some("/chunked") => "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n",
                _ => "HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nfine",
            };
            let body = match head.split(' ').nth(1) {
                Some("/length") => "\r\nok",
                Some("/chunked") => "\r\n2\r\nok\r\n0\r\n\r\n",
                Some("/fine") => "",
                _ => "\r\n",
            };
            let smuggled = if head.contains(" /fine ") {
                ""
            } else {
                "HTTP/1.1 200 OK\r\ncontent-length: 8\r\nx-a: 1\r\n\r\nsmuggled"
            };
            write!(stream, "{answer}{body}{smuggled}").unwrap_or_default();
            head = read_head(&mut stream);
        }
    });
    let edge = edge_to(backend);
    let mut connection = edge.client().open("a.example").expect("a connection");
    for (method, path, status) in [
        ("GET", "/204", 204),
        ("GET", "/304", 304),
        ("GET", "/205", 205),
        ("HEAD", "/head", 200),
        ("GET", "/length", 200),
        ("GET", "/chunked", 200),
    ] {
        let answer = exchange(&mut connection, "a.example", method, path, &[]).expect("an answer");
        assert_eq!(answer.status, status, "{path}");
        let next = exchange(&mut connection, "a.example", "GET", "/fine", &[]).expect("an answer");
        assert_eq!(
            (next.status, next.text().as_str()),
            (200, "fine"),
            "behind {path}"
        );
    }
}

#[test]
fn interim_answers_without_end_are_a_backend_that_does_not_answer() {
    let backend = scripted(|mut stream, _| {
        while stream
            .write_all(b"HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n")
            .is_ok()
        {
            std::thread::park_timeout(Duration::from_millis(1));
        }
    });
    let edge = edge_to(backend);
    let answer = edge.client().get("a.example", "/").expect("an answer");
    assert_eq!(
        (answer.status, answer.header("ngrok-error-code")),
        (504, Some("ERR_PORTCULLIS_UPSTREAM_TIMEOUT"))
    );
}

#[test]
fn a_backend_cannot_make_a_tunnel_of_a_plain_request() {
    let backend = scripted(|mut stream, _| {
        stream
            .write_all(
                b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n",
            )
            .expect("sent");
        stream.read(&mut [0; 64]).unwrap_or_default();
    });
    let edge = edge_to(backend);
    let mut connection = edge.client().open("a.example").expect("a connection");
    for method in ["GET", "HEAD", "POST"] {
        let answer = exchange(&mut connection, "a.example", method, "/", &[]).expect("an answer");
        assert_eq!(answer.status, 502, "{method}");
    }
}

#[test]
fn heads_of_answers_have_a_limit() {
    let backend = scripted(|mut stream, head| {
        let (name, count) = if head.contains("/many") {
            ("x-many", 10_000)
        } else {
            ("x-a", 0)
        };
        stream.write_all(b"HTTP/1.1 200 OK\r\n").unwrap_or_default();
        if head.contains("/long") {
            stream.write_all(b"x-long: ").unwrap_or_default();
            while stream.write_all(&[b'x'; 4096]).is_ok() {}
        }
        for number in 0..count {
            write!(stream, "{name}-{number}: 1\r\n").unwrap_or_default();
        }
        stream
            .write_all(b"content-length: 2\r\n\r\nok")
            .unwrap_or_default();
    });
    let edge = edge_to(backend);
    for (path, status) in [("/", 200), ("/many", 502), ("/long", 502)] {
        let answer = edge.client().get("a.example", path).expect("an answer");
        assert_eq!(answer.status, status, "{path}");
    }
}

/// A header value of the backend's cannot become a second answer (response splitting).
#[test]
fn values_that_hold_line_ends_are_not_passed_on() {
    let backend = scripted(|mut stream, head| {
        let value = match head.split(' ').nth(1) {
            Some("/cr") => "a\rHTTP/1.1 200 OK",
            Some("/nul") => "a\0b",
            _ => "a\u{1}b",
        };
        write!(
            stream,
            "HTTP/1.1 200 OK\r\nx-a: {value}\r\ncontent-length: 2\r\n\r\nok"
        )
        .unwrap_or_default();
    });
    let edge = edge_to(backend);
    for path in ["/cr", "/nul", "/control"] {
        let answer = edge.client().get("a.example", path).expect("an answer");
        assert_eq!(answer.status, 502, "{path}");
    }
}

/// A refused request's body is not read as the next request.
#[test]
fn a_body_that_nobody_wanted_is_no_request() {
    let backend = Backend::start("app");
    let edge = edge_to(backend.address);
    edge.declare(host("b.example").route(prefix("/")));
    let smuggled = "GET /smuggled HTTP/1.1\r\nhost: a.example\r\n\r\n";
    let mut connection = edge.client().open("b.example").expect("a connection");
    write!(
        connection,
        "POST / HTTP/1.1\r\nhost: b.example\r\ncontent-length: {}\r\n\r\n{smuggled}",
        smuggled.len()
    )
    .expect("sent");
    assert_eq!(
        read_answer(&mut connection, "POST")
            .expect("an answer")
            .status,
        503
    );
    // The connection may go on, in step.
    if let Ok(next) = exchange(&mut connection, "a.example", "GET", "/next", &[]) {
        assert_eq!(
            (next.status, &next.json()["target"]),
            (200, &"/next".into())
        );
    }
    assert!(
        backend
            .seen()
            .iter()
            .all(|request| request["target"] != "/smuggled")
    );
}

/// A WebSocket handshake with a body is none, and its body no request.
#[test]
fn an_upgrade_with_a_body_is_refused() {
    let backend = Backend::start("app");
    let edge = edge_to(backend.address);
    for framing in [
        "content-length: 5\r\n\r\nhello",
        "transfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    ] {
        let mut connection = edge.client().open("a.example").expect("a connection");
        write!(
            connection,
            "GET / HTTP/1.1\r\nhost: a.example\r\nconnection: upgrade\r\nupgrade: websocket\r\n\
             sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n{framing}"
        )
        .expect("sent");
        let answer = read_answer(&mut connection, "GET").expect("an answer");
        assert_eq!(
            (answer.status, answer.header("ngrok-error-code")),
            (400, Some("ERR_PORTCULLIS_UPGRADE_REFUSED"))
        );
    }
    assert_eq!(backend.requests(), 0);
}

/// Answered before its upload is whole, and the backend gone: the client gets the answer, and the
/// connection does not take the rest of the body for a request.
#[test]
fn an_early_answer_and_a_dead_backend_leave_the_connection_in_step_or_ended() {
    let backend = scripted(|mut stream, _| {
        stream
            .write_all(
                b"HTTP/1.1 403 Forbidden\r\ncontent-length: 2\r\nconnection: close\r\n\r\nno",
            )
            .unwrap_or_default();
    });
    let edge = edge_to(backend);
    let mut connection = edge.client().open("a.example").expect("a connection");
    write!(
        connection,
        "POST / HTTP/1.1\r\nhost: a.example\r\ncontent-length: 100000\r\n\r\nGET /"
    )
    .expect("sent");
    connection.flush().expect("sent");
    let answer = read_answer(&mut connection, "POST").expect("an answer");
    assert_eq!((answer.status, answer.text().as_str()), (403, "no"));
    connection
        .write_all(b"GET /smuggled HTTP/1.1\r\nhost: a.example\r\n\r\n")
        .and_then(|()| connection.flush())
        .unwrap_or_default();
    connection
        .sock
        .set_read_timeout(Some(Duration::from_millis(300)))
        .expect("a time-out");
    let mut rest = Vec::new();
    connection.read_to_end(&mut rest).unwrap_or_default();
    assert!(rest.is_empty(), "{}", String::from_utf8_lossy(&rest));
}

/// A body that breaks its own rules is the client's fault, and its backend does not take the half
/// that came for a whole.
#[test]
fn a_malformed_body_is_told_as_what_it_is() {
    let backend = Backend::start("app");
    let edge = edge_to(backend.address);
    for chunks in [
        "zz\r\n",
        "2\r\nhi\r\n2;a=b\r\n",
        "2\r\nhi!",
        "0\r\nbad name: x\r\n\r\n",
    ] {
        let mut connection = edge.client().open("a.example").expect("a connection");
        write!(
            connection,
            "POST / HTTP/1.1\r\nhost: a.example\r\ntransfer-encoding: chunked\r\n\r\n{chunks}"
        )
        .expect("sent");
        let answer = read_answer(&mut connection, "POST").expect("an answer");
        assert_eq!(
            (answer.status, answer.header("ngrok-error-code")),
            (400, Some("ERR_PORTCULLIS_AMBIGUOUS_FRAMING")),
            "{chunks:?}"
        );
    }
    assert_eq!(backend.requests(), 0);
}
