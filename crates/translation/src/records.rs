//! What the edge remembers of earlier declarations (R5, R20).

use std::collections::{BTreeMap, BTreeSet};

use model::{
    host::HostPattern, module::EdgeDemands, object::ObjectRef, place::Match, time::Timestamp,
};

/// What the edge remembers, by host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Records {
    /// Every host with a reserved domain or a route of this controller.
    pub hosts: BTreeMap<HostPattern, HostRecord>,
}

/// What the edge remembers of a host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostRecord {
    /// The namespace that owns it; absent: any may (reserved through the API). A domain whose
    /// `--host-release` is over is not handed in any more.
    pub namespace: Option<String>,
    /// The namespace that it passes to when its owner's last declaration ends.
    pub heir: Option<String>,
    /// Since when nothing declares it.
    pub undeclared_since: Option<Timestamp>,
    /// The edge-wide modules in force.
    pub demands: EdgeDemands,
    /// The routes that this controller owns.
    pub routes: BTreeMap<Match, RecordedRoute>,
}

/// What the edge remembers of a route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedRoute {
    /// The object that declared it.
    pub owner: ObjectRef,
    /// What the served set rests on.
    pub rests_on: BTreeSet<ObjectRef>,
    /// Whether it answers with a backend now.
    pub is_open: bool,
}
