//! The reference page of diagnostics is printed from the codes; `PORTCULLIS_REWRITE=1` rewrites it.

#![expect(clippy::disallowed_methods, reason = "the page is a file")]

use std::{fmt::Write as _, fs};

use model::diagnostic::Cause;
use resources::problem::ProblemCode;
use translation::codes::Code;

const PAGE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../docs/reference/diagnostics.md"
);

const HEAD: &str = "\
# What is wrong with a declaration

Every finding names the object and field that must be changed, where that stands, and what to do.
`check` prints all of them; `status` and `/status` carry them as reasons, each with its code. A
finding is about one object: whoever refers to that object is closed or held, and nobody else.

";

/// What a kind of trouble does to routes.
const fn effect(cause: Cause) -> &'static str {
    match cause {
        Cause::Invalid => {
            "Error. An open route is held on its last complete set (`--on-invalid close`: closed); a new one stays closed."
        }
        Cause::Missing => {
            "Error. A route that is served and rests on the object closes after `--lost-grace`; any other is held or stays closed."
        }
        Cause::Absent => "Error. An open route is held; a new one stays closed.",
        Cause::Pending => {
            "Error. Nothing changes: an open route keeps its set, a new one stays closed."
        }
        Cause::Unenforceable => {
            "Error. The declaration is right, but this edge cannot do it: an open route is held, a new one stays closed."
        }
        Cause::Conflict => {
            "Error. What stands before it is served; this declaration has no effect there."
        }
        Cause::Notice => "Warning. Nothing is refused for it.",
    }
}

/// What is wrong with one object in itself; each makes the object invalid.
const fn meaning(code: ProblemCode) -> &'static str {
    match code {
        ProblemCode::UnknownField => {
            "There is no such field here. The API server would drop it in silence, and the protection with it."
        }
        ProblemCode::WrongType => "A list where a text is needed, and the like.",
        ProblemCode::MissingField => "A field that is needed is not there.",
        ProblemCode::NoValue => "The field is there and nothing behind it.",
        ProblemCode::Empty => {
            "An empty text, list or object where emptiness would mean that nothing is checked."
        }
        ProblemCode::NotAllowedValue => "Not one of the words that may stand here.",
        ProblemCode::OutOfRange => "A number that is too small or too large.",
        ProblemCode::BadDuration => "Not a duration such as `10m` or `1h30m`.",
        ProblemCode::BadQuantity => "Not a quantity such as `0.2` or `200m`.",
        ProblemCode::BadCidr => "Not a range of addresses such as `10.0.0.0/8`.",
        ProblemCode::BadValue => "A text that is not what it should be.",
        ProblemCode::ChooseOne => "None or several where exactly one is needed.",
        ProblemCode::Contradiction => {
            "Two fields that cannot both be meant, or one without its companion."
        }
        ProblemCode::Duplicate => "Said twice.",
        ProblemCode::UnknownKind => "There is no such kind in this API group.",
        ProblemCode::WrongVersion => "A known kind under another group or version.",
        ProblemCode::TooLarge => "More than this program is willing to read.",
        ProblemCode::Undecodable => {
            "The object does not decode, for a reason that only the decoder knows."
        }
        ProblemCode::Unreadable => {
            "The file as a whole cannot be read; what it held stays as it is."
        }
    }
}

fn page() -> String {
    let mut page = String::from(HEAD);
    page.push_str("## Between objects\n\n");
    for code in Code::ALL {
        write!(
            page,
            "### {}\n\n{} {}\n\n",
            code.name(),
            code.summary(),
            effect(code.cause())
        )
        .expect("writing to a String");
    }
    page.push_str(
        "## In an object by itself\n\nEach makes the object invalid, and so whoever refers to it. ",
    );
    page.push_str(effect(Cause::Invalid));
    page.push_str("\n\n");
    for code in ProblemCode::ALL {
        write!(page, "### {}\n\n{}\n\n", code.name(), meaning(code)).expect("writing to a String");
    }
    page.truncate(page.trim_end().len());
    page.push('\n');
    page
}

#[test]
fn the_page_of_diagnostics_is_up_to_date() {
    if std::env::var_os("PORTCULLIS_REWRITE").is_some() {
        fs::write(PAGE, page()).expect("the page is writable");
    }
    assert_eq!(
        fs::read_to_string(PAGE).unwrap_or_default(),
        page(),
        "PORTCULLIS_REWRITE=1 rewrites it"
    );
}

#[test]
fn codes_are_kebab_case_and_each_is_one() {
    let mut names: Vec<&str> = Code::ALL.iter().map(|code| code.name()).collect();
    names.extend(ProblemCode::ALL.iter().map(|code| code.name()));
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count);
    let kebab = |b: u8| b.is_ascii_lowercase() || b == b'-';
    assert!(names.iter().all(|name| name.bytes().all(kebab)));
}
