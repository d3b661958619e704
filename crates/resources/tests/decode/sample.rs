//! A document of every kind with every field that its shape has.

use resources::{
    kinds::Kind,
    rules::Rule,
    shape::{Form, Node, of_kind},
};
use serde_json::{Map, Value, json};

/// How many documents it takes until every alternative has been taken.
pub(crate) const FLAVOURS: usize = 8;

/// The document; where one of several fields is needed, `flavour` says which.
pub(crate) fn sample(kind: Kind, flavour: usize) -> Value {
    let mut document = value(of_kind(kind), flavour);
    document["apiVersion"] = kind.api_version().into();
    document["kind"] = kind.name().into();
    document["metadata"]["name"] = "thing".into();
    document["metadata"]["namespace"] = "shop".into();
    document
}

fn value(node: &Node, flavour: usize) -> Value {
    match &node.form {
        Form::Object(fields) => fields
            .iter()
            .map(|(name, field)| (name.clone(), value(&field.node, flavour)))
            .collect::<Map<_, _>>()
            .into(),
        Form::Choice(fields) => {
            let (name, field) = fields
                .iter()
                .nth(flavour % fields.len())
                .expect("a choice has alternatives");
            json!({ name.as_str(): value(&field.node, flavour) })
        }
        Form::Map(inner) => json!({"some-key": value(inner, flavour)}),
        Form::List(inner) => json!([value(inner, flavour)]),
        Form::Text => text(node.rule).into(),
        Form::Word { words, .. } => words.first().expect("there are words").as_str().into(),
        Form::Integer { min, .. } => (*min).max(1).into(),
        Form::IntOrText => "0.5".into(),
        Form::Boolean => true.into(),
        Form::RawObject | Form::Anything => json!({"whatever": [1, null]}),
        Form::Nothing => panic!("a schema is not understood"),
    }
}

const fn text(rule: Option<Rule>) -> &'static str {
    match rule {
        Some(Rule::Duration) => "1h0m30s",
        Some(Rule::Cidr) => "203.0.113.0/24",
        Some(Rule::EmailAddress) => "ann@example.com",
        Some(Rule::EmailDomain) => "example.com",
        Some(Rule::GithubTeam) => "acme/ops",
        Some(Rule::HeaderName) => "X-Header",
        Some(Rule::HostPort) => "www.example.com:443",
        Some(Rule::Base64) => "dmFsdWU=",
        Some(
            Rule::Fraction | Rule::IpRules | Rule::Headers | Rule::TlsTermination | Rule::Webhook,
        )
        | None => "text",
    }
}

/// A place in a document: how problems name it, and how JSON does.
#[derive(Clone, Debug, Default)]
pub(crate) struct At {
    pub(crate) path: String,
    pub(crate) pointer: String,
}

impl At {
    fn member(&self, name: &str) -> Self {
        let path = match (name.contains(['.', '/']), self.path.is_empty()) {
            (true, _) => format!("{}[{name}]", self.path),
            (false, true) => name.to_owned(),
            (false, false) => format!("{}.{name}", self.path),
        };
        Self {
            path,
            pointer: format!(
                "{}/{}",
                self.pointer,
                name.replace('~', "~0").replace('/', "~1")
            ),
        }
    }

    fn item(&self, index: usize) -> Self {
        Self {
            path: format!("{}[{index}]", self.path),
            pointer: format!("{}/{index}", self.pointer),
        }
    }

    pub(crate) fn field(&self, name: &str) -> Self {
        self.member(name)
    }
}

/// Calls `look` with every object of known fields in a document.
pub(crate) fn every_object<'a>(
    document: &Value,
    node: &'a Node,
    at: &At,
    look: &mut impl FnMut(&At, &'a Node, &Map<String, Value>),
) {
    match (&node.form, document) {
        (Form::Object(fields) | Form::Choice(fields), Value::Object(map)) => {
            look(at, node, map);
            for (name, value) in map {
                every_object(value, &fields[name].node, &at.member(name), look);
            }
        }
        (Form::Map(inner), Value::Object(map)) => {
            for (name, value) in map {
                every_object(value, inner, &at.member(name), look);
            }
        }
        (Form::List(inner), Value::Array(items)) => {
            for (index, value) in items.iter().enumerate() {
                every_object(value, inner, &at.item(index), look);
            }
        }
        _ => {}
    }
}
