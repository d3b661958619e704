//! `headers`: two modules at the edge, one unit in a set. What would break the message, speak for
//! the edge, or is only known while a request runs, is refused.

use std::collections::BTreeSet;

use model::module::{HeaderChanges, ModuleKind};
use resources::{
    module_set::{self as written, Headers},
    problem::FieldPath,
};

use crate::{
    codes::Code,
    preflight::{Judge, Written},
};

/// Most entries of `add`, and of `remove`.
const ENTRIES_MAX: usize = 100;
/// Longest name and longest value, in bytes.
const NAME_BYTES_MAX: usize = 256;
const VALUE_BYTES_MAX: usize = 8 * 1024;

/// Names that frame or route a message (RFC 9110 sections 7.6.1 and 7.8, RFC 9112 section 6).
const FRAMING: [&str; 10] = [
    "connection",
    "content-length",
    "expect",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "proxy-authenticate",
];

/// Names by which the edge itself speaks to backends.
const FORWARDING: [&str; 4] = [
    "forwarded",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-proto",
];

/// Which message is changed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Message {
    Request,
    Response,
}

pub(crate) fn judge(
    judge: &mut Judge<'_, '_>,
    written: &Written<'_, &Headers>,
) -> (Option<HeaderChanges>, Option<HeaderChanges>) {
    // The resource's own rules refuse headers that change nothing.
    let Headers { request, response } = written.content;
    let mut side_of = |message, name, changes: &Option<written::HeaderChanges>| {
        changes
            .as_ref()
            .map(|changes| side(judge, (message, &written.field.member(name)), changes))
    };
    let request = side_of(Message::Request, "request", request);
    let response = side_of(Message::Response, "response", response);
    (request, response)
}

fn side(
    judge: &mut Judge<'_, '_>,
    (message, at): (Message, &FieldPath),
    changes: &written::HeaderChanges,
) -> HeaderChanges {
    let kind = match message {
        Message::Request => ModuleKind::RequestHeaders,
        Message::Response => ModuleKind::ResponseHeaders,
    };
    judge.names(kind, at, changes);
    let written::HeaderChanges { add, remove } = changes;
    for (name, count) in [("add", add.len()), ("remove", remove.len())] {
        if count > ENTRIES_MAX {
            let text = format!("{count} headers are more than {ENTRIES_MAX}");
            judge.report(Code::HeaderInvalid, &at.member(name), text, "change fewer");
        }
    }
    let mut seen = BTreeSet::new();
    for (name, value) in add {
        let field = at.member("add").member(name);
        let lower = name.to_ascii_lowercase();
        if let Some(text) = name_fault(&lower).or_else(|| added_fault(message, &lower)) {
            judge.report(Code::HeaderInvalid, &field, text, "take it out");
        }
        if !seen.insert(lower) {
            let text = format!("{name} is added twice, in two spellings");
            judge.report(Code::HeaderInvalid, &field, text, "keep one of them");
        }
        if value.contains("${") {
            let text = format!(
                "the value of {name} holds a variable, and variables are not filled in by this edge yet"
            );
            judge.report(
                Code::HeaderVariable,
                &field,
                text,
                "write the value itself, or take the header out",
            );
        } else if !is_value(value) {
            let text = format!("the value of {name} cannot be sent in a header");
            judge.report(Code::HeaderInvalid, &field, text, "use visible ASCII characters, blanks and tabs on one line, at most 8 KiB, without blanks at either end");
        }
    }
    let added: BTreeSet<_> = seen;
    for (index, name) in remove.iter().enumerate() {
        let field = at.member("remove").item(index);
        let lower = name.to_ascii_lowercase();
        if let Some(text) = name_fault(&lower).or_else(|| removed_fault(message, &lower, &added)) {
            judge.report(Code::HeaderInvalid, &field, text, "take it out");
        }
    }
    HeaderChanges {
        enabled: true,
        add: add
            .iter()
            .map(|(name, value)| (name.to_ascii_lowercase(), value.clone()))
            .collect(),
        remove: remove
            .iter()
            .map(|name| name.to_ascii_lowercase())
            .collect(),
    }
}

/// RFC 9110 section 5.1: a name is a token.
fn name_fault(name: &str) -> Option<String> {
    let token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    let fine = !name.is_empty() && name.len() <= NAME_BYTES_MAX && name.bytes().all(token);
    (!fine).then(|| format!("{name:?} is not the name of a header"))
}

fn added_fault(message: Message, name: &str) -> Option<String> {
    if FRAMING.contains(&name) {
        return Some(format!(
            "{name} belongs to the connection and cannot be added"
        ));
    }
    if name.starts_with("ngrok-") {
        return Some(format!(
            "{name} is how the edge itself speaks, and cannot be added"
        ));
    }
    if message == Message::Request && FORWARDING.contains(&name) {
        return Some(format!("{name} is set by the edge and cannot be added"));
    }
    (message == Message::Request && name == "user-agent")
        .then(|| String::from("user-agent is what the client says of itself, and cannot be added"))
}

fn removed_fault(message: Message, name: &str, added: &BTreeSet<String>) -> Option<String> {
    if FRAMING.contains(&name) {
        return Some(format!(
            "{name} belongs to the connection and cannot be removed"
        ));
    }
    match (message, name) {
        (Message::Request, "user-agent") => Some(String::from(
            "user-agent is what the client says of itself, and cannot be removed",
        )),
        (Message::Request, "host") if !added.contains("host") => Some(String::from(
            "host can only be replaced: every request has one",
        )),
        (Message::Request | Message::Response, _) => None,
    }
}

/// RFC 9110 section 5.5, without the bytes beyond ASCII that it calls obsolete.
fn is_value(value: &str) -> bool {
    value.len() <= VALUE_BYTES_MAX
        && value.trim_matches([' ', '\t']) == value
        && value
            .bytes()
            .all(|b| b.is_ascii_graphic() || b == b' ' || b == b'\t')
}
