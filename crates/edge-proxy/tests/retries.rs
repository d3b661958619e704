//! A request is sent again only where that cannot do harm: nothing of its answer was seen, it may
//! be repeated, and it is judged anew.

mod common;

use std::{
    io::Write,
    net::{SocketAddr, TcpListener, TcpStream},
    num::NonZeroUsize,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    time::Duration,
};

use common::{Edge, host, prefix, read_head};
use testkit::{
    client::{exchange, read_answer},
    wait,
};

const OK: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

/// One worker, so that there is one pool.
fn edge_to(backend: SocketAddr) -> Edge {
    let edge = Edge::start_with(|options| options.workers = NonZeroUsize::new(1));
    let app = edge.backend("app", &[backend]);
    edge.declare(host("a.example").route(prefix("/").to(&app)));
    edge
}

/// A backend that answers the first request of its first connection, and then does what the
/// script says with the next one there. Other connections are served. Returns where it is and
/// how many requests it was sent.
fn failing_once(
    script: impl Fn(&mut TcpStream) + Send + 'static,
) -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("bound");
    let requests = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&requests);
    std::thread::spawn(move || {
        for (number, mut stream) in listener.incoming().map_while(Result::ok).enumerate() {
            for turn in 0.. {
                if read_head(&mut stream).is_empty() {
                    break;
                }
                counter.fetch_add(1, Ordering::SeqCst);
                if (number, turn) == (0, 1) {
                    script(&mut stream);
                    break;
                }
                if stream.write_all(OK).is_err() {
                    break;
                }
            }
        }
    });
    (address, requests)
}

/// What a second request gets, on a kept connection that fails it.
fn second(request: &str, script: impl Fn(&mut TcpStream) + Send + 'static) -> (u16, usize) {
    let (backend, requests) = failing_once(script);
    let edge = edge_to(backend);
    let mut connection = edge.client().open("a.example").expect("a connection");
    assert_eq!(
        exchange(&mut connection, "a.example", "GET", "/", &[])
            .expect("an answer")
            .status,
        200
    );
    connection.write_all(request.as_bytes()).expect("sent");
    let answer = read_answer(&mut connection, "GET").expect("an answer");
    (answer.status, requests.load(Ordering::SeqCst))
}

const GET: &str = "GET / HTTP/1.1\r\nhost: a.example\r\n\r\n";

#[test]
fn what_may_be_repeated_is_sent_once_more_when_a_kept_connection_ends() {
    assert_eq!(second(GET, |_| {}), (200, 3));
    let delete = GET.replace("GET", "DELETE");
    assert_eq!(second(&delete, |_| {}), (200, 3));
}

#[test]
fn what_may_not_be_repeated_is_not() {
    let post = GET.replace("GET", "POST");
    assert_eq!(second(&post, |_| {}), (502, 2));
    let put = "PUT / HTTP/1.1\r\nhost: a.example\r\ncontent-length: 2\r\n\r\nhi";
    assert_eq!(second(put, |_| {}), (502, 2), "a body that was sent");
}

#[test]
fn after_one_byte_of_an_answer_nothing_is_repeated() {
    for begun in [
        "H",
        "HTTP/1.1 200 OK\r\ncontent-le",
        "HTTP/1.1 100 Continue\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n",
    ] {
        let half = move |stream: &mut TcpStream| {
            stream.write_all(begun.as_bytes()).unwrap_or_default();
        };
        assert_eq!(second(GET, half), (502, 2), "{begun:?}");
    }
}

#[test]
fn a_new_connection_that_ends_is_an_answer() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let edge = edge_to(listener.local_addr().expect("bound"));
    let requests = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&requests);
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            read_head(&mut stream);
            counter.fetch_add(1, Ordering::SeqCst);
        }
    });
    let answer = edge.client().get("a.example", "/").expect("an answer");
    assert_eq!((answer.status, requests.load(Ordering::SeqCst)), (502, 1));
}

/// The backend ends connections at random moments after an answer, some at once, some late,
/// without a word about it: no client ever notices.
#[test]
fn a_backend_that_ends_idle_connections_at_random_costs_no_request() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let edge = edge_to(listener.local_addr().expect("bound"));
    std::thread::spawn(move || {
        // A generator that is good enough (xorshift), so that a run can be repeated.
        let mut chance = 0x2545_f491_4f6c_dd1d_u64;
        for mut stream in listener.incoming().map_while(Result::ok) {
            chance ^= chance << 13;
            chance ^= chance >> 7;
            chance ^= chance << 17;
            let (turns, idle) = (1 + chance % 5, Duration::from_micros((chance >> 8) % 3000));
            std::thread::spawn(move || {
                stream.set_nodelay(true).unwrap_or_default();
                for _ in 0..turns {
                    if read_head(&mut stream).is_empty() || stream.write_all(OK).is_err() {
                        return;
                    }
                }
                // Idle for so long, or until the next request is there.
                stream
                    .set_read_timeout(Some(idle.max(Duration::from_micros(1))))
                    .unwrap_or_default();
                stream.peek(&mut [0]).unwrap_or_default();
            });
        }
    });
    std::thread::scope(|scope| {
        for _ in 0..3 {
            let client = edge.client();
            scope.spawn(move || {
                let mut connection = client.open("a.example").expect("a connection");
                for number in 0..700_u64 {
                    let answer =
                        exchange(&mut connection, "a.example", "GET", "/", &[]).expect("an answer");
                    assert_eq!(answer.status, 200, "request {number}: {}", answer.text());
                    std::thread::park_timeout(Duration::from_micros(number * 7 % 2500));
                }
            });
        }
    });
    let metrics = edge.running.metrics();
    assert!(metrics.upstream_retries > 0, "it did happen: {metrics:?}");
}

/// The kept connection ends while the route moves elsewhere: what is begun again is begun by the
/// new table.
#[test]
fn what_is_begun_again_is_judged_by_the_table_in_force() {
    let (reached, told) = mpsc::sync_channel(1);
    let (moved, go) = mpsc::sync_channel::<()>(1);
    let (backend, requests) = failing_once(move |_| {
        reached.send(()).expect("the test waits");
        // Ends the connection when the route has changed.
        go.recv().expect("the test says so");
    });
    let edge = edge_to(backend);
    let other = testkit::backend::Backend::start("other");
    let client = edge.client();
    let asking = std::thread::spawn(move || {
        let mut connection = client.open("a.example").expect("a connection");
        let mut ask = || exchange(&mut connection, "a.example", "GET", "/", &[]);
        ask().expect("an answer");
        ask().expect("an answer")
    });
    told.recv().expect("the second request is at the backend");
    let elsewhere = edge.backend("other", &[other.address]);
    edge.declare(host("a.example").route(prefix("/").to(&elsewhere)));
    moved.send(()).expect("the backend waits");
    let answer = asking.join().expect("no panic");
    assert_eq!(
        (answer.status, &answer.json()["backend"]),
        (200, &"other".into())
    );
    assert_eq!(
        requests.load(Ordering::SeqCst),
        2,
        "not again to the old one"
    );
}

/// Endpoints that do not answer are left for those that the table names by then, with the body.
#[test]
fn a_request_that_was_not_sent_follows_its_route() {
    let edge = Edge::start_with(|options| options.timeouts.connect = Duration::from_secs(2));
    // Takes no connection: its queue is full.
    let full = full_listener();
    let app = edge.backend("app", &[full.0]);
    edge.declare(host("a.example").route(prefix("/").to(&app)));
    let other = testkit::backend::Backend::start("other");
    let client = edge.client();
    let asking = std::thread::spawn(move || {
        let mut connection = client.open("a.example").expect("a connection");
        write!(
            connection,
            "POST / HTTP/1.1\r\nhost: a.example\r\ncontent-length: 2\r\n\r\nhi"
        )
        .expect("sent");
        read_answer(&mut connection, "POST").expect("an answer")
    });
    wait::until("it is in flight", Duration::from_secs(5), || {
        match edge.running.metrics().requests_in_flight {
            1 => Ok(()),
            count => Err(count),
        }
    });
    edge.set_endpoints(&app, &[other.address]);
    let answer = asking.join().expect("no panic");
    assert_eq!((answer.status, &answer.json()["body"]), (200, &"hi".into()));
}

/// A listener whose queue of connections is full, and what fills it.
fn full_listener() -> (SocketAddr, socket2::Socket, Vec<TcpStream>) {
    let socket =
        socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).expect("a socket");
    socket
        .bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into())
        .expect("a port");
    socket.listen(0).expect("it listens");
    let address = socket
        .local_addr()
        .ok()
        .and_then(|address| address.as_socket())
        .expect("bound");
    let mut waiting = Vec::new();
    while let Ok(stream) = TcpStream::connect_timeout(&address, Duration::from_millis(200)) {
        waiting.push(stream);
        assert!(waiting.len() < 100, "the queue has an end");
    }
    (address, socket, waiting)
}
