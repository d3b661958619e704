//! Modules on the wire: their names, and both forms of those that this edge enforces.
//!
//! What a request says is read here; whether the edge takes it (how much, which names, which
//! combinations) is decided by its state machine, once.
//!
//! For every other kind there is the name alone. A write of it is refused unread
//! ([`not_enforced`]): an edge that stored a login it does not enforce would show a protection
//! that is not there.

use std::collections::{BTreeMap, BTreeSet};

use model::{
    id::{BackendId, IpPolicyId},
    module::{HeaderChanges, IpRestriction, ModuleKind, TlsVersion},
};
use serde::{Deserialize, Serialize};

use crate::{
    error::{ApiError, Code},
    json::Members,
    list::Reference,
};

/// A module as paths and bodies name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ModuleName {
    /// The backend, which counts as a module at this API.
    Backend,
    /// A module proper.
    Kind(ModuleKind),
    /// `policy`, the predecessor of `traffic_policy`.
    OldPolicy,
}

impl ModuleName {
    /// Those of a route, in the order of the reference.
    pub const OF_ROUTES: [Self; 14] = [
        Self::Backend,
        Self::Kind(ModuleKind::IpRestriction),
        Self::Kind(ModuleKind::CircuitBreaker),
        Self::Kind(ModuleKind::Compression),
        Self::Kind(ModuleKind::RequestHeaders),
        Self::Kind(ModuleKind::ResponseHeaders),
        Self::Kind(ModuleKind::WebhookVerification),
        Self::Kind(ModuleKind::Oauth),
        Self::Kind(ModuleKind::Saml),
        Self::Kind(ModuleKind::Oidc),
        Self::Kind(ModuleKind::WebsocketTcpConverter),
        Self::Kind(ModuleKind::UserAgentFilter),
        Self::Kind(ModuleKind::TrafficPolicy),
        Self::OldPolicy,
    ];

    /// Those of an HTTPS edge.
    pub const OF_EDGES: [Self; 2] = [
        Self::Kind(ModuleKind::MutualTls),
        Self::Kind(ModuleKind::TlsTermination),
    ];

    /// The name on the wire.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::Backend => "backend",
            Self::OldPolicy => "policy",
            Self::Kind(kind) => match kind {
                ModuleKind::TlsTermination => "tls_termination",
                ModuleKind::MutualTls => "mutual_tls",
                ModuleKind::IpRestriction => "ip_restriction",
                ModuleKind::UserAgentFilter => "user_agent_filter",
                ModuleKind::WebhookVerification => "webhook_verification",
                ModuleKind::Oauth => "oauth",
                ModuleKind::Oidc => "oidc",
                ModuleKind::Saml => "saml",
                ModuleKind::TrafficPolicy => "traffic_policy",
                ModuleKind::CircuitBreaker => "circuit_breaker",
                ModuleKind::WebsocketTcpConverter => "websocket_tcp_converter",
                ModuleKind::RequestHeaders => "request_headers",
                ModuleKind::ResponseHeaders => "response_headers",
                ModuleKind::Compression => "compression",
            },
        }
    }

    /// Whether a body of it can be read here. Whatever cannot is refused unread.
    #[must_use]
    pub const fn is_readable(self) -> bool {
        match self {
            Self::Backend
            | Self::Kind(
                ModuleKind::TlsTermination
                | ModuleKind::IpRestriction
                | ModuleKind::RequestHeaders
                | ModuleKind::ResponseHeaders,
            ) => true,
            Self::OldPolicy
            | Self::Kind(
                ModuleKind::MutualTls
                | ModuleKind::UserAgentFilter
                | ModuleKind::WebhookVerification
                | ModuleKind::Oauth
                | ModuleKind::Oidc
                | ModuleKind::Saml
                | ModuleKind::TrafficPolicy
                | ModuleKind::CircuitBreaker
                | ModuleKind::WebsocketTcpConverter
                | ModuleKind::Compression,
            ) => false,
        }
    }

    /// The module of a route with this name.
    #[must_use]
    pub fn of_route(text: &str) -> Option<Self> {
        Self::OF_ROUTES.into_iter().find(|name| name.text() == text)
    }

    /// The module of an edge with this name.
    #[must_use]
    pub fn of_edge(text: &str) -> Option<Self> {
        Self::OF_EDGES.into_iter().find(|name| name.text() == text)
    }
}

/// The refusal of a module that this edge does not enforce.
#[must_use]
pub fn not_enforced(module: ModuleName) -> ApiError {
    let name = module.text();
    ApiError::new(
        Code::ModuleNotEnforced,
        format!("this edge does not enforce the module {name} yet, so it does not store it"),
    )
    .with("module", name)
}

/// The refusal of anything else that this edge has not.
#[must_use]
pub fn not_available(member: &'static str, why: &str) -> ApiError {
    ApiError::new(
        Code::NotAvailable,
        format!("{member} is not available at this edge: {why}"),
    )
    .with("member", member)
}

/// The backend module as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackendModule {
    /// Whether it is applied.
    pub enabled: bool,
    /// Which backend.
    pub id: BackendId,
}

/// The TLS termination module of an HTTPS edge as written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TlsTermination {
    /// Whether it is applied.
    pub enabled: bool,
    /// Lowest version; absent: the edge's own.
    pub minimum: Option<TlsVersion>,
}

fn enabled(members: &mut Members) -> Result<bool, ApiError> {
    Ok(members.flag("enabled")?.unwrap_or(true))
}

/// Reads a backend module.
///
/// # Errors
/// When it is not one.
pub fn read_backend(mut members: Members) -> Result<BackendModule, ApiError> {
    let enabled = enabled(&mut members)?;
    let id = members.text("backend_id")?.unwrap_or_default();
    members.finish()?;
    let id = BackendId::parse(&id)
        .map_err(|error| ApiError::new(Code::BackendIdInvalid, error.to_string()))?;
    Ok(BackendModule { enabled, id })
}

/// Reads a TLS termination module of an HTTPS edge.
///
/// # Errors
/// When it is not one.
pub fn read_tls_termination(mut members: Members) -> Result<TlsTermination, ApiError> {
    let enabled = enabled(&mut members)?;
    let minimum = members.text("min_version")?.filter(|text| !text.is_empty());
    let elsewhere = members
        .text("terminate_at")?
        .is_some_and(|text| !text.is_empty());
    members.finish()?;
    if elsewhere {
        return Err(ApiError::new(
            Code::TerminateAtNotAccepted,
            "terminate_at is not accepted: HTTPS edges always terminate TLS at the edge",
        ));
    }
    let minimum = match minimum.as_deref() {
        None => None,
        Some("1.2") => Some(TlsVersion::V1_2),
        Some("1.3") => Some(TlsVersion::V1_3),
        Some(other) => {
            return Err(ApiError::new(
                Code::TlsVersionInvalid,
                format!(
                    "min_version is {other:?}; this edge speaks 1.2 and 1.3, and nothing older"
                ),
            ));
        }
    };
    Ok(TlsTermination { enabled, minimum })
}

/// Reads an IP restriction. Order is kept; a policy named twice counts once.
///
/// # Errors
/// When it is not one. That it names a policy at all (R14) is for the edge to see.
pub fn read_ip_restriction(mut members: Members) -> Result<IpRestriction<IpPolicyId>, ApiError> {
    let enabled = enabled(&mut members)?;
    let ids = members.texts("ip_policy_ids")?.unwrap_or_default();
    members.finish()?;
    let mut policies = Vec::with_capacity(ids.len());
    for id in ids {
        let id = IpPolicyId::parse(&id)
            .map_err(|error| ApiError::new(Code::PolicyIdInvalid, error.to_string()))?;
        if !policies.contains(&id) {
            policies.push(id);
        }
    }
    Ok(IpRestriction { enabled, policies })
}

/// Reads a headers module. Names become lower case.
///
/// # Errors
/// When it is not one. Which names may be changed is for the edge to see.
pub fn read_headers(mut members: Members) -> Result<HeaderChanges, ApiError> {
    let enabled = enabled(&mut members)?;
    let pairs = members.pairs("add")?.unwrap_or_default();
    let names = members.texts("remove")?.unwrap_or_default();
    members.finish()?;
    let mut add = BTreeMap::new();
    for (name, value) in pairs {
        let name = name.to_ascii_lowercase();
        if add.insert(name.clone(), value).is_some() {
            return Err(ApiError::new(
                Code::HeaderTwice,
                format!("{name} stands twice, in different cases"),
            ));
        }
    }
    let remove = names.iter().map(|name| name.to_ascii_lowercase()).collect();
    Ok(HeaderChanges {
        enabled,
        add,
        remove,
    })
}

/// The backend module as answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackendAnswer {
    /// Whether it is applied.
    pub enabled: bool,
    /// Which backend.
    pub backend: Reference,
}

/// An IP restriction as answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IpRestrictionAnswer {
    /// Whether it is applied.
    pub enabled: bool,
    /// The policies, in the order written.
    pub ip_policies: Vec<Reference>,
}

/// A headers module as answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeadersAnswer {
    /// Whether it is applied.
    pub enabled: bool,
    /// Lower-case name to value.
    #[serde(default)]
    pub add: BTreeMap<String, String>,
    /// Lower-case names.
    #[serde(default)]
    pub remove: BTreeSet<String>,
}

impl From<HeaderChanges> for HeadersAnswer {
    fn from(changes: HeaderChanges) -> Self {
        let HeaderChanges {
            enabled,
            add,
            remove,
        } = changes;
        Self {
            enabled,
            add,
            remove,
        }
    }
}

/// The TLS termination module of an HTTPS edge as answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TlsTerminationAnswer {
    /// Whether it is applied.
    pub enabled: bool,
    /// Always `edge`.
    pub terminate_at: String,
    /// Lowest version, or null.
    pub min_version: Option<TlsVersion>,
}

impl From<TlsTermination> for TlsTerminationAnswer {
    fn from(module: TlsTermination) -> Self {
        let TlsTermination { enabled, minimum } = module;
        Self {
            enabled,
            terminate_at: "edge".to_owned(),
            min_version: minimum,
        }
    }
}
