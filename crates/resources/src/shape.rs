//! What may stand in a document: the schemas of the Rust types and of Kubernetes, reduced to the
//! few forms that occur. The walk, the salvage and the CRDs read this form only.

use std::{collections::BTreeMap, sync::LazyLock};

use k8s_openapi::{
    api::{core::v1 as core, discovery::v1 as discovery},
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use schemars::{JsonSchema, generate::SchemaSettings};
use serde_json::{Map, Value};

use crate::{
    builtin, domain, https_edge, ingress, ip_policy, kinds::Kind, module_set, rules::Rule,
    tcp_edge, tls_edge, traffic_policy, tunnel,
};

/// What may stand in one place.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// What it is for.
    pub description: String,
    /// Its form.
    pub form: Form,
    /// A check on the value as a whole, once its form is right.
    pub rule: Option<Rule>,
    /// Whether empty, or a blank text, is a mistake (R14: empty is not nothing to check).
    pub not_empty: bool,
    /// What stands here if nothing does; only where that is not the empty value of the form.
    pub default: Option<Value>,
}

/// The form of a value.
#[derive(Clone, Debug, PartialEq)]
pub enum Form {
    /// An object with known fields.
    Object(BTreeMap<String, Field>),
    /// An object with exactly one of the known fields.
    Choice(BTreeMap<String, Field>),
    /// An object with any fields, of one form.
    Map(Box<Node>),
    /// A list.
    List(Box<Node>),
    /// A text.
    Text,
    /// One of these words.
    Word {
        /// The words.
        words: Vec<String>,
        /// Whether the CRD lists them too.
        published: bool,
    },
    /// A whole number between two others, both included.
    Integer {
        /// The smallest.
        min: i64,
        /// The largest.
        max: i64,
    },
    /// A number or a text that stands for one.
    IntOrText,
    /// true or false.
    Boolean,
    /// Any object, kept as it is.
    RawObject,
    /// Anything at all, kept as it is.
    Anything,
    /// Nothing: a schema that this code does not understand admits no value. A test keeps it away.
    Nothing,
}

/// A field of an object.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    /// What may stand in it.
    pub node: Node,
    /// Whether it must be there.
    pub required: bool,
    /// Whether the CRD says so too. Upstream's hardly ever does, and a stricter one would refuse
    /// objects that are stored already.
    pub published_required: bool,
}

impl Node {
    fn bare(form: Form) -> Self {
        Self {
            description: String::new(),
            form,
            rule: None,
            not_empty: false,
            default: None,
        }
    }

    /// The form of a Rust type.
    #[must_use]
    pub fn of_type<T: JsonSchema>() -> Self {
        let generator = SchemaSettings::draft2020_12()
            .with(|settings| settings.inline_subschemas = true)
            .into_generator();
        compile(generator.into_root_schema_for::<T>().as_value())
    }

    /// What is legal in Kubernetes (`self`), with what our own type says where it says something:
    /// enumerations, ranges and rules that Kubernetes' schemas leave out.
    fn refined_by(self, ours: Self) -> Self {
        let form = match (self.form, ours.form) {
            (Form::Object(mut legal), Form::Object(ours)) => {
                for (name, field) in ours {
                    let node = match legal.remove(&name) {
                        Some(known) => known.node.refined_by(field.node),
                        None => field.node,
                    };
                    legal.insert(name, Field { node, ..field });
                }
                Form::Object(legal)
            }
            (Form::List(legal), Form::List(ours)) => Form::List(Box::new(legal.refined_by(*ours))),
            (_, ours) => ours,
        };
        Self { form, ..ours }
    }

    /// The fields, where the form has known ones.
    #[must_use]
    pub const fn fields(&self) -> Option<&BTreeMap<String, Field>> {
        match &self.form {
            Form::Object(fields) | Form::Choice(fields) => Some(fields),
            Form::Map(_)
            | Form::List(_)
            | Form::Text
            | Form::Word { .. }
            | Form::Integer { .. }
            | Form::IntOrText
            | Form::Boolean
            | Form::RawObject
            | Form::Anything
            | Form::Nothing => None,
        }
    }
}

/// The form of a schema.
fn compile(schema: &Value) -> Node {
    let Some(schema) = schema.as_object() else {
        // `true` is the schema of anything.
        return Node::bare(if schema == &Value::Bool(true) {
            Form::Anything
        } else {
            Form::Nothing
        });
    };
    let mut node = match without_null(schema) {
        Some(inner) => compile(inner),
        None => Node::bare(form(schema)),
    };
    let text = |key: &str| schema.get(key).and_then(Value::as_str);
    if let Some(description) = text("description") {
        node.description = description.to_owned();
    }
    if let Some(rule) = ["x-rule", "format"]
        .into_iter()
        .filter_map(text)
        .find_map(Rule::named)
    {
        node.rule = Some(rule);
    }
    if let (Form::List(items), Some(rule)) =
        (&mut node.form, text("x-item-rule").and_then(Rule::named))
    {
        items.rule = Some(rule);
    }
    if let (Form::Word { published, .. }, Some(true)) = (
        &mut node.form,
        schema.get("x-published-enum").and_then(Value::as_bool),
    ) {
        *published = true;
    }
    node.not_empty |= ["minLength", "minItems", "minProperties"]
        .iter()
        .any(|key| schema.contains_key(*key));
    node.default = schema
        .get("default")
        .filter(|value| says_something(value))
        .cloned()
        .or(node.default);
    node
}

/// Whether a default is more than the empty value of its type.
fn says_something(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => false,
        Value::Bool(true) => true,
        Value::Number(number) => number.as_i64() != Some(0),
        // Durations and shares write their zeros so.
        Value::String(text) => !matches!(text.as_str(), "" | "0" | "0s"),
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => fields.values().any(says_something),
    }
}

/// The form of a schema that is not merely another one or null.
fn form(schema: &Map<String, Value>) -> Form {
    let words = |values: Option<Vec<&Value>>| {
        let words = values?
            .into_iter()
            .map(|value| value.as_str().map(str::to_owned))
            .collect::<Option<_>>()?;
        Some(Form::Word {
            words,
            published: false,
        })
    };
    if let Some(values) = schema.get("enum") {
        return words(values.as_array().map(|values| values.iter().collect()))
            .unwrap_or(Form::Nothing);
    }
    if let Some(members) = schema.get("oneOf") {
        let members: Vec<&Value> = members.as_array().into_iter().flatten().collect();
        let constants: Option<Vec<&Value>> =
            members.iter().map(|member| member.get("const")).collect();
        return words(constants)
            .or_else(|| choice(&members))
            .unwrap_or(Form::Nothing);
    }
    if ["anyOf", "allOf", "not", "$ref"]
        .iter()
        .any(|key| schema.contains_key(*key))
    {
        return Form::Nothing;
    }
    plain(schema)
}

/// Objects with one field each: how an enum with content is described.
fn choice(members: &[&Value]) -> Option<Form> {
    let mut fields = BTreeMap::new();
    for member in members {
        let properties = member.get("properties").and_then(Value::as_object)?;
        let (name, inner) = properties.iter().next().filter(|_| properties.len() == 1)?;
        let mut node = compile(inner);
        if let Some(description) = member.get("description").and_then(Value::as_str) {
            node.description = description.to_owned();
        }
        fields.insert(
            name.clone(),
            Field {
                node,
                required: false,
                published_required: false,
            },
        );
    }
    Some(Form::Choice(fields))
}

/// The other schema of `anyOf: [X, null]`: how an optional enum or object is described.
fn without_null(schema: &Map<String, Value>) -> Option<&Value> {
    let members = schema.get("anyOf")?.as_array()?;
    let is_null = |member: &Value| member.get("type").and_then(Value::as_str) == Some("null");
    match members.as_slice() {
        [inner, null] if is_null(null) => Some(inner),
        _ => None,
    }
}

/// A schema with a `type`.
fn plain(schema: &Map<String, Value>) -> Form {
    let flag = |key: &str| schema.get(key).and_then(Value::as_bool) == Some(true);
    if flag("x-kubernetes-int-or-string") {
        return Form::IntOrText;
    }
    let kind = match schema.get("type") {
        Some(Value::String(kind)) => kind.as_str(),
        // `[X, "null"]`: how an optional scalar is described.
        Some(Value::Array(kinds)) => match kinds.as_slice() {
            [Value::String(kind), Value::String(null)] if null == "null" => kind.as_str(),
            _ => return Form::Nothing,
        },
        Some(_) => return Form::Nothing,
        None => {
            return if schema.contains_key("properties") {
                object(schema)
            } else {
                Form::Anything
            };
        }
    };
    match kind {
        "object" if flag("x-kubernetes-preserve-unknown-fields") => Form::RawObject,
        "object" => object(schema),
        "array" => schema
            .get("items")
            .map_or(Form::Nothing, |items| Form::List(Box::new(compile(items)))),
        "string" => Form::Text,
        "boolean" => Form::Boolean,
        "integer" => integer(schema),
        _ => Form::Nothing,
    }
}

fn object(schema: &Map<String, Value>) -> Form {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
        return match schema.get("additionalProperties") {
            Some(values @ Value::Object(_)) => Form::Map(Box::new(compile(values))),
            Some(_) | None => Form::RawObject,
        };
    };
    let required = |name: &str| {
        schema
            .get("required")
            .and_then(Value::as_array)
            .is_some_and(|names| names.iter().any(|n| n == name))
    };
    let fields = properties.iter().map(|(name, schema)| {
        let published_required =
            schema.get("x-published-required").and_then(Value::as_bool) == Some(true);
        (
            name.clone(),
            Field {
                node: compile(schema),
                required: required(name),
                published_required,
            },
        )
    });
    Form::Object(fields.collect())
}

fn integer(schema: &Map<String, Value>) -> Form {
    let bound = |key: &str| schema.get(key).and_then(Value::as_i64);
    let (min, max) = match schema.get("format").and_then(Value::as_str) {
        Some("uint16") => (0, i64::from(u16::MAX)),
        Some("uint32") => (0, i64::from(u32::MAX)),
        Some("int32") => (i64::from(i32::MIN), i64::from(i32::MAX)),
        Some(_) | None => (i64::MIN, i64::MAX),
    };
    Form::Integer {
        min: bound("minimum").unwrap_or(min),
        max: bound("maximum").unwrap_or(max),
    }
}

/// The whole document of a kind.
#[must_use]
pub fn of_kind(kind: Kind) -> &'static Node {
    static SHAPES: LazyLock<BTreeMap<Kind, Node>> = LazyLock::new(|| {
        Kind::ALL
            .into_iter()
            .map(|kind| (kind, document(kind)))
            .collect()
    });
    static NOTHING: LazyLock<Node> = LazyLock::new(|| Node::bare(Form::Nothing));
    SHAPES.get(&kind).unwrap_or(&NOTHING)
}

/// The content of a kind, with what every object has around it.
fn document(kind: Kind) -> Node {
    let mut node = match kind {
        Kind::NgrokModuleSet => Node::of_type::<module_set::NgrokModuleSet>(),
        Kind::HttpsEdge => Node::of_type::<https_edge::HttpsEdge>(),
        Kind::TcpEdge => Node::of_type::<tcp_edge::TcpEdge>(),
        Kind::TlsEdge => Node::of_type::<tls_edge::TlsEdge>(),
        Kind::Tunnel => Node::of_type::<tunnel::Tunnel>(),
        Kind::Domain => Node::of_type::<domain::Domain>(),
        Kind::IpPolicy => Node::of_type::<ip_policy::IpPolicy>(),
        Kind::NgrokTrafficPolicy => Node::of_type::<traffic_policy::NgrokTrafficPolicy>(),
        Kind::Ingress => Node::of_type::<ingress::Ingress>(),
        Kind::IngressClass => Node::of_type::<ingress::IngressClass>(),
        Kind::Service => {
            Node::of_type::<core::Service>().refined_by(Node::of_type::<builtin::Service>())
        }
        Kind::EndpointSlice => Node::of_type::<discovery::EndpointSlice>()
            .refined_by(Node::of_type::<builtin::EndpointSlice>()),
        Kind::Secret => Node::of_type::<core::Secret>(),
        Kind::ConfigMap => Node::of_type::<core::ConfigMap>(),
        Kind::Namespace => Node::of_type::<core::Namespace>(),
    };
    if let Form::Object(fields) = &mut node.form {
        let optional = |node| Field {
            node,
            required: false,
            published_required: false,
        };
        fields.insert("apiVersion".to_owned(), optional(Node::bare(Form::Text)));
        fields.insert("kind".to_owned(), optional(Node::bare(Form::Text)));
        fields.insert(
            "metadata".to_owned(),
            optional(Node::of_type::<ObjectMeta>()),
        );
        // A status is never an input (R8): whatever stands there is not looked at.
        fields.insert("status".to_owned(), optional(Node::bare(Form::Anything)));
    }
    node
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where the shape admits nothing.
    fn holes(path: &str, node: &Node, found: &mut Vec<String>) {
        match &node.form {
            Form::Object(fields) | Form::Choice(fields) => {
                for (name, field) in fields {
                    holes(&format!("{path}.{name}"), &field.node, found);
                }
            }
            Form::Map(inner) | Form::List(inner) => holes(&format!("{path}[]"), inner, found),
            Form::Nothing => found.push(path.to_owned()),
            Form::Text
            | Form::Word { .. }
            | Form::Integer { .. }
            | Form::IntOrText
            | Form::Boolean
            | Form::RawObject
            | Form::Anything => {}
        }
    }

    #[test]
    fn every_schema_is_understood() {
        let mut found = Vec::new();
        for kind in Kind::ALL {
            holes(kind.name(), of_kind(kind), &mut found);
        }
        assert_eq!(found, Vec::<String>::new());
    }

    /// Anything is admitted in few places, each for a reason.
    #[test]
    fn what_is_not_looked_at_is_known() {
        fn open(path: &str, node: &Node, found: &mut Vec<String>) {
            match &node.form {
                Form::Object(fields) | Form::Choice(fields) => {
                    for (name, field) in fields {
                        open(&format!("{path}.{name}"), &field.node, found);
                    }
                }
                Form::Map(inner) | Form::List(inner) => open(&format!("{path}[]"), inner, found),
                Form::RawObject | Form::Anything => found.push(path.to_owned()),
                Form::Text
                | Form::Word { .. }
                | Form::Integer { .. }
                | Form::IntOrText
                | Form::Boolean
                | Form::Nothing => {}
            }
        }
        let mut found = Vec::new();
        for kind in Kind::ALL {
            open(kind.name(), of_kind(kind), &mut found);
        }
        found
            .retain(|path| !path.ends_with(".status") && !path.contains(".metadata.managedFields"));
        assert_eq!(
            found,
            [
                "NgrokModuleSet.modules.policy.inbound[].actions[].config",
                "NgrokModuleSet.modules.policy.outbound[].actions[].config",
                "HTTPSEdge.spec.routes[].policy",
                "TCPEdge.spec.policy",
                "TLSEdge.spec.policy",
                "NgrokTrafficPolicy.spec.policy",
            ]
        );
    }
}
