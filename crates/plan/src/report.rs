//! How every route stands and why, as closed sets of words that the status turns into sentences.

use std::collections::{BTreeMap, BTreeSet};

use model::{
    id::{BackendId, RouteId},
    module::ModuleKind,
    object::ObjectRef,
    status::RouteState,
    time::Timestamp,
};

use edge_state::state::{Phase, Route};
use model::host::HostPattern;

use crate::{
    content::serves,
    inputs::RouteKey,
    record::same_record,
    target::{Goal, HostTarget, RouteTarget},
    world::{Holder, World},
};

/// How every declared or withdrawn route stands at the edge as it was read (R8): not what the
/// plan will make of it. After the last step, plan again and report that.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// By host and match.
    pub routes: BTreeMap<RouteKey, RouteReport>,
}

/// How one route stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteReport {
    /// What it does with requests.
    pub state: RouteState,
    /// Since when; absent while the edge does not have it.
    pub since: Option<Timestamp>,
    /// The generation in force; absent while it refuses.
    pub serving: Option<u64>,
    /// The generation declared; absent while it is being removed.
    pub wanted: Option<u64>,
    /// Who declares it, or declared it last.
    pub owner: Option<ObjectRef>,
    /// Its id at the edge.
    pub id: Option<RouteId>,
    /// Why it is not as declared, beside the declaration's own findings; or what will change.
    pub notes: BTreeSet<Note>,
}

/// A reason that the planner knows of.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Note {
    /// Its declaration failed preflight: the declared route's own reasons say why.
    Invalid,
    /// Its declaration rests on something that has not been read (R19).
    Pending,
    /// Its declaration is gone, or could not be read: which of the two is not known (R19).
    RemovalPending,
    /// An object that the served set rests on is gone (R2).
    Lost {
        /// Which.
        missing: BTreeSet<ObjectRef>,
        /// When the edge closes the route.
        closes_at: Option<Timestamp>,
    },
    /// Held, but not for ever (`--hold-limit`).
    HoldEnds {
        /// When the edge closes the route.
        closes_at: Timestamp,
    },
    /// It was held for as long as the operator allows.
    HoldEnded,
    /// Held, and refuses in addition what the newest valid policies refuse (R17).
    AlsoRefuses,
    /// Withdrawn: stays closed until this broader route is as declared (R5).
    WaitsForBroader {
        /// The route that would catch its requests.
        broader: RouteKey,
    },
    /// Withdrawn: a closed tombstone until then (R5).
    WaitsForTombstone {
        /// The end.
        until: Timestamp,
    },
    /// Withdrawn: a closed tombstone for as long as this is being deleted beside it (R5).
    WaitsForTermination {
        /// Its namespace, a neighbour's, or the object that declared a neighbour.
        of: ObjectRef,
    },
    /// Another object declares it now, with another set: closed until then (R5).
    WaitsForPredecessor {
        /// The object that declared it.
        predecessor: ObjectRef,
        /// The end; absent: the tombstone begins with this plan.
        until: Option<Timestamp>,
    },
    /// The edge refused this declaration; it is not tried again until it changes (R7).
    RefusedByEdge {
        /// What the edge said.
        message: String,
    },
    /// Somebody else's edge or reservation has the host.
    HostHeld {
        /// Another controller; absent: a user of the edge's API.
        by: Option<String>,
    },
    /// The edge-wide demands cannot change while this route of the host is held (R13).
    DemandsKept {
        /// The held route.
        by: RouteKey,
    },
    /// The edge-wide demands of the host are in error or have not been read (R13).
    DemandsUnknown,
    /// This edge does not enforce these modules.
    Unenforceable {
        /// Which.
        kinds: BTreeSet<ModuleKind>,
    },
    /// An IP policy that it names by id is not at the edge, or has no valid declaration.
    PolicyMissing {
        /// The name as declared.
        name: String,
    },
    /// A backend that it names is neither declared nor at the edge, or is somebody else's.
    BackendMissing {
        /// Which.
        id: BackendId,
    },
    /// Something declared near it could not be read, so hosts that are not open stay closed (R3).
    UnreadableNearby,
    /// A narrower declared route or host cannot be staged, so this one must not change (R3).
    NarrowerNotStaged {
        /// Which.
        narrower: RouteKey,
    },
    /// The present pass only closes (R19).
    OnlyClosing,
    /// A step of the plan is about it.
    Changing,
}

impl Report {
    /// When an age will next change something.
    pub(crate) fn next_change(&self, now: Timestamp) -> Option<Timestamp> {
        let notes = self.routes.values().flat_map(|route| &route.notes);
        notes
            .filter_map(Note::deadline)
            .filter(|at| *at > now)
            .min()
    }
}

impl Note {
    const fn deadline(&self) -> Option<Timestamp> {
        match self {
            Self::Lost {
                missing: _,
                closes_at,
            } => *closes_at,
            Self::HoldEnds { closes_at } => Some(*closes_at),
            Self::WaitsForTombstone { until } => Some(*until),
            Self::WaitsForPredecessor {
                predecessor: _,
                until,
            } => *until,
            Self::Invalid
            | Self::Pending
            | Self::RemovalPending
            | Self::WaitsForTermination { .. }
            | Self::HoldEnded
            | Self::AlsoRefuses
            | Self::WaitsForBroader { .. }
            | Self::RefusedByEdge { .. }
            | Self::HostHeld { .. }
            | Self::DemandsKept { .. }
            | Self::DemandsUnknown
            | Self::Unenforceable { .. }
            | Self::PolicyMissing { .. }
            | Self::BackendMissing { .. }
            | Self::UnreadableNearby
            | Self::NarrowerNotStaged { .. }
            | Self::OnlyClosing
            | Self::Changing => None,
        }
    }
}

/// How every route stands.
pub(crate) fn report(
    world: &World<'_>,
    targets: &BTreeMap<&HostPattern, HostTarget<'_>>,
) -> Report {
    let mut routes = BTreeMap::new();
    for target in targets.values() {
        for route in &target.routes {
            routes.insert(route.key.clone(), of_route(target, route));
        }
    }
    for (host, declared) in &world.inputs.declared.hosts {
        let Holder::Other(by) = world.holder(host) else {
            continue;
        };
        for (place, route) in &declared.routes {
            let note = Note::HostHeld { by: by.clone() };
            let report = RouteReport {
                state: RouteState::Closed,
                since: None,
                serving: None,
                wanted: None,
                owner: Some(route.owner.clone()),
                id: None,
                notes: BTreeSet::from([note]),
            };
            routes.insert((host.clone(), place.clone()), report);
        }
    }
    Report { routes }
}

fn of_route(target: &HostTarget<'_>, route: &RouteTarget<'_>) -> RouteReport {
    let record = route.actual.and_then(|actual| actual.record.as_ref());
    let mut notes = route.notes.clone();
    if is_changing(target, route) {
        notes.insert(Note::Changing);
    } else {
        notes.remove(&Note::Changing);
    }
    let wanted = route
        .record
        .as_ref()
        .and_then(|record| record.wanted.as_ref());
    let serving = record
        .filter(|_| route.is_open_now())
        .and_then(|record| record.serving.as_ref());
    RouteReport {
        state: state(target, route),
        since: record.map(|record| record.since),
        serving: serving.map(|declared| declared.generation),
        wanted: wanted.map(|declared| declared.generation),
        owner: route
            .declared
            .map(|declared| declared.owner.clone())
            .or_else(|| route.record.as_ref().map(|record| record.owner.clone())),
        id: route.actual.map(|_| route.id.clone()),
        notes,
    }
}

/// What the route does at this moment.
fn state(target: &HostTarget<'_>, route: &RouteTarget<'_>) -> RouteState {
    let removing = route
        .record
        .as_ref()
        .is_some_and(|record| record.phase == Phase::Removing);
    let as_declared = |actual: &Route| match &route.goal {
        Goal::Open(content) => {
            serves(actual, content)
                && target
                    .actual
                    .is_some_and(|edge| edge.demands() == content.demands)
        }
        Goal::Keep(..) | Goal::Closed | Goal::Absent => false,
        Goal::Leave => actual
            .record
            .as_ref()
            .is_some_and(|record| record.phase == Phase::Open),
    };
    match route.actual.filter(|_| route.is_open_now()) {
        Some(actual) if as_declared(actual) => RouteState::Open,
        Some(_) => RouteState::Held,
        None if removing => RouteState::Removing,
        None => RouteState::Closed,
    }
}

/// Whether something about it is still to be written.
fn is_changing(target: &HostTarget<'_>, route: &RouteTarget<'_>) -> bool {
    let Some(actual) = route.actual else {
        return route.goal != Goal::Absent;
    };
    let record = !same_record(actual.record.as_ref(), route.record.as_ref());
    let content = match &route.goal {
        Goal::Open(_) => state(target, route) != RouteState::Open,
        Goal::Keep(refuse, _) => actual.also_refuse != *refuse,
        Goal::Closed => route.is_open_now(),
        Goal::Leave => false,
        Goal::Absent => true,
    };
    record || content
}
