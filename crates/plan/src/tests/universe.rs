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
//! A node is a state of the edge under one declaration. From it one plan is made; every set of
//! steps that can have been applied (one that holds, with a step, all that it requires) is a node
//! again: that is every prefix, every step that failed, every answer that was lost, every crash,
//! any number of them, since nothing but the state is remembered. From each node the same after
//! time has passed is a node, too. Every step out of every node is judged for every request.
//!
//! Reductions, and why they leave nothing out:
//! - Where `a.example.com` stands at the edge and is declared, its requests never reach the
//!   wildcard and no step of either host depends on the other, so the two are independent: all
//!   states of the one are combined with one of the other. Where it does not stand or is not
//!   declared, every combination is there. (`independent_hosts_do_not_meet` holds this up.)
//! - A record's phase is told apart by age only where a rule counts it here (tombstones); the
//!   numbers of generations and instants, which no rule compares, do not tell nodes apart.
//! - The shared policy's other content is left out where neither side uses it.
//! - Steps that change no edge (policies, backends, reservations) are applied before the others;
//!   when one fails, what requires it fails, and that is among the sets of steps above.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::atomic::{AtomicU64, Ordering},
};

use edge_state::{
    apply::Machine,
    capabilities::Atomicity,
    exposure::{Handling, Served, handling},
    state::{EdgeState, Phase},
};
use model::{
    complete_set::CompleteSet,
    declaration::Declaration,
    host::{Host, HostPattern},
    module::{EdgeDemands, IpRules, Modules},
    object::ObjectName,
    place::Match,
    time::Timestamp,
};

use super::fixture::*;
use crate::{
    check,
    mutation::Mutation,
    planner::plan_in,
    step::{Plan, Step},
    world::World,
};

/// What is said of the four routes: three of the host, one of the wildcard.
type Says = [Say; 4];

/// One side of a pair: what is there, or what is declared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Side {
    says: Says,
    mutual_tls: bool,
    wide: bool,
}

/// The parts of the universe.
struct Universe {
    host: HostPattern,
    wildcard: HostPattern,
    places: [Match; 3],
}

impl Universe {
    fn new() -> Self {
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

    fn state(&self, side: Side) -> EdgeState {
        state(&self.lines(side.says), &self.demands(side.mutual_tls))
    }

    fn declaration(&self, side: Side) -> Declaration {
        declaration(
            &self.lines(side.says),
            &self.demands(side.mutual_tls),
            side.wide,
        )
    }

    /// Requests for which any two routes differ, on the host and on another below the wildcard.
    fn requests(&self) -> Vec<(Host, &'static str)> {
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
    fn declared(&self, side: Side, name: &Host, path: &str) -> Handling {
        let refused = Handling::Refused(edge_state::exposure::Why::Closed);
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
                model::declaration::PolicyName::Declared(name) => {
                    known.get(&name).map(|p| p.rules.clone()).ok_or(())
                }
                model::declaration::PolicyName::AtEdge(_) => Err(()),
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
fn key(state: &EdgeState, universe: &Universe) -> Vec<u8> {
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
            let old = record.phase == Phase::Removing && record.since == Timestamp(0);
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
            .map_or(0, |since| 1 + u8::from(since == Timestamp(0)));
        key.extend([domain.host.is_wildcard().into(), age]);
    }
    key
}

/// The same state with instants as this universe knows them: now, or long ago.
fn with_ages(state: &EdgeState, all_old: bool) -> EdgeState {
    let mut state = state.clone();
    for edge in state.edges.values_mut() {
        let edge = std::sync::Arc::make_mut(edge);
        for record in edge
            .routes
            .values_mut()
            .filter_map(|route| route.record.as_mut())
        {
            if all_old || record.phase != Phase::Removing {
                record.since = Timestamp(0);
            }
        }
    }
    if all_old {
        for domain in state.domains.values_mut() {
            let domain = std::sync::Arc::make_mut(domain);
            domain.undeclared_since = domain.undeclared_since.map(|_| Timestamp(0));
        }
    }
    state
}

/// What was explored.
#[derive(Debug, Default)]
struct Count {
    declarations: AtomicU64,
    starts: AtomicU64,
    nodes: AtomicU64,
    plans_with_steps: AtomicU64,
    steps: AtomicU64,
    transitions: AtomicU64,
    longest_plan: AtomicU64,
    most_plans: AtomicU64,
}

/// One declaration on one level, with every state.
struct Walk<'u> {
    universe: &'u Universe,
    level: Atomicity,
    side: Side,
    given: Given,
    declared: Declaration,
    requests: Vec<(Host, &'static str)>,
    wanted: Vec<Handling>,
    mutation: Mutation,
    /// Whether the product's own checker looks at every plan as well.
    checked: bool,
    count: &'u Count,
    known: HashMap<Vec<u8>, usize>,
    /// What follows a node when every step is applied, or time passes where there is none.
    next: Vec<Option<usize>>,
    open: Vec<(usize, EdgeState)>,
}

impl<'u> Walk<'u> {
    fn new(
        universe: &'u Universe,
        level: Atomicity,
        side: Side,
        mutation: Mutation,
        count: &'u Count,
    ) -> Self {
        let requests = universe.requests();
        let wanted = requests
            .iter()
            .map(|(name, path)| universe.declared(side, name, path))
            .collect();
        Self {
            universe,
            level,
            side,
            given: Given::new(level),
            declared: universe.declaration(side),
            requests,
            wanted,
            mutation,
            checked: true,
            count,
            known: HashMap::new(),
            next: Vec::new(),
            open: Vec::new(),
        }
    }

    fn node(&mut self, state: &EdgeState) -> usize {
        let key = key(state, self.universe);
        if let Some(known) = self.known.get(&key) {
            return *known;
        }
        let number = self.next.len();
        self.known.insert(key, number);
        self.next.push(None);
        self.open.push((number, state.clone()));
        number
    }

    fn run(&mut self) -> Result<(), String> {
        while let Some((number, state)) = self.open.pop() {
            self.visit(number, &state).map_err(|error| {
                format!(
                    "{:?} {:?} from {}: {error}",
                    self.level,
                    self.side,
                    describe(&state)
                )
            })?;
        }
        self.converges()?;
        self.count
            .nodes
            .fetch_add(self.next.len() as u64, Ordering::Relaxed);
        Ok(())
    }

    fn visit(&mut self, number: usize, state: &EdgeState) -> Result<(), String> {
        let inputs = self.given.inputs(state, &self.declared, NOW);
        let mut world = World::new(&inputs);
        world.mutation = self.mutation;
        let plan = plan_in(&world);
        if self.checked {
            check(&inputs, &plan).map_err(|violation| format!("{violation}\n{plan}"))?;
        }
        self.count
            .longest_plan
            .fetch_max(plan.steps.len() as u64, Ordering::Relaxed);
        let aged = with_ages(state, true);
        if plan.is_empty() {
            let later = self.node(&aged);
            if later != number {
                self.next[number] = Some(later);
                return Ok(());
            }
            return if self.mutation == Mutation::None {
                self.is_reached(state)
            } else {
                Ok(())
            };
        }
        self.node(&aged);
        self.count.plans_with_steps.fetch_add(1, Ordering::Relaxed);
        self.count
            .steps
            .fetch_add(plan.steps.len() as u64, Ordering::Relaxed);
        let mut machine = Machine::new(state.clone());
        let (on_edges, others): (Vec<_>, Vec<_>) = plan
            .steps
            .iter()
            .enumerate()
            .partition(|(_, step)| changes_edge(step));
        for (_, step) in others {
            apply(&mut machine, &step.command, NOW)?;
            self.node(&with_ages(machine.state(), false));
        }
        let before = self.handlings(machine.state());
        let last = self.explore(&plan, &on_edges, 0, &machine, &before, &mut Vec::new())?;
        self.next[number] = Some(last);
        Ok(())
    }

    /// Takes or leaves each step; returns the node in which all were taken.
    fn explore(
        &mut self,
        plan: &Plan,
        steps: &[(usize, &Step)],
        index: usize,
        machine: &Machine,
        before: &[Handling],
        applied: &mut Vec<usize>,
    ) -> Result<usize, String> {
        let Some((number, step)) = steps.get(index).copied() else {
            return Ok(self.node(&with_ages(machine.state(), false)));
        };
        self.explore(plan, steps, index + 1, machine, before, applied)?;
        let lacks = |required: &usize| {
            steps.iter().any(|(number, _)| number == required) && !applied.contains(required)
        };
        if step.requires.iter().any(lacks) {
            return Ok(usize::MAX);
        }
        let mut machine = machine.clone();
        if !apply(&mut machine, &step.command, NOW)? {
            return Err(format!("step {number} changes nothing: {step}"));
        }
        self.count.transitions.fetch_add(1, Ordering::Relaxed);
        let after = self.handlings(machine.state());
        for (index, request) in self.requests.iter().enumerate() {
            self.judge(index, &before[index], &after[index])
                .map_err(|what| {
                    format!("step {number} after {applied:?}, {request:?}: {what}\n{plan}")
                })?;
        }
        applied.push(number);
        let last = self.explore(plan, steps, index + 1, &machine, &after, applied);
        applied.pop();
        last
    }

    fn handlings(&self, state: &EdgeState) -> Vec<Handling> {
        self.requests
            .iter()
            .map(|(name, path)| handling(state, name, path))
            .collect()
    }

    /// The promise, by its words: the same, refused, or as declared; and a held route may refuse
    /// more, or as much less as its policy's newest content refuses less.
    fn judge(&self, index: usize, old: &Handling, new: &Handling) -> Result<(), String> {
        let Handling::Served(served) = new else {
            return Ok(());
        };
        let declared = &self.wanted[index];
        if new == old || new == declared {
            return Ok(());
        }
        let newest = policies(self.side.wide);
        let shared = &newest[&ObjectName::new("ns", "shared")].rules;
        let newest = Served {
            also_refuse: BTreeSet::from([shared.clone()]),
            ..served.as_ref().clone()
        };
        let fine = matches!(old, Handling::Served(old) if old.set == served.set)
            && [
                "10.1.2.3",
                "10.200.0.1",
                "192.0.2.7",
                "198.51.100.1",
                "203.0.113.1",
            ]
            .iter()
            .all(|text| {
                let client = text.parse().expect("an address");
                !served.admits(client) || old.admits(client) || newest.admits(client)
            });
        if fine {
            Ok(())
        } else {
            Err(format!(
                "it was {old:?}, is {new:?}, and is declared {declared:?}"
            ))
        }
    }

    /// When nothing fails any more, a bounded number of plans leads to an empty one.
    fn converges(&self) -> Result<(), String> {
        let mut plans = vec![None; self.next.len()];
        for start in 0..self.next.len() {
            let mut path = Vec::new();
            let mut at = start;
            while plans[at].is_none() {
                path.push(at);
                match self.next[at] {
                    Some(next) if path.len() <= 20 => at = next,
                    Some(_) => {
                        return Err(format!(
                            "{:?} {:?}: planning does not end",
                            self.level, self.side
                        ));
                    }
                    None => break,
                }
            }
            let mut rest: u64 = plans[at].unwrap_or(0);
            for node in path.into_iter().rev() {
                rest += u64::from(self.next[node].is_some());
                plans[node] = Some(rest);
            }
        }
        let most = plans.into_iter().flatten().max().unwrap_or(0);
        self.count.most_plans.fetch_max(most, Ordering::Relaxed);
        if most > 12 {
            return Err(format!("{:?} {:?}: {most} plans", self.level, self.side));
        }
        Ok(())
    }

    /// What an empty plan leaves is the declaration: every request as declared, or refused where
    /// something is withdrawn or invalid; or held, where a hold explains it.
    fn is_reached(&self, state: &EdgeState) -> Result<(), String> {
        let held = |wildcard: bool| {
            state.edges.values().any(|edge| {
                edge.hosts.iter().any(|host| host.is_wildcard() == wildcard)
                    && edge.routes.values().any(|route| {
                        route
                            .record
                            .as_ref()
                            .is_some_and(|record| record.phase == Phase::Held)
                    })
            })
        };
        let excuse = held(false) || held(true);
        for (index, (name, path)) in self.requests.iter().enumerate() {
            let is = handling(state, name, path);
            let same = match (&is, &self.wanted[index]) {
                (Handling::Refused(_), Handling::Refused(_)) => true,
                (is, wanted) => is == wanted,
            };
            if !same && !excuse {
                return Err(format!("{name}{path} is {is:?} in the end"));
            }
        }
        let places: usize = state.edges.values().map(|edge| edge.routes.len()).sum();
        let declared = self
            .side
            .says
            .iter()
            .filter(|say| **say != Say::Absent)
            .count();
        if places != declared && !excuse {
            return Err(format!("{places} routes are left of {declared}"));
        }
        Ok(())
    }
}

fn changes_edge(step: &Step) -> bool {
    use edge_state::command::Command as C;
    !matches!(
        step.command,
        C::PutIpPolicy { .. }
            | C::PutBackend { .. }
            | C::PutDomain { .. }
            | C::DeleteIpPolicy { .. }
            | C::DeleteBackend { .. }
            | C::DeleteDomain { .. }
            | C::SetEndpoints { .. }
    )
}

fn describe(state: &EdgeState) -> String {
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

fn side(number: usize, mutual_tls: bool, wide: bool) -> Side {
    let says = [
        number % 5,
        number / 5 % 5,
        number / 25 % 5,
        number / 125 % 5,
    ]
    .map(|n| Say::ALL[n]);
    Side {
        says,
        mutual_tls,
        wide,
    }
}

fn stands(says: &Says) -> bool {
    says[..3].iter().any(|say| *say != Say::Absent)
}

/// Whether a pair is one of those that stand for all (see above).
fn is_kept(start: Side, wanted: Side) -> bool {
    let uses = |side: Side| side.says.contains(&Say::A);
    if wanted.wide && !uses(start) && !uses(wanted) {
        return false;
    }
    // Without routes of the host there is nothing that its demands could be of.
    if (start.mutual_tls && !stands(&start.says)) || (wanted.mutual_tls && !stands(&wanted.says)) {
        return false;
    }
    let apart = stands(&start.says) && stands(&wanted.says);
    let one_wildcard = start.says[3] == Say::Plain && wanted.says[3] == Say::A;
    let one_host = start.says[..3] == [Say::A, Say::B, Say::Plain]
        && wanted.says[..3] == [Say::B, Say::Absent, Say::A];
    !apart || one_wildcard || one_host
}

/// Walks a level with every declaration, in as many threads as there are cores.
fn walk_all(level: Atomicity, mutation: Mutation) -> (Count, Vec<String>) {
    let universe = Universe::new();
    let count = Count::default();
    let sides: Vec<Side> = (0..2500)
        .map(|n| side(n % 625, n / 625 % 2 == 1, n / 1250 == 1))
        .collect();
    let starts: Vec<(Side, EdgeState)> = sides
        .iter()
        .filter(|side| !side.wide)
        .map(|side| (*side, universe.state(*side)))
        .collect();
    let threads = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
    let failures = std::thread::scope(|scope| {
        let shard = |shard: usize| {
            let (universe, sides, starts, count) = (&universe, &sides, &starts, &count);
            move || {
                for wanted in sides.iter().skip(shard).step_by(threads) {
                    let mut walk = Walk::new(universe, level, *wanted, mutation, count);
                    for (_, state) in starts.iter().filter(|(start, _)| is_kept(*start, *wanted)) {
                        count.starts.fetch_add(1, Ordering::Relaxed);
                        walk.node(state);
                    }
                    count
                        .declarations
                        .fetch_add(u64::from(!walk.open.is_empty()), Ordering::Relaxed);
                    walk.run()?;
                }
                Ok(())
            }
        };
        let running: Vec<_> = (0..threads).map(|n| scope.spawn(shard(n))).collect();
        running
            .into_iter()
            .filter_map(|thread| thread.join().expect("no shard panics").err())
            .collect()
    });
    (count, failures)
}

fn complete(level: Atomicity) {
    let (count, failures) = walk_all(level, Mutation::None);
    println!("{level:?}: {count:?}");
    assert!(failures.is_empty(), "{}", failures[0]);
    assert!(
        count.nodes.into_inner() > 100_000,
        "the universe has shrunk"
    );
}

#[test]
fn replace_keeps_the_promise_everywhere() {
    complete(Atomicity::Replace);
}

#[test]
fn patch_keeps_the_promise_everywhere() {
    complete(Atomicity::Patch);
}

#[test]
fn single_calls_keep_the_promise_everywhere() {
    complete(Atomicity::None);
}
