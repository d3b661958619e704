//! The single definition of an edge: a pure state machine.
//!
//! Commands go in, a new state comes out ([`apply::apply`]); [`exposure`] says which request reaches
//! which backend under which modules; [`compile`] makes the table that the proxy serves. The
//! server runs it, the planner's checker replays plans on it, and later the simulator drives it,
//! so that what is proved is proved about the code that answers.

#![warn(missing_docs)]
#![warn(clippy::wildcard_enum_match_arm)]

pub mod apply;
pub mod capabilities;
pub mod closing;
pub mod command;
pub mod compile;
pub mod difference;
pub mod exposure;
mod index;
pub mod redact;
mod refusal;
pub mod state;
pub mod verify;
