//! The type of an unquoted scalar.
//!
//! kubectl and every tool built on `sigs.k8s.io/yaml` read YAML with a parser whose scalars follow
//! YAML 1.1: `yes`, `no`, `on`, `off`, `y` and `n` are booleans, `010` is eight, `1_000` a
//! thousand. YAML 1.2 reads the same words as texts and ten. The same manifest must mean the same
//! in a file and in a cluster, so this module follows kubectl. What is quoted is always a text.

use serde_json::Number;

use super::Value;

/// A number that JSON cannot carry: infinite, not a number, or beyond 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NoJsonNumber;

/// The value of an unquoted, untagged scalar.
pub(super) fn plain(text: &str) -> Result<Value, NoJsonNumber> {
    let Some(first) = text.bytes().next() else {
        return Ok(Value::Null);
    };
    match first {
        b'~' | b'n' | b'N' | b't' | b'T' | b'f' | b'F' | b'y' | b'Y' | b'o' | b'O' => {
            Ok(word(text))
        }
        b'+' | b'-' | b'.' | b'0'..=b'9' => number(text),
        _ => Ok(Value::Text(text.into())),
    }
}

fn word(text: &str) -> Value {
    match text {
        "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" | "y" | "Y" | "yes" | "Yes" | "YES" | "on" | "On" | "ON" => {
            Value::Bool(true)
        }
        "false" | "False" | "FALSE" | "n" | "N" | "no" | "No" | "NO" | "off" | "Off" | "OFF" => {
            Value::Bool(false)
        }
        _ => Value::Text(text.into()),
    }
}

fn number(text: &str) -> Result<Value, NoJsonNumber> {
    match text {
        ".nan" | ".NaN" | ".NAN" | ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF"
        | "-.inf" | "-.Inf" | "-.INF" => return Err(NoJsonNumber),
        _ => {}
    }
    let digits = if text.contains('_') && !text.starts_with('.') {
        text.replace('_', "")
    } else {
        text.to_owned()
    };
    if let Some(parsed) = integer(&digits) {
        return parsed.map(Value::Number);
    }
    if is_float(&digits) {
        return digits
            .parse::<f64>()
            .ok()
            .and_then(Number::from_f64)
            .map(Value::Number)
            .ok_or(NoJsonNumber);
    }
    Ok(Value::Text(text.into()))
}

/// An integer in any base, if the text is one.
fn integer(text: &str) -> Option<Result<Number, NoJsonNumber>> {
    let (negative, rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let lower = rest.as_bytes();
    let (base, digits) = match lower {
        [b'0', b'x' | b'X', ..] => (16, &rest[2..]),
        [b'0', b'o' | b'O', ..] => (8, &rest[2..]),
        [b'0', b'b' | b'B', ..] => (2, &rest[2..]),
        [b'0', _, ..] => (8, &rest[1..]),
        _ => (10, rest),
    };
    if digits.is_empty() || !digits.chars().all(|c| c.is_digit(base)) {
        return None;
    }
    let Ok(size) = u64::from_str_radix(digits, base) else {
        return Some(Err(NoJsonNumber));
    };
    if !negative {
        return Some(Ok(size.into()));
    }
    Some(
        0_i64
            .checked_sub_unsigned(size)
            .map(Number::from)
            .ok_or(NoJsonNumber),
    )
}

/// `[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?`
fn is_float(text: &str) -> bool {
    let text = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (text, None),
    };
    let all_digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    let mantissa_fine = match mantissa.split_once('.') {
        Some(("", fraction)) => !fraction.is_empty() && all_digits(fraction),
        Some((whole, fraction)) => all_digits(whole) && all_digits(fraction),
        None => !mantissa.is_empty() && all_digits(mantissa),
    };
    mantissa_fine
        && exponent.is_none_or(|exponent| {
            let exponent = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
            !exponent.is_empty() && all_digits(exponent)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scalars_have_the_types_that_kubectl_gives_them() {
        let cases = [
            ("", "null"),
            ("~", "null"),
            ("null", "null"),
            ("nullx", r#""nullx""#),
            ("yes", "true"),
            ("On", "true"),
            ("y", "true"),
            ("n", "false"),
            ("off", "false"),
            ("yEs", r#""yEs""#),
            ("1", "1"),
            ("+1", "1"),
            ("-1", "-1"),
            ("-0", "0"),
            ("010", "8"),
            ("08", "8.0"),
            ("0o17", "15"),
            ("0x1F", "31"),
            ("0b11", "3"),
            ("-0b11", "-3"),
            ("1_000", "1000"),
            ("18446744073709551615", "18446744073709551615"),
            ("-9223372036854775808", "-9223372036854775808"),
            ("1.5", "1.5"),
            (".5", "0.5"),
            ("1.", "1.0"),
            ("1e3", "1000.0"),
            ("1.2.3", r#""1.2.3""#),
            ("10.0.0.1", r#""10.0.0.1""#),
            ("10.0.0.0/8", r#""10.0.0.0/8""#),
            ("2001-01-01", r#""2001-01-01""#),
            ("12:30:45", r#""12:30:45""#),
            ("5s", r#""5s""#),
            ("-", r#""-""#),
            ("+", r#""+""#),
            (".", r#"".""#),
            ("-x", r#""-x""#),
            ("0x", r#""0x""#),
            ("0xg", r#""0xg""#),
            ("0b", r#""0b""#),
            ("1e", r#""1e""#),
            ("__", r#""__""#),
            ("٣", r#""٣""#),
        ];
        for (text, expected) in cases {
            let value = plain(text).expect("a JSON number");
            let node = crate::yaml::Node {
                mark: crate::yaml::Mark::START,
                offset: 0,
                size: 0,
                value,
            };
            assert_eq!(node.to_json().to_string(), expected, "{text:?}");
        }
    }

    #[test]
    fn what_json_cannot_carry_is_refused() {
        for text in [
            ".nan",
            ".inf",
            "-.INF",
            "18446744073709551616",
            "-9223372036854775809",
            "1e999",
        ] {
            assert!(matches!(plain(text), Err(NoJsonNumber)), "{text}");
        }
    }
}
