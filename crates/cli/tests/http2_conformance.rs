//! HTTP/2 as h2spec, a peer that nobody here wrote, understands RFC 9113 and RFC 7541.
//!
//! Every one of its cases passes but those in `tests/peers/h2spec/deviations.txt`, each with its
//! reason there. One that is listed and passes is a failure too: the list says what is true.

#![expect(
    clippy::panic,
    reason = "a helper that finds something wrong fails its test"
)]

mod common;

use std::{collections::BTreeMap, fs, path::Path, process::Command};

use common::Place;
use model::status::RouteState;
use testkit::cluster::peer;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/peers/h2spec");
const EXAMPLE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../examples/quickstart/quickstart.yaml"
);
/// Its host, which h2spec would have to look up.
const HOST: &str = "game-2048.localhost";

/// A case by section and title, and whether it passed.
type Cases = BTreeMap<String, bool>;

#[test]
fn h2spec_finds_only_what_is_listed() {
    let place = Place::new();
    let text = fs::read_to_string(EXAMPLE).expect("the quickstart");
    place.write("quickstart.yaml", &text.replace(HOST, "localhost"));
    let edge = place.up(&["--demo"]);
    let _open = edge.wait_route("localhost", "/", RouteState::Open);

    let report = place.manifests().with_file_name("report.xml");
    let output = Command::new(peer("h2spec"))
        .args(["--tls", "--insecure", "--strict", "--timeout", "5"])
        .args(["--host", "localhost", "--port"])
        .arg(edge.address("https").port().to_string())
        .arg("--junit-report")
        .arg(&report)
        .output()
        .expect("h2spec runs");
    let said = String::from_utf8_lossy(&output.stdout);
    let report = fs::read_to_string(&report).unwrap_or_else(|error| panic!("{error}:\n{said}"));
    let cases = cases(&report);
    assert!(
        cases.len() > 140,
        "only {} cases were run:\n{said}",
        cases.len()
    );

    let known = deviations();
    let mut wrong = Vec::new();
    for (case, passed) in &cases {
        match (passed, known.contains_key(case)) {
            (true, true) => wrong.push(format!("listed, and it passes: {case}")),
            (false, false) => wrong.push(format!("failed: {case}")),
            (true, false) | (false, true) => {}
        }
    }
    let gone = known.keys().filter(|case| !cases.contains_key(*case));
    wrong.extend(gone.map(|case| format!("listed, and there is no such case: {case}")));
    assert!(wrong.is_empty(), "{}\n\n{said}", wrong.join("\n"));
    println!("{} cases, {} known deviations", cases.len(), known.len());
}

/// The list: `SECTION: TITLE`, and below it, indented, the reason.
fn deviations() -> BTreeMap<String, String> {
    let text = fs::read_to_string(Path::new(FOLDER).join("deviations.txt")).expect("the list");
    let mut known: BTreeMap<String, String> = BTreeMap::new();
    let mut last = None;
    for line in text
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
    {
        match (line.strip_prefix(' '), &last) {
            (None, _) => {
                known.insert(line.to_owned(), String::new());
                last = Some(line.to_owned());
            }
            (Some(reason), Some(case)) => {
                known
                    .entry(case.clone())
                    .or_default()
                    .push_str(reason.trim());
            }
            (Some(_), None) => panic!("a reason for nothing: {line}"),
        }
    }
    for (case, reason) in &known {
        assert!(!reason.is_empty(), "no reason for {case}");
    }
    known
}

/// The cases of a report in JUnit's form, which h2spec writes one element a line.
fn cases(report: &str) -> Cases {
    let mut cases = Cases::new();
    let mut last = None;
    for line in report.lines().map(str::trim) {
        if line.starts_with("<testcase ") {
            let case = format!(
                "{}: {}",
                attribute(line, "package"),
                attribute(line, "classname")
            );
            cases.insert(case.clone(), true);
            last = Some(case);
        }
        if line.contains("<failure") || line.contains("<error") || line.contains("<skipped") {
            cases.extend(last.take().map(|case| (case, false)));
        }
    }
    cases
}

/// An attribute's value, with what XML escapes read back.
fn attribute(element: &str, name: &str) -> String {
    let value = element
        .split_once(&format!(" {name}=\""))
        .and_then(|(_, rest)| rest.split('"').next())
        .unwrap_or_else(|| panic!("no {name} in {element}"));
    let escapes = [
        ("&#34;", "\""),
        ("&#39;", "'"),
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&amp;", "&"),
    ];
    escapes
        .iter()
        .fold(value.to_owned(), |text, (from, to)| text.replace(from, to))
}
