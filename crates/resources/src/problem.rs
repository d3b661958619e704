//! What is wrong with one object in itself.

use std::{cmp::Ordering, fmt};

/// The place of a field in an object, as Kubernetes writes it: `spec.rules[0].host`,
/// `metadata.annotations[k8s.ngrok.com/modules]`; empty for the object as a whole.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FieldPath(String);

impl FieldPath {
    /// The object as a whole.
    #[must_use]
    pub const fn root() -> Self {
        Self(String::new())
    }

    /// The member `name`; in brackets where a dotted name could not be read back.
    #[must_use]
    pub fn member(&self, name: &str) -> Self {
        let plain = !name.is_empty()
            && name
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
        match (plain, self.0.is_empty()) {
            (true, true) => Self(name.to_owned()),
            (true, false) => Self(format!("{}.{name}", self.0)),
            (false, _) => Self(format!("{}[{name}]", self.0)),
        }
    }

    /// The list item at `index`.
    #[must_use]
    pub fn item(&self, index: usize) -> Self {
        Self(format!("{}[{index}]", self.0))
    }

    /// What contains it; `None` for the whole. A guess where a name itself holds brackets, good
    /// enough to find a position nearby.
    #[must_use]
    pub fn parent(&self) -> Option<Self> {
        if self.0.is_empty() {
            return None;
        }
        let end = if self.0.ends_with(']') {
            self.0.rfind('[')
        } else {
            self.0.rfind('.')
        };
        Some(Self(self.0[..end.unwrap_or(0)].to_owned()))
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<&str> for FieldPath {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

/// What kind of mistake it is: a stable name, documented for users.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ProblemCode {
    /// `unknown-field`: no such field here.
    UnknownField,
    /// `wrong-type`: a list where a text is needed, and the like.
    WrongType,
    /// `missing-field`: a field that is needed is not there.
    MissingField,
    /// `no-value`: the field is there and nothing behind it.
    NoValue,
    /// `empty`: an empty text, list or object where emptiness would mean "nothing to check" (R14).
    Empty,
    /// `not-allowed-value`: not one of the words that may stand here.
    NotAllowedValue,
    /// `out-of-range`: a number that is too small or too large.
    OutOfRange,
    /// `bad-duration`.
    BadDuration,
    /// `bad-quantity`.
    BadQuantity,
    /// `bad-cidr`.
    BadCidr,
    /// `bad-value`: a text that is not what it should be (an e-mail domain, a header name, …).
    BadValue,
    /// `choose-one`: none or several where exactly one is needed.
    ChooseOne,
    /// `contradiction`: two fields that do not go together.
    Contradiction,
    /// `duplicate`: said twice.
    Duplicate,
    /// `unknown-kind`: no such kind in one of our groups.
    UnknownKind,
    /// `wrong-version`: a known kind under another group or version.
    WrongVersion,
    /// `too-large`: more than this program is willing to read.
    TooLarge,
    /// `undecodable`: does not decode, for a reason that only the decoder knows.
    Undecodable,
    /// `unreadable`: a file that could not be read, or does not parse, as a whole (R19).
    Unreadable,
}

impl ProblemCode {
    /// Every code.
    pub const ALL: [Self; 19] = [
        Self::UnknownField,
        Self::WrongType,
        Self::MissingField,
        Self::NoValue,
        Self::Empty,
        Self::NotAllowedValue,
        Self::OutOfRange,
        Self::BadDuration,
        Self::BadQuantity,
        Self::BadCidr,
        Self::BadValue,
        Self::ChooseOne,
        Self::Contradiction,
        Self::Duplicate,
        Self::UnknownKind,
        Self::WrongVersion,
        Self::TooLarge,
        Self::Undecodable,
        Self::Unreadable,
    ];

    /// The stable name, kebab case.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::UnknownField => "unknown-field",
            Self::WrongType => "wrong-type",
            Self::MissingField => "missing-field",
            Self::NoValue => "no-value",
            Self::Empty => "empty",
            Self::NotAllowedValue => "not-allowed-value",
            Self::OutOfRange => "out-of-range",
            Self::BadDuration => "bad-duration",
            Self::BadQuantity => "bad-quantity",
            Self::BadCidr => "bad-cidr",
            Self::BadValue => "bad-value",
            Self::ChooseOne => "choose-one",
            Self::Contradiction => "contradiction",
            Self::Duplicate => "duplicate",
            Self::UnknownKind => "unknown-kind",
            Self::WrongVersion => "wrong-version",
            Self::TooLarge => "too-large",
            Self::Undecodable => "undecodable",
            Self::Unreadable => "unreadable",
        }
    }
}

impl fmt::Display for ProblemCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One mistake: where, what, and how to mend it. Sorted by path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    /// The field.
    pub path: FieldPath,
    /// What kind of mistake.
    pub code: ProblemCode,
    /// One sentence without a full stop.
    pub message: String,
    /// One sentence without a full stop; empty if the message says it.
    pub remedy: String,
}

impl Problem {
    /// Puts the parts together.
    pub fn new(
        path: FieldPath,
        code: ProblemCode,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self {
            path,
            code,
            message: shortened(message.into()),
            remedy: shortened(remedy.into()),
        }
    }
}

/// More letters of one word help nobody: it was written by a user, and may fill a terminal.
const WORD_MAX: usize = 120;

/// A text whose words are cut where they are too long.
fn shortened(text: String) -> String {
    if text.len() <= WORD_MAX {
        return text;
    }
    let mut out = String::with_capacity(text.len());
    let mut length = 0;
    for letter in text.chars() {
        length = if letter.is_whitespace() {
            0
        } else {
            length + 1
        };
        match length.cmp(&(WORD_MAX + 1)) {
            Ordering::Less => out.push(letter),
            Ordering::Equal => out.push('…'),
            Ordering::Greater => {}
        }
    }
    out
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.path, self.code, self.message)?;
        if !self.remedy.is_empty() {
            write!(f, " ({})", self.remedy)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_words_of_users_are_cut() {
        let message = format!("there is no kind {} here", "é".repeat(100_000));
        let problem = Problem::new(FieldPath::root(), ProblemCode::UnknownKind, message, "");
        let expected = format!("there is no kind {}… here", "é".repeat(120));
        assert_eq!(problem.message, expected);
    }
}
