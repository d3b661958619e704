//! Documents made from an OpenAPI schema, and everything that stands in them.

use resources::problem::FieldPath;
use serde_json::{Map, Value, json};

/// A place in a document: how problems name it, and how JSON does.
#[derive(Clone, Debug, Default)]
pub(crate) struct At {
    pub(crate) path: FieldPath,
    pub(crate) pointer: String,
}

impl At {
    pub(crate) fn member(&self, name: &str) -> Self {
        let escaped = name.replace('~', "~0").replace('/', "~1");
        Self {
            path: self.path.member(name),
            pointer: format!("{}/{escaped}", self.pointer),
        }
    }

    fn first(&self) -> Self {
        Self {
            path: self.path.item(0),
            pointer: format!("{}/0", self.pointer),
        }
    }
}

/// A value with everything that its schema lists.
pub(crate) fn sample(schema: &Value) -> Value {
    if let Some(word) = schema.pointer("/enum/0") {
        return word.clone();
    }
    if schema["x-kubernetes-int-or-string"] == true {
        return "0.5".into();
    }
    match schema["type"].as_str() {
        Some("object") => members(schema),
        Some("array") => json!([sample(&schema["items"])]),
        Some("string") if schema["format"] == "duration" => "1h0m30s".into(),
        Some("string") => "text".into(),
        Some("integer") => schema.get("minimum").cloned().unwrap_or_else(|| 1.into()),
        Some("boolean") => true.into(),
        None => json!({"whatever": [1, "two"]}),
        Some(other) => panic!("a type that our schemas do not use: {other}"),
    }
}

fn members(schema: &Value) -> Value {
    if let Some(inner) = schema.get("additionalProperties") {
        return json!({"some-key": sample(inner)});
    }
    match schema.get("properties").and_then(Value::as_object) {
        None => json!({"whatever": [1, "two"]}),
        Some(properties) => properties
            .iter()
            .map(|(name, inner)| (name.clone(), sample(inner)))
            .collect::<Map<_, _>>()
            .into(),
    }
}

/// Calls `look` with every value of a [`sample`] and its schema, the outermost first.
pub(crate) fn every(schema: &Value, at: &At, look: &mut impl FnMut(&At, &Value)) {
    look(at, schema);
    for (name, inner) in schema["properties"].as_object().into_iter().flatten() {
        every(inner, &at.member(name), look);
    }
    if let Some(inner) = schema.get("additionalProperties") {
        every(inner, &at.member("some-key"), look);
    }
    if let Some(inner) = schema.get("items") {
        every(inner, &at.first(), look);
    }
}

/// Values that a schema refuses.
pub(crate) fn refused(schema: &Value) -> Vec<Value> {
    let mut values = Vec::new();
    if schema["x-kubernetes-int-or-string"] == true {
        values.extend([json!(true), json!("no quantity")]);
    } else {
        match schema["type"].as_str() {
            Some("object" | "array" | "integer" | "boolean") => values.push("no such thing".into()),
            Some("string") => values.extend([json!(7), json!({})]),
            None => {}
            Some(other) => panic!("a type that our schemas do not use: {other}"),
        }
    }
    if schema.get("enum").is_some() {
        values.push("no such word".into());
    }
    if let Some(minimum) = schema["minimum"].as_i64() {
        values.push((minimum - 1).into());
    }
    if let Some(maximum) = schema["maximum"].as_i64() {
        values.push((maximum + 1).into());
    }
    values
}
