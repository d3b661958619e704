//! What an edge knows. Shared pieces are behind `Arc`, so that a new state costs what changed,
//! and so that store and compiler find out by pointer what did.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::SocketAddr,
    sync::Arc,
};

use model::{
    backend::{BackendKind, ServicePort},
    host::HostPattern,
    id::{BackendId, CertificateId, DomainId, EdgeId, IpPolicyId, IpRuleId, KeyId, RouteId},
    module::{EdgeDemands, IpAction, IpRules, Modules, TlsVersion},
    object::ObjectRef,
    place::Match,
    secret::{Digest, Secret},
    time::{Span, Timestamp},
};
use serde::{Deserialize, Serialize};

/// The whole state of an edge.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EdgeState {
    /// Counts the commands that changed something.
    pub revision: u64,
    /// The highest writer's term seen; writes of a lower one are refused (R19).
    pub term: u64,
    /// HTTPS edges with their routes.
    pub edges: BTreeMap<EdgeId, Arc<Edge>>,
    /// Backends of every kind.
    pub backends: BTreeMap<BackendId, Arc<Backend>>,
    /// IP policies with their versions.
    pub ip_policies: BTreeMap<IpPolicyId, Arc<IpPolicy>>,
    /// TLS certificates with their keys.
    pub certificates: BTreeMap<CertificateId, Arc<Certificate>>,
    /// Reserved domains, which are also the record of who owns a host (R20).
    pub domains: BTreeMap<DomainId, Arc<Domain>>,
    /// API keys.
    pub keys: BTreeMap<KeyId, Arc<ApiKey>>,
}

/// The texts and the instant that every resource of the edge API has.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Meta {
    /// At most 255 bytes.
    pub description: String,
    /// At most 4096 bytes.
    pub metadata: String,
    /// When it was made.
    pub created_at: Timestamp,
}

/// An HTTPS edge: what answers for its hosts on the HTTPS port.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Edge {
    /// Texts and age.
    pub meta: Meta,
    /// The controller that owns it; absent: made through the API by a user.
    pub controller: Option<String>,
    /// The hosts it answers for (hostports, always 443). No two edges share one.
    pub hosts: BTreeSet<HostPattern>,
    /// TLS termination module.
    pub tls_termination: Option<TlsTermination>,
    /// Mutual TLS module.
    pub mutual_tls: Option<MutualTls>,
    /// The certificate to show; absent: one of the local authority.
    pub certificate: Option<CertificateId>,
    /// The revision of the last change of the edge or of anything on it; what a writer must
    /// expect. It never returns, not even when the edge is deleted and made again.
    pub generation: u64,
    /// Its routes. No two have one match.
    pub routes: BTreeMap<RouteId, Route>,
}

/// The TLS termination module of an HTTPS edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TlsTermination {
    /// Whether it is applied.
    pub enabled: bool,
    /// Lowest version; absent: the edge's own.
    pub minimum: Option<TlsVersion>,
}

/// The mutual TLS module of an HTTPS edge.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MutualTls {
    /// Whether it is applied.
    pub enabled: bool,
    /// Certificate authorities in PEM; never empty.
    pub authorities: BTreeSet<String>,
}

impl Edge {
    /// The demands in force: those of the enabled modules.
    #[must_use]
    pub fn demands(&self) -> EdgeDemands {
        EdgeDemands {
            tls_minimum: self
                .tls_termination
                .filter(|m| m.enabled)
                .and_then(|m| m.minimum),
            mutual_tls: self
                .mutual_tls
                .as_ref()
                .filter(|m| m.enabled)
                .map(|m| m.authorities.clone()),
        }
    }
}

/// A version of an IP policy.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicyRef {
    /// The policy.
    pub id: IpPolicyId,
    /// The version, from 1.
    pub version: u64,
}

/// A route of an edge.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Route {
    /// Texts and age.
    pub meta: Meta,
    /// What it matches: its identity on the edge.
    pub place: Match,
    /// Its modules.
    pub modules: Modules<PolicyRef>,
    /// Its backend. Absent, or not enabled: the route is closed.
    pub backend: Option<RouteBackend>,
    /// Policies that refuse on top of `modules`: what the newest valid version refuses while the
    /// route is held on an older one (R17). Each alone must let an address pass.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub also_refuse: BTreeSet<PolicyRef>,
    /// The revision of the last change of this route's content (not of its record or texts).
    pub generation: u64,
    /// What its controller must remember; absent on routes that no controller owns.
    pub record: Option<Record>,
}

impl Route {
    /// The backend that requests reach, if the route is open.
    #[must_use]
    pub fn open_backend(&self) -> Option<&BackendId> {
        self.backend.as_ref().filter(|b| b.enabled).map(|b| &b.id)
    }
}

/// The backend module of a route.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RouteBackend {
    /// Whether it is applied.
    pub enabled: bool,
    /// Which.
    pub id: BackendId,
}

/// A generation of a declaration and its content's digest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Declared {
    /// Counts the changes of the declaration, from 1.
    pub generation: u64,
    /// Digest of what it says; absent when it could never be read whole.
    pub digest: Option<Digest>,
}

/// Where a route stands between its declaration and what it serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Serves its declaration.
    Open,
    /// Serves an earlier one.
    Held,
    /// Serves, but an object of its set is gone: closes at the deadline (R2).
    Lost,
    /// Refuses.
    Closed,
    /// Withdrawn: refuses until it may be deleted (R5).
    Removing,
}

/// What a controller must remember about a route, kept where it outlives the controller (R19).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// The object that declares it.
    pub owner: ObjectRef,
    /// The declaration now; absent while it is being removed.
    pub wanted: Option<Declared>,
    /// The declaration in force; absent while closed.
    pub serving: Option<Declared>,
    /// Whether the served or the declared set had access modules (R5).
    pub has_access_modules: bool,
    /// The objects that the served set rests on (R2).
    pub rests_on: BTreeSet<ObjectRef>,
    /// Where it stands.
    pub phase: Phase,
    /// Since when.
    pub since: Timestamp,
    /// How much of the grace for a lost object (R2) was spent before this phase. It is kept over
    /// every hold and forgotten only when the route serves its declaration, or closes: a file
    /// that breaks again and again suspends the grace (R19) and does not renew it.
    #[serde(default)]
    pub lost_for: Span,
    /// When the edge closes it by itself.
    pub close_at: Option<Timestamp>,
}

impl Record {
    /// The instant `span` after the phase began, less what was spent of it before.
    #[must_use]
    pub const fn closes_at(&self, span: Span) -> Timestamp {
        match self.phase {
            Phase::Lost => self.since.after(span.minus(self.lost_for)),
            Phase::Open | Phase::Held | Phase::Closed | Phase::Removing => self.since.after(span),
        }
    }

    /// The span that [`Record::close_at`] was made from.
    #[must_use]
    pub fn close_after(&self) -> Option<Span> {
        let spent = match self.phase {
            Phase::Lost => self.lost_for,
            Phase::Open | Phase::Held | Phase::Closed | Phase::Removing => Span::ZERO,
        };
        Some(self.close_at?.since(self.since).plus(spent))
    }
}

/// A backend.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Backend {
    /// Texts and age.
    pub meta: Meta,
    /// The controller that owns it.
    pub controller: Option<String>,
    /// What it is.
    pub kind: BackendKind,
    /// The Service port it stands for.
    pub service: Option<ServicePort>,
    /// Where it is reached at the moment. Replaceable without a new generation of any route.
    pub endpoints: BTreeSet<SocketAddr>,
}

/// A rule of an IP policy as the API shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IpRule {
    /// Texts and age.
    pub meta: Meta,
    /// The canonical network.
    pub cidr: ipnet::IpNet,
    /// What is done with it.
    pub action: IpAction,
}

/// An IP policy. A change makes a new version; a version never changes (R17).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IpPolicy {
    /// Texts and age.
    pub meta: Meta,
    /// The controller that owns it. A controller's policy has one version only: it is named by
    /// its content, and another content is another policy.
    pub controller: Option<String>,
    /// The rules of the newest version.
    pub rules: BTreeMap<IpRuleId, IpRule>,
    /// The newest version.
    pub newest: u64,
    /// Content by version: the newest, and every one that a route still refers to.
    pub versions: BTreeMap<u64, IpRules>,
}

/// A TLS certificate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Certificate {
    /// Texts and age.
    pub meta: Meta,
    /// The controller that owns it.
    pub controller: Option<String>,
    /// The chain in PEM, leaf first.
    pub chain_pem: String,
    /// The key in PEM; no answer of the API ever holds it.
    pub key_pem: Secret,
}

/// A reserved domain, and who owns it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Domain {
    /// Texts and age.
    pub meta: Meta,
    /// The controller that made it.
    pub controller: Option<String>,
    /// The host or wildcard.
    pub host: HostPattern,
    /// The namespace that owns it; absent: reserved through the API, for any namespace.
    pub namespace: Option<String>,
    /// The namespace that it passes to when its last declaration ends (`hand-over`).
    #[serde(default)]
    pub heir: Option<String>,
    /// When it was last seen to have no declaration any more; absent while declared.
    pub undeclared_since: Option<Timestamp>,
}

/// What an API key may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Reads, never a secret.
    Read,
    /// Reads and writes what no controller owns.
    Write,
    /// Reads and writes everything, and raises terms.
    Controller,
}

/// An API key. The token itself is not kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApiKey {
    /// Texts and age.
    pub meta: Meta,
    /// What it may do.
    pub role: Role,
    /// SHA-256 of the token.
    pub token_digest: Digest,
}
