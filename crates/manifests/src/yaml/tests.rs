//! Texts and what they say, and that no text does harm.

use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::*;

/// Every document as JSON with its problems, or why the text is unreadable.
fn told(text: &str) -> Vec<String> {
    told_within(text, &Limits::default())
}

fn told_within(text: &str, limits: &Limits) -> Vec<String> {
    match parse(text.as_bytes(), limits) {
        Ok(documents) => documents
            .iter()
            .flat_map(|document| {
                std::iter::once(document.root.to_json().to_string()).chain(
                    document
                        .problems
                        .iter()
                        .map(|p| format!("{}: {}: {}", p.path, p.code, p.message)),
                )
            })
            .collect(),
        Err(error) => vec![format!(
            "{}:{}: {}",
            error.mark.line, error.mark.column, error.code
        )],
    }
}

fn check(text: &str, expected: &[&str]) {
    assert_eq!(told(text), expected, "{text:?}");
}

#[test]
fn documents_are_read_as_kubectl_reads_them() {
    check(
        "a: 1\n---\nb: 2\n...\n---\nc: 3\n",
        &[r#"{"a":1}"#, r#"{"b":2}"#, r#"{"c":3}"#],
    );
    check("---\n# nothing\n---\na: 1\n---\n", &[r#"{"a":1}"#]);
    check(
        "\u{feff}a: 1\r\nb: |\r\n  x\r\n  y\r\n",
        &[r#"{"a":1,"b":"x\ny\n"}"#],
    );
    check(
        "a: '1.2' # not a number\nb: \"yes\"\nc: yes\n",
        &[r#"{"a":"1.2","b":"yes","c":true}"#],
    );
    check(
        "a: |\n  last line without a break",
        &[r#"{"a":"last line without a break"}"#],
    );
    check(
        "{\n\t\"a\": [1, \"\\ud83d\\ude00\\/\"],\n\t\"b\": null\n}\n",
        &[r#"{"a":[1,"😀/"],"b":null}"#],
    );
    check("a: !!str 12\nb: !!int '5'\n", &[r#"{"a":"12","b":5}"#]);
    check("%YAML 1.1\n---\na: on\n", &[r#"{"a":true}"#]);
}

#[test]
fn anchors_and_merge_keys_are_expanded() {
    check("a: &x {b: 1}\nc: *x\n", &[r#"{"a":{"b":1},"c":{"b":1}}"#]);
    check(
        "a: &x {b: 1, d: 4}\nc:\n  <<: *x\n  b: 2\n",
        &[r#"{"a":{"b":1,"d":4},"c":{"b":2,"d":4}}"#],
    );
    check(
        "a: &x {b: 1}\ne: &y {b: 5, f: 6}\nc:\n  <<: [*x, *y]\n",
        &[r#"{"a":{"b":1},"e":{"b":5,"f":6},"c":{"b":1,"f":6}}"#],
    );
    check("a: &x b\n*x : c\n", &[r#"{"a":"b","b":"c"}"#]);
    check("'<<': 1\n", &[r#"{"<<":1}"#]);
    check(
        "<<: 1\n",
        &[
            "{}",
            ": wrong-type: the merge key << needs a mapping or a list of mappings",
        ],
    );
}

#[test]
fn what_tools_resolve_silently_is_an_error() {
    check(
        "spec:\n  host: a\n  host: b\n",
        &[
            r#"{"spec":{"host":["a","b"]}}"#,
            r#"spec.host: duplicate: the key "host" stands twice, at 2:3 and at 3:3"#,
        ],
    );
    check(
        "a: &x {b: 1}\nc:\n  <<: *x\n  <<: *x\n",
        &[
            r#"{"a":{"b":1},"c":{"b":1}}"#,
            r#"c[<<]: duplicate: the key "<<" stands twice, at 3:7 and at 4:7"#,
        ],
    );
    check(
        "on: push\n",
        &[
            r#"{"on":"push"}"#,
            r#"on: wrong-type: the key "on" is not a text"#,
        ],
    );
    check(
        "8080: a\n",
        &[
            r#"{"8080":"a"}"#,
            r#"8080: wrong-type: the key "8080" is not a text"#,
        ],
    );
    check(
        "? [a]\n: b\n",
        &[r#"{"?":"b"}"#, ": wrong-type: a key is a list or a mapping"],
    );
    check(
        "a: !foo 12\n",
        &[
            r#"{"a":"12"}"#,
            "a: bad-value: the tag !foo has no meaning in a manifest",
        ],
    );
    check(
        "a: !!int x\n",
        &[
            r#"{"a":"x"}"#,
            r#"a: wrong-type: "x" is not what its tag says"#,
        ],
    );
    check(
        "a: .nan\n",
        &[
            r#"{"a":null}"#,
            "a: out-of-range: the number .nan is out of range",
        ],
    );
    check(
        "x: *nope\nz: 1\n",
        &[
            r#"{"x":null,"z":1}"#,
            "x: bad-value: the alias *nope names no anchor before it in this document",
        ],
    );
    // An anchor belongs to its document.
    check(
        "a: &x 1\n---\nb: *x\n",
        &[
            r#"{"a":1}"#,
            r#"{"b":null}"#,
            "b: bad-value: the alias *x names no anchor before it in this document",
        ],
    );
}

#[test]
fn a_text_that_does_not_parse_is_unreadable_as_a_whole() {
    check("", &["1:1: file-empty"]);
    check(" \n\n", &["1:1: file-empty"]);
    check("---\n---\n# x\n", &["1:1: file-empty"]);
    check("a: 1\n---\nb: [1\n", &["3:4: file-syntax"]);
    check("a: 1\n\tb: 2\n", &["1:4: file-syntax"]);
    check("a: \0\n", &["1:4: file-syntax"]);
    let broken = parse(b"a: 1\nb: \xff\n", &Limits::default()).expect_err("not UTF-8");
    assert_eq!(
        (broken.code, broken.mark),
        ("not-utf-8", Mark { line: 2, column: 4 })
    );
}

#[test]
fn everything_has_a_limit() {
    let small = Limits {
        file_bytes: 1000,
        documents: 2,
        nodes: 20,
        depth: 3,
        copied_nodes: 10,
        copied_bytes: 100,
        object_bytes: 100,
    };
    assert_eq!(
        told_within(&"#".repeat(1001), &small),
        ["1:1: file-too-large"]
    );
    assert_eq!(
        told_within("a: 1\n---\nb: 1\n---\nc: 1\n", &small),
        ["4:1: file-too-many-documents"]
    );
    assert_eq!(
        told_within(&"- 1\n".repeat(20), &small),
        ["20:3: file-too-many-values"]
    );
    assert_eq!(
        told_within("a: {b: {c: {d: {e: 1}}, f: 2}}\n---\ng: 1\n", &small),
        [
            r#"{"a":{"b":{"c":null,"f":2}}}"#,
            "a.b.c: too-large: values nest deeper than 3 levels",
            r#"{"g":1}"#
        ],
    );
    let told = told_within("a: &a [1, 1, 1, 1]\nb: [*a, *a, *a]\n---\nc: 1\n", &small);
    assert_eq!(
        told[1..],
        [
            "b[1]: too-large: the aliases of this file expand to too much, or one stands within its own anchor",
            r#"{"c":1}"#,
        ]
    );
}

#[test]
fn a_billion_laughs_are_one_clear_error() {
    let mut text = "a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol]\n".to_owned();
    for level in 1..30 {
        let aliases = vec![format!("*a{}", level - 1); 9].join(", ");
        text.push_str(&format!("a{level}: &a{level} [{aliases}]\n"));
    }
    let begin = Instant::now();
    let documents = parse(text.as_bytes(), &Limits::default()).expect("readable");
    assert_eq!(
        documents[0].problems.len(),
        1,
        "{:?}",
        documents[0].problems
    );
    assert!(begin.elapsed() < Duration::from_secs(5));
    check(
        "a: &a [*a]\n",
        &[
            r#"{"a":[null]}"#,
            "a[0]: too-large: the aliases of this file expand to too much, or one stands within its own anchor",
        ],
    );
}

#[test]
fn hostile_shapes_cost_linear_time() {
    let size = 200_000;
    let shapes = [
        "[".repeat(size),
        "{a: ".repeat(size),
        "- ".repeat(size),
        "? ".repeat(size),
        "&a ".repeat(size),
        "!".repeat(size),
        "#".repeat(size),
        "a".repeat(size),
        "'".repeat(size),
        "\"\\u".repeat(size),
        "---\n".repeat(size / 4),
        "a: &a b\n".repeat(size / 8),
        format!("[{}]", "a, ".repeat(size / 3)),
        format!("{{{}}}", "a, ".repeat(size / 3)),
        (0..size / 8).map(|n| format!("k{n}: v\n")).collect(),
    ];
    for shape in shapes {
        let begin = Instant::now();
        let _ = parse(shape.as_bytes(), &Limits::default());
        assert!(
            begin.elapsed() < Duration::from_secs(10),
            "{:?}",
            &shape[..20]
        );
    }
}

#[test]
fn values_know_where_they_stand() {
    let text = "kind: List\nitems:\n- a: 1\n  b: {c: 2}\n- d: 3\n";
    let documents = parse(text.as_bytes(), &Limits::default()).expect("readable");
    let items = documents[0].root.get("items").expect("there");
    let Value::List(items) = &items.value else {
        unreachable!("a list")
    };
    let own = |node: &Node| &text[node.offset as usize..(node.offset + node.size) as usize];
    assert_eq!(items[0].mark, Mark { line: 3, column: 3 });
    assert!(
        own(&items[0]).starts_with("a: 1\n  b: {c: 2}"),
        "{:?}",
        own(&items[0])
    );
    assert!(own(&items[1]).starts_with("d: 3"), "{:?}", own(&items[1]));
    let b = items[0].entry("b").expect("there");
    assert_eq!(
        (b.mark, own(&b.node)),
        (Mark { line: 4, column: 3 }, "{c: 2}")
    );
}

/// Pieces that make parsers stumble, more often than chance would.
fn text_like_yaml() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("a: ".to_owned()),
        Just("- ".to_owned()),
        Just("\n".to_owned()),
        Just("  ".to_owned()),
        Just("---\n".to_owned()),
        Just("...".to_owned()),
        Just("&a ".to_owned()),
        Just("*a".to_owned()),
        Just("<<: ".to_owned()),
        Just("{".to_owned()),
        Just("}".to_owned()),
        Just("[".to_owned()),
        Just("]".to_owned()),
        Just(", ".to_owned()),
        Just("? ".to_owned()),
        Just("|\n".to_owned()),
        Just(">-2\n".to_owned()),
        Just("'".to_owned()),
        Just("\"".to_owned()),
        Just("\\".to_owned()),
        Just("!!str ".to_owned()),
        Just("!<".to_owned()),
        Just("%TAG ! x\n".to_owned()),
        Just("# c\n".to_owned()),
        Just("\u{feff}".to_owned()),
        Just("\t".to_owned()),
        Just("\r".to_owned()),
        "[a-z0-9.+-]{1,4}",
        any::<char>().prop_map(String::from),
    ];
    prop::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 500, ..ProptestConfig::default() })]

    #[test]
    fn no_bytes_do_harm(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        crate::fuzz::yaml(&bytes);
    }

    #[test]
    fn no_text_does_harm(text in text_like_yaml()) {
        crate::fuzz::yaml(text.as_bytes());
    }
}
