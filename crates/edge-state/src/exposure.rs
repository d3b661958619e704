//! Which request reaches which backend under which modules: what the promise speaks about, as a
//! function of the state, read straight off it.
//!
//! Guarantees: content is compared, not ids or versions (R17): two handlings are equal when every
//! request of every client is treated alike. Modules that are not enabled do nothing and are left
//! out; the policies of a restriction are pooled, so their order is left out too. The table that
//! [`crate::compile`] makes says the same (a property test holds the two together).
//!
//! Assumption: paths are normalised ([`routing::path`]). Cost: linear in hosts and routes; it is
//! written to be believed, not to be fast.

use std::{collections::BTreeSet, net::IpAddr, sync::Arc};

use model::{
    complete_set::CompleteSet,
    host::Host,
    id::EdgeId,
    module::{IpRestriction, IpRules, Modules},
};
use routing::{modules::ip_restriction::AddressSet, path::alternative_readings};

use crate::state::{Edge, EdgeState, PolicyRef, Route};

/// What is done with a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Handling {
    /// It reaches no backend.
    Refused(Why),
    /// It reaches the backend of the set, if the set's modules let it pass.
    Served(Box<Served>),
}

/// Under what a request is served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Served {
    /// The complete set.
    pub set: CompleteSet<IpRules>,
    /// Policies of which each alone must let the client pass, too (R17).
    pub also_refuse: BTreeSet<IpRules>,
}

/// Why a request reaches no backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Why {
    /// No edge answers for the host.
    NoEdge,
    /// The edge has no route for the path.
    NoRoute,
    /// Backends may read the path as that of another route (R16).
    Ambiguous,
    /// The route is closed.
    Closed,
    /// The state contradicts itself there (R11); [`crate::verify`] finds it.
    Inconsistent,
}

impl Handling {
    /// Whether a client at this (canonical) address may get through.
    #[must_use]
    pub fn admits(&self, client: IpAddr) -> bool {
        match self {
            Self::Refused(_) => false,
            Self::Served(served) => served.admits(client),
        }
    }
}

impl Served {
    /// Whether the addresses let a client at this (canonical) address pass.
    #[must_use]
    pub fn admits(&self, client: IpAddr) -> bool {
        let restricted = self.set.modules.ip_restriction.iter();
        restricted
            .map(|module| AddressSet::admitted_by(&module.policies))
            .chain(
                self.also_refuse
                    .iter()
                    .map(|rules| AddressSet::admitted_by(std::slice::from_ref(rules))),
            )
            .all(|addresses| addresses.contains(client))
    }
}

/// What is done with requests for this host and path.
#[must_use]
pub fn handling(state: &EdgeState, host: &Host, path: &str) -> Handling {
    match edge_for(state, host) {
        Some((_, edge)) => on_edge(state, edge, path),
        None => Handling::Refused(Why::NoEdge),
    }
}

/// The edge that answers for a host: the one with the host itself, else with its wildcard.
#[must_use]
pub fn edge_for<'s>(state: &'s EdgeState, host: &Host) -> Option<(&'s EdgeId, &'s Arc<Edge>)> {
    let claimed = |wildcard: bool| {
        state.edges.iter().find(move |(_, edge)| {
            edge.hosts
                .iter()
                .any(|pattern| pattern.is_wildcard() == wildcard && pattern.matches(host))
        })
    };
    claimed(false).or_else(|| claimed(true))
}

/// What an edge does with requests for a path.
#[must_use]
pub fn on_edge(state: &EdgeState, edge: &Edge, path: &str) -> Handling {
    let selected = select(edge, path).map(|route| &route.place);
    match alternative_readings(path) {
        Ok(readings)
            if readings
                .iter()
                .all(|reading| select(edge, reading).map(|route| &route.place) == selected) => {}
        Ok(_) | Err(_) => return Handling::Refused(Why::Ambiguous),
    }
    match select(edge, path) {
        Some(route) => on_route(state, edge, route),
        None => Handling::Refused(Why::NoRoute),
    }
}

fn select<'e>(edge: &'e Edge, path: &str) -> Option<&'e Route> {
    let matching = edge
        .routes
        .values()
        .filter(|route| route.place.matches(path));
    matching.min_by(|left, right| left.place.rank(&right.place))
}

/// What a route does with the requests that it answers.
#[must_use]
pub fn on_route(state: &EdgeState, edge: &Edge, route: &Route) -> Handling {
    let Some(backend) = route.open_backend() else {
        return Handling::Refused(Why::Closed);
    };
    let (Some(modules), Some(also_refuse)) = (in_force(state, route), also_refuse(state, route))
    else {
        return Handling::Refused(Why::Inconsistent);
    };
    if !state.backends.contains_key(backend) {
        return Handling::Refused(Why::Inconsistent);
    }
    let set = CompleteSet {
        demands: edge.demands(),
        modules,
        backend: backend.clone(),
    };
    Handling::Served(Box::new(Served { set, also_refuse }))
}

/// The content of a version of a policy.
fn content<'s>(state: &'s EdgeState, policy: &PolicyRef) -> Option<&'s IpRules> {
    state
        .ip_policies
        .get(&policy.id)?
        .versions
        .get(&policy.version)
}

/// What refuses on top, by content; `None` when a reference dangles.
pub(crate) fn also_refuse(state: &EdgeState, route: &Route) -> Option<BTreeSet<IpRules>> {
    route
        .also_refuse
        .iter()
        .map(|policy| content(state, policy).cloned())
        .collect()
}

/// The modules that are applied, by content; `None` when a reference dangles.
pub(crate) fn in_force(state: &EdgeState, route: &Route) -> Option<Modules<IpRules>> {
    let Modules {
        ip_restriction,
        user_agent_filter,
        webhook_verification,
        oauth,
        oidc,
        saml,
        traffic_policy,
        circuit_breaker,
        websocket_tcp_converter,
        request_headers,
        response_headers,
        compression,
    } = &route.modules;
    let ip_restriction = match ip_restriction.as_ref().filter(|module| module.enabled) {
        None => None,
        Some(IpRestriction { enabled, policies }) => {
            let pooled: BTreeSet<_> = policies
                .iter()
                .map(|policy| content(state, policy).cloned())
                .collect::<Option<_>>()?;
            Some(IpRestriction {
                enabled: *enabled,
                policies: pooled.into_iter().collect(),
            })
        }
    };
    Some(Modules {
        ip_restriction,
        user_agent_filter: user_agent_filter.clone().filter(|module| module.enabled),
        webhook_verification: webhook_verification.clone().filter(|module| module.enabled),
        oauth: oauth.clone().filter(|module| module.enabled),
        oidc: oidc.clone().filter(|module| module.enabled),
        saml: saml.clone().filter(|module| module.enabled),
        traffic_policy: traffic_policy.clone().filter(|module| module.enabled),
        circuit_breaker: circuit_breaker.clone().filter(|module| module.enabled),
        websocket_tcp_converter: websocket_tcp_converter.filter(|module| module.enabled),
        request_headers: request_headers.clone().filter(|module| module.enabled),
        response_headers: response_headers.clone().filter(|module| module.enabled),
        compression: compression.filter(|module| module.enabled),
    })
}
