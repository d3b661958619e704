//! The other paths that backends are known to read in a path (R16).
//!
//! Some servers cut `;parameters` off every segment before they resolve dots (the servlet
//! family), some decode twice, some take overlong UTF-8, full-width forms or `%u002F` for ASCII,
//! a backslash for a slash, or end a path at NUL. Each is a step from one text to a shorter one;
//! all combinations of steps are followed until nothing new comes, within a bound.

use super::{AboveRoot, Class, class, escape, push_escape, resolve};

/// More ways to read a path than are worth following: the request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the path can be read in too many ways")]
pub struct TooManyReadings;

const READINGS_MAX: usize = 24;

/// A text on the way: `decoded` once an escape has been read, so that its percent signs are data.
#[derive(Clone, PartialEq, Eq)]
struct Reading {
    bytes: Vec<u8>,
    decoded: bool,
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
    let mut next = 0;
    while let Some(reading) = seen.get(next).cloned() {
        next += 1;
        let decoded = Reading {
            bytes: decode(&reading.bytes),
            decoded: true,
        };
        let cut = Reading {
            bytes: cut_at_nul(&decoded.bytes),
            decoded: true,
        };
        let stripped = Reading {
            bytes: strip_parameters(&reading.bytes),
            decoded: reading.decoded,
        };
        for found in [decoded, cut, stripped] {
            let found = Reading {
                bytes: settle(&found.bytes),
                decoded: found.decoded,
            };
            if !seen.contains(&found) {
                seen.push(found);
            }
        }
        if seen.len() > READINGS_MAX {
            return Err(TooManyReadings);
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

/// Decodes every escape once, `%uXXXX` too, and takes odd spellings of ASCII for ASCII.
fn decode(bytes: &[u8]) -> Vec<u8> {
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let (value, length) = match byte {
            b'%' => escape(bytes.get(at + 1..at + 3))
                .map(|value| (value, 3))
                .or_else(|| unicode_escape(bytes.get(at + 1..at + 6)?).map(|value| (value, 6)))
                .unwrap_or((byte, 1)),
            _ => (byte, 1),
        };
        decoded.push(value);
        at += length;
    }
    to_ascii(&decoded)
}

/// `uXXXX` of an ASCII character, as some servers from Microsoft read it.
fn unicode_escape(bytes: &[u8]) -> Option<u8> {
    let [b'u' | b'U', b'0', b'0', high, low] = bytes else {
        return None;
    };
    escape(Some(&[*high, *low])).filter(u8::is_ascii)
}

/// Overlong and full-width forms of ASCII characters become these, backslashes become slashes.
fn to_ascii(bytes: &[u8]) -> Vec<u8> {
    let mut ascii = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let [first, tail @ ..] = rest {
        let (value, length) = match rest {
            [lead @ 0xc0..=0xc1, low @ 0x80..=0xbf, ..] => (((lead & 1) << 6) | (low & 0x3f), 2),
            [0xe0, middle @ 0x80..=0x81, low @ 0x80..=0xbf, ..] => {
                (((middle & 1) << 6) | (low & 0x3f), 3)
            }
            [0xef, 0xbc, low @ 0x81..=0xbf, ..] => (low - 0x60, 3),
            [0xef, 0xbd, low @ 0x80..=0x9e, ..] => (low - 0x20, 3),
            _ => (*first, 1),
        };
        ascii.push(if value == b'\\' { b'/' } else { value });
        rest = tail.get(length - 1..).unwrap_or(&[]);
    }
    ascii
}

fn cut_at_nul(bytes: &[u8]) -> Vec<u8> {
    bytes
        .iter()
        .copied()
        .take_while(|byte| *byte != 0)
        .collect()
}

fn strip_parameters(bytes: &[u8]) -> Vec<u8> {
    let mut in_parameter = false;
    let mut stripped = bytes.to_vec();
    stripped.retain(|byte| {
        in_parameter = match byte {
            b'/' => false,
            b';' => true,
            _ => in_parameter,
        };
        !in_parameter
    });
    stripped
}

/// Merges slashes and resolves dots as a backend would, byte for byte.
fn settle(bytes: &[u8]) -> Vec<u8> {
    // Latin-1 keeps bytes and characters one to one, so that one `resolve` serves both.
    let text: String = bytes.iter().copied().map(char::from).collect();
    let settled = resolve(&text, AboveRoot::Ignored).unwrap_or(text);
    settled
        .chars()
        .filter_map(|character| u8::try_from(character).ok())
        .collect()
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
