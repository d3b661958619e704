//! From a parsed document to a typed object, or to everything that is wrong with it.
//!
//! The walk judges the document against the shape of its kind; only what passes is given to
//! serde. So a mistake never depends on which field the decoder happens to read first, and no
//! object hides another.

use std::{collections::BTreeMap, sync::Arc};

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{
    kinds::Kind,
    position::Origin,
    problem::{FieldPath, Problem, ProblemCode},
    salvage::salvage,
    shape,
    snapshot::{AnyObject, Finding, Object, ObjectKey, Undecodable},
    walk::walk,
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

/// The name of a document in its kind, as far as it is written.
fn key(namespaced: bool, document: &Value, default_namespace: &str) -> ObjectKey {
    let namespace = match text(document, "/metadata/namespace") {
        _ if !namespaced => "",
        Some(namespace) if !namespace.is_empty() => namespace,
        Some(_) | None => default_namespace,
    };
    ObjectKey::new(
        namespace,
        text(document, "/metadata/name").unwrap_or_default(),
    )
}

/// How long a name may be.
const NAME_MAX: usize = 253;

/// What is wrong with a name (Kubernetes: "Object Names and IDs"). A name is part of identities,
/// labels and lists of names, so that a comma or slash in it would make one object another.
fn name_fault(namespaced: bool, key: &ObjectKey) -> Option<Problem> {
    let label = |text: &str| {
        !text.is_empty()
            && text.len() <= 63
            && !text.starts_with('-')
            && !text.ends_with('-')
            && text
                .bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
    };
    let metadata = FieldPath::root().member("metadata");
    if key.name.is_empty() {
        let remedy = "write metadata.name";
        return Some(Problem::new(
            metadata.member("name"),
            ProblemCode::MissingField,
            "the object has no name",
            remedy,
        ));
    }
    if key.name.len() > NAME_MAX {
        let length = key.name.len();
        return Some(Problem::new(
            metadata.member("name"),
            ProblemCode::TooLarge,
            format!(
                "the name {} has {length} characters, more than {NAME_MAX}",
                key.name
            ),
            "write a shorter one",
        ));
    }
    let (part, text) = if !key.name.split('.').all(label) {
        ("name", &key.name)
    } else if namespaced && !label(&key.namespace) {
        ("namespace", &key.namespace)
    } else {
        return None;
    };
    let message = format!("{text:?} cannot be the {part} of an object");
    let remedy = "write lower-case letters, digits and hyphens";
    Some(Problem::new(
        metadata.member(part),
        ProblemCode::BadValue,
        message,
        remedy,
    ))
}

fn typed<T: DeserializeOwned>(
    kind: Kind,
    mut document: Value,
    source: Source,
) -> Result<Arc<Object<T>>, Box<Finding>> {
    let problems = all_problems(kind, &mut document, &source);
    let Source {
        default_namespace,
        origin,
        age,
        problems: _,
    } = source;
    let key = key(kind.is_namespaced(), &document, &default_namespace);
    if let Some(problem) = name_fault(kind.is_namespaced(), &key) {
        let place = origin.place(&problem.path);
        return Err(Box::new(Finding {
            place,
            kind: kind.name().to_owned(),
            key,
            problem,
        }));
    }
    let value = if problems.is_empty() {
        content(kind, &document)
    } else {
        Err(problems)
    };
    Ok(Arc::new(Object {
        uid: text(&document, "/metadata/uid")
            .map_or_else(|| format!("{kind}/{key}"), str::to_owned),
        key,
        labels: texts(&document, "/metadata/labels"),
        annotations: texts(&document, "/metadata/annotations"),
        age,
        terminating: text(&document, "/metadata/deletionTimestamp").is_some(),
        origin,
        value: value.map_err(|problems| Undecodable {
            problems,
            salvaged: salvage(kind, &document),
        }),
    }))
}

/// What the walk and the source find, sorted.
fn all_problems(kind: Kind, document: &mut Value, source: &Source) -> Vec<Problem> {
    let served = matches!(source.origin, Origin::Cluster);
    let mut problems = walk(document, shape::of_kind(kind), kind.is_custom(), served);
    // Two values under one key have become a list; that it stands there needs no second finding.
    let twice = |problem: &Problem| {
        let known = source
            .problems
            .iter()
            .filter(|known| known.code == ProblemCode::Duplicate);
        let mut below =
            known.filter_map(|known| problem.path.as_str().strip_prefix(known.path.as_str()));
        below.any(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
    };
    problems.retain(|problem| !twice(problem));
    problems.extend(source.problems.iter().cloned());
    problems.sort();
    problems
}

fn text<'a>(document: &'a Value, at: &str) -> Option<&'a str> {
    document.pointer(at).and_then(Value::as_str)
}

fn texts(document: &Value, at: &str) -> BTreeMap<String, String> {
    let fields = document
        .pointer(at)
        .and_then(Value::as_object)
        .into_iter()
        .flatten();
    fields
        .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
        .collect()
}

/// The typed content of a document that the walk found right.
fn content<T: DeserializeOwned>(kind: Kind, document: &Value) -> Result<T, Vec<Problem>> {
    T::deserialize(document).map_err(|error| {
        // The walk should have said it better. The decoder's words may repeat a secret.
        let message = if kind == Kind::Secret {
            "the object does not decode".to_owned()
        } else {
            format!("the object does not decode: {error}")
        };
        vec![Problem::new(
            FieldPath::root(),
            ProblemCode::Undecodable,
            message,
            "",
        )]
    })
}
