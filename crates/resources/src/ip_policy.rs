//! IPPolicy: addresses that are let in or refused.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::https_edge::Common;

/// Addresses that are let in or refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IpPolicy {
    /// The rules.
    pub spec: IpPolicySpec,
}

/// The rules.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IpPolicySpec {
    /// Texts.
    #[serde(flatten)]
    pub common: Common,
    /// The rules; an address passes when one allows it and none denies it.
    #[schemars(length(min = 1), extend("x-rule" = "ip-rules"))]
    pub rules: Vec<IpPolicyRule>,
}

/// What is done with the addresses of a rule.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum IpPolicyAction {
    /// Let in, unless another rule denies.
    Allow,
    /// Refused, whatever other rules say.
    Deny,
}

/// A rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IpPolicyRule {
    /// Texts.
    #[serde(flatten)]
    pub common: Common,
    /// A network in CIDR notation, IPv4 or IPv6.
    #[schemars(extend("x-rule" = "cidr"))]
    pub cidr: String,
    /// What is done with its addresses.
    #[schemars(extend("x-published-enum" = true))]
    pub action: IpPolicyAction,
}
