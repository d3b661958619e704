//! From a path as written to what a route matches, or to what stands closed in its place (R3, R16).

use model::place::{Match, MatchType};
use routing::path;

/// Below this the edge itself answers (logins).
pub(crate) const OWN_PATHS: &str = "/.portcullis";

/// Why a path cannot be matched as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// It cannot be normalised.
    Path(path::PathProblem),
    /// It holds an expression.
    Expression,
    /// It lies where the edge answers.
    Reserved,
}

/// A place for a path, with why it may not open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Placed {
    pub(crate) place: Match,
    pub(crate) fault: Option<Fault>,
    /// Whether the path could not be told, only how it begins.
    pub(crate) is_guess: bool,
}

/// Places a path. `expressions`: the path type leaves its meaning to the controller, so that an
/// expression may have been meant.
pub(crate) fn place(match_type: MatchType, written: &str, expressions: bool) -> Placed {
    // What may have been meant begins with a slash; a path without one matches nothing at all.
    let absolute = format!(
        "/{}",
        written.trim_start_matches('^').trim_start_matches('/')
    );
    if expressions && let Some(prefix) = path::expression_prefix(&absolute) {
        let place = Match::new(MatchType::StringPrefix, &prefix);
        return Placed {
            place,
            fault: Some(Fault::Expression),
            is_guess: true,
        };
    }
    let written = if written.is_empty() { "/" } else { written };
    match path::normalise_declared(written) {
        Ok(normal) => {
            let place = Match::new(match_type, &normal);
            let below = place.path.strip_prefix(OWN_PATHS);
            let reserved = below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
            Placed {
                place,
                fault: reserved.then_some(Fault::Reserved),
                is_guess: false,
            }
        }
        Err(problem) => {
            let spelled = spelled(written);
            let staged = path::normalise_declared(&spelled);
            let is_guess = staged.is_err();
            let place = staged.map_or_else(
                |_| Match::new(MatchType::StringPrefix, &path::literal_prefix(&spelled)),
                |normal| Match::new(match_type, &normal),
            );
            Placed {
                place,
                fault: Some(Fault::Path(problem)),
                is_guess,
            }
        }
    }
}

/// A path as it was probably meant: absolute, without outer blanks, and with the characters
/// escaped that browsers escape.
fn spelled(written: &str) -> String {
    let inner = written.trim_matches(|c: char| c.is_whitespace() || c.is_control());
    let mut path = String::from("/");
    for character in inner
        .trim_start_matches('^')
        .trim_start_matches('/')
        .chars()
    {
        if character == ' ' || !character.is_ascii() {
            let mut buffer = [0; 4];
            for byte in character.encode_utf8(&mut buffer).bytes() {
                path.push_str(&format!("%{byte:02X}"));
            }
        } else {
            path.push(character);
        }
    }
    path
}

/// What mends a path.
pub(crate) fn remedy(problem: path::PathProblem) -> &'static str {
    use path::PathProblem;
    match problem {
        PathProblem::NotAbsolute => "begin it with /, without blanks before it",
        PathProblem::TooLong => "write a shorter path",
        PathProblem::Control => "take the control characters out",
        PathProblem::Character => "write each of them as % and its bytes in UTF-8: %20 for a space",
        PathProblem::Backslash | PathProblem::EncodedSlash => {
            "write / where it separates, and choose another path where it does not"
        }
        PathProblem::Escape => "write %25 for a percent sign of its own",
        PathProblem::NotUtf8 => "write the escapes of UTF-8",
        PathProblem::AboveRoot => "write the path that the dots lead to",
        PathProblem::Ambiguous => "write a path without them",
    }
}

/// Every path of a host.
pub(crate) fn everything() -> Match {
    Match::new(MatchType::ElementPrefix, "/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_matched_is_staged_where_it_would_have_been() {
        let placed = |match_type, text, expressions| {
            let Placed { place, fault, .. } = place(match_type, text, expressions);
            (place.to_string(), fault.is_some())
        };
        use MatchType::{ElementPrefix, Exact, StringPrefix};
        assert_eq!(
            placed(ElementPrefix, "/a/", false),
            (String::from("prefix /a"), false)
        );
        assert_eq!(
            placed(Exact, "/a/", false),
            (String::from("exact /a/"), false)
        );
        assert_eq!(
            placed(ElementPrefix, "", false),
            (String::from("prefix /"), false)
        );
        assert_eq!(
            placed(ElementPrefix, "admin", false),
            (String::from("prefix /admin"), true)
        );
        assert_eq!(
            placed(ElementPrefix, "/api/v[0-9]+/x", true),
            (String::from("string_prefix /api/v"), true)
        );
        assert_eq!(
            placed(ElementPrefix, "^/api.*", true),
            (String::from("string_prefix /api"), true)
        );
        assert_eq!(
            placed(Exact, "/admin%2fx", false),
            (String::from("string_prefix /admin"), true)
        );
        assert_eq!(
            placed(ElementPrefix, "/.portcullis/x", false),
            (String::from("prefix /.portcullis/x"), true)
        );
        assert_eq!(
            placed(ElementPrefix, "/\u{e4}dmin", false),
            (String::from("prefix /%C3%A4dmin"), true)
        );
        assert_eq!(
            placed(Exact, " /admin\n", false),
            (String::from("exact /admin"), true)
        );
        assert_eq!(
            placed(StringPrefix, "/.portcullisx", false),
            (String::from("string_prefix /.portcullisx"), false)
        );
    }
}
