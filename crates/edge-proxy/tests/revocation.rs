//! What is revoked stops (R12): tunnels and answers in flight are judged again by the new set.

mod common;

use std::{
    io::{Read, Write},
    net::TcpListener,
    sync::{
        Barrier,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use common::{Edge, address, host, prefix};
use model::module::TlsVersion;
use testkit::{
    backend::Backend,
    client::{Connection, exchange},
    wait,
};
use tungstenite::{Message, WebSocket};

fn quick() -> Edge {
    Edge::start_with(|options| options.revoke_grace = Duration::from_secs(1))
}

fn echoes(socket: &mut WebSocket<Connection>) -> bool {
    socket.send(Message::text("ping")).is_ok()
        && socket
            .read()
            .is_ok_and(|message| message == Message::text("ping"))
}

/// Waits until a tunnel has ended; how long that took.
fn until_cut(socket: &mut WebSocket<Connection>) -> Duration {
    let begun = Instant::now();
    while echoes(socket) {
        assert!(
            begun.elapsed() < Duration::from_secs(5),
            "the tunnel is still open"
        );
    }
    begun.elapsed()
}

#[test]
fn a_tunnel_lives_on_where_the_new_set_admits_it_and_ends_where_not() {
    let edge = quick();
    let backend = Backend::start("app");
    let app = edge.backend("app", &[backend.address]);
    let other = Backend::start("other");
    edge.declare(host("a.example").route(prefix("/").to(&app)));
    edge.declare(host("b.example").route(prefix("/").to(&app)));
    let client = edge.client();
    let mut stays = client
        .from_address(address(7))
        .websocket("a.example", "/ws")
        .expect("a tunnel");
    let mut goes = client
        .from_address(address(8))
        .websocket("a.example", "/ws")
        .expect("a tunnel");
    let mut elsewhere = client
        .from_address(address(8))
        .websocket("b.example", "/ws")
        .expect("a tunnel");
    assert!(echoes(&mut stays) && echoes(&mut goes) && echoes(&mut elsewhere));
    let policy = edge.policy(&["127.0.0.7/32"]);
    let moved = edge.backend("moved", &[other.address]);
    edge.declare(host("a.example").route(prefix("/").to(&moved).only_from(&policy)));
    assert!(
        until_cut(&mut goes) <= Duration::from_secs(1),
        "within the grace"
    );
    assert!(
        echoes(&mut stays),
        "the new set admits it: another backend is for new requests"
    );
    assert!(
        echoes(&mut elsewhere),
        "another host is none of its business"
    );
    edge.declare(host("a.example").route(prefix("/")));
    assert!(
        until_cut(&mut stays) <= Duration::from_secs(1),
        "a closed route lets nothing go on"
    );
    edge.undeclare("b.example");
    assert!(
        until_cut(&mut elsewhere) <= Duration::from_secs(1),
        "a host that is gone lets nothing go on"
    );
    wait::until("three are counted", Duration::from_secs(2), || {
        match edge.running.metrics().cut {
            3 => Ok(()),
            other => Err(other),
        }
    });
}

#[test]
fn a_tunnel_is_judged_by_the_demands_on_its_handshake_too() {
    let edge = quick();
    let backend = Backend::start("app");
    let app = edge.backend("app", &[backend.address]);
    edge.declare(host("a.example").route(prefix("/").to(&app)));
    let mut old = edge
        .client()
        .with_tls_1_2()
        .websocket("a.example", "/")
        .expect("a tunnel");
    let mut new = edge.client().websocket("a.example", "/").expect("a tunnel");
    assert!(echoes(&mut old) && echoes(&mut new));
    edge.declare(
        host("a.example")
            .tls_minimum(TlsVersion::V1_3)
            .route(prefix("/").to(&app)),
    );
    assert!(until_cut(&mut old) <= Duration::from_secs(1));
    assert!(echoes(&mut new));
}

#[test]
fn a_narrower_closed_route_takes_what_the_broader_one_let_through() {
    let edge = quick();
    let backend = Backend::start("app");
    let app = edge.backend("app", &[backend.address]);
    edge.declare(host("a.example").route(prefix("/").to(&app)));
    let mut inside = edge
        .client()
        .websocket("a.example", "/admin/ws")
        .expect("a tunnel");
    let mut outside = edge
        .client()
        .websocket("a.example", "/ws")
        .expect("a tunnel");
    edge.declare(
        host("a.example")
            .route(prefix("/").to(&app))
            .route(prefix("/admin")),
    );
    assert!(until_cut(&mut inside) <= Duration::from_secs(1));
    assert!(echoes(&mut outside));
}

#[test]
fn an_answer_in_flight_is_cut_when_its_route_closes() {
    let edge = quick();
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let app = edge.backend("app", &[listener.local_addr().expect("bound")]);
    edge.declare(host("a.example").route(prefix("/").to(&app)));
    // Streams without end.
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a connection");
        assert!(stream.read(&mut [0; 1024]).is_ok_and(|bytes| bytes > 0));
        stream
            .write_all(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
            .expect("sent");
        while stream.write_all(b"4\r\ndrip\r\n").is_ok() {
            std::thread::park_timeout(Duration::from_millis(5));
        }
    });
    let mut connection = edge.client().open("a.example").expect("a connection");
    connection
        .write_all(b"GET / HTTP/1.1\r\nhost: a.example\r\n\r\n")
        .expect("sent");
    let mut some = [0; 200];
    connection.read_exact(&mut some).expect("it streams");
    assert!(some.starts_with(b"HTTP/1.1 200"));
    edge.declare(host("a.example").route(prefix("/")));
    let begun = Instant::now();
    let mut rest = Vec::new();
    connection.read_to_end(&mut rest).unwrap_or_default();
    assert!(
        begun.elapsed() <= Duration::from_secs(1),
        "within the grace"
    );
    assert!(
        !rest.ends_with(b"0\r\n\r\n"),
        "an answer that was cut does not look whole"
    );
    wait::until("it is counted", Duration::from_secs(2), || {
        match edge.running.metrics() {
            metrics if metrics.cut == 1 && metrics.requests_in_flight == 0 => Ok(()),
            metrics => Err(format!("{metrics:?}")),
        }
    });
}

#[test]
fn an_answer_that_its_client_does_not_take_is_cut_all_the_same() {
    let edge = quick();
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let app = edge.backend("app", &[listener.local_addr().expect("bound")]);
    edge.declare(host("a.example").route(prefix("/").to(&app)));
    let backend = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a connection");
        assert!(stream.read(&mut [0; 1024]).is_ok_and(|bytes| bytes > 0));
        stream
            .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 1000000000\r\n\r\n")
            .expect("sent");
        while stream.write_all(&[0; 65536]).is_ok() {}
        Instant::now()
    });
    let mut connection = edge.client().open("a.example").expect("a connection");
    connection
        .write_all(b"GET / HTTP/1.1\r\nhost: a.example\r\n\r\n")
        .expect("sent");
    connection.read_exact(&mut [0; 100]).expect("it begins");
    edge.declare(host("a.example").route(prefix("/")));
    let revoked = Instant::now();
    let ended = backend.join().expect("the backend is let go");
    assert!(
        ended.saturating_duration_since(revoked) <= Duration::from_secs(1),
        "within the grace"
    );
}

#[test]
fn a_request_that_waits_for_its_backend_is_refused_when_its_route_closes() {
    let edge = quick();
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
    let app = edge.backend("app", &[silent.local_addr().expect("bound")]);
    edge.declare(host("a.example").route(prefix("/").to(&app)));
    let client = edge.client();
    let waiting = std::thread::spawn(move || client.get("a.example", "/").expect("an answer"));
    let (_held, _) = silent.accept().expect("the request is at the backend");
    edge.declare(host("a.example").route(prefix("/")));
    let answer = waiting.join().expect("no panic");
    assert_eq!(
        (answer.status, answer.header("ngrok-error-code")),
        (503, Some("ERR_PORTCULLIS_REVOKED"))
    );
}

#[test]
fn a_change_that_is_taken_back_within_the_grace_cuts_nothing() {
    let edge = Edge::start_with(|options| options.revoke_grace = Duration::from_secs(3));
    let backend = Backend::start("app");
    let app = edge.backend("app", &[backend.address]);
    edge.declare(host("a.example").route(prefix("/").to(&app)));
    let mut socket = edge.client().websocket("a.example", "/").expect("a tunnel");
    assert!(echoes(&mut socket));
    edge.declare(host("a.example").route(prefix("/")));
    edge.declare(host("a.example").route(prefix("/").to(&app)));
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_millis(3500) {
        assert!(echoes(&mut socket));
        std::thread::park_timeout(Duration::from_millis(50));
    }
}

/// Changes acknowledged before a request and after it, and what handled it: backend and set, or
/// nothing where it was refused.
type Seen = (usize, usize, Option<(String, String)>);

/// How many changes are acknowledged, how often somebody asked, and whether it is enough.
#[derive(Default)]
struct Progress {
    changes: AtomicUsize,
    asked: [AtomicUsize; 3],
    done: AtomicBool,
}

/// Asks without pause.
fn probe(
    client: &testkit::client::Client,
    begun: &Barrier,
    progress: &Progress,
    who: usize,
) -> Vec<Seen> {
    begun.wait();
    let changes = &progress.changes;
    let mut connection = client.open("a.example").expect("a connection");
    let mut seen = Vec::new();
    while !progress.done.load(Ordering::SeqCst) {
        let before = changes.load(Ordering::SeqCst);
        let answer = exchange(&mut connection, "a.example", "GET", "/", &[]).expect("an answer");
        let after = changes.load(Ordering::SeqCst);
        let handled = match answer.status {
            200 => {
                let headers: Vec<(String, String)> =
                    serde_json::from_value(answer.json()["headers"].clone()).expect("pairs");
                let set = headers
                    .into_iter()
                    .find(|(name, _)| name == "x-set")
                    .expect("the set's header")
                    .1;
                Some((
                    answer.json()["backend"]
                        .as_str()
                        .expect("a name")
                        .to_owned(),
                    set,
                ))
            }
            status => {
                assert_eq!(status, 403, "{}", answer.text());
                None
            }
        };
        seen.push((before, after, handled));
        progress.asked[who].store(seen.len(), Ordering::SeqCst);
    }
    seen
}

/// At least so many changes are made, and until everybody has asked so often.
const CHANGES: usize = 100;
const ASKED: usize = 50;

/// Two sets are declared in turn while clients ask without pause: each answer is wholly of the
/// one or wholly of the other, and after a change is acknowledged never of the one before it.
#[test]
fn every_request_is_handled_by_one_whole_set() {
    let edge = quick();
    let (even, odd) = (Backend::start("even"), Backend::start("odd"));
    let backends = [
        edge.backend("even", &[even.address]),
        edge.backend("odd", &[odd.address]),
    ];
    let policies = [
        edge.policy(&["127.0.0.7/32", "127.0.0.9/32"]),
        edge.policy(&["127.0.0.8/32", "127.0.0.9/32"]),
    ];
    let names = ["even", "odd"];
    let declare = |turn: usize| {
        let which = turn % 2;
        let route = prefix("/").to(&backends[which]).only_from(&policies[which]);
        edge.declare(
            host("a.example").route(route.request_headers(&[("x-set", names[which])], &[])),
        );
    };
    declare(0);
    let (begun, progress) = (Barrier::new(4), Progress::default());
    let seen = std::thread::scope(|scope| {
        let probers = [7, 8, 9].map(|last| {
            let client = edge.client().from_address(address(last));
            let (begun, progress, who) = (&begun, &progress, usize::from(last - 7));
            (
                last,
                scope.spawn(move || probe(&client, begun, progress, who)),
            )
        });
        begun.wait();
        let (mut turn, started) = (0, Instant::now());
        let too_few = |asked: &AtomicUsize| asked.load(Ordering::SeqCst) < ASKED;
        while (turn < CHANGES || progress.asked.iter().any(too_few))
            && started.elapsed() < Duration::from_secs(60)
        {
            turn += 1;
            declare(turn);
            progress.changes.store(turn, Ordering::SeqCst);
        }
        progress.done.store(true, Ordering::SeqCst);
        probers.map(|(last, prober)| (last, prober.join().expect("no panic")))
    });
    for (last, answers) in seen {
        assert!(answers.len() >= ASKED, "it asked {} times", answers.len());
        for (before, after, handled) in answers {
            // While turn `after + 1` is being applied both are right.
            let possible: Vec<usize> = (before..=after + 1).map(|turn| turn % 2).collect();
            let lets_in = |which: usize| last == 9 || last == [7, 8][which];
            match handled {
                Some((backend, set)) => {
                    assert_eq!(backend, set, "never a mix");
                    let which = usize::from(set == "odd");
                    assert!(
                        lets_in(which) && possible.contains(&which),
                        "127.0.0.{last} got {set} at {before}..{after}"
                    );
                }
                None => assert!(
                    possible.iter().any(|which| !lets_in(*which)),
                    "127.0.0.{last} was refused at {before}..{after}"
                ),
            }
        }
    }
}
