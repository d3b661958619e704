//! How an edge reads a request and decides about it: pure functions of the request and the table.
//!
//! [`path`] and [`host`] give every spelling its one meaning (R16), [`table`] finds the route,
//! [`chain`] and [`modules`] judge, [`headers`] says what of the client's reaches a backend, and
//! [`refusal`] is the closed list of reasons for which a request goes no further.

#![warn(missing_docs)]
#![warn(clippy::wildcard_enum_match_arm)]

pub mod chain;
pub mod headers;
pub mod host;
pub mod modules;
pub mod path;
pub mod refusal;
pub mod table;
pub mod target;
