//! Paths: one spelling for each (R16), so that no request slips past a route by being written
//! differently.
//!
//! Requests and declarations go through the same normalisation: escapes of unreserved characters
//! are decoded and the others written in upper case, doubled slashes are one, dot segments are
//! resolved (RFC 3986 sections 6.2.2 and 5.2.4), and characters that a path may not hold but
//! browsers send are escaped. What has no safe reading is refused: backslashes, encoded slashes,
//! control characters, broken escapes, bytes that are not UTF-8 (overlong forms included), dot
//! segments that lead above the root. Slashes are merged *before* dot segments are resolved.
//!
//! Guarantee: the result is a fixed point, starts with `/`, and is what is matched *and* what is
//! forwarded. Caveat: a backend may still read it as something else (parameters, double
//! decoding); [`alternative_readings`] lists those readings and the table refuses where one of
//! them selects another route.

use std::borrow::Cow;

mod readings;

pub use readings::{TooManyReadings, alternative_readings};

/// Longest path of a request, in bytes.
pub const PATH_BYTES_MAX: usize = 8 * 1024;
/// Longest query of a request, in bytes.
pub const QUERY_BYTES_MAX: usize = 16 * 1024;

/// Why a text is not a path that can be routed, in a request or in a declaration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, thiserror::Error)]
pub enum PathProblem {
    /// Empty, or does not begin with a slash.
    #[error("a path starts with /")]
    NotAbsolute,
    /// Longer than the bound.
    #[error("the path or query is too long")]
    TooLong,
    /// A control character, plain or encoded.
    #[error("a path holds no control characters, encoded ones included")]
    Control,
    /// A space, `?`, `#` or a byte beyond ASCII that is not encoded.
    #[error("spaces, ?, # and characters beyond ASCII must be percent-encoded in a path")]
    Character,
    /// A backslash, plain or encoded.
    #[error("a path holds no backslash, encoded ones included")]
    Backslash,
    /// An encoded slash.
    #[error("a path holds no encoded slash")]
    EncodedSlash,
    /// A percent sign without two hexadecimal digits.
    #[error("a percent sign in a path is followed by two hexadecimal digits")]
    Escape,
    /// Encoded bytes that are not UTF-8.
    #[error("the encoded characters of a path are UTF-8, in their shortest form")]
    NotUtf8,
    /// Dot segments lead above the root.
    #[error("the path leads above its root")]
    AboveRoot,
    /// Only in declarations: backends may read it as another path (`;`, double encoding), so that
    /// no request for it could be let through.
    #[error("some servers read this path as another one (a ; or a doubly encoded character)")]
    Ambiguous,
}

/// What a byte of a path is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    /// Letters, digits, `-._~`: means the same encoded or not (RFC 3986 section 2.3).
    Unreserved,
    /// `!$&'()*+,;=:@`: stands as it is; encoded it may mean something else.
    Literal,
    /// Visible, not allowed in a path, sent by browsers all the same: escaped.
    Escaped,
    Slash,
    Percent,
    Backslash,
    Control,
    Foreign,
}

const CLASS: [Class; 256] = {
    let mut table = [Class::Foreign; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = match byte as u8 {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                Class::Unreserved
            }
            b'!' | b'$' | b'&' | b'\'' | b'(' | b')' | b'*' | b'+' | b',' | b';' | b'=' | b':'
            | b'@' => Class::Literal,
            b'"' | b'<' | b'>' | b'[' | b']' | b'^' | b'`' | b'{' | b'|' | b'}' => Class::Escaped,
            b'/' => Class::Slash,
            b'%' => Class::Percent,
            b'\\' => Class::Backslash,
            0x00..=0x1f | 0x7f => Class::Control,
            b' ' | b'?' | b'#' | 0x80..=0xff => Class::Foreign,
        };
        byte += 1;
    }
    table
};

fn class(byte: u8) -> Class {
    CLASS[usize::from(byte)]
}

/// The one spelling of a request's path. Borrows when it is spelled so already.
///
/// # Errors
/// When it has no safe reading.
pub fn normalise(path: &str) -> Result<Cow<'_, str>, PathProblem> {
    if !path.starts_with('/') {
        return Err(PathProblem::NotAbsolute);
    }
    if path.len() > PATH_BYTES_MAX {
        return Err(PathProblem::TooLong);
    }
    if is_normal(path.as_bytes()) {
        return Ok(Cow::Borrowed(path));
    }
    let spelled = respell(path, Reserved::Kept)?;
    resolve(&spelled).map(Cow::Owned)
}

/// The one spelling of a declared path, and the identity of its route. Unlike in a request,
/// escapes of reserved characters are decoded (`%40` is `@`): the declaration means the resource,
/// and a request that spells it with the escape is refused as ambiguous if that matters.
///
/// # Errors
/// When it has no safe reading, or requests for it could not be let through.
pub fn normalise_declared(path: &str) -> Result<String, PathProblem> {
    if !path.starts_with('/') {
        return Err(PathProblem::NotAbsolute);
    }
    if path.len() > PATH_BYTES_MAX {
        return Err(PathProblem::TooLong);
    }
    let spelled = respell(path, Reserved::Decoded)?;
    let normal = resolve(&spelled)?;
    match alternative_readings(&normal) {
        Ok(readings) if readings.is_empty() => Ok(normal),
        Ok(_) | Err(TooManyReadings) => Err(PathProblem::Ambiguous),
    }
}

/// [`literal_prefix`] tries every beginning, so it looks at no more than this.
const LITERAL_BYTES_MAX: usize = 2048;

/// For a declared path that cannot be routed: the normalised text before the first trouble. Every
/// path that it can have meant begins so; a *string* prefix of it, closed, stands in its place (R3).
#[must_use]
pub fn literal_prefix(path: &str) -> String {
    let mut end = path.len().min(LITERAL_BYTES_MAX);
    while end > 0 {
        if let Some(normal) = path
            .get(..end)
            .and_then(|head| normalise_declared(head).ok())
        {
            return normal;
        }
        end -= 1;
    }
    String::from("/")
}

/// The text before the first character that regular expressions give a meaning, if the path holds
/// one: what an `ImplementationSpecific` path with an expression stages closed, as a *string*
/// prefix (R16). A character that is repeated or made optional does not count to it, nor does one
/// that has an alternative.
#[must_use]
pub fn expression_prefix(path: &str) -> Option<String> {
    let special = path.find([
        '*', '+', '?', '(', ')', '[', ']', '{', '}', '|', '^', '$', '\\',
    ])?;
    let mut depth = 0_usize;
    for character in path.chars() {
        match character {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            // What stands before it is only one of two beginnings.
            '|' if depth == 0 => return Some(String::from("/")),
            _ => {}
        }
    }
    let (mut head, rest) = path.split_at(special);
    if rest.starts_with(['*', '?', '{']) {
        head = head
            .char_indices()
            .next_back()
            .map_or("", |(last, _)| &head[..last]);
    }
    Some(literal_prefix(head.trim_end_matches('.')))
}

/// Whether a query may be forwarded as it stands. Nothing is matched on it, so it is not changed.
///
/// # Errors
/// When it is too long or holds a control character, a space or a fragment.
pub fn check_query(query: &str) -> Result<(), PathProblem> {
    if query.len() > QUERY_BYTES_MAX {
        return Err(PathProblem::TooLong);
    }
    for byte in query.bytes() {
        match byte {
            0x00..=0x1f | 0x7f => return Err(PathProblem::Control),
            b' ' | b'#' => return Err(PathProblem::Character),
            0x21..=0x7e | 0x80..=0xff => {}
        }
    }
    Ok(())
}

/// Whether nothing needs to be done: only characters that stand for themselves, no empty segment
/// but the last, no dot segment.
fn is_normal(path: &[u8]) -> bool {
    let mut segment = 1;
    for (at, byte) in path.iter().enumerate().skip(1) {
        match class(*byte) {
            Class::Unreserved | Class::Literal => {}
            Class::Slash => {
                if matches!(&path[segment..at], b"" | b"." | b"..") {
                    return false;
                }
                segment = at + 1;
            }
            Class::Escaped
            | Class::Percent
            | Class::Backslash
            | Class::Control
            | Class::Foreign => {
                return false;
            }
        }
    }
    !matches!(&path[segment..], b"." | b"..")
}

/// What becomes of escapes of reserved characters.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reserved {
    Kept,
    Decoded,
}

/// Gives every character its one spelling; slashes and dots are left alone.
fn respell(path: &str, reserved: Reserved) -> Result<String, PathProblem> {
    let bytes = path.as_bytes();
    let mut spelled = String::with_capacity(path.len());
    let mut decoded = Vec::with_capacity(path.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        at += 1;
        match class(byte) {
            Class::Unreserved | Class::Literal | Class::Slash => {
                spelled.push(char::from(byte));
                decoded.push(byte);
            }
            Class::Escaped => {
                push_escape(&mut spelled, byte);
                decoded.push(byte);
            }
            Class::Percent => {
                let value = escape(bytes.get(at..at + 2)).ok_or(PathProblem::Escape)?;
                at += 2;
                decoded.push(value);
                match class(value) {
                    Class::Unreserved => spelled.push(char::from(value)),
                    Class::Literal if reserved == Reserved::Decoded => {
                        spelled.push(char::from(value))
                    }
                    Class::Slash => return Err(PathProblem::EncodedSlash),
                    Class::Backslash => return Err(PathProblem::Backslash),
                    Class::Control => return Err(PathProblem::Control),
                    Class::Literal | Class::Escaped | Class::Percent | Class::Foreign => {
                        push_escape(&mut spelled, value);
                    }
                }
            }
            Class::Backslash => return Err(PathProblem::Backslash),
            Class::Control => return Err(PathProblem::Control),
            Class::Foreign => return Err(PathProblem::Character),
        }
    }
    let text = std::str::from_utf8(&decoded).map_err(|_| PathProblem::NotUtf8)?;
    if text.chars().any(char::is_control) {
        return Err(PathProblem::Control);
    }
    Ok(spelled)
}

/// The value of two hexadecimal digits.
fn escape(digits: Option<&[u8]>) -> Option<u8> {
    let [high, low] = digits? else { return None };
    let value = char::from(*high).to_digit(16)? * 16 + char::from(*low).to_digit(16)?;
    u8::try_from(value).ok()
}

fn push_escape(text: &mut String, byte: u8) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    text.push('%');
    text.push(char::from(DIGITS[usize::from(byte >> 4)]));
    text.push(char::from(DIGITS[usize::from(byte & 15)]));
}

/// Merges slashes, then resolves dot segments.
fn resolve(path: &str) -> Result<String, PathProblem> {
    let mut normal = String::with_capacity(path.len());
    let mut is_directory = true;
    for segment in path.split('/') {
        is_directory = matches!(segment, "" | "." | "..");
        match segment {
            "" | "." => {}
            ".." => normal.truncate(normal.rfind('/').ok_or(PathProblem::AboveRoot)?),
            name => {
                normal.push('/');
                normal.push_str(name);
            }
        }
    }
    if is_directory {
        normal.push('/');
    }
    Ok(normal)
}

#[cfg(test)]
mod tests;
