//! The strict walk: a document against its shape, and everything that is wrong with it.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::{
    problem::{FieldPath, Problem, ProblemCode},
    shape::{Field, Form, Node},
    suggestion,
};

/// A place on the way down. Paths are written only where something is wrong.
#[derive(Clone, Copy)]
enum Step<'a> {
    Root,
    Member(&'a Self, &'a str),
    Item(&'a Self, usize),
}

impl Step<'_> {
    fn path(&self) -> FieldPath {
        match self {
            Self::Root => FieldPath::root(),
            Self::Member(above, name) => above.path().member(name),
            Self::Item(above, index) => above.path().item(*index),
        }
    }
}

/// Whose rules a part of a document follows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Law {
    /// Ours: a field without a value is a mistake. `ipRestriction:` with nothing behind it, or with
    /// its content indented wrongly, must not become a route without restriction.
    Ours,
    /// Kubernetes' own: a field without a value is not there.
    Kubernetes,
}

/// How many mistakes of one object are reported: more help nobody, and finding suggestions for the
/// thousands that one object can hold would take long.
const PROBLEMS_MAX: usize = 100;

/// What is wrong with a document, sorted. What stands for nothing is taken out of it,
/// and misspelt names that are understood are put right, for salvage.
///
/// `served` documents come from an API server, which has refused or dropped what its own kinds do
/// not have: a field there that is unknown here is newer than this program, not misspelt.
pub(crate) fn walk(document: &mut Value, shape: &Node, custom: bool, served: bool) -> Vec<Problem> {
    let mut walk = Walk {
        problems: Vec::new(),
        overflowed: false,
        whole: shape,
        served,
    };
    walk.node(
        document,
        shape,
        &Step::Root,
        if custom { Law::Ours } else { Law::Kubernetes },
    );
    walk.problems.sort();
    if walk.overflowed {
        let message = format!("more than {PROBLEMS_MAX} mistakes: the others are not listed");
        walk.problems.insert(
            0,
            Problem::new(FieldPath::root(), ProblemCode::Undecodable, message, ""),
        );
    }
    walk.problems
}

struct Walk<'a> {
    problems: Vec<Problem>,
    /// Whether there were too many of them.
    overflowed: bool,
    /// The whole shape, to tell where a misplaced field belongs.
    whole: &'a Node,
    /// Whether it comes from an API server.
    served: bool,
}

impl Walk<'_> {
    fn report(
        &mut self,
        at: &Step<'_>,
        code: ProblemCode,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        self.push(Problem::new(at.path(), code, message, remedy));
    }

    fn push(&mut self, problem: Problem) {
        if self.problems.len() < PROBLEMS_MAX {
            self.problems.push(problem);
        } else {
            self.overflowed = true;
        }
    }

    fn node(&mut self, value: &mut Value, node: &Node, at: &Step<'_>, law: Law) {
        match (&node.form, &mut *value) {
            (Form::Object(fields), Value::Object(map)) => self.object(map, fields, at, law),
            (Form::Choice(fields), Value::Object(map)) => self.choice(map, fields, at, law),
            (Form::Map(inner), Value::Object(map)) => {
                for (name, value) in map {
                    self.node(value, inner, &Step::Member(at, name), Law::Ours);
                }
            }
            (Form::List(inner), Value::Array(items)) => {
                for (index, item) in items.iter_mut().enumerate() {
                    self.node(item, inner, &Step::Item(at, index), law);
                }
            }
            (Form::Word { words, .. }, Value::String(text)) => self.word(text, words, at),
            (Form::Integer { min, max }, Value::Number(number)) => match number.as_i64() {
                Some(whole) if (*min..=*max).contains(&whole) => {}
                None if !number.is_u64() => {
                    self.report(
                        at,
                        ProblemCode::WrongType,
                        format!("{number} is not a whole number"),
                        "",
                    );
                }
                Some(_) | None => {
                    let message = format!("{number} is not between {min} and {max}");
                    self.report(at, ProblemCode::OutOfRange, message, "");
                }
            },
            (Form::Text, Value::String(_))
            | (Form::IntOrText, Value::String(_) | Value::Number(_))
            | (Form::Boolean, Value::Bool(_))
            | (Form::RawObject, Value::Object(_))
            | (Form::Anything, _) => {}
            (_, value) => return self.wrong_type(value, node, at),
        }
        if node.not_empty && is_empty(value) {
            self.empty(node, at);
        } else if let Some(rule) = node.rule {
            // Of one field only the first mistake: what is misspelt or without value is not missing.
            for problem in rule.check(value, &at.path()) {
                if !self.problems.iter().any(|known| known.path == problem.path) {
                    self.push(problem);
                }
            }
        }
    }

    fn object(
        &mut self,
        map: &mut Map<String, Value>,
        fields: &BTreeMap<String, Field>,
        at: &Step<'_>,
        law: Law,
    ) {
        let mut renamed: Vec<(String, String)> = Vec::new();
        for (name, value) in map.iter_mut() {
            let here = Step::Member(at, name);
            // What stands around the content is Kubernetes' own, in our kinds too.
            let law = if matches!(at, Step::Root) && name == "metadata" {
                Law::Kubernetes
            } else {
                law
            };
            match fields.get(name) {
                Some(field) if !value.is_null() => self.node(value, &field.node, &here, law),
                Some(field) if law == Law::Ours && field.node.form != Form::Anything => {
                    self.no_value(name, &here);
                }
                Some(_) => {}
                None if self.served && law == Law::Kubernetes => {}
                None if self.problems.len() >= PROBLEMS_MAX => self.overflowed = true,
                None => {
                    let advice = suggestion::unknown_field(&at.path(), name, fields, self.whole);
                    self.report(
                        &here,
                        ProblemCode::UnknownField,
                        advice.message,
                        advice.remedy,
                    );
                    if let Some((meant, field)) = advice.meant.filter(|_| !value.is_null()) {
                        // What stands under a misspelt name is judged too: all mistakes at once.
                        self.node(value, &field.node, &here, law);
                        renamed.push((name.clone(), meant));
                    }
                }
            }
        }
        // From here on the field counts as there: it is not missing, and salvage finds it.
        for (name, meant) in renamed {
            if !map.contains_key(&meant)
                && let Some(value) = map.remove(&name)
            {
                map.insert(meant, value);
            }
        }
        for (name, field) in fields {
            if field.required
                && map
                    .get(name)
                    .is_none_or(|value| value.is_null() && law == Law::Kubernetes)
            {
                let what = suggestion::purpose(&field.node);
                let message = format!("{name} is missing{what}");
                self.report(
                    &Step::Member(at, name),
                    ProblemCode::MissingField,
                    message,
                    "",
                );
            }
        }
        if law == Law::Kubernetes {
            map.retain(|_, value| !value.is_null());
        }
    }

    fn choice(
        &mut self,
        map: &mut Map<String, Value>,
        fields: &BTreeMap<String, Field>,
        at: &Step<'_>,
        law: Law,
    ) {
        self.object(map, fields, at, law);
        let chosen: Vec<&str> = map
            .keys()
            .filter(|name| fields.contains_key(*name))
            .map(String::as_str)
            .collect();
        let all = || suggestion::listing(fields.keys().map(String::as_str), "or");
        match chosen.as_slice() {
            [_] => {}
            [] if map.is_empty() => {
                let message = format!("one of {} is needed here", all());
                self.report(at, ProblemCode::ChooseOne, message, "write exactly one");
            }
            // Only unknown ones, which have been reported.
            [] => {}
            several => {
                let message = format!(
                    "{} exclude one another",
                    suggestion::listing(several.iter().copied(), "and")
                );
                self.report(at, ProblemCode::ChooseOne, message, "keep exactly one");
            }
        }
    }

    fn word(&mut self, text: &str, words: &[String], at: &Step<'_>) {
        if words.iter().any(|word| word == text) {
            return;
        }
        let remedy = match suggestion::nearest(text, words.iter().map(String::as_str)) {
            Some(word) => format!("did you mean {word}?"),
            None => String::new(),
        };
        let message = format!(
            "{text:?} is not {}",
            suggestion::listing(words.iter().map(String::as_str), "or")
        );
        self.report(at, ProblemCode::NotAllowedValue, message, remedy);
    }

    fn no_value(&mut self, name: &str, at: &Step<'_>) {
        self.report(
            at,
            ProblemCode::NoValue,
            format!("{name} has no value"),
            "indent what belongs to it below it, or remove the line",
        );
    }

    fn empty(&mut self, node: &Node, at: &Step<'_>) {
        let (what, remedy) = match &node.form {
            Form::List(_) => ("the list is empty", "name at least one entry"),
            Form::Text => ("the text is empty", "write a value"),
            Form::Object(_)
            | Form::Choice(_)
            | Form::Map(_)
            | Form::Word { .. }
            | Form::Integer { .. }
            | Form::IntOrText
            | Form::Boolean
            | Form::RawObject
            | Form::Anything
            | Form::Nothing => (
                "nothing stands in it, so it would do nothing",
                "fill it in or remove it",
            ),
        };
        self.report(at, ProblemCode::Empty, what, remedy);
    }

    fn wrong_type(&mut self, value: &Value, node: &Node, at: &Step<'_>) {
        if value.is_null() {
            self.report(
                at,
                ProblemCode::NoValue,
                "the entry has no value",
                "write a value or remove the entry",
            );
            return;
        }
        let remedy = match (&node.form, value) {
            // `1.2` and `true` are texts only in quotes. The value may be a secret's: not repeated.
            (Form::Text | Form::Word { .. }, Value::Number(_) | Value::Bool(_)) => {
                "put the value in quotes"
            }
            (Form::Integer { .. } | Form::Boolean, Value::String(_)) => "remove the quotes",
            (Form::Choice(_), _) => "write one field below it, with its name",
            (Form::List(_), _) => "write a list, with a hyphen before each entry",
            _ => "",
        };
        let message = format!(
            "{} is needed here, not {}",
            suggestion::form_name(&node.form),
            suggestion::value_name(value)
        );
        self.report(at, ProblemCode::WrongType, message, remedy);
    }
}

/// Whether there is nothing in it. A text of blanks is empty (R14).
fn is_empty(value: &Value) -> bool {
    match value {
        Value::String(text) => text.trim().is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Null => true,
        Value::Bool(_) | Value::Number(_) => false,
    }
}
