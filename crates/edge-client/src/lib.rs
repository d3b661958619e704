//! The edge as others reach it: over HTTP, or in the same process.
//!
//! [`http::HttpEdge`] and [`direct::DirectEdge`] are the two ways in which a controller drives an
//! edge; one contract suite runs against both. [`rest::RestClient`] is what commands for people use.
//! Every failure is sorted by its cure in one place, `classify` (R7).

#![warn(missing_docs)]

mod address;
mod classify;
mod connection;
pub mod direct;
pub mod http;
mod key;
pub mod rest;

pub use address::{AddressError, EdgeAddress};
pub use connection::{ConnectOptions, TrustError};
pub use key::{KeyError, KeySource};
