//! What of a change only refuses more: the part that is done even where a change cannot be saved
//! (R10), since to close is always allowed and must never wait (R5).

use std::collections::BTreeSet;

use model::id::RouteId;

use crate::state::{Edge, EdgeState, Route};

/// The routes that are open in `old` and do not answer in `new` as an open route of their edge:
/// closed, deleted, deleted with their edge, or on an edge that has lost one of its hosts.
///
/// Guarantee: closing them in `old` (`CloseRoutes`) refuses every request that `new` takes from an
/// open route without giving it to another complete set of the same route; and apart from that
/// changes nothing. A route that stays open, however much stricter, is not among them: under what
/// could not be saved it keeps its old set, whole.
#[must_use]
pub fn closings(old: &EdgeState, new: &EdgeState) -> BTreeSet<RouteId> {
    let mut closings = BTreeSet::new();
    for (id, edge) in &old.edges {
        let after = new.edges.get(id);
        if after.is_some_and(|after| std::sync::Arc::ptr_eq(edge, after)) {
            continue;
        }
        let after = after
            .filter(|after| after.hosts.is_superset(&edge.hosts))
            .map(AsRef::as_ref);
        let closes = |id: &RouteId, route: &Route| is_open(route) && !stays_open(id, route, after);
        let closed = edge.routes.iter().filter(|(id, route)| closes(id, route));
        closings.extend(closed.map(|(id, _)| id.clone()));
    }
    closings
}

fn is_open(route: &Route) -> bool {
    route.open_backend().is_some()
}

fn stays_open(id: &RouteId, route: &Route, after: Option<&Edge>) -> bool {
    let after = after.and_then(|edge| edge.routes.get(id));
    after.is_some_and(|after| is_open(after) && after.place == route.place)
}
