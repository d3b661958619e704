//! Random documents: decoding never panics, and what it accepts means the same when written down
//! and read again.

use std::collections::BTreeSet;

use proptest::{collection::vec, prelude::*, sample::select};
use resources::{
    decode::decode,
    kinds::{Kind, classify},
    shape::{Form, Node, of_kind},
};
use serde_json::{Map, Value};

use crate::{document, outcome, sample, source};

/// Every name of a field anywhere, so that random documents get below the surface.
fn names() -> Vec<String> {
    fn collect(node: &Node, names: &mut BTreeSet<String>) {
        match &node.form {
            Form::Object(fields) | Form::Choice(fields) => {
                for (name, field) in fields {
                    names.insert(name.clone());
                    collect(&field.node, names);
                }
            }
            Form::Map(inner) | Form::List(inner) => collect(inner, names),
            Form::Text
            | Form::Word { .. }
            | Form::Integer { .. }
            | Form::IntOrText
            | Form::Boolean
            | Form::RawObject
            | Form::Anything
            | Form::Nothing => {}
        }
    }
    let mut names = BTreeSet::new();
    for kind in Kind::ALL {
        collect(of_kind(kind), &mut names);
    }
    names.extend([
        "".to_owned(),
        "[".to_owned(),
        "a.b[c]".to_owned(),
        "ä_-".to_owned(),
    ]);
    names.into_iter().collect()
}

fn texts() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        select(vec![
            "",
            " ",
            "1h",
            "-1s",
            "9999999999h",
            "0.5",
            "1e-300",
            "::/0",
            "::ffff:1.2.3.4/97",
            "a@b.c",
            "x:1",
            "1.2"
        ])
        .prop_map(str::to_owned),
        "[0-9.eEµunmsh+-]{0,12}",
    ]
}

fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        texts().prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 60, 6, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            vec((select(names()), inner), 0..6)
                .prop_map(|fields| fields.into_iter().collect::<Map<_, _>>().into()),
        ]
    })
}

/// A document with every field, and a few values put elsewhere.
fn changed_samples() -> impl Strategy<Value = (Kind, Value)> {
    let change = (
        any::<prop::sample::Index>(),
        values(),
        select(names()),
        any::<bool>(),
    );
    (
        select(Kind::ALL.to_vec()),
        0..sample::FLAVOURS,
        vec(change, 0..4),
    )
        .prop_map(|(kind, flavour, changes)| {
            let mut document = sample::sample(kind, flavour);
            for (index, value, name, add) in changes {
                let mut places = Vec::new();
                pointers(&document, String::new(), &mut places);
                let place = index.get(&places).clone();
                let target = document.pointer_mut(&place).expect("the place is there");
                match target {
                    Value::Object(fields) if add => {
                        fields.insert(name, value);
                    }
                    other => *other = value,
                }
            }
            (kind, document)
        })
}

fn pointers(value: &Value, at: String, found: &mut Vec<String>) {
    let children: Vec<(String, &Value)> = match value {
        Value::Object(fields) => fields
            .iter()
            .map(|(name, value)| (name.replace('~', "~0").replace('/', "~1"), value))
            .collect(),
        Value::Array(items) => items
            .iter()
            .enumerate()
            .map(|(index, value)| (index.to_string(), value))
            .collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
    };
    for (name, value) in children {
        pointers(value, format!("{at}/{name}"), found);
    }
    found.push(at);
}

/// What every decoding must fulfil.
fn judge(kind: Kind, document: Value) -> Result<(), TestCaseError> {
    let Ok(object) = decode(kind, document, source()) else {
        return Ok(());
    };
    prop_assert_eq!(object.kind(), kind);
    match outcome(&object) {
        Ok(value) => {
            let again =
                decode(kind, crate::document(kind, &value), source()).expect("it has a name");
            prop_assert_eq!(outcome(&again), Ok(value));
        }
        Err(undecodable) => {
            prop_assert!(!undecodable.problems.is_empty());
            prop_assert!(undecodable.problems.is_sorted() || undecodable.problems.len() > 100);
            // The walk says it all: serde never has the last word.
            let words: Vec<&str> = undecodable
                .problems
                .iter()
                .map(|p| p.message.as_str())
                .collect();
            prop_assert!(
                !words.iter().any(|words| words.contains("does not decode")),
                "{:?}",
                words
            );
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_value_is_judged(kind in select(Kind::ALL.to_vec()), value in values()) {
        judge(kind, value)?;
    }

    #[test]
    fn any_content_is_judged(kind in select(Kind::ALL.to_vec()), spec in values(), modules in values()) {
        let content = serde_json::json!({"spec": spec, "modules": modules});
        judge(kind, document(kind, &content))?;
    }

    #[test]
    fn any_change_is_judged((kind, document) in changed_samples()) {
        judge(kind, document)?;
    }

    #[test]
    fn any_kind_is_classified(api_version in ".{0,30}", kind in ".{0,20}") {
        let _ = classify(&api_version, &kind);
    }
}
