//! What holds after any commands in any order, refused ones included.

mod begin;
mod universe;

use std::collections::BTreeSet;

use begin::begin;
use edge_state::{
    apply::{Machine, RefusalCode, apply},
    closing::closings,
    command::{Command, Context, Expected, Limits},
    compile::compile,
    exposure::{Handling, Why, handling},
    state::{EdgeState, Role},
    verify::verify,
};
use model::{host::Host, module::ModuleKind, time::Timestamp};
use proptest::prelude::*;
use routing::{
    chain::Facts,
    refusal::Refusal,
    table::{RouteOutcome, Table},
};
use universe::{Dice, PATHS, clients, hosts};

/// A command is decoded from these many numbers.
type Roll = [u8; 32];

/// What every step of a story is told.
struct Told<'a> {
    before: &'a EdgeState,
    command: &'a Command,
    context: &'a Context<'a>,
    /// The machine after the command.
    after: &'a Machine,
    result: Result<bool, RefusalCode>,
}

/// Plays a story of commands and asks `check` after each.
fn play(rolls: &[Roll], mut check: impl FnMut(&Told<'_>)) {
    let every: BTreeSet<_> = ModuleKind::ALL.into_iter().collect();
    let limits = Limits::default();
    let mut machine = Machine::new(begin());
    let mut now = Timestamp(1000);
    for roll in rolls {
        let mut dice = Dice(roll.iter());
        let role = dice.role();
        let term = dice.term(machine.state());
        now.0 += dice.pick(16) as u64;
        let before = machine.state().clone();
        let command = dice.command(&before);
        let context = Context {
            now,
            role,
            term,
            enforceable: &every,
            limits: &limits,
        };
        let result = machine
            .apply(&command, &context)
            .map_err(|refusal| refusal.code);
        check(&Told {
            before: &before,
            command: &command,
            context: &context,
            after: &machine,
            result,
        });
    }
}

fn expected_generation(command: &Command) -> Option<(&model::id::EdgeId, Expected)> {
    match command {
        Command::ReplaceEdge(spec) => Some((&spec.id, spec.expected)),
        Command::ReplaceRoute { edge, expected, .. }
        | Command::CreateRoute { edge, expected, .. }
        | Command::UpdateRoute { edge, expected, .. }
        | Command::DeleteRouteModule { edge, expected, .. }
        | Command::DeleteRouteBackend { edge, expected, .. }
        | Command::SetRecord { edge, expected, .. }
        | Command::DeleteRoute { edge, expected, .. }
        | Command::UpdateEdge {
            id: edge, expected, ..
        }
        | Command::DeleteEdgeModule {
            id: edge, expected, ..
        }
        | Command::DeleteEdge { id: edge, expected } => Some((edge, *expected)),
        _ => None,
    }
}

/// What the table says about a request, in the words of exposure.
fn by_table(
    table: &Table,
    host: &str,
    path: &str,
    client: std::net::IpAddr,
) -> Result<String, Refusal> {
    let entry = table.host(host).ok_or(Refusal::UnknownHost)?;
    let route = entry.edge.select(path).route()?;
    let admitted = route.admit(&Facts::new(client, "GET", host, path))?;
    Ok(admitted.set().backend.id.to_string())
}

fn by_exposure(handling: &Handling, client: std::net::IpAddr) -> Result<String, Refusal> {
    match handling {
        Handling::Refused(Why::NoEdge) => Err(Refusal::UnknownHost),
        Handling::Refused(Why::NoRoute) => Err(Refusal::NoRoute),
        Handling::Refused(Why::Ambiguous) => Err(Refusal::PathAmbiguous),
        Handling::Refused(Why::Closed) => Err(Refusal::RouteClosed),
        Handling::Refused(Why::Inconsistent) => Err(Refusal::NotEnforceable),
        Handling::Served(served) if served.admits(client) => Ok(served.set.backend.to_string()),
        Handling::Served(_) => Err(Refusal::AddressRefused),
    }
}

/// Every request of the universe, and what is done with it.
fn all(state: &EdgeState) -> Vec<(String, &'static str, Handling)> {
    hosts()
        .flat_map(|host| PATHS.map(|path| (host.to_string(), path, handling(state, &host, path))))
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, ..ProptestConfig::default() })]

    #[test]
    fn a_command_is_whole_or_nothing_and_the_state_stays_whole(rolls in prop::collection::vec(any::<Roll>(), 1..60)) {
        play(&rolls, |told| {
            let after = told.after.state();
            match told.result {
                Ok(changed) => {
                    assert_eq!(changed, after != told.before, "{:?}", told.command);
                    assert_eq!(after.revision, told.before.revision + u64::from(changed));
                }
                Err(_) => assert_eq!(after, told.before, "{:?}", told.command),
            }
            assert_eq!(verify(after), Ok(()), "{:?}", told.command);
            assert_eq!(*told.after, Machine::new(after.clone()), "the index after {:?}", told.command);
            let again = apply(told.before, told.command, told.context);
            assert_eq!(again.map(|applied| applied.state).ok().as_ref().unwrap_or(told.before), after);
        });
    }

    #[test]
    fn what_is_repeated_changes_nothing(rolls in prop::collection::vec(any::<Roll>(), 1..40)) {
        play(&rolls, |told| {
            let raises = told.context.term.is_some_and(|term| term > told.before.term);
            if told.result == Ok(false) || raises {
                return;
            }
            if let Ok(again) = apply(told.after.state(), told.command, told.context) {
                assert!(!again.changed, "{:?}", told.command);
            }
        });
    }

    #[test]
    fn writers_are_fenced(rolls in prop::collection::vec(any::<Roll>(), 1..60)) {
        play(&rolls, |told| {
            assert!(told.after.state().term >= told.before.term);
            if told.result.is_err() {
                return;
            }
            assert!(told.context.term.is_none_or(|term| term >= told.before.term));
            assert_ne!(told.context.role, Role::Read);
            if let Some((edge, expected)) = expected_generation(told.command) {
                let present = told.before.edges.get(edge).map(|edge| edge.generation);
                match expected {
                    Expected::Absent => assert_eq!(present, None),
                    Expected::Generation(generation) => assert_eq!(present, Some(generation)),
                    Expected::Any => {}
                }
            }
            for (id, edge) in &told.after.state().edges {
                let old = told.before.edges.get(id);
                let same = old.is_some_and(|old| old == edge);
                let generation = old.map_or(told.before.revision, |old| old.generation);
                assert!(same || edge.generation > generation, "a generation returns");
            }
        });
    }

    #[test]
    fn the_table_says_what_exposure_says_and_grows_by_what_changed(rolls in prop::collection::vec(any::<Roll>(), 1..40)) {
        let every: BTreeSet<_> = ModuleKind::ALL.into_iter().collect();
        let mut table = compile(&begin(), &every, None);
        play(&rolls, |told| {
            let after = told.after.state();
            let grown = compile(after, &every, Some((told.before, &table)));
            let fresh = compile(after, &every, None);
            assert_eq!(format!("{grown:?}"), format!("{fresh:?}"), "{:?}", told.command);
            table = grown;
            for (host, path, handling) in all(after) {
                // Compression is accepted here, but no chain is made with it.
                let compresses = matches!(&handling, Handling::Served(s) if s.set.modules.compression.is_some());
                for client in clients() {
                    let said = by_table(&table, &host, path, client);
                    let meant = if compresses { Err(Refusal::NotEnforceable) } else { by_exposure(&handling, client) };
                    assert_eq!(said, meant, "{host}{path} from {client}");
                }
            }
        });
    }

    #[test]
    fn what_cannot_be_enforced_refuses_and_harms_no_other(rolls in prop::collection::vec(any::<Roll>(), 1..40)) {
        let less = BTreeSet::from([ModuleKind::ResponseHeaders, ModuleKind::TlsTermination]);
        play(&rolls, |told| {
            let after = told.after.state();
            let table = compile(after, &less, None);
            for (host, path, handling) in all(after) {
                let Handling::Served(served) = handling else { continue };
                let fits = served.also_refuse.is_empty() && served.set.kinds().is_subset(&less);
                let entry = table.host(&host).expect("it is served");
                let route = entry.edge.select(path).route().expect("it is served");
                let serves = matches!(route.outcome, RouteOutcome::Serve(_));
                let by_policies_alone = !served.also_refuse.is_empty() && served.set.kinds().is_subset(&less);
                assert!(serves == fits || by_policies_alone, "{host}{path}");
            }
        });
    }

    #[test]
    fn a_plain_key_never_touches_what_a_controller_owns(rolls in prop::collection::vec(any::<Roll>(), 1..60)) {
        play(&rolls, |told| {
            if told.context.role == Role::Controller {
                return;
            }
            let after = told.after.state();
            for (id, edge) in told.before.edges.iter().filter(|(_, edge)| edge.controller.is_some()) {
                assert_eq!(after.edges.get(id), Some(edge), "{:?}", told.command);
                for path in PATHS {
                    let then = edge_state::exposure::on_edge(told.before, edge, path);
                    let now = edge_state::exposure::on_edge(after, edge, path);
                    assert_eq!(then, now, "{:?}", told.command);
                }
            }
            for (id, domain) in &told.before.domains {
                if domain.controller.is_some() || domain.namespace.is_some() {
                    assert_eq!(after.domains.get(id), Some(domain));
                }
            }
        });
    }

    #[test]
    fn routes_of_users_are_always_at_the_newest_version(rolls in prop::collection::vec(any::<Roll>(), 1..60)) {
        play(&rolls, |told| {
            let (Command::CreateIpRule { policy: _, id, .. }
                | Command::UpdateIpRule { id, .. }
                | Command::DeleteIpRule { id }) = told.command
            else {
                return;
            };
            if told.result != Ok(true) {
                return;
            }
            let after = told.after.state();
            let of = |state: &EdgeState| {
                let has = |policy: &&std::sync::Arc<edge_state::state::IpPolicy>| policy.rules.contains_key(id);
                state.ip_policies.iter().find(|(_, policy)| has(policy)).map(|(id, _)| id.clone())
            };
            let changed = of(after).or_else(|| of(told.before)).expect("the rule was somewhere");
            for edge in after.edges.values() {
                for route in edge.routes.values() {
                    let named = route.modules.ip_restriction.iter().flat_map(|m| &m.policies).chain(&route.also_refuse);
                    for policy in named.filter(|policy| policy.id == changed) {
                        if edge.controller.is_none() {
                            assert_eq!(policy.version, after.ip_policies[&policy.id].newest);
                        }
                    }
                }
            }
            // A controller's routes are where they were.
            for (id, edge) in told.before.edges.iter().filter(|(_, edge)| edge.controller.is_some()) {
                assert_eq!(after.edges.get(id), Some(edge));
            }
        });
    }

    #[test]
    fn a_closing_only_refuses_and_closes_all_that_closes(rolls in prop::collection::vec(any::<Roll>(), 1..50)) {
        let every: BTreeSet<_> = ModuleKind::ALL.into_iter().collect();
        play(&rolls, |told| {
            let after = told.after.state();
            let close = Command::CloseRoutes { routes: closings(told.before, after) };
            let edge = Context { role: Role::Controller, term: None, ..told.context.clone() };
            let closed = apply(told.before, &close, &edge).expect("the edge may close").state;
            let table = compile(told.before, &every, None);
            for (host, path, old) in all(told.before) {
                let now = handling(&closed, &Host::parse(&host).expect("a host"), path);
                assert!(now == old || now == Handling::Refused(Why::Closed), "{host}{path}");
                let Handling::Served(_) = old else { continue };
                let entry = table.host(&host).expect("it is served");
                let answers = entry.edge.select(path).route().expect("it is served");
                let left = after.edges.get(&entry.edge.id).filter(|edge| edge.hosts.contains(&entry.pattern));
                let left = left.and_then(|edge| edge.routes.get(&answers.id));
                if left.is_none_or(|route| route.open_backend().is_none()) {
                    assert_eq!(now, Handling::Refused(Why::Closed), "{host}{path} after {:?}", told.command);
                }
            }
        });
    }

    #[test]
    fn the_state_survives_json(rolls in prop::collection::vec(any::<Roll>(), 1..60)) {
        let mut last = begin();
        play(&rolls, |told| last = told.after.state().clone());
        let text = serde_json::to_string(&last).expect("it is plain data");
        assert_eq!(serde_json::from_str::<EdgeState>(&text).expect("it was written so"), last);
    }

    #[test]
    fn ages_run_from_the_change_of_phase(rolls in prop::collection::vec(any::<Roll>(), 1..60)) {
        play(&rolls, |told| {
            for (id, edge) in &told.after.state().edges {
                for (route_id, route) in &edge.routes {
                    let Some(record) = &route.record else { continue };
                    let old = told.before.edges.get(id).and_then(|edge| edge.routes.get(route_id));
                    match old.and_then(|old| old.record.as_ref()) {
                        Some(old) if old.phase == record.phase => assert_eq!(record.since, old.since),
                        Some(_) | None => assert_eq!(record.since, told.context.now),
                    }
                    assert!(record.close_at.is_none_or(|at| at >= record.since));
                }
            }
            if *told.command == Command::CloseOverdue && told.result.is_ok() {
                let next = told.after.next_deadline();
                assert!(next.is_none_or(|next| next > told.context.now));
            }
        });
    }
}

/// What the stories above are worth: every kind of command succeeds in some, and requests are
/// served. Numbers come from a fixed generator, so that this says the same every time.
#[test]
fn the_stories_reach_every_command_and_open_routes() {
    let mut seed = 1_u64;
    let mut roll = || {
        let mut bytes = [0; 32];
        for byte in &mut bytes {
            seed = seed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            *byte = (seed >> 56) as u8;
        }
        bytes
    };
    let mut done = BTreeSet::new();
    let mut served = 0;
    for _ in 0..400 {
        let rolls: Vec<_> = (0..60).map(|_| roll()).collect();
        play(&rolls, |told| {
            if told.result == Ok(true) {
                let name = format!("{:?}", told.command);
                done.insert(name.split([' ', '(']).next().unwrap_or_default().to_owned());
            }
            let open = all(told.after.state()).into_iter();
            served += open
                .filter(|(_, _, handling)| matches!(handling, Handling::Served(_)))
                .count();
        });
    }
    assert_eq!(done.len(), 34, "changed something: {done:?}");
    assert!(served > 10_000, "{served}");
}
