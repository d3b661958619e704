//! Goes through the small universe, and judges every step on the way.

#![expect(
    clippy::disallowed_types,
    reason = "hundreds of millions of look-ups, and nothing depends on an order"
)]

use std::{
    collections::{BTreeSet, HashMap, hash_map::Entry},
    rc::Rc,
    sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
};

use edge_state::{
    apply::Machine,
    capabilities::Atomicity,
    command::Command,
    exposure::{Handling, Served, handling},
    state::{EdgeState, Phase},
};
use model::{declaration::Declaration, host::Host, object::ObjectName};

use super::{
    fixture::{Given, NOW, Say, apply, policies},
    universe::{SIDES, Side, Universe, aged, describe, is_kept, key, side},
};
use crate::{
    check,
    mutation::Mutation,
    planner::plan_in,
    step::{Plan, Step},
    world::World,
};

/// What was explored.
#[derive(Debug, Default)]
pub(super) struct Count {
    pub(super) declarations: AtomicU64,
    pub(super) starts: AtomicU64,
    pub(super) nodes: AtomicU64,
    pub(super) plans_with_steps: AtomicU64,
    pub(super) steps: AtomicU64,
    pub(super) transitions: AtomicU64,
    pub(super) longest_plan: AtomicU64,
    pub(super) most_plans: AtomicU64,
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
    count: &'u Count,
    known: HashMap<Vec<u8>, usize>,
    /// What follows a node when every step is applied, or time passes where there is none.
    next: Vec<Option<usize>>,
    open: Vec<(usize, EdgeState)>,
    seen: HashMap<Vec<u8>, Rc<[Handling]>>,
}

/// A state as requests see it.
struct Seen {
    key: Vec<u8>,
    handlings: Rc<[Handling]>,
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
            count,
            known: HashMap::new(),
            next: Vec::new(),
            open: Vec::new(),
            seen: HashMap::new(),
        }
    }

    /// The node of a state, or of the same long after.
    fn node(&mut self, state: &EdgeState, long_after: bool) -> usize {
        let key = key(state, self.universe, long_after);
        self.node_at(key, state, long_after)
    }

    fn node_at(&mut self, key: Vec<u8>, state: &EdgeState, long_after: bool) -> usize {
        let number = self.next.len();
        match self.known.entry(key) {
            Entry::Occupied(known) => return *known.get(),
            Entry::Vacant(free) => free.insert(number),
        };
        self.next.push(None);
        self.open.push((
            number,
            if long_after {
                aged(state)
            } else {
                state.clone()
            },
        ));
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
        self.count.nodes.fetch_add(self.next.len() as u64, Relaxed);
        Ok(())
    }

    fn visit(&mut self, number: usize, state: &EdgeState) -> Result<(), String> {
        let inputs = self.given.inputs(state, &self.declared, NOW);
        let mut world = World::new(&inputs);
        world.mutation = self.mutation;
        let plan = plan_in(&world);
        // The product's own checker looks at every plan for an edge of the product's own kind,
        // as the controller has it look.
        if self.level == Atomicity::Replace {
            check(&inputs, &plan).map_err(|violation| format!("{violation}\n{plan}"))?;
        }
        let later = self.node(state, true);
        if plan.is_empty() {
            if later == number {
                return self.is_reached(state);
            }
            self.next[number] = Some(later);
            return Ok(());
        }
        self.count
            .longest_plan
            .fetch_max(plan.steps.len() as u64, Relaxed);
        self.count.plans_with_steps.fetch_add(1, Relaxed);
        self.count.steps.fetch_add(plan.steps.len() as u64, Relaxed);
        let mut machine = Machine::new(state.clone());
        let (on_edges, others): (Vec<_>, Vec<_>) = plan
            .steps
            .iter()
            .enumerate()
            .partition(|(_, step)| changes_edge(step));
        for (_, step) in others {
            apply(&mut machine, &step.command, NOW)?;
        }
        let before = self.seen(key(machine.state(), self.universe, false), machine.state());
        let last = match self.level {
            Atomicity::Replace => {
                self.explore(&plan, &on_edges, 0, &machine, &before, &mut Vec::new())?
            }
            Atomicity::None | Atomicity::Patch => {
                self.one_fault(&plan, &on_edges, machine, before)?
            }
        };
        self.next[number] = Some(last);
        Ok(())
    }

    /// Every stop, and every step that fails while the others go on. Returns the node in which
    /// all were taken.
    fn one_fault(
        &mut self,
        plan: &Plan,
        steps: &[(usize, &Step)],
        mut machine: Machine,
        mut before: Seen,
    ) -> Result<usize, String> {
        let mut applied = Vec::new();
        for index in 0..steps.len() {
            self.node_at(before.key.clone(), machine.state(), false);
            self.go_on(
                plan,
                steps,
                index + 1,
                machine.clone(),
                &before,
                applied.clone(),
            )?;
            if let Some(after) = self.take(plan, steps, index, &mut machine, &before, &applied)? {
                applied.push(steps[index].0);
                before = after;
            }
        }
        Ok(self.node_at(before.key.clone(), machine.state(), false))
    }

    /// Takes the rest of the steps, as far as what they require was taken.
    fn go_on(
        &mut self,
        plan: &Plan,
        steps: &[(usize, &Step)],
        from: usize,
        mut machine: Machine,
        before: &Seen,
        mut applied: Vec<usize>,
    ) -> Result<(), String> {
        let mut now = Seen {
            key: before.key.clone(),
            handlings: Rc::clone(&before.handlings),
        };
        for index in from..steps.len() {
            if let Some(after) = self.take(plan, steps, index, &mut machine, &now, &applied)? {
                applied.push(steps[index].0);
                now = after;
            }
        }
        self.node_at(now.key, machine.state(), false);
        Ok(())
    }

    /// Takes or leaves each step; returns the node in which all were taken.
    fn explore(
        &mut self,
        plan: &Plan,
        steps: &[(usize, &Step)],
        index: usize,
        machine: &Machine,
        before: &Seen,
        applied: &mut Vec<usize>,
    ) -> Result<usize, String> {
        if index == steps.len() {
            return Ok(self.node_at(before.key.clone(), machine.state(), false));
        };
        let left = self.explore(plan, steps, index + 1, machine, before, applied)?;
        let mut machine = machine.clone();
        let Some(after) = self.take(plan, steps, index, &mut machine, before, applied)? else {
            return Ok(left);
        };
        applied.push(steps[index].0);
        let last = self.explore(plan, steps, index + 1, &machine, &after, applied);
        applied.pop();
        last
    }

    /// Takes one step, if what it requires was taken, and judges it for every request.
    fn take(
        &mut self,
        plan: &Plan,
        steps: &[(usize, &Step)],
        index: usize,
        machine: &mut Machine,
        before: &Seen,
        applied: &[usize],
    ) -> Result<Option<Seen>, String> {
        let (number, step) = steps[index];
        let lacks = |required: &usize| {
            steps.iter().any(|(number, _)| number == required) && !applied.contains(required)
        };
        if step.requires.iter().any(lacks) {
            return Ok(None);
        }
        match apply(machine, &step.command, NOW) {
            Ok(true) => {}
            Ok(false) => return Err(format!("step {number} changes nothing: {step}")),
            // What a broken planner asks for may be refused; ours never asks for such a thing.
            Err(_) if self.mutation != Mutation::None => return Ok(None),
            Err(refused) => return Err(format!("{refused}: {step}\n{plan}")),
        }
        self.count.transitions.fetch_add(1, Relaxed);
        let after = self.seen(key(machine.state(), self.universe, false), machine.state());
        for (index, request) in self.requests.iter().enumerate() {
            self.judge(index, &before.handlings[index], &after.handlings[index])
                .map_err(|what| {
                    format!("step {number} after {applied:?}, {request:?}: {what}\n{plan}")
                })?;
        }
        Ok(Some(after))
    }

    /// What is done with every request; found once for each state.
    fn seen(&mut self, key: Vec<u8>, state: &EdgeState) -> Seen {
        if let Some(handlings) = self.seen.get(&key) {
            return Seen {
                key,
                handlings: Rc::clone(handlings),
            };
        }
        let all = self
            .requests
            .iter()
            .map(|(name, path)| handling(state, name, path));
        let handlings: Rc<[Handling]> = all.collect();
        self.seen.insert(key.clone(), Rc::clone(&handlings));
        Seen { key, handlings }
    }

    /// The promise, by its words: the same, refused, or as declared; and a held route may refuse
    /// more, or as much less as its policy's newest content refuses less (R17).
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
        let clients = [
            "10.1.2.3",
            "10.200.0.1",
            "192.0.2.7",
            "198.51.100.1",
            "203.0.113.1",
        ];
        let fine = matches!(old, Handling::Served(old) if old.set == served.set)
            && clients.iter().all(|text| {
                let client = text.parse().expect("an address");
                !served.admits(client) || old.admits(client) || newest.admits(client)
            });
        if fine {
            return Ok(());
        }
        Err(format!(
            "it was {old:?}, is {new:?}, and is declared {declared:?}"
        ))
    }

    /// When nothing fails any more, a bounded number of plans leads to an empty one.
    fn converges(&self) -> Result<(), String> {
        let mut plans: Vec<Option<u64>> = vec![None; self.next.len()];
        for start in 0..self.next.len() {
            let mut path = Vec::new();
            let mut at = start;
            while plans[at].is_none() {
                path.push(at);
                match self.next[at] {
                    Some(next) if path.len() <= 20 => at = next,
                    Some(_) => {
                        return Err(format!("{:?} {:?}: no end", self.level, self.side));
                    }
                    None => break,
                }
            }
            let mut rest = plans[at].unwrap_or(0);
            for node in path.into_iter().rev() {
                rest += u64::from(self.next[node].is_some());
                plans[node] = Some(rest);
            }
        }
        let most = plans.into_iter().flatten().max().unwrap_or(0);
        self.count.most_plans.fetch_max(most, Relaxed);
        if most > 12 {
            return Err(format!("{:?} {:?}: {most} plans", self.level, self.side));
        }
        Ok(())
    }

    /// What an empty plan leaves is the declaration: every request as declared, or held where a
    /// hold explains it; what is withdrawn is gone, or closed behind a hold.
    fn is_reached(&self, state: &EdgeState) -> Result<(), String> {
        let mut holds = false;
        let mut places = 0;
        for edge in state.edges.values() {
            for route in edge.routes.values() {
                places += 1;
                let phase = route.record.as_ref().map(|record| record.phase);
                holds |= phase == Some(Phase::Held);
                let declared = edge.hosts.iter().any(|host| {
                    self.declared
                        .hosts
                        .get(host)
                        .is_some_and(|host| host.routes.contains_key(&route.place))
                });
                if !declared && route.open_backend().is_some() {
                    return Err(format!("{} is withdrawn and stays open", route.place));
                }
            }
        }
        if holds {
            return Ok(());
        }
        for (index, (name, path)) in self.requests.iter().enumerate() {
            let is = handling(state, name, path);
            let refused = |handling: &Handling| matches!(handling, Handling::Refused(_));
            let wanted = &self.wanted[index];
            if is != *wanted && !(refused(&is) && refused(wanted)) {
                return Err(format!("{name}{path} is {is:?} in the end"));
            }
        }
        let declared = self
            .side
            .says
            .iter()
            .filter(|say| **say != Say::Absent)
            .count();
        if places != declared {
            return Err(format!("{places} routes are left of {declared}"));
        }
        Ok(())
    }
}

fn changes_edge(step: &Step) -> bool {
    !matches!(
        step.command,
        Command::PutIpPolicy { .. }
            | Command::PutBackend { .. }
            | Command::PutDomain { .. }
            | Command::DeleteIpPolicy { .. }
            | Command::DeleteBackend { .. }
            | Command::DeleteDomain { .. }
            | Command::SetEndpoints { .. }
    )
}

/// Walks a level with every declaration, in as many threads as there are cores, until something
/// is found.
pub(super) fn walk_all(level: Atomicity, mutation: Mutation) -> (Count, Vec<String>) {
    let universe = Universe::new();
    let count = Count::default();
    // In an order that meets every kind of declaration early, so that a broken planner is found
    // soon.
    let sides: Vec<Side> = (0..SIDES).map(|n| side((n * 1009 + 53) % SIDES)).collect();
    let starts: Vec<(Side, EdgeState)> = sides
        .iter()
        .filter(|side| !side.wide)
        .map(|side| (*side, universe.state(*side)))
        .collect();
    let threads = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
    let found = AtomicBool::new(false);
    let shard = |shard: usize| {
        for wanted in sides.iter().skip(shard).step_by(threads) {
            if found.load(Relaxed) {
                break;
            }
            let mut walk = Walk::new(&universe, level, *wanted, mutation, &count);
            for (_, state) in starts
                .iter()
                .filter(|(start, _)| is_kept(level, *start, *wanted))
            {
                count.starts.fetch_add(1, Relaxed);
                walk.node(state, false);
            }
            count
                .declarations
                .fetch_add(u64::from(!walk.open.is_empty()), Relaxed);
            if let Err(error) = walk.run() {
                found.store(true, Relaxed);
                return Some(error);
            }
        }
        None
    };
    let failures = std::thread::scope(|scope| {
        let running: Vec<_> = (0..threads)
            .map(|n| scope.spawn(move || shard(n)))
            .collect();
        running
            .into_iter()
            .filter_map(|thread| thread.join().expect("no shard panics"))
            .collect()
    });
    (count, failures)
}

fn complete(level: Atomicity) {
    let (count, failures) = walk_all(level, Mutation::None);
    println!("{level:?}: {count:?}");
    assert!(failures.is_empty(), "{}", failures[0]);
    // The numbers that `docs/proof.md` tells, held from below.
    let (starts, nodes, judged) = match level {
        Atomicity::Replace => (100_000, 400_000, 800_000),
        Atomicity::Patch => (90_000, 1_500_000, 8_000_000),
        Atomicity::None => (90_000, 1_500_000, 8_000_000),
    };
    assert!(
        count.starts.into_inner() >= starts,
        "the universe has shrunk"
    );
    assert!(count.nodes.into_inner() >= nodes, "fewer states are met");
    assert!(
        count.transitions.into_inner() >= judged,
        "fewer steps are judged"
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

/// What the first reduction rests on: where the host stands and is declared, what is planned for
/// it is the same whatever the wildcard is and becomes.
#[test]
fn independent_hosts_do_not_meet() {
    let universe = Universe::new();
    let of_host = |plan: &Plan| -> Vec<String> {
        let on_edges = plan.steps.iter().filter(|step| changes_edge(step));
        let of_host =
            on_edges.filter(|step| step.concerns.iter().all(|(host, _)| !host.is_wildcard()));
        of_host.map(Step::content_text).collect()
    };
    for level in [Atomicity::Replace, Atomicity::Patch, Atomicity::None] {
        let given = Given::new(level);
        for start in (0..125)
            .map(side)
            .filter(|side| super::universe::stands(&side.says))
        {
            let with = Side {
                says: [start.says[0], start.says[1], start.says[2], Say::Plain],
                ..start
            };
            let (alone, beside) = (universe.state(start), universe.state(with));
            for wanted in (0..125)
                .map(side)
                .filter(|side| super::universe::stands(&side.says))
            {
                let changed = Side {
                    says: [wanted.says[0], wanted.says[1], wanted.says[2], Say::A],
                    ..wanted
                };
                let (one, other) = (universe.declaration(wanted), universe.declaration(changed));
                let by_itself = crate::plan(&given.inputs(&alone, &one, NOW));
                let in_company = crate::plan(&given.inputs(&beside, &other, NOW));
                assert_eq!(
                    of_host(&by_itself),
                    of_host(&in_company),
                    "{start:?} to {wanted:?}"
                );
            }
        }
    }
}
