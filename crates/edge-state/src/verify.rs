//! Whether a state is whole: every reference leads somewhere, and what must be unique is.
//!
//! A state that was read from disk is served only if this finds nothing (R10), and every command
//! leaves it so (a property test).

use std::{collections::BTreeMap, collections::BTreeSet, fmt};

use model::{
    backend::BackendKind,
    id::{BackendId, IpPolicyId},
    module::IpRules,
    place::Match,
};

use crate::{
    index::{Index, policies_of},
    state::{Edge, EdgeState, IpPolicy, Route},
};

/// One thing that cannot be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{object}: {problem}")]
pub struct Inconsistency {
    /// The id of what it is about.
    pub object: String,
    /// What is wrong with it.
    pub problem: String,
}

/// Finds everything that cannot be.
///
/// # Errors
/// All of it.
pub fn verify(state: &EdgeState) -> Result<(), Vec<Inconsistency>> {
    let mut findings = Findings::default();
    let index = Index::of(state);
    let claimed: usize = state.edges.values().map(|edge| edge.hosts.len()).sum();
    findings.check(
        claimed == index.hosts.len(),
        &"edges",
        "two edges answer for one host",
    );
    let routes: usize = state.edges.values().map(|edge| edge.routes.len()).sum();
    findings.check(
        routes == index.routes.len(),
        &"edges",
        "two edges have a route of one id",
    );
    let rules: usize = state
        .ip_policies
        .values()
        .map(|policy| policy.rules.len())
        .sum();
    findings.check(
        rules == index.rules.len(),
        &"IP policies",
        "two policies have a rule of one id",
    );
    findings.check(
        state.domains.len() == index.domains.len(),
        &"domains",
        "a host is reserved twice",
    );
    findings.check(
        state.keys.len() == index.tokens.len(),
        &"API keys",
        "two keys have one token",
    );
    for (id, edge) in &state.edges {
        findings.edge(state, &index, id, edge);
    }
    for (id, backend) in &state.backends {
        let fits = match (id, &backend.kind) {
            (BackendId::TunnelGroup(_), BackendKind::TunnelGroup { labels: _ })
            | (
                BackendId::HttpResponse(_),
                BackendKind::HttpResponse {
                    status: _,
                    headers: _,
                    body: _,
                },
            )
            | (BackendId::Static(_), BackendKind::Static { address: _ }) => true,
            (BackendId::TunnelGroup(_) | BackendId::HttpResponse(_) | BackendId::Static(_), _) => {
                false
            }
        };
        findings.check(fits, id, "its id is that of another kind");
    }
    let used: BTreeSet<_> = state
        .edges
        .values()
        .flat_map(|edge| edge.routes.values())
        .flat_map(policies_of)
        .map(|policy| (&policy.id, policy.version))
        .collect();
    for (id, policy) in &state.ip_policies {
        findings.policy(&used, id, policy);
    }
    if findings.0.is_empty() {
        Ok(())
    } else {
        Err(findings.0)
    }
}

#[derive(Default)]
struct Findings(Vec<Inconsistency>);

impl Findings {
    fn check(&mut self, fine: bool, object: &dyn fmt::Display, problem: &str) {
        if !fine {
            self.0.push(Inconsistency {
                object: object.to_string(),
                problem: problem.to_owned(),
            });
        }
    }

    fn edge(&mut self, state: &EdgeState, index: &Index, id: &dyn fmt::Display, edge: &Edge) {
        for host in &edge.hosts {
            self.check(
                index.domain_of(host, None).is_some(),
                id,
                "no reserved domain covers one of its hosts",
            );
        }
        let dangling = edge
            .certificate
            .as_ref()
            .is_some_and(|c| !state.certificates.contains_key(c));
        self.check(!dangling, id, "its certificate is not there");
        let authorities = edge
            .mutual_tls
            .as_ref()
            .is_none_or(|module| !module.authorities.is_empty());
        self.check(
            authorities,
            id,
            "its mutual TLS has no certificate authority",
        );
        self.check(
            edge.generation <= state.revision,
            id,
            "its generation is ahead of the state",
        );
        let mut places: BTreeSet<&Match> = BTreeSet::new();
        for (route_id, route) in &edge.routes {
            self.check(
                places.insert(&route.place),
                route_id,
                "another route of the edge has its match",
            );
            self.check(
                route.generation <= edge.generation,
                route_id,
                "its generation is ahead of its edge",
            );
            let recorded = route.record.is_none() || edge.controller.is_some();
            self.check(
                recorded,
                route_id,
                "it has a record, and its edge no controller",
            );
            self.route(state, route_id, route);
        }
    }

    fn route(&mut self, state: &EdgeState, id: &dyn fmt::Display, route: &Route) {
        let canonical = route.place.path.starts_with('/')
            && Match::new(route.place.match_type, &route.place.path) == route.place;
        self.check(canonical, id, "its match is not normalised");
        let dangling = route
            .backend
            .as_ref()
            .is_some_and(|b| !state.backends.contains_key(&b.id));
        self.check(!dangling, id, "its backend is not there");
        let names_one = route
            .modules
            .ip_restriction
            .as_ref()
            .is_none_or(|m| !m.policies.is_empty());
        self.check(names_one, id, "its IP restriction names no policy");
        for policy in policies_of(route) {
            let versions = state
                .ip_policies
                .get(&policy.id)
                .map(|policy| &policy.versions);
            let there = versions.is_some_and(|versions| versions.contains_key(&policy.version));
            self.check(
                there,
                id,
                "a version of an IP policy that it refers to is not there",
            );
        }
    }

    fn policy(&mut self, used: &BTreeSet<(&IpPolicyId, u64)>, id: &IpPolicyId, policy: &IpPolicy) {
        let shown: BTreeMap<_, _> = policy
            .rules
            .values()
            .map(|rule| (rule.cidr, rule.action))
            .collect();
        self.check(
            shown.len() == policy.rules.len(),
            id,
            "it has a network twice",
        );
        let same = policy.versions.get(&policy.newest) == Some(&IpRules(shown));
        self.check(same, id, "its rules are not those of its newest version");
        let kept = |version: &u64| *version == policy.newest || used.contains(&(id, *version));
        self.check(
            policy.versions.keys().all(kept),
            id,
            "it keeps a version that nothing refers to",
        );
        let for_good = policy.controller.is_none() || policy.newest == 1;
        self.check(for_good, id, "a controller's policy has changed");
    }
}
