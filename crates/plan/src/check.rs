//! The independent checker: it knows nothing of how plans are made, only what they may not do.
//!
//! Guarantee: when [`check`] passes, then whichever of the plan's steps are applied, left out
//! because they failed, or applied without an answer, each of them takes each request from the
//! handling that it has to the same, to a refusal, or to the declared one.
//!
//! How: what is done with requests for a host depends on the host's edge and on the edge of its
//! wildcard, so each such pair is replayed by itself, on the same state machine that the edge
//! runs. Every set of steps that can have been applied (one that holds, with a step, all that it
//! requires) is a state; every step out of it is compared, for requests that stand for all:
//! around each path that any route has, and for an address of each range that any policy names.
//!
//! Caveats: a step that the edge would refuse counts as one that failed. Steps on policies,
//! backends, certificates and domains change no handling by themselves; a plan that would change
//! one of them in place is refused without a replay (R17).

mod allowed;
mod compare;
mod names;
mod requests;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use edge_state::{
    apply::Machine,
    command::{Command, Context, EdgePatch, EdgeSpec, Limits},
    exposure::{Handling, handling},
    state::{Domain, Edge, EdgeState, Role},
};
use model::{
    host::{Host, HostPattern},
    id::{DomainId, EdgeId},
};

use self::{
    allowed::{edge_of, is_allowed},
    compare::Judge,
    names::{Names, those},
    requests::Requests,
};
use crate::{inputs::Inputs, oracle::Oracle, step::Plan};

/// How a plan would break the promise.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// It touches what is somebody else's, or changes a shared thing in place.
    #[error("step {step} may not be made by a controller: {command}")]
    Forbidden {
        /// The step.
        step: usize,
        /// What it does.
        command: String,
    },
    /// A request would be handled as nobody declared.
    #[error(
        "step {step} after {after:?}: {host}{path} would be handled as nobody declared: {detail}"
    )]
    Broken {
        /// The step.
        step: usize,
        /// The steps applied before it.
        after: Vec<usize>,
        /// The host of the request.
        host: String,
        /// Its path.
        path: String,
        /// What was, what would be, and what is declared.
        detail: String,
    },
}

/// Replays every order of success and failure of the plan's steps and compares what requests get
/// with the promise.
///
/// # Errors
/// The first violation; a plan that has one must not be run.
pub fn check(inputs: &Inputs<'_>, plan: &Plan) -> Result<(), Violation> {
    for (number, step) in plan.steps.iter().enumerate() {
        if !is_allowed(inputs, &step.command) {
            let command = step.to_string();
            return Err(Violation::Forbidden {
                step: number,
                command,
            });
        }
    }
    let checker = Checker::new(inputs, plan);
    for (host, wildcard) in checker.cells() {
        checker.cell(host, wildcard.as_ref())?;
    }
    Ok(())
}

/// What the replay of every cell needs.
struct Checker<'a> {
    inputs: &'a Inputs<'a>,
    plan: &'a Plan,
    /// Edges as they are, by host.
    edges: BTreeMap<&'a HostPattern, (&'a EdgeId, &'a Arc<Edge>)>,
    /// Steps on edges, by the hosts that the edge has or gets.
    touched: BTreeMap<&'a HostPattern, Vec<usize>>,
    domains: BTreeMap<&'a HostPattern, (&'a DomainId, &'a Arc<Domain>)>,
    wildcard_domains: Vec<(&'a DomainId, &'a Arc<Domain>)>,
    limits: Limits,
}

impl<'a> Checker<'a> {
    fn new(inputs: &'a Inputs<'a>, plan: &'a Plan) -> Self {
        let edges: BTreeMap<_, _> = inputs
            .actual
            .edges
            .iter()
            .flat_map(|(id, edge)| edge.hosts.iter().map(move |host| (host, (id, edge))))
            .collect();
        let mut hosts: BTreeMap<&EdgeId, BTreeSet<&'a HostPattern>> = BTreeMap::new();
        for (host, (id, _)) in &edges {
            hosts.entry(id).or_default().insert(host);
        }
        for step in &plan.steps {
            if let Some(id) = edge_of(&step.command) {
                hosts
                    .entry(id)
                    .or_default()
                    .extend(given_hosts(&step.command));
            }
        }
        let mut touched: BTreeMap<_, Vec<usize>> = BTreeMap::new();
        for (number, step) in plan.steps.iter().enumerate() {
            let of = edge_of(&step.command).and_then(|id| hosts.get(id));
            for host in of.into_iter().flatten() {
                touched.entry(*host).or_default().push(number);
            }
        }
        let domains = inputs.actual.domains.iter();
        let wildcard_domains = domains
            .clone()
            .filter(|(_, domain)| domain.host.is_wildcard())
            .collect();
        Self {
            inputs,
            plan,
            edges,
            touched,
            domains: domains
                .map(|(id, domain)| (&domain.host, (id, domain)))
                .collect(),
            wildcard_domains,
            limits: no_limits(),
        }
    }

    /// Every host whose requests the plan could handle otherwise, with the wildcard to which they
    /// would fall.
    fn cells(&self) -> Vec<(&'a HostPattern, Option<HostPattern>)> {
        let known: BTreeSet<&'a HostPattern> = self
            .inputs
            .declared
            .hosts
            .keys()
            .chain(self.edges.keys().copied())
            .chain(self.touched.keys().copied())
            .collect();
        let concerned = |host: &HostPattern| self.touched.contains_key(host);
        known
            .into_iter()
            .map(|host| (host, host.broader()))
            .filter(|(host, wildcard)| concerned(host) || wildcard.as_ref().is_some_and(concerned))
            .collect()
    }

    fn cell(&self, host: &HostPattern, wildcard: Option<&HostPattern>) -> Result<(), Violation> {
        let hosts: Vec<&HostPattern> = [Some(host), wildcard].into_iter().flatten().collect();
        let on_edges: BTreeSet<usize> = hosts
            .iter()
            .filter_map(|host| self.touched.get(host))
            .flatten()
            .copied()
            .collect();
        let mut machine = Machine::new(self.part(&hosts, &on_edges));
        for number in self.needed(&on_edges) {
            // What an edge refuses here, it refuses there: then the steps that need it fail too.
            let _ = self.apply(&mut machine, number);
        }
        let Some(name) = self.sample(host) else {
            return Ok(());
        };
        let requests = Requests::on(self.inputs, self.plan, &hosts, &on_edges, &self.edges);
        let Inputs {
            declared,
            actual,
            controller,
            ..
        } = *self.inputs;
        let foreign = |pattern: &HostPattern| {
            let (_, edge) = self.edges.get(pattern)?;
            (edge.controller.as_deref() != Some(controller)).then_some(edge.as_ref())
        };
        let oracle = Oracle::of(declared, actual, foreign, &name);
        let declared = requests
            .paths
            .iter()
            .map(|path| oracle.handling(path))
            .collect();
        let cell = Cell {
            checker: self,
            name: &name,
            judge: Judge::new(self.inputs, declared),
            paths: requests.paths,
            steps: on_edges.into_iter().collect(),
        };
        let before = cell.handlings(machine.state());
        cell.explore(0, &machine, &before, &mut Vec::new())
    }

    /// The part of the state on which requests for these hosts, and these steps, depend.
    fn part(&self, hosts: &[&HostPattern], steps: &BTreeSet<usize>) -> EdgeState {
        let actual = self.inputs.actual;
        let mut part = EdgeState {
            revision: actual.revision,
            ..EdgeState::default()
        };
        for host in hosts {
            if let Some((id, edge)) = self.edges.get(host) {
                part.edges.insert((*id).clone(), Arc::clone(edge));
            }
            let reserved = self.domains.get(host).into_iter();
            let above = self
                .wildcard_domains
                .iter()
                .filter(|(_, domain)| domain.host.owns(host));
            for (id, domain) in reserved.chain(above) {
                part.domains.insert((*id).clone(), Arc::clone(domain));
            }
        }
        let mut names = Names::default();
        part.edges.values().for_each(|edge| names.edge(edge));
        for number in steps {
            self.plan
                .steps
                .iter()
                .skip(*number)
                .take(1)
                .for_each(|step| names.command(&step.command));
        }
        part.ip_policies = those(&actual.ip_policies, &names.policies);
        part.backends = those(&actual.backends, &names.backends);
        part.certificates = those(&actual.certificates, &names.certificates);
        part
    }

    /// The steps on other things than edges that these rest on.
    fn needed(&self, steps: &BTreeSet<usize>) -> BTreeSet<usize> {
        let mut needed = BTreeSet::new();
        let mut open: Vec<usize> = steps.iter().copied().collect();
        while let Some(number) = open.pop() {
            let requires = self
                .plan
                .steps
                .get(number)
                .map(|step| step.requires.as_slice());
            for required in requires.unwrap_or_default() {
                if !steps.contains(required) && needed.insert(*required) {
                    open.push(*required);
                }
            }
        }
        needed
    }

    /// A host name that stands for the pattern: itself, or one below it that nobody names.
    fn sample(&self, host: &HostPattern) -> Option<Host> {
        let Some(suffix) = host.suffix() else {
            return Host::parse(host.as_str()).ok();
        };
        let mut label = String::from("some");
        loop {
            let pattern = HostPattern::parse(&format!("{label}.{suffix}")).ok()?;
            let named = self.edges.contains_key(&pattern)
                || self.touched.contains_key(&pattern)
                || self.inputs.declared.hosts.contains_key(&pattern);
            if !named {
                return Host::parse(pattern.as_str()).ok();
            }
            label.push('x');
        }
    }

    fn apply(&self, machine: &mut Machine, number: usize) -> bool {
        let Some(step) = self.plan.steps.get(number) else {
            return false;
        };
        let context = Context {
            now: self.inputs.now,
            role: Role::Controller,
            term: None,
            enforceable: &self.inputs.capabilities.enforceable,
            limits: &self.limits,
        };
        machine.apply(&step.command, &context).unwrap_or(false)
    }
}

/// The hosts that a command gives an edge.
fn given_hosts(command: &Command) -> impl Iterator<Item = &HostPattern> {
    let hosts = if let Command::ReplaceEdge(spec) = command {
        let EdgeSpec { hosts, .. } = spec.as_ref();
        Some(hosts)
    } else if let Command::CreateEdge { patch, .. } | Command::UpdateEdge { patch, .. } = command {
        let EdgePatch { hosts, .. } = patch;
        hosts.as_ref()
    } else {
        None
    };
    hosts.into_iter().flatten()
}

/// The checker asks what steps do, not whether there is room for it.
fn no_limits() -> Limits {
    Limits {
        edges: usize::MAX,
        hosts_per_edge: usize::MAX,
        routes_per_edge: usize::MAX,
        path_bytes: usize::MAX,
        policies_per_module: usize::MAX,
        rules_per_policy: usize::MAX,
        headers_per_module: usize::MAX,
        objects_per_kind: usize::MAX,
        response_body_bytes: usize::MAX,
        labels: usize::MAX,
        endpoints_per_backend: usize::MAX,
    }
}

/// One host with its wildcard, being replayed.
struct Cell<'c> {
    checker: &'c Checker<'c>,
    name: &'c Host,
    paths: Vec<String>,
    judge: Judge<'c>,
    steps: Vec<usize>,
}

impl Cell<'_> {
    fn handlings(&self, state: &EdgeState) -> Vec<Handling> {
        self.paths
            .iter()
            .map(|path| handling(state, self.name, path))
            .collect()
    }

    /// From the state in which the `applied` among the first steps were applied, takes or leaves
    /// the next.
    fn explore(
        &self,
        next: usize,
        machine: &Machine,
        before: &[Handling],
        applied: &mut Vec<usize>,
    ) -> Result<(), Violation> {
        let Some(number) = self.steps.get(next).copied() else {
            return Ok(());
        };
        self.explore(next + 1, machine, before, applied)?;
        let requires = self
            .checker
            .plan
            .steps
            .get(number)
            .map(|step| step.requires.as_slice());
        let lacks = |required: &usize| self.steps.contains(required) && !applied.contains(required);
        if requires.unwrap_or_default().iter().any(lacks) {
            return Ok(());
        }
        let mut machine = machine.clone();
        if !self.checker.apply(&mut machine, number) {
            return Ok(());
        }
        let after = self.handlings(machine.state());
        self.judge_all(number, applied, before, &after)?;
        applied.push(number);
        let result = self.explore(next + 1, &machine, &after, applied);
        applied.pop();
        result
    }

    fn judge_all(
        &self,
        number: usize,
        applied: &[usize],
        before: &[Handling],
        after: &[Handling],
    ) -> Result<(), Violation> {
        for (index, path) in self.paths.iter().enumerate() {
            let (Some(old), Some(new)) = (before.get(index), after.get(index)) else {
                continue;
            };
            if let Err(detail) = self.judge.judge(index, old, new) {
                return Err(Violation::Broken {
                    step: number,
                    after: applied.to_vec(),
                    host: self.name.to_string(),
                    path: path.clone(),
                    detail,
                });
            }
        }
        Ok(())
    }
}
