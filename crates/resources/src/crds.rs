//! The CRDs of our kinds, printed from the same shapes that judge documents.
//!
//! Every level that lists properties also keeps unknown ones: a structural schema prunes, and what
//! is pruned cannot be refused any more. A misspelt module would vanish in the API server and the
//! route would open without it. Kept at the root alone it does nothing below.
//!
//! Beyond that the schemas say what upstream's say (required fields, enumerations, defaults), so
//! that existing objects and tools go on working. What we demand beyond it, the controller reports.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::{
    kinds::Kind,
    rules::Rule,
    shape::{self, Field, Form, Node},
    status::{
        DomainStatus, HttpsEdgeStatus, IpPolicyStatus, NgrokTrafficPolicyStatus, TcpEdgeStatus,
        TlsEdgeStatus, TunnelStatus,
    },
    yaml,
};

/// The CRD of a kind as a YAML document; `None` for built-in kinds.
#[must_use]
pub fn crd(kind: Kind) -> Option<String> {
    kind.is_custom().then(|| yaml::document(&definition(kind)))
}

/// Every CRD: the name of its file and its YAML, in the order of the kinds.
#[must_use]
pub fn crds() -> Vec<(String, String)> {
    let file = |kind: Kind| format!("{}_{}.yaml", kind.group(), kind.plural());
    Kind::ALL
        .into_iter()
        .filter_map(|kind| Some((file(kind), crd(kind)?)))
        .collect()
}

fn definition(kind: Kind) -> Value {
    let mut version = json!({
        "name": kind.version(),
        "served": true,
        "storage": true,
        "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": whole(kind)},
    });
    let columns = columns(kind);
    if !columns.is_empty() {
        version["additionalPrinterColumns"] = columns.into();
    }
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{}.{}", kind.plural(), kind.group())},
        "spec": {
            "group": kind.group(),
            "names": {
                "kind": kind.name(),
                "listKind": format!("{kind}List"),
                "plural": kind.plural(),
                "singular": kind.name().to_lowercase(),
            },
            "scope": "Namespaced",
            "versions": [version],
        },
    })
}

fn columns(kind: Kind) -> Vec<Value> {
    let column = |name: &str, path: &str| {
        let age = name == "Age";
        json!({"name": name, "type": if age { "date" } else { "string" }, "jsonPath": path})
    };
    let edge = [
        ("ID", ".status.id"),
        ("Hostports", ".status.hostports"),
        ("Backend ID", ".status.backend.id"),
        AGE,
    ];
    let columns: &[(&str, &str)] = match kind {
        Kind::TcpEdge | Kind::TlsEdge => &edge,
        Kind::Domain => &[
            ("ID", ".status.id"),
            ("Region", ".status.region"),
            ("Domain", ".status.domain"),
            ("CNAME Target", ".status.cnameTarget"),
            AGE,
        ],
        Kind::IpPolicy => &[("ID", ".status.id"), AGE],
        Kind::Tunnel => &[("ForwardsTo", ".spec.forwardsTo"), AGE],
        Kind::NgrokModuleSet
        | Kind::HttpsEdge
        | Kind::NgrokTrafficPolicy
        | Kind::Ingress
        | Kind::IngressClass
        | Kind::Service
        | Kind::EndpointSlice
        | Kind::Secret
        | Kind::ConfigMap
        | Kind::Namespace => &[],
    };
    columns
        .iter()
        .map(|(name, path)| column(name, path))
        .collect()
}

const AGE: (&str, &str) = ("Age", ".metadata.creationTimestamp");

/// The schema of a kind's documents.
fn whole(kind: Kind) -> Value {
    let mut root = schema(shape::of_kind(kind));
    let properties = &mut root["properties"];
    properties["apiVersion"] = json!({"type": "string"});
    properties["kind"] = json!({"type": "string"});
    // The API server knows what stands in it and takes no other word for it.
    properties["metadata"] = json!({"type": "object"});
    match status(kind) {
        Some(status) => properties["status"] = schema(&status),
        None => {
            if let Some(properties) = properties.as_object_mut() {
                properties.shift_remove("status");
            }
        }
    }
    root
}

/// A structural schema (Kubernetes: "Specifying a structural schema"): no references, no
/// alternatives but the one form that is allowed for numbers or texts.
fn schema(node: &Node) -> Value {
    let mut schema = match &node.form {
        Form::Object(fields) | Form::Choice(fields) => object(fields),
        Form::Map(inner) => {
            json!({"type": "object", "additionalProperties": or_nothing(schema(inner))})
        }
        Form::List(inner) => json!({"type": "array", "items": schema(inner)}),
        Form::Text if node.rule == Some(Rule::Duration) => {
            json!({"type": "string", "format": "duration"})
        }
        Form::Text => json!({"type": "string"}),
        Form::Word {
            words,
            published: true,
        } => json!({"type": "string", "enum": words}),
        Form::Word {
            published: false, ..
        } => json!({"type": "string"}),
        Form::Integer { min, max } => integer(*min, *max),
        Form::IntOrText => json!({
            "anyOf": [{"type": "integer"}, {"type": "string"}],
            "pattern": QUANTITY,
            "x-kubernetes-int-or-string": true,
        }),
        Form::Boolean => json!({"type": "boolean"}),
        Form::RawObject => json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}),
        // A value of any type.
        Form::Anything | Form::Nothing => json!({"x-kubernetes-preserve-unknown-fields": true}),
    };
    if let Some(default) = &node.default {
        schema["default"] = default.clone();
    }
    if !node.description.is_empty() {
        schema["description"] = node.description.as_str().into();
    }
    schema
}

/// The pattern of quantities that Kubernetes' own generator writes.
const QUANTITY: &str = r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$";

fn object(fields: &BTreeMap<String, Field>) -> Value {
    // Nothing where something is required is refused by the API server itself.
    let property = |field: &Field| match field.published_required {
        true => schema(&field.node),
        false => or_nothing(schema(&field.node)),
    };
    let properties: Map<String, Value> = fields
        .iter()
        .map(|(name, field)| (name.clone(), property(field)))
        .collect();
    let required: Vec<&String> = fields
        .iter()
        .filter(|(_, field)| field.published_required)
        .map(|(name, _)| name)
        .collect();
    let mut object = json!({
        "type": "object",
        "properties": properties,
        "x-kubernetes-preserve-unknown-fields": true,
    });
    if !required.is_empty() {
        object["required"] = json!(required);
    }
    object
}

/// The schema of a value that may have been left out behind its name. The API server drops
/// `minVersion:` with nothing behind it unless nothing may stand there, and what is dropped cannot
/// be refused any more (R14). Not said where a default takes its place; nor for words, since null
/// would have to be one of them: an object without the field is refused in the same way.
fn or_nothing(mut schema: Value) -> Value {
    if schema.get("default").is_none() && schema.get("enum").is_none() {
        schema["nullable"] = true.into();
    }
    schema
}

/// Upstream's unsigned numbers are `int32`; only bounds that are narrower are said.
fn integer(min: i64, max: i64) -> Value {
    let mut schema = json!({"type": "integer", "format": "int32"});
    if min > 0 {
        schema["minimum"] = min.into();
    }
    if max < i64::from(i32::MAX) {
        schema["maximum"] = max.into();
    }
    schema
}

fn status(kind: Kind) -> Option<Node> {
    Some(match kind {
        Kind::HttpsEdge => Node::of_type::<HttpsEdgeStatus>(),
        Kind::TcpEdge => Node::of_type::<TcpEdgeStatus>(),
        Kind::TlsEdge => Node::of_type::<TlsEdgeStatus>(),
        Kind::Tunnel => Node::of_type::<TunnelStatus>(),
        Kind::Domain => Node::of_type::<DomainStatus>(),
        Kind::IpPolicy => Node::of_type::<IpPolicyStatus>(),
        Kind::NgrokTrafficPolicy => Node::of_type::<NgrokTrafficPolicyStatus>(),
        Kind::NgrokModuleSet
        | Kind::Ingress
        | Kind::IngressClass
        | Kind::Service
        | Kind::EndpointSlice
        | Kind::Secret
        | Kind::ConfigMap
        | Kind::Namespace => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Calls `look` with every schema below one, and where it is.
    fn every(schema: &Value, path: &str, look: &mut impl FnMut(&str, &Value)) {
        look(path, schema);
        for (name, inner) in schema
            .get("properties")
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
        {
            every(inner, &format!("{path}.{name}"), look);
        }
        for key in ["items", "additionalProperties"] {
            if let Some(inner) = schema.get(key) {
                every(inner, &format!("{path}[]"), look);
            }
        }
    }

    fn look_at_all(mut look: impl FnMut(&str, &Value)) {
        for kind in Kind::ALL.into_iter().filter(|kind| kind.is_custom()) {
            every(&whole(kind), kind.name(), &mut look);
        }
    }

    #[test]
    fn no_level_with_properties_prunes() {
        let mut levels = 0;
        look_at_all(|path, schema| {
            if schema.get("properties").is_some() {
                assert_eq!(
                    schema["x-kubernetes-preserve-unknown-fields"], true,
                    "{path}"
                );
                levels += 1;
            }
        });
        assert!(levels > 100, "only {levels} levels were looked at");
    }

    #[test]
    fn every_schema_is_structural() {
        const KNOWN: [&str; 15] = [
            "type",
            "format",
            "description",
            "default",
            "enum",
            "pattern",
            "minimum",
            "maximum",
            "nullable",
            "required",
            "properties",
            "items",
            "additionalProperties",
            "anyOf",
            "x-kubernetes-preserve-unknown-fields",
        ];
        look_at_all(|path, schema| {
            let schema = schema.as_object().expect("a schema is an object");
            let number_or_text = schema.contains_key("x-kubernetes-int-or-string");
            assert!(
                number_or_text || schema.contains_key("type"),
                "{path} has no type"
            );
            assert_eq!(number_or_text, schema.contains_key("anyOf"), "{path}");
            assert!(
                schema.keys().all(|key| KNOWN.contains(&key.as_str()) || key == "x-kubernetes-int-or-string"),
                "{path}: {:?}",
                schema.keys().collect::<Vec<_>>()
            );
            assert!(
                !(schema.contains_key("nullable") && schema.contains_key("enum")),
                "{path}: null is no word"
            );
            assert!(
                !(schema.contains_key("properties") && schema.contains_key("additionalProperties")),
                "{path}: the API server admits one of the two"
            );
        });
    }

    #[test]
    fn required_enumerated_and_defaulted_is_what_upstream_has() {
        let (mut required, mut enumerated, mut defaulted) = (Vec::new(), Vec::new(), Vec::new());
        look_at_all(|path, schema| {
            let names = schema
                .get("required")
                .and_then(Value::as_array)
                .into_iter()
                .flatten();
            required.extend(names.map(|name| format!("{path}.{}", name.as_str().expect("a name"))));
            enumerated.extend(schema.get("enum").map(|words| format!("{path}: {words}")));
            defaulted.extend(schema.get("default").map(|_| path.to_owned()));
        });
        assert_eq!(
            required,
            [
                "HTTPSEdge.spec.routes[].match",
                "HTTPSEdge.spec.routes[].matchType",
                "Domain.spec.domain"
            ]
        );
        assert_eq!(
            enumerated,
            [
                "HTTPSEdge.spec.routes[].matchType: [\"exact_path\",\"path_prefix\"]",
                "IPPolicy.spec.rules[].action: [\"allow\",\"deny\"]"
            ]
        );
        let texts: Vec<String> = [
            "HTTPSEdge.spec",
            "HTTPSEdge.spec.routes[]",
            "HTTPSEdge.spec.routes[].backend",
            "TCPEdge.spec",
            "TCPEdge.spec.backend",
            "TLSEdge.spec",
            "TLSEdge.spec.backend",
            "Domain.spec",
            "IPPolicy.spec",
            "IPPolicy.spec.rules[]",
        ]
        .iter()
        .flat_map(|place| [format!("{place}.description"), format!("{place}.metadata")])
        .collect();
        defaulted.sort();
        let mut expected = texts;
        expected.sort();
        assert_eq!(defaulted, expected);
    }
}
