//! Domain: a host name that the edge reserves.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::https_edge::Common;

/// A host name that the edge reserves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Domain {
    /// The name.
    pub spec: DomainSpec,
}

/// The name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DomainSpec {
    /// Texts.
    #[serde(flatten)]
    pub common: Common,
    /// The host name, possibly with a wildcard as its first label.
    #[schemars(length(min = 1), extend("x-published-required" = true))]
    pub domain: String,
    /// A region's id, from times when edges had one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub region: String,
}
