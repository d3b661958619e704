//! An edge and a controller that plans until nothing is left to do, for the single cases.

use std::collections::{BTreeMap, BTreeSet};

use edge_state::{
    apply::Machine,
    capabilities::Atomicity,
    command::Command,
    exposure::{Handling, handling},
};
use model::{
    declaration::{Declaration, DeclaredRoute, Outcome},
    host::Host,
    object::ObjectRef,
    time::{Span, Timestamp},
};

use super::fixture::{Given, NOW, Say, apply, declaration, host, prefix};
use crate::{Plan, RouteReport, check, mutation::Mutation, planner::plan_in, world::World};

/// An edge, a clock, and a controller that plans until nothing is left to do.
pub(super) struct Scene {
    pub(super) given: Given,
    pub(super) machine: Machine,
    pub(super) now: Timestamp,
    pub(super) only_close: bool,
    pub(super) mutation: Mutation,
}

impl Scene {
    pub(super) fn new() -> Self {
        Self {
            given: Given::new(Atomicity::Replace),
            machine: Machine::default(),
            now: NOW,
            only_close: false,
            mutation: Mutation::None,
        }
    }

    pub(super) fn plan(&self, declared: &Declaration) -> Plan {
        let mut inputs = self.given.inputs(self.machine.state(), declared, self.now);
        inputs.only_close = self.only_close;
        let mut world = World::new(&inputs);
        world.mutation = self.mutation;
        let plan = plan_in(&world);
        if let Err(violation) = check(&inputs, &plan) {
            panic!("{violation}\n{plan}");
        }
        plan
    }

    /// Plans and applies until a plan is empty; returns that plan.
    pub(super) fn settle(&mut self, declared: &Declaration) -> Plan {
        for _ in 0..10 {
            let plan = self.plan(declared);
            if plan.is_empty() {
                return plan;
            }
            for step in &plan.steps {
                apply(&mut self.machine, &step.command, self.now).expect("a planned step is valid");
            }
        }
        panic!("no end of plans: {}", self.plan(declared))
    }

    pub(super) fn wait(&mut self, span: Span) {
        self.now = self.now.after(span);
        apply(&mut self.machine, &Command::CloseOverdue, self.now).expect("an edge's own command");
    }

    pub(super) fn is_open(&self, path: &str) -> bool {
        let name = Host::parse("a.example.com").expect("a host");
        matches!(
            handling(self.machine.state(), &name, path),
            Handling::Served(_)
        )
    }

    pub(super) fn admits(&self, path: &str, client: &str) -> bool {
        let name = Host::parse("a.example.com").expect("a host");
        let client = client.parse().expect("an address");
        handling(self.machine.state(), &name, path).admits(client)
    }
}

pub(super) fn two(root: Say, below: Say, wide: bool) -> Declaration {
    let (name, slash, admin) = (host("a.example.com"), prefix("/"), prefix("/admin"));
    declaration(
        &[(&name, &slash, root), (&name, &admin, below)],
        &BTreeMap::new(),
        wide,
    )
}

pub(super) fn route<'d>(declared: &'d mut Declaration, path: &str) -> &'d mut DeclaredRoute {
    let host = declared
        .hosts
        .get_mut(&host("a.example.com"))
        .expect("the host is declared");
    host.routes
        .get_mut(&prefix(path))
        .expect("the route is declared")
}

pub(super) fn report<'p>(plan: &'p Plan, path: &str) -> &'p RouteReport {
    &plan.report.routes[&(host("a.example.com"), prefix(path))]
}

pub(super) fn lost(declared: &mut Declaration, path: &str) {
    let policy = ObjectRef::new("IPPolicy", "ns", "shared");
    let route = route(declared, path);
    route.outcome = Outcome::Invalid {
        missing: BTreeSet::from([policy]),
    };
    route.digest = None;
}
