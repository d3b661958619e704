//! The other paths that backends are known to read in a path (R16).
//!
//! Some servers cut `;parameters` off every segment before they resolve dots (the servlet
//! family), some decode twice, some take overlong UTF-8, full-width forms or `%u002F` for ASCII,
//! a backslash for a slash, or end a path at NUL. No step makes a text longer, so all orders of
//! all steps are followed until nothing new comes, within a bound. A property test of the table
//! holds the result against backends with random habits.

use super::{Class, class, escape, push_escape};

/// More ways to read a path than are worth following: the request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the path can be read in too many ways")]
pub struct TooManyReadings;

/// Enough for any path that is not built to exhaust it (a test counts).
const READINGS_MAX: usize = 64;
const READING_BYTES_MAX: usize = 64 * 1024;

/// What backends are known to do with a path before they look at it. Each may or may not be done,
/// any number of times, in any order.
const STEPS: [fn(&Reading) -> Reading; 7] = [
    decode,
    cut_at_nul,
    odd_ascii,
    backslashes,
    strip_parameters,
    merge_slashes,
    resolve_dots,
];

/// A text on the way: `decoded` once an escape has been read, so that its percent signs are data.
#[derive(Clone, PartialEq, Eq)]
struct Reading {
    bytes: Vec<u8>,
    decoded: bool,
}

impl Reading {
    const fn with(&self, bytes: Vec<u8>) -> Self {
        Self {
            bytes,
            decoded: self.decoded,
        }
    }
}

/// What backends may read in a normalised path other than the path itself, each in the spelling
/// of [`super::normalise_declared`], so that it can be looked up. Empty, without any allocation,
/// for almost every path.
///
/// # Errors
/// When there are more readings than the bound.
pub fn alternative_readings(path: &str) -> Result<Vec<String>, TooManyReadings> {
    if has_one_reading(path.as_bytes()) {
        return Ok(Vec::new());
    }
    let mut seen = vec![Reading {
        bytes: path.as_bytes().to_vec(),
        decoded: false,
    }];
    let (mut next, mut size) = (0, 0);
    while let Some(reading) = seen.get(next) {
        size += reading.bytes.len();
        if seen.len() > READINGS_MAX || size > READING_BYTES_MAX {
            return Err(TooManyReadings);
        }
        let found = STEPS.map(|step| step(reading));
        next += 1;
        for reading in found {
            if !seen.contains(&reading) {
                seen.push(reading);
            }
        }
    }
    let mut spellings: Vec<String> = seen
        .iter()
        .map(spell)
        .filter(|spelling| spelling != path)
        .collect();
    spellings.sort_unstable();
    spellings.dedup();
    Ok(spellings)
}

/// Whether every server that decodes escapes once reads the same: no parameters, and no escape but
/// of characters that cannot stand unencoded and do not hide others.
fn has_one_reading(path: &[u8]) -> bool {
    let mut at = 0;
    while let Some(&byte) = path.get(at) {
        at += 1;
        if byte == b';' {
            return false;
        }
        if byte == b'%' {
            // 0xEF begins the full-width forms.
            match escape(path.get(at..at + 2)) {
                None | Some(b'%' | 0xef) => return false,
                Some(value) if class(value) == Class::Literal => return false,
                Some(_) => at += 2,
            }
        }
    }
    true
}

/// Decodes every escape once, `%uXXXX` too.
fn decode(reading: &Reading) -> Reading {
    let encoded = &reading.bytes;
    let mut bytes = Vec::with_capacity(encoded.len());
    let mut at = 0;
    while let Some(&byte) = encoded.get(at) {
        let decoded = match byte {
            b'%' => escape(encoded.get(at + 1..at + 3))
                .map(|value| (value, 3))
                .or_else(|| unicode_escape(encoded.get(at + 1..at + 6)?).map(|value| (value, 6))),
            _ => None,
        };
        let (value, length) = decoded.unwrap_or((byte, 1));
        bytes.push(value);
        at += length;
    }
    Reading {
        bytes,
        decoded: true,
    }
}

/// `uXXXX` of an ASCII character, as some servers from Microsoft read it.
fn unicode_escape(bytes: &[u8]) -> Option<u8> {
    let [b'u' | b'U', b'0', b'0', high, low] = bytes else {
        return None;
    };
    escape(Some(&[*high, *low])).filter(u8::is_ascii)
}

/// Overlong and full-width forms of ASCII characters become these.
fn odd_ascii(reading: &Reading) -> Reading {
    let mut bytes = Vec::with_capacity(reading.bytes.len());
    let mut rest = reading.bytes.as_slice();
    while let [first, ..] = rest {
        let (value, length) = match rest {
            [lead @ 0xc0..=0xc1, low @ 0x80..=0xbf, ..] => (((lead & 1) << 6) | (low & 0x3f), 2),
            [0xe0, middle @ 0x80..=0x81, low @ 0x80..=0xbf, ..] => {
                (((middle & 1) << 6) | (low & 0x3f), 3)
            }
            [0xef, 0xbc, low @ 0x81..=0xbf, ..] => (low - 0x60, 3),
            [0xef, 0xbd, low @ 0x80..=0x9e, ..] => (low - 0x20, 3),
            _ => (*first, 1),
        };
        bytes.push(value);
        rest = rest.get(length..).unwrap_or(&[]);
    }
    reading.with(bytes)
}

fn backslashes(reading: &Reading) -> Reading {
    let slash = |byte: &u8| if *byte == b'\\' { b'/' } else { *byte };
    reading.with(reading.bytes.iter().map(slash).collect())
}

fn cut_at_nul(reading: &Reading) -> Reading {
    reading.with(
        reading
            .bytes
            .iter()
            .copied()
            .take_while(|byte| *byte != 0)
            .collect(),
    )
}

fn strip_parameters(reading: &Reading) -> Reading {
    let mut in_parameter = false;
    let mut bytes = reading.bytes.clone();
    bytes.retain(|byte| {
        in_parameter = match byte {
            b'/' => false,
            b';' => true,
            _ => in_parameter,
        };
        !in_parameter
    });
    reading.with(bytes)
}

fn merge_slashes(reading: &Reading) -> Reading {
    let mut bytes = reading.bytes.clone();
    bytes.dedup_by(|right, left| *right == b'/' && *left == b'/');
    reading.with(bytes)
}

/// As RFC 3986 section 5.2.4 says: without merging slashes, and clamped at the root.
fn resolve_dots(reading: &Reading) -> Reading {
    let mut bytes = Vec::with_capacity(reading.bytes.len());
    let mut segments = reading.bytes.split(|byte| *byte == b'/').skip(1).peekable();
    while let Some(segment) = segments.next() {
        let is_dots = matches!(segment, b"." | b"..");
        if segment == b".." {
            bytes.truncate(bytes.iter().rposition(|byte| *byte == b'/').unwrap_or(0));
        }
        if !is_dots {
            bytes.push(b'/');
            bytes.extend_from_slice(segment);
        } else if segments.peek().is_none() {
            bytes.push(b'/');
        }
    }
    reading.with(bytes)
}

fn spell(reading: &Reading) -> String {
    let mut text = String::with_capacity(reading.bytes.len());
    for byte in &reading.bytes {
        match class(*byte) {
            Class::Unreserved | Class::Literal | Class::Slash => text.push(char::from(*byte)),
            Class::Percent if !reading.decoded => text.push('%'),
            Class::Percent
            | Class::Escaped
            | Class::Backslash
            | Class::Control
            | Class::Foreign => {
                push_escape(&mut text, *byte);
            }
        }
    }
    text
}
