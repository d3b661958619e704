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
            NO_TRAILER, NO_TRAILER_PREFIXES,
        },
    },
    path::{PATH_BYTES_MAX, QUERY_BYTES_MAX, alternative_readings, normalise, normalise_declared},
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
            "Never passed on, nor what `Connection` names beside them, in either direction. (`TE: trailers` and \
             `Trailer` are said anew by the edge.)",
            list(HOP_BY_HOP.all(), ""),
        ),
        (
            "Never behind a body",
            "Dropped from trailers, with all of the above.",
            format!(
                "{}, {}",
                list(NO_TRAILER.all(), ""),
                list(NO_TRAILER_PREFIXES.all(), "…")
            ),
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

#[test]
fn the_spelling_of_paths_is_told_by_examples() {
    let mut page = format!(
        "# Paths\n\n\
         Every path has one spelling. Requests and declarations are brought to it before they are\n\
         compared, and backends get it: what is matched is what is forwarded. The query is neither\n\
         matched nor changed. A path has at most {PATH_BYTES_MAX} bytes, a query {QUERY_BYTES_MAX}.\n\n\
         ## Requests\n\n| sent | forwarded, or refused as |\n| --- | --- |\n"
    );
    for sent in [
        "/a/b/",
        "//a///b",
        "/a/./b/../c",
        "/%7Euser/%61",
        "/caf%c3%a9",
        "/a%20b",
        "/a|b",
        "/a%40b",
        "/a;b=c",
        "/../a",
        "/a%2fb",
        "/a\\b",
        "/a%5cb",
        "/a%00",
        "/a%c0%af",
        "/a%zz",
        "/caf\u{e9}",
    ] {
        let row = normalise(sent).map_or_else(
            |problem| format!("[{0}](refusals.md#{0})", Refusal::from(problem).label()),
            |normal| format!("`{normal}`"),
        );
        writeln!(page, "| `{sent}` | {row} |").expect("a text takes all");
    }
    page.push_str(
        "\n## What a backend may read in it\n\n\
         Some backends cut `;parameters` off, decode twice, or take odd characters for slashes, dots\n\
         and letters. Where such a reading selects another route than the path itself, the request is\n\
         refused as [path-ambiguous](refusals.md#path-ambiguous). Where it makes no difference, the\n\
         path goes on as it is.\n\n| path | may also be read as |\n| --- | --- |\n",
    );
    for path in [
        "/a;b/c",
        "/x/..;/a",
        "/%2561",
        "/x%252F..%252Fa",
        "/me%40home",
        "/100%25",
    ] {
        let readings = alternative_readings(path).expect("few");
        let row: Vec<_> = readings
            .iter()
            .map(|reading| format!("`{reading}`"))
            .collect();
        writeln!(page, "| `{path}` | {} |", row.join(", ")).expect("a text takes all");
    }
    page.push_str(
        "\n## Declarations\n\n\
         Escapes of characters that may stand in a path as they are, are decoded. A path that backends\n\
         may read as another one cannot be declared, since no request for it could be let through.\n\n\
         | declared | is the route |\n| --- | --- |\n",
    );
    for declared in ["/a/", "/me%40home", "/caf%c3%a9", "/a;b", "/%2561", "a"] {
        let row = normalise_declared(declared).map_or_else(
            |problem| format!("an error: {problem}"),
            |normal| format!("`{normal}`"),
        );
        writeln!(page, "| `{declared}` | {row} |").expect("a text takes all");
    }
    page.push_str(
        "\n## Which route answers\n\n\
         Exact paths first, then the longest prefix; of equally long ones the one by elements before\n\
         the one by bytes. A `Prefix` path compares whole elements (`/a` takes `/a`, `/a/` and `/a/b`,\n\
         not `/ab`), and `/a` and `/a/` are one route; the edge API's `path_prefix` compares bytes. An\n\
         exact host comes before its wildcard, a wildcard stands for one label, and a host whose routes\n\
         all miss does not fall back to it.\n",
    );
    hold("paths.md", &page.replace("a|b", "a\\|b"));
}
