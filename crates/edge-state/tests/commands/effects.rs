//! What commands do to records, ages, versions and owners.

use edge_state::{
    apply::{Machine, RefusalCode},
    capabilities::{Atomicity, permits},
    command::{Command, EdgePatch, Expected, RoutePatch, Texts},
    state::{Phase, PolicyRef, Role, Route, TlsTermination},
};
use model::{
    module::ModuleKind,
    time::{Span, Timestamp},
};

use crate::world::*;

#[test]
fn a_refusal_about_a_route_names_it() {
    let mut machine = world();
    let mut bad = spec(Phase::Open, None);
    bad.routes[0].backend = Some(on(group("missing")));
    let refusal = apply(
        &mut machine,
        &controller(),
        &Command::ReplaceEdge(Box::new(bad)),
    );
    let at = refusal
        .expect_err("it is refused")
        .at
        .expect("it knows where");
    assert_eq!(at.host, Some(host("owned.test")));
    assert_eq!(at.place, Some(prefix("/")));
}

fn controllers_route(machine: &Machine) -> Route {
    machine.state().edges[&edge("controller")].routes[&route("controller")].clone()
}

#[test]
fn whoever_else_writes_makes_the_digest_void() {
    let disable = EdgePatch {
        tls_termination: Some(TlsTermination {
            enabled: false,
            minimum: None,
        }),
        ..EdgePatch::default()
    };
    let (edge, expected, id) = (edge("controller"), Expected::Any, route("controller"));
    let text = RoutePatch {
        texts: described(1),
        ..RoutePatch::default()
    };
    let writes = [
        Command::UpdateEdge {
            id: edge.clone(),
            expected,
            patch: disable,
        },
        Command::UpdateRoute {
            edge: edge.clone(),
            expected,
            id: id.clone(),
            patch: Box::new(text),
        },
        Command::DeleteRouteModule {
            edge: edge.clone(),
            expected,
            id,
            kind: ModuleKind::IpRestriction,
        },
    ];
    for write in writes {
        let mut machine = world();
        must(&mut machine, &controller(), &write);
        let record = controllers_route(&machine).record.expect("it has one");
        assert_eq!(
            record.serving.map(|serving| serving.digest),
            Some(None),
            "{write:?}"
        );
        assert!(record.wanted.is_some_and(|wanted| wanted.digest.is_some()));
        // The owner writes again, and it is good again.
        must(
            &mut machine,
            &controller(),
            &Command::ReplaceEdge(Box::new(spec(Phase::Open, None))),
        );
        let serving = controllers_route(&machine)
            .record
            .and_then(|record| record.serving);
        assert!(serving.is_some_and(|serving| serving.digest.is_some()));
    }
}

#[test]
fn ages_and_deadlines_count_from_the_change_of_phase() {
    let mut machine = world();
    let lost = Command::ReplaceEdge(Box::new(spec(Phase::Lost, Some(Span(500)))));
    let at = |now| As {
        now: Timestamp(now),
        ..controller()
    };
    must(&mut machine, &at(2_000), &lost);
    assert_eq!(machine.next_deadline(), Some(Timestamp(2_500)));
    assert_eq!(
        apply(&mut machine, &at(2_400), &lost),
        Ok(false),
        "a repeated write resets nothing"
    );
    assert_eq!(
        apply(&mut machine, &at(2_499), &Command::CloseOverdue),
        Ok(false)
    );
    assert_eq!(
        apply(&mut machine, &at(2_500), &Command::CloseOverdue),
        Ok(true)
    );
    let closed = controllers_route(&machine);
    let record = closed.record.clone().expect("it has one");
    assert_eq!(
        (closed.backend, record.phase, record.since),
        (None, Phase::Closed, Timestamp(2_500))
    );
    assert_eq!(
        (record.serving, record.close_at, machine.next_deadline()),
        (None, None, None)
    );
}

#[test]
fn a_grace_that_is_interrupted_goes_on_where_it_stopped() {
    let mut machine = world();
    let at = |now| As {
        now: Timestamp(now),
        ..controller()
    };
    // Each write expects the generation that the one before it made.
    let put = |machine: &mut Machine, now, phase, after| {
        let mut spec = spec(phase, after);
        let edge = &machine.state().edges[&spec.id];
        spec.expected = Expected::Generation(edge.generation);
        must(machine, &at(now), &Command::ReplaceEdge(Box::new(spec)));
    };
    let grace = Some(Span(500));
    put(&mut machine, 2_000, Phase::Lost, grace);
    put(&mut machine, 2_300, Phase::Held, None);
    assert_eq!(machine.next_deadline(), None, "suspended");
    put(&mut machine, 9_000, Phase::Lost, grace);
    assert_eq!(machine.next_deadline(), Some(Timestamp(9_200)));
    let record = |machine: &Machine| controllers_route(machine).record.clone().expect("one");
    assert_eq!(record(&machine).close_after(), grace);
    put(&mut machine, 9_150, Phase::Held, None);
    put(&mut machine, 9_160, Phase::Lost, grace);
    assert_eq!(machine.next_deadline(), Some(Timestamp(9_210)));
    // Served as declared, nothing is spent any more.
    put(&mut machine, 9_170, Phase::Open, None);
    put(&mut machine, 9_180, Phase::Lost, grace);
    assert_eq!(machine.next_deadline(), Some(Timestamp(9_680)));
}

#[test]
fn a_changed_policy_takes_users_along_and_leaves_controllers_where_they_are() {
    let mut machine = world();
    must(
        &mut machine,
        &user(),
        &create_rule("user", "all", "0.0.0.0/0"),
    );
    let versions = |machine: &Machine| -> Vec<u64> {
        machine.state().ip_policies[&policy("user")]
            .versions
            .keys()
            .copied()
            .collect()
    };
    let user_route = &machine.state().edges[&edge("user")].routes[&route("user")];
    let named = user_route
        .modules
        .ip_restriction
        .as_ref()
        .expect("it is restricted");
    assert_eq!(
        named.policies,
        [PolicyRef {
            id: policy("user"),
            version: 3
        }]
    );
    let named = controllers_route(&machine)
        .modules
        .ip_restriction
        .expect("it is restricted");
    assert_eq!(
        named.policies[1],
        PolicyRef {
            id: policy("user"),
            version: 2
        }
    );
    assert_eq!(
        versions(&machine),
        [2, 3],
        "the old one stays for the controller's route"
    );
    // The controller's route moves in its own step, and the old version goes.
    let mut moved = spec(Phase::Open, None);
    let modules = moved.routes[0]
        .modules
        .ip_restriction
        .as_mut()
        .expect("it is restricted");
    modules.policies[1].version = 3;
    must(
        &mut machine,
        &controller(),
        &Command::ReplaceEdge(Box::new(moved)),
    );
    assert_eq!(versions(&machine), [3]);
}

#[test]
fn a_backend_in_use_by_a_controller_is_not_changed_in_place() {
    let mut machine = world();
    let change = |name: &str| Command::UpdateBackend {
        id: group(name),
        kind: Some(labels("app", "other")),
        texts: Texts::default(),
    };
    let before = machine.state().edges[&edge("user")].routes[&route("user")].generation;
    must(&mut machine, &user(), &change("user"));
    let after = machine.state().edges[&edge("user")].routes[&route("user")].generation;
    assert!(after > before, "its route is handled otherwise");
    let refusal = apply(&mut machine, &controller(), &change("controller"));
    assert_eq!(
        refusal.map_err(|refusal| refusal.code),
        Err(RefusalCode::Immutable)
    );
}

#[test]
fn a_domain_remembers_since_when_nobody_declares_it() {
    let mut machine = world();
    let put = |declared| Command::PutDomain {
        id: domain("owned"),
        controller: Some("c".to_owned()),
        host: host("owned.test"),
        namespace: Some("default".to_owned()),
        heir: None,
        declared,
        texts: Texts::default(),
    };
    let at = |now| As {
        now: Timestamp(now),
        ..controller()
    };
    must(&mut machine, &at(5_000), &put(false));
    assert_eq!(apply(&mut machine, &at(6_000), &put(false)), Ok(false));
    let since = |machine: &Machine| machine.state().domains[&domain("owned")].undeclared_since;
    assert_eq!(since(&machine), Some(Timestamp(5_000)));
    must(&mut machine, &at(7_000), &put(true));
    assert_eq!(since(&machine), None);
}

#[test]
fn a_higher_term_is_raised_by_the_write_that_brings_it() {
    let mut machine = world();
    let newer = As {
        term: Some(7),
        ..controller()
    };
    must(&mut machine, &newer, &create_key("new", Role::Write, 9));
    assert_eq!(machine.state().term, 7);
    let older = As {
        term: Some(6),
        ..controller()
    };
    let refusal = apply(&mut machine, &older, &Command::DeleteKey { id: key("new") });
    assert_eq!(
        refusal.map_err(|refusal| refusal.code),
        Err(RefusalCode::Superseded)
    );
}

#[test]
fn each_level_of_atomicity_has_its_commands() {
    let levels = |command: &Command| {
        [Atomicity::None, Atomicity::Patch, Atomicity::Replace].map(|level| permits(level, command))
    };
    let one = headers("x-a", "1");
    let two = RoutePatch {
        backend: Some(on(group("user"))),
        ..one.clone()
    };
    assert_eq!(levels(&update_route(one.clone())), [true; 3]);
    assert_eq!(levels(&update_route(two)), [false, true, true]);
    assert_eq!(
        levels(&create_route("new", prefix("/b"), RoutePatch::default())),
        [true; 3]
    );
    assert_eq!(
        levels(&create_route("new", prefix("/b"), one)),
        [false, true, true]
    );
    assert_eq!(
        levels(&Command::ReplaceEdge(Box::new(spec(Phase::Open, None)))),
        [false, false, true]
    );
    assert_eq!(levels(&Command::CloseOverdue), [true; 3]);
}
