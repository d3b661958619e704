//! Tunnel: a Service port that an agent offers to the edge.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A Service port that an agent offers to the edge.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Tunnel {
    /// Where it leads.
    pub spec: TunnelSpec,
}

/// Where it leads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TunnelSpec {
    /// The address inside the cluster, as host:port.
    #[schemars(length(min = 1))]
    pub forwards_to: String,
    /// The labels that the tunnel announces.
    #[schemars(extend("minProperties" = 1))]
    pub labels: BTreeMap<String, String>,
    /// How the backend is spoken to; absent: bytes are copied as they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backend: Option<TunnelBackend>,
    /// http2, or nothing.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub app_protocol: String,
}

/// How a backend is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum BackendProtocol {
    /// In clear.
    #[serde(rename = "HTTP")]
    Http,
    /// Over TLS.
    #[serde(rename = "HTTPS")]
    Https,
}

/// How the backend is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TunnelBackend {
    /// HTTP or HTTPS.
    pub protocol: BackendProtocol,
}
