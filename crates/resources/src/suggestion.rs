//! What somebody meant: near names, names of another style, fields in the wrong place, and the
//! mistakes that everybody makes.

use std::{collections::BTreeMap, fmt::Write as _};

use serde_json::Value;

use crate::{
    problem::FieldPath,
    shape::{Field, Form, Node},
};

/// What to say about an unknown field.
pub(crate) struct Advice<'a> {
    pub(crate) message: String,
    pub(crate) remedy: String,
    /// The field of this object that was probably meant.
    pub(crate) meant: Option<(String, &'a Field)>,
}

/// Mistakes that everybody makes: (a field that the object does have, the unknown name without
/// case, hyphens and underscores, what to do).
const WELL_KNOWN: [(&str, &str, &str); 19] = [
    (
        "modules",
        "spec",
        "this kind has no spec: write modules at the top level",
    ),
    ("policies", "allow", IN_POLICY),
    ("policies", "allowcidrs", IN_POLICY),
    ("policies", "deny", IN_POLICY),
    ("policies", "denycidrs", IN_POLICY),
    ("policies", "cidrs", IN_POLICY),
    ("policies", "rules", IN_POLICY),
    ("policies", "policy", "did you mean policies?"),
    ("policies", "ippolicies", "did you mean policies?"),
    ("emailDomains", "allowdomains", "did you mean emailDomains?"),
    (
        "emailDomains",
        "alloweddomains",
        "did you mean emailDomains?",
    ),
    (
        "emailAddresses",
        "allowedemails",
        "did you mean emailAddresses?",
    ),
    (
        "emailAddresses",
        "allowedemailaddresses",
        "did you mean emailAddresses?",
    ),
    (
        "authorizedGroups",
        "allowedgroups",
        "did you mean authorizedGroups?",
    ),
    ("service", "servicename", OLD_BACKEND),
    ("service", "serviceport", OLD_BACKEND),
    (
        "idpMetadata",
        "idpmetadataurl",
        "nothing is fetched: write the metadata's XML under idpMetadata",
    ),
    (
        "key",
        "namespace",
        "a Secret is read from the namespace of the object that names it: remove this line",
    ),
    (
        "ingressClassName",
        "ingressclass",
        "did you mean ingressClassName?",
    ),
];

const OLD_BACKEND: &str = "an older form: write service: {name: …, port: {number: …}}";
const IN_POLICY: &str = "addresses stand in an IPPolicy object: name it under policies";

/// What to say about a field that does not exist in an object at `path`.
pub(crate) fn unknown_field<'a>(
    path: &FieldPath,
    name: &str,
    fields: &'a BTreeMap<String, Field>,
    whole: &Node,
) -> Advice<'a> {
    let message = if path.as_str().is_empty() {
        format!("there is no field {name} here")
    } else {
        format!("there is no field {name} in {}", last(path))
    };
    let near = nearest(name, fields.keys().map(String::as_str));
    let meant = near.and_then(|near| Some((near.to_owned(), fields.get(near)?)));
    let remedy = well_known(name, fields)
        .or_else(|| near.map(|near| format!("did you mean {near}?")))
        .or_else(|| elsewhere(path, name, whole))
        .unwrap_or_else(|| {
            let known = fields
                .keys()
                .map(String::as_str)
                .filter(|known| !matches!(*known, "apiVersion" | "kind" | "status"));
            match fields.len() {
                0 => "remove it".to_owned(),
                1 => format!("the only field here is {}", listing(known, "and")),
                2..=16 => format!("the fields here are {}", listing(known, "and")),
                _ => String::new(),
            }
        });
    Advice {
        message,
        remedy,
        meant,
    }
}

/// The last name of a path, without indices.
fn last(path: &FieldPath) -> &str {
    let text = path.as_str();
    let text = text.rfind('.').map_or(text, |dot| &text[dot + 1..]);
    text.split('[').next().unwrap_or(text)
}

/// A name without case, hyphens and underscores: `circuit_breaker` is `circuitBreaker`.
pub(crate) fn folded(name: &str) -> String {
    name.chars()
        .filter(|c| !matches!(c, '-' | '_'))
        .flat_map(char::to_lowercase)
        .collect()
}

fn well_known(name: &str, fields: &BTreeMap<String, Field>) -> Option<String> {
    let name = folded(name);
    let (_, _, remedy) = WELL_KNOWN
        .iter()
        .find(|(marker, wrong, _)| *wrong == name && fields.contains_key(*marker))?;
    Some((*remedy).to_owned())
}

/// Where in the document a field of this name exists: a module one level too deep, a change of
/// headers without request or response.
fn elsewhere(path: &FieldPath, name: &str, whole: &Node) -> Option<String> {
    fn search(node: &Node, at: &str, name: &str, found: &mut Vec<String>) {
        match &node.form {
            Form::Object(fields) | Form::Choice(fields) => {
                for (known, field) in fields {
                    if at.is_empty()
                        && matches!(
                            known.as_str(),
                            "apiVersion" | "kind" | "metadata" | "status"
                        )
                    {
                        continue;
                    }
                    let here = if at.is_empty() {
                        known.clone()
                    } else {
                        format!("{at}.{known}")
                    };
                    if folded(known) == folded(name) {
                        found.push(here.clone());
                    }
                    search(&field.node, &here, name, found);
                }
            }
            Form::List(inner) => search(inner, &format!("{at}[]"), name, found),
            Form::Map(_)
            | Form::Text
            | Form::Word { .. }
            | Form::Integer { .. }
            | Form::IntOrText
            | Form::Boolean
            | Form::RawObject
            | Form::Anything
            | Form::Nothing => {}
        }
    }
    // A switch belongs to what it stands in, not to whatever else has one.
    if folded(name) == "enabled" {
        return None;
    }
    let mut found = Vec::new();
    search(whole, "", name, &mut found);
    // Places below this object are the best guess, then those nearest to the top.
    let below: Vec<String> = found
        .iter()
        .filter(|place| is_below(place, path))
        .cloned()
        .collect();
    if !below.is_empty() {
        found = below;
    }
    let shortest = found.iter().map(|place| place.matches('.').count()).min()?;
    found.retain(|place| place.matches('.').count() == shortest);
    (found.len() <= 3).then(|| {
        format!(
            "it belongs at {}",
            listing(found.iter().map(String::as_str), "or")
        )
    })
}

/// Whether a place of the shape lies below a path of a document.
fn is_below(place: &str, path: &FieldPath) -> bool {
    let mut plain = String::new();
    let mut rest = path.as_str();
    while let Some((before, after)) = rest.split_once('[') {
        plain.push_str(before);
        plain.push_str("[]");
        rest = after.split_once(']').map_or("", |(_, after)| after);
    }
    plain.push_str(rest);
    place
        .strip_prefix(plain.as_str())
        .is_some_and(|rest| rest.starts_with(['.', '[']))
}

/// The nearest of some words: equal but for case and style, or a few slips away.
pub(crate) fn nearest<'a>(word: &str, words: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let wanted = folded(word);
    let allowed = match wanted.chars().count() {
        0..=3 => 0,
        4..=5 => 1,
        6..=10 => 2,
        _ => 3,
    };
    words
        .map(|known| (distance(&wanted, &folded(known)), known))
        .filter(|(distance, _)| *distance <= allowed)
        .min()
        .map(|(_, known)| known)
}

/// How many letters must be added, dropped, changed or swapped with a neighbour (optimal string
/// alignment). Long texts are far from everything.
fn distance(left: &str, right: &str) -> usize {
    let (left, right): (Vec<char>, Vec<char>) = (
        left.chars().take(65).collect(),
        right.chars().take(65).collect(),
    );
    if left.len().max(right.len()) > 64 {
        return usize::MAX;
    }
    let mut rows = vec![(0..=right.len()).collect::<Vec<usize>>()];
    for (i, a) in left.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, b) in right.iter().enumerate() {
            let mut best = (rows[i][j] + usize::from(a != b))
                .min(rows[i][j + 1] + 1)
                .min(row[j] + 1);
            if i > 0 && j > 0 && *a == right[j - 1] && left[i - 1] == *b {
                best = best.min(rows[i - 1][j - 1] + 1);
            }
            row.push(best);
        }
        rows.push(row);
    }
    rows[left.len()][right.len()]
}

/// `a, b or c`.
pub(crate) fn listing<'a>(words: impl Iterator<Item = &'a str>, joint: &str) -> String {
    let words: Vec<&str> = words.collect();
    let mut text = String::new();
    for (index, word) in words.iter().enumerate() {
        let separator = match index {
            0 => String::new(),
            _ if index + 1 == words.len() => format!(" {joint} "),
            _ => ", ".to_owned(),
        };
        // Writing to a String cannot fail.
        let _ = write!(text, "{separator}{word}");
    }
    text
}

/// What a missing field is for, to be put behind a message.
pub(crate) fn purpose(node: &Node) -> String {
    let end = ["\n", ". ", "; "]
        .into_iter()
        .filter_map(|end| node.description.find(end))
        .min();
    let first = &node.description[..end.unwrap_or(node.description.len())].trim_end_matches('.');
    let mut letters = first.chars();
    match letters.next() {
        Some(_) if first.len() > 100 => String::new(),
        Some(letter) if letters.clone().next().is_some_and(char::is_uppercase) => {
            format!(": {letter}{}", letters.as_str())
        }
        Some(letter) => format!(": {}{}", letter.to_lowercase(), letters.as_str()),
        None => String::new(),
    }
}

/// What a form is called.
pub(crate) const fn form_name(form: &Form) -> &'static str {
    match form {
        Form::Object(_) | Form::Choice(_) | Form::Map(_) | Form::RawObject => "an object",
        Form::List(_) => "a list",
        Form::Text | Form::Word { .. } => "a text",
        Form::Integer { .. } => "a whole number",
        Form::IntOrText => "a number or a text",
        Form::Boolean => "true or false",
        Form::Anything | Form::Nothing => "nothing",
    }
}

/// What a value is called.
pub(crate) const fn value_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "nothing",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}
