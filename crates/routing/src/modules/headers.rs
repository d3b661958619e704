//! Changes of headers: removal, then addition, so that naming one in both replaces it (edge API,
//! `request_headers` and `response_headers`). They are applied last; no other module sees them.
//!
//! Names that the edge itself answers for cannot be changed: framing and hop-by-hop headers, what
//! the edge says of the client, and the error code. Values are taken literally; the edge API's
//! `${…}` expressions are not enforced, and so are refused rather than sent as text (R10).

use model::module::HeaderChanges;

use crate::headers::{
    ERROR_CODE, added, is_token,
    names::{HOP_BY_HOP, is_spelling},
};

/// Longest name, in bytes.
pub const NAME_BYTES_MAX: usize = 256;
/// Longest value, in bytes.
pub const VALUE_BYTES_MAX: usize = 4096;

/// Whose headers are changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Direction {
    /// Requests, on their way to a backend.
    Request,
    /// Responses, on their way to the client.
    Response,
}

/// Why a change of headers may not be made. Holds the header's name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum HeaderProblem {
    /// Not a header name in lower case, or too long.
    #[error("{0:?} is not a header name")]
    Name(String),
    /// A value that no header has: control characters, spaces at its ends, too long.
    #[error(
        "the value of header {0} is not allowed: no control characters, no spaces at its ends, at most {VALUE_BYTES_MAX} bytes"
    )]
    Value(String),
    /// A value with an expression in it.
    #[error("the value of header {0} holds an expression, which this edge does not enforce yet")]
    Expression(String),
    /// A name that the edge answers for.
    #[error("header {0} is set by the edge and cannot be changed")]
    Protected(String),
    /// `host` removed and not added: a request must have one.
    #[error("header host cannot be removed without adding another")]
    HostRemoved,
}

/// Changes of headers, compiled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeaderEdits {
    direction: Direction,
    /// In requests with `-` for every separator, since any spelling is removed.
    removed: Box<[Box<str>]>,
    /// For requests: the added names with `-` for every separator. A client's look-alike of one
    /// must not stand beside it (R16).
    twins: Box<[Box<str>]>,
    added: Box<[(Box<str>, Box<str>)]>,
    host: Option<Box<str>>,
}

impl HeaderEdits {
    /// Compiles changes. Whether they are enabled is for the caller to ask.
    ///
    /// # Errors
    /// The first of [`problems`].
    pub fn compile(direction: Direction, changes: &HeaderChanges) -> Result<Self, HeaderProblem> {
        if let Some(problem) = problems(direction, changes).into_iter().next() {
            return Err(problem);
        }
        let HeaderChanges {
            enabled: _,
            add,
            remove,
        } = changes;
        let spelling = |name: &str| -> Box<str> {
            match direction {
                Direction::Request => name
                    .chars()
                    .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
                    .collect(),
                Direction::Response => name.into(),
            }
        };
        let replaces_host = |name: &str| direction == Direction::Request && name == "host";
        Ok(Self {
            direction,
            removed: remove
                .iter()
                .filter(|name| !replaces_host(name))
                .map(|name| spelling(name))
                .collect(),
            twins: match direction {
                Direction::Request => add
                    .keys()
                    .filter(|name| !replaces_host(name))
                    .map(|name| spelling(name))
                    .collect(),
                Direction::Response => Box::default(),
            },
            added: add
                .iter()
                .filter(|(name, _)| !replaces_host(name))
                .map(|(name, value)| (name.as_str().into(), value.as_str().into()))
                .collect(),
            host: add
                .get("host")
                .filter(|_| replaces_host("host"))
                .map(|value| value.as_str().into()),
        })
    }

    /// Whether the original header of this name is removed: in requests in every spelling that a
    /// backend may take for it (R16).
    #[must_use]
    pub fn removes(&self, name: &[u8]) -> bool {
        match self.direction {
            Direction::Request => {
                self.removed
                    .iter()
                    .any(|removed| is_spelling(name, removed))
                    || (self.twins.iter().any(|twin| is_spelling(name, twin)) && !self.adds(name))
            }
            Direction::Response => self
                .removed
                .iter()
                .any(|removed| name.eq_ignore_ascii_case(removed.as_bytes())),
        }
    }

    /// Whether exactly this header is added to: then the client's own stays, as the edge API has it.
    fn adds(&self, name: &[u8]) -> bool {
        let mut added = self.added.iter();
        added.any(|(added, _)| name.eq_ignore_ascii_case(added.as_bytes()))
    }

    /// Names and values to append, by name, after the removal.
    pub fn added(&self) -> impl Iterator<Item = (&str, &str)> {
        self.added.iter().map(|(name, value)| (&**name, &**value))
    }

    /// What replaces `Host` in requests: a header that exists once is never appended to.
    #[must_use]
    pub fn host(&self) -> Option<&str> {
        self.host.as_deref()
    }
}

/// Everything that is wrong with changes, sorted: for those who write them.
#[must_use]
pub fn problems(direction: Direction, changes: &HeaderChanges) -> Vec<HeaderProblem> {
    let HeaderChanges {
        enabled: _,
        add,
        remove,
    } = changes;
    let mut problems = Vec::new();
    for name in add.keys().chain(remove) {
        if !is_name(name) {
            problems.push(HeaderProblem::Name(name.clone()));
        } else if is_protected(direction, name) {
            problems.push(HeaderProblem::Protected(name.clone()));
        }
    }
    for (name, value) in add {
        if value.contains("${") {
            problems.push(HeaderProblem::Expression(name.clone()));
        } else if !is_value(value) || (name == "host" && value.is_empty()) {
            problems.push(HeaderProblem::Value(name.clone()));
        }
    }
    if direction == Direction::Request && remove.contains("host") && !add.contains_key("host") {
        problems.push(HeaderProblem::HostRemoved);
    }
    problems.sort_unstable();
    problems.dedup();
    problems
}

fn is_name(name: &str) -> bool {
    (1..=NAME_BYTES_MAX).contains(&name.len())
        && name
            .bytes()
            .all(|byte| is_token(byte) && !byte.is_ascii_uppercase())
}

fn is_value(value: &str) -> bool {
    value.len() <= VALUE_BYTES_MAX
        && value.trim_matches([' ', '\t']).len() == value.len()
        && value
            .bytes()
            .all(|byte| matches!(byte, b'\t' | b' '..=b'~' | 0x80..=0xff))
}

/// Whether the edge answers for a header, in whatever spelling.
fn is_protected(direction: Direction, name: &str) -> bool {
    const REQUEST: [&str; 4] = [
        "content-length",
        "expect",
        "user-agent",
        "ngrok-skip-browser-warning",
    ];
    const RESPONSE: [&str; 2] = ["content-length", ERROR_CODE];
    let is_any = |names: &[&str]| {
        names
            .iter()
            .any(|entry| is_spelling(name.as_bytes(), entry))
    };
    HOP_BY_HOP.contains(name.as_bytes())
        || match direction {
            Direction::Request => {
                is_any(&REQUEST)
                    || is_any(&added::ALL)
                    || ["ngrok-auth-", "ngrok-mtls-", "sec-websocket-"]
                        .iter()
                        .any(|family| {
                            name.get(..family.len())
                                .is_some_and(|head| is_spelling(head.as_bytes(), family))
                        })
            }
            Direction::Response => is_any(&RESPONSE),
        }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn look_alikes_of_added_request_headers_do_not_pass_beside_them() {
        let compile = |direction, add, remove| {
            HeaderEdits::compile(direction, &changes(add, remove)).expect("sound")
        };
        let edits = compile(
            Direction::Request,
            &[("x-mod", "1"), ("x_old", "1")],
            &["x_gone"],
        );
        for name in ["x_mod", "X.Mod", "x-old", "X-Gone", "x_gone"] {
            assert!(edits.removes(name.as_bytes()), "{name}");
        }
        for name in ["X-Mod", "x_old", "x-mode", "xmod"] {
            assert!(!edits.removes(name.as_bytes()), "{name}");
        }
        let edits = compile(Direction::Response, &[("x-mod", "1")], &[]);
        assert!(!edits.removes(b"x_mod"));
    }

    fn changes(add: &[(&str, &str)], remove: &[&str]) -> HeaderChanges {
        HeaderChanges {
            enabled: true,
            add: add
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect(),
            remove: remove.iter().map(|name| (*name).to_owned()).collect(),
        }
    }

    #[test]
    fn removal_comes_before_addition_and_host_is_replaced() {
        let both = changes(
            &[("x-a", "1"), ("host", "other.example")],
            &["x-a", "x-b", "host"],
        );
        let edits = HeaderEdits::compile(Direction::Request, &both).expect("allowed");
        assert!(edits.removes(b"X-A") && edits.removes(b"x_b") && !edits.removes(b"x-c"));
        assert!(!edits.removes(b"host"), "the proxy writes Host, once");
        assert_eq!(edits.added().collect::<Vec<_>>(), [("x-a", "1")]);
        assert_eq!(edits.host(), Some("other.example"));
        let response =
            HeaderEdits::compile(Direction::Response, &changes(&[("host", "x")], &["x_b"]))
                .expect("allowed");
        assert!(response.removes(b"X_B") && !response.removes(b"x-b") && response.host().is_none());
    }

    #[test]
    fn what_the_edge_answers_for_cannot_be_changed() {
        use HeaderProblem::{Expression, HostRemoved, Name, Protected, Value};
        let problem = |direction, add: &[(&str, &str)], remove: &[&str]| {
            problems(direction, &changes(add, remove))
        };
        for name in [
            "connection",
            "transfer-encoding",
            "content-length",
            "content_length",
            "te",
            "upgrade",
            "user-agent",
            "x-forwarded-for",
            "x_forwarded_for",
            "x-forwarded-proto",
            "x-forwarded-host",
            "x-request-id",
            "ngrok-auth-user-email",
            "ngrok-mtls-subject-cn",
            "ngrok-skip-browser-warning",
            "sec-websocket-key",
        ] {
            let protected = [Protected(name.to_owned())];
            assert_eq!(
                problem(Direction::Request, &[(name, "v")], &[]),
                protected,
                "{name}"
            );
            assert_eq!(
                problem(Direction::Request, &[], &[name]),
                protected,
                "{name}"
            );
        }
        for name in [
            "connection",
            "content-length",
            "ngrok-error-code",
            "trailer",
        ] {
            assert_eq!(
                problem(Direction::Response, &[], &[name]),
                [Protected(name.to_owned())],
                "{name}"
            );
        }
        for name in ["", "X-A", "a b", "a:b", "ä", "a\r\nb"] {
            assert_eq!(
                problem(Direction::Request, &[], &[name]),
                [Name(name.to_owned())],
                "{name}"
            );
        }
        for value in [
            "a\r\nb: c",
            "a\0",
            " a",
            "a\t",
            &"a".repeat(VALUE_BYTES_MAX + 1),
        ] {
            assert_eq!(
                problem(Direction::Request, &[("x-a", value)], &[]),
                [Value("x-a".to_owned())],
                "{value}"
            );
        }
        assert_eq!(
            problem(Direction::Request, &[("x-a", "${.ngrok.client_ip}")], &[]),
            [Expression("x-a".to_owned())]
        );
        assert_eq!(problem(Direction::Request, &[], &["host"]), [HostRemoved]);
        assert_eq!(
            problem(
                Direction::Request,
                &[("x-a", "$5 {}"), ("x-b", "ü")],
                &["x-c"]
            ),
            []
        );
    }
}
