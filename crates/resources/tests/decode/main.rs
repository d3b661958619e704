//! Decoding: what is accepted, what is refused and in which words, and that nothing slips through.

#![expect(
    clippy::panic,
    reason = "a helper that finds something wrong fails its test"
)]

mod builtins;
mod edges;
mod every_field;
mod kinds;
mod module_sets;
mod policies;
mod properties;
mod salvage;
mod sample;
mod snapshots;

use std::sync::Arc;

use resources::{
    decode::{Source, decode},
    kinds::Kind,
    position::{Origin, Positions},
    snapshot::{AnyObject, Object, Undecodable},
};
use serde::Serialize;
use serde_json::{Value, json};

/// A document of a kind, named `shop/thing` unless it says otherwise.
fn document(kind: Kind, content: &Value) -> Value {
    let mut document = json!({
        "apiVersion": kind.api_version(),
        "kind": kind.name(),
        "metadata": {"name": "thing", "namespace": "shop"},
    });
    for (name, value) in content.as_object().expect("content is an object") {
        document[name] = value.clone();
    }
    document
}

fn source() -> Source {
    Source {
        default_namespace: "default".to_owned(),
        origin: Origin::File {
            file: Arc::from("test.yaml"),
            positions: Positions::default(),
        },
        age: 1,
        problems: Vec::new(),
    }
}

/// The value as JSON, or why there is none.
fn outcome(object: &AnyObject) -> Result<Value, Box<Undecodable>> {
    fn of<T: Serialize>(object: &Object<T>) -> Result<Value, Box<Undecodable>> {
        match &object.value {
            Ok(value) => {
                Ok(serde_json::to_value(value).expect("a typed value can be written down"))
            }
            Err(undecodable) => Err(Box::new(undecodable.clone())),
        }
    }
    match object {
        AnyObject::NgrokModuleSet(object) => of(object),
        AnyObject::HttpsEdge(object) => of(object),
        AnyObject::TcpEdge(object) => of(object),
        AnyObject::TlsEdge(object) => of(object),
        AnyObject::Tunnel(object) => of(object),
        AnyObject::Domain(object) => of(object),
        AnyObject::IpPolicy(object) => of(object),
        AnyObject::NgrokTrafficPolicy(object) => of(object),
        AnyObject::Ingress(object) => of(object),
        AnyObject::IngressClass(object) => of(object),
        AnyObject::Service(object) => of(object),
        AnyObject::EndpointSlice(object) => of(object),
        AnyObject::Secret(object) => of(object),
        AnyObject::ConfigMap(object) => of(object),
        AnyObject::Namespace(object) => of(object),
    }
}

/// Decodes a document that has a name.
fn decoded(kind: Kind, document: Value) -> Result<Value, Box<Undecodable>> {
    outcome(&decode(kind, document, source()).expect("the document has a name"))
}

/// That a content is refused, with exactly these problems: `PATH: CODE: MESSAGE (REMEDY)`.
#[track_caller]
fn refused(kind: Kind, content: &Value, expected: &[&str]) -> Box<Undecodable> {
    let undecodable = decoded(kind, document(kind, content)).expect_err("the document is refused");
    let found: Vec<String> = undecodable
        .problems
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(found, expected, "{content:#}");
    undecodable
}

/// That a content is accepted and means this.
#[track_caller]
fn accepted(kind: Kind, content: &Value, expected: &Value) {
    match decoded(kind, document(kind, content)) {
        Ok(value) => assert_eq!(&value, expected),
        Err(undecodable) => {
            let found: Vec<String> = undecodable
                .problems
                .iter()
                .map(ToString::to_string)
                .collect();
            panic!("{content:#} is refused: {found:#?}");
        }
    }
}
