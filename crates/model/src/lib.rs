//! The words of the domain: values only, no I/O, no clock, nothing else of ours.
//!
//! Everything that a declaration, an edge or a status can say is spelled here once; translation
//! makes these values, the planner compares them, the edge stores them and the proxy enforces them.

#![warn(missing_docs)]
#![warn(clippy::wildcard_enum_match_arm)]

pub mod address;
pub mod backend;
pub mod complete_set;
pub mod declaration;
pub mod diagnostic;
pub mod host;
pub mod id;
pub mod module;
pub mod object;
pub mod place;
pub mod secret;
pub mod status;
pub mod time;
