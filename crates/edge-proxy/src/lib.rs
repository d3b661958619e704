//! The data plane.
mod authority;
mod codec;
mod listen;
mod options;
mod watch;
pub use options::*;
