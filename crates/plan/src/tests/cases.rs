//! Single cases, by the rule that each is about.

use std::collections::{BTreeMap, BTreeSet};

use edge_state::{
    apply::Machine,
    capabilities::Atomicity,
    command::Command,
    state::{EdgeState, Phase},
};
use model::{
    declaration::{Declaration, Outcome, Unreadable},
    status::RouteState,
    time::Span,
};

use super::{
    fixture::{Given, NOW, Say, declaration, exact, host, ingress, mutual_tls, prefix},
    scene::{Scene, lost, report, route, two},
};
use crate::{Note, OnInvalid, mutation::Mutation};

#[test]
fn a_new_route_that_fails_preflight_is_staged_closed_before_the_broader_one() {
    let mut scene = Scene::new();
    let plan = scene.settle(&two(Say::Plain, Say::Closed, false));
    assert!(scene.is_open("/") && !scene.is_open("/admin/x"));
    let admin = report(&plan, "/admin");
    assert_eq!(
        (admin.state, admin.wanted, admin.serving),
        (RouteState::Closed, Some(1), None)
    );
    assert_eq!(admin.notes, BTreeSet::from([Note::Invalid]));
}

#[test]
fn a_converged_edge_gets_an_empty_plan() {
    let mut scene = Scene::new();
    let declared = two(Say::A, Say::B, false);
    scene.settle(&declared);
    let before = scene.machine.state().revision;
    let plan = scene.settle(&declared);
    assert_eq!(scene.machine.state().revision, before);
    assert_eq!(plan.wake_at, None);
    assert_eq!(report(&plan, "/").state, RouteState::Open);
    assert!(report(&plan, "/").notes.is_empty());
}

#[test]
fn an_open_route_that_turns_invalid_is_held_and_counts_generations() {
    let mut scene = Scene::new();
    scene.settle(&two(Say::A, Say::Plain, false));
    let plan = scene.settle(&two(Say::Closed, Say::Plain, false));
    assert!(scene.is_open("/"));
    let root = report(&plan, "/");
    assert_eq!(
        (root.state, root.serving, root.wanted),
        (RouteState::Held, Some(1), Some(2))
    );
    assert_eq!(root.since, Some(NOW));
    let plan = scene.settle(&two(Say::B, Say::Plain, false));
    assert_eq!(report(&plan, "/").serving, Some(3));
}

#[test]
fn with_on_invalid_close_it_closes() {
    let mut scene = Scene::new();
    scene.given.options.on_invalid = OnInvalid::Close;
    scene.settle(&two(Say::A, Say::Plain, false));
    scene.settle(&two(Say::Closed, Say::Plain, false));
    assert!(!scene.is_open("/") && scene.is_open("/admin"));
}

#[test]
fn a_lost_object_closes_the_route_after_the_grace_and_not_before() {
    let mut scene = Scene::new();
    let mut declared = two(Say::A, Say::Plain, false);
    scene.settle(&declared);
    lost(&mut declared, "/");
    let plan = scene.settle(&declared);
    let root = report(&plan, "/");
    assert_eq!(
        (root.state, root.wanted),
        (RouteState::Held, Some(1)),
        "losing is no change of what is wanted"
    );
    assert_eq!(plan.wake_at, Some(NOW.after(Span::from_secs(60))));
    scene.wait(Span::from_secs(59));
    scene.settle(&declared);
    assert!(scene.is_open("/"));
    scene.wait(Span::from_secs(1));
    assert!(!scene.is_open("/"), "the edge closes it by itself");
    let plan = scene.settle(&declared);
    assert_eq!(report(&plan, "/").state, RouteState::Closed);
    let back = two(Say::A, Say::Plain, false);
    let plan = scene.settle(&back);
    assert_eq!(
        (report(&plan, "/").state, report(&plan, "/").wanted),
        (RouteState::Open, Some(1))
    );
}

#[test]
fn what_was_not_served_is_not_lost() {
    let mut scene = Scene::new();
    scene.settle(&two(Say::Plain, Say::Plain, false));
    let mut declared = two(Say::A, Say::Plain, false);
    lost(&mut declared, "/");
    let plan = scene.settle(&declared);
    assert_eq!(
        plan.wake_at, None,
        "a second policy that was never there holds, without a grace"
    );
    assert_eq!(report(&plan, "/").state, RouteState::Held);
}

#[test]
fn a_pending_object_stops_the_grace() {
    let mut scene = Scene::new();
    let mut declared = two(Say::A, Say::Plain, false);
    scene.settle(&declared);
    lost(&mut declared, "/");
    scene.settle(&declared);
    route(&mut declared, "/").outcome = Outcome::Pending;
    scene.settle(&declared);
    scene.wait(Span::from_secs(3600));
    scene.settle(&declared);
    assert!(scene.is_open("/"));
}

#[test]
fn a_hold_ends_at_its_limit() {
    let mut scene = Scene::new();
    scene.given.options.hold_limit = Some(Span::from_secs(300));
    scene.settle(&two(Say::A, Say::Plain, false));
    let invalid = two(Say::Closed, Say::Plain, false);
    let plan = scene.settle(&invalid);
    assert_eq!(plan.wake_at, Some(NOW.after(Span::from_secs(300))));
    scene.wait(Span::from_secs(300));
    assert!(!scene.is_open("/"));
    scene.settle(&invalid);
}

#[test]
fn a_widened_policy_does_not_widen_the_held_route_that_shares_it() {
    let mut scene = Scene::new();
    scene.settle(&two(Say::A, Say::A, false));
    let mut declared = two(Say::A, Say::A, true);
    route(&mut declared, "/").outcome = Outcome::Invalid {
        missing: BTreeSet::new(),
    };
    scene.settle(&declared);
    assert!(scene.admits("/admin", "192.0.2.1"), "the valid one moves");
    assert!(!scene.admits("/", "192.0.2.1"), "the held one does not");
    assert!(scene.admits("/", "10.0.0.1"));
}

#[test]
fn a_narrowed_policy_narrows_the_held_route_that_shares_it() {
    let mut scene = Scene::new();
    scene.settle(&two(Say::A, Say::A, true));
    let mut declared = two(Say::A, Say::A, false);
    route(&mut declared, "/").outcome = Outcome::Invalid {
        missing: BTreeSet::new(),
    };
    let plan = scene.settle(&declared);
    assert!(
        !scene.admits("/", "192.0.2.1"),
        "refused by the newest content"
    );
    assert!(scene.admits("/", "10.0.0.1"));
    assert!(report(&plan, "/").notes.contains(&Note::AlsoRefuses));
    scene.settle(&two(Say::A, Say::A, true));
    assert!(scene.admits("/", "192.0.2.1"));
}

#[test]
fn a_withdrawn_protected_route_is_a_tombstone_first() {
    let mut scene = Scene::new();
    scene.settle(&two(Say::Plain, Say::A, false));
    let removed = two(Say::Plain, Say::Absent, false);
    let plan = scene.settle(&removed);
    assert!(!scene.is_open("/admin") && scene.is_open("/"));
    assert_eq!(report(&plan, "/admin").state, RouteState::Removing);
    assert_eq!(report(&plan, "/admin").wanted, None);
    assert_eq!(plan.wake_at, Some(NOW.after(Span::from_secs(10))));
    scene.settle(&two(Say::Plain, Say::A, false));
    assert!(
        scene.is_open("/admin"),
        "declared again, a tombstone ends at once"
    );
    scene.settle(&removed);
    scene.wait(Span::from_secs(10));
    let plan = scene.settle(&removed);
    assert!(scene.is_open("/admin"), "what is left answers");
    assert_eq!(plan.report.routes.len(), 1);
}

#[test]
fn without_the_tombstone_a_replaced_route_is_uncovered() {
    let mut scene = Scene {
        mutation: Mutation::NoTombstone,
        ..Scene::new()
    };
    scene.settle(&two(Say::Plain, Say::A, false));
    scene.settle(&two(Say::Plain, Say::Absent, false));
    assert!(
        scene.is_open("/admin"),
        "a planner without tombstones is told from ours by this"
    );
}

#[test]
fn a_withdrawn_route_stays_closed_while_its_neighbour_is_held() {
    let mut scene = Scene::new();
    scene.settle(&two(Say::Plain, Say::Plain, false));
    let removed = two(Say::Closed, Say::Absent, false);
    let plan = scene.settle(&removed);
    assert!(scene.is_open("/") && !scene.is_open("/admin"));
    let broader = (host("a.example.com"), prefix("/"));
    assert!(
        report(&plan, "/admin")
            .notes
            .contains(&Note::WaitsForBroader { broader })
    );
    scene.settle(&two(Say::Plain, Say::Absent, false));
    assert!(scene.is_open("/admin"));
}

#[test]
fn nothing_goes_from_a_wildcard_before_the_hosts_below_it_stand() {
    let (wildcard, name) = (host("*.example.com"), host("a.example.com"));
    let (slash, ab, one) = (prefix("/"), prefix("/ab"), exact("/ab"));
    let mut scene = Scene::new();
    let no_demands = BTreeMap::new();
    let lines = [(&wildcard, &ab, Say::Plain), (&wildcard, &one, Say::Closed)];
    scene.settle(&declaration(&lines, &no_demands, false));
    let lines = [(&wildcard, &ab, Say::Plain), (&name, &slash, Say::Closed)];
    // The closed route of the wildcard would uncover the open one for the new host's requests.
    scene.settle(&declaration(&lines, &no_demands, false));
    assert!(!scene.is_open("/ab"));
    let routes = scene
        .machine
        .state()
        .edges
        .values()
        .map(|edge| edge.routes.len());
    assert_eq!(routes.sum::<usize>(), 2, "in the end it goes");
}

#[test]
fn a_successor_with_another_set_waits_for_the_tombstone() {
    let mut scene = Scene::new();
    scene.settle(&two(Say::A, Say::Plain, false));
    let mut declared = two(Say::B, Say::Plain, false);
    route(&mut declared, "/").owner = ingress("two");
    let plan = scene.settle(&declared);
    assert!(!scene.is_open("/"));
    assert_eq!(report(&plan, "/").state, RouteState::Removing);
    scene.wait(Span::from_secs(10));
    let plan = scene.settle(&declared);
    assert!(scene.is_open("/"));
    assert_eq!(report(&plan, "/").owner, Some(ingress("two")));
}

#[test]
fn a_successor_with_an_equal_set_follows_at_once() {
    let mut scene = Scene::new();
    scene.settle(&two(Say::A, Say::Plain, false));
    let mut declared = two(Say::A, Say::Plain, false);
    route(&mut declared, "/").owner = ingress("two");
    let plan = scene.settle(&declared);
    let root = report(&plan, "/");
    assert_eq!(
        (root.state, root.serving, &root.owner),
        (RouteState::Open, Some(1), &Some(ingress("two")))
    );
}

#[test]
fn what_could_not_be_read_is_not_removed() {
    let mut scene = Scene::new();
    scene.settle(&two(Say::A, Say::A, false));
    let mut nothing = Declaration {
        nothing_is_removed: true,
        ..Declaration::default()
    };
    scene.settle(&nothing);
    scene.wait(Span::from_secs(7200));
    scene.settle(&nothing);
    assert!(scene.is_open("/"));
    nothing.nothing_is_removed = false;
    nothing.pending_owners = BTreeSet::from([ingress("one")]);
    scene.settle(&nothing);
    assert!(scene.is_open("/"));
    nothing.pending_owners.clear();
    scene.settle(&nothing);
    assert!(!scene.is_open("/"));
}

#[test]
fn hosts_that_are_not_open_stay_closed_while_something_is_unreadable() {
    let mut scene = Scene::new();
    let mut declared = two(Say::Plain, Say::A, false);
    declared.unreadable = BTreeSet::from([Unreadable::Namespace(String::from("ns"))]);
    let plan = scene.settle(&declared);
    assert!(!scene.is_open("/"));
    assert!(report(&plan, "/").notes.contains(&Note::UnreadableNearby));
    declared.unreadable = BTreeSet::from([Unreadable::Namespace(String::from("another"))]);
    scene.settle(&declared);
    assert!(scene.is_open("/"));
    declared.unreadable = BTreeSet::from([Unreadable::Everything]);
    scene.settle(&declared);
    assert!(scene.is_open("/"), "what is open stays open");
}

#[test]
fn a_pass_that_only_closes_closes_and_stages_and_does_nothing_else() {
    let mut scene = Scene::new();
    scene.settle(&two(Say::Plain, Say::A, false));
    scene.only_close = true;
    scene.settle(&two(Say::B, Say::Absent, true));
    assert!(scene.admits("/", "203.0.113.1"), "no change");
    assert!(!scene.is_open("/admin"), "withdrawn");
    scene.wait(Span::from_secs(60));
    scene.settle(&two(Say::B, Say::Absent, true));
    assert!(!scene.is_open("/admin"), "and not deleted");
    scene.only_close = false;
    scene.settle(&two(Say::B, Say::Absent, true));
    assert!(!scene.admits("/admin", "203.0.113.1"));
}

#[test]
fn a_refused_declaration_is_not_tried_again_until_it_changes() {
    let mut scene = Scene::new();
    let declared = two(Say::A, Say::Plain, false);
    let plan = scene.plan(&declared);
    let step = plan
        .steps
        .iter()
        .find(|step| matches!(step.command, Command::ReplaceEdge(_)));
    let key = (host("a.example.com"), prefix("/"));
    scene
        .given
        .rejections
        .remember(step.expect("the host is made"), Some(&key), "no room");
    let plan = scene.settle(&declared);
    assert!(!scene.is_open("/") && scene.is_open("/admin"));
    let note = Note::RefusedByEdge {
        message: String::from("no room"),
    };
    assert!(report(&plan, "/").notes.contains(&note));
    let changed = two(Say::B, Say::Plain, false);
    scene.given.rejections.forget_changed(&changed);
    assert!(scene.given.rejections.is_empty());
    scene.settle(&changed);
    assert!(scene.is_open("/"));
}

#[test]
fn a_route_that_cannot_even_be_staged_holds_back_only_what_is_broader() {
    let mut scene = Scene::new();
    scene.settle(&two(Say::A, Say::Absent, false));
    let declared = two(Say::B, Say::Closed, false);
    let plan = scene.plan(&declared);
    let step = plan
        .steps
        .iter()
        .find(|step| matches!(step.command, Command::ReplaceEdge(_)));
    let key = (host("a.example.com"), prefix("/admin"));
    scene
        .given
        .rejections
        .remember(step.expect("the edge changes"), Some(&key), "too long");
    let plan = scene.settle(&declared);
    assert!(
        !scene.is_open("/"),
        "its protection changes and it cannot: closed (R3)"
    );
    let note = Note::NarrowerNotStaged {
        narrower: key.clone(),
    };
    assert!(report(&plan, "/").notes.contains(&note));
    assert_eq!(report(&plan, "/admin").id, None);
    scene.given.rejections.clear();
    scene.settle(&declared);
    assert!(scene.is_open("/"));
}

#[test]
fn a_refused_command_is_left_out_until_it_is_another() {
    let mut scene = Scene::new();
    let declared = two(Say::Closed, Say::Closed, false);
    for step in &scene.plan(&declared).steps {
        scene.given.rejections.remember(step, None, "no");
    }
    assert!(scene.plan(&declared).is_empty());
    scene.given.rejections.clear();
    assert!(!scene.plan(&declared).is_empty());
}

#[test]
fn demands_stay_while_a_route_is_held_under_them() {
    let (name, slash, admin) = (host("a.example.com"), prefix("/"), prefix("/admin"));
    let with = |root, below, on: bool| {
        let demands = if on {
            mutual_tls()
        } else {
            model::module::EdgeDemands::default()
        };
        declaration(
            &[(&name, &slash, root), (&name, &admin, below)],
            &BTreeMap::from([(name.clone(), demands)]),
            false,
        )
    };
    let mut scene = Scene::new();
    scene.settle(&with(Say::Plain, Say::A, true));
    let plan = scene.settle(&with(Say::Closed, Say::A, false));
    let edge = scene
        .machine
        .state()
        .edges
        .values()
        .next()
        .expect("the edge stands");
    assert_eq!(edge.demands(), mutual_tls());
    let by = (name.clone(), slash.clone());
    assert!(
        report(&plan, "/admin")
            .notes
            .contains(&Note::DemandsKept { by })
    );
    scene.settle(&with(Say::Plain, Say::A, false));
    let edge = scene
        .machine
        .state()
        .edges
        .values()
        .next()
        .expect("the edge stands");
    assert_eq!(edge.demands(), model::module::EdgeDemands::default());
}

#[test]
fn a_host_is_released_long_after_its_last_declaration_and_nothing_is_left() {
    let mut scene = Scene::new();
    scene.settle(&two(Say::A, Say::B, false));
    let nothing = Declaration::default();
    scene.settle(&nothing);
    scene.wait(Span::from_secs(10));
    let plan = scene.settle(&nothing);
    let state = scene.machine.state();
    assert!(state.edges.is_empty() && state.ip_policies.is_empty() && state.backends.is_empty());
    assert_eq!(state.domains.len(), 1, "the host is still its namespace's");
    scene.now = plan.wake_at.expect("the release is awaited");
    scene.settle(&nothing);
    let EdgeState { domains, .. } = scene.machine.state();
    assert!(domains.is_empty());
}

#[test]
fn somebody_elses_edge_is_left_alone() {
    let mut scene = Scene::new();
    scene.settle(&two(Say::A, Say::B, false));
    let mut state = scene.machine.state().clone();
    for edge in state.edges.values_mut() {
        std::sync::Arc::make_mut(edge).controller = Some(String::from("theirs"));
    }
    scene.machine = Machine::new(state);
    let before = scene.machine.state().edges.clone();
    let plan = scene.settle(&two(Say::Plain, Say::Plain, false));
    assert_eq!(scene.machine.state().edges, before);
    let note = Note::HostHeld {
        by: Some(String::from("theirs")),
    };
    assert_eq!(report(&plan, "/").notes, BTreeSet::from([note]));
}

#[test]
fn a_write_by_others_is_undone() {
    let mut scene = Scene::new();
    let declared = two(Say::A, Say::B, false);
    scene.settle(&declared);
    let mut state = scene.machine.state().clone();
    for edge in state.edges.values_mut() {
        for route in std::sync::Arc::make_mut(edge).routes.values_mut() {
            route.modules.ip_restriction = None;
            let serving = route
                .record
                .as_mut()
                .and_then(|record| record.serving.as_mut());
            serving.expect("it is open").digest = None;
        }
    }
    scene.machine = Machine::new(state);
    assert!(scene.admits("/", "203.0.113.1"));
    let plan = scene.settle(&declared);
    assert!(!scene.admits("/", "203.0.113.1"));
    assert_eq!(
        report(&plan, "/").serving,
        Some(1),
        "the declaration has not changed"
    );
}

#[test]
fn an_edge_without_replace_closes_what_it_cannot_narrow() {
    let mut scene = Scene::new();
    scene.given = Given::new(Atomicity::Patch);
    scene.settle(&two(Say::A, Say::A, true));
    let mut declared = two(Say::A, Say::A, false);
    route(&mut declared, "/").outcome = Outcome::Invalid {
        missing: BTreeSet::new(),
    };
    scene.settle(&declared);
    assert!(!scene.is_open("/") && scene.is_open("/admin"));
    let records = scene
        .machine
        .state()
        .edges
        .values()
        .flat_map(|edge| edge.routes.values());
    let phases: BTreeSet<_> = records
        .filter_map(|r| r.record.as_ref().map(|r| r.phase))
        .collect();
    assert_eq!(phases, BTreeSet::from([Phase::Open, Phase::Closed]));
}

#[test]
fn plans_have_a_stable_text() {
    let scene = Scene::new();
    let declared = two(Say::A, Say::Closed, false);
    assert_eq!(
        scene.plan(&declared).to_string(),
        scene.plan(&declared).to_string()
    );
    assert!(
        scene
            .plan(&declared)
            .to_string()
            .starts_with("0: put domain a.example.com of ns, declared\n")
    );
}
