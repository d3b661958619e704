//! The value tree: what a document says and where each part of it stands.

use std::fmt;

use serde_json::Number;

/// A place in a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mark {
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
}

impl Mark {
    /// The first place of a text.
    pub const START: Self = Self { line: 1, column: 1 };
}

/// A value and where it stands.
#[derive(Clone, PartialEq)]
pub struct Node {
    /// Where it begins.
    pub mark: Mark,
    /// The byte at which it begins, for finding its text again.
    pub offset: u32,
    /// How many bytes its text has.
    pub size: u32,
    /// What it is.
    pub value: Value,
}

/// What a value is: JSON's kinds.
#[derive(Clone, PartialEq)]
pub enum Value {
    /// Nothing.
    Null,
    /// `true` or `false`, in all of YAML 1.1's spellings.
    Bool(bool),
    /// A number.
    Number(Number),
    /// A text.
    Text(Box<str>),
    /// A list.
    List(Vec<Node>),
    /// A mapping, in the order of the text, every key once.
    Map(Vec<Entry>),
}

/// A key, its place and its value.
#[derive(Clone, PartialEq)]
pub struct Entry {
    /// The key.
    pub key: Box<str>,
    /// Where the key stands.
    pub mark: Mark,
    /// Its value.
    pub node: Node,
}

/// Values may be secrets: only the place is shown.
impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Node({}:{})", self.mark.line, self.mark.column)
    }
}

impl Node {
    /// The value of a key, if this is a mapping that has it.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Self> {
        self.entry(key).map(|entry| &entry.node)
    }

    /// The entry of a key, if this is a mapping that has it.
    #[must_use]
    pub fn entry(&self, key: &str) -> Option<&Entry> {
        match &self.value {
            Value::Map(entries) => entries.iter().find(|entry| *entry.key == *key),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Text(_) | Value::List(_) => {
                None
            }
        }
    }

    /// The text, if this is one.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        match &self.value {
            Value::Text(text) => Some(text),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::List(_) | Value::Map(_) => {
                None
            }
        }
    }

    /// The same as a JSON value.
    #[must_use]
    pub fn to_json(&self) -> serde_json::Value {
        match &self.value {
            Value::Null => serde_json::Value::Null,
            Value::Bool(value) => serde_json::Value::Bool(*value),
            Value::Number(number) => serde_json::Value::Number(number.clone()),
            Value::Text(text) => serde_json::Value::String(text.as_ref().to_owned()),
            Value::List(items) => {
                serde_json::Value::Array(items.iter().map(Self::to_json).collect())
            }
            Value::Map(entries) => serde_json::Value::Object(
                entries
                    .iter()
                    .map(|entry| (entry.key.as_ref().to_owned(), entry.node.to_json()))
                    .collect(),
            ),
        }
    }

    /// How many values this is made of and how many bytes of text they hold.
    pub(crate) fn weight(&self) -> (usize, usize) {
        match &self.value {
            Value::Null | Value::Bool(_) | Value::Number(_) => (1, 0),
            Value::Text(text) => (1, text.len()),
            Value::List(items) => items.iter().map(Self::weight).fold((1, 0), add),
            Value::Map(entries) => entries
                .iter()
                .map(|entry| add(entry.node.weight(), (0, entry.key.len())))
                .fold((1, 0), add),
        }
    }

    /// How many collections stand in each other, at the deepest place.
    pub(crate) fn depth(&self) -> usize {
        match &self.value {
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Text(_) => 0,
            Value::List(items) => 1 + items.iter().map(Self::depth).max().unwrap_or(0),
            Value::Map(entries) => {
                1 + entries
                    .iter()
                    .map(|entry| entry.node.depth())
                    .max()
                    .unwrap_or(0)
            }
        }
    }
}

const fn add(a: (usize, usize), b: (usize, usize)) -> (usize, usize) {
    (a.0.saturating_add(b.0), a.1.saturating_add(b.1))
}
