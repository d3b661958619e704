//! What an operator relies on: panics stay where they are, logs and numbers tell what happened,
//! certificates are shown, bounds hold.

mod common;

use std::{
    io::{self, Read, Write},
    sync::{Arc, Mutex},
    time::Duration,
};

use common::{Edge, address, host, prefix};
use edge_proxy::{AccessLog, LogLevel, Options, Proxy};
use edge_state::command::{Command, Expected, Texts};
use model::{
    id::{CertificateId, EdgeId},
    secret::Secret,
};
use routing::refusal::Refusal;
use serde_json::Value;
use testkit::{
    backend::Backend,
    client::{Client, exchange},
    wait,
};

/// A log that a test can read.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("no poison").extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Log {
    fn lines(&self, count: usize) -> Vec<Value> {
        wait::until("the lines are written", Duration::from_secs(5), || {
            let text = String::from_utf8(self.0.lock().expect("no poison").clone()).expect("text");
            let lines: Vec<Value> = text
                .lines()
                .map(|line| serde_json::from_str(line).expect("JSON"))
                .collect();
            if lines.len() >= count {
                Ok(lines)
            } else {
                Err(text)
            }
        })
    }
}

fn logged(level: LogLevel) -> (Edge, Log) {
    let log = Log::default();
    let sink = log.clone();
    let edge = Edge::start_with(move |options| {
        options.access_log = AccessLog {
            level,
            sink: Box::new(sink),
        }
    });
    let backend = Backend::start("app");
    let app = edge.backend("app", &[backend.address]);
    let policy = edge.policy(&["127.0.0.7/32"]);
    edge.declare(
        host("a.example")
            .route(prefix("/").to(&app))
            .route(prefix("/guarded").to(&app).only_from(&policy))
            .route(prefix("/shut")),
    );
    (edge, log)
}

#[test]
fn a_panic_costs_one_request() {
    let edge = Edge::start_with(|options| {
        options.fault = Some(|path| assert!(path != "/panic", "as the test wants it"))
    });
    let backend = Backend::start("app");
    let app = edge.backend("app", &[backend.address]);
    edge.declare(host("a.example").route(prefix("/").to(&app)));
    let client = edge.client();
    for _ in 0..5 {
        let answer = client.get("a.example", "/panic").expect("an answer");
        assert_eq!(
            (answer.status, answer.header("ngrok-error-code")),
            (500, Some("ERR_PORTCULLIS_INTERNAL"))
        );
        assert_eq!(client.get("a.example", "/").expect("an answer").status, 200);
    }
    wait::until("all have ended", Duration::from_secs(5), || {
        let metrics = edge.running.metrics();
        match (metrics.panics, metrics.passed, metrics.requests_in_flight) {
            (5, 5, 0) => Ok(()),
            other => Err(other),
        }
    });
    assert_eq!(backend.requests(), 5);
}

#[test]
fn the_access_log_tells_what_became_of_each_request_and_no_secret() {
    let (edge, log) = logged(LogLevel::All);
    let client = edge.client().from_address(address(9));
    client
        .send(
            "a.example",
            "GET",
            "/x?token=secret",
            &[("authorization", "Bearer secret")],
        )
        .expect("an answer");
    let refused = client.get("a.example", "/guarded/y").expect("an answer");
    client.get("a.example", "/shut").expect("an answer");
    let lines = log.lines(3);
    let told = |line: &Value| {
        let names = ["path", "verdict", "reason", "module", "status"];
        names
            .map(|name| line[name].to_string().replace('"', ""))
            .join(" ")
    };
    assert_eq!(told(&lines[0]), "/x passed null null 200");
    assert_eq!(
        told(&lines[1]),
        "/guarded/y refused address-refused ipRestriction 403"
    );
    assert_eq!(told(&lines[2]), "/shut refused route-closed null 503");
    assert_eq!(
        (&lines[0]["client"], &lines[0]["host"], &lines[0]["method"]),
        (&"127.0.0.9".into(), &"a.example".into(), &"GET".into())
    );
    assert!(
        lines.iter().all(|line| line["route"]
            .as_str()
            .is_some_and(|route| route.starts_with("edghtsrt_"))
            && line["generation"].is_u64()),
        "{lines:?}"
    );
    assert!(
        lines[0]["total_us"].as_u64() >= lines[0]["backend_us"].as_u64()
            && lines[0]["bytes_out"].as_u64() > Some(0)
    );
    assert_eq!(
        lines[1]["request_id"].as_str(),
        refused.header("portcullis-request-id"),
        "the page names it too"
    );
    assert!(!format!("{lines:?}").contains("secret"));
}

#[test]
fn the_log_of_refusals_leaves_out_what_passed() {
    let (edge, log) = logged(LogLevel::Refused);
    edge.client().get("a.example", "/").expect("an answer");
    edge.client().get("a.example", "/shut").expect("an answer");
    let lines = log.lines(1);
    assert_eq!((lines.len(), &lines[0]["path"]), (1, &"/shut".into()));
}

#[test]
fn numbers_add_up_over_all_workers() {
    let (edge, _log) = logged(LogLevel::Off);
    let client = edge.client();
    for _ in 0..10 {
        client.get("a.example", "/").expect("an answer");
        client.get("a.example", "/shut").expect("an answer");
        client.get("a.example", "/guarded").expect("an answer");
    }
    let metrics = edge.running.metrics();
    assert_eq!(metrics.passed, 10);
    assert_eq!(
        metrics.refused,
        [(Refusal::RouteClosed, 10), (Refusal::AddressRefused, 10)]
    );
    assert_eq!(metrics.latency.iter().sum::<u64>(), 30);
    assert_eq!(
        (metrics.connections_accepted, metrics.abandoned, metrics.cut),
        (30, 0, 0)
    );
    assert!(metrics.bytes_sent > 0);
}

#[test]
fn a_declared_certificate_is_shown_and_an_unusable_one_is_not_missed() {
    let (edge, _log) = logged(LogLevel::Off);
    let key = rcgen::KeyPair::generate().expect("a key");
    let certificate = rcgen::CertificateParams::new([String::from("a.example")])
        .expect("a name")
        .self_signed(&key)
        .expect("signed");
    let show = |number: u8, key_pem: String| {
        let id = CertificateId::derived(&[&number.to_string()]);
        edge.apply(Command::PutCertificate {
            id: id.clone(),
            controller: Some(String::from("test")),
            chain_pem: certificate.pem(),
            key_pem: Secret::new(key_pem),
            texts: Texts::default(),
        });
        edge.show_certificate("a.example", &id);
    };
    let theirs = Client::new(edge.running.https, certificate.pem().as_bytes());
    assert!(
        theirs.get("a.example", "/shut").is_err(),
        "the local authority's is shown"
    );
    show(1, key.serialize_pem());
    assert_eq!(
        theirs.get("a.example", "/shut").expect("an answer").status,
        503
    );
    assert!(
        edge.client().get("a.example", "/shut").is_err(),
        "the declared one is shown"
    );
    show(
        2,
        rcgen::KeyPair::generate()
            .expect("another key")
            .serialize_pem(),
    );
    assert_eq!(
        edge.client()
            .get("a.example", "/shut")
            .expect("an answer")
            .status,
        503,
        "the local authority's steps in"
    );
    let id = EdgeId::derived(&["test", "a.example"]);
    edge.apply(Command::DeleteEdge {
        id,
        expected: Expected::Any,
    });
    assert!(
        edge.client().get("a.example", "/shut").is_err(),
        "no edge, no handshake"
    );
}

#[test]
fn connections_beyond_the_bound_are_turned_away_and_room_is_made_again() {
    let edge = Edge::start_with(|options| {
        options.workers = std::num::NonZeroUsize::new(1);
        options.limits.connections = 3;
    });
    edge.declare(host("a.example").route(prefix("/")));
    let client = edge.client();
    let mut held: Vec<_> = (0..3)
        .map(|_| client.open("a.example").expect("a connection"))
        .collect();
    for connection in &mut held {
        assert_eq!(
            exchange(connection, "a.example", "GET", "/", &[])
                .expect("an answer")
                .status,
            503
        );
    }
    assert!(client.get("a.example", "/").is_err());
    assert_eq!(edge.running.metrics().connections_rejected, 1);
    drop(held);
    wait::until("there is room", Duration::from_secs(5), || {
        client.get("a.example", "/").map(drop)
    });
}

#[test]
fn oversized_heads_are_refused_by_what_is_too_large() {
    let edge = Edge::start();
    edge.declare(host("a.example").route(prefix("/")));
    let client = edge.client();
    let (long, large) = (format!("/{}", "x".repeat(9000)), "x".repeat(40_000));
    let many: Vec<_> = (0..101).map(|_| ("x-a", "1")).collect();
    assert_eq!(
        client.get("a.example", &long).expect("an answer").status,
        414
    );
    assert_eq!(
        client
            .send("a.example", "GET", "/", &[("x-a", &large)])
            .expect("an answer")
            .status,
        431
    );
    assert_eq!(
        client
            .send("a.example", "GET", "/", &many)
            .expect("an answer")
            .status,
        431
    );
}

#[test]
fn an_edge_whose_state_cannot_be_read_refuses_everything() {
    let dir = tempfile::tempdir().expect("a directory");
    let running = Proxy::start(
        &edge_store::Store::refusing(),
        Options::new(dir.path().join("data")),
    )
    .expect("it starts");
    let plain = testkit::client::plain_get(running.http, "a.example", "/", &[]).expect("an answer");
    assert_eq!(
        (plain.status, plain.header("ngrok-error-code")),
        (503, Some("ERR_PORTCULLIS_STATE_UNREADABLE"))
    );
    running.shutdown();
}

#[test]
fn the_placeholder_is_the_closed_page() {
    let edge = Edge::start_with(|options| options.placeholder = Some(String::from("<p>soon</p>")));
    edge.declare(host("a.example").route(prefix("/")));
    let mut connection = edge.client().open("a.example").expect("a connection");
    let page = exchange(
        &mut connection,
        "a.example",
        "GET",
        "/",
        &[("accept", "text/html")],
    )
    .expect("an answer");
    assert_eq!((page.status, page.text().as_str()), (503, "<p>soon</p>"));
    let head = exchange(
        &mut connection,
        "a.example",
        "HEAD",
        "/",
        &[("accept", "text/html"), ("connection", "close")],
    )
    .expect("an answer");
    assert_eq!(
        (head.status, head.header("content-length")),
        (503, Some("11"))
    );
    let mut rest = Vec::new();
    connection.read_to_end(&mut rest).unwrap_or_default();
    assert!(rest.is_empty());
}
