//! NgrokModuleSet: protections and transformations for the routes of an Ingress, and the module
//! types that the edge kinds share.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{duration::GoDuration, fraction::Fraction, oauth::OAuth, traffic_policy::RawObject};

/// A set of modules that Ingresses name in their annotation `k8s.ngrok.com/modules`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NgrokModuleSet {
    /// The modules. They stand at the top: this kind has no spec.
    pub modules: Modules,
}

/// The modules of a set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("minProperties" = 1))]
pub struct Modules {
    /// Stop asking a backend that fails.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub circuit_breaker: Option<CircuitBreaker>,
    /// Compress responses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compression: Option<Compression>,
    /// Change the headers of requests and responses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub headers: Option<Headers>,
    /// Let in only some addresses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ip_restriction: Option<IpRestriction>,
    /// Demand a login with an OAuth provider.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oauth: Option<OAuth>,
    /// Rules on requests and responses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<Policy>,
    /// Demand a login with an OpenID provider.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oidc: Option<Oidc>,
    /// Demand a login with a SAML identity provider.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub saml: Option<Saml>,
    /// Demands on the TLS connection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls_termination: Option<TlsTermination>,
    /// Demand a client certificate.
    #[serde(rename = "mutualTLS", skip_serializing_if = "Option::is_none")]
    pub mutual_tls: Option<MutualTls>,
    /// Let in only requests with a valid webhook signature.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub webhook_verification: Option<WebhookVerification>,
}

/// A key of a Secret in the namespace of the object that refers to it.
#[derive(
    Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub struct SecretKeyRef {
    /// Name of the Secret.
    #[schemars(length(min = 1))]
    pub name: String,
    /// Key in its data.
    #[schemars(length(min = 1))]
    pub key: String,
}

/// Stop asking a backend that fails.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct CircuitBreaker {
    /// How long a tripped breaker refuses before it looks at the backend's health again.
    pub tripped_duration: GoDuration,
    /// Length of the window over which failures are counted.
    pub rolling_window: GoDuration,
    /// Number of slices of the window, 1 to 128; absent means the edge's default.
    #[schemars(range(min = 1, max = 128))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub num_buckets: Option<u32>,
    /// Number of requests in the window below which the breaker never trips.
    pub volume_threshold: u32,
    /// Share of failed requests at which it trips: a fraction between 0 and 1, not percent.
    pub error_threshold_percentage: Fraction,
}

/// Compress responses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Compression {
    /// Whether responses are compressed.
    pub enabled: bool,
}

/// Change the headers of requests and responses.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(extend("minProperties" = 1))]
pub struct Headers {
    /// Changes before the request reaches the backend.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request: Option<HeaderChanges>,
    /// Changes before the response reaches the client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response: Option<HeaderChanges>,
}

/// Changes of headers: removal first, then addition, so that a name in both replaces.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(extend("minProperties" = 1))]
pub struct HeaderChanges {
    /// Names and values to add; an existing header keeps its value and gets a second one.
    #[schemars(extend("x-rule" = "headers"))]
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub add: BTreeMap<String, String>,
    /// Names to remove.
    #[schemars(extend("x-item-rule" = "header-name"))]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub remove: Vec<String>,
}

/// Let in only the addresses that the pooled rules of IP policies allow and do not deny.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IpRestriction {
    /// Names of IPPolicies in the same namespace, or ids of policies at the edge.
    #[schemars(length(min = 1), inner(length(min = 1)))]
    pub policies: Vec<String>,
}

/// Demand a login with an OpenID provider.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Oidc {
    /// Let OPTIONS requests (CORS preflights) through without a login.
    #[serde(default)]
    pub options_passthrough: bool,
    /// Begin of the login cookies' names; empty means the edge's default.
    #[serde(default)]
    pub cookie_prefix: String,
    /// Log out after this long without a request; zero means never.
    #[serde(default)]
    pub inactivity_timeout: GoDuration,
    /// Log out after this long in any case; zero means the edge's ceiling.
    #[serde(default)]
    pub maximum_duration: GoDuration,
    /// Base URL of the OpenID provider.
    #[schemars(length(min = 1))]
    pub issuer: String,
    /// Client id at the provider.
    #[schemars(length(min = 1))]
    pub client_id: String,
    /// Client secret at the provider.
    pub client_secret: SecretKeyRef,
    /// Scopes to ask for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scopes: Vec<String>,
}

/// Demand a login with a SAML identity provider.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Saml {
    /// Let OPTIONS requests (CORS preflights) through without a login.
    #[serde(default)]
    pub options_passthrough: bool,
    /// Begin of the login cookies' names; empty means the edge's default.
    #[serde(default)]
    pub cookie_prefix: String,
    /// Log out after this long without a request; zero means never.
    #[serde(default)]
    pub inactivity_timeout: GoDuration,
    /// Log out after this long in any case; zero means the edge's ceiling.
    #[serde(default)]
    pub maximum_duration: GoDuration,
    /// The identity provider's metadata: the XML text, not a URL.
    #[schemars(length(min = 1))]
    pub idp_metadata: String,
    /// Ask the provider to authenticate again.
    #[serde(default)]
    pub force_authn: bool,
    /// Accept logins that begin at the identity provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allow_idp_initiated: Option<bool>,
    /// Groups of which the user must be in at least one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1), inner(length(min = 1)))]
    pub authorized_groups: Vec<String>,
    /// Requested NameID format; empty means the persistent one.
    #[serde(default)]
    pub nameid_format: String,
}

/// Where TLS ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TerminateAt {
    /// At the edge.
    Edge,
    /// Behind it.
    Upstream,
}

/// TLS versions that a minimum may name.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub enum TlsVersion {
    /// TLS 1.0.
    #[serde(rename = "1.0")]
    V1_0,
    /// TLS 1.1.
    #[serde(rename = "1.1")]
    V1_1,
    /// TLS 1.2.
    #[serde(rename = "1.2")]
    V1_2,
    /// TLS 1.3.
    #[serde(rename = "1.3")]
    V1_3,
}

/// Demands on the TLS connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("minProperties" = 1, "x-rule" = "tls-termination"))]
pub struct TlsTermination {
    /// Where TLS ends, edge or upstream; has no effect on an Ingress.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub terminate_at: Option<TerminateAt>,
    /// Lowest TLS version: 1.0, 1.1, 1.2 or 1.3.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_version: Option<TlsVersion>,
}

/// Demand a client certificate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MutualTls {
    /// Ids of certificate authorities at the edge, or names of Secrets or ConfigMaps with a ca.crt in the same namespace.
    #[schemars(length(min = 1), inner(length(min = 1)))]
    pub certificate_authorities: Vec<String>,
}

/// Let in only requests with a valid webhook signature.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("x-rule" = "webhook"))]
pub struct WebhookVerification {
    /// Id of the sender's signature scheme.
    #[schemars(length(min = 1))]
    pub provider: String,
    /// The signing secret; only the provider sns needs none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<SecretKeyRef>,
}

/// Rules on requests and responses, in the older form of a traffic policy.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(extend("minProperties" = 1))]
pub struct Policy {
    /// Whether the rules are applied; absent means they are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// Rules on requests.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub inbound: Vec<PolicyRule>,
    /// Rules on responses.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub outbound: Vec<PolicyRule>,
}

/// A rule of a policy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PolicyRule {
    /// A name for logs.
    #[serde(default)]
    pub name: String,
    /// Expressions that must all hold; none means always.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub expressions: Vec<String>,
    /// What is done.
    #[schemars(length(min = 1))]
    pub actions: Vec<PolicyAction>,
}

/// An action of a rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PolicyAction {
    /// The kind of action.
    #[serde(rename = "type")]
    #[schemars(length(min = 1))]
    pub action_type: String,
    /// Its settings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<RawObject>,
}
