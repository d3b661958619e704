//! Golden cases: manifests in, the whole declaration with its diagnostics out, as a review sees
//! it. `PORTCULLIS_REWRITE=1 cargo test -p translation` rewrites what is expected.

#![expect(clippy::disallowed_methods, reason = "the cases are files")]

mod support;

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use resources::problem::SENTENCE_CHARS_MAX;
use support::{Case, text};
use translation::codes::Code;

fn directories() -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> = fs::read_dir("tests/cases")
        .expect("the cases are there")
        .map(|entry| entry.expect("a directory entry").path())
        .collect();
    all.sort();
    all
}

fn check(input: &Path, expected: &Path) -> Option<String> {
    let case = Case::read(input);
    let found = text(&case.translate());
    if std::env::var_os("PORTCULLIS_REWRITE").is_some() {
        fs::write(expected, &found).expect("the expectation is writable");
        return None;
    }
    let wanted = fs::read_to_string(expected).unwrap_or_default();
    (found != wanted).then(|| {
        format!(
            "{}:\n--- expected\n{wanted}\n--- found\n{found}",
            input.display()
        )
    })
}

#[test]
fn every_case_is_as_expected() {
    let wrong: Vec<String> = directories()
        .iter()
        .filter_map(|path| check(path, &path.join("expected.txt")))
        .collect();
    assert!(
        wrong.is_empty(),
        "PORTCULLIS_REWRITE=1 rewrites them\n{}",
        wrong.join("\n")
    );
}

#[test]
fn the_example_says_what_is_missing() {
    let wrong = check(
        Path::new("../../examples/game-2048/manifest.yml"),
        Path::new("tests/game-2048.txt"),
    );
    assert_eq!(wrong, None);
}

#[test]
fn no_case_holds_a_file_that_nothing_reads() {
    for directory in directories() {
        assert!(
            directory.join("input.yaml").is_file(),
            "{} has no input.yaml",
            directory.display()
        );
        for entry in fs::read_dir(&directory).expect("a case is a directory") {
            let name = entry
                .expect("a directory entry")
                .file_name()
                .into_string()
                .expect("a readable name");
            assert!(
                name == "expected.txt" || name.ends_with(".yaml"),
                "{}/{name}",
                directory.display()
            );
        }
    }
}

#[test]
fn every_code_has_a_case() {
    let mut missing: BTreeSet<&str> = Code::ALL.iter().map(|code| code.name()).collect();
    for directory in directories() {
        let expected =
            fs::read_to_string(directory.join("expected.txt")).expect("a case has an expectation");
        missing.retain(|code| !expected.contains(&format!("[{code}]")));
    }
    assert!(missing.is_empty(), "no case shows {missing:?}");
}

/// Whatever a user writes in some field, nothing that is shown grows with it.
#[test]
fn no_finding_is_longer_than_helps() {
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("long.yaml");
    let long = [
        "y".repeat(5000),
        format!("{:?}", "a \"b\" ".repeat(1000)),
        format!("[{}]", "c, ".repeat(500)),
    ];
    for (number, directory) in directories().iter().enumerate() {
        let text = fs::read_to_string(directory.join("input.yaml")).expect("it is there");
        for (index, line) in text.lines().enumerate() {
            // One line in eleven, another one in each case: all of them would take minutes.
            let value = line.rfind(": ").filter(|_| !line.starts_with('#'));
            let Some(at) = value.filter(|_| (index + number) % 11 == 0) else {
                continue;
            };
            let written = format!("{}: {}", &line[..at], long[index % long.len()]);
            fs::write(&file, text.replace(line, &written)).expect("it is written");
            for found in Case::read(&file).translate().diagnostics {
                let names = [&found.object.namespace, &found.object.name];
                let texts = [
                    &found.message,
                    &found.remedy,
                    &found.field,
                    &found.object.kind,
                ];
                let longest = texts.iter().map(|text| text.chars().count()).max();
                assert!(longest <= Some(SENTENCE_CHARS_MAX + 1), "{found:?}");
                assert!(
                    names.iter().all(|name| name.chars().count() <= 254),
                    "{found:?}"
                );
            }
        }
    }
}
