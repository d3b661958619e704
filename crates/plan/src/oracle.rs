//! What a declaration says of a request, told in the plainest way there is: by going through all
//! of it. Shares nothing with the table that the proxy serves nor with how plans are made, so
//! that a fault there cannot hide here.

use std::{cmp::Ordering, collections::BTreeSet};

use edge_state::{
    exposure::{Handling, Served, Why, on_edge},
    state::{Edge, EdgeState},
};
use model::{
    complete_set::CompleteSet,
    declaration::{Declaration, DeclaredHost, Outcome, PolicyName},
    host::{Host, HostPattern},
    module::{IpRules, Modules},
    place::{Match, MatchType},
};

/// What is declared for the requests of one host: by this controller's declaration, or by an edge
/// of somebody else, which is its owner's declaration.
pub(crate) enum Oracle<'a> {
    /// Nobody names the host, nor its wildcard.
    Nobody,
    /// An edge that is not ours.
    Foreign(&'a EdgeState, &'a Edge),
    /// Our declaration.
    Ours(&'a Declaration, &'a EdgeState, &'a DeclaredHost),
}

impl<'a> Oracle<'a> {
    /// Kubernetes, Ingress, "hostname wildcards": the precise host first, then the wildcard that
    /// covers its first label.
    pub(crate) fn of(
        declared: &'a Declaration,
        actual: &'a EdgeState,
        foreign: impl Fn(&HostPattern) -> Option<&'a Edge>,
        host: &Host,
    ) -> Self {
        let rest = host
            .as_str()
            .split_once('.')
            .map(|(_, rest)| format!("*.{rest}"));
        for pattern in [Some(host.as_str()), rest.as_deref()].into_iter().flatten() {
            let Ok(pattern) = HostPattern::parse(pattern) else {
                continue;
            };
            if let Some(edge) = foreign(&pattern) {
                return Self::Foreign(actual, edge);
            }
            if let Some(own) = declared.hosts.get(&pattern) {
                return Self::Ours(declared, actual, own);
            }
        }
        Self::Nobody
    }

    /// What is declared for a path.
    pub(crate) fn handling(&self, path: &str) -> Handling {
        match self {
            Self::Nobody => Handling::Refused(Why::NoEdge),
            Self::Foreign(actual, edge) => on_edge(actual, edge, path),
            Self::Ours(declared, actual, host) => on_host(declared, actual, host, path),
        }
    }
}

fn on_host(
    declared: &Declaration,
    actual: &EdgeState,
    host: &DeclaredHost,
    path: &str,
) -> Handling {
    let mut best = None;
    for (place, route) in &host.routes {
        let better = |(other, _): &(&Match, _)| before(place, other);
        if is_matched(place, path) && best.as_ref().is_none_or(better) {
            best = Some((place, route));
        }
    }
    let Some((_, route)) = best else {
        return Handling::Refused(Why::NoRoute);
    };
    let Outcome::Complete(set) = &route.outcome else {
        return Handling::Refused(Why::Closed);
    };
    let CompleteSet {
        demands,
        modules,
        backend,
    } = set;
    match modules
        .clone()
        .with_policies(|name| rules(declared, actual, &name).ok_or(()))
    {
        Ok(modules) => {
            let set = CompleteSet {
                demands: demands.clone(),
                modules: enabled(modules),
                backend: backend.clone(),
            };
            Handling::Served(Box::new(Served {
                set,
                also_refuse: BTreeSet::new(),
            }))
        }
        Err(()) => Handling::Refused(Why::Inconsistent),
    }
}

fn rules(declared: &Declaration, actual: &EdgeState, name: &PolicyName) -> Option<IpRules> {
    match name {
        PolicyName::Declared(name) => Some(declared.policies.get(name)?.rules.clone()),
        PolicyName::AtEdge(id) => {
            let policy = actual.ip_policies.get(id)?;
            policy.versions.get(&policy.newest).cloned()
        }
    }
}

/// Only what is applied takes part, and pooled policies have no order.
fn enabled(modules: Modules<IpRules>) -> Modules<IpRules> {
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
    } = modules;
    Modules {
        ip_restriction: ip_restriction
            .filter(|module| module.enabled)
            .map(|mut module| {
                module.policies.sort();
                module.policies.dedup();
                module
            }),
        user_agent_filter: user_agent_filter.filter(|module| module.enabled),
        webhook_verification: webhook_verification.filter(|module| module.enabled),
        oauth: oauth.filter(|module| module.enabled),
        oidc: oidc.filter(|module| module.enabled),
        saml: saml.filter(|module| module.enabled),
        traffic_policy: traffic_policy.filter(|module| module.enabled),
        circuit_breaker: circuit_breaker.filter(|module| module.enabled),
        websocket_tcp_converter: websocket_tcp_converter.filter(|module| module.enabled),
        request_headers: request_headers.filter(|module| module.enabled),
        response_headers: response_headers.filter(|module| module.enabled),
        compression: compression.filter(|module| module.enabled),
    }
}

/// Kubernetes, Ingress, "path types": Exact is the whole path, Prefix goes by elements split at
/// slashes; the edge API's string prefix goes by bytes.
fn is_matched(place: &Match, path: &str) -> bool {
    match place.match_type {
        MatchType::Exact => place.path == path,
        MatchType::StringPrefix => path.as_bytes().starts_with(place.path.as_bytes()),
        MatchType::ElementPrefix => {
            let wanted = place.path.split('/').filter(|element| !element.is_empty());
            let mut given = path.split('/').skip(1);
            wanted
                .into_iter()
                .all(|element| given.next() == Some(element))
        }
    }
}

/// Kubernetes, Ingress, "multiple matches": an exact path first, then the longest; here, at equal
/// length, an element prefix before a string prefix.
fn before(one: &Match, other: &Match) -> bool {
    let kind = |place: &Match| match place.match_type {
        MatchType::Exact => 0_u8,
        MatchType::ElementPrefix => 1,
        MatchType::StringPrefix => 2,
    };
    let exact = (kind(one) == 0).cmp(&(kind(other) == 0));
    let longer = one.path.len().cmp(&other.path.len());
    exact.then(longer).then(kind(other).cmp(&kind(one))) == Ordering::Greater
}
