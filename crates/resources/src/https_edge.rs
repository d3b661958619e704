//! HTTPSEdge: hosts and their routes, written by hand.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    module_set::{
        CircuitBreaker, Compression, Headers, IpRestriction, MutualTls, Oidc, Saml, TlsVersion,
        WebhookVerification,
    },
    oauth::OAuth,
    traffic_policy::RawObject,
};

/// Text that upstream's schema fills in where an object has none of its own.
pub const DEFAULT_DESCRIPTION: &str = "Created by kubernetes-ingress-controller";
/// Likewise.
pub const DEFAULT_METADATA: &str = r#"{"owned-by":"kubernetes-ingress-controller"}"#;

fn default_description() -> String {
    DEFAULT_DESCRIPTION.to_owned()
}

fn default_metadata() -> String {
    DEFAULT_METADATA.to_owned()
}

/// What many specs share: text that is stored with the object at the edge.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Common {
    /// Text for people, stored with the object at the edge.
    #[serde(default = "default_description")]
    pub description: String,
    /// Text for programs, stored with the object at the edge.
    #[serde(default = "default_metadata")]
    pub metadata: String,
}

impl Default for Common {
    fn default() -> Self {
        Self {
            description: default_description(),
            metadata: default_metadata(),
        }
    }
}

/// Hosts and their routes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HttpsEdge {
    /// What the edge answers for, and how.
    pub spec: HttpsEdgeSpec,
}

/// What the edge answers for, and how.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HttpsEdgeSpec {
    /// Texts.
    #[serde(flatten)]
    pub common: Common,
    /// Names this edge answers for, as host:443; the host may begin with a wildcard label.
    #[schemars(length(min = 1), extend("x-item-rule" = "hostport"))]
    pub hostports: Vec<String>,
    /// The routes; their order means nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub routes: Vec<HttpsEdgeRoute>,
    /// Demands on the TLS connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls_termination: Option<HttpsTlsTermination>,
    /// Demand a client certificate.
    #[serde(default, rename = "mutualTLS", skip_serializing_if = "Option::is_none")]
    pub mutual_tls: Option<MutualTls>,
}

/// How a route's path is compared.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum RouteMatchType {
    /// The whole path.
    ExactPath,
    /// The path begins with it, byte by byte.
    PathPrefix,
}

/// A route.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HttpsEdgeRoute {
    /// Texts.
    #[serde(flatten)]
    pub common: Common,
    /// How the path is compared.
    #[schemars(extend("x-published-required" = true, "x-published-enum" = true))]
    pub match_type: RouteMatchType,
    /// The path.
    #[serde(rename = "match")]
    #[schemars(length(min = 1), extend("x-published-required" = true))]
    pub path: String,
    /// Who answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backend: Option<TunnelGroup>,
    /// Stop asking a backend that fails.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub circuit_breaker: Option<CircuitBreaker>,
    /// Compress responses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compression: Option<Compression>,
    /// Let in only some addresses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ip_restriction: Option<IpRestriction>,
    /// Change the headers of requests and responses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub headers: Option<Headers>,
    /// Demand a login with an OAuth provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oauth: Option<OAuth>,
    /// Demand a login with an OpenID provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oidc: Option<Oidc>,
    /// Demand a login with a SAML identity provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub saml: Option<Saml>,
    /// Let in only requests with a valid webhook signature.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub webhook_verification: Option<WebhookVerification>,
    /// Rules on requests and responses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("minProperties" = 1))]
    pub policy: Option<RawObject>,
}

/// Any tunnel whose labels contain these.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TunnelGroup {
    /// Texts.
    #[serde(flatten)]
    pub common: Common,
    /// The labels.
    #[schemars(extend("minProperties" = 1))]
    pub labels: BTreeMap<String, String>,
}

/// Demands on the TLS connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HttpsTlsTermination {
    /// Lowest TLS version: 1.0, 1.1, 1.2 or 1.3.
    pub min_version: TlsVersion,
}
