//! What each route should become, seen alone: from its declaration, its record and the ages.
//! What its neighbours and its host demand on top is decided in `target`.

use std::collections::BTreeSet;

use edge_state::state::{Phase, Record, Route};
use model::{
    declaration::{DeclaredRoute, Outcome},
    object::ObjectRef,
    secret::Digest,
    time::{Span, Timestamp},
};

use crate::{
    content::{Content, resolve},
    inputs::{OnInvalid, RouteKey},
    report::Note,
    world::World,
};

/// What a route should become.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    /// Serve its declaration.
    Serve(Box<Content>),
    /// Go on serving what it serves: held, or lost.
    Keep(Hold),
    /// Refuse, in its place.
    Close,
    /// Refuse; withdrawn, and not to be deleted yet (R5).
    Rest,
    /// Withdrawn: may be deleted as soon as nothing is uncovered by that; refuses until then.
    Go,
    /// Stay as it is in every respect.
    Leave,
}

/// How long a route is kept open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hold {
    pub(crate) phase: Phase,
    pub(crate) close_after: Option<Span>,
}

/// A wish and the reasons for it.
pub(crate) type Reasoned = (Wish, BTreeSet<Note>);

fn because(wish: Wish, note: Note) -> Reasoned {
    (wish, BTreeSet::from([note]))
}

/// What a route that stands at the edge or is declared, or both, should become.
pub(crate) fn wish(
    world: &World<'_>,
    key: &RouteKey,
    actual: Option<&Route>,
    declared: Option<&DeclaredRoute>,
) -> Reasoned {
    match (actual, declared) {
        (None, None) => (Wish::Leave, BTreeSet::new()),
        (Some(route), None) => undeclared(world, key, route),
        (None, Some(declared)) => by_outcome(world, key, None, declared),
        (Some(route), Some(declared)) => predecessor(world, key, route, declared)
            .unwrap_or_else(|| by_outcome(world, key, Some(route), declared)),
    }
}

/// A route that nothing declares: withdrawn, or its declaration could not be read (R19).
fn undeclared(world: &World<'_>, key: &RouteKey, route: &Route) -> Reasoned {
    let declared = world.inputs.declared;
    let record = route.record.as_ref();
    let unread = declared.nothing_is_removed
        || record.is_some_and(|record| declared.pending_owners.contains(&record.owner));
    if unread {
        return match (route.open_backend(), record) {
            (Some(_), record) => hold(world, record, Note::RemovalPending),
            (None, _) => because(Wish::Leave, Note::RemovalPending),
        };
    }
    #[cfg(test)]
    if world.mutated(crate::mutation::Mutation::NoTombstone) {
        return (Wish::Go, BTreeSet::new());
    }
    let tombstone = world.inputs.options.tombstone;
    if tombstone == Span::ZERO || !had_access_modules(route) {
        return (Wish::Go, BTreeSet::new());
    }
    match resting_since(route).map(|since| since.after(tombstone)) {
        Some(until) if until <= world.inputs.now => {
            match record.and_then(|record| world.going_beside(&key.0, &record.owner)) {
                Some(of) => because(Wish::Rest, Note::WaitsForTermination { of }),
                None => (Wish::Go, BTreeSet::new()),
            }
        }
        Some(until) => because(Wish::Rest, Note::WaitsForTombstone { until }),
        None => because(Wish::Rest, Note::Changing),
    }
}

/// Whether the served or the declared set of a route had modules that can refuse (R5).
fn had_access_modules(route: &Route) -> bool {
    route
        .record
        .as_ref()
        .is_none_or(|record| record.has_access_modules)
        || route
            .modules
            .kinds()
            .into_iter()
            .any(model::module::ModuleKind::is_access)
}

/// Since when a route is a closed tombstone.
fn resting_since(route: &Route) -> Option<Timestamp> {
    let record = route.record.as_ref()?;
    (record.phase == Phase::Removing && route.open_backend().is_none()).then_some(record.since)
}

/// A route that another object declared before: the object recorded at the edge decides until it
/// has been gone for the tombstone, unless its successor says the same (R5).
fn predecessor(
    world: &World<'_>,
    key: &RouteKey,
    route: &Route,
    declared: &DeclaredRoute,
) -> Option<Reasoned> {
    let record = route.record.as_ref()?;
    let tombstone = world.inputs.options.tombstone;
    let unread = world.inputs.declared.pending_owners.contains(&record.owner)
        || declared.outcome == Outcome::Pending;
    if record.owner == declared.owner || tombstone == Span::ZERO || !had_access_modules(route) {
        return None;
    }
    if unread && resting_since(route).is_none() {
        // Neither can be told from the other yet: nothing changes (R19).
        return Some(match route.open_backend() {
            Some(_) => hold(world, Some(record), Note::RemovalPending),
            None => because(Wish::Leave, Note::RemovalPending),
        });
    }
    let equal = declared.digest.is_some() && serving_digest(record) == declared.digest;
    if equal && route.open_backend().is_some() {
        return None;
    }
    let until = resting_since(route).map(|since| since.after(tombstone));
    if until.is_some_and(|until| until <= world.inputs.now) {
        let of = world.going_beside(&key.0, &record.owner)?;
        return Some(because(Wish::Rest, Note::WaitsForTermination { of }));
    }
    let predecessor = record.owner.clone();
    Some(because(
        Wish::Rest,
        Note::WaitsForPredecessor { predecessor, until },
    ))
}

fn serving_digest(record: &Record) -> Option<Digest> {
    record.serving.as_ref().and_then(|serving| serving.digest)
}

fn by_outcome(
    world: &World<'_>,
    key: &RouteKey,
    actual: Option<&Route>,
    declared: &DeclaredRoute,
) -> Reasoned {
    let open = actual.filter(|route| route.open_backend().is_some());
    let nothing = BTreeSet::new();
    match &declared.outcome {
        Outcome::Complete(set) => {
            if let Some(message) = world.inputs.rejections.of_route(key, declared.digest) {
                let note = Note::RefusedByEdge {
                    message: message.to_owned(),
                };
                return invalid(world, open, &nothing, note);
            }
            match resolve(world, set, declared.digest) {
                Ok(content) => (Wish::Serve(Box::new(content)), BTreeSet::new()),
                Err(note) => invalid(world, open, &nothing, note),
            }
        }
        Outcome::Invalid { missing } => invalid(world, open, missing, Note::Invalid),
        Outcome::Pending => match open {
            Some(route) => hold(world, route.record.as_ref(), Note::Pending),
            None => because(Wish::Close, Note::Pending),
        },
    }
}

/// A declaration that cannot be applied: held, lost or closed (R2).
fn invalid(
    world: &World<'_>,
    open: Option<&Route>,
    missing: &BTreeSet<ObjectRef>,
    note: Note,
) -> Reasoned {
    let options = world.inputs.options;
    let Some(route) = open else {
        return because(Wish::Close, note);
    };
    if options.on_invalid == OnInvalid::Close {
        return because(Wish::Close, note);
    }
    let record = route.record.as_ref();
    // What the served set rests on is known only while the record speaks of what is served.
    let known = record.filter(|record| serving_digest(record).is_some());
    let lost: BTreeSet<ObjectRef> = match known {
        Some(record) => record.rests_on.intersection(missing).cloned().collect(),
        None => missing.clone(),
    };
    if lost.is_empty() {
        return hold(world, record, note);
    }
    let deadline = record
        .filter(|record| record.phase == Phase::Lost)
        .map(|record| record.closes_at(options.lost_grace));
    // A loss that was interrupted, by a file that broke or an object that came back wrong, goes
    // on where it stopped: nothing but being served as declared renews the grace.
    let spent = record.map_or(Span::ZERO, |record| record.lost_for);
    let over = match deadline {
        Some(deadline) => deadline <= world.inputs.now,
        None => spent >= options.lost_grace,
    };
    let note = Note::Lost {
        missing: lost,
        closes_at: deadline,
    };
    if over {
        return because(Wish::Close, note);
    }
    let hold = Hold {
        phase: Phase::Lost,
        close_after: Some(options.lost_grace),
    };
    because(Wish::Keep(hold), note)
}

/// An open route that keeps what it serves, for as long as the operator allows (R2, R19).
pub(crate) fn hold(world: &World<'_>, record: Option<&Record>, note: Note) -> Reasoned {
    let limit = world.inputs.options.hold_limit;
    let deadline = record
        .filter(|record| record.phase == Phase::Held)
        .and_then(|record| Some(record.since.after(limit?)));
    let mut notes = BTreeSet::from([note]);
    if deadline.is_some_and(|deadline| deadline <= world.inputs.now) {
        notes.insert(Note::HoldEnded);
        return (Wish::Close, notes);
    }
    notes.extend(deadline.map(|closes_at| Note::HoldEnds { closes_at }));
    (
        Wish::Keep(Hold {
            phase: Phase::Held,
            close_after: limit,
        }),
        notes,
    )
}
