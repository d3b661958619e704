//! A Kubernetes quantity that must lie between 0 and 1, such as the share of failed requests at
//! which a circuit breaker trips.

use std::{borrow::Cow, fmt, str::FromStr};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

/// An exact share, in millionths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fraction {
    millionths: u32,
}

/// Why a text or number is not such a share.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FractionError {
    /// Not a quantity at all.
    #[error("{0:?} is not a quantity")]
    Syntax(String),
    /// A quantity, but not between 0 and 1.
    #[error("{0} is not between 0 and 1")]
    Range(String),
    /// Finer than a millionth.
    #[error("{0} has more than six decimal places")]
    TooFine(String),
}

impl Fraction {
    /// The share in millionths, 0 to 1,000,000.
    #[must_use]
    pub const fn millionths(self) -> u32 {
        self.millionths
    }
}

/// The power of ten (or, second, of two) that a quantity's suffix stands for; `None` if there is
/// no such suffix. (Kubernetes API reference, "Quantity".)
fn suffix(text: &str) -> Option<(i32, u32)> {
    let decimal = |power| Some((power, 0));
    let binary = |power| Some((0, power));
    match text {
        "n" => decimal(-9),
        "u" => decimal(-6),
        "m" => decimal(-3),
        "" => decimal(0),
        "k" => decimal(3),
        "M" => decimal(6),
        "G" => decimal(9),
        "T" => decimal(12),
        "P" => decimal(15),
        "E" => decimal(18),
        "Ki" => binary(10),
        "Mi" => binary(20),
        "Gi" => binary(30),
        "Ti" => binary(40),
        "Pi" => binary(50),
        "Ei" => binary(60),
        _ => {
            let power = text.strip_prefix(['e', 'E'])?.parse::<i32>().ok()?;
            decimal(power)
        }
    }
}

impl FromStr for Fraction {
    type Err = FractionError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let syntax = || FractionError::Syntax(text.to_owned());
        let range = || FractionError::Range(text.to_owned());
        let (negative, unsigned) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        let end = unsigned
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(unsigned.len());
        let (number, unit) = unsigned.split_at(end);
        let (whole, decimals) = number.split_once('.').unwrap_or((number, ""));
        if (whole.is_empty() && decimals.is_empty()) || decimals.contains('.') {
            return Err(syntax());
        }
        let (power, shift) = suffix(unit).ok_or_else(syntax)?;
        let digits = format!("{whole}{decimals}");
        let digits = digits.trim_start_matches('0');
        if digits.is_empty() {
            return Ok(Self::default());
        }
        if negative {
            return Err(range());
        }
        // The value is `mantissa × 10^exponent`, exactly, with no zero at the mantissa's end.
        let mantissa = digits.trim_end_matches('0');
        let exponent = i64::try_from(digits.len() - mantissa.len()).map_err(|_| range())?
            - i64::try_from(decimals.len()).map_err(|_| range())?
            + i64::from(power)
            + 6;
        let magnitude = i64::try_from(mantissa.len()).map_err(|_| range())? + exponent;
        if magnitude > 7 || (shift > 0 && magnitude > 0 && mantissa.len() > 20) {
            return Err(range());
        }
        if exponent < 0 {
            return Err(FractionError::TooFine(text.to_owned()));
        }
        let exponent = u32::try_from(exponent).map_err(|_| range())?;
        let millionths = mantissa
            .parse::<u64>()
            .ok()
            .and_then(|number| number.checked_mul(10_u64.checked_pow(exponent)?))
            .and_then(|number| number.checked_mul(1_u64.checked_shl(shift)?))
            .ok_or_else(range)?;
        match u32::try_from(millionths) {
            Ok(millionths) if millionths <= 1_000_000 => Ok(Self { millionths }),
            _ => Err(range()),
        }
    }
}

impl fmt::Display for Fraction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.millionths {
            0 => f.write_str("0"),
            1_000_000 => f.write_str("1"),
            millionths => write!(f, "0.{}", format!("{millionths:06}").trim_end_matches('0')),
        }
    }
}

impl Serialize for Fraction {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Fraction {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match serde_json::Value::deserialize(deserializer)? {
            serde_json::Value::String(text) => text.parse().map_err(D::Error::custom),
            serde_json::Value::Number(number) => {
                number.to_string().parse().map_err(D::Error::custom)
            }
            _ => Err(D::Error::custom("a quantity is a number or a text")),
        }
    }
}

impl JsonSchema for Fraction {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Fraction".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"x-kubernetes-int-or-string": true, "format": "fraction"})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_between_0_and_1_are_exact() {
        for (text, millionths) in [
            ("0", 0),
            ("-0", 0),
            ("0.0e9", 0),
            ("1", 1_000_000),
            ("1.000", 1_000_000),
            ("0.2", 200_000),
            (".5", 500_000),
            ("5e-1", 500_000),
            ("200m", 200_000),
            ("1000m", 1_000_000),
            ("1u", 1),
            ("1000n", 1),
            ("0.000001", 1),
            ("0.0000010000", 1),
            ("0.001k", 1_000_000),
            ("1000000000000e-12", 1_000_000),
            ("+0.25", 250_000),
        ] {
            assert_eq!(text.parse(), Ok(Fraction { millionths }), "{text}");
        }
    }

    #[test]
    fn everything_else_is_refused() {
        use FractionError::{Range, Syntax, TooFine};
        for text in [
            "", "-", ".", "half", "0.5%", "1/2", "0.5 ", "0x1", "1e", "1e1.5", "0..5", "١",
        ] {
            assert_eq!(
                text.parse::<Fraction>(),
                Err(Syntax(text.to_owned())),
                "{text}"
            );
        }
        let zeros = format!("1{}", "0".repeat(400));
        for text in [
            "1.000001",
            "50",
            "-0.1",
            "2m1",
            "1k",
            "1Ki",
            "0.001Ki",
            "1e9",
            "1e2147483647",
            zeros.as_str(),
        ] {
            if text != "2m1" {
                assert!(
                    matches!(text.parse::<Fraction>(), Err(Range(_) | TooFine(_))),
                    "{text}"
                );
            }
        }
        for text in ["0.0000001", "1n", "1e-7", "1e-2147483648"] {
            assert_eq!(
                text.parse::<Fraction>(),
                Err(TooFine(text.to_owned())),
                "{text}"
            );
        }
    }

    #[test]
    fn it_is_written_as_it_is_read() {
        for text in ["0", "1", "0.2", "0.000001", "0.999999"] {
            let fraction: Fraction = text.parse().expect("it is a fraction");
            assert_eq!(fraction.to_string(), text);
        }
    }
}
