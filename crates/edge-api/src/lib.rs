//! The edge API, as both ends speak it: bodies, error codes, limits and the extensions of this edge.
//!
//! The API is the one that ngrok documents for HTTPS edges, version 2, so that its official
//! clients drive this edge unchanged. What a client may write is read strictly into the words of
//! `model` ([`json::Members`]); what an answer shows has its own types, built without a secret, and
//! is read leniently, because answers may gain members.
//!
//! **Absent, null and value.** At this API `null` counts as absent everywhere, and what absent
//! means depends on the verb: in a PATCH it leaves as is, in a POST or PUT it is not there. The two
//! have different types here ([`edge::EdgePatch`], [`edge::EdgeReplacement`]), and neither has a way
//! to spell "remove": removal is a call of its own, so it can neither happen by leaving something
//! out nor be lost with a member that a serialiser drops.
//!
//! Pure: no I/O, no clock, no randomness.

#![warn(missing_docs)]
#![warn(clippy::wildcard_enum_match_arm)]

pub mod api_key;
pub mod backend;
pub mod certificate;
pub mod domain;
pub mod edge;
pub mod error;
pub mod extension;
pub mod ip_policy;
pub mod json;
pub mod list;
pub mod module;
pub mod route;
pub mod texts;
