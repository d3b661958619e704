//! Writes JSON values as YAML in block style: enough for CRDs, which hold no surprises.

use serde_json::Value;

/// A document with its marker.
#[must_use]
pub fn document(value: &Value) -> String {
    let mut text = String::from("---\n");
    block(value, 0, &mut text);
    text
}

/// A value that begins at the start of a line.
fn block(value: &Value, indent: usize, text: &mut String) {
    let margin = " ".repeat(indent);
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            for (key, value) in fields {
                text.push_str(&format!("{margin}{}:", scalar_text(key)));
                nested(value, indent + 2, indent, text);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for item in items {
                let mut inner = String::new();
                block(item, indent + 2, &mut inner);
                text.push_str(&format!("{margin}- {}", inner.trim_start()));
            }
        }
        other => text.push_str(&format!("{margin}{}\n", flat(other))),
    }
}

/// A value behind `key:`.
fn nested(value: &Value, indent: usize, list_indent: usize, text: &mut String) {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            text.push('\n');
            block(value, indent, text);
        }
        Value::Array(items) if !items.is_empty() => {
            text.push('\n');
            block(value, list_indent, text);
        }
        other => text.push_str(&format!(" {}\n", flat(other))),
    }
}

fn flat(value: &Value) -> String {
    match value {
        Value::String(text) => scalar_text(text),
        other => other.to_string(),
    }
}

/// A text, in quotes where YAML would read it as something else. JSON's quoted form is YAML's.
fn scalar_text(text: &str) -> String {
    let plain = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '.')
        && text.ends_with(|c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | ')'))
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || " ./-_,;()'".contains(c))
        && !matches!(
            text.to_ascii_lowercase().as_str(),
            "true" | "false" | "null" | "yes" | "no" | "on" | "off" | "y" | "n"
        )
        && text.parse::<f64>().is_err();
    if plain {
        text.to_owned()
    } else {
        Value::from(text).to_string()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn blocks_and_scalars() {
        let value = json!({
            "a": {"b": [1, {"c": true, "d": ["x"]}, [2, 3]], "e": {}, "f": []},
            "plain text, with (marks)": "it's plain.",
            "x-kubernetes-list": ["true", "1.5", "", "- a", "a: b", "a #b", "*", "\"", "line\nbreak", null, " a", "No"],
        });
        let text = r##"---
a:
  b:
  - 1
  - c: true
    d:
    - x
  - - 2
    - 3
  e: {}
  f: []
plain text, with (marks): it's plain.
x-kubernetes-list:
- "true"
- "1.5"
- ""
- "- a"
- "a: b"
- "a #b"
- "*"
- "\""
- "line\nbreak"
- null
- " a"
- "No"
"##;
        assert_eq!(document(&value), text);
    }
}
