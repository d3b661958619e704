//! TCPEdge: an address whose connections go to tunnels.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    https_edge::{Common, TunnelGroup},
    module_set::IpRestriction,
    traffic_policy::RawObject,
};

/// An address whose connections go to tunnels.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TcpEdge {
    /// Who answers, and who may connect.
    pub spec: TcpEdgeSpec,
}

/// Who answers, and who may connect.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TcpEdgeSpec {
    /// Texts.
    #[serde(flatten)]
    pub common: Common,
    /// Who answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backend: Option<TunnelGroup>,
    /// Let in only some addresses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ip_restriction: Option<IpRestriction>,
    /// Rules on connections.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("minProperties" = 1))]
    pub policy: Option<RawObject>,
}
