//! Large edges at random: many hosts, overlapping matches, shared policies, holds, losses, ages,
//! failures. Shrunk counterexamples are kept in `proptest-regressions`.

use std::collections::{BTreeMap, BTreeSet};

use edge_state::{
    apply::Machine,
    capabilities::Atomicity,
    command::Command,
    exposure::{Handling, handling},
    state::EdgeState,
};
use model::{
    declaration::{Declaration, Outcome},
    host::{Host, HostPattern},
    module::EdgeDemands,
    object::ObjectRef,
    place::{Match, MatchType},
    time::{Span, Timestamp},
};
use proptest::prelude::*;

use super::fixture::*;
use crate::{Inputs, Plan, check, plan};

/// A route's declaration, with the outcomes that the small universe does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Said(Say),
    Lost,
    Pending,
}

/// One declaration in a history, and what goes wrong while it is applied.
#[derive(Clone, Debug)]
struct Chapter {
    routes: Vec<(usize, usize, Fate)>,
    demanding: u8,
    wide: bool,
    unread: bool,
    waits_s: u64,
    luck: Vec<u8>,
}

const HOSTS: [&str; 7] = [
    "a.example.com",
    "b.example.com",
    "*.example.com",
    "x.a.example.com",
    "*.a.example.com",
    "c.test",
    "*.test",
];

fn places() -> Vec<Match> {
    let paths = ["/", "/a", "/a/b", "/ab"];
    let types = [
        MatchType::Exact,
        MatchType::ElementPrefix,
        MatchType::StringPrefix,
    ];
    paths
        .iter()
        .flat_map(|path| types.iter().map(|kind| Match::new(*kind, path)))
        .collect()
}

fn fate() -> impl Strategy<Value = Fate> {
    prop_oneof![
        1 => Just(Fate::Said(Say::Closed)),
        3 => Just(Fate::Said(Say::A)),
        2 => Just(Fate::Said(Say::B)),
        2 => Just(Fate::Said(Say::Plain)),
        1 => Just(Fate::Lost),
        1 => Just(Fate::Pending),
    ]
}

fn chapter() -> impl Strategy<Value = Chapter> {
    (
        prop::collection::vec((0..HOSTS.len(), 0..12_usize, fate()), 0..24),
        prop_oneof![4 => Just(0_u8), 1 => any::<u8>()],
        any::<bool>(),
        prop::bool::weighted(0.1),
        prop_oneof![Just(0_u64), Just(5), Just(11), Just(61), Just(4000)],
        prop::collection::vec(any::<u8>(), 0..24),
    )
        .prop_map(|(routes, demanding, wide, unread, waits_s, luck)| Chapter {
            routes,
            demanding,
            wide,
            unread,
            waits_s,
            luck,
        })
}

fn declared(chapter: &Chapter) -> Declaration {
    let hosts: Vec<HostPattern> = HOSTS.iter().map(|name| host(name)).collect();
    let places = places();
    let demand = |number: usize| match chapter.demanding >> number & 1 {
        1 => mutual_tls(),
        _ => EdgeDemands::default(),
    };
    let demands: BTreeMap<_, _> = hosts
        .iter()
        .enumerate()
        .map(|(number, name)| (name.clone(), demand(number)))
        .collect();
    let lines: Vec<_> = chapter
        .routes
        .iter()
        .map(|(host, place, fate)| {
            let say = match fate {
                Fate::Said(say) => *say,
                Fate::Lost | Fate::Pending => Say::Closed,
            };
            (&hosts[*host], &places[*place], say)
        })
        .collect();
    let mut made = declaration(&lines, &demands, chapter.wide);
    for (host, place, fate) in &chapter.routes {
        let outcome = match fate {
            Fate::Said(_) => continue,
            Fate::Lost => Outcome::Invalid {
                missing: BTreeSet::from([ObjectRef::new("IPPolicy", "ns", "shared")]),
            },
            Fate::Pending => Outcome::Pending,
        };
        // A later line about the same route has the last word.
        let route = made
            .hosts
            .get_mut(&hosts[*host])
            .and_then(|h| h.routes.get_mut(&places[*place]));
        if let Some(route) = route {
            let is_last = chapter
                .routes
                .iter()
                .rev()
                .find(|line| (line.0, line.1) == (*host, *place));
            if is_last.is_some_and(|line| line.2 == *fate) {
                route.outcome = outcome;
                route.digest = None;
            }
        }
    }
    made.nothing_is_removed = chapter.unread;
    made
}

/// What happens to a step.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Luck {
    Good,
    Fails,
    Unanswered,
}

/// An edge, with a prober that asks for everything after each step.
struct Stage {
    given: Given,
    machine: Machine,
    now: Timestamp,
}

impl Stage {
    fn new(level: Atomicity) -> Self {
        let mut given = Given::new(level);
        given.options.hold_limit = Some(Span::from_secs(3000));
        Self {
            given,
            machine: Machine::new(EdgeState::default()),
            now: NOW,
        }
    }

    fn plan(&self, declared: &Declaration) -> Result<Plan, TestCaseError> {
        let inputs: Inputs<'_> = self.given.inputs(self.machine.state(), declared, self.now);
        let made = plan(&inputs);
        prop_assert_eq!(
            &made,
            &plan(&inputs),
            "planning depends on its inputs alone"
        );
        let replaces = self.given.capabilities.atomicity == Atomicity::Replace;
        if replaces && let Err(violation) = check(&inputs, &made) {
            return Err(TestCaseError::fail(format!("{violation}\n{made}")));
        }
        Ok(made)
    }

    /// Carries a plan out as the controller does, with this luck, and asks after each step.
    fn carry_out(
        &mut self,
        declared: &Declaration,
        made: &Plan,
        mut luck: impl FnMut() -> Luck,
    ) -> Result<(), TestCaseError> {
        let requests = requests();
        let mut done = vec![false; made.steps.len()];
        let mut before = self.ask(&requests);
        for (number, step) in made.steps.iter().enumerate() {
            if !step.requires.iter().all(|required| done[*required]) {
                continue;
            }
            let luck = luck();
            if luck == Luck::Fails {
                continue;
            }
            match apply(&mut self.machine, &step.command, self.now) {
                Ok(_) => done[number] = luck == Luck::Good,
                Err(refused) => {
                    let fresh = done.iter().take(number).all(|done| *done);
                    prop_assert!(!fresh, "{refused}: {step}\n{made}");
                }
            }
            let after = self.ask(&requests);
            for (index, (name, path)) in requests.iter().enumerate() {
                let what = judge(declared, name, path, &before[index], &after[index]);
                prop_assert!(
                    what.is_ok(),
                    "{name}{path} at step {number}: {what:?}\n{made}"
                );
            }
            before = after;
        }
        Ok(())
    }

    fn ask(&self, requests: &[(Host, &'static str)]) -> Vec<Handling> {
        requests
            .iter()
            .map(|(name, path)| handling(self.machine.state(), name, path))
            .collect()
    }

    /// Without failures, planning ends, and after all ages nothing is left to be done.
    fn settle(&mut self, declared: &Declaration) -> Result<Plan, TestCaseError> {
        for _ in 0..60 {
            let made = self.plan(declared)?;
            match (made.is_empty(), made.wake_at) {
                (true, None) => return Ok(made),
                (true, Some(at)) => self.wait_until(at),
                (false, _) => self.carry_out(declared, &made, || Luck::Good)?,
            }
        }
        Err(TestCaseError::fail(format!(
            "no end: {}",
            self.plan(declared)?
        )))
    }

    fn wait_until(&mut self, at: Timestamp) {
        self.now = self.now.max(at);
        let _ = apply(&mut self.machine, &Command::CloseOverdue, self.now);
    }
}

fn requests() -> Vec<(Host, &'static str)> {
    let hosts = [
        "a.example.com",
        "b.example.com",
        "o.example.com",
        "x.a.example.com",
        "y.a.example.com",
        "c.test",
        "o.test",
    ];
    let paths = ["/", "/a", "/a/", "/a/b", "/a/b/c", "/ab", "/abc", "/x"];
    hosts
        .iter()
        .flat_map(|name| {
            paths
                .iter()
                .map(|path| (Host::parse(name).expect("a host"), *path))
        })
        .collect()
}

/// What a declaration says, found by the reference matcher.
fn wanted(declared: &Declaration, name: &Host, path: &str) -> Option<(EdgeDemands, String, usize)> {
    let pattern = testkit::oracle::host(declared.hosts.keys(), name.as_str())?;
    let host = &declared.hosts[pattern];
    let place = testkit::oracle::route(host.routes.keys(), path)?;
    match &host.routes[place].outcome {
        Outcome::Complete(set) => Some((
            set.demands.clone(),
            set.backend.to_string(),
            set.modules.kinds().len(),
        )),
        Outcome::Invalid { .. } | Outcome::Pending => None,
    }
}

/// The same, refused, or the declared one, told by what distinguishes the sets of these tests.
fn judge(
    declared: &Declaration,
    name: &Host,
    path: &str,
    old: &Handling,
    new: &Handling,
) -> Result<(), String> {
    let Handling::Served(served) = new else {
        return Ok(());
    };
    let same_set = matches!(old, Handling::Served(old) if old.set == served.set);
    let is = (
        served.set.demands.clone(),
        served.set.backend.to_string(),
        served.set.modules.kinds().len(),
    );
    let as_declared = wanted(declared, name, path) == Some(is) && served.also_refuse.is_empty();
    if same_set || as_declared {
        return Ok(());
    }
    Err(format!(
        "it was {old:?}, is {new:?}, and is declared {:?}",
        wanted(declared, name, path)
    ))
}

fn luck(bytes: &[u8], next: &mut usize) -> Luck {
    let byte = bytes.get(*next).copied().unwrap_or(0);
    *next += 1;
    match byte % 4 {
        1 => Luck::Fails,
        2 => Luck::Unanswered,
        _ => Luck::Good,
    }
}

/// Lives through a history with failures, and settles at its end.
fn live(level: Atomicity, history: &[Chapter]) -> Result<Stage, TestCaseError> {
    let mut stage = Stage::new(level);
    for chapter in history {
        let declared = declared(chapter);
        stage.wait_until(stage.now.after(Span::from_secs(chapter.waits_s)));
        let mut next = 0;
        for _ in 0..3 {
            let made = stage.plan(&declared)?;
            stage.carry_out(&declared, &made, || luck(&chapter.luck, &mut next))?;
        }
    }
    Ok(stage)
}

fn last(history: &[Chapter]) -> Declaration {
    let mut declared = history.last().map(declared).unwrap_or_default();
    declared.nothing_is_removed = false;
    declared
}

fn level() -> impl Strategy<Value = Atomicity> {
    prop_oneof![
        2 => Just(Atomicity::Replace),
        1 => Just(Atomicity::Patch),
        1 => Just(Atomicity::None),
    ]
}

/// Whether nothing declared keeps anything from being applied.
fn is_all_complete(declared: &Declaration) -> bool {
    declared
        .hosts
        .values()
        .flat_map(|host| host.routes.values())
        .all(|route| matches!(route.outcome, Outcome::Complete(_)))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, max_shrink_iters: 400, ..ProptestConfig::default() })]

    /// The promise at every step of every history; then an end, after which nothing is planned,
    /// and what is declared is served.
    #[test]
    fn histories_keep_the_promise_and_end(level in level(), history in prop::collection::vec(chapter(), 1..5)) {
        let mut stage = live(level, &history)?;
        let declared = last(&history);
        let plan = stage.settle(&declared)?;
        prop_assert!(plan.is_empty());
        for (key, route) in &plan.report.routes {
            let said = declared.hosts.get(&key.0).and_then(|host| host.routes.get(&key.1));
            prop_assert!(said.is_some() || !is_all_complete(&declared), "{key:?} is left over: {route:?}");
        }
        if is_all_complete(&declared) {
            for (name, path) in requests() {
                let is = handling(stage.machine.state(), &name, path);
                let wanted = wanted(&declared, &name, path);
                prop_assert_eq!(wanted.is_some(), matches!(is, Handling::Served(_)), "{}{}", name, path);
            }
        }
    }

    /// However an edge came to be, what it ends as depends on the declaration alone.
    #[test]
    fn every_history_ends_the_same(one in prop::collection::vec(chapter(), 1..4), other in prop::collection::vec(chapter(), 1..4), end in chapter()) {
        let end = Chapter {
            routes: end.routes.into_iter().filter(|line| matches!(line.2, Fate::Said(say) if say != Say::Closed)).collect(),
            unread: false,
            ..end
        };
        let declared = declared(&end);
        let mut ends = Vec::new();
        for history in [one, other] {
            let mut stage = live(Atomicity::Replace, &history)?;
            stage.settle(&declared)?;
            ends.push(contents(stage.machine.state()));
        }
        prop_assert_eq!(&ends[0], &ends[1]);
    }

    /// One bad route changes no other: but those of its host when the demands change (R13), and
    /// those that are withdrawn in front of it (R5).
    #[test]
    fn one_bad_route_changes_no_other(before in chapter(), after in chapter(), pick in any::<prop::sample::Index>()) {
        let good = |chapter: Chapter| Chapter {
            routes: chapter.routes.into_iter().filter(|line| matches!(line.2, Fate::Said(say) if say != Say::Closed)).collect(),
            unread: false,
            luck: Vec::new(),
            ..chapter
        };
        let (before, after) = (declared(&good(before)), declared(&good(after)));
        let keys: Vec<_> = after.hosts.iter().flat_map(|(h, host)| host.routes.keys().map(move |p| (h.clone(), p.clone()))).collect();
        prop_assume!(!keys.is_empty());
        let bad = pick.get(&keys);
        let mut spoiled = after.clone();
        let host = spoiled.hosts.get_mut(&bad.0).expect("it is declared");
        host.routes.get_mut(&bad.1).expect("it is declared").outcome = Outcome::Invalid { missing: BTreeSet::new() };
        let mut ends = Vec::new();
        for declared in [&after, &spoiled] {
            let mut stage = Stage::new(Atomicity::Replace);
            stage.given.options.hold_limit = None;
            stage.settle(&before)?;
            stage.settle(declared)?;
            ends.push(contents(stage.machine.state()));
        }
        let demands = |declared: &Declaration, name: &HostPattern| declared.hosts.get(name).and_then(|host| host.demands.clone());
        let coupled = |key: &(HostPattern, Match)| {
            let same_host = key.0 == bad.0 && demands(&before, &bad.0) != demands(&after, &bad.0);
            let withdrawn = !keys.contains(key)
                && ((key.0 == bad.0 && key.1.is_narrower_than(&bad.1)) || key.0.broader().as_ref() == Some(&bad.0));
            key == bad || same_host || withdrawn
        };
        let all: BTreeSet<_> = ends[0].keys().chain(ends[1].keys()).cloned().collect();
        for key in all.iter().filter(|key| !coupled(key)) {
            prop_assert_eq!(ends[0].get(key), ends[1].get(key), "{:?} because of {:?}", key, bad);
        }
    }
}

/// What each route serves, apart from instants and generations.
fn contents(state: &EdgeState) -> BTreeMap<(HostPattern, Match), String> {
    let mut all = BTreeMap::new();
    for edge in state.edges.values() {
        for host in &edge.hosts {
            for route in edge.routes.values() {
                let what = format!(
                    "{:?} {:?} {:?} {:?}",
                    edge.demands(),
                    route.modules,
                    route.backend,
                    route.also_refuse
                );
                all.insert((host.clone(), route.place.clone()), what);
            }
        }
    }
    all
}
