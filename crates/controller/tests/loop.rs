//! The loop against an edge in memory that fails on demand: what is called, how often, and what
//! is reported. Time is paused, so a wait is a fact and not a delay.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use controller::{
    events::Event,
    ports::{Clock, EdgeControl, EdgeError, Reading, Receipt, Refused, Unavailable},
    reconcile::{Controller, Options, StatusSink},
};
use edge_state::{
    apply::Machine,
    capabilities::{Atomicity, Capabilities},
    command::{Command, Context, Limits},
    state::{EdgeState, Role},
};
use model::{
    module::ModuleKind,
    status::{RouteState, Status},
    time::{Span, Timestamp},
};
use resources::snapshot::Snapshot;
use telemetry::metrics::ControllerMetrics;
use tokio::sync::{Notify, watch};
use translation::digest::DigestKey;

const OPEN: &str = "\
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: web}
spec:
  ingressClassName: ngrok
  rules:
  - host: web.example.com
    http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}]}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {ports: [{port: 80}]}
";

/// What the edge does with the next write instead of applying it.
enum Fault {
    Refuse,
    LoseAnswer,
    LoseCall,
    Changed,
    Superseded,
    Credentials,
    /// Asked to come again after so many seconds.
    AskForPause(u64),
}

/// What the edge answers when it is next read.
#[derive(Clone, Copy)]
enum ReadFault {
    Refuse,
    NotThere,
}

#[derive(Clone, Default)]
struct Edge(Arc<Inside>);

#[derive(Default)]
struct Inside {
    machine: Mutex<Machine>,
    faults: Mutex<VecDeque<Fault>>,
    read_faults: Mutex<VecDeque<ReadFault>>,
    capabilities_fault: Mutex<Option<ReadFault>>,
    writes: AtomicU64,
    reads: AtomicU64,
    asked: AtomicU64,
    key_changed: Notify,
    written: Notify,
}

fn kinds() -> std::collections::BTreeSet<ModuleKind> {
    [
        ModuleKind::TlsTermination,
        ModuleKind::IpRestriction,
        ModuleKind::RequestHeaders,
        ModuleKind::ResponseHeaders,
    ]
    .into()
}

impl From<ReadFault> for EdgeError {
    fn from(fault: ReadFault) -> Self {
        match fault {
            ReadFault::Refuse => Refused {
                status: 400,
                code: "ERR_NGROK_218".into(),
                message: "no".into(),
                route: None,
            }
            .into(),
            ReadFault::NotThere => Self::Changed("404".into()),
        }
    }
}

fn unavailable(may_have_applied: bool) -> EdgeError {
    let message = "the connection was lost".to_owned();
    Unavailable {
        message,
        may_have_applied,
        retry_after: None,
    }
    .into()
}

impl Edge {
    fn writes(&self) -> u64 {
        self.0.writes.load(Ordering::SeqCst)
    }

    fn reads(&self) -> u64 {
        self.0.reads.load(Ordering::SeqCst)
    }

    fn asked(&self) -> u64 {
        self.0.asked.load(Ordering::SeqCst)
    }

    fn state(&self) -> EdgeState {
        let machine = self.0.machine.lock().expect("no test panics here");
        machine.state().clone()
    }

    fn fail(&self, fault: Fault) {
        self.0
            .faults
            .lock()
            .expect("no test panics here")
            .push_back(fault);
    }

    fn write(&self, term: u64, command: &Command) -> Result<Receipt, EdgeError> {
        let enforceable = kinds();
        let limits = Limits::default();
        let now = clock_now();
        let context = Context {
            now,
            role: Role::Controller,
            term: Some(term),
            enforceable: &enforceable,
            limits: &limits,
        };
        let mut machine = self.0.machine.lock().expect("no test panics here");
        machine.apply(command, &context).map_err(|refused| {
            EdgeError::Refused(Refused {
                status: 400,
                code: "test".into(),
                message: refused.to_string(),
                route: None,
            })
        })?;
        Ok(Receipt {
            revision: machine.state().revision,
            now,
        })
    }
}

impl EdgeControl for Edge {
    async fn capabilities(&self) -> Result<Capabilities, EdgeError> {
        self.0.asked.fetch_add(1, Ordering::SeqCst);
        let fault = *self
            .0
            .capabilities_fault
            .lock()
            .expect("no test panics here");
        fault.map_or(Ok(()), |fault| Err(EdgeError::from(fault)))?;
        Ok(Capabilities {
            version: "test".into(),
            atomicity: Atomicity::Replace,
            enforceable: kinds(),
        })
    }

    async fn read(&self) -> Result<Reading, EdgeError> {
        self.0.reads.fetch_add(1, Ordering::SeqCst);
        let fault = self
            .0
            .read_faults
            .lock()
            .expect("no test panics here")
            .pop_front();
        fault.map_or(Ok(()), |fault| Err(EdgeError::from(fault)))?;
        let state = self
            .0
            .machine
            .lock()
            .expect("no test panics here")
            .state()
            .clone();
        Ok(Reading {
            state,
            now: clock_now(),
        })
    }

    async fn apply(&self, term: u64, command: Command) -> Result<Receipt, EdgeError> {
        self.0.writes.fetch_add(1, Ordering::SeqCst);
        let fault = if matches!(command, Command::RaiseTerm { .. }) {
            None
        } else {
            self.0
                .faults
                .lock()
                .expect("no test panics here")
                .pop_front()
        };
        match fault {
            None => self.write(term, &command),
            Some(Fault::Refuse) => Err(EdgeError::Refused(Refused {
                status: 400,
                code: "ERR_NGROK_7028".into(),
                message: "no".into(),
                route: None,
            })),
            Some(Fault::LoseAnswer) => {
                self.write(term, &command)?;
                Err(unavailable(true))
            }
            Some(Fault::LoseCall) => Err(unavailable(true)),
            Some(Fault::Changed) => Err(EdgeError::Changed("generation 7, not 6".into())),
            Some(Fault::Superseded) => Err(EdgeError::Superseded("term 9".into())),
            Some(Fault::AskForPause(secs)) => Err(Unavailable {
                message: "429".into(),
                may_have_applied: false,
                retry_after: Some(Span::from_secs(secs)),
            }
            .into()),
            Some(Fault::Credentials) => Err(EdgeError::Credentials("ERR_NGROK_203".into())),
        }
    }

    async fn credentials_changed(&self) {
        self.0.key_changed.notified().await;
    }

    async fn changed(&self, revision: u64) {
        while self.state().revision <= revision {
            self.0.written.notified().await;
        }
    }
}

/// Paused time as a clock: it starts at some instant and moves only when everything waits.
#[derive(Clone, Copy)]
struct Paused;

fn clock_now() -> Timestamp {
    thread_local! {
        static BEGUN: tokio::time::Instant = tokio::time::Instant::now();
    }
    let elapsed = BEGUN.with(|begun| tokio::time::Instant::now().duration_since(*begun));
    Timestamp(1_000_000 + u64::try_from(elapsed.as_millis()).expect("a test is short"))
}

impl Clock for Paused {
    fn now(&self) -> Timestamp {
        clock_now()
    }

    async fn sleep(&self, span: Span) {
        tokio::time::sleep(std::time::Duration::from_millis(span.0)).await;
    }
}

struct Told(watch::Sender<Arc<Status>>, Arc<Mutex<Vec<Event>>>);

impl StatusSink for Told {
    fn report(&mut self, events: &[Event], status: &Arc<Status>) {
        self.1
            .lock()
            .expect("no test panics here")
            .extend_from_slice(events);
        self.0.send_replace(status.clone());
    }
}

struct Bench {
    edge: Edge,
    source: watch::Sender<Arc<Snapshot>>,
    status: watch::Receiver<Arc<Status>>,
    events: Arc<Mutex<Vec<Event>>>,
    ready: Arc<AtomicBool>,
    _shutdown: watch::Sender<bool>,
}

fn snapshot(text: &str) -> Arc<Snapshot> {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("manifest.yaml");
    std::fs::write(&file, text).expect("it is written");
    let limits = manifests::yaml::Limits::default();
    let roots = manifests::files::Roots::open(&[file], limits.file_bytes).expect("it is there");
    Arc::new(manifests::read(&roots, limits))
}

impl Bench {
    fn start(text: &str) -> Self {
        Self::start_with(Edge::default(), text)
    }

    fn start_with(edge: Edge, text: &str) -> Self {
        let (source, receiver) = watch::channel(snapshot(text));
        let (told, status) = watch::channel(Arc::default());
        let (shutdown, stop) = watch::channel(false);
        let events: Arc<Mutex<Vec<Event>>> = Arc::default();
        let ready = Arc::new(AtomicBool::new(false));
        let controller = Controller {
            edge: edge.clone(),
            clock: Paused,
            source: receiver,
            options: Options {
                name: "portcullis".into(),
                translation: translation::options::Options::default(),
                plan: plan::Options::default(),
                digest_key: DigestKey::new(b"test".to_vec()),
                resync: Span::from_secs(600),
            },
            metrics: ControllerMetrics::default(),
            sink: Told(told, events.clone()),
            ready: ready.clone(),
            format: |at| at.0.to_string(),
        };
        tokio::spawn(controller.run(stop));
        Self {
            edge,
            source,
            status,
            events,
            ready,
            _shutdown: shutdown,
        }
    }

    /// Waits until the only route is in this state. Paused time makes the limit instant.
    async fn wait(&mut self, state: RouteState) -> Arc<Status> {
        let content = |status: &Arc<Status>| {
            status.routes.iter().all(|r| r.state == state) && !status.routes.is_empty()
        };
        let limit = std::time::Duration::from_secs(300);
        tokio::time::timeout(limit, self.status.wait_for(content))
            .await
            .expect("the state comes about in time")
            .expect("the controller runs")
            .clone()
    }

    /// Lets everything that is due happen within a span of paused time.
    async fn pass_time(&self, secs: u64) {
        tokio::time::sleep(std::time::Duration::from_secs(secs)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_declared_route_opens_and_then_nothing_is_written() {
    let mut bench = Bench::start(OPEN);
    let status = bench.wait(RouteState::Open).await;
    assert_eq!(status.routes[0].serving.map(|g| g.generation), Some(1));
    assert!(bench.ready.load(Ordering::SeqCst));
    let (writes, reads) = (bench.edge.writes(), bench.edge.reads());
    let told = bench.events.lock().expect("no test panics here").len();
    bench.pass_time(500).await;
    assert_eq!((bench.edge.writes(), bench.edge.reads()), (writes, reads));
    assert_eq!(
        bench.events.lock().expect("no test panics here").len(),
        told
    );
    // A resync reads, and still writes nothing (R9).
    bench.pass_time(200).await;
    assert_eq!(
        (bench.edge.writes(), bench.edge.reads()),
        (writes, reads + 1)
    );
    // The same content again is no change.
    bench.source.send_replace(snapshot(OPEN));
    bench.pass_time(1).await;
    assert_eq!(bench.edge.writes(), writes);
}

#[tokio::test(start_paused = true)]
async fn what_the_edge_refuses_is_asked_once_until_the_declaration_changes() {
    let edge = Edge::default();
    for _ in 0..8 {
        edge.fail(Fault::Refuse);
    }
    let mut bench = Bench::start_with(edge, OPEN);
    bench.pass_time(1).await;
    let writes = bench.edge.writes();
    bench.pass_time(300).await;
    assert_eq!(
        bench.edge.writes(),
        writes,
        "it is not tried again on a timer"
    );
    bench
        .edge
        .0
        .faults
        .lock()
        .expect("no test panics here")
        .clear();
    bench
        .source
        .send_replace(snapshot(&OPEN.replace("path: /,", "path: /b,")));
    bench.wait_open_somewhere().await;
}

impl Bench {
    async fn wait_open_somewhere(&mut self) {
        let content =
            |status: &Arc<Status>| status.routes.iter().any(|r| r.state == RouteState::Open);
        let limit = std::time::Duration::from_secs(300);
        tokio::time::timeout(limit, self.status.wait_for(content))
            .await
            .expect("something opens in time")
            .expect("the controller runs");
    }
}

#[tokio::test(start_paused = true)]
async fn an_edge_that_refuses_to_be_read_is_asked_once_until_an_input_changes() {
    for fault in [ReadFault::Refuse, ReadFault::NotThere] {
        let edge = Edge::default();
        edge.0
            .read_faults
            .lock()
            .expect("no test panics here")
            .push_back(fault);
        let mut bench = Bench::start_with(edge, OPEN);
        bench.pass_time(500).await;
        let counts = (bench.edge.asked(), bench.edge.reads(), bench.edge.writes());
        assert_eq!(counts, (1, 1, 0), "a 4xx is not retried on a timer (R7)");
        assert!(!bench.ready.load(Ordering::SeqCst));
        bench.source.send_replace(snapshot(OPEN));
        bench.wait(RouteState::Open).await;
        assert_eq!((bench.edge.asked(), bench.edge.reads()), (2, 2));
        assert!(bench.ready.load(Ordering::SeqCst));
    }
}

#[tokio::test(start_paused = true)]
async fn an_edge_that_refuses_to_say_what_it_can_do_is_asked_again_at_a_resync() {
    let edge = Edge::default();
    let set = |edge: &Edge, fault| {
        *edge
            .0
            .capabilities_fault
            .lock()
            .expect("no test panics here") = fault;
    };
    set(&edge, Some(ReadFault::Refuse));
    let mut bench = Bench::start_with(edge, OPEN);
    bench.pass_time(599).await;
    assert_eq!((bench.edge.asked(), bench.edge.reads()), (1, 0));
    set(&bench.edge, None);
    bench.pass_time(2).await;
    bench.wait(RouteState::Open).await;
    assert_eq!((bench.edge.asked(), bench.edge.reads()), (2, 1));
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_the_edge_asked_for_lasts_whatever_changes() {
    let edge = Edge::default();
    edge.fail(Fault::AskForPause(120));
    let mut bench = Bench::start_with(edge, OPEN);
    bench.pass_time(10).await;
    let calls = |edge: &Edge| (edge.asked(), edge.reads(), edge.writes());
    let before = calls(&bench.edge);
    // A new declaration, and even a withdrawal, must wait: the edge said so.
    for text in [&OPEN.replace("path: /,", "path: /b,"), ""] {
        bench.source.send_replace(snapshot(text));
        bench.pass_time(50).await;
        assert_eq!(
            calls(&bench.edge),
            before,
            "a call before Retry-After was over"
        );
    }
    bench.source.send_replace(snapshot(OPEN));
    bench.pass_time(11).await;
    bench.wait(RouteState::Open).await;
}

#[tokio::test(start_paused = true)]
async fn lost_calls_and_lost_answers_are_tried_again_after_reading() {
    for fault in [|| Fault::LoseAnswer, || Fault::LoseCall] {
        let edge = Edge::default();
        for _ in 0..3 {
            edge.fail(fault());
        }
        let mut bench = Bench::start_with(edge, OPEN);
        bench.wait(RouteState::Open).await;
        assert!(
            bench.edge.reads() >= 4,
            "read again after each doubt: {}",
            bench.edge.reads()
        );
        let state = bench
            .edge
            .0
            .machine
            .lock()
            .expect("no test panics here")
            .state()
            .clone();
        assert_eq!(
            (state.edges.len(), state.backends.len(), state.domains.len()),
            (1, 1, 1)
        );
    }
}

#[tokio::test(start_paused = true)]
async fn when_somebody_else_wrote_everything_is_read_and_planned_again() {
    let edge = Edge::default();
    edge.fail(Fault::Changed);
    let mut bench = Bench::start_with(edge, OPEN);
    bench.wait(RouteState::Open).await;
    assert_eq!(bench.edge.reads(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_superseded_controller_writes_no_more() {
    let edge = Edge::default();
    for _ in 0..8 {
        edge.fail(Fault::Superseded);
    }
    let bench = Bench::start_with(edge, OPEN);
    bench.pass_time(400).await;
    assert!(!bench.ready.load(Ordering::SeqCst));
    // The term, and the one write that was refused.
    assert_eq!(bench.edge.writes(), 2);
}

#[tokio::test(start_paused = true)]
async fn refused_credentials_make_it_unready_until_the_key_changes() {
    let edge = Edge::default();
    edge.fail(Fault::Credentials);
    let mut bench = Bench::start_with(edge, OPEN);
    bench.pass_time(300).await;
    assert!(!bench.ready.load(Ordering::SeqCst));
    assert_eq!(bench.edge.writes(), 2);
    bench.edge.0.key_changed.notify_one();
    bench.wait(RouteState::Open).await;
    assert!(bench.ready.load(Ordering::SeqCst));
}

#[tokio::test(start_paused = true)]
async fn what_others_do_at_the_edge_is_noticed_at_once() {
    let mut bench = Bench::start(OPEN);
    bench.wait(RouteState::Open).await;
    let routes = bench
        .edge
        .state()
        .edges
        .values()
        .flat_map(|edge| edge.routes.keys().cloned())
        .collect();
    bench
        .edge
        .write(1, &Command::CloseRoutes { routes })
        .expect("it is applied");
    let open = |state: &EdgeState| {
        let mut routes = state.edges.values().flat_map(|edge| edge.routes.values());
        routes.all(|route| route.open_backend().is_some())
    };
    assert!(!open(&bench.edge.state()));
    bench.edge.0.written.notify_one();
    bench.pass_time(1).await;
    assert!(open(&bench.edge.state()), "it did not wait for a resync");
}
