//! Closing routes: what the edge does by itself, at a deadline (R19) and after a restart (R10).

use std::collections::{BTreeMap, BTreeSet};

use model::id::{EdgeId, RouteId};

use super::{Attempt, Change, Changes, record};

impl Attempt<'_> {
    pub(super) fn close_overdue(&self) -> Changes {
        self.controller_key("to close what is overdue")?;
        let now = self.context.now;
        let overdue = self.index.deadlines.iter().take_while(|(at, _)| *at <= now);
        Ok(self.closed(overdue.map(|(_, route)| route)))
    }

    pub(super) fn close_routes(&self, routes: &BTreeSet<RouteId>) -> Changes {
        self.controller_key("to close routes by their ids")?;
        Ok(self.closed(routes.iter()))
    }

    /// The edges of these routes with the routes closed; routes that are gone are passed over.
    fn closed<'r>(&self, routes: impl Iterator<Item = &'r RouteId>) -> Vec<Change> {
        let mut by_edge: BTreeMap<&EdgeId, Vec<&RouteId>> = BTreeMap::new();
        for route in routes {
            if let Some(edge) = self.index.routes.get(route) {
                by_edge.entry(edge).or_default().push(route);
            }
        }
        let mut changes = Vec::new();
        for (id, routes) in by_edge {
            let Some(edge) = self.state.edges.get(id) else {
                continue;
            };
            let mut edge = (**edge).clone();
            for route in routes {
                if let Some(route) = edge.routes.get_mut(route) {
                    *route = record::close(route, self.context.now);
                }
            }
            changes.push(Change::Edge(id.clone(), Some(edge)));
        }
        changes
    }
}
