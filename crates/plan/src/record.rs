//! What must be remembered about a route, kept at the edge where it outlives the controller (R19).

use std::collections::BTreeSet;

use edge_state::{
    command::RecordSpec,
    state::{Declared, Phase, Record},
};
use model::{declaration::DeclaredRoute, host::HostPattern, object::ObjectRef};

use crate::{
    content::Content,
    wish::{Hold, Wish},
};

/// What must be remembered about a route that becomes what it wishes.
pub(crate) fn record(
    host: &HostPattern,
    before: Option<&Record>,
    declared: Option<&DeclaredRoute>,
    wish: &Wish,
) -> Option<RecordSpec> {
    let owner = declared.map(|route| route.owner.clone());
    let known = before.map(|record| record.owner.clone());
    let access_before = before.is_some_and(|record| record.has_access_modules);
    let access_declared = declared.is_some_and(|route| route.has_access_modules);
    let nobody = || ObjectRef::new("HTTPSEdge", "", host.as_str());
    let wanted = declared
        .map(|route| wanted(before, route))
        .or_else(|| before.and_then(|b| b.wanted.clone()));
    match wish {
        Wish::Serve(content) => {
            let Content {
                demands,
                modules,
                backend: _,
                digest: _,
            } = content.as_ref();
            let mut kinds = modules.kinds();
            kinds.extend(demands.kinds());
            Some(RecordSpec {
                owner: owner.or(known).unwrap_or_else(nobody),
                serving: wanted.clone(),
                wanted,
                has_access_modules: access_declared
                    || kinds.into_iter().any(|kind| kind.is_access()),
                rests_on: declared
                    .map(|route| route.rests_on.clone())
                    .unwrap_or_default(),
                phase: Phase::Open,
                close_after: None,
            })
        }
        // Who declared what is served goes on deciding about it (R5).
        Wish::Keep(Hold { phase, close_after }) => Some(RecordSpec {
            owner: known.or(owner).unwrap_or_else(nobody),
            wanted,
            serving: before.and_then(|record| record.serving.clone()),
            has_access_modules: access_before || access_declared || before.is_none(),
            rests_on: before
                .map(|record| record.rests_on.clone())
                .unwrap_or_default(),
            phase: *phase,
            close_after: *close_after,
        }),
        Wish::Close => Some(RecordSpec {
            owner: owner.or(known).unwrap_or_else(nobody),
            wanted,
            serving: None,
            has_access_modules: access_before || access_declared,
            rests_on: BTreeSet::new(),
            phase: Phase::Closed,
            close_after: None,
        }),
        Wish::Rest | Wish::Go => Some(RecordSpec {
            owner: known.or(owner).unwrap_or_else(nobody),
            wanted: None,
            serving: None,
            has_access_modules: access_before || before.is_none(),
            rests_on: BTreeSet::new(),
            phase: Phase::Removing,
            close_after: None,
        }),
        Wish::Leave => before.map(as_spec),
    }
}

/// A record as it is, written again.
pub(crate) fn as_spec(record: &Record) -> RecordSpec {
    let Record {
        owner,
        wanted,
        serving,
        has_access_modules,
        rests_on,
        phase,
        since: _,
        lost_for: _,
        close_at: _,
    } = record;
    RecordSpec {
        owner: owner.clone(),
        wanted: wanted.clone(),
        serving: serving.clone(),
        has_access_modules: *has_access_modules,
        rests_on: rests_on.clone(),
        phase: *phase,
        close_after: record.close_after(),
    }
}

/// The generation of a declaration: counts its changes. What could not be read whole before, or
/// cannot now, is no change.
fn wanted(before: Option<&Record>, declared: &DeclaredRoute) -> Declared {
    match before.and_then(|record| record.wanted.as_ref()) {
        None => Declared {
            generation: 1,
            digest: declared.digest,
        },
        Some(Declared {
            generation,
            digest: None,
        }) => Declared {
            generation: *generation,
            digest: declared.digest,
        },
        Some(old) if declared.digest.is_none() || declared.digest == old.digest => old.clone(),
        Some(Declared {
            generation,
            digest: Some(_),
        }) => Declared {
            generation: generation.saturating_add(1),
            digest: declared.digest,
        },
    }
}

/// Whether a record says what is to be remembered. A deadline counts from the phase's begin, less
/// what was spent of the grace before.
pub(crate) fn same_record(actual: Option<&Record>, wanted: Option<&RecordSpec>) -> bool {
    match (actual, wanted) {
        (None, None) => true,
        (Some(_), None) | (None, Some(_)) => false,
        (Some(actual), Some(wanted)) => {
            let RecordSpec {
                owner,
                wanted,
                serving,
                has_access_modules,
                rests_on,
                phase,
                close_after,
            } = wanted;
            actual.owner == *owner
                && actual.wanted == *wanted
                && actual.serving == *serving
                && actual.has_access_modules == *has_access_modules
                && actual.rests_on == *rests_on
                && actual.phase == *phase
                && actual.close_at == close_after.map(|span| actual.closes_at(span))
        }
    }
}
