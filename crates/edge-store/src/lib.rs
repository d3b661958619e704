//! The owner of an edge's one current state: takes commands in turn, saves, then publishes.
//!
//! Guarantees: what is acknowledged is on disk and in the published table, in this order; readers
//! see one whole state at a time; a state that cannot be read whole is not served (R10); a closing
//! is published even where it cannot be saved, and a restart comes up closed there; a route whose
//! deadline has passed is closed by the edge itself, also when it passed while the edge was down.
//!
//! Redb and its fsync run on a thread of their own, so that no request ever waits for a disk.

mod database;
mod directory;
mod disk;
mod journal;
mod published;
mod store;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod worker;

pub use directory::DirectoryError;
pub use published::Published;
pub use store::{Applied, ApplyError, Clock, OpenError, Options, Store, Writer};
