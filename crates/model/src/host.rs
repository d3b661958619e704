//! Host names and the patterns by which an edge claims them.

use std::{fmt, sync::Arc};

use serde::{Deserialize, Serialize};

/// Why a text is not a host or host pattern.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HostError {
    /// Nothing there, or more than 253 bytes.
    #[error("a host has 1 to 253 characters")]
    Length,
    /// A label is empty, longer than 63 bytes, or starts or ends with a hyphen.
    #[error("{0:?} is not a label of a host name")]
    Label(String),
    /// An address where a name is needed.
    #[error("an IP address is not a host name")]
    Address,
    /// `*` elsewhere than as the whole first label, or over a single label.
    #[error("a wildcard is the first label alone, above at least one more: *.example.com")]
    Wildcard,
}

/// A concrete host name as a request names it: lower-case ASCII, no trailing dot, no port.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Host(Arc<str>);

/// What a declaration claims: a host name, or `*.` and a name, which matches exactly one label
/// more (Kubernetes: Ingress, "Hostname wildcards").
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct HostPattern(Arc<str>);

fn check_name(name: &str) -> Result<(), HostError> {
    if name.is_empty() || name.len() > 253 {
        return Err(HostError::Length);
    }
    if name.parse::<std::net::IpAddr>().is_ok() || name.starts_with('[') {
        return Err(HostError::Address);
    }
    for label in name.split('.') {
        let fine = !label.is_empty()
            && label.len() <= 63
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label
                .bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' || b == b'_');
        if !fine {
            return Err(HostError::Label(label.to_owned()));
        }
    }
    // RFC 3696 section 2: a last label of digits alone would be read as an address by some.
    if name
        .rsplit('.')
        .next()
        .is_some_and(|last| last.bytes().all(|b| b.is_ascii_digit()))
    {
        return Err(HostError::Address);
    }
    Ok(())
}

fn lower(text: &str) -> String {
    let text = text.strip_suffix('.').unwrap_or(text);
    text.to_ascii_lowercase()
}

impl Host {
    /// Reads a host name in any case, with or without a trailing dot.
    ///
    /// # Errors
    /// When it is no host name.
    pub fn parse(text: &str) -> Result<Self, HostError> {
        let name = lower(text);
        check_name(&name)?;
        Ok(Self(name.into()))
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl HostPattern {
    /// Reads a host name or wildcard in any case, with or without a trailing dot.
    ///
    /// # Errors
    /// When it is neither.
    pub fn parse(text: &str) -> Result<Self, HostError> {
        let name = lower(text);
        let rest = name.strip_prefix("*.");
        if rest.unwrap_or(&name).contains('*') {
            return Err(HostError::Wildcard);
        }
        check_name(rest.unwrap_or(&name))?;
        if name.len() > 253 {
            return Err(HostError::Length);
        }
        Ok(Self(name.into()))
    }

    /// The pattern as written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it stands for many hosts.
    #[must_use]
    pub fn is_wildcard(&self) -> bool {
        self.0.starts_with("*.")
    }

    /// The part behind `*.`, for a wildcard.
    #[must_use]
    pub fn suffix(&self) -> Option<&str> {
        self.0.strip_prefix("*.")
    }

    /// Whether requests for this host are answered by this pattern, seen alone.
    #[must_use]
    pub fn matches(&self, host: &Host) -> bool {
        self.suffix().map_or_else(
            || self.0 == host.0,
            |suffix| {
                host.0
                    .split_once('.')
                    .is_some_and(|(_, rest)| rest == suffix)
            },
        )
    }

    /// The wildcard that would answer for this pattern's hosts if this pattern were gone.
    #[must_use]
    pub fn broader(&self) -> Option<Self> {
        if self.is_wildcard() {
            return None;
        }
        let (_, rest) = self.0.split_once('.')?;
        Self::parse(&format!("*.{rest}")).ok()
    }

    /// Whether a claim on `self` also claims `other` for the purpose of ownership (R20): a
    /// wildcard owns every name below it, however many labels deep.
    #[must_use]
    pub fn owns(&self, other: &Self) -> bool {
        self == other
            || self.suffix().is_some_and(|suffix| {
                let name = other.suffix().unwrap_or(&other.0);
                name.strip_suffix(suffix).is_some_and(|head| {
                    head.ends_with('.') || (head.is_empty() && other.is_wildcard())
                })
            })
    }
}

macro_rules! as_text {
    ($type:ident) => {
        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
        impl From<$type> for String {
            fn from(value: $type) -> Self {
                value.as_str().to_owned()
            }
        }
        impl TryFrom<String> for $type {
            type Error = HostError;
            fn try_from(text: String) -> Result<Self, HostError> {
                Self::parse(&text)
            }
        }
    };
}
as_text!(Host);
as_text!(HostPattern);

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(text: &str) -> HostPattern {
        HostPattern::parse(text).unwrap_or_else(|error| unreachable!("{text}: {error}"))
    }

    fn host(text: &str) -> Host {
        Host::parse(text).unwrap_or_else(|error| unreachable!("{text}: {error}"))
    }

    #[test]
    fn a_wildcard_matches_one_label_and_owns_all_below() {
        let wild = pattern("*.Example.com.");
        assert!(wild.matches(&host("a.example.com")));
        assert!(!wild.matches(&host("a.b.example.com")));
        assert!(!wild.matches(&host("example.com")));
        assert!(wild.owns(&pattern("a.b.example.com")));
        assert!(wild.owns(&pattern("*.b.example.com")));
        assert!(wild.owns(&wild));
        assert!(!wild.owns(&pattern("example.com")));
        assert!(!wild.owns(&pattern("a.badexample.com")));
        assert_eq!(pattern("a.example.com").broader(), Some(wild));
    }

    #[test]
    fn what_is_no_host_is_refused() {
        for text in [
            "",
            "*",
            "*.",
            "a..b",
            "a.*.b",
            "*a.b",
            "127.0.0.1",
            "::1",
            "[::1]",
            "a b",
            "-a.b",
            "a.1",
            "a/b",
            "ä.b",
            "a.b:443",
        ] {
            assert!(HostPattern::parse(text).is_err(), "{text}");
        }
    }
}
