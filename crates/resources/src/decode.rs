//! From a parsed document to a typed object, or to everything that is wrong with it.

use std::{collections::BTreeMap, sync::Arc};

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{
    kinds::Kind,
    position::Origin,
    problem::{FieldPath, Problem, ProblemCode},
    snapshot::{AnyObject, Finding, Object, ObjectKey, Salvaged, Undecodable},
};

/// Where a document comes from, and what its source knows of it.
#[derive(Clone, Debug)]
pub struct Source {
    /// The namespace of documents that name none.
    pub default_namespace: String,
    /// Where it stands.
    pub origin: Origin,
    /// Which of two objects is older: the smaller number.
    pub age: u64,
    /// What the source found wrong with the text already (a duplicate key): the object is
    /// undecodable, whatever else it says.
    pub problems: Vec<Problem>,
}

/// Decodes one object of a kind that [`crate::kinds::classify`] found. An object with mistakes
/// is an object too: its value is [`Undecodable`] with all of them.
///
/// # Errors
/// A document without a usable name: nobody can refer to it.
pub fn decode(kind: Kind, document: Value, source: Source) -> Result<AnyObject, Box<Finding>> {
    Ok(match kind {
        Kind::NgrokModuleSet => AnyObject::NgrokModuleSet(typed(kind, document, source)?),
        Kind::HttpsEdge => AnyObject::HttpsEdge(typed(kind, document, source)?),
        Kind::TcpEdge => AnyObject::TcpEdge(typed(kind, document, source)?),
        Kind::TlsEdge => AnyObject::TlsEdge(typed(kind, document, source)?),
        Kind::Tunnel => AnyObject::Tunnel(typed(kind, document, source)?),
        Kind::Domain => AnyObject::Domain(typed(kind, document, source)?),
        Kind::IpPolicy => AnyObject::IpPolicy(typed(kind, document, source)?),
        Kind::NgrokTrafficPolicy => AnyObject::NgrokTrafficPolicy(typed(kind, document, source)?),
        Kind::Ingress => AnyObject::Ingress(typed(kind, document, source)?),
        Kind::IngressClass => AnyObject::IngressClass(typed(kind, document, source)?),
        Kind::Service => AnyObject::Service(typed(kind, document, source)?),
        Kind::EndpointSlice => AnyObject::EndpointSlice(typed(kind, document, source)?),
        Kind::Secret => AnyObject::Secret(typed(kind, document, source)?),
        Kind::ConfigMap => AnyObject::ConfigMap(typed(kind, document, source)?),
        Kind::Namespace => AnyObject::Namespace(typed(kind, document, source)?),
    })
}

fn typed<T: DeserializeOwned>(
    kind: Kind,
    document: Value,
    source: Source,
) -> Result<Arc<Object<T>>, Box<Finding>> {
    let text = |at: &str| {
        document
            .pointer(at)
            .and_then(Value::as_str)
            .map(str::to_owned)
    };
    let texts = |at: &str| -> BTreeMap<String, String> {
        let map = document.pointer(at).and_then(Value::as_object);
        map.into_iter()
            .flatten()
            .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
            .collect()
    };
    let namespace = match text("/metadata/namespace") {
        _ if !kind.is_namespaced() => String::new(),
        Some(namespace) => namespace,
        None => source.default_namespace,
    };
    let key = ObjectKey::new(namespace, text("/metadata/name").unwrap_or_default());
    if key.name.is_empty() {
        return Err(Box::new(Finding {
            place: source.origin.place(&FieldPath::root()),
            kind: kind.name().to_owned(),
            key,
            problem: Problem::new(
                FieldPath::root().member("metadata").member("name"),
                ProblemCode::MissingField,
                "the object has no name",
                "write metadata.name",
            ),
        }));
    }
    Ok(Arc::new(Object {
        uid: text("/metadata/uid").unwrap_or_else(|| format!("{kind}/{key}")),
        labels: texts("/metadata/labels"),
        annotations: texts("/metadata/annotations"),
        age: source.age,
        terminating: text("/metadata/deletionTimestamp").is_some(),
        origin: source.origin,
        key,
        value: serde_json::from_value(document).map_err(|error| Undecodable {
            problems: vec![Problem::new(
                FieldPath::root(),
                ProblemCode::Undecodable,
                error.to_string(),
                "",
            )],
            salvaged: Salvaged::default(),
        }),
    }))
}
