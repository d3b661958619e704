//! What a controller remembers about its routes, stamped with the edge's clock (R19).

use model::time::{Span, Timestamp};

use crate::{
    command::RecordSpec,
    state::{Declared, Phase, Record, Route},
};

/// A record as the edge keeps it. `since` is the instant at which the phase began; the deadline
/// counts from there, so that writing the same again resets neither.
pub(super) fn stamp(old: Option<&Record>, spec: &RecordSpec, now: Timestamp) -> Record {
    let RecordSpec {
        owner,
        wanted,
        serving,
        has_access_modules,
        rests_on,
        phase,
        close_after,
    } = spec;
    let since = old
        .filter(|old| old.phase == *phase)
        .map_or(now, |old| old.since);
    let mut record = Record {
        owner: owner.clone(),
        wanted: wanted.clone(),
        serving: serving.clone(),
        has_access_modules: *has_access_modules,
        rests_on: rests_on.clone(),
        phase: *phase,
        since,
        lost_for: lost_for(old, *phase, now),
        close_at: None,
    };
    record.close_at = close_after.map(|span| record.closes_at(span));
    record
}

/// What is spent of the grace for a loss. While something is pending no grace runs (R19); what
/// ran before is not forgotten.
fn lost_for(old: Option<&Record>, phase: Phase, now: Timestamp) -> Span {
    match (old, phase) {
        (None, _) | (Some(_), Phase::Open | Phase::Closed | Phase::Removing) => Span::ZERO,
        (Some(old), Phase::Held) if old.phase == Phase::Lost => {
            old.lost_for.plus(now.since(old.since))
        }
        (Some(old), Phase::Held | Phase::Lost) => old.lost_for,
    }
}

/// Somebody other than the owning controller wrote: what is in force is no longer what the digest
/// speaks of (R9), so the controller must write again.
pub(super) fn void_digest(route: &mut Route) {
    if let Some(Record {
        serving: Some(Declared {
            generation: _,
            digest,
        }),
        ..
    }) = &mut route.record
    {
        *digest = None;
    }
}

/// The route closed: without backend, and its record says so. A tombstone stays one.
pub(super) fn close(route: &Route, now: Timestamp) -> Route {
    let mut closed = route.clone();
    closed.backend = None;
    if let Some(record) = &mut closed.record {
        record.serving = None;
        record.close_at = None;
        record.lost_for = Span::ZERO;
        match record.phase {
            Phase::Open | Phase::Held | Phase::Lost => {
                record.phase = Phase::Closed;
                record.since = now;
            }
            Phase::Closed | Phase::Removing => {}
        }
    }
    closed
}
