//! What the manifests ask for, translated and judged: the planner's wish.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::{
    backend::DeclaredBackend,
    complete_set::CompleteSet,
    diagnostic::Diagnostic,
    host::HostPattern,
    id::{BackendId, IpPolicyId},
    module::{EdgeDemands, IpRules},
    object::{ObjectName, ObjectRef},
    place::Match,
    secret::{Digest, Secret},
};

/// How a declared IP restriction names a policy.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PolicyName {
    /// An IPPolicy object; its content is in [`Declaration::policies`].
    Declared(ObjectName),
    /// A policy that someone made at the edge (31 characters, `ipp_…`).
    AtEdge(IpPolicyId),
}

/// An IPPolicy object that is valid by itself. Whether those that a route pools let anybody in is
/// told of the pool (R14): one without an allow rule is fine beside one that has some.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeclaredPolicy {
    /// Its rules.
    pub rules: IpRules,
    /// Free text stored with it.
    pub description: String,
}

/// A serving certificate from `spec.tls`, already checked against its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeclaredCertificate {
    /// The chain in PEM, leaf first.
    pub chain_pem: String,
    /// The key in PEM.
    pub key_pem: Secret,
}

/// A route's declaration, judged.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(
    clippy::large_enum_variant,
    reason = "nearly every declared route is complete: a box would cost each an allocation"
)]
pub enum Outcome {
    /// Preflight passed: it can be served.
    Complete(CompleteSet<PolicyName>),
    /// Preflight failed; the reasons say why.
    Invalid {
        /// Objects whose loss is why (R2): the route is lost if its served set rested on one.
        missing: BTreeSet<ObjectRef>,
    },
    /// Something it rests on has not been read (R19): nothing changes for it.
    Pending,
}

/// One declared route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeclaredRoute {
    /// What it matches.
    pub place: Match,
    /// The Ingress (or HTTPSEdge) that declares it.
    pub owner: ObjectRef,
    /// Whether it can be served.
    pub outcome: Outcome,
    /// Digest of everything the declaration says, keyed where secrets take part. Equal content
    /// has an equal digest. Absent while an object is missing or pending: then the generation
    /// that was wanted before stays wanted.
    pub digest: Option<Digest>,
    /// Every object that the set rests on, for R2's grace.
    pub rests_on: BTreeSet<ObjectRef>,
    /// Whether the declaration names access modules, understood or not (R5's tombstone).
    pub has_access_modules: bool,
    /// Names of the declared modules.
    pub modules: Vec<String>,
    /// `NAMESPACE/NAME:PORT` as far as known.
    pub backend: Option<String>,
    /// Findings that concern it, warnings included.
    pub reasons: Vec<Diagnostic>,
}

/// One declared host and everything on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeclaredHost {
    /// The namespace that owns it (R20).
    pub namespace: String,
    /// The namespace that it passes to when its last declaration ends (`hand-over`, R20).
    pub heir: Option<String>,
    /// Edge-wide modules; `None` when they are in error or pending: then the demands in force stay.
    pub demands: Option<EdgeDemands>,
    /// A certificate to show; absent: the local authority's.
    pub certificate: Option<DeclaredCertificate>,
    /// Keep showing the certificate that is in force (its Secret was lost or is pending).
    pub keep_certificate: bool,
    /// The routes, by match.
    pub routes: BTreeMap<Match, DeclaredRoute>,
}

/// Hosts that must not be opened although they are not named here (R3, R19): somewhere stands
/// an object whose hosts cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unreadable {
    /// Of one namespace.
    Namespace(String),
    /// Anywhere: a file that could hold anything.
    Everything,
}

/// A whole declaration: a pure function of a snapshot and the records kept at the edge.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Declaration {
    /// Every host.
    pub hosts: BTreeMap<HostPattern, DeclaredHost>,
    /// Every valid IPPolicy, used or not.
    pub policies: BTreeMap<ObjectName, DeclaredPolicy>,
    /// Every backend that a complete route names.
    pub backends: BTreeMap<BackendId, DeclaredBackend>,
    /// Why some hosts that are not open yet must stay closed.
    pub unreadable: BTreeSet<Unreadable>,
    /// Owners and hosts of which something declared could not be read: what is recorded for them
    /// at the edge is pending, not removed.
    pub pending_owners: BTreeSet<ObjectRef>,
    /// Namespaces and declaring objects that are being deleted. Tombstones in such a namespace,
    /// or beside what such an object declared, stay until they are gone (R5): so nothing that
    /// keeps them, as a finalizer does, may wait for the end of a tombstone.
    pub terminating: BTreeSet<ObjectRef>,
    /// Whether every route at the edge that is not declared here is pending rather than removed
    /// (a declaring kind or file could not be read, R19).
    pub nothing_is_removed: bool,
    /// Every finding, sorted; those of routes too.
    pub diagnostics: Vec<Diagnostic>,
}
