//! How findings are made, gathered and weighed.

use std::collections::BTreeSet;

use model::{
    diagnostic::{Cause, Diagnostic, Position, Severity},
    object::ObjectRef,
};
use resources::{
    position::Origin,
    problem::{FieldPath, Problem},
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
        Diagnostic {
            object: self.object.clone(),
            field: field.as_str().to_owned(),
            position: position(self.origin, field),
            code: code.name().to_owned(),
            severity: code.severity(),
            cause: code.cause(),
            message: shown(&message.into()),
            remedy: shown(&remedy.into()),
        }
    }

    /// What is wrong with this object in itself.
    pub(crate) fn problem(self, problem: &Problem) -> Diagnostic {
        let Problem {
            path,
            code,
            message,
            remedy,
        } = problem;
        Diagnostic {
            object: self.object.clone(),
            field: path.as_str().to_owned(),
            position: position(self.origin, path),
            code: code.name().to_owned(),
            severity: Severity::Error,
            cause: Cause::Invalid,
            message: shown(message),
            remedy: shown(remedy),
        }
    }
}

/// Most characters of one word of a message: a user's value may be much longer.
const WORD_CHARS_MAX: usize = 120;
/// Most characters of a message.
const MESSAGE_CHARS_MAX: usize = 2000;

/// A text with its long words cut, so that a user's value cannot bury what is said about it.
fn shown(text: &str) -> String {
    let cut = |text: &str, most: usize| match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    };
    let words: Vec<String> = text
        .split(' ')
        .map(|word| {
            let short = cut(word, WORD_CHARS_MAX);
            match word.strip_suffix(':').unwrap_or(word).chars().next_back() {
                // The closing quote stays where there was one.
                Some('"') if short.len() < word.len() => format!("{short}\""),
                _ => short,
            }
        })
        .collect();
    cut(&words.join(" "), MESSAGE_CHARS_MAX)
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_values_are_shown_short() {
        assert_eq!(shown("the path \"/a\" is long"), "the path \"/a\" is long");
        let long = "ä".repeat(5000);
        let text = shown(&format!("the path \"{long}\" cannot be matched"));
        assert!(text.chars().count() < 180, "{text}");
        assert!(text.ends_with("ä…\" cannot be matched"), "{text}");
        assert!(shown(&"a ".repeat(5000)).chars().count() <= MESSAGE_CHARS_MAX + 1);
    }
}
