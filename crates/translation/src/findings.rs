//! How findings are made, gathered and weighed.

use std::collections::BTreeSet;

use model::{
    diagnostic::{Cause, Diagnostic, Position, Severity},
    object::ObjectRef,
};
use resources::{
    position::Origin,
    problem::{FieldPath, Problem, shown},
};

use crate::codes::Code;

/// An object that findings point to: its name and where it came from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Site<'a> {
    pub(crate) object: &'a ObjectRef,
    pub(crate) origin: &'a Origin,
}

impl Site<'_> {
    /// A finding about a field of this object.
    pub(crate) fn finding(
        self,
        code: Code,
        field: &FieldPath,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Diagnostic {
        fit(Diagnostic {
            object: self.object.clone(),
            field: field.as_str().to_owned(),
            position: position(self.origin, field),
            code: code.name().to_owned(),
            severity: code.severity(),
            cause: code.cause(),
            message: message.into(),
            remedy: remedy.into(),
        })
    }

    /// What is wrong with this object in itself.
    pub(crate) fn problem(self, problem: &Problem) -> Diagnostic {
        let Problem {
            path,
            code,
            message,
            remedy,
        } = problem;
        fit(Diagnostic {
            object: self.object.clone(),
            field: path.as_str().to_owned(),
            position: position(self.origin, path),
            code: code.name().to_owned(),
            severity: Severity::Error,
            cause: Cause::Invalid,
            message: message.clone(),
            remedy: remedy.clone(),
        })
    }
}

/// Most letters of a name, as Kubernetes has it; one in a file may be anything.
const NAME_CHARS_MAX: usize = 253;

/// A finding fit to be shown: nothing of a user's in it is longer than helps. Every finding is
/// made through this.
pub(crate) fn fit(finding: Diagnostic) -> Diagnostic {
    let name = |text: String| match text.char_indices().nth(NAME_CHARS_MAX) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text,
    };
    let Diagnostic {
        object,
        field,
        position,
        code,
        severity,
        cause,
        message,
        remedy,
    } = finding;
    // A file's name is how it is found again, and bounded by the system.
    let object = if object.kind == FILE {
        object
    } else {
        ObjectRef {
            kind: shown(&object.kind),
            namespace: name(object.namespace),
            name: name(object.name),
        }
    };
    Diagnostic {
        object,
        field: shown(&field),
        position,
        code,
        severity,
        cause,
        message: shown(&message),
        remedy: shown(&remedy),
    }
}

/// What stands for the kind in findings on files and directories.
pub(crate) const FILE: &str = "File";

fn position(origin: &Origin, field: &FieldPath) -> Option<Position> {
    origin.place(field).map(|place| Position {
        file: place.file.to_string(),
        line: place.at.line,
        column: place.at.column,
    })
}

/// What findings mean for what they are about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// At most notices.
    Sound,
    /// Preflight failed.
    Invalid,
    /// Something has not been read; that outweighs every error (R19: nothing changes).
    Pending,
}

/// Findings about one thing, with the objects that they hang on.
#[derive(Clone, Debug, Default)]
pub(crate) struct Findings {
    pub(crate) diagnostics: Vec<Diagnostic>,
    /// Protective objects that were found and relied upon.
    pub(crate) rests_on: BTreeSet<ObjectRef>,
    /// Protective objects whose absence is why (R2).
    pub(crate) missing: BTreeSet<ObjectRef>,
}

impl Findings {
    pub(crate) fn push(&mut self, diagnostic: Diagnostic) {
        self.diagnostics.push(diagnostic);
    }

    /// A finding whose reason is that a protective object, or what is needed of it, is not there.
    pub(crate) fn push_missing(&mut self, object: ObjectRef, diagnostic: Diagnostic) {
        self.missing.insert(object);
        self.diagnostics.push(diagnostic);
    }

    /// Takes over everything found elsewhere.
    pub(crate) fn absorb(&mut self, other: &Self) {
        let Self {
            diagnostics,
            rests_on,
            missing,
        } = other;
        self.diagnostics.extend_from_slice(diagnostics);
        self.rests_on.extend(rests_on.iter().cloned());
        self.missing.extend(missing.iter().cloned());
    }

    pub(crate) fn verdict(&self) -> Verdict {
        let mut verdict = Verdict::Sound;
        for diagnostic in &self.diagnostics {
            match (diagnostic.severity, diagnostic.cause) {
                (Severity::Error, Cause::Pending) => return Verdict::Pending,
                (Severity::Error, _) => verdict = Verdict::Invalid,
                (Severity::Warning, _) => {}
            }
        }
        verdict
    }
}
