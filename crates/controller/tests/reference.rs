//! The reference page of `/status`, held against the document and the codes that the controller
//! adds. `PORTCULLIS_REWRITE=1 cargo test -p controller --test reference` rewrites its example;
//! a member or code without its line is for a person to describe.

use std::{collections::BTreeSet, fs};

use model::{
    diagnostic::Severity,
    status::{Generation, Reason, RouteState, RouteStatus, Status},
};

const PAGE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../docs/reference/status.md"
);

/// A held route: every member says something.
fn example() -> Status {
    let reason = Reason {
        code: "bad-cidr".into(),
        severity: Severity::Error,
        message: "\"10.0.0.0/33\" is not a range of addresses".into(),
        object: "IPPolicy shop/office".into(),
        field: Some("spec.rules[0].cidr".into()),
        file: Some("shop.yaml".into()),
        line: Some(14),
        remedy: Some("write ADDRESS/LENGTH, such as 10.0.0.0/8".into()),
    };
    let route = RouteStatus {
        host: "shop.example.com".into(),
        path: "/admin".into(),
        path_type: "prefix".into(),
        state: RouteState::Held,
        since: Some("2026-01-31T09:30:00Z".into()),
        serving: Some(Generation { generation: 3 }),
        wanted: Some(Generation { generation: 4 }),
        modules: vec!["ipRestriction".into()],
        backend: Some("shop/web:80".into()),
        owner: Some("shop/web".into()),
        reasons: vec![reason],
    };
    Status {
        routes: vec![route],
        diagnostics: Vec::new(),
    }
}

/// The part of a page between a fence of this language and its end.
fn fenced<'p>(page: &'p str, fence: &str) -> &'p str {
    let (_, rest) = page.split_once(fence).expect("the page has the fence");
    rest.split_once("```").expect("a fence ends").0
}

#[test]
fn the_example_is_what_programs_get() {
    let json = serde_json::to_string_pretty(&example()).expect("a status is JSON") + "\n";
    let page = fs::read_to_string(PAGE).expect("the page is there");
    let shown = fenced(&page, "```json\n");
    if std::env::var_os("PORTCULLIS_REWRITE").is_some() {
        fs::write(PAGE, page.replace(shown, &json)).expect("the page can be written");
    }
    let page = fs::read_to_string(PAGE).expect("the page is there");
    assert_eq!(fenced(&page, "```json\n"), json);
    let members: BTreeSet<_> = json
        .lines()
        .filter_map(|line| line.trim().strip_prefix('"')?.split_once("\":"))
        .map(|(name, _)| name)
        .collect();
    for member in members {
        assert!(page.contains(&format!("| `{member}` |")), "{member}");
    }
}

/// Read from the source: each code stands alone on its line, in one match that the compiler keeps
/// complete.
#[test]
fn every_code_of_the_controller_has_its_line_and_no_other() {
    let source = include_str!("../src/status.rs");
    let table = source
        .split_once("= match note {")
        .and_then(|(_, rest)| rest.split_once("\n    };"))
        .expect("the match over notes")
        .0;
    let codes: BTreeSet<_> = table
        .lines()
        .filter_map(|line| line.trim().strip_prefix('"')?.strip_suffix("\","))
        .filter(|word| !word.is_empty())
        .filter(|word| word.bytes().all(|b| b.is_ascii_lowercase() || b == b'-'))
        .collect();
    let page = fs::read_to_string(PAGE).expect("the page is there");
    let section = page.split_once("## Codes").expect("the section").1;
    let listed: BTreeSet<_> = section
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once("` |"))
        .map(|(code, _)| code)
        .collect();
    assert_eq!(listed, codes);
}
