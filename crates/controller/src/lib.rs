//! The control loop: snapshots in, steps out, status beside it. All I/O is behind [`ports`].

pub mod events;
mod follow;
pub mod ports;
pub mod reconcile;
pub mod records;
pub mod retry;
pub mod status;
