//! What tests share: a client that can come from any loopback address, backends that say what
//! reached them, the program as a process, and a reference matcher that shares no code with the
//! product. Never shipped.

// A test that cannot be set up has failed: these helpers say why and end it.
#![allow(clippy::panic, clippy::expect_used, clippy::unwrap_used)]

pub mod backend;
pub mod bypass;
pub mod client;
pub mod cluster;
pub mod faults;
pub mod oracle;
pub mod prober;
pub mod process;
pub mod seed;
pub mod usage;
pub mod wait;
