//! TLSEdge: names whose TLS connections go to tunnels.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    https_edge::{Common, TunnelGroup},
    module_set::{IpRestriction, MutualTls, TlsTermination},
    traffic_policy::RawObject,
};

/// Names whose TLS connections go to tunnels.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TlsEdge {
    /// What the edge answers for, and how.
    pub spec: TlsEdgeSpec,
}

/// What the edge answers for, and how.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TlsEdgeSpec {
    /// Texts.
    #[serde(flatten)]
    pub common: Common,
    /// Names this edge answers for, as host:port.
    #[schemars(length(min = 1), extend("x-item-rule" = "hostport"))]
    pub hostports: Vec<String>,
    /// Who answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backend: Option<TunnelGroup>,
    /// Let in only some addresses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ip_restriction: Option<IpRestriction>,
    /// Where TLS ends, and its lowest version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls_termination: Option<TlsTermination>,
    /// Demand a client certificate; mind the spelling, which is another than in HTTPSEdge.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mutual_tls: Option<MutualTls>,
    /// Rules on connections.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("minProperties" = 1))]
    pub policy: Option<RawObject>,
}
