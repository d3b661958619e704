//! Follows a chunked body byte by byte, to know where it ends (R16).
//!
//! Stricter than RFC 9112 section 7.1 asks: extensions are refused, since no client needs them and
//! parsers disagree about where they end. Pure; fed in any pieces.

use super::head::{HeadError, is_token};

/// Bytes of the trailer section.
const TRAILER_BYTES_MAX: usize = 8 * 1024;

/// Where in a chunked body the bytes stand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Chunks {
    /// Before the first digit of a size.
    #[default]
    Size,
    /// Within the digits.
    Digits { value: u64, digits: u8 },
    /// The LF of a size line.
    SizeEnd { value: u64 },
    /// Within the data.
    Data { left: u64 },
    /// The CR behind the data.
    DataCr,
    /// The LF behind the data.
    DataLf,
    /// At the start of a trailer line.
    LineStart { bytes: usize },
    /// In the name of a trailer.
    TrailerName { bytes: usize },
    /// In the value of a trailer.
    TrailerValue { bytes: usize },
    /// The LF of a trailer line.
    TrailerLf { bytes: usize },
    /// The LF of the last, empty line.
    LastLf,
}

impl Chunks {
    /// Takes bytes; says how many belong to the body and whether it ended with them.
    pub(crate) fn take(&mut self, bytes: &[u8]) -> Result<(usize, bool), HeadError> {
        let mut at = 0;
        while at < bytes.len() {
            if let Self::Data { left } = *self {
                let here = usize::try_from(left)
                    .unwrap_or(usize::MAX)
                    .min(bytes.len() - at);
                at += here;
                let left = left - here as u64;
                *self = if left == 0 {
                    Self::DataCr
                } else {
                    Self::Data { left }
                };
                continue;
            }
            let byte = bytes[at];
            at += 1;
            if (*self, byte) == (Self::LastLf, b'\n') {
                return Ok((at, true));
            }
            *self = self.step(byte)?;
        }
        Ok((at, false))
    }

    fn step(self, byte: u8) -> Result<Self, HeadError> {
        Ok(match (self, byte) {
            (Self::Size, _) => Self::Digits {
                value: hex(byte)?,
                digits: 1,
            },
            (Self::Digits { value, .. }, b'\r') => Self::SizeEnd { value },
            (Self::Digits { value, digits }, _) if digits < 15 => Self::Digits {
                value: value * 16 + hex(byte)?,
                digits: digits + 1,
            },
            (Self::SizeEnd { value: 0 }, b'\n') => Self::LineStart { bytes: 0 },
            (Self::SizeEnd { value }, b'\n') => Self::Data { left: value },
            (Self::DataCr, b'\r') => Self::DataLf,
            (Self::DataLf, b'\n') => Self::Size,
            (Self::LineStart { .. }, b'\r') => Self::LastLf,
            (Self::LineStart { bytes } | Self::TrailerName { bytes }, _) if is_token(byte) => {
                Self::TrailerName {
                    bytes: bounded(bytes)?,
                }
            }
            (Self::TrailerName { bytes }, b':') => Self::TrailerValue {
                bytes: bounded(bytes)?,
            },
            (Self::TrailerValue { bytes }, b'\r') => Self::TrailerLf { bytes },
            (Self::TrailerValue { bytes }, b'\t' | b' '..=b'~' | 0x80..) => Self::TrailerValue {
                bytes: bounded(bytes)?,
            },
            (Self::TrailerLf { bytes }, b'\n') => Self::LineStart { bytes },
            _ => return Err(HeadError::Chunk),
        })
    }
}

fn bounded(bytes: usize) -> Result<usize, HeadError> {
    if bytes < TRAILER_BYTES_MAX {
        Ok(bytes + 1)
    } else {
        Err(HeadError::TooLarge)
    }
}

fn hex(byte: u8) -> Result<u64, HeadError> {
    char::from(byte)
        .to_digit(16)
        .map(u64::from)
        .ok_or(HeadError::Chunk)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(body: &[u8]) -> Result<(usize, bool), HeadError> {
        Chunks::default().take(body)
    }

    #[test]
    fn a_body_ends_at_the_same_byte_however_it_is_cut() {
        let body = b"5\r\nhello\r\n1A\r\nabcdefghijklmnopqrstuvwxyz\r\n0\r\nx-a: b\r\n\r\nGET / HTTP/1.1\r\n";
        let end = body.len() - b"GET / HTTP/1.1\r\n".len();
        assert_eq!(whole(body), Ok((end, true)));
        for cut in 1..end {
            let mut chunks = Chunks::default();
            assert_eq!(chunks.take(&body[..cut]), Ok((cut, false)));
            assert_eq!(
                chunks.take(&body[cut..]),
                Ok((end - cut, true)),
                "cut at {cut}"
            );
        }
    }

    #[test]
    fn what_parsers_disagree_about_is_refused() {
        for body in [
            "5;a=b\r\nhello\r\n",
            "5 \r\nhello\r\n",
            " 5\r\nhello\r\n",
            "5\nhello\n0\n\n",
            "0x5\r\nhello\r\n",
            "5\r\nhello0\r\n",
            "\r\nhello",
            "+5\r\nhello",
            "-1\r\n",
            "fffffffffffffffff\r\n",
            "0\r\nx : y\r\n\r\n",
            "0\r\n x\r\n\r\n",
            "0\r\nx: \0\r\n\r\n",
            "0\r\n\n",
        ] {
            assert!(whole(body.as_bytes()).is_err(), "{body:?}");
        }
    }
}
