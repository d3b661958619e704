//! The control loop: snapshots in, steps out, status beside it. All I/O is behind [`ports`].

pub mod ports;
