//! The small universe, completely: every state, every declaration, every level of atomicity,
//! every failure.
//!
//! Two hosts: `a.example.com` with Prefix `/`, Prefix `/a` and Exact `/a`, and `*.example.com`,
//! which would catch its requests, with Prefix `/`. Each route is absent, closed, or open with
//! set A and backend x (an IP policy that all routes share), set B and backend y (another policy
//! and a header), or no module and backend x; each declaration says one of the same five of it
//! (*closed* is one that fails preflight). The host's mutual TLS is off or on in either; the
//! shared policy's declared content is what stands at the edge, or another.
//!
//! A node is a state of the edge under one declaration. From it one plan is made. What can have
//! been applied of it is a node again: on the level of the product's own edge every set of steps
//! that holds, with a step, all that it requires (every prefix, every step that failed, every lost
//! answer, every crash, in any number); on the other levels every prefix, and every step that
//! fails or loses its answer while the others go on. Failures in later plans follow from there:
//! nothing but the state is remembered, so any number of them is a path of the same graph. From
//! each node the same after time has passed is a node, too. Every step out of every node is judged
//! for every request.
//!
//! Reductions, and why they leave nothing out:
//! - Where `a.example.com` stands at the edge and is declared, its requests never reach the
//!   wildcard and no step of either host depends on the other, so the two are independent: all
//!   states of the one are combined with one of the other. Where it does not stand or is not
//!   declared, every combination is there. (`independent_hosts_do_not_meet` holds this up.)
//! - On the levels without *replace*, a host that is declared and does not stand yet is only
//!   created by the first plan, whatever is declared for it: all states of the wildcard are
//!   combined with two declarations of the host, which differ in every request, and all other
//!   declarations of the host with one wildcard.
//! - A record's phase is told apart by age only where a rule counts it here (tombstones); the
//!   numbers of generations and instants, which no rule compares, do not tell nodes apart.
//! - The shared policy's other content is left out where neither side uses it; mutual TLS that
//!   stays on is left out, since it is the same constant part of every set as mutual TLS that
//!   stays off.
//! - Steps that change no edge (policies, backends, reservations) are applied before the others;
//!   when one fails, what requires it fails, and that is among the sets of steps above.

use std::collections::{BTreeMap, BTreeSet};

use edge_state::{
    capabilities::Atomicity,
    exposure::{Handling, Served, Why},
    state::{EdgeState, Phase},
};
use model::{
    complete_set::CompleteSet,
    declaration::{Declaration, PolicyName},
    host::{Host, HostPattern},
    module::{EdgeDemands, IpRules, Modules},
    place::Match,
    time::Timestamp,
};

use super::fixture::{Say, declaration, exact, host, mutual_tls, policies, prefix, service, state};

/// What is said of the four routes: three of the host, one of the wildcard.
pub(super) type Says = [Say; 4];

/// One side of a pair: what is there, or what is declared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Side {
    pub(super) says: Says,
    pub(super) mutual_tls: bool,
    pub(super) wide: bool,
}

/// The parts of the universe.
pub(super) struct Universe {
    host: HostPattern,
    wildcard: HostPattern,
    places: [Match; 3],
}

impl Universe {
    pub(super) fn new() -> Self {
        Self {
            host: host("a.example.com"),
            wildcard: host("*.example.com"),
            places: [prefix("/"), prefix("/a"), exact("/a")],
        }
    }

    fn lines(&self, says: Says) -> [(&HostPattern, &Match, Say); 4] {
        let [root, below, exact] = &self.places;
        [
            (&self.host, root, says[0]),
            (&self.host, below, says[1]),
            (&self.host, exact, says[2]),
            (&self.wildcard, root, says[3]),
        ]
    }

    fn demands(&self, on: bool) -> BTreeMap<HostPattern, EdgeDemands> {
        let demands = if on {
            mutual_tls()
        } else {
            EdgeDemands::default()
        };
        BTreeMap::from([(self.host.clone(), demands)])
    }

    pub(super) fn state(&self, side: Side) -> EdgeState {
        state(&self.lines(side.says), &self.demands(side.mutual_tls))
    }

    pub(super) fn declaration(&self, side: Side) -> Declaration {
        declaration(
            &self.lines(side.says),
            &self.demands(side.mutual_tls),
            side.wide,
        )
    }

    /// Requests for which any two routes differ, on the host and on another below the wildcard.
    pub(super) fn requests(&self) -> Vec<(Host, &'static str)> {
        let paths = ["/", "/a", "/a/", "/a/below", "/abeside"];
        let names = ["a.example.com", "b.example.com"];
        names
            .iter()
            .flat_map(|name| {
                paths
                    .iter()
                    .map(|path| (Host::parse(name).expect("a host"), *path))
            })
            .collect()
    }

    /// What a declaration says of a request, found by the reference matcher.
    pub(super) fn declared(&self, side: Side, name: &Host, path: &str) -> Handling {
        let refused = Handling::Refused(Why::Closed);
        let lines = self.lines(side.says);
        let said: Vec<_> = lines
            .iter()
            .filter(|(_, _, say)| *say != Say::Absent)
            .collect();
        let Some(pattern) = testkit::oracle::host(said.iter().map(|line| line.0), name.as_str())
        else {
            return refused;
        };
        let on_host = said.iter().filter(|line| line.0 == pattern);
        let Some(place) = testkit::oracle::route(on_host.clone().map(|line| line.1), path) else {
            return refused;
        };
        let say = on_host
            .clone()
            .find(|line| line.1 == place)
            .map_or(Say::Absent, |line| line.2);
        let Some(backend) = say.backend() else {
            return refused;
        };
        let demands = self
            .demands(side.mutual_tls)
            .remove(pattern)
            .unwrap_or_default();
        let known = policies(side.wide);
        let modules: Modules<IpRules> = say
            .modules()
            .with_policies(|name| match name {
                PolicyName::Declared(name) => known.get(&name).map(|p| p.rules.clone()).ok_or(()),
                PolicyName::AtEdge(_) => Err(()),
            })
            .expect("the policies of the tests are declared");
        let set = CompleteSet {
            demands,
            modules,
            backend: service(backend).backend_id(),
        };
        Handling::Served(Box::new(Served {
            set,
            also_refuse: BTreeSet::new(),
        }))
    }
}

/// Everything about a state that a plan can depend on, in few bytes.
pub(super) fn key(state: &EdgeState, universe: &Universe, aged: bool) -> Vec<u8> {
    let mut key = Vec::with_capacity(64);
    for name in [&universe.host, &universe.wildcard] {
        let Some(edge) = state.edges.values().find(|edge| edge.hosts.contains(name)) else {
            key.push(0);
            continue;
        };
        key.push(1 + u8::from(edge.mutual_tls.is_some()));
        for place in &universe.places {
            let Some(route) = edge.routes.values().find(|route| route.place == *place) else {
                key.push(0);
                continue;
            };
            key.push(1);
            let policies = route
                .modules
                .ip_restriction
                .iter()
                .flat_map(|module| &module.policies);
            for policy in policies.chain(&route.also_refuse) {
                key.extend(&policy.id.as_str().as_bytes()[4..7]);
            }
            key.push(2 + u8::from(route.modules.request_headers.is_some()));
            key.extend(
                route
                    .open_backend()
                    .iter()
                    .flat_map(|id| id.as_str().bytes().skip(6).take(2)),
            );
            let Some(record) = &route.record else {
                continue;
            };
            let old = record.phase == Phase::Removing && (aged || record.since == Timestamp(0));
            key.extend([
                3,
                record.phase as u8,
                u8::from(old),
                u8::from(record.has_access_modules),
            ]);
            for declared in [&record.wanted, &record.serving] {
                match declared.as_ref().map(|declared| declared.digest) {
                    None => key.push(0),
                    Some(None) => key.push(1),
                    Some(Some(digest)) => key.extend([2, digest.0[0], digest.0[1]]),
                }
            }
        }
    }
    key.push(9);
    for id in state.ip_policies.keys() {
        key.extend(&id.as_str().as_bytes()[4..7]);
    }
    key.push(state.backends.len() as u8);
    for domain in state.domains.values() {
        let age = domain
            .undeclared_since
            .map_or(0, |since| 1 + u8::from(aged || since == Timestamp(0)));
        key.extend([domain.host.is_wildcard().into(), age]);
    }
    key
}

/// The same state, long after.
pub(super) fn aged(state: &EdgeState) -> EdgeState {
    let mut state = state.clone();
    for edge in state.edges.values_mut() {
        let edge = std::sync::Arc::make_mut(edge);
        for record in edge
            .routes
            .values_mut()
            .filter_map(|route| route.record.as_mut())
        {
            record.since = Timestamp(0);
        }
    }
    for domain in state.domains.values_mut() {
        let domain = std::sync::Arc::make_mut(domain);
        domain.undeclared_since = domain.undeclared_since.map(|_| Timestamp(0));
    }
    state
}

/// A side by its number: five says of four routes, mutual TLS, the shared policy's content.
pub(super) fn side(number: usize) -> Side {
    let says = [
        number % 5,
        number / 5 % 5,
        number / 25 % 5,
        number / 125 % 5,
    ];
    Side {
        says: says.map(|n| Say::ALL[n]),
        mutual_tls: number / 625 % 2 == 1,
        wide: number / 1250 % 2 == 1,
    }
}

/// How many sides there are.
pub(super) const SIDES: usize = 2500;

/// Whether the host has any route.
pub(super) fn stands(says: &Says) -> bool {
    says[..3].iter().any(|say| *say != Say::Absent)
}

/// Whether a pair is one of those that stand for all (see above).
pub(super) fn is_kept(level: Atomicity, start: Side, wanted: Side) -> bool {
    let uses = |side: Side| side.says.contains(&Say::A);
    if wanted.wide && !uses(start) && !uses(wanted) {
        return false;
    }
    // Without routes of the host there is nothing that its demands could be of.
    if (start.mutual_tls && !stands(&start.says)) || (wanted.mutual_tls && !stands(&wanted.says)) {
        return false;
    }
    if start.mutual_tls && wanted.mutual_tls {
        return false;
    }
    let wildcard = (start.says[3], wanted.says[3]);
    let host_is = |side: Side, says: [Say; 3]| side.says[..3] == says;
    match (level, stands(&start.says), stands(&wanted.says)) {
        (Atomicity::Replace, true, true) => {
            let one_host = host_is(start, [Say::A, Say::B, Say::Plain])
                && host_is(wanted, [Say::B, Say::Absent, Say::A]);
            wildcard == (Say::Plain, Say::A) || one_host
        }
        (Atomicity::None | Atomicity::Patch, true, true) => wildcard == (Say::Absent, Say::Absent),
        (Atomicity::None | Atomicity::Patch, false, true) => {
            wildcard == (Say::Absent, Say::Absent)
                || host_is(wanted, [Say::A; 3])
                || host_is(wanted, [Say::B; 3])
        }
        (_, _, false) | (Atomicity::Replace, false, true) => true,
    }
}

pub(super) fn describe(state: &EdgeState) -> String {
    let mut text = String::new();
    for edge in state.edges.values() {
        text.push_str(&format!("{:?} {:?}\n", edge.hosts, edge.demands()));
        for route in edge.routes.values() {
            text.push_str(&format!(
                "  {} {:?}\n    {:?}\n",
                route.place, route.backend, route.record
            ));
        }
    }
    text
}
