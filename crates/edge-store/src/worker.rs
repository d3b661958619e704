//! The thread that owns the state: one command after the other, saved before published.
//!
//! When a save fails it is not known what is on the disk. Then, until the database has been opened
//! and read again, nothing is changed but by closing: routes that the failed change closes are
//! closed and noted in the journal, everything else stays as it was published last.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use arc_swap::ArcSwap;
use edge_state::{
    apply::{Machine, RefusedCommand},
    closing::closings,
    command::{Command, Context, Limits},
    compile::compile,
    state::EdgeState,
};
use model::{id::RouteId, module::ModuleKind, time::Timestamp};
use redb::Database;
use tokio::{
    sync::{mpsc, oneshot, watch},
    time::Instant,
};

use crate::{
    database::{self, DatabaseError},
    disk::Disk,
    journal::{self, Closings, Entry},
    published::Published,
    store::{Applied, ApplyError, Clock, OpenError, Options, Writer},
};

/// Commands that are saved together, if they are waiting anyway.
const BATCH: usize = 64;
/// How often the clock is looked at while a deadline is ahead: it may be set, or have slept.
const GLANCE: Duration = Duration::from_secs(1);
/// How long to wait between attempts to save after a failure.
const RETRY: Duration = Duration::from_secs(1);

type Reply = oneshot::Sender<Result<Applied, ApplyError>>;

pub(crate) enum Message {
    Apply {
        command: Box<Command>,
        writer: Writer,
        reply: Reply,
    },
    Stop(oneshot::Sender<()>),
}

/// A database and what is in it.
struct Saved {
    database: Database,
    state: Arc<EdgeState>,
}

/// Without the thread nothing would close at its deadline any more, so then everything does (R11).
struct RefuseOnPanic(Arc<ArcSwap<Published>>);

impl Drop for RefuseOnPanic {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.store(Arc::new(Published::refusing()));
        }
    }
}

pub(crate) struct Worker<D> {
    /// The first to be dropped, so that whoever sees the others go sees its work.
    _refuse_on_panic: RefuseOnPanic,
    disk: D,
    /// Absent after a failure, until it has been opened and read again.
    saved: Option<Saved>,
    retry_at: Instant,
    machine: Machine,
    published: Arc<ArcSwap<Published>>,
    revisions: watch::Sender<u64>,
    /// Whether the state can be saved.
    saving: watch::Sender<bool>,
    journal: Entry,
    enforceable: BTreeSet<ModuleKind>,
    limits: Limits,
    clock: Clock,
}

/// What every handle reads.
#[derive(Clone)]
pub(crate) struct Shared {
    pub(crate) published: Arc<ArcSwap<Published>>,
    pub(crate) revisions: watch::Receiver<u64>,
    pub(crate) saving: watch::Receiver<bool>,
}

impl<D: Disk> Worker<D> {
    pub(crate) fn open(mut disk: D, options: &Options) -> Result<(Self, Shared), OpenError> {
        let Options {
            data_dir,
            demo: _,
            enforceable,
            limits,
            clock,
        } = options;
        let unreadable = |reason| OpenError::Unreadable {
            data_dir: data_dir.clone(),
            reason,
        };
        let failed = |reason| OpenError::Disk {
            data_dir: data_dir.clone(),
            reason,
        };
        let bytes = disk
            .read_journal()
            .map_err(|error| failed(error.to_string()))?;
        let journal = journal::read(&bytes)
            .ok_or_else(|| unreadable("the journal of closings is damaged".to_owned()))?;
        let (database, state) = database::open(&mut disk).map_err(|error| match error {
            DatabaseError::Unreadable(reason) => unreadable(reason),
            DatabaseError::Disk(reason) => failed(reason),
        })?;
        let table = compile(&state, enforceable, None);
        let published = Published::new(state.clone(), table, None);
        let (revisions, new_revisions) = watch::channel(published.revision);
        let (saving, is_saving) = watch::channel(true);
        let saved = Saved {
            database,
            state: Arc::clone(&published.state),
        };
        let published = Arc::new(ArcSwap::from_pointee(published));
        let mut worker = Self {
            _refuse_on_panic: RefuseOnPanic(Arc::clone(&published)),
            disk,
            saved: Some(saved),
            retry_at: Instant::now(),
            machine: Machine::new(state),
            published: Arc::clone(&published),
            revisions,
            saving,
            journal,
            enforceable: enforceable.clone(),
            limits: limits.clone(),
            clock: Arc::clone(clock),
        };
        worker.close_at_start();
        let shared = Shared {
            published,
            revisions: new_revisions,
            saving: is_saving,
        };
        Ok((worker, shared))
    }

    /// Before anything is served: closes what the journal names and what is overdue (R10, R19).
    fn close_at_start(&mut self) {
        let revision = self.machine.state().revision;
        if self.journal.revision > revision {
            let routes = match &self.journal.closings {
                Closings::These(routes) => routes.clone(),
                Closings::Every => every_route(self.machine.state()),
            };
            self.change(&Command::CloseRoutes { routes });
        }
        self.change(&Command::CloseOverdue);
        if self.saved.is_some() {
            self.clear_journal();
        }
    }

    pub(crate) async fn run(mut self, mut queue: mpsc::Receiver<Message>) {
        loop {
            let message = match self.pause() {
                None => queue.recv().await,
                Some(pause) => match tokio::time::timeout(pause, queue.recv()).await {
                    Ok(message) => message,
                    Err(_) => {
                        self.tend();
                        continue;
                    }
                },
            };
            let mut stop = None;
            let mut batch = Vec::new();
            let mut next = message;
            let ended = next.is_none();
            while let Some(message) = next {
                match message {
                    Message::Apply {
                        command,
                        writer,
                        reply,
                    } => batch.push((command, writer, reply)),
                    Message::Stop(reply) => stop = Some(reply),
                }
                let more = batch.len() < BATCH && stop.is_none();
                next = more.then(|| queue.try_recv().ok()).flatten();
            }
            self.apply(batch);
            self.tend();
            if let Some(reply) = stop {
                drop(self);
                // Nobody waits any more: then nobody needs to know.
                reply.send(()).unwrap_or_default();
                return;
            }
            if ended {
                return;
            }
        }
    }

    /// How long nothing is to be done by itself.
    fn pause(&self) -> Option<Duration> {
        let retry = self
            .saved
            .is_none()
            .then(|| self.retry_at.saturating_duration_since(Instant::now()));
        let deadline = self.machine.next_deadline().map(|deadline| {
            let left = deadline.since((self.clock)());
            Duration::from_millis(left.0).min(GLANCE)
        });
        retry.into_iter().chain(deadline).min()
    }

    /// Does what is due by itself: saving after a failure, closing what is overdue.
    fn tend(&mut self) {
        if self.saved.is_none() && Instant::now() >= self.retry_at {
            self.recover();
        }
        let now = (self.clock)();
        if self
            .machine
            .next_deadline()
            .is_some_and(|deadline| deadline <= now)
        {
            self.change(&Command::CloseOverdue);
        }
    }

    /// Applies a command of the edge's own.
    fn change(&mut self, command: &Command) {
        let now = (self.clock)();
        match self.step(command, &Writer::EDGE, now) {
            Ok(false) => {}
            Ok(true) => {
                // What cannot be saved is published closed all the same, and logged there.
                if self.save().is_ok() {
                    self.publish();
                }
            }
            Err(refusal) => tracing::error!(%refusal, "the edge's own command was refused"),
        }
    }

    fn step(
        &mut self,
        command: &Command,
        writer: &Writer,
        now: Timestamp,
    ) -> Result<bool, RefusedCommand> {
        let Writer { role, term } = *writer;
        let context = Context {
            now,
            role,
            term,
            enforceable: &self.enforceable,
            limits: &self.limits,
        };
        self.machine.apply(command, &context)
    }

    fn apply(&mut self, batch: Vec<(Box<Command>, Writer, Reply)>) {
        let mut results = Vec::with_capacity(batch.len());
        let mut any_changed = false;
        for (command, writer, reply) in batch {
            let now = (self.clock)();
            let result = self.step(&command, &writer, now);
            any_changed |= matches!(result, Ok(true));
            results.push((result, self.machine.state().revision, now, reply));
        }
        let saved = if any_changed { self.save() } else { Ok(()) };
        if any_changed && saved.is_ok() {
            self.publish();
        }
        let published = self.published.load_full();
        for (result, revision, now, reply) in results {
            let answer = match (&saved, result) {
                (Ok(()), Ok(changed)) => Ok(Applied {
                    revision,
                    changed,
                    now,
                    published: Arc::clone(&published),
                }),
                (Ok(()), Err(refusal)) => Err(ApplyError::Refused(refusal)),
                // Whatever it was judged by has not come about, refusals included.
                (Err(message), _) => Err(ApplyError::Unavailable {
                    message: message.clone(),
                    may_have_applied: true,
                }),
            };
            // A caller that has gone does not undo its command.
            reply.send(answer).unwrap_or_default();
        }
    }

    fn publish(&mut self) {
        let before = self.published.load_full();
        let state = self.machine.state().clone();
        let table = compile(
            &state,
            &self.enforceable,
            Some((&before.state, &before.table)),
        );
        let published = Published::new(state, table, Some(&before));
        if let Some(saved) = &mut self.saved {
            saved.state = Arc::clone(&published.state);
        }
        let revision = published.revision;
        self.published.store(Arc::new(published));
        self.revisions.send_replace(revision);
    }

    /// Saves the machine's state. On failure the machine goes back to what is published, but for
    /// what closes; that is published and noted at once.
    fn save(&mut self) -> Result<(), String> {
        let result = match &self.saved {
            Some(saved) => database::save(&saved.database, &saved.state, self.machine.state()),
            None => Err(DatabaseError::Disk("the disk has failed before".to_owned())),
        };
        let Err(error) = result else {
            return Ok(());
        };
        let is_first = self.saved.take().is_some();
        if is_first {
            self.retry_at = Instant::now() + RETRY;
            self.saving.send_replace(false);
        }
        let closed = self.only_close();
        if is_first || closed > 0 {
            tracing::error!(
                %error, routes.closed = closed,
                "the state cannot be saved: until it can, nothing opens or changes, and what must close closes; \
                 free space on the disk, or mend it"
            );
        }
        Err(format!("the edge cannot save its state: {error}"))
    }

    /// Instead of a change that could not be saved: the part of it that closes. Revisions of the
    /// attempt are not used again, since it may be on the disk all the same.
    fn only_close(&mut self) -> usize {
        let before = self.published.load_full();
        let routes = closings(&before.state, self.machine.state());
        let mut state = (*before.state).clone();
        state.revision = self.machine.state().revision;
        self.machine = Machine::new(state);
        let count = routes.len();
        let close = Command::CloseRoutes {
            routes: routes.clone(),
        };
        if let Err(refusal) = self.step(&close, &Writer::EDGE, (self.clock)()) {
            tracing::error!(%refusal, "the edge's own command was refused");
        }
        self.publish();
        if count > 0 {
            self.note(&routes);
        }
        count
    }

    /// Adds routes to the journal, so that a restart comes up closed there.
    fn note(&mut self, routes: &BTreeSet<RouteId>) {
        let closings = match &self.journal.closings {
            Closings::These(noted) => Closings::These(noted | routes),
            Closings::Every => Closings::Every,
        };
        self.write_journal(closings);
    }

    /// Everything noted is in the saved state.
    fn clear_journal(&mut self) {
        let nothing = Closings::These(BTreeSet::new());
        if self.journal.closings != nothing {
            self.write_journal(nothing);
        }
    }

    fn write_journal(&mut self, closings: Closings) {
        let entry = Entry {
            sequence: self.journal.sequence + 1,
            revision: self.machine.state().revision,
            closings,
        };
        let (offset, bytes) = journal::write(&entry);
        if let Err(error) = self.disk.write_journal(offset, &bytes) {
            tracing::error!(%error, "closings cannot be noted: they hold until the edge restarts");
        }
        self.journal = entry;
    }

    /// After a failure: opens the database again, reads what is in it, and saves what is published.
    fn recover(&mut self) {
        self.retry_at = Instant::now() + RETRY;
        let result = database::open(&mut self.disk).and_then(|(database, state)| {
            database::save(&database, &state, self.machine.state())?;
            Ok(Saved {
                database,
                state: Arc::clone(&self.published.load().state),
            })
        });
        match result {
            Ok(saved) => {
                self.saved = Some(saved);
                self.clear_journal();
                self.saving.send_replace(true);
                tracing::info!("the state can be saved again");
            }
            Err(error) => tracing::debug!(%error, "the state still cannot be saved"),
        }
    }
}

fn every_route(state: &EdgeState) -> BTreeSet<RouteId> {
    state
        .edges
        .values()
        .flat_map(|edge| edge.routes.keys().cloned())
        .collect()
}
