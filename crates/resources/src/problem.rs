//! What is wrong with one object in itself.

use std::{borrow::Cow, fmt};

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
            message: shown(&message.into()),
            remedy: shown(&remedy.into()),
        }
    }
}

/// Most letters of one word, or of one text between quotes, in a sentence for people: more was
/// written by a user, helps nobody, and may fill a terminal.
pub const VALUE_CHARS_MAX: usize = 80;

/// Most letters of such a sentence.
pub const SENTENCE_CHARS_MAX: usize = 600;

/// A sentence fit to be shown: whatever of a user's stands in it is cut where it is too long. The
/// one place where that is done; every finding goes through it.
#[must_use]
pub fn shown(text: &str) -> String {
    if text.len() <= VALUE_CHARS_MAX {
        return text.to_owned();
    }
    let mut out = String::new();
    let mut rest = text;
    // A piece that is cut costs at least as many letters as it may have: the end comes soon.
    while !rest.is_empty() && out.len() < SENTENCE_CHARS_MAX * 4 {
        let (piece, quote, after) = piece(rest);
        out.push_str(&cut(piece, VALUE_CHARS_MAX));
        if quote && piece.chars().nth(VALUE_CHARS_MAX).is_some() {
            out.push('"');
        }
        rest = after;
    }
    cut(&out, SENTENCE_CHARS_MAX).into_owned()
}

/// The first `most` letters, and a sign where there were more.
fn cut(text: &str, most: usize) -> Cow<'_, str> {
    match text.char_indices().nth(most) {
        Some((end, _)) => Cow::Owned(format!("{}…", &text[..end])),
        None => Cow::Borrowed(text),
    }
}

/// The text up to the end of its first quotation, word or space; whether it is a quotation; and
/// what follows.
fn piece(text: &str) -> (&str, bool, &str) {
    let (end, quote) = match text.strip_prefix('"').and_then(closing) {
        Some(end) => (1 + end, true),
        None => {
            let ends = |(at, letter): &(usize, char)| {
                *at > 0 && (letter.is_whitespace() || *letter == '"')
            };
            let blank = text.starts_with(char::is_whitespace);
            let end = match text.char_indices().nth(1) {
                Some((end, _)) if blank => end,
                Some(_) => text
                    .char_indices()
                    .find(ends)
                    .map_or(text.len(), |(at, _)| at),
                None => text.len(),
            };
            (end, false)
        }
    };
    let (piece, after) = text.split_at(end);
    (piece, quote, after)
}

/// Where a quotation ends, behind its closing quote; a quote behind a backslash is part of it.
fn closing(text: &str) -> Option<usize> {
    let mut escaped = false;
    for (at, letter) in text.char_indices() {
        match letter {
            '"' if !escaped => return Some(at + 1),
            '\\' if !escaped => escaped = true,
            _ => escaped = false,
        }
    }
    None
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
        let expected = format!("there is no kind {}… here", "é".repeat(VALUE_CHARS_MAX));
        assert_eq!(problem.message, expected);
    }

    #[test]
    fn long_quotations_of_users_are_cut_whatever_stands_in_them() {
        assert_eq!(
            shown("the path \"/a b\" is long"),
            "the path \"/a b\" is long"
        );
        let value = "a \"b\" c\n".repeat(1000);
        let text = shown(&format!("the value {value:?} cannot be used"));
        assert!(text.starts_with("the value \"a \\\"b\\\" c"), "{text}");
        assert!(text.ends_with("…\" cannot be used"), "{text}");
        assert!(text.chars().count() < 120, "{text}");
        for text in [
            "\"",
            "\"\"\"",
            "a ",
            "é",
            &"\" ".repeat(10_000),
            &" ".repeat(10_000),
        ] {
            assert!(
                shown(text).chars().count() <= SENTENCE_CHARS_MAX + 1,
                "{text}"
            );
        }
    }
}
