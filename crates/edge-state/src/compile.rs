//! From a state to the table that the proxy serves.
//!
//! Guarantees: a route that is closed, that refers to something that is not there, or whose set
//! holds what this process cannot enforce compiles to a refusal (R1, R10, R11), and no other route
//! suffers from it (R15). What did not change since the previous state is shared with its table,
//! so that a change costs what it touches, and so that the proxy sees by pointer what is the same.
//!
//! Assumption: `enforceable` is the same as when the previous table was made.

use std::{collections::BTreeMap, collections::BTreeSet, sync::Arc};

use model::{
    host::HostPattern,
    id::{BackendId, EdgeId},
    module::ModuleKind,
};
use routing::{
    chain::Chain,
    refusal::Refusal,
    table::{BackendEntry, CompiledSet, EdgeEntry, RouteEntry, RouteOutcome, Table},
};

use crate::{
    difference::differences,
    exposure,
    state::{Backend, Edge, EdgeState, Route},
};

/// The table of a state.
#[must_use]
pub fn compile(
    state: &EdgeState,
    enforceable: &BTreeSet<ModuleKind>,
    previous: Option<(&EdgeState, &Table)>,
) -> Table {
    let mut compiler = Compiler {
        state,
        enforceable,
        previous,
        backends: BTreeMap::new(),
    };
    let Some((old, table)) = previous else {
        let entries = state
            .edges
            .iter()
            .map(|(id, edge)| (edge, compiler.edge(id, edge)));
        return Table::new(entries.flat_map(|(edge, entry)| hosts(edge, entry)));
    };
    let mut changed: BTreeMap<_, _> = differences(&old.edges, &state.edges)
        .map(|(id, was, is)| (id, (was, is)))
        .collect();
    let backends: BTreeSet<_> = differences(&old.backends, &state.backends)
        .map(|(id, _, _)| id)
        .collect();
    if !backends.is_empty() {
        let moves = |route: &Route| route.open_backend().is_some_and(|id| backends.contains(id));
        let moved = state
            .edges
            .iter()
            .filter(|(_, edge)| edge.routes.values().any(moves));
        for (id, edge) in moved {
            changed.entry(id).or_insert((Some(edge), Some(edge)));
        }
    }
    let gone = changed
        .values()
        .filter_map(|(was, _)| *was)
        .flat_map(|edge| &edge.hosts);
    let gone: Vec<_> = gone.map(|host| (host.clone(), None)).collect();
    let new = changed
        .iter()
        .filter_map(|(id, (_, is))| is.map(|edge| (edge, compiler.edge(id, edge))));
    let new = new.flat_map(|(edge, entry)| hosts(edge, entry));
    table.with_hosts(
        gone.into_iter()
            .chain(new.map(|(host, entry)| (host, Some(entry)))),
    )
}

fn hosts(
    edge: &Edge,
    entry: Arc<EdgeEntry>,
) -> impl Iterator<Item = (HostPattern, Arc<EdgeEntry>)> {
    edge.hosts
        .iter()
        .map(move |host| (host.clone(), Arc::clone(&entry)))
}

struct Compiler<'a> {
    state: &'a EdgeState,
    enforceable: &'a BTreeSet<ModuleKind>,
    previous: Option<(&'a EdgeState, &'a Table)>,
    /// Routes of one backend share its entry.
    backends: BTreeMap<&'a BackendId, Arc<BackendEntry>>,
}

/// An edge as it was, and what it compiled to.
#[derive(Clone, Copy)]
struct Before<'a> {
    state: &'a EdgeState,
    edge: &'a Arc<Edge>,
    entry: &'a Arc<EdgeEntry>,
}

impl<'a> Compiler<'a> {
    fn edge(&mut self, id: &EdgeId, edge: &'a Arc<Edge>) -> Arc<EdgeEntry> {
        let before = self.before(id);
        let demands = edge.demands();
        let enforced = demands.kinds().is_subset(self.enforceable);
        let routes = edge.routes.iter().map(|(route_id, route)| RouteEntry {
            id: route_id.clone(),
            place: route.place.clone(),
            generation: route.generation,
            outcome: if enforced {
                let old = before.and_then(|before| {
                    let old = before.edge.routes.get(route_id)?;
                    let entry = before
                        .entry
                        .routes()
                        .iter()
                        .find(|entry| entry.id == *route_id)?;
                    Some((before.state, old, entry))
                });
                self.route(route, old)
            } else {
                RouteOutcome::Refuse(Refusal::NotEnforceable)
            },
        });
        let routes = routes.collect();
        let certificate = edge.certificate.clone();
        Arc::new(EdgeEntry::new(
            id.clone(),
            demands,
            certificate,
            edge.generation,
            routes,
        ))
    }

    fn before(&self, id: &EdgeId) -> Option<Before<'a>> {
        let (state, table) = self.previous?;
        let edge = state.edges.get(id)?;
        let entry = &table.host(edge.hosts.first()?.as_str())?.edge;
        (entry.id == *id).then_some(Before { state, edge, entry })
    }

    /// Whether a route's backend is the very same as in an earlier state.
    fn same_backend(&self, earlier: &EdgeState, route: &Route) -> bool {
        let Some(id) = route.open_backend() else {
            return true;
        };
        match (self.state.backends.get(id), earlier.backends.get(id)) {
            (Some(now), Some(then)) => Arc::ptr_eq(now, then),
            (_, _) => false,
        }
    }

    fn route(
        &mut self,
        route: &'a Route,
        old: Option<(&EdgeState, &Route, &RouteEntry)>,
    ) -> RouteOutcome {
        let Some(backend_id) = route.open_backend() else {
            return RouteOutcome::Refuse(Refusal::RouteClosed);
        };
        if let Some((state, old, entry)) = old
            && old.modules == route.modules
            && old.also_refuse == route.also_refuse
            && old.backend == route.backend
            && self.same_backend(state, route)
            && let RouteOutcome::Serve(set) = &entry.outcome
        {
            return RouteOutcome::Serve(Arc::clone(set));
        }
        let chain = self.chain(route);
        match (chain, self.backend(backend_id)) {
            (Some(chain), Some(backend)) => {
                RouteOutcome::Serve(Arc::new(CompiledSet { chain, backend }))
            }
            (_, _) => RouteOutcome::Refuse(Refusal::NotEnforceable),
        }
    }

    fn chain(&self, route: &Route) -> Option<Chain> {
        let modules = exposure::in_force(self.state, route)?;
        let also_refuse: Vec<_> = exposure::also_refuse(self.state, route)?
            .into_iter()
            .collect();
        if !modules.kinds().is_subset(self.enforceable) {
            return None;
        }
        Chain::compile(&modules, &also_refuse).ok()
    }

    fn backend(&mut self, id: &'a BackendId) -> Option<Arc<BackendEntry>> {
        if let Some(entry) = self.backends.get(id) {
            return Some(Arc::clone(entry));
        }
        let Backend {
            meta: _,
            controller: _,
            kind,
            service,
            endpoints,
        } = self.state.backends.get(id)?.as_ref();
        let entry = Arc::new(BackendEntry {
            id: id.clone(),
            kind: kind.clone(),
            service: service.clone(),
            endpoints: endpoints.iter().copied().collect(),
        });
        self.backends.insert(id, Arc::clone(&entry));
        Some(entry)
    }
}
