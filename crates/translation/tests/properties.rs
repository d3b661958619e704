//! Properties that hold for every set of objects: order means nothing, the same input gives the
//! same declaration, and one bad object changes only its users (R15).

use std::collections::BTreeSet;

use model::{declaration::Declaration, host::HostPattern, module::ModuleKind};
use proptest::prelude::*;
use resources::{
    decode::{Source, decode},
    kinds::{Class, classify},
    position::Origin,
    snapshot::Snapshot,
};
use serde_json::{Value, json};
use translation::{Input, digest::DigestKey, options::Options, records::Records, translate};

/// The objects of one tenant, who shares nothing with the others.
fn tenant(number: usize) -> Vec<Value> {
    let namespace = format!("team-{number}");
    let meta = |name: &str| json!({"name": name, "namespace": namespace});
    let ours = "ingress.k8s.ngrok.com/v1alpha1";
    vec![
        json!({"apiVersion": ours, "kind": "IPPolicy", "metadata": meta("office"),
            "spec": {"rules": [{"cidr": format!("10.{number}.0.0/16"), "action": "allow"}]}}),
        json!({"apiVersion": ours, "kind": "NgrokModuleSet", "metadata": meta("modules"), "modules": {
            "ipRestriction": {"policies": ["office"]},
            "webhookVerification": {"provider": "github", "secret": {"name": "hook", "key": "key"}}}}),
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": meta("hook"), "stringData": {"key": format!("s{number}")}}),
        json!({"apiVersion": "v1", "kind": "Service", "metadata": meta("web"), "spec": {"ports": [{"name": "http", "port": 80}]}}),
        json!({"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata":
            {"name": "web", "namespace": namespace, "annotations": {"k8s.ngrok.com/modules": "modules"}},
            "spec": {"ingressClassName": "ngrok", "rules": [{"host": format!("team-{number}.example.com"), "http": {"paths": [
                {"path": "/", "pathType": "Prefix", "backend": {"service": {"name": "web", "port": {"number": 80}}}}]}}]}}),
    ]
}

/// Something that makes an object useless.
fn spoil(document: &mut Value, how: usize) {
    let body = match document["kind"].as_str() {
        Some("NgrokModuleSet") => "modules",
        Some("Secret") => "stringData",
        _ => "spec",
    };
    match how {
        0 => document[body] = json!(7),
        1 => document["nonsense"] = json!({"x": 1}),
        2 => document[body] = json!({}),
        _ => document["metadata"]["name"] = json!("renamed"),
    }
}

fn snapshot(documents: &[(u64, Value)]) -> Snapshot {
    let mut snapshot = Snapshot::default();
    for (age, document) in documents {
        let text = |name: &str| document[name].as_str().unwrap_or_default();
        let Ok(Class::Read(kind)) = classify(text("apiVersion"), text("kind")) else {
            unreachable!("a kind that is read")
        };
        let source = Source {
            default_namespace: String::from("default"),
            origin: Origin::Cluster,
            age: *age,
            problems: Vec::new(),
        };
        snapshot.insert(decode(kind, document.clone(), source).expect("it has a name"));
    }
    snapshot
}

fn translated(documents: &[(u64, Value)]) -> Declaration {
    let options = Options {
        enforceable: Some(BTreeSet::from(ModuleKind::ALL)),
        ..Options::default()
    };
    let key = DigestKey::new(vec![7; 32]);
    translate(&Input {
        snapshot: &snapshot(documents),
        records: &Records::default(),
        options: &options,
        key: &key,
    })
}

fn documents(tenants: usize) -> Vec<(u64, Value)> {
    (0..tenants)
        .flat_map(tenant)
        .zip(0..)
        .map(|(document, age)| (age, document))
        .collect()
}

fn host(number: usize) -> HostPattern {
    HostPattern::parse(&format!("team-{number}.example.com")).expect("a host")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn order_means_nothing(shuffled in Just(documents(4)).prop_shuffle()) {
        prop_assert_eq!(translated(&documents(4)), translated(&shuffled));
    }

    #[test]
    fn a_bad_object_changes_only_its_users(victim in 0_usize..4, object in 0_usize..5, how in 0_usize..4) {
        let sound = documents(4);
        let mut spoilt = sound.clone();
        spoil(&mut spoilt[victim * 5 + object].1, how);
        let (before, after) = (translated(&sound), translated(&spoilt));
        for other in (0..4).filter(|other| *other != victim) {
            prop_assert_eq!(&before.hosts[&host(other)], &after.hosts[&host(other)]);
        }
    }

    #[test]
    fn what_is_not_said_otherwise_has_the_same_digest(victim in 0_usize..3, part in 0_usize..5) {
        let sound = documents(3);
        let mut changed = sound.clone();
        let document = &mut changed[victim * 5 + part].1;
        // What a declaration says, object by object; a Service's labels are none of it.
        let says = match part {
            0 => { document["spec"]["rules"][0]["cidr"] = json!("192.0.2.0/24"); true }
            1 => { document["modules"]["webhookVerification"]["provider"] = json!("gitlab"); true }
            2 => { document["stringData"]["key"] = json!("rotated"); true }
            3 => { document["metadata"]["labels"] = json!({"x": "y"}); false }
            _ => { document["metadata"]["labels"] = json!({"x": "y"}); false }
        };
        let digest = |declaration: &Declaration, of: usize| {
            declaration.hosts[&host(of)].routes.values().map(|route| route.digest).collect::<Vec<_>>()
        };
        let (before, after) = (translated(&sound), translated(&changed));
        for tenant in 0..3 {
            let same = digest(&before, tenant) == digest(&after, tenant);
            prop_assert_eq!(same, !(says && tenant == victim));
        }
    }
}
