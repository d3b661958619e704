//! Everything that can be asked of an edge, and why it refuses.
//!
//! A command is a value: the planner makes them, the API server translates requests into them,
//! the log prints them. Each is atomic: it is applied whole or not at all.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::SocketAddr,
};

use model::{
    backend::{BackendKind, ServicePort},
    host::HostPattern,
    id::{BackendId, CertificateId, DomainId, EdgeId, IpPolicyId, IpRuleId, KeyId, RouteId},
    module::{EdgeDemands, IpAction, IpRules, ModuleKind, Modules},
    object::ObjectRef,
    place::Match,
    secret::{Digest, Secret},
    time::{Span, Timestamp},
};
use serde::{Deserialize, Serialize};

use crate::state::{Declared, MutualTls, Phase, PolicyRef, Role, RouteBackend, TlsTermination};

/// What must be so for a write to be made (fencing of late writers).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Expected {
    /// It is not there.
    Absent,
    /// It is there, at this generation.
    Generation(u64),
    /// Anything goes (API users).
    Any,
}

/// A whole edge as a controller wants it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EdgeSpec {
    /// The edge's id; derived by controllers from their name and the host.
    pub id: EdgeId,
    /// The generation written over.
    pub expected: Expected,
    /// The owning controller; absent for an API user's atomic replacement.
    pub controller: Option<String>,
    /// Hosts it answers for.
    pub hosts: BTreeSet<HostPattern>,
    /// Edge-wide modules.
    pub demands: EdgeDemands,
    /// The certificate to show.
    pub certificate: Option<CertificateId>,
    /// Free text.
    pub description: String,
    /// Free text.
    pub metadata: String,
    /// Every route; one that is not named is gone.
    pub routes: Vec<RouteSpec>,
}

/// A whole route as a controller wants it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RouteSpec {
    /// The route's id; derived by controllers from edge and match.
    pub id: RouteId,
    /// What it matches.
    pub place: Match,
    /// Its modules.
    pub modules: Modules<PolicyRef>,
    /// Its backend; absent: closed.
    pub backend: Option<RouteBackend>,
    /// What refuses on top (R17).
    pub also_refuse: BTreeSet<PolicyRef>,
    /// Free text.
    pub description: String,
    /// Free text.
    pub metadata: String,
    /// What the controller must remember.
    pub record: Option<RecordSpec>,
}

/// A record as written: the edge stamps `since` when the phase changes and turns `close_after`
/// into an instant of its own clock then; a repeated write resets neither.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordSpec {
    /// The object that declares it.
    pub owner: ObjectRef,
    /// The declaration now.
    pub wanted: Option<Declared>,
    /// The declaration in force.
    pub serving: Option<Declared>,
    /// Whether the served or declared set had access modules.
    pub has_access_modules: bool,
    /// The objects that the served set rests on.
    pub rests_on: BTreeSet<ObjectRef>,
    /// Where it stands.
    pub phase: Phase,
    /// How long after the phase began the edge closes the route by itself; of a loss, what was
    /// spent of the grace before counts.
    pub close_after: Option<Span>,
}

/// Changes to texts: absent leaves as is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Texts {
    /// New description.
    pub description: Option<String>,
    /// New metadata.
    pub metadata: Option<String>,
}

/// Changes to an edge made by one PATCH: absent leaves as is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EdgePatch {
    /// New texts.
    pub texts: Texts,
    /// New hosts.
    pub hosts: Option<BTreeSet<HostPattern>>,
    /// New TLS termination module.
    pub tls_termination: Option<TlsTermination>,
    /// New mutual TLS module.
    pub mutual_tls: Option<MutualTls>,
}

/// Changes to a route made by one PATCH: a module that is set replaces the old one, an absent one
/// leaves it; nothing is removed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RoutePatch {
    /// New texts.
    pub texts: Texts,
    /// New match.
    pub place: Option<Match>,
    /// Modules to set.
    pub modules: Modules<PolicyName>,
    /// Backend to set.
    pub backend: Option<RouteBackend>,
}

/// How an API user names a policy: always its newest version.
pub type PolicyName = IpPolicyId;

/// A command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "snake_case", deny_unknown_fields)]
pub enum Command {
    /// Raises the term; refused below the present one (R19).
    RaiseTerm {
        /// The new term.
        term: u64,
    },
    /// Closes every route whose deadline has passed. Issued by the edge itself.
    CloseOverdue,
    /// Closes these routes: what a restart finds in the journal of closings that could not be
    /// saved (R10).
    CloseRoutes {
        /// The routes.
        routes: BTreeSet<RouteId>,
    },

    /// Makes or replaces a whole edge (atomicity *replace*).
    ReplaceEdge(Box<EdgeSpec>),
    /// Makes or replaces one route of an edge (atomicity *replace*).
    ReplaceRoute {
        /// The edge.
        edge: EdgeId,
        /// The edge's generation written over.
        expected: Expected,
        /// The route.
        route: Box<RouteSpec>,
    },
    /// Makes an edge without routes.
    CreateEdge {
        /// Its id.
        id: EdgeId,
        /// The owning controller.
        controller: Option<String>,
        /// Content.
        patch: EdgePatch,
    },
    /// Changes an edge.
    UpdateEdge {
        /// Which.
        id: EdgeId,
        /// The generation written over.
        expected: Expected,
        /// Changes.
        patch: EdgePatch,
    },
    /// Removes an edge-wide module (`TlsTermination` or `MutualTls`).
    DeleteEdgeModule {
        /// Which edge.
        id: EdgeId,
        /// The generation written over.
        expected: Expected,
        /// Which module.
        kind: ModuleKind,
    },
    /// Deletes an edge with its routes.
    DeleteEdge {
        /// Which.
        id: EdgeId,
        /// The generation written over.
        expected: Expected,
    },
    /// Makes a route.
    CreateRoute {
        /// The edge.
        edge: EdgeId,
        /// The edge's generation written over.
        expected: Expected,
        /// The route's id.
        id: RouteId,
        /// What it matches.
        place: Match,
        /// Modules, backend and texts.
        patch: Box<RoutePatch>,
    },
    /// Changes a route.
    UpdateRoute {
        /// The edge.
        edge: EdgeId,
        /// The edge's generation written over.
        expected: Expected,
        /// Which.
        id: RouteId,
        /// Changes.
        patch: Box<RoutePatch>,
    },
    /// Removes a module from a route (not the backend).
    DeleteRouteModule {
        /// The edge.
        edge: EdgeId,
        /// The edge's generation written over.
        expected: Expected,
        /// The route.
        id: RouteId,
        /// Which module.
        kind: ModuleKind,
    },
    /// Takes the backend from a route: closes it.
    DeleteRouteBackend {
        /// The edge.
        edge: EdgeId,
        /// The edge's generation written over.
        expected: Expected,
        /// The route.
        id: RouteId,
    },
    /// Writes what a controller must remember about a route, and nothing else: for edges without
    /// *replace*, where a record cannot travel with the content. Stamps as in [`RecordSpec`];
    /// a later change of the route's content makes `serving.digest` void as ever.
    SetRecord {
        /// The edge.
        edge: EdgeId,
        /// The edge's generation written over.
        expected: Expected,
        /// The route.
        id: RouteId,
        /// The record.
        record: Box<RecordSpec>,
    },
    /// Deletes a route.
    DeleteRoute {
        /// The edge.
        edge: EdgeId,
        /// The edge's generation written over.
        expected: Expected,
        /// Which.
        id: RouteId,
    },

    /// Makes a controller's IP policy, whole and for good; the same again changes nothing.
    PutIpPolicy {
        /// Its id, derived from name and content.
        id: IpPolicyId,
        /// The controller.
        controller: String,
        /// Free text.
        description: String,
        /// Its name for people, `NAMESPACE/NAME`.
        metadata: String,
        /// Its rules.
        rules: IpRules,
    },
    /// Makes an empty IP policy of an API user.
    CreateIpPolicy {
        /// Its id.
        id: IpPolicyId,
        /// Texts.
        texts: Texts,
    },
    /// Changes an IP policy's texts.
    UpdateIpPolicy {
        /// Which.
        id: IpPolicyId,
        /// Texts.
        texts: Texts,
    },
    /// Deletes an IP policy that nothing refers to.
    DeleteIpPolicy {
        /// Which.
        id: IpPolicyId,
    },
    /// Adds a rule: a new version of the policy, and every route that no controller owns moves.
    CreateIpRule {
        /// The policy.
        policy: IpPolicyId,
        /// The rule's id.
        id: IpRuleId,
        /// The canonical network.
        cidr: ipnet::IpNet,
        /// What is done with it.
        action: IpAction,
        /// Texts.
        texts: Texts,
    },
    /// Changes a rule.
    UpdateIpRule {
        /// Which.
        id: IpRuleId,
        /// New network.
        cidr: Option<ipnet::IpNet>,
        /// Texts.
        texts: Texts,
    },
    /// Deletes a rule.
    DeleteIpRule {
        /// Which.
        id: IpRuleId,
    },

    /// Makes a backend; the same again changes nothing.
    PutBackend {
        /// Its id.
        id: BackendId,
        /// The owning controller.
        controller: Option<String>,
        /// What it is.
        kind: BackendKind,
        /// The Service port it stands for.
        service: Option<ServicePort>,
        /// Where it is reached.
        endpoints: BTreeSet<SocketAddr>,
        /// Texts.
        texts: Texts,
    },
    /// Changes an API user's backend: routes that use it move with it.
    UpdateBackend {
        /// Which.
        id: BackendId,
        /// New content.
        kind: Option<BackendKind>,
        /// Texts.
        texts: Texts,
    },
    /// Replaces the endpoint addresses of backends.
    SetEndpoints {
        /// By backend.
        endpoints: BTreeMap<BackendId, BTreeSet<SocketAddr>>,
    },
    /// Deletes a backend that nothing refers to.
    DeleteBackend {
        /// Which.
        id: BackendId,
    },

    /// Makes a certificate; the same again changes nothing.
    PutCertificate {
        /// Its id.
        id: CertificateId,
        /// The owning controller.
        controller: Option<String>,
        /// The chain.
        chain_pem: String,
        /// The key.
        key_pem: Secret,
        /// Texts.
        texts: Texts,
    },
    /// Changes a certificate's texts.
    UpdateCertificate {
        /// Which.
        id: CertificateId,
        /// Texts.
        texts: Texts,
    },
    /// Deletes a certificate that nothing refers to.
    DeleteCertificate {
        /// Which.
        id: CertificateId,
    },

    /// Reserves a domain, or changes who owns it and whether it is declared.
    PutDomain {
        /// Its id.
        id: DomainId,
        /// The controller.
        controller: Option<String>,
        /// The host.
        host: HostPattern,
        /// The owning namespace.
        namespace: Option<String>,
        /// The namespace that it passes to when its last declaration ends.
        #[serde(default)]
        heir: Option<String>,
        /// Whether something declares it now; the edge stamps the instant when that ends.
        declared: bool,
        /// Texts.
        texts: Texts,
    },
    /// Releases a domain that no edge uses.
    DeleteDomain {
        /// Which.
        id: DomainId,
    },

    /// Makes an API key.
    CreateKey {
        /// Its id.
        id: KeyId,
        /// What it may do.
        role: Role,
        /// SHA-256 of its token.
        token_digest: Digest,
        /// Texts.
        texts: Texts,
    },
    /// Changes an API key's texts.
    UpdateKey {
        /// Which.
        id: KeyId,
        /// Texts.
        texts: Texts,
    },
    /// Deletes an API key.
    DeleteKey {
        /// Which.
        id: KeyId,
    },
}

/// Who asks, and under which clock and limits.
#[derive(Clone, Debug)]
pub struct Context<'a> {
    /// The edge's clock.
    pub now: Timestamp,
    /// What the writer may do.
    pub role: Role,
    /// The writer's term, if it is a controller.
    pub term: Option<u64>,
    /// What this edge can enforce; anything else is refused, never stored.
    pub enforceable: &'a BTreeSet<ModuleKind>,
    /// How much of everything there may be.
    pub limits: &'a Limits,
}

/// Upper bounds (edge API, section on open points); every one is configurable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Edges in all.
    pub edges: usize,
    /// Hosts of one edge.
    pub hosts_per_edge: usize,
    /// Routes of one edge.
    pub routes_per_edge: usize,
    /// Bytes of a path.
    pub path_bytes: usize,
    /// Policies of one IP restriction.
    pub policies_per_module: usize,
    /// Rules of one IP policy.
    pub rules_per_policy: usize,
    /// Entries of `add`, and of `remove`, of a headers module.
    pub headers_per_module: usize,
    /// Backends, policies, certificates, domains, keys: each.
    pub objects_per_kind: usize,
    /// Bytes of an HTTP response backend's body.
    pub response_body_bytes: usize,
    /// Labels of a tunnel group.
    pub labels: usize,
    /// Endpoints of one backend.
    pub endpoints_per_backend: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            edges: 20_000,
            hosts_per_edge: 100,
            routes_per_edge: 10_000,
            path_bytes: 2048,
            policies_per_module: 10,
            rules_per_policy: 10_000,
            headers_per_module: 100,
            objects_per_kind: 100_000,
            response_body_bytes: 64 * 1024,
            labels: 32,
            endpoints_per_backend: 1000,
        }
    }
}
