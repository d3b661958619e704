//! A worker: one thread, one runtime, its own listeners and its own connections to backends.
//! Nothing that a request needs is shared with another worker but the table.

use std::{cell::Cell, io, net::TcpListener as StdListener, rc::Rc, sync::Arc, time::Duration};

use edge_store::Store;
use http::HeaderValue;
use tokio::{
    net::TcpListener,
    sync::{Notify, watch},
    task::{JoinSet, spawn_local},
    time,
};

use crate::{
    access_log::Logger,
    authority::Authority,
    codec::control::Control,
    connection,
    flight::{Cut, Flight},
    listen::{back_off, tune},
    metrics::WorkerMetrics,
    options::{Defences, Limits, Timeouts},
    tls::Tls,
    upstream::{dial::Policy, pool::Pool, resolve::Names},
    watch::{Clock, Register},
};

/// How often what takes too long is looked for.
const TICK: Duration = Duration::from_millis(100);
/// Ticks between two looks for what is not used any more.
const SWEEP_TICKS: u32 = 20;

/// What the plain port is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PlainPort {
    /// Sends clients to HTTPS.
    Redirects,
    /// Serves requests like the HTTPS port; for benchmarks alone.
    Serves,
}

/// What all workers know.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) timeouts: Timeouts,
    pub(crate) limits: Limits,
    pub(crate) defences: Defences,
    pub(crate) fault: Option<fn(&str)>,
    pub(crate) revoke_grace: Duration,
    pub(crate) drain_timeout: Duration,
    pub(crate) public_port: u16,
    pub(crate) placeholder: Option<String>,
    pub(crate) authority: Arc<Authority>,
    pub(crate) plain_port: PlainPort,
    pub(crate) policy: Policy,
}

/// A worker.
pub(crate) struct Worker {
    pub(crate) shared: Arc<Shared>,
    pub(crate) store: Store,
    pub(crate) metrics: Arc<WorkerMetrics>,
    pub(crate) logger: Logger,
    pub(crate) clock: Rc<Clock>,
    pub(crate) pool: Rc<Pool>,
    pub(crate) names: Names,
    pub(crate) tls: Tls,
    pub(crate) connections: Rc<Register<Control>>,
    pub(crate) flights: Rc<Register<Flight>>,
    pub(crate) handshakes: Cell<usize>,
    pub(crate) draining: Cell<bool>,
    /// Tells the listeners to end.
    stop: Notify,
    request_prefix: u64,
    requests: Cell<u64>,
}

/// What a worker is started with, on whichever thread.
pub(crate) struct Start {
    pub(crate) shared: Arc<Shared>,
    pub(crate) store: Store,
    pub(crate) metrics: Arc<WorkerMetrics>,
    pub(crate) logger: Logger,
    pub(crate) https: StdListener,
    pub(crate) http: StdListener,
    pub(crate) seed: u64,
    /// Becomes true when the process ends.
    pub(crate) stop: watch::Receiver<bool>,
}

impl Start {
    /// Runs a worker until it is told to stop and has drained.
    pub(crate) async fn run(self) -> io::Result<()> {
        let Self {
            shared,
            store,
            metrics,
            logger,
            https,
            http,
            seed,
            mut stop,
        } = self;
        let (https, http) = (TcpListener::from_std(https)?, TcpListener::from_std(http)?);
        let clock = Rc::new(Clock::new());
        let tls = Tls::new(Arc::clone(&shared.authority)).map_err(io::Error::other)?;
        let pool = Pool::new(
            shared.policy.clone(),
            shared.timeouts,
            shared.limits,
            Rc::clone(&clock),
            Arc::clone(&metrics),
            seed,
        );
        let worker = Rc::new(Worker {
            shared,
            store,
            metrics,
            logger,
            clock,
            pool,
            names: Names::default(),
            tls,
            connections: Rc::default(),
            flights: Rc::default(),
            handshakes: Cell::new(0),
            draining: Cell::new(false),
            stop: Notify::new(),
            request_prefix: seed,
            requests: Cell::new(0),
        });
        let mut chores = JoinSet::new();
        chores.spawn_local(tick(Rc::clone(&worker)));
        chores.spawn_local(revoke(Rc::clone(&worker)));
        chores.spawn_local(accept(Rc::clone(&worker), https, true));
        chores.spawn_local(accept(Rc::clone(&worker), http, false));
        let failed = tokio::select! {
            // The sender is gone only when the process is ending without ceremony.
            _ = stop.wait_for(|stop| *stop) => false,
            // None of them ends by itself: without time-outs or revocation nothing may go on (R11).
            _ = chores.join_next() => true,
        };
        if failed {
            worker.cut_all();
            chores.abort_all();
            return Err(io::Error::other("a part of the worker ended by a panic"));
        }
        worker.drain(chores).await;
        Ok(())
    }
}

impl Worker {
    /// A request's name in logs, on pages and at the backend.
    pub(crate) fn request_id(&self) -> RequestId {
        let number = self.requests.get();
        self.requests.set(number.wrapping_add(1));
        RequestId {
            prefix: self.request_prefix,
            number,
        }
    }

    /// Takes nothing more, lets what is in progress end, then ends it.
    async fn drain(&self, mut chores: JoinSet<()>) {
        self.draining.set(true);
        self.stop.notify_waiters();
        self.connections.each(Control::close);
        let deadline = time::Instant::now() + self.shared.drain_timeout;
        while self.is_busy() && time::Instant::now() < deadline {
            time::sleep(TICK).await;
        }
        self.cut_all();
        // One round for the tasks to notice.
        time::sleep(TICK).await;
        chores.abort_all();
    }

    fn cut_all(&self) {
        self.flights.each(|flight| flight.cut(Cut::Drained));
        self.connections.each(Control::cut);
    }

    fn is_busy(&self) -> bool {
        self.connections.len() + self.flights.len() + self.handshakes.get() > 0
    }
}

/// What identifies a request: 16 hexadecimal digits of the worker, and its number there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestId {
    prefix: u64,
    number: u64,
}

impl RequestId {
    /// The id as a header says it. Written by hand: every request has one.
    pub(crate) fn header(self) -> HeaderValue {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let mut text = [0; 33];
        let mut at = text.len();
        let mut number = self.number;
        loop {
            at -= 1;
            text[at] = DIGITS[(number & 15) as usize];
            number >>= 4;
            if number == 0 {
                break;
            }
        }
        at -= 1;
        text[at] = b'-';
        for shift in 0..16 {
            at -= 1;
            text[at] = DIGITS[(self.prefix >> (4 * shift) & 15) as usize];
        }
        HeaderValue::from_bytes(&text[at..]).unwrap_or(HeaderValue::from_static("unknown"))
    }
}

impl std::fmt::Display for RequestId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:016x}-{:x}", self.prefix, self.number)
    }
}

async fn accept(worker: Rc<Worker>, listener: TcpListener, is_tls: bool) {
    let mut failing = false;
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = worker.stop.notified() => {
                drop(listener);
                return std::future::pending().await;
            }
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                if let Some(pause) = back_off(&error) {
                    if !std::mem::replace(&mut failing, true) {
                        tracing::error!(
                            error = &error as &dyn std::error::Error,
                            "connections cannot be accepted"
                        );
                    }
                    time::sleep(pause).await;
                }
                continue;
            }
        };
        failing = false;
        worker.clock.refresh();
        let limits = worker.shared.limits;
        let too_many = worker.connections.len() >= limits.connections
            || (is_tls && worker.handshakes.get() >= limits.handshakes);
        if too_many {
            worker.metrics.connections_rejected.add(1);
            continue;
        }
        worker.metrics.connections_accepted.add(1);
        tune(&stream);
        let worker = Rc::clone(&worker);
        match (is_tls, worker.shared.plain_port) {
            (true, _) => spawn_local(connection::https(worker, stream, peer)),
            (false, PlainPort::Redirects) => spawn_local(connection::http(worker, stream, peer)),
            (false, PlainPort::Serves) => spawn_local(connection::in_clear(worker, stream, peer)),
        };
    }
}

/// Keeps the clock, and ends what takes too long.
async fn tick(worker: Rc<Worker>) {
    let mut ticks = time::interval(TICK);
    ticks.set_missed_tick_behavior(time::MissedTickBehavior::Delay);
    let shared = Arc::clone(&worker.shared);
    let mut sweep_in = SWEEP_TICKS;
    loop {
        ticks.tick().await;
        worker.clock.refresh();
        worker
            .connections
            .each(|connection| connection.check(&shared.timeouts));
        worker
            .flights
            .each(|flight| flight.check(&shared.timeouts, grace(shared.revoke_grace)));
        let gauge = |count: usize| count as u64;
        worker
            .metrics
            .connections_open
            .set(gauge(worker.connections.len()));
        worker
            .metrics
            .requests_in_flight
            .set(gauge(worker.flights.len()));
        worker.metrics.upstream_idle.set(gauge(worker.pool.idle()));
        sweep_in -= 1;
        if sweep_in == 0 {
            sweep_in = SWEEP_TICKS;
            worker.pool.sweep();
            worker.tls.sweep();
        }
    }
}

/// Judges what is in flight again whenever a table is published (R12).
async fn revoke(worker: Rc<Worker>) {
    let mut revisions = worker.store.subscribe();
    let (shared, grace) = (
        Arc::clone(&worker.shared),
        grace(worker.shared.revoke_grace),
    );
    loop {
        let more = revisions.changed().await.is_ok();
        let published = worker.store.current();
        worker
            .flights
            .each(|flight| flight.judge_again(&published.table, &shared.defences, grace));
        if !more {
            // The store has ended, or there is none: what it published last stays in force.
            return std::future::pending().await;
        }
    }
}

/// The grace less what it may take to see that it is over (a tick), to find that the client does
/// not hear (`flight`), and to end its connection (another tick): a promise of 5 s is kept within
/// 5 s, as the flag's help says.
fn grace(promised: Duration) -> Duration {
    promised.saturating_sub(TICK * 5)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_has_one_name_in_headers_and_in_logs() {
        for (prefix, number) in [(0, 0), (1, 15), (u64::MAX, u64::MAX), (0xabc << 40, 0x10)] {
            let id = RequestId { prefix, number };
            assert_eq!(id.header(), id.to_string());
        }
    }
}
