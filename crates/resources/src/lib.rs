//! placeholder
pub mod snapshot;
