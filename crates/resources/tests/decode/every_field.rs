//! Completely, for every kind and every level: a misspelt, misplaced, empty or mistyped field is
//! never dropped. This is what keeps a route from opening without its protection.

use resources::{
    kinds::Kind,
    problem::ProblemCode,
    shape::{Form, Node, of_kind},
};
use serde_json::{Map, Value};

use crate::{
    decoded,
    sample::{At, FLAVOURS, every_object, sample},
};

/// Decodes changed documents, and demands a problem of this code at this place.
#[track_caller]
fn found(kind: Kind, document: Value, code: ProblemCode, path: &str) -> String {
    let shown = document.to_string();
    let Err(undecodable) = decoded(kind, document) else {
        panic!("{path}: accepted: {shown}")
    };
    match undecodable
        .problems
        .iter()
        .find(|problem| problem.code == code && problem.path.as_str() == path)
    {
        Some(problem) => problem.remedy.clone(),
        None => panic!("{path}: no {code}, but {:#?}", undecodable.problems),
    }
}

/// Every object in every sample document, once for each document.
fn everywhere(mut look: impl FnMut(Kind, &Value, &At, &Node, &Map<String, Value>)) {
    for kind in Kind::ALL {
        // Only the kinds with alternatives have more than one sample.
        let mut seen: Vec<Value> = Vec::new();
        for document in (0..FLAVOURS).map(|flavour| sample(kind, flavour)) {
            if !seen.contains(&document) {
                every_object(
                    &document,
                    of_kind(kind),
                    &At::default(),
                    &mut |at, node, map| {
                        look(kind, &document, at, node, map);
                    },
                );
                seen.push(document);
            }
        }
    }
}

#[test]
fn a_document_with_every_field_is_accepted() {
    for kind in Kind::ALL {
        for flavour in 0..FLAVOURS {
            let document = sample(kind, flavour);
            if let Err(undecodable) = decoded(kind, document) {
                panic!("{kind}: {:#?}", undecodable.problems);
            }
        }
    }
}

#[test]
fn an_unknown_field_is_found_at_every_level() {
    let mut levels = 0;
    everywhere(|kind, document, at, _, _| {
        let mut changed = document.clone();
        let object = changed
            .pointer_mut(&at.pointer)
            .expect("the object is there");
        object["qqqq"] = 1.into();
        found(
            kind,
            changed,
            ProblemCode::UnknownField,
            &at.field("qqqq").path,
        );
        levels += 1;
    });
    assert!(levels > 300, "only {levels} levels were tried");
}

#[test]
fn a_misspelt_field_is_found_and_named_at_every_level() {
    let mut fields = 0;
    everywhere(|kind, document, at, _, map| {
        for name in map.keys() {
            let top = at.path.is_empty()
                && matches!(name.as_str(), "apiVersion" | "kind" | "metadata" | "status");
            let is_name = at.path == "metadata" && name == "name";
            if top || is_name {
                continue;
            }
            let misspelt = format!("{}_{}", &name[..1].to_uppercase(), &name[1..]);
            let mut changed = document.clone();
            let object = changed
                .pointer_mut(&at.pointer)
                .and_then(Value::as_object_mut)
                .expect("the object is there");
            let value = object.remove(name).expect("the field is there");
            object.insert(misspelt.clone(), value);
            let remedy = found(
                kind,
                changed,
                ProblemCode::UnknownField,
                &at.field(&misspelt).path,
            );
            assert_eq!(remedy, format!("did you mean {name}?"));
            fields += 1;
        }
    });
    assert!(fields > 1000, "only {fields} fields were tried");
}

#[test]
fn a_field_without_value_is_found_in_our_kinds() {
    everywhere(|kind, document, at, node, map| {
        if !kind.is_custom() || at.path.starts_with("metadata") {
            return;
        }
        for name in map.keys() {
            let field = &node.fields().expect("it has fields")[name];
            if field.node.form == Form::Anything || name == "metadata" && at.path.is_empty() {
                continue;
            }
            let mut changed = document.clone();
            changed
                .pointer_mut(&at.pointer)
                .expect("the object is there")[name] = Value::Null;
            found(kind, changed, ProblemCode::NoValue, &at.field(name).path);
        }
    });
}

#[test]
fn a_field_of_another_type_is_found() {
    everywhere(|kind, document, at, node, map| {
        for name in map.keys() {
            let field = &node.fields().expect("it has fields")[name];
            let other: Value = match &field.node.form {
                Form::Anything => continue,
                Form::List(_) => true.into(),
                _ => Value::Array(Vec::new()),
            };
            let here = at.field(name);
            if ["metadata", "metadata.name", "metadata.namespace"].contains(&here.path.as_str()) {
                continue;
            }
            let mut changed = document.clone();
            changed
                .pointer_mut(&at.pointer)
                .expect("the object is there")[name] = other;
            found(kind, changed, ProblemCode::WrongType, &here.path);
        }
    });
}

#[test]
fn a_missing_field_that_is_needed_is_found() {
    everywhere(|kind, document, at, node, map| {
        for name in map.keys() {
            if !node.fields().expect("it has fields")[name].required {
                continue;
            }
            let mut changed = document.clone();
            let object = changed
                .pointer_mut(&at.pointer)
                .and_then(Value::as_object_mut)
                .expect("the object is there");
            object.remove(name);
            found(
                kind,
                changed,
                ProblemCode::MissingField,
                &at.field(name).path,
            );
        }
    });
}
