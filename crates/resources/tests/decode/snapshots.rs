//! Objects as a whole: names, ages, duplicates, positions, and what is missing.

use std::sync::Arc;

use resources::{
    decode::{Source, decode},
    kinds::Kind,
    position::{LineColumn, Origin, Place, Positions},
    problem::{FieldPath, Problem, ProblemCode},
    snapshot::{AnyObject, ObjectKey, Presence, Snapshot, UnreadableFile},
};
use serde_json::{Value, json};

use crate::{document, source};

fn at(line: u32, column: u32) -> LineColumn {
    LineColumn { line, column }
}

fn file_source(line: u32) -> Source {
    let path = FieldPath::from;
    let positions: Positions = [
        (FieldPath::root(), at(line, 1)),
        (path("spec"), at(line + 4, 1)),
        (path("spec.rules"), at(line + 5, 3)),
        (path("spec.rules[0]"), at(line + 5, 5)),
        (path("spec.rules[0].host"), at(line + 5, 5)),
    ]
    .into_iter()
    .collect();
    Source {
        origin: Origin::File {
            file: Arc::from("a.yaml"),
            positions,
        },
        age: u64::from(line),
        ..source()
    }
}

fn ingress(content: &Value, source: Source) -> AnyObject {
    decode(Kind::Ingress, document(Kind::Ingress, content), source).expect("it has a name")
}

#[test]
fn metadata_is_read() {
    let content = json!({
        "metadata": {
            "name": "thing",
            "labels": {"a": "b"},
            "annotations": {"k8s.ngrok.com/modules": "auth"},
            "deletionTimestamp": "2026-01-01T00:00:00Z",
        },
        "spec": {},
    });
    let AnyObject::Ingress(object) = ingress(&content, source()) else {
        panic!("it is an Ingress")
    };
    assert_eq!(object.key, ObjectKey::new("default", "thing"));
    assert_eq!(object.uid, "Ingress/default/thing");
    assert_eq!(object.labels["a"], "b");
    assert_eq!(object.annotations["k8s.ngrok.com/modules"], "auth");
    assert!(object.terminating);
    let class = document(Kind::IngressClass, &json!({"spec": {}}));
    let class = decode(Kind::IngressClass, class, source()).expect("it has a name");
    assert_eq!(
        *class.key(),
        ObjectKey::new("", "thing"),
        "a cluster-scoped kind has no namespace"
    );
}

#[test]
fn a_document_without_a_usable_name_is_a_finding() {
    for (metadata, expected) in [
        (
            json!({}),
            "metadata.name: missing-field: the object has no name (write metadata.name)",
        ),
        (
            json!({"generateName": "thing-"}),
            "metadata.name: missing-field: the object has no name (write metadata.name)",
        ),
        (
            json!({"name": 1}),
            "metadata.name: missing-field: the object has no name (write metadata.name)",
        ),
        (
            json!({"name": "a/b"}),
            "metadata.name: bad-value: \"a/b\" cannot be the name of an object (write lower-case letters, digits and hyphens)",
        ),
        (
            json!({"name": "a", "namespace": "A"}),
            "metadata.namespace: bad-value: \"A\" cannot be the namespace of an object (write lower-case letters, digits and hyphens)",
        ),
    ] {
        let content = json!({"metadata": metadata, "spec": {}});
        let finding = decode(
            Kind::Ingress,
            document(Kind::Ingress, &content),
            file_source(3),
        )
        .expect_err("it has none");
        assert_eq!(finding.problem.to_string(), expected);
        assert_eq!(finding.kind, "Ingress");
        assert_eq!(
            finding.place,
            Some(Place {
                file: Arc::from("a.yaml"),
                at: at(3, 1)
            })
        );
    }
}

#[test]
fn problems_of_the_source_make_an_object_undecodable() {
    let problem = Problem::new(
        FieldPath::from("spec.rules"),
        ProblemCode::Duplicate,
        "rules stands here twice",
        "",
    );
    let source = Source {
        problems: vec![problem.clone()],
        ..source()
    };
    let content = json!({"spec": {"rules": [{"host": "a.example.com"}]}});
    let AnyObject::Ingress(object) = ingress(&content, source) else {
        panic!("it is an Ingress")
    };
    let undecodable = object.value.as_ref().expect_err("it does not decode");
    assert_eq!(undecodable.problems, [problem]);
    assert_eq!(undecodable.salvaged.hosts[0].host, "a.example.com");
}

#[test]
fn a_field_stands_where_it_is_or_ought_to_be() {
    let origin = file_source(10).origin;
    let place = |path: &str| {
        origin
            .place(&FieldPath::from(path))
            .map(|place| (place.at.line, place.at.column))
    };
    assert_eq!(place("spec.rules[0].host"), Some((15, 5)));
    assert_eq!(place("spec.rules[0].http.paths[3].path"), Some((15, 5)));
    assert_eq!(place("spec.rules[1]"), Some((15, 3)));
    assert_eq!(place("spec.tls"), Some((14, 1)));
    assert_eq!(
        place("metadata.annotations[k8s.ngrok.com/modules]"),
        Some((10, 1))
    );
    assert_eq!(place(""), Some((10, 1)));
    assert_eq!(Origin::Cluster.place(&FieldPath::root()), None);
}

#[test]
fn of_an_object_written_twice_neither_is_used() {
    let mut snapshot = Snapshot::default();
    let content =
        |host: &str| json!({"spec": {"ingressClassName": "ngrok", "rules": [{"host": host}]}});
    snapshot.insert(ingress(&content("a.example.com"), file_source(1)));
    snapshot.insert(ingress(&content("b.example.com"), file_source(20)));
    snapshot.insert(ingress(&json!({"spec": {"rules": 1}}), file_source(40)));
    let key = ObjectKey::new("shop", "thing");
    let object = &snapshot.ingresses[&key];
    let undecodable = object.value.as_ref().expect_err("neither is used");
    assert_eq!(
        undecodable.problems[0].to_string(),
        ": duplicate: Ingress shop/thing is written more than once (keep one of them; until then none is used)"
    );
    let hosts: Vec<&str> = undecodable
        .salvaged
        .hosts
        .iter()
        .map(|host| host.host.as_str())
        .collect();
    assert_eq!(hosts, ["a.example.com", "b.example.com"]);
    assert!(undecodable.salvaged.hosts_unreadable);
    assert_eq!(snapshot.duplicates.len(), 1);
    let lines: Vec<u32> = snapshot
        .duplicates
        .values()
        .next()
        .expect("one")
        .iter()
        .map(|place| place.at.line)
        .collect();
    assert_eq!(lines, [1, 20, 40]);
    assert_eq!(object.age, 1);
}

#[test]
fn what_was_not_read_is_not_missing() {
    let key = ObjectKey::new("shop", "thing");
    let find = |snapshot: &Snapshot| match snapshot.find(Kind::Ingress, &snapshot.ingresses, &key) {
        Presence::There(_) => "there",
        Presence::Pending => "pending",
        Presence::Missing => "missing",
    };
    let mut snapshot = Snapshot::default();
    assert_eq!(find(&snapshot), "missing");
    snapshot.pending_kinds.insert(Kind::Ingress);
    assert_eq!(find(&snapshot), "pending");
    snapshot.pending_kinds = [Kind::Secret].into();
    assert_eq!(find(&snapshot), "missing");
    let broken = |known| UnreadableFile {
        place: Place {
            file: Arc::from("b.yaml"),
            at: at(1, 1),
        },
        problem: Problem::new(
            FieldPath::root(),
            ProblemCode::Unreadable,
            "the file is empty",
            "",
        ),
        known,
        hosts: [].into(),
        declares: false,
    };
    snapshot.unreadable_files = vec![broken(None)];
    assert_eq!(
        find(&snapshot),
        "pending",
        "a file that was never read may hold anything"
    );
    snapshot.unreadable_files = vec![broken(Some([].into()))];
    assert_eq!(find(&snapshot), "missing");
    snapshot.unreadable_files = vec![broken(Some([(Kind::Ingress, key.clone())].into()))];
    assert_eq!(find(&snapshot), "pending");
    snapshot.insert(ingress(&json!({"spec": {}}), source()));
    assert_eq!(find(&snapshot), "there");
}

#[test]
fn what_an_api_server_has_let_through_may_be_newer_than_this_program() {
    let served = || Source {
        origin: Origin::Cluster,
        ..source()
    };
    let new = json!({"metadata": {"name": "thing", "newField": {"a": 1}}, "spec": {"type": "ClusterIP", "newField": 1}});
    let AnyObject::Service(service) =
        decode(Kind::Service, document(Kind::Service, &new), served()).expect("named")
    else {
        panic!("it is a Service")
    };
    assert!(service.value.is_ok());
    // Our own kinds keep unknown fields so that they are refused here.
    let ours =
        json!({"metadata": {"name": "thing", "newField": 1}, "modules": {"newModule": {"a": 1}}});
    let document = document(Kind::NgrokModuleSet, &ours);
    let AnyObject::NgrokModuleSet(set) =
        decode(Kind::NgrokModuleSet, document, served()).expect("named")
    else {
        panic!("it is a module set")
    };
    let problems = &set.value.as_ref().expect_err("it does not decode").problems;
    let paths: Vec<&str> = problems
        .iter()
        .map(|problem| problem.path.as_str())
        .collect();
    assert_eq!(paths, ["modules.newModule"]);
}

#[test]
fn a_name_that_is_too_long_is_a_problem_of_its_own() {
    let content = json!({"metadata": {"name": "a".repeat(100_000)}, "spec": {}});
    let document = document(Kind::Ingress, &content);
    let finding = decode(Kind::Ingress, document, source()).expect_err("no name");
    let cut = "a".repeat(80);
    assert_eq!(
        finding.problem.to_string(),
        format!(
            "metadata.name: too-large: the name {cut}… has 100000 characters, more than 253 \
             (write a shorter one)"
        )
    );
}
