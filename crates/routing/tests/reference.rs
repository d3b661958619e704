//! The pages of the reference that tell what is written here, held word for word against the
//! code. `PORTCULLIS_REWRITE=1 cargo test -p routing --test reference` rewrites them.

#![expect(
    clippy::disallowed_methods,
    reason = "this test reads and writes the pages that it holds"
)]

use std::fmt::Write as _;

use routing::{
    headers::{
        added,
        names::{
            EXACT_ONLY, FORGED, FORGED_PREFIXES, HOP_BY_HOP, METHOD_OVERRIDES, NEVER_NOMINATED,
        },
    },
    refusal::Refusal,
};

fn hold(page: &str, expected: &str) {
    let path = format!("{}/../../docs/reference/{page}", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("PORTCULLIS_REWRITE").is_some() {
        std::fs::write(&path, expected).expect("the page can be written");
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == expected,
        "docs/reference/{page} is out of date: PORTCULLIS_REWRITE=1 rewrites it"
    );
}

#[test]
fn every_refusal_has_its_paragraph() {
    let mut page = String::from(
        "# Why a request is refused\n\n\
         A request that the edge refuses is answered with a page for people and, for programs, the\n\
         header `ngrok-error-code`. The names below are also the `reason` in metrics and in the access\n\
         log. Where trying again can help, `retry-after` says when; `closes` means that the connection\n\
         ends with the answer.\n",
    );
    for reason in Refusal::ALL {
        let retry = reason
            .retry_after_secs()
            .map_or_else(String::new, |secs| format!(", retry after {secs} s"));
        let closes = if reason.closes_connection() {
            ", closes"
        } else {
            ""
        };
        write!(
            page,
            "\n## {}\n\n{}, `{}`{retry}{closes}\n\n**{}.** {}\n",
            reason.label(),
            reason.status(),
            reason.code(),
            reason.title(),
            reason.text(),
        )
        .expect("a text takes all");
        assert_eq!(
            reason.documentation(),
            format!("reference/refusals.md#{}", reason.label())
        );
    }
    hold("refusals.md", &page);
}

#[test]
fn every_header_that_is_dropped_is_listed() {
    let list = |names: &[&str], end: &str| {
        let mut names: Vec<String> = names.iter().map(|name| format!("`{name}{end}`")).collect();
        names.sort();
        names.join(", ")
    };
    let sections = [
        (
            "What the edge says of a request",
            "Set on every request, whatever the client sent.",
            list(&added::ALL, ""),
        ),
        (
            "Dropped from every request",
            "Proxies are believed when they say who the client is, so clients are not. In any case, and with any \
             character that is neither letter nor digit in place of a hyphen.",
            list(FORGED.all(), ""),
        ),
        (
            "Dropped with everything that begins so",
            "In the same spellings.",
            list(FORGED_PREFIXES.all(), "…"),
        ),
        (
            "Dropped where a decision depends on the method",
            "Method overrides.",
            list(METHOD_OVERRIDES.all(), ""),
        ),
        (
            "Kept in their own spelling only",
            "A backend that took a look-alike for these would see another message than the edge.",
            list(EXACT_ONLY.all(), ""),
        ),
        (
            "For one hop",
            "Never passed on, nor what `Connection` names beside them, in either direction.",
            list(HOP_BY_HOP.all(), ""),
        ),
        (
            "Passed on although `Connection` names them",
            "A decision may rest on them.",
            list(NEVER_NOMINATED.all(), ""),
        ),
    ];
    let mut page = String::from("# Headers\n");
    for (title, text, names) in sections {
        write!(page, "\n## {title}\n\n{text}\n\n{names}\n").expect("a text takes all");
    }
    hold("headers.md", &page);
}
