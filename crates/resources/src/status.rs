//! The statuses of our kinds, in the form that existing tools read. Written only: a status is
//! never an input (R8).

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{ip_policy::IpPolicyAction, traffic_policy::RawObject};

/// An object at the edge, by its id alone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct IdStatus {
    /// Id at the edge.
    pub id: String,
}

/// What became of an HTTPSEdge.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct HttpsEdgeStatus {
    /// Id at the edge.
    pub id: String,
    /// URI at the edge.
    pub uri: String,
    /// The routes at the edge.
    pub routes: Vec<HttpsEdgeRouteStatus>,
}

/// A route at the edge.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct HttpsEdgeRouteStatus {
    /// Id at the edge.
    pub id: String,
    /// URI at the edge.
    pub uri: String,
    /// The path.
    #[serde(rename = "match")]
    pub path: String,
    /// How it is compared.
    pub match_type: String,
    /// Who answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backend: Option<IdStatus>,
}

/// What became of a TCPEdge.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct TcpEdgeStatus {
    /// Id at the edge.
    pub id: String,
    /// URI at the edge.
    pub uri: String,
    /// Its reserved addresses, as host:port.
    pub hostports: Vec<String>,
    /// Who answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backend: Option<IdStatus>,
}

/// What became of a TLSEdge.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct TlsEdgeStatus {
    /// Id at the edge.
    pub id: String,
    /// URI at the edge.
    pub uri: String,
    /// What it answers for, as host:port.
    pub hostports: Vec<String>,
    /// Who answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backend: Option<IdStatus>,
    /// Where DNS must point, by domain.
    pub cname_targets: BTreeMap<String, String>,
}

/// What became of a Tunnel: nothing is told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TunnelStatus {}

/// What became of a Domain.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct DomainStatus {
    /// Id at the edge.
    pub id: String,
    /// URI at the edge.
    pub uri: String,
    /// The reserved name.
    pub domain: String,
    /// A region's id.
    pub region: String,
    /// Where DNS must point; only for domains of one's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cname_target: Option<String>,
}

/// What became of an IPPolicy.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct IpPolicyStatus {
    /// Id at the edge.
    pub id: String,
    /// The rules at the edge.
    pub rules: Vec<IpPolicyRuleStatus>,
}

/// A rule at the edge.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IpPolicyRuleStatus {
    /// Id at the edge.
    pub id: String,
    /// The network.
    pub cidr: String,
    /// What is done with its addresses.
    pub action: IpPolicyAction,
}

/// What became of a traffic policy.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct NgrokTrafficPolicyStatus {
    /// The document.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<RawObject>,
}
