//! What a host's edge should become: the wishes of its routes, brought together under the
//! edge-wide demands (R13) and the order among neighbours (R3, R5).

use std::collections::{BTreeMap, BTreeSet};

use edge_state::{
    capabilities::Atomicity,
    command::RecordSpec,
    state::{Edge, Phase, PolicyRef, Route},
};
use model::{
    declaration::{DeclaredHost, DeclaredRoute},
    host::HostPattern,
    id::{CertificateId, EdgeId, RouteId},
    module::EdgeDemands,
    place::Match,
};

use crate::{
    content::{Content, PolicyPut, access_part, newest_refusal, serves},
    inputs::RouteKey,
    record::record,
    report::Note,
    wish::{Reasoned, Wish, hold, wish},
    world::{World, by_place, route_id},
};

/// What a host's edge should become.
pub(crate) struct HostTarget<'a> {
    pub(crate) host: &'a HostPattern,
    pub(crate) id: EdgeId,
    pub(crate) actual: Option<&'a Edge>,
    pub(crate) declared: Option<&'a DeclaredHost>,
    pub(crate) demands: EdgeDemands,
    pub(crate) certificate: Option<CertificateId>,
    /// By rank: the first is asked first.
    pub(crate) routes: Vec<RouteTarget<'a>>,
    /// Nothing declares the host, and its tombstones are over: the edge may go.
    pub(crate) may_go: bool,
}

/// What a route should become.
pub(crate) struct RouteTarget<'a> {
    pub(crate) key: RouteKey,
    pub(crate) id: RouteId,
    pub(crate) actual: Option<&'a Route>,
    pub(crate) declared: Option<&'a DeclaredRoute>,
    pub(crate) goal: Goal,
    pub(crate) record: Option<RecordSpec>,
    pub(crate) notes: BTreeSet<Note>,
}

/// What a route should become, decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Goal {
    /// Serves this.
    Open(Box<Content>),
    /// Serves what it serves, and refuses in addition what these policies refuse (R17).
    Keep(BTreeSet<PolicyRef>, Option<PolicyPut>),
    /// Refuses.
    Closed,
    /// Stays as it is.
    Leave,
    /// Is not there.
    Absent,
}

impl RouteTarget<'_> {
    pub(crate) fn is_open_now(&self) -> bool {
        self.actual
            .is_some_and(|route| route.open_backend().is_some())
    }

    /// Goes on refusing, or begins to.
    pub(crate) fn closes(&self) -> bool {
        self.is_open_now() && matches!(self.goal, Goal::Closed | Goal::Absent)
    }
}

impl HostTarget<'_> {
    /// Whether a request that falls to this route now is refused or handled as declared. Where a
    /// route does not stand yet, its requests would fall further.
    pub(crate) fn is_ready(&self, route: &RouteTarget<'_>) -> bool {
        let Some(actual) = route.actual else {
            return self.actual.is_none();
        };
        if actual.open_backend().is_none() {
            return true;
        }
        match &route.goal {
            Goal::Open(content) => {
                serves(actual, content)
                    && self
                        .actual
                        .is_some_and(|edge| edge.demands() == content.demands)
            }
            Goal::Keep(..) | Goal::Closed | Goal::Leave | Goal::Absent => false,
        }
    }
}

/// What must not happen on a host in this plan, beside what the inputs forbid.
#[derive(Clone, Debug, Default)]
pub(crate) struct Restraint {
    /// A narrower host, or a narrower route by match, is declared and does not stand yet: nothing
    /// broader opens or changes (R3).
    pub(crate) unstaged: Vec<Unstaged>,
}

/// A declared route or host that does not stand yet.
#[derive(Clone, Debug)]
pub(crate) struct Unstaged {
    pub(crate) key: RouteKey,
    /// The edge refused to let it be staged: waiting does not help.
    pub(crate) refused: bool,
    /// The routes it holds back: all of the edge when it is a narrower host.
    pub(crate) whole_host: bool,
}

impl Restraint {
    /// What is declared for some of the requests that a match takes, and does not stand yet.
    fn within(&self, place: &Match) -> Option<&Unstaged> {
        self.unstaged
            .iter()
            .find(|unstaged| unstaged.whole_host || unstaged.key.1.intersects(place))
    }

    /// What is narrower than a match and does not stand yet; first what never will.
    fn on(&self, place: &Match) -> Option<&Unstaged> {
        let of =
            |unstaged: &&Unstaged| unstaged.whole_host || unstaged.key.1.is_narrower_than(place);
        let mut those = self.unstaged.iter().filter(of);
        let first = those.next();
        first
            .filter(|unstaged| unstaged.refused)
            .or_else(|| those.find(|u| u.refused))
            .or(first)
    }
}

/// Decides what a host's edge should become. `None`: somebody else has the host.
pub(crate) fn host_target<'a>(
    world: &World<'a>,
    host: &'a HostPattern,
    restraint: &Restraint,
) -> HostTarget<'a> {
    let declared = world.declared(host);
    let (id, actual) = match world.own_edge(host) {
        Some((id, edge)) => (id.clone(), Some(edge)),
        None => (world.edge_id(host), None),
    };
    let standing = actual.map(by_place).unwrap_or_default();
    let mut places: BTreeSet<&'a Match> = standing.keys().copied().collect();
    places.extend(declared.iter().flat_map(|declared| declared.routes.keys()));
    let mut places: Vec<&'a Match> = places.into_iter().collect();
    places.sort_by(|one, other| one.rank(other));

    let mut candidates: Vec<Candidate<'a>> = places
        .into_iter()
        .map(|place| Candidate::new(world, host, declared, &standing, place))
        .collect();
    for candidate in &mut candidates {
        candidate.restrain(world, actual, declared, restraint);
    }
    let demands = decide_demands(world, actual, declared, &mut candidates);
    let withdrawn = declared.is_none()
        && candidates
            .iter()
            .all(|c| matches!(c.wish, Wish::Go | Wish::Rest));
    let may_go = withdrawn && candidates.iter().all(|c| c.wish == Wish::Go);
    let deletable = !withdrawn;
    let mut routes = decide_routes(world, &id, &candidates, deletable);
    for route in &mut routes {
        piecewise_cannot_refuse_more(world, route);
    }
    let certificate = certificate(world, actual, declared);
    HostTarget {
        host,
        id,
        actual,
        declared,
        demands,
        certificate,
        routes,
        may_go,
    }
}

/// A route while it is being decided about.
struct Candidate<'a> {
    key: RouteKey,
    actual: Option<(&'a RouteId, &'a Route)>,
    declared: Option<&'a DeclaredRoute>,
    wish: Wish,
    notes: BTreeSet<Note>,
}

impl<'a> Candidate<'a> {
    fn new(
        world: &World<'a>,
        host: &HostPattern,
        declared: Option<&'a DeclaredHost>,
        standing: &BTreeMap<&'a Match, (&'a RouteId, &'a Route)>,
        place: &Match,
    ) -> Self {
        let key = (host.clone(), place.clone());
        let actual = standing.get(place).copied();
        let declared = declared.and_then(|host| host.routes.get(place));
        let (wish, notes) = wish(world, &key, actual.map(|(_, route)| route), declared);
        Self {
            key,
            actual,
            declared,
            wish,
            notes,
        }
    }

    fn open(&self) -> Option<&'a Route> {
        self.actual
            .map(|(_, route)| route)
            .filter(|route| route.open_backend().is_some())
    }

    fn set(&mut self, (wish, notes): Reasoned) {
        self.wish = wish;
        self.notes.extend(notes);
    }

    /// What serving must wait for: the pass, a neighbour, something unreadable (R3, R19).
    fn restrain(
        &mut self,
        world: &World<'a>,
        edge: Option<&Edge>,
        declared: Option<&DeclaredHost>,
        restraint: &Restraint,
    ) {
        if let Some(message) = self.staging_refusal(world) {
            return self.set((
                Wish::Leave,
                BTreeSet::from([Note::RefusedByEdge { message }]),
            ));
        }
        if world.inputs.only_close && self.wish == Wish::Go {
            self.set((Wish::Rest, BTreeSet::from([Note::OnlyClosing])));
        }
        // What a withdrawn route refuses, something narrower may be declared to refuse.
        if self.wish == Wish::Go
            && let Some(unstaged) = restraint.within(&self.key.1)
        {
            let note = Note::NarrowerNotStaged {
                narrower: unstaged.key.clone(),
            };
            return self.set((Wish::Rest, BTreeSet::from([note])));
        }
        let Wish::Serve(content) = &self.wish else {
            return;
        };
        let unchanged = edge.is_some_and(|edge| edge.demands() == content.demands)
            && self.open().is_some_and(|route| serves(route, content));
        if unchanged {
            return;
        }
        if world.inputs.only_close {
            return self.wait(Note::OnlyClosing);
        }
        let host_open = edge.is_some_and(|edge| {
            edge.routes
                .values()
                .any(|route| route.open_backend().is_some())
        });
        let namespace = declared.map(|host| host.namespace.as_str());
        if !host_open && namespace.is_some_and(|namespace| world.is_shadowed(namespace)) {
            return self.set((Wish::Close, BTreeSet::from([Note::UnreadableNearby])));
        }
        if let Some(unstaged) = restraint.on(&self.key.1) {
            let note = Note::NarrowerNotStaged {
                narrower: unstaged.key.clone(),
            };
            if !unstaged.refused {
                return self.wait(note);
            }
            let keeps_protection = self.open().is_some_and(|route| {
                access_part(&route.modules) == access_part(&content.modules)
                    && edge.is_some_and(|edge| edge.demands() == content.demands)
            });
            let wish = match self.open() {
                Some(route) if keeps_protection => hold(world, route.record.as_ref(), note),
                Some(_) | None => (Wish::Close, BTreeSet::from([note])),
            };
            self.set(wish);
        }
    }

    /// What the edge said when it refused to have this route even closed.
    fn staging_refusal(&self, world: &World<'_>) -> Option<String> {
        let declared = self.declared.filter(|_| self.actual.is_none())?;
        world
            .inputs
            .rejections
            .of_staging(&self.key, declared.digest)
            .map(str::to_owned)
    }

    /// Nothing changes for now; what does not stand is staged.
    fn wait(&mut self, note: Note) {
        let wish = if self.actual.is_some() {
            Wish::Leave
        } else {
            Wish::Close
        };
        self.set((wish, BTreeSet::from([note])));
    }

    fn stays_open_as_it_is(&self) -> bool {
        match self.wish {
            Wish::Keep(_) => true,
            Wish::Leave => self.open().is_some(),
            Wish::Serve(_) | Wish::Close | Wish::Rest | Wish::Go => false,
        }
    }
}

/// The demands of the edge: as declared, unless a route stays open under the present ones (R13).
/// A route whose set demands something else is held or stays closed.
fn decide_demands(
    world: &World<'_>,
    actual: Option<&Edge>,
    declared: Option<&DeclaredHost>,
    candidates: &mut [Candidate<'_>],
) -> EdgeDemands {
    let present = actual.map(Edge::demands);
    let wanted = declared.and_then(|host| host.demands.clone());
    let Some(present) = present else {
        let demands = wanted.clone().unwrap_or_default();
        block(world, candidates, &demands, wanted.is_some());
        return demands;
    };
    #[cfg(test)]
    if world.mutated(crate::mutation::Mutation::DemandsUnderHeld) {
        return wanted.unwrap_or(present);
    }
    let wanted_or_present = wanted.clone().unwrap_or_else(|| present.clone());
    // A set that disagrees with its own host's demands would be held under changed ones.
    let disagrees = candidates.iter().any(|candidate| match &candidate.wish {
        Wish::Serve(content) => content.demands != wanted_or_present && candidate.open().is_some(),
        Wish::Keep(_) | Wish::Close | Wish::Rest | Wish::Go | Wish::Leave => false,
    });
    let kept = candidates.iter().any(Candidate::stays_open_as_it_is);
    let demands = if kept || disagrees || world.inputs.only_close {
        present
    } else {
        wanted_or_present
    };
    block(world, candidates, &demands, wanted.is_some());
    demands
}

/// Holds or closes every route whose set needs other demands than are in force.
fn block(world: &World<'_>, candidates: &mut [Candidate<'_>], demands: &EdgeDemands, known: bool) {
    let keeper = candidates
        .iter()
        .find(|c| c.stays_open_as_it_is())
        .map(|c| c.key.clone());
    for candidate in candidates {
        let Wish::Serve(content) = &candidate.wish else {
            continue;
        };
        if known && content.demands == *demands {
            continue;
        }
        let note = match &keeper {
            Some(by) if known => Note::DemandsKept { by: by.clone() },
            Some(_) | None => Note::DemandsUnknown,
        };
        let reasoned = match candidate.open() {
            Some(route) => hold(world, route.record.as_ref(), note),
            None => (Wish::Close, BTreeSet::from([note])),
        };
        candidate.set(reasoned);
    }
}

fn decide_routes<'a>(
    world: &World<'a>,
    edge: &EdgeId,
    candidates: &[Candidate<'a>],
    deletable: bool,
) -> Vec<RouteTarget<'a>> {
    let mut routes = Vec::with_capacity(candidates.len());
    for candidate in candidates {
        let mut notes = candidate.notes.clone();
        let actual = candidate.actual.map(|(_, route)| route);
        let goal = match &candidate.wish {
            Wish::Serve(content) => Goal::Open(content.clone()),
            Wish::Keep(_) => keep(world, candidate, &mut notes),
            Wish::Close | Wish::Rest => Goal::Closed,
            Wish::Leave if actual.is_none() => Goal::Absent,
            Wish::Leave => Goal::Leave,
            #[cfg(test)]
            Wish::Go if world.mutated(crate::mutation::Mutation::DeleteEarly) => Goal::Absent,
            #[cfg(test)]
            Wish::Go if world.mutated(crate::mutation::Mutation::LeaveWithdrawnOpen) => {
                match blocker(candidates, candidate) {
                    Some(_) => Goal::Leave,
                    None => Goal::Absent,
                }
            }
            Wish::Go => match blocker(candidates, candidate) {
                Some(broader) => {
                    notes.insert(Note::WaitsForBroader { broader });
                    Goal::Closed
                }
                None if deletable => Goal::Absent,
                None => Goal::Closed,
            },
        };
        let id = candidate
            .actual
            .map_or_else(|| route_id(edge, &candidate.key.1), |(id, _)| id.clone());
        let before = actual.and_then(|route| route.record.as_ref());
        let record = record(
            &candidate.key.0,
            before,
            candidate.declared,
            &candidate.wish,
        );
        let declared = candidate.declared;
        routes.push(RouteTarget {
            key: candidate.key.clone(),
            id,
            actual,
            declared,
            goal,
            record,
            notes,
        });
    }
    routes
}

/// A broader route of the same edge that stays open and is not as declared.
fn blocker(candidates: &[Candidate<'_>], narrow: &Candidate<'_>) -> Option<RouteKey> {
    candidates
        .iter()
        .find(|other| narrow.key.1.is_narrower_than(&other.key.1) && other.stays_open_as_it_is())
        .map(|other| other.key.clone())
}

fn keep(world: &World<'_>, candidate: &Candidate<'_>, notes: &mut BTreeSet<Note>) -> Goal {
    let Some(route) = candidate.open() else {
        return Goal::Closed;
    };
    if world.inputs.only_close {
        return Goal::Keep(route.also_refuse.clone(), None);
    }
    let (refuse, put) = newest_refusal(world, route);
    if !refuse.is_empty() {
        notes.insert(Note::AlsoRefuses);
    }
    Goal::Keep(refuse, put)
}

/// An edge without *replace* has no word for refusing on top: there the held route closes (R17).
fn piecewise_cannot_refuse_more(world: &World<'_>, route: &mut RouteTarget<'_>) {
    let Goal::Keep(refuse, _) = &route.goal else {
        return;
    };
    if world.inputs.capabilities.atomicity == Atomicity::Replace || refuse.is_empty() {
        return;
    }
    route.goal = Goal::Closed;
    if let Some(record) = &mut route.record {
        record.phase = Phase::Closed;
        record.close_after = None;
        record.serving = None;
        record.rests_on = BTreeSet::new();
    }
}

/// The certificate to show: no protection, so its loss changes nothing (R2).
fn certificate(
    world: &World<'_>,
    actual: Option<&Edge>,
    declared: Option<&DeclaredHost>,
) -> Option<CertificateId> {
    let present = actual.and_then(|edge| edge.certificate.clone());
    match declared {
        None => present,
        Some(_) if world.inputs.only_close => present,
        Some(host) => match &host.certificate {
            Some(certificate) => Some(crate::upkeep::certificate_id(world, certificate)),
            None if host.keep_certificate => present,
            None => None,
        },
    }
}

/// Whether a route's content is what a goal asks for.
pub(crate) fn content_is(route: &Route, goal: &Goal) -> bool {
    match goal {
        Goal::Open(content) => serves(route, content),
        Goal::Keep(refuse, _) => route.also_refuse == *refuse,
        Goal::Closed => {
            route.backend.is_none()
                && route.also_refuse.is_empty()
                && route.modules == model::module::Modules::default()
        }
        Goal::Leave => true,
        Goal::Absent => false,
    }
}
