//! Cases about what is kept over time: graces that are interrupted, tombstones beside what is being
//! deleted, hosts that are handed over, and policies that turn invalid under a held route.

use std::collections::{BTreeMap, BTreeSet};

use model::{
    declaration::{Declaration, Outcome, PolicyName},
    module::{IpAction, IpRules},
    object::{ObjectName, ObjectRef},
    time::Span,
};

use super::{
    fixture::{Say, declaration, host, prefix},
    scene::{Scene, lost, report, route, two},
};
use crate::Note;

/// The shared policy says this now, by itself or, for the route's second policy, beside it.
fn shared_denies(declared: &mut Declaration) {
    let net = "10.1.0.0/16".parse().expect("a network");
    let denies = IpRules([(net, IpAction::Deny)].into());
    let name = ObjectName::new("ns", "shared");
    declared.policies.get_mut(&name).expect("declared").rules = denies;
}

#[test]
fn what_is_lost_keeps_the_spent_part_of_its_grace_over_what_is_pending() {
    let mut scene = Scene::new();
    let whole = two(Say::A, Say::Plain, false);
    let (mut gone, mut broken) = (whole.clone(), whole.clone());
    lost(&mut gone, "/");
    route(&mut broken, "/").outcome = Outcome::Pending;
    scene.settle(&whole);
    // A file that breaks every half minute: 40 s of loss, then 19 s, and 1 s is left.
    for spent in [40, 19] {
        scene.settle(&gone);
        scene.wait(Span::from_secs(spent));
        scene.settle(&broken);
        scene.wait(Span::from_secs(3600));
        assert!(scene.is_open("/"), "no grace runs while it is pending");
        assert_eq!(scene.settle(&broken).wake_at, None);
    }
    let plan = scene.settle(&gone);
    let end = scene.now.after(Span::from_secs(1));
    assert_eq!(plan.wake_at, Some(end));
    let missing = BTreeSet::from([ObjectRef::new("IPPolicy", "ns", "shared")]);
    let note = Note::Lost {
        missing,
        closes_at: Some(end),
    };
    assert!(report(&plan, "/").notes.contains(&note), "{plan:?}");
    scene.wait(Span::from_secs(1));
    assert!(!scene.is_open("/"), "the edge closes it by itself");
    // Served as declared again, it begins anew.
    scene.settle(&whole);
    let plan = scene.settle(&gone);
    assert_eq!(plan.wake_at, Some(scene.now.after(Span::from_secs(60))));
    // Spent whole before a hold, it is over at once.
    scene.settle(&broken);
    scene.given.options.lost_grace = Span::ZERO;
    scene.settle(&gone);
    assert!(!scene.is_open("/"));
}

#[test]
fn a_policy_that_would_let_nobody_in_is_no_valid_version_for_a_held_route() {
    let mut scene = Scene::new();
    scene.settle(&two(Say::A, Say::Plain, true));
    let mut declared = two(Say::Closed, Say::Plain, false);
    scene.settle(&declared);
    assert!(scene.admits("/", "10.0.0.1"));
    assert!(!scene.admits("/", "192.0.2.1"), "narrowed by a valid one");
    shared_denies(&mut declared);
    let plan = scene.settle(&declared);
    assert!(scene.admits("/", "10.0.0.1"), "an error narrows nothing");
    assert!(scene.admits("/", "10.1.0.1"));
    assert!(!scene.admits("/", "192.0.2.1"), "the valid one still does");
    assert!(plan.is_empty() && report(&plan, "/").notes.contains(&Note::AlsoRefuses));
}

#[test]
fn a_policy_of_denials_is_valid_beside_one_that_allows() {
    let mut scene = Scene::new();
    let pooled = |mut declared: Declaration| {
        if let Outcome::Complete(set) = &mut route(&mut declared, "/").outcome {
            let module = set.modules.ip_restriction.as_mut().expect("set A");
            let other = PolicyName::Declared(ObjectName::new("ns", "other"));
            module.policies.push(other);
        }
        declared
    };
    scene.settle(&pooled(two(Say::A, Say::Plain, false)));
    assert!(scene.admits("/", "10.1.0.1") && scene.admits("/", "198.51.100.1"));
    let mut declared = two(Say::Closed, Say::Plain, false);
    shared_denies(&mut declared);
    scene.settle(&declared);
    assert!(!scene.admits("/", "10.0.0.1"), "nobody allows it any more");
    assert!(scene.admits("/", "198.51.100.1"));
}

#[test]
fn a_tombstone_stays_while_its_namespace_or_a_neighbour_is_being_deleted() {
    for going in [
        ObjectRef::new("Namespace", "", "ns"),
        ObjectRef::new("Namespace", "", "beside"),
        ObjectRef::new("Ingress", "beside", "two"),
    ] {
        let mut scene = Scene::new();
        let mut declared = two(Say::Plain, Say::A, false);
        route(&mut declared, "/").owner = ObjectRef::new("Ingress", "beside", "two");
        scene.settle(&declared);
        let mut removed = two(Say::Plain, Say::Absent, false);
        removed.terminating = BTreeSet::from([going.clone()]);
        route(&mut removed, "/").owner = ObjectRef::new("Ingress", "beside", "two");
        scene.settle(&removed);
        scene.wait(Span::from_secs(3600));
        let plan = scene.settle(&removed);
        let note = Note::WaitsForTermination { of: going };
        assert!(report(&plan, "/admin").notes.contains(&note), "{plan:?}");
        assert!(!scene.is_open("/admin") && scene.is_open("/"));
        assert_eq!(plan.wake_at, None, "no age ends it");
        // What is going elsewhere holds nothing here.
        removed.terminating = BTreeSet::from([ObjectRef::new("Namespace", "", "elsewhere")]);
        scene.settle(&removed);
        assert!(scene.is_open("/admin"), "what is left answers");
    }
}

#[test]
fn a_tombstone_stays_while_the_wildcard_above_it_is_being_deleted() {
    let (wildcard, name) = (host("*.example.com"), host("a.example.com"));
    let (slash, none) = (prefix("/"), BTreeMap::new());
    let mut scene = Scene::new();
    let above = (&wildcard, &slash, Say::A);
    let both = declaration(&[above, (&name, &slash, Say::A)], &none, false);
    let of_wildcard = ObjectRef::new("Ingress", "ns", "wild");
    let mut first = both.clone();
    let owner = |declared: &mut Declaration| {
        let on_wildcard = declared.hosts.get_mut(&wildcard).expect("declared");
        on_wildcard.routes.get_mut(&slash).expect("declared").owner = of_wildcard.clone();
    };
    owner(&mut first);
    scene.settle(&first);
    // Everything is deleted; the wildcard's Ingress is not gone yet.
    let mut gone = declaration(&[], &none, false);
    gone.terminating = BTreeSet::from([of_wildcard.clone()]);
    scene.settle(&gone);
    scene.wait(Span::from_secs(3600));
    let plan = scene.settle(&gone);
    assert!(
        plan.report
            .routes
            .contains_key(&(name.clone(), slash.clone()))
    );
    gone.terminating.clear();
    assert!(scene.settle(&gone).report.routes.is_empty());
}

#[test]
fn a_host_passes_to_the_heir_when_its_last_declaration_ends() {
    let mut scene = Scene::new();
    let mut declared = two(Say::Plain, Say::Absent, false);
    scene.settle(&declared);
    let name = host("a.example.com");
    let record = |scene: &Scene| {
        let mut domains = scene.machine.state().domains.values();
        let domain = domains.find(|domain| domain.host == name);
        domain.map(|domain| (domain.namespace.clone(), domain.heir.clone()))
    };
    let of = |text: &str| Some(String::from(text));
    declared.hosts.get_mut(&name).expect("declared").heir = of("next");
    scene.settle(&declared);
    assert_eq!(record(&scene), Some((of("ns"), of("next"))), "not before");
    let gone = Declaration::default();
    scene.settle(&gone);
    assert_eq!(record(&scene), Some((of("next"), None)));
    // The heir has as long as an owner has.
    scene.wait(Span::from_secs(3600));
    scene.settle(&gone);
    assert_eq!(record(&scene), None);
    // A word that was taken back is none.
    declared.hosts.get_mut(&name).expect("declared").heir = of("next");
    scene.settle(&declared);
    declared.hosts.get_mut(&name).expect("declared").heir = None;
    scene.settle(&declared);
    scene.settle(&gone);
    assert_eq!(record(&scene), Some((of("ns"), None)));
}
