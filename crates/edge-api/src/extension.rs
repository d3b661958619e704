//! What this edge adds to the common API, announced in its capabilities document: the whole state,
//! commands, expected generations, whole edges and routes, endpoints, owners of domains.
//!
//! The types of the state and of commands belong to the edge's state machine; here they are
//! parameters, so that the wire depends on nothing but words.

use std::collections::BTreeMap;

use model::time::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{error::ApiError, json::Members};

/// Names the API version in every request.
pub const VERSION_HEADER: &str = "ngrok-version";
/// The only version.
pub const VERSION: &str = "2";
/// Names the call in every answer, and in the edge's log.
pub const OPERATION_HEADER: &str = "ngrok-operation-id";
/// The writer's term, with every command (R19).
pub const TERM_HEADER: &str = "portcullis-term";
/// The generation of the edge that a write expects, or `absent`; without it anything goes.
pub const EXPECTED_HEADER: &str = "portcullis-expected-generation";

/// What the edge can do.
pub const CAPABILITIES_PATH: &str = "/portcullis/v1/capabilities";
/// Everything the edge has.
pub const STATE_PATH: &str = "/portcullis/v1/state";
/// Changes the edge by one command.
pub const COMMANDS_PATH: &str = "/portcullis/v1/commands";

/// The capabilities document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capabilities<C> {
    /// What a controller must know before it plans.
    #[serde(flatten)]
    pub edge: C,
    /// Counts the changes of the edge's state: whoever follows it reads it again when this grows.
    #[serde(default)]
    pub revision: u64,
    /// The match types of routes.
    #[serde(default)]
    pub match_types: Vec<String>,
    /// The extensions, by name, each with how it is called.
    #[serde(default)]
    pub extensions: BTreeMap<String, String>,
    /// The codes that are words, each with what it means.
    #[serde(default)]
    pub codes: BTreeMap<String, String>,
}

/// The extensions that this version has.
#[must_use]
pub fn extensions() -> BTreeMap<String, String> {
    [
        ("state", "GET /portcullis/v1/state"),
        ("commands", "POST /portcullis/v1/commands with the header portcullis-term"),
        ("expected_generation", "the header portcullis-expected-generation: NUMBER or absent, with writes of edges and routes"),
        ("replace_edge", "PUT /edges/https/{id}"),
        ("replace_route", "PUT /edges/https/{edge_id}/routes/{id}"),
        ("endpoints", "PUT /backends/tunnel_group/{id}/endpoints"),
        ("domain_namespace", "PUT, DELETE /reserved_domains/{id}/namespace"),
        ("key_role", "the member role of API keys: read, write or controller"),
    ]
    .into_iter()
    .map(|(name, call)| (name.to_owned(), call.to_owned()))
    .collect()
}

/// The answer to [`STATE_PATH`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct State<S> {
    /// Everything that the caller may see.
    pub state: S,
    /// The edge's clock.
    pub now: Timestamp,
}

/// The answer to [`COMMANDS_PATH`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipt {
    /// The state's revision now: equal to before if nothing changed.
    pub revision: u64,
    /// The edge's clock when the command was applied.
    pub now: Timestamp,
}

/// Members of `details` in an error.
pub mod detail {
    /// `true` if a write that could not be acknowledged may have been made all the same (R6).
    pub const MAY_HAVE_APPLIED: &str = "may_have_applied";
    /// The edge's id.
    pub const EDGE: &str = "edge_id";
    /// The first of its hosts.
    pub const HOST: &str = "host";
    /// The route's match type.
    pub const MATCH_TYPE: &str = "match_type";
    /// The route's path.
    pub const MATCH: &str = "match";
}

/// Reads the body of `PUT /reserved_domains/{id}/namespace`.
///
/// # Errors
/// When it is not one.
pub fn read_namespace(mut members: Members) -> Result<String, ApiError> {
    let namespace = members.text("namespace")?;
    members.finish()?;
    namespace
        .filter(|name| !name.is_empty())
        .ok_or_else(|| ApiError::invalid("namespace", "the name of a namespace"))
}
