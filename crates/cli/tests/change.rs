//! A module set is changed on an open route, again and again, while clients that it admits and
//! clients that it refuses send requests without pause and hold WebSockets open (R4, R12).

mod common;

use std::{
    net::IpAddr,
    sync::{Arc, Mutex},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use common::{Place, guarded, service, service_object};
use model::status::RouteState;
use testkit::{
    backend::Backend,
    client::{Client, Connection},
    prober::{Declaration, History, Probe, Probers},
    wait::until,
};
use tungstenite::{Message, WebSocket};

const HOST: &str = "web.example.com";
const LIMIT: Duration = Duration::from_secs(30);
const CHANGES: u32 = 200;
/// What `--revoke-grace` is set to.
const GRACE: Duration = Duration::from_millis(700);
/// What a loaded machine may add until a test's own thread has noticed.
const NOTICED: Duration = Duration::from_secs(5);

/// The declaration of each round: another set, another range, another backend, in three
/// different rhythms.
fn declaration(round: u32, one: IpAddr, two: IpAddr) -> Declaration {
    Declaration {
        set: format!("set-{round}"),
        backend: if round.is_multiple_of(3) {
            "web-a"
        } else {
            "web-b"
        }
        .to_owned(),
        admits: if round.is_multiple_of(2) {
            vec![one, two]
        } else {
            vec![one]
        },
    }
}

/// Says something over a WebSocket and waits for it to come back.
fn echo(socket: &mut WebSocket<Connection>, text: &str) -> Result<(), String> {
    let said = Message::text(text);
    socket.send(said.clone()).map_err(|e| e.to_string())?;
    let heard = socket.read().map_err(|e| e.to_string())?;
    if heard == said {
        Ok(())
    } else {
        Err(format!("{heard:?}"))
    }
}

/// Reads until the connection is cut, and says when.
fn watch(mut socket: WebSocket<Connection>) -> JoinHandle<Result<Instant, String>> {
    thread::spawn(move || {
        let stream = &socket.get_ref().sock;
        let limited = stream.set_read_timeout(Some(LIMIT));
        limited.map_err(|error| error.to_string())?;
        loop {
            match socket.read() {
                Ok(message) if message.is_close() => return Ok(Instant::now()),
                Ok(_) => {}
                Err(tungstenite::Error::Io(error))
                    if error.kind() == std::io::ErrorKind::WouldBlock =>
                {
                    return Err("it was not cut".to_owned());
                }
                Err(_) => return Ok(Instant::now()),
            }
        }
    })
}

/// Waits until a client that every declaration admits is served by this one.
fn wait_in_force(client: &Client, declared: &Declaration) {
    until("the change is in force", LIMIT, || {
        let answer = client.get(HOST, "/x").map_err(|error| error.to_string())?;
        let text = answer.text();
        let set = format!("[\"x-set\",\"{}\"]", declared.set);
        if answer.status == 200 && text.contains(&set) {
            Ok(())
        } else {
            Err(format!("{} {text}", answer.status))
        }
    });
}

#[test]
fn two_hundred_changes_under_load_are_old_or_new_and_never_a_mix() {
    let one: IpAddr = "127.0.0.1".parse().expect("an address");
    let two: IpAddr = "127.0.0.2".parse().expect("an address");
    let backends = ["web-a", "web-b"].map(Backend::start);
    let services = [
        service("web-a", backends[0].address),
        service("web-b", backends[1].address),
    ];
    let place = Place::new();
    let history = History::default();
    let write = |round: u32| {
        let declared = declaration(round, one, two);
        history.declare(Some(declared.clone()));
        let route = guarded("web", HOST, "/", &declared);
        place.write(
            "web.yaml",
            &(service_object("web-a") + &service_object("web-b") + &route),
        );
        declared
    };
    write(0);
    let portcullis = place.up(&[
        "--service",
        &services[0],
        "--service",
        &services[1],
        "--revoke-grace",
        "700ms",
    ]);
    let _open = portcullis.wait_route(HOST, "/", RouteState::Open);
    let client = portcullis.client();
    let second = client.from_address(two);
    let probe = |source, kept| Probe {
        host: HOST.to_owned(),
        path: "/x".to_owned(),
        source,
        kept,
        strict: true,
        history: history.clone(),
    };
    let target = Arc::new(Mutex::new(Some(client.clone())));
    let probes = [(one, true), (one, false), (two, true), (two, false)];
    let probers = Probers::start(&target, probes.map(|(a, kept)| probe(a, kept)).to_vec());
    let mut lasting = client.websocket(HOST, "/lasting").expect("it is admitted");
    for round in 1..=CHANGES {
        let declared = declaration(round, one, two);
        let forbids = !declared.admits.contains(&two);
        let watched = forbids.then(|| {
            let mut socket = second
                .websocket(HOST, "/watched")
                .expect("it is admitted still");
            echo(&mut socket, "before").expect("it is open");
            watch(socket)
        });
        let written = Instant::now();
        write(round);
        wait_in_force(&client, &declared);
        history.in_force();
        if let Some(watched) = watched {
            let in_force = Instant::now();
            let cut = watched
                .join()
                .expect("the watcher ends")
                .expect("what the new set forbids is cut");
            assert!(cut >= written, "it was cut before anything changed");
            assert!(
                cut <= in_force + GRACE + NOTICED,
                "cut {:?} late",
                cut - in_force
            );
            let refused = second.websocket(HOST, "/watched").map(|_| ());
            assert!(
                refused.is_err_and(|error| error.to_string() == "403"),
                "round {round}"
            );
        }
        echo(&mut lasting, &declared.set).expect("what both admit lives on");
        probers.assert_content();
    }
    let tally = probers.tally.clone();
    probers.finish();
    for backend in &backends {
        let mixes = history.mixes(&backend.seen());
        assert!(mixes.is_empty(), "{:#?}", &mixes[..mixes.len().min(5)]);
        assert!(
            backend.requests() > 100,
            "it was used: {}",
            backend.requests()
        );
    }
    let count =
        |counter: &std::sync::atomic::AtomicU64| counter.load(std::sync::atomic::Ordering::SeqCst);
    assert!(count(&tally.reached) > 1000, "{tally:?}");
    assert!(count(&tally.refused) > 100, "{tally:?}");
}
