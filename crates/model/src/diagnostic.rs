//! What is wrong with a declaration, where, and how to mend it.

use serde::{Deserialize, Serialize};

use crate::object::ObjectRef;

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Something is closed, held or without effect because of it.
    Error,
    /// Nothing is refused for it, but somebody should look.
    Warning,
}

/// Where a text came from.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Position {
    /// The file as the user named it; `-` is standard input.
    pub file: String,
    /// Line, from 1.
    pub line: u32,
    /// Column, from 1.
    pub column: u32,
}

/// What a missing object is to those who need it: decides between hold, grace and waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// The declaration itself is wrong.
    Invalid,
    /// An object, or the key in it, that a protection rests on is not there (R2: lost when served).
    Missing,
    /// Something else that is needed is not there (a Service, a serving certificate).
    Absent,
    /// Something has not been read yet, or could not be (R19).
    Pending,
    /// The declaration is right, but this edge cannot enforce it, or refuses it.
    Unenforceable,
    /// Another declaration or owner stands before it (R5, R20).
    Conflict,
    /// Nothing is refused for it.
    Notice,
}

/// One finding. Values, not errors: translation returns all of them, sorted.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Diagnostic {
    /// The object that must be changed.
    pub object: ObjectRef,
    /// The field in it, `spec.rules[0].host`; empty for the object as a whole.
    pub field: String,
    /// Where that stands, if it came from a file.
    pub position: Option<Position>,
    /// A stable name in kebab case, documented in `docs/reference/diagnostics.md`.
    pub code: String,
    /// How bad it is.
    pub severity: Severity,
    /// What kind of trouble it is.
    pub cause: Cause,
    /// What is wrong, in one sentence without a full stop.
    pub message: String,
    /// What to do about it, in one sentence without a full stop; empty if the message says it.
    pub remedy: String,
}
