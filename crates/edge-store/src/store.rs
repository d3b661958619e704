//! The handle by which everyone else reads the state and changes it.

use std::{collections::BTreeSet, path::PathBuf, sync::Arc, time::SystemTime};

use arc_swap::{ArcSwap, Guard};
use edge_state::{
    apply::RefusedCommand,
    command::{Command, Limits},
    state::Role,
};
use model::{module::ModuleKind, time::Timestamp};
use tokio::sync::{mpsc, oneshot, watch};

use crate::{
    directory::{Directory, DirectoryError},
    disk::Disk,
    published::Published,
    worker::{Message, Shared, Worker},
};

/// How many commands may wait. More wait outside, with their callers.
const QUEUE: usize = 256;

/// The edge's clock.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// How a store is opened.
#[derive(Clone)]
pub struct Options {
    /// Where the state lies.
    pub data_dir: PathBuf,
    /// Whether the directory is one for trying things out.
    pub demo: bool,
    /// What this process enforces.
    pub enforceable: BTreeSet<ModuleKind>,
    /// How much of everything there may be.
    pub limits: Limits,
    /// The edge's clock.
    pub clock: Clock,
}

impl Options {
    /// A directory for real use, everything that this code enforces, the system's clock.
    #[must_use]
    pub fn new(data_dir: PathBuf) -> Self {
        let clock = || {
            let since = SystemTime::now()
                .duration_since(SystemTime::UNIX_EPOCH)
                .unwrap_or_default();
            Timestamp(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
        };
        Self {
            data_dir,
            demo: false,
            enforceable: routing::chain::enforced(),
            limits: Limits::default(),
            clock: Arc::new(clock),
        }
    }
}

/// Why a store cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The directory cannot be used.
    #[error(transparent)]
    Directory(#[from] DirectoryError),
    /// The state in it cannot be read whole, so nothing of it is served.
    #[error(
        "the state in {} cannot be read whole, so nothing is served: {reason}. \
         Use the version that wrote it, or restore the directory from a backup; \
         or move it away and let the controller, and whoever used the API, write everything anew", data_dir.display()
    )]
    Unreadable {
        /// The directory.
        data_dir: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// The disk failed.
    #[error("the state in {} cannot be opened: {reason}", data_dir.display())]
    Disk {
        /// The directory.
        data_dir: PathBuf,
        /// What is wrong.
        reason: String,
    },
}

/// In whose name a command is applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Writer {
    /// What the writer may do.
    pub role: Role,
    /// The writer's term, if it is a controller.
    pub term: Option<u64>,
}

impl Writer {
    /// The edge process itself: it may do everything, and no term fences it.
    pub const EDGE: Self = Self {
        role: Role::Controller,
        term: None,
    };
}

/// A command that was applied: saved, and published.
#[derive(Clone, Debug)]
pub struct Applied {
    /// The state's revision right after the command.
    pub revision: u64,
    /// Whether the command changed anything.
    pub changed: bool,
    /// The edge's clock under which it was applied.
    pub now: Timestamp,
    /// What is published now: the command's result, and possibly that of others after it.
    pub published: Arc<Published>,
}

/// Why a command was not acknowledged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ApplyError {
    /// The state machine refused it. Nothing has changed.
    #[error(transparent)]
    Refused(#[from] RefusedCommand),
    /// It could not be saved. Nothing was opened or loosened; what it would have closed is closed.
    #[error("{message}")]
    Unavailable {
        /// What is wrong.
        message: String,
        /// Whether something may have changed all the same: read before trying again (R6).
        may_have_applied: bool,
    },
}

/// A handle to the store; clones are the same store. When the last one goes, so does the thread
/// behind it, and with it the lock of the directory.
#[derive(Clone)]
pub struct Store {
    shared: Shared,
    commands: mpsc::Sender<Message>,
    clock: Clock,
}

impl Store {
    /// Opens the directory, makes it if need be, and serves the state in it. Blocks: it reads the
    /// whole state, and may repair it after a crash.
    ///
    /// # Errors
    /// When the directory cannot be used, or the state in it not be read whole.
    pub fn open(options: &Options) -> Result<Self, OpenError> {
        let disk = Directory::open(&options.data_dir, options.demo)?;
        Self::open_on(disk, options)
    }

    pub(crate) fn open_on(disk: impl Disk, options: &Options) -> Result<Self, OpenError> {
        let (worker, shared) = Worker::open(disk, options)?;
        let (commands, queue) = mpsc::channel(QUEUE);
        let data_dir = &options.data_dir;
        let failed = |error: std::io::Error| OpenError::Disk {
            data_dir: data_dir.clone(),
            reason: error.to_string(),
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .map_err(failed)?;
        std::thread::Builder::new()
            .name("edge-store".to_owned())
            .spawn(move || runtime.block_on(worker.run(queue)))
            .map_err(failed)?;
        let clock = Arc::clone(&options.clock);
        Ok(Self {
            shared,
            commands,
            clock,
        })
    }

    /// A store without a state, for an edge whose state cannot be read whole: it refuses every
    /// request and every command, and says so (R10).
    #[must_use]
    pub fn refusing() -> Self {
        let published = Published::refusing();
        let (_, revisions) = watch::channel(published.revision);
        let (_, saving) = watch::channel(false);
        let published = Arc::new(ArcSwap::from_pointee(published));
        let shared = Shared {
            published,
            revisions,
            saving,
        };
        let (commands, _) = mpsc::channel(1);
        Self {
            shared,
            commands,
            clock: Options::new(PathBuf::new()).clock,
        }
    }

    /// What is served now. Cheap; for one request, load once and pass it on.
    #[must_use]
    pub fn load(&self) -> Guard<Arc<Published>> {
        self.shared.published.load()
    }

    /// What is served now, to keep.
    #[must_use]
    pub fn current(&self) -> Arc<Published> {
        self.shared.published.load_full()
    }

    /// Tells of every new revision.
    #[must_use]
    pub fn subscribe(&self) -> watch::Receiver<u64> {
        self.shared.revisions.clone()
    }

    /// Whether the state can be saved: false from the first save that fails until the state is on
    /// the disk again. Until then nothing opens or changes, and what must close closes.
    #[must_use]
    pub fn saving(&self) -> watch::Receiver<bool> {
        self.shared.saving.clone()
    }

    /// The edge's clock.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        (self.clock)()
    }

    /// Applies a command in its turn. Returns when its result is on disk and published. A caller
    /// that stops waiting does not undo it.
    ///
    /// # Errors
    /// When it is refused, or cannot be saved.
    pub async fn apply(&self, command: Command, writer: &Writer) -> Result<Applied, ApplyError> {
        let gone = |may_have_applied| ApplyError::Unavailable {
            message: "the edge's store has stopped".to_owned(),
            may_have_applied,
        };
        let (reply, answer) = oneshot::channel();
        let message = Message::Apply {
            command: Box::new(command),
            writer: *writer,
            reply,
        };
        self.commands.send(message).await.map_err(|_| gone(false))?;
        answer.await.map_err(|_| gone(true))?
    }

    /// Ends the store when the commands before this are done; the directory is free when this
    /// returns.
    pub async fn stop(&self) {
        let (reply, stopped) = oneshot::channel();
        if self.commands.send(Message::Stop(reply)).await.is_ok() {
            // An error means that it has ended, too.
            stopped.await.unwrap_or_default();
        }
    }
}
