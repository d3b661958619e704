//! What the controller needs of the world.

use std::{future::Future, sync::Arc};

use edge_state::{capabilities::Capabilities, command::Command, state::EdgeState};
use model::{
    host::HostPattern,
    place::Match,
    time::{Span, Timestamp},
};
use resources::snapshot::Snapshot;
use tokio::sync::watch;

/// The edge's state as its owner may see it, and the edge's clock when it was read.
#[derive(Clone, Debug)]
pub struct Reading {
    /// Everything, without certificate keys.
    pub state: EdgeState,
    /// The edge's clock.
    pub now: Timestamp,
}

/// The answer to a command that was applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// The state's revision now: equal to before if nothing changed.
    pub revision: u64,
    /// The edge's clock when it was applied, so that the caller can repeat it on its own copy.
    pub now: Timestamp,
}

/// The input is at fault: not retried until an input changes (R7).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the edge refused: {message} ({code})")]
pub struct Refused {
    /// HTTP status.
    pub status: u16,
    /// `ERR_NGROK_…`, or a word.
    pub code: String,
    /// What the edge said.
    pub message: String,
    /// The route it was about, if the edge could tell.
    pub route: Option<(HostPattern, Match)>,
}

/// The way there is at fault, or the edge is: tried again with back-off (R7).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the edge could not be asked: {message}")]
pub struct Unavailable {
    /// What happened.
    pub message: String,
    /// Whether the command may have been applied all the same (R6).
    pub may_have_applied: bool,
    /// What the edge asked to wait.
    pub retry_after: Option<Span>,
}

/// Why a call to the edge did not succeed, sorted by cure.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EdgeError {
    /// Wait for an input to change.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// Wait and try again.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
    /// Somebody else wrote: read again and plan again (409, or 404 of a thing believed to be there).
    #[error("the edge changed meanwhile: {0}")]
    Changed(String),
    /// A writer of a higher term is at work: this controller must stop writing (R19).
    #[error("another controller has taken over: {0}")]
    Superseded(String),
    /// The key is refused: unready until the key file changes, and at each resync (R7).
    #[error("the edge refused the API key: {0}")]
    Credentials(String),
}

/// An edge as the controller drives it: over HTTP or in the same process.
pub trait EdgeControl: Send + Sync + 'static {
    /// What it can do.
    fn capabilities(&self) -> impl Future<Output = Result<Capabilities, EdgeError>> + Send;
    /// What it has.
    fn read(&self) -> impl Future<Output = Result<Reading, EdgeError>> + Send;
    /// Changes it, in the name of a writer of this term.
    fn apply(
        &self,
        term: u64,
        command: Command,
    ) -> impl Future<Output = Result<Receipt, EdgeError>> + Send;
    /// Returns when the edge's state is newer than this revision: somebody else wrote, or the edge
    /// closed something by itself (R7: every input is watched). Never, where that cannot be seen.
    fn changed(&self, revision: u64) -> impl Future<Output = ()> + Send {
        let _unseen = revision;
        std::future::pending()
    }
    /// Returns when the key with which the edge is asked has changed since it was refused; never,
    /// where there is none.
    fn credentials_changed(&self) -> impl Future<Output = ()> + Send {
        std::future::pending()
    }
}

/// Where declarations come from: always a whole snapshot, the newest one.
pub type ObjectSource = watch::Receiver<Arc<Snapshot>>;

/// A clock that tests can hold.
pub trait Clock: Send + Sync + 'static {
    /// Now.
    fn now(&self) -> Timestamp;
    /// Waits.
    fn sleep(&self, span: Span) -> impl Future<Output = ()> + Send;
}
