//! Durations in Go's notation (`1h30m`, `1.5h`, `250ms`), as the API of the edge kinds has them.
//!
//! Kubernetes' schema format `duration` also admits days, weeks and blanks, which the Go decoder
//! refuses; so do we, with words. What the edge is told are whole seconds in 32 bits: a duration
//! that would become zero on the way would switch its limit off, and is refused here.

use std::{borrow::Cow, fmt, str::FromStr};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// An exact, non-negative duration whose whole seconds fit in 32 bits.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(into = "String", try_from = "String")]
pub struct GoDuration {
    nanos: u64,
}

/// Why a text is not such a duration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DurationError {
    /// Nothing there.
    #[error("an empty text is not a duration")]
    Empty,
    /// Not a number where a number is needed.
    #[error("{0:?} is not a duration")]
    Syntax(String),
    /// A number without its unit.
    #[error("{0:?} lacks a unit")]
    NoUnit(String),
    /// A unit that the notation does not have (`d`, `w`).
    #[error("{unit:?} is not a unit of time in {text:?}")]
    Unit {
        /// The whole text.
        text: String,
        /// The unit.
        unit: String,
    },
    /// Below zero.
    #[error("{0:?} is negative")]
    Negative(String),
    /// More than 4294967295 seconds.
    #[error("{0:?} is more than 4294967295 seconds")]
    TooLong(String),
    /// More than nothing, less than a second: the edge counts in seconds and would read zero.
    #[error("{0:?} is less than a second")]
    BelowSecond(String),
}

impl GoDuration {
    /// A duration of whole seconds.
    #[must_use]
    pub const fn from_secs(secs: u32) -> Self {
        Self {
            nanos: secs as u64 * 1_000_000_000,
        }
    }

    /// Whole seconds, truncated as the edge API has them.
    #[must_use]
    pub const fn whole_secs(self) -> u32 {
        // Fits: construction refuses more than u32::MAX seconds.
        (self.nanos / 1_000_000_000) as u32
    }

    /// Whether it is zero, which stands for "not set".
    #[must_use]
    pub const fn is_zero(self) -> bool {
        self.nanos == 0
    }
}

/// Nanoseconds of a unit, in the order in which they are tried.
const UNITS: [(&str, u64); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("μs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// Splits off what satisfies the test.
fn split_while(text: &str, test: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(|c| !test(c)).unwrap_or(text.len()))
}

/// The nanoseconds of one `NUMBER UNIT` pair, cut to whole ones as Go does; `None` if they do not
/// fit.
fn pair_nanos(whole: &str, fraction: &str, unit: u64) -> Option<u64> {
    let whole = if whole.is_empty() {
        0
    } else {
        whole.parse::<u64>().ok()?
    };
    // Eighteen decimals of an hour are far below a nanosecond, and fit.
    let digits = &fraction[..fraction.len().min(18)];
    let (mut parts, mut scale) = (0_u128, 1_u128);
    for digit in digits.bytes() {
        parts = parts * 10 + u128::from(digit - b'0');
        scale *= 10;
    }
    let part = u64::try_from(parts * u128::from(unit) / scale).ok()?;
    whole.checked_mul(unit)?.checked_add(part)
}

impl FromStr for GoDuration {
    type Err = DurationError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let owned = || text.to_owned();
        if text.is_empty() {
            return Err(DurationError::Empty);
        }
        let (negative, mut rest) = match text.as_bytes()[0] {
            b'-' => (true, &text[1..]),
            b'+' => (false, &text[1..]),
            _ => (false, text),
        };
        if rest == "0" {
            return Ok(Self::default());
        }
        if rest.is_empty() {
            return Err(DurationError::Syntax(owned()));
        }
        let mut nanos: u64 = 0;
        while !rest.is_empty() {
            let (whole, after) = split_while(rest, |c| c.is_ascii_digit());
            let (fraction, after) = match after.strip_prefix('.') {
                Some(after) => split_while(after, |c| c.is_ascii_digit()),
                None => ("", after),
            };
            if whole.is_empty() && fraction.is_empty() {
                return Err(DurationError::Syntax(owned()));
            }
            let (unit, after) = split_while(after, |c| c != '.' && !c.is_ascii_digit());
            if unit.is_empty() {
                return Err(DurationError::NoUnit(owned()));
            }
            let Some((_, size)) = UNITS.iter().find(|(name, _)| *name == unit) else {
                return Err(DurationError::Unit {
                    text: owned(),
                    unit: unit.to_owned(),
                });
            };
            nanos = pair_nanos(whole, fraction, *size)
                .and_then(|more| nanos.checked_add(more))
                .ok_or_else(|| DurationError::TooLong(owned()))?;
            rest = after;
        }
        if negative && nanos > 0 {
            return Err(DurationError::Negative(owned()));
        }
        if nanos / 1_000_000_000 > u64::from(u32::MAX) {
            return Err(DurationError::TooLong(owned()));
        }
        if nanos > 0 && nanos < 1_000_000_000 {
            return Err(DurationError::BelowSecond(owned()));
        }
        Ok(Self { nanos })
    }
}

impl TryFrom<String> for GoDuration {
    type Error = DurationError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl fmt::Display for GoDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let secs = self.nanos / 1_000_000_000;
        let (hours, minutes, secs) = (secs / 3600, secs / 60 % 60, secs % 60);
        if hours > 0 {
            write!(f, "{hours}h")?;
        }
        if hours > 0 || minutes > 0 {
            write!(f, "{minutes}m")?;
        }
        match self.nanos % 1_000_000_000 {
            0 => write!(f, "{secs}s"),
            nanos => write!(f, "{secs}.{}s", format!("{nanos:09}").trim_end_matches('0')),
        }
    }
}

impl From<GoDuration> for String {
    fn from(duration: GoDuration) -> Self {
        duration.to_string()
    }
}

impl JsonSchema for GoDuration {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "GoDuration".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "format": "duration"})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<String, DurationError> {
        text.parse::<GoDuration>()
            .map(|duration| duration.to_string())
    }

    #[test]
    fn what_go_reads_is_read_and_written_as_go_writes_it() {
        for (text, written) in [
            ("0", "0s"),
            ("+0", "0s"),
            ("-0s", "0s"),
            ("10s", "10s"),
            ("1h30m", "1h30m0s"),
            ("1.5h", "1h30m0s"),
            (".5m", "30s"),
            ("1.s", "1s"),
            ("90s", "1m30s"),
            ("1500ms", "1.5s"),
            ("1s1ns", "1.000000001s"),
            ("1000000us", "1s"),
            ("1000000µs", "1s"),
            ("1000000μs", "1s"),
            ("1m1h", "1h1m0s"),
            ("4294967295s", "1193046h28m15s"),
            ("4294967295.9s", "1193046h28m15.9s"),
            ("0.33333333333333333333h", "19m59.999999999s"),
        ] {
            assert_eq!(parse(text).as_deref(), Ok(written), "{text}");
            assert_eq!(parse(written).as_deref(), Ok(written));
        }
    }

    #[test]
    fn what_go_or_the_edge_refuses_is_refused() {
        use DurationError::{BelowSecond, Empty, Negative, NoUnit, Syntax, TooLong, Unit};
        let own = str::to_owned;
        let unit = |text: &str, unit: &str| Unit {
            text: own(text),
            unit: own(unit),
        };
        for (text, error) in [
            ("", Empty),
            ("+", Syntax(own("+"))),
            ("s", Syntax(own("s"))),
            (".s", Syntax(own(".s"))),
            ("1s-1s", unit("1s-1s", "s-")),
            (" 1s", Syntax(own(" 1s"))),
            ("10", NoUnit(own("10"))),
            ("1h10", NoUnit(own("1h10"))),
            ("1d", unit("1d", "d")),
            ("1 s", unit("1 s", " s")),
            ("1S", unit("1S", "S")),
            ("1e3s", unit("1e3s", "e")),
            ("-1s", Negative(own("-1s"))),
            ("-1ns", Negative(own("-1ns"))),
            ("999ms", BelowSecond(own("999ms"))),
            ("1ns", BelowSecond(own("1ns"))),
            ("4294967296s", TooLong(own("4294967296s"))),
            (
                "99999999999999999999h",
                TooLong(own("99999999999999999999h")),
            ),
            (
                "9999999h9999999h9999999h",
                TooLong(own("9999999h9999999h9999999h")),
            ),
        ] {
            assert_eq!(parse(text), Err(error), "{text}");
        }
    }

    #[test]
    fn the_edge_is_told_whole_seconds() {
        let secs = |text: &str| {
            text.parse::<GoDuration>()
                .expect("it is a duration")
                .whole_secs()
        };
        assert_eq!(secs("1.9s"), 1);
        assert_eq!(secs("1h"), 3600);
        assert_eq!(secs("4294967295.9s"), u32::MAX);
        assert!(GoDuration::from_secs(0).is_zero());
        assert_eq!(GoDuration::from_secs(u32::MAX).whole_secs(), u32::MAX);
    }
}
