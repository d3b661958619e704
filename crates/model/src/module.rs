//! The modules: protections and transformations of a route.
//!
//! One struct per kind, all durations in whole seconds as at the edge API. `P` is how an IP
//! restriction names its policies: by declared name before planning, by id and version at the
//! edge, by content where two sets are compared. Adding a kind here breaks the build of every
//! place that must decide about it: none of them uses `..`.

use std::collections::{BTreeMap, BTreeSet};

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

use crate::secret::Secret;

/// Every kind of module there is, in the order of the request chain, then the response's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModuleKind {
    /// Edge-wide: lowest TLS version.
    TlsTermination,
    /// Edge-wide: client certificates.
    MutualTls,
    /// Allowed and denied addresses.
    IpRestriction,
    /// Allowed and denied user agents.
    UserAgentFilter,
    /// Signatures of webhook senders.
    WebhookVerification,
    /// Login with an OAuth provider.
    Oauth,
    /// Login with an OpenID provider.
    Oidc,
    /// Login with a SAML identity provider.
    Saml,
    /// Traffic policy (either form).
    TrafficPolicy,
    /// Circuit breaker.
    CircuitBreaker,
    /// WebSocket to TCP.
    WebsocketTcpConverter,
    /// Changes of request headers.
    RequestHeaders,
    /// Changes of response headers.
    ResponseHeaders,
    /// Compression of responses.
    Compression,
}

impl ModuleKind {
    /// Every kind, in order.
    pub const ALL: [Self; 14] = [
        Self::TlsTermination,
        Self::MutualTls,
        Self::IpRestriction,
        Self::UserAgentFilter,
        Self::WebhookVerification,
        Self::Oauth,
        Self::Oidc,
        Self::Saml,
        Self::TrafficPolicy,
        Self::CircuitBreaker,
        Self::WebsocketTcpConverter,
        Self::RequestHeaders,
        Self::ResponseHeaders,
        Self::Compression,
    ];

    /// The name in resources and statuses.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::TlsTermination => "tlsTermination",
            Self::MutualTls => "mutualTLS",
            Self::IpRestriction => "ipRestriction",
            Self::UserAgentFilter => "userAgentFilter",
            Self::WebhookVerification => "webhookVerification",
            Self::Oauth => "oauth",
            Self::Oidc => "oidc",
            Self::Saml => "saml",
            Self::TrafficPolicy => "policy",
            Self::CircuitBreaker => "circuitBreaker",
            Self::WebsocketTcpConverter => "websocketTCPConverter",
            Self::RequestHeaders | Self::ResponseHeaders => "headers",
            Self::Compression => "compression",
        }
    }

    /// Whether it can refuse a request: an access module (R5, R12).
    #[must_use]
    pub const fn is_access(self) -> bool {
        match self {
            Self::TlsTermination
            | Self::MutualTls
            | Self::IpRestriction
            | Self::UserAgentFilter
            | Self::WebhookVerification
            | Self::Oauth
            | Self::Oidc
            | Self::Saml
            | Self::TrafficPolicy
            | Self::CircuitBreaker
            | Self::WebsocketTcpConverter => true,
            Self::RequestHeaders | Self::ResponseHeaders | Self::Compression => false,
        }
    }
}

/// The modules of a route. A module with `enabled: false` keeps its configuration and does
/// nothing; declarations from manifests never make one, except `compression`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields, bound(deserialize = "P: Deserialize<'de>"))]
pub struct Modules<P> {
    /// Allowed and denied addresses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ip_restriction: Option<IpRestriction<P>>,
    /// Allowed and denied user agents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_agent_filter: Option<UserAgentFilter>,
    /// Webhook signatures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub webhook_verification: Option<WebhookVerification>,
    /// OAuth login.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oauth: Option<Oauth>,
    /// OpenID Connect login.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oidc: Option<Oidc>,
    /// SAML login.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub saml: Option<Saml>,
    /// Traffic policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traffic_policy: Option<TrafficPolicy>,
    /// Circuit breaker.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub circuit_breaker: Option<CircuitBreaker>,
    /// WebSocket to TCP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub websocket_tcp_converter: Option<Switch>,
    /// Changes of request headers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_headers: Option<HeaderChanges>,
    /// Changes of response headers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_headers: Option<HeaderChanges>,
    /// Compression.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compression: Option<Switch>,
}

impl<P> Default for Modules<P> {
    fn default() -> Self {
        Self {
            ip_restriction: None,
            user_agent_filter: None,
            webhook_verification: None,
            oauth: None,
            oidc: None,
            saml: None,
            traffic_policy: None,
            circuit_breaker: None,
            websocket_tcp_converter: None,
            request_headers: None,
            response_headers: None,
            compression: None,
        }
    }
}

impl<P> Modules<P> {
    /// The kinds that are set, enabled or not, in order.
    #[must_use]
    pub fn kinds(&self) -> BTreeSet<ModuleKind> {
        let Self {
            ip_restriction,
            user_agent_filter,
            webhook_verification,
            oauth,
            oidc,
            saml,
            traffic_policy,
            circuit_breaker,
            websocket_tcp_converter,
            request_headers,
            response_headers,
            compression,
        } = self;
        [
            (ModuleKind::IpRestriction, ip_restriction.is_some()),
            (ModuleKind::UserAgentFilter, user_agent_filter.is_some()),
            (
                ModuleKind::WebhookVerification,
                webhook_verification.is_some(),
            ),
            (ModuleKind::Oauth, oauth.is_some()),
            (ModuleKind::Oidc, oidc.is_some()),
            (ModuleKind::Saml, saml.is_some()),
            (ModuleKind::TrafficPolicy, traffic_policy.is_some()),
            (ModuleKind::CircuitBreaker, circuit_breaker.is_some()),
            (
                ModuleKind::WebsocketTcpConverter,
                websocket_tcp_converter.is_some(),
            ),
            (ModuleKind::RequestHeaders, request_headers.is_some()),
            (ModuleKind::ResponseHeaders, response_headers.is_some()),
            (ModuleKind::Compression, compression.is_some()),
        ]
        .into_iter()
        .filter_map(|(kind, set)| set.then_some(kind))
        .collect()
    }

    /// Every secret, and what each is. With [`Self::secrets_mut`] the one place that knows where
    /// modules have secrets.
    pub fn secrets(&self) -> impl Iterator<Item = (&'static str, &Secret)> {
        let Self {
            ip_restriction: _,
            user_agent_filter: _,
            webhook_verification,
            oauth,
            oidc,
            saml: _,
            traffic_policy: _,
            circuit_breaker: _,
            websocket_tcp_converter: _,
            request_headers: _,
            response_headers: _,
            compression: _,
        } = self;
        let webhook = webhook_verification
            .as_ref()
            .and_then(|module| module.secret.as_ref());
        let application = oauth
            .as_ref()
            .and_then(|module| module.application.as_ref());
        [
            ("a webhook's secret", webhook),
            (
                "an OAuth client's secret",
                application.map(|application| &application.client_secret),
            ),
            (
                "an OpenID client's secret",
                oidc.as_ref().map(|module| &module.client_secret),
            ),
        ]
        .into_iter()
        .filter_map(|(what, secret)| Some((what, secret?)))
    }

    /// Every secret, to be written over.
    fn secrets_mut(&mut self) -> impl Iterator<Item = &mut Secret> {
        let Self {
            ip_restriction: _,
            user_agent_filter: _,
            webhook_verification,
            oauth,
            oidc,
            saml: _,
            traffic_policy: _,
            circuit_breaker: _,
            websocket_tcp_converter: _,
            request_headers: _,
            response_headers: _,
            compression: _,
        } = self;
        let webhook = webhook_verification
            .as_mut()
            .and_then(|module| module.secret.as_mut());
        let application = oauth
            .as_mut()
            .and_then(|module| module.application.as_mut());
        [
            webhook,
            application.map(|application| &mut application.client_secret),
            oidc.as_mut().map(|module| &mut module.client_secret),
        ]
        .into_iter()
        .flatten()
    }

    /// Blanks every secret.
    pub fn hide_secrets(&mut self) {
        for secret in self.secrets_mut() {
            *secret = Secret::new(String::new());
        }
    }

    /// The same modules with the policies named another way.
    ///
    /// # Errors
    /// The first error of `name`.
    pub fn with_policies<Q, E>(self, name: impl FnMut(P) -> Result<Q, E>) -> Result<Modules<Q>, E> {
        let Self {
            ip_restriction,
            user_agent_filter,
            webhook_verification,
            oauth,
            oidc,
            saml,
            traffic_policy,
            circuit_breaker,
            websocket_tcp_converter,
            request_headers,
            response_headers,
            compression,
        } = self;
        let ip_restriction = match ip_restriction {
            None => None,
            Some(IpRestriction { enabled, policies }) => Some(IpRestriction {
                enabled,
                policies: policies.into_iter().map(name).collect::<Result<_, E>>()?,
            }),
        };
        Ok(Modules {
            ip_restriction,
            user_agent_filter,
            webhook_verification,
            oauth,
            oidc,
            saml,
            traffic_policy,
            circuit_breaker,
            websocket_tcp_converter,
            request_headers,
            response_headers,
            compression,
        })
    }
}

/// Pooled IP policies: an address passes when an allow rule contains it and no deny rule does.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IpRestriction<P> {
    /// Whether it is applied.
    pub enabled: bool,
    /// The policies, in the order written.
    pub policies: Vec<P>,
}

/// What a rule does with the addresses of its range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum IpAction {
    /// Lets in, unless denied.
    Allow,
    /// Refuses, whatever allows.
    Deny,
}

/// The content of an IP policy: canonical networks and what is done with each.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct IpRules(pub BTreeMap<IpNet, IpAction>);

impl IpRules {
    /// Whether it has an allow rule at all: pooled policies without one would let nobody in (R14).
    #[must_use]
    pub fn allows_somebody(&self) -> bool {
        self.0.values().any(|action| *action == IpAction::Allow)
    }
}

/// Expressions on the user agent.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UserAgentFilter {
    /// Whether it is applied.
    pub enabled: bool,
    /// Expressions that let in.
    pub allow: Vec<String>,
    /// Expressions that refuse, unless allowed.
    pub deny: Vec<String>,
}

/// A webhook sender's signature scheme and key.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WebhookVerification {
    /// Whether it is applied.
    pub enabled: bool,
    /// The scheme's name, lower case.
    pub provider: String,
    /// The key; absent only for `sns`.
    pub secret: Option<Secret>,
}

/// What the three login modules share.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoginSession {
    /// CORS preflights pass without login.
    pub options_passthrough: bool,
    /// Begin of the cookies' names; empty means the default.
    pub cookie_prefix: String,
    /// Seconds without a request after which the login ends; 0: none.
    pub inactivity_timeout: u32,
    /// Seconds after which the login ends in any case; 0: the edge's ceiling.
    pub maximum_duration: u32,
}

/// The OAuth providers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OauthProvider {
    /// Google.
    Google,
    /// GitHub.
    Github,
    /// GitLab.
    Gitlab,
    /// Amazon.
    Amazon,
    /// Facebook.
    Facebook,
    /// Microsoft.
    Microsoft,
    /// Twitch.
    Twitch,
    /// LinkedIn.
    Linkedin,
}

/// An OAuth application of the user's own.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OauthApplication {
    /// The client id.
    pub client_id: String,
    /// The client secret.
    pub client_secret: Secret,
}

/// Login with an OAuth provider.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Oauth {
    /// Whether it is applied.
    pub enabled: bool,
    /// What the logins share.
    pub session: LoginSession,
    /// Seconds after which the provider is asked again; 0: only at login.
    pub auth_check_interval: u32,
    /// Who logs in.
    pub provider: OauthProvider,
    /// The user's own application; absent: the operator's.
    pub application: Option<OauthApplication>,
    /// Further scopes.
    pub scopes: BTreeSet<String>,
    /// Allowed addresses, lower case.
    pub email_addresses: BTreeSet<String>,
    /// Allowed domains of addresses, lower case.
    pub email_domains: BTreeSet<String>,
    /// Allowed GitHub teams.
    pub teams: BTreeSet<String>,
    /// Allowed GitHub organizations.
    pub organizations: BTreeSet<String>,
}

/// Login with an OpenID provider.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Oidc {
    /// Whether it is applied.
    pub enabled: bool,
    /// What the logins share.
    pub session: LoginSession,
    /// The issuer's URL.
    pub issuer: String,
    /// The client id.
    pub client_id: String,
    /// The client secret.
    pub client_secret: Secret,
    /// Scopes to ask for.
    pub scopes: BTreeSet<String>,
}

/// Login with a SAML identity provider.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Saml {
    /// Whether it is applied.
    pub enabled: bool,
    /// What the logins share.
    pub session: LoginSession,
    /// The identity provider's metadata, XML.
    pub idp_metadata: String,
    /// Ask for a fresh login.
    pub force_authn: bool,
    /// Accept logins begun at the provider.
    pub allow_idp_initiated: bool,
    /// Groups of which one is needed; empty: none.
    pub authorized_groups: BTreeSet<String>,
    /// The NameID format.
    pub nameid_format: String,
}

/// A traffic policy document in either form, as text.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrafficPolicy {
    /// Whether it is applied.
    pub enabled: bool,
    /// The document, JSON or YAML.
    pub document: String,
}

/// Circuit breaker.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CircuitBreaker {
    /// Whether it is applied.
    pub enabled: bool,
    /// Seconds for which a tripped breaker refuses.
    pub tripped_duration: u32,
    /// Seconds that the statistics cover.
    pub rolling_window: u32,
    /// Slices of the window, 1 to 128.
    pub num_buckets: u32,
    /// Requests in the window below which it never trips.
    pub volume_threshold: u32,
    /// Share of failed requests at which it trips, in millionths (0 to 1,000,000), so that two
    /// sets compare exactly.
    pub error_threshold_millionths: u32,
}

/// Changes of headers: removal, then addition, so that naming one in both replaces it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HeaderChanges {
    /// Whether they are applied.
    pub enabled: bool,
    /// Lower-case name to value.
    pub add: BTreeMap<String, String>,
    /// Lower-case names.
    pub remove: BTreeSet<String>,
}

/// A module that is only on or off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Switch {
    /// Whether it is applied.
    pub enabled: bool,
}

/// TLS versions that a minimum may name; ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum TlsVersion {
    /// TLS 1.2 (RFC 5246).
    #[serde(rename = "1.2")]
    V1_2,
    /// TLS 1.3 (RFC 8446).
    #[serde(rename = "1.3")]
    V1_3,
}

/// The edge-wide modules: demands on every connection of a host (R13).
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EdgeDemands {
    /// Lowest TLS version; absent: the edge's own, 1.2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls_minimum: Option<TlsVersion>,
    /// Certificate authorities, in PEM, of which one must vouch for the client; absent: no client
    /// certificate is asked for. Never empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mutual_tls: Option<BTreeSet<String>>,
}

impl EdgeDemands {
    /// The kinds that are set.
    #[must_use]
    pub fn kinds(&self) -> BTreeSet<ModuleKind> {
        let Self {
            tls_minimum,
            mutual_tls,
        } = self;
        let mut kinds = BTreeSet::new();
        if tls_minimum.is_some() {
            kinds.insert(ModuleKind::TlsTermination);
        }
        if mutual_tls.is_some() {
            kinds.insert(ModuleKind::MutualTls);
        }
        kinds
    }
}
