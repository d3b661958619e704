//! Spellings one by one, and properties of the normaliser on random texts.

use proptest::prelude::*;

use super::*;

#[test]
fn one_path_has_one_spelling() {
    for (given, normal) in [
        ("/", "/"),
        ("/a/b", "/a/b"),
        ("/a/", "/a/"),
        ("//a///b//", "/a/b/"),
        ("/a/./b/.", "/a/b/"),
        ("/a/../b", "/b"),
        ("/a/b/..", "/a/"),
        ("/a/..", "/"),
        ("/a//../b", "/b"),
        ("/%61%2D%2e%5f%7E", "/a-._~"),
        ("/a/%2e%2E/b", "/b"),
        ("/a/.%2e", "/"),
        ("/%c3%a4", "/%C3%A4"),
        ("/a%20b", "/a%20b"),
        ("/a|b[1]", "/a%7Cb%5B1%5D"),
        ("/.well-known/x", "/.well-known/x"),
        ("/...", "/..."),
        ("/a%40b", "/a%40b"),
        ("/a;b=c", "/a;b=c"),
        ("/a%25b", "/a%25b"),
    ] {
        assert_eq!(normalise(given).as_deref(), Ok(normal), "{given}");
    }
    assert!(matches!(
        normalise("/.well-known/a-b/c.txt"),
        Ok(Cow::Borrowed(_))
    ));
}

#[test]
fn what_has_no_safe_reading_is_refused() {
    use PathProblem::{
        AboveRoot as Above, Backslash, Character, Control, EncodedSlash, Escape, NotAbsolute,
        NotUtf8, TooLong,
    };
    let long = format!("/{}", "a".repeat(PATH_BYTES_MAX));
    for (given, problem) in [
        ("", NotAbsolute),
        ("*", NotAbsolute),
        ("a/b", NotAbsolute),
        (long.as_str(), TooLong),
        ("/a\\b", Backslash),
        ("/a%5cb", Backslash),
        ("/a%2Fb", EncodedSlash),
        ("/a%2f..%2fb", EncodedSlash),
        ("/a\0", Control),
        ("/a%00", Control),
        ("/a%0d%0aX", Control),
        ("/a%7f", Control),
        ("/a%09", Control),
        ("/a%c2%85", Control),
        ("/a\tb", Control),
        ("/a b", Character),
        ("/a?b", Character),
        ("/a#b", Character),
        ("/ä", Character),
        ("/a%", Escape),
        ("/a%4", Escape),
        ("/a%zz", Escape),
        ("/a%+1", Escape),
        ("/a%u002f", Escape),
        ("/a%c0%af", NotUtf8),
        ("/a%c1%9c", NotUtf8),
        ("/a%e0%80%af", NotUtf8),
        ("/a%f0%80%80%af", NotUtf8),
        ("/a%ff", NotUtf8),
        ("/a%c3/b", NotUtf8),
        ("/a%ed%a0%80", NotUtf8),
        ("/..", Above),
        ("/a/../../b", Above),
        ("/%2e%2e/b", Above),
        ("/.//../b", Above),
    ] {
        assert_eq!(normalise(given), Err(problem), "{given:?}");
    }
}

#[test]
fn declared_paths_mean_the_resource() {
    assert_eq!(normalise_declared("/a%40b%2B").as_deref(), Ok("/a@b+"));
    assert_eq!(normalise_declared("//a/./b/").as_deref(), Ok("/a/b/"));
    assert_eq!(
        normalise_declared("/caf%c3%a9").as_deref(),
        Ok("/caf%C3%A9")
    );
    assert_eq!(normalise_declared("/100%25").as_deref(), Ok("/100%25"));
    for path in ["/a;b", "/a%3bb", "/a%2561", "/a%252f", "/%EF%BD%81"] {
        assert_eq!(
            normalise_declared(path),
            Err(PathProblem::Ambiguous),
            "{path}"
        );
    }
}

#[test]
fn what_cannot_be_routed_leaves_a_prefix_to_stage() {
    for (given, prefix) in [
        ("", "/"),
        ("a", "/"),
        ("/a;b", "/a"),
        ("/a%2Fb", "/a"),
        ("/a/b\\c", "/a/b"),
        ("/a/../../b", "/"),
        ("/a/é", "/a/"),
        ("/a%c0%afb", "/a"),
    ] {
        assert_eq!(literal_prefix(given), prefix, "{given}");
    }
    for (given, prefix) in [
        ("/a/b", None),
        ("/robots.txt", None),
        ("/api/(v1|v2)/.*", Some("/api/")),
        ("/admin(/|$)(.*)", Some("/admin")),
        ("/adm.*", Some("/adm")),
        ("/ab*", Some("/a")),
        ("/ab?", Some("/a")),
        ("/ab{2}", Some("/a")),
        ("/ab+", Some("/ab")),
        ("/a$", Some("/a")),
        ("/a|/b", Some("/")),
        ("/x(a|b)|/c", Some("/")),
        ("/[ab]", Some("/")),
        ("^/a", Some("/")),
        ("/*", Some("/")),
        ("/a\\.php", Some("/a")),
    ] {
        assert_eq!(expression_prefix(given).as_deref(), prefix, "{given}");
    }
}

#[test]
fn queries_go_on_as_they_are_or_not_at_all() {
    assert_eq!(check_query("a=%00%2f..\\&b=<ü>"), Ok(()));
    assert_eq!(check_query("a b"), Err(PathProblem::Character));
    assert_eq!(check_query("a#b"), Err(PathProblem::Character));
    assert_eq!(check_query("a\r\nb"), Err(PathProblem::Control));
    assert_eq!(
        check_query(&"a".repeat(QUERY_BYTES_MAX + 1)),
        Err(PathProblem::TooLong)
    );
}

#[test]
fn almost_every_path_has_one_reading() {
    for path in ["/", "/a/b.c", "/a%20b", "/%C3%A4/%7C", "/a@b:c,d=e+f"] {
        assert_eq!(alternative_readings(path), Ok(Vec::new()), "{path}");
    }
    let readings = |path| alternative_readings(path).expect("few");
    assert_eq!(readings("/a;b/c"), ["/a/c"]);
    assert_eq!(readings("/100%25"), <[&str; 0]>::default());
    assert!(readings("/x/..;/admin").contains(&String::from("/admin")));
    assert!(readings("/x%252e").contains(&String::from("/x.")));
    assert_eq!(
        alternative_readings(&format!("/%{}61", "25".repeat(99))),
        Err(TooManyReadings)
    );
}

fn pieces() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "/", "/", "/", "a", "b", "A", ".", "..", "%2e", "%2E", "%61", "%41", "%2f", "%5C", "%25",
        "%252e", "%252F", "%3b", ";", ";x", "\\", "%00", "%c3%a4", "%c0%ae", "%EF", "%BD%81", "%",
        "%4", "@", "%40", " ", "é", "[", "+",
    ]);
    prop::collection::vec(piece, 0..12).prop_map(|pieces| format!("/{}", pieces.concat()))
}

/// What a plain server of today does with a path: decode once, merge, resolve.
fn plain_reading(path: &str) -> Vec<String> {
    let bytes = path.as_bytes();
    let mut decoded = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        match (
            bytes[at],
            path.get(at + 1..at + 3)
                .and_then(|hex| u8::from_str_radix(hex, 16).ok()),
        ) {
            (b'%', Some(value)) => {
                decoded.push(value);
                at += 3;
            }
            (byte, _) => {
                decoded.push(byte);
                at += 1;
            }
        }
    }
    let mut segments: Vec<String> = Vec::new();
    for segment in String::from_utf8_lossy(&decoded).split('/') {
        match segment {
            "" | "." => {}
            ".." => drop(segments.pop()),
            name => segments.push(name.to_owned()),
        }
    }
    segments
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn a_normal_path_is_a_fixed_point_and_means_what_was_sent(path in pieces()) {
        if let Ok(normal) = normalise(&path) {
            prop_assert_eq!(normalise(&normal), Ok(normal.clone()));
            prop_assert!(matches!(normalise(&normal), Ok(Cow::Borrowed(_))) || normal.contains('%'));
            prop_assert!(normal.starts_with('/') && normal.is_ascii() && !normal.contains("//"));
            prop_assert!(normal.split('/').all(|segment| segment != "." && segment != ".."));
            prop_assert!(!normal.contains(['\\', ' ', '?', '#']));
            // Slashes are merged first here and there; the server decodes what we kept encoded.
            let merged = path.split('/').filter(|name| !name.is_empty()).collect::<Vec<_>>().join("/");
            prop_assert_eq!(plain_reading(&normal), plain_reading(&merged));
        }
    }

    #[test]
    fn a_declared_path_is_a_normal_path_that_has_one_reading(path in pieces()) {
        if let Ok(normal) = normalise_declared(&path) {
            prop_assert_eq!(normalise(&normal), Ok(Cow::Borrowed(normal.as_str())));
            prop_assert_eq!(alternative_readings(&normal), Ok(Vec::new()));
        }
    }

    #[test]
    fn any_bytes_are_read_or_refused(text in "\\PC{0,64}|/[%/.;\\\\a-f0-9]{0,64}") {
        for path in [text.clone(), format!("/{text}")] {
            if let Ok(normal) = normalise(&path) {
                drop(alternative_readings(&normal));
            }
            drop((normalise_declared(&path), literal_prefix(&path), expression_prefix(&path), check_query(&path)));
        }
    }
}
