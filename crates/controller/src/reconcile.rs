//! The loop: wait for something to change, translate, plan, check, carry out, report.
//!
//! Events only say that something changed; every pass works on the newest whole snapshot. Between
//! two passes nothing is remembered but the copy of the edge, what the edge refused (R7), and the
//! last status.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use edge_state::command::Command;
use model::{
    declaration::Declaration,
    status::{RouteState, Status},
    time::{Span, Timestamp},
};
use plan::{Inputs, Plan, Rejections, Step};
use telemetry::metrics::ControllerMetrics;
use tokio::sync::watch;
use translation::{Input, digest::DigestKey};

use crate::{
    events::{Event, transitions},
    follow::Followed,
    ports::{Clock, EdgeControl, EdgeError, ObjectSource, Refused, Unavailable},
    records::records,
    retry::{Backoff, earlier},
    status::status,
};

/// Passes without a pause before the loop insists on one: a plan that never comes to rest is a
/// bug, and must not become a storm.
const PASSES_IN_A_ROW: u32 = 16;

/// What the operator chose.
#[derive(Clone, Debug)]
pub struct Options {
    /// This controller's name: what it makes at the edge carries it.
    pub name: String,
    /// How declarations are read.
    pub translation: translation::options::Options,
    /// How they are carried out.
    pub plan: plan::Options,
    /// The key of the digests (R9).
    pub digest_key: DigestKey,
    /// How often everything is compared afresh.
    pub resync: Span,
}

/// Where reports go.
pub trait StatusSink: Send + Sync {
    /// Told after each pass that changed the status, with what changed.
    fn report(&mut self, events: &[Event], status: &Arc<Status>);
}

/// The controller with everything it needs.
pub struct Controller<E, C, S> {
    /// The edge.
    pub edge: E,
    /// The clock.
    pub clock: C,
    /// The declarations.
    pub source: ObjectSource,
    /// The operator's choices.
    pub options: Options,
    /// Counters.
    pub metrics: ControllerMetrics,
    /// Where reports go.
    pub sink: S,
    /// True while the controller can do its work.
    pub ready: Arc<AtomicBool>,
    /// How an instant of the edge is written in statuses.
    pub format: fn(Timestamp) -> String,
}

/// Whatever watched the declarations has ended.
#[derive(Debug, thiserror::Error)]
#[error("the declarations are not watched any more")]
pub struct SourceEnded;

/// What a round of steps came to.
enum Outcome {
    /// All were acknowledged.
    Done,
    /// The state was not as believed, or a step was refused: plan again at once.
    Again,
    /// The way or the edge is at fault: wait, then read again.
    Wait(Option<Span>),
    /// The edge will not be read by us: wait until an input changes.
    Refused,
    /// The key is refused.
    Credentials,
    /// Somebody else writes.
    Superseded,
}

/// How long the loop rests.
enum Rest {
    /// Until then, or until something changes.
    Until(Option<Timestamp>),
    /// Until then, whatever changes: the edge asked for it (R7). An edge that says so would not
    /// hear of a closing either; what has a deadline it closes by itself.
    Asked(Timestamp),
}

/// What the loop remembers between passes.
struct Memory {
    term: Option<u64>,
    edge: Option<Followed>,
    rejections: Rejections,
    status: Arc<Status>,
    backoff: Backoff,
    reported: bool,
    last_fault: String,
    /// Whether the last steps could not be taken: what must close comes first then.
    failing: bool,
}

impl<E: EdgeControl, C: Clock, S: StatusSink> Controller<E, C, S> {
    /// Runs until `shutdown` turns true or its sender goes away.
    ///
    /// # Errors
    /// When nothing delivers declarations any more: going on would be going on blind.
    pub async fn run(mut self, mut shutdown: watch::Receiver<bool>) -> Result<(), SourceEnded> {
        let mut memory = Memory {
            term: None,
            edge: None,
            rejections: Rejections::default(),
            status: Arc::default(),
            backoff: Backoff::new(self.clock.now().0),
            reported: false,
            last_fault: String::new(),
            failing: false,
        };
        let mut resync_at = self.clock.now().after(self.options.resync);
        loop {
            let rest = tokio::select! {
                biased;
                _ = shutdown.wait_for(|stop| *stop) => return Ok(()),
                rest = self.passes(&mut memory) => rest,
            };
            let now = self.clock.now();
            let wake_at = match rest {
                Rest::Until(wake_at) => wake_at,
                Rest::Asked(until) => {
                    tokio::select! {
                        biased;
                        _ = shutdown.wait_for(|stop| *stop) => return Ok(()),
                        () = self.clock.sleep(until.since(now)) => continue,
                    }
                }
            };
            let known = memory.edge.as_ref().map(|edge| edge.state().revision);
            let pause = earlier(Some(resync_at), wake_at).map_or(Span::ZERO, |at| at.since(now));
            tokio::select! {
                biased;
                _ = shutdown.wait_for(|stop| *stop) => return Ok(()),
                changed = self.source.changed() => changed.map_err(|_| SourceEnded)?,
                () = self.edge.credentials_changed() => {}
                () = changed(&self.edge, known) => memory.edge = None,
                () = self.clock.sleep(pause) => {}
            }
            if self.clock.now() >= resync_at {
                resync_at = self.clock.now().after(self.options.resync);
                memory.rejections.clear();
                memory.edge = None;
            }
        }
    }

    /// Passes until nothing is left to do now; returns when to look again.
    async fn passes(&mut self, memory: &mut Memory) -> Rest {
        for _ in 0..PASSES_IN_A_ROW {
            match self.pass(memory).await {
                (Outcome::Done, wake_at) => {
                    memory.backoff.succeeded();
                    memory.last_fault.clear();
                    self.ready.store(true, Ordering::Release);
                    return Rest::Until(wake_at);
                }
                (Outcome::Again, _) => {}
                (Outcome::Wait(asked), wake_at) => {
                    self.ready.store(false, Ordering::Release);
                    let until = self.clock.now().after(memory.backoff.failed(asked));
                    return match asked {
                        Some(_) => Rest::Asked(until),
                        None => Rest::Until(earlier(wake_at, Some(until))),
                    };
                }
                (Outcome::Refused | Outcome::Credentials | Outcome::Superseded, _) => {
                    self.ready.store(false, Ordering::Release);
                    return Rest::Until(None);
                }
            }
        }
        tracing::error!("the edge does not come to rest; pausing before the next attempt");
        let wait = memory.backoff.failed(None);
        Rest::Until(Some(self.clock.now().after(wait)))
    }

    /// One pass: read what is not known, translate, plan, carry out, report.
    async fn pass(&mut self, memory: &mut Memory) -> (Outcome, Option<Timestamp>) {
        let followed = match self.follow(memory).await {
            Ok(followed) => followed,
            Err(error) => return (fault(memory, &error), None),
        };
        let snapshot = self.source.borrow_and_update().clone();
        let known = records(followed.state(), &self.options.name);
        let mut options = self.options.translation.clone();
        options.enforceable = Some(followed.capabilities.enforceable.clone());
        let declared = translation::translate(&Input {
            snapshot: &snapshot,
            records: &known,
            options: &options,
            key: &self.options.digest_key,
        });
        memory.rejections.forget_changed(&declared);
        let followed = if memory.failing {
            match self.close_first(memory, followed, &declared).await {
                (Outcome::Done, Some(followed)) => followed,
                (outcome, left) => {
                    memory.edge = left;
                    return (outcome, None);
                }
            }
        } else {
            followed
        };
        let rejections = &memory.rejections;
        let inputs = self.inputs(&followed, &declared, rejections, snapshot.only_close);
        let plan = plan::plan(&inputs);
        if let Err(violation) = plan::check(&inputs, &plan) {
            // A plan that would break the promise is a bug of ours. It is not carried out.
            tracing::error!(%violation, "a plan failed its check and is not carried out; please report this");
            let now = status(&declared, &plan.report, followed.state(), self.format);
            self.report(memory, now);
            return (Outcome::Wait(None), None);
        }
        let wake_at = plan.wake_at.map(|at| followed.here(at));
        let empty = plan.is_empty();
        if empty {
            memory.failing = false;
            let now = status(&declared, &plan.report, followed.state(), self.format);
            self.report(memory, now);
            memory.edge = Some(followed);
            return (Outcome::Done, wake_at);
        }
        let before = followed.state().clone();
        let (outcome, left) = self.carry_out(memory, followed, &plan).await;
        memory.edge = left;
        memory.failing = matches!(outcome, Outcome::Wait(_));
        // How things stand is reported by the pass that finds nothing left to do; when that must
        // wait, people must not wait with it.
        if !matches!(outcome, Outcome::Done | Outcome::Again) {
            let now = status(&declared, &plan.report, &before, self.format);
            self.report(memory, now);
        }
        let outcome = if matches!(outcome, Outcome::Done) {
            Outcome::Again
        } else {
            outcome
        };
        (outcome, wake_at)
    }

    fn inputs<'a>(
        &'a self,
        followed: &'a Followed,
        declared: &'a Declaration,
        rejections: &'a Rejections,
        only_close: bool,
    ) -> Inputs<'a> {
        Inputs {
            actual: followed.state(),
            declared,
            now: followed.now(self.clock.now()),
            options: &self.options.plan,
            capabilities: &followed.capabilities,
            rejections,
            controller: &self.options.name,
            only_close,
        }
    }

    /// An edge that cannot save can still close (R10), and what must close never waits for what
    /// cannot be opened (R5): after a pass that failed, the steps that close something and need
    /// no other come first, by themselves.
    async fn close_first(
        &self,
        memory: &mut Memory,
        followed: Followed,
        declared: &Declaration,
    ) -> (Outcome, Option<Followed>) {
        let inputs = self.inputs(&followed, declared, &memory.rejections, true);
        let mut plan = plan::plan(&inputs);
        if plan::check(&inputs, &plan).is_err() {
            return (Outcome::Done, Some(followed));
        }
        let term = memory.term.unwrap_or_default();
        plan.steps
            .retain(|step| step.requires.is_empty() && followed.would_close(&step.command, term));
        self.carry_out(memory, followed, &plan).await
    }

    /// The edge as it is believed to be, read where that is not known.
    async fn follow(&mut self, memory: &mut Memory) -> Result<Followed, EdgeError> {
        if let Some(followed) = memory.edge.take() {
            return Ok(followed);
        }
        self.metrics.edge_reads.inc();
        let capabilities = self.edge.capabilities().await.map_err(of_reading)?;
        self.metrics.edge_reads.inc();
        let reading = self.edge.read().await.map_err(of_reading)?;
        let seen = reading.state.term;
        let mut followed = Followed::new(reading, capabilities, self.clock.now());
        if memory.term.is_none() {
            // Without a lease the term is the edge's plus one (R19).
            let term = seen + 1;
            let command = Command::RaiseTerm { term };
            self.metrics.edge_writes.inc();
            let receipt = self.edge.apply(term, command.clone()).await?;
            followed = followed
                .repeat(&command, term, receipt, self.clock.now())
                .ok_or_else(|| EdgeError::Changed("while the term was raised".to_owned()))?;
            memory.term = Some(term);
        }
        Ok(followed)
    }

    /// Takes the steps whose requirements were acknowledged. Returns the copy of the edge if it
    /// is still believed.
    async fn carry_out(
        &self,
        memory: &mut Memory,
        followed: Followed,
        plan: &Plan,
    ) -> (Outcome, Option<Followed>) {
        let term = memory.term.unwrap_or_default();
        let mut done = vec![false; plan.steps.len()];
        let mut copy = Some(followed);
        let mut outcome = Outcome::Done;
        for (number, step) in plan.steps.iter().enumerate() {
            if !step
                .requires
                .iter()
                .all(|earlier| done.get(*earlier).copied().unwrap_or(false))
            {
                continue;
            }
            self.metrics.edge_writes.inc();
            match self.edge.apply(term, step.command.clone()).await {
                Ok(receipt) => {
                    done[number] = true;
                    let here = self.clock.now();
                    copy = copy.and_then(|copy| copy.repeat(&step.command, term, receipt, here));
                    if copy.is_none() {
                        return (Outcome::Again, None);
                    }
                }
                Err(EdgeError::Refused(refused)) => {
                    Self::remember(memory, step, &refused);
                    outcome = Outcome::Again;
                }
                Err(error) => return (fault(memory, &error), None),
            }
        }
        (outcome, copy)
    }

    fn remember(memory: &mut Memory, step: &Step, refused: &Refused) {
        memory
            .rejections
            .remember(step, refused.route.as_ref(), &refused.message);
        let concerns: Vec<_> = step
            .concerns
            .iter()
            .map(|(host, place)| format!("{host} {place}"))
            .collect();
        tracing::warn!(
            status = refused.status,
            code = %refused.code,
            message = %refused.message,
            routes = %concerns.join(", "),
            "the edge refused a step; it waits until the declaration changes"
        );
    }

    fn report(&mut self, memory: &mut Memory, now: Status) {
        if memory.reported && *memory.status == now {
            return;
        }
        let events = transitions(&memory.status, &now);
        let now = Arc::new(now);
        self.metrics.events.inc_by(events.len() as u64);
        self.metrics.status_writes.inc();
        self.metrics
            .set_routes(|state: RouteState| now.routes.iter().filter(|r| r.state == state).count());
        self.sink.report(&events, &now);
        memory.status = now;
        memory.reported = true;
    }
}

/// Returns when the edge is newer than what is known of it; never, where nothing is known.
async fn changed<E: EdgeControl>(edge: &E, known: Option<u64>) {
    match known {
        Some(revision) => edge.changed(revision).await,
        None => std::future::pending().await,
    }
}

/// Nothing that is read was believed to be in some state: an edge without it is another edge than
/// ours, and reading again at once would find the same.
fn of_reading(error: EdgeError) -> EdgeError {
    match error {
        EdgeError::Changed(message) => EdgeError::Refused(Refused {
            status: 404,
            code: "not-an-edge".to_owned(),
            message,
            route: None,
        }),
        EdgeError::Refused(_)
        | EdgeError::Unavailable(_)
        | EdgeError::Superseded(_)
        | EdgeError::Credentials(_) => error,
    }
}

/// Sorts a failure by its cure, and says it once.
fn fault(memory: &mut Memory, error: &EdgeError) -> Outcome {
    let (outcome, remedy) = match error {
        // Of a step this was remembered where it was taken: here it is about reading, or the term.
        EdgeError::Refused(_) => (
            Outcome::Refused,
            "see whether --edge names a Portcullis edge, and its log; it is asked again when an input changes, and at each resync",
        ),
        EdgeError::Unavailable(Unavailable { retry_after, .. }) => {
            (Outcome::Wait(*retry_after), "it is tried again by itself")
        }
        EdgeError::Changed(_) => (Outcome::Again, ""),
        EdgeError::Superseded(_) => (
            Outcome::Superseded,
            "stop one of the two; this one writes nothing until a resync",
        ),
        EdgeError::Credentials(_) => (
            Outcome::Credentials,
            "put the right key into the key file; it is read again by itself",
        ),
    };
    let text = error.to_string();
    if !matches!(outcome, Outcome::Again) && memory.last_fault != text {
        tracing::error!(%error, remedy, "the edge cannot be brought up to date");
        memory.last_fault = text;
    }
    outcome
}

/// The clock of the machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let millis = since.map_or(0, |span| span.as_millis());
        Timestamp(u64::try_from(millis).unwrap_or(u64::MAX))
    }

    async fn sleep(&self, span: Span) {
        tokio::time::sleep(Duration::from_millis(span.0)).await;
    }
}
