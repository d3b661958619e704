//! Hosts: which host a request is for, whatever ways it has of saying so (R16).
//!
//! A request names its host in the `Host` header, in an absolute target, or in `:authority`. All
//! that are there must agree; `Host` appears once; case, one trailing dot and the port are no part
//! of the name. RFC 9112 lets a proxy prefer the absolute target over `Host`; since backends and
//! intermediaries disagree there, a difference is refused instead.

use std::{borrow::Cow, fmt, net::Ipv6Addr};

/// Longest host and port, in bytes.
pub const AUTHORITY_BYTES_MAX: usize = 253 + 1 + ":65535".len();

/// Why a request's host cannot be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, thiserror::Error)]
pub enum HostProblem {
    /// None is named.
    #[error("the request does not name a host")]
    Missing,
    /// `Host` stands more than once, equal or not.
    #[error("the request has more than one Host")]
    Duplicate,
    /// Two sources differ.
    #[error("the request names two different hosts")]
    Conflict,
    /// Not a host with an optional port.
    #[error("the request's host is not a host name with an optional port")]
    Invalid,
    /// The target's scheme is not the connection's.
    #[error("the request's scheme is not that of the connection")]
    Scheme,
}

/// How the connection carries requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scheme {
    /// In clear.
    Http,
    /// Over TLS.
    Https,
}

impl Scheme {
    /// The name in URLs and in `x-forwarded-proto`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }

    /// The port that a host without one means.
    #[must_use]
    pub const fn default_port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }
}

/// The major version of HTTP, as far as hosts are concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    /// `Host` must be there, exactly once (RFC 9112 section 3.2).
    Http1,
    /// `:authority` or `Host`; if both, equal (RFC 9113 section 8.3.1).
    Http2,
}

/// A host and port, normalised.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Authority<'r> {
    host: Cow<'r, str>,
    port: Option<u16>,
}

impl<'r> Authority<'r> {
    /// Reads a host with an optional port. Borrows when it is spelled normally already.
    ///
    /// # Errors
    /// [`HostProblem::Invalid`]: user information, an escape, a bad port or name.
    pub fn parse(text: &'r str) -> Result<Self, HostProblem> {
        if text.is_empty() || text.len() > AUTHORITY_BYTES_MAX {
            return Err(HostProblem::Invalid);
        }
        if let Some(rest) = text.strip_prefix('[') {
            let (address, rest) = rest.split_once(']').ok_or(HostProblem::Invalid)?;
            let address: Ipv6Addr = address.parse().map_err(|_| HostProblem::Invalid)?;
            let port = rest.strip_prefix(':').map(port).transpose()?;
            if port.is_none() && !rest.is_empty() {
                return Err(HostProblem::Invalid);
            }
            return Ok(Self {
                host: Cow::Owned(format!("[{address}]")),
                port,
            });
        }
        let (name, port) = match text.split_once(':') {
            None => (text, None),
            Some((name, digits)) => (name, Some(port(digits)?)),
        };
        Ok(Self {
            host: normal_name(name)?,
            port,
        })
    }

    /// The normalised host.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The port, if one is named.
    #[must_use]
    pub const fn port(&self) -> Option<u16> {
        self.port
    }

    fn is_same(&self, other: &Authority<'_>, scheme: Scheme) -> bool {
        let port = |port: Option<u16>| port.unwrap_or(scheme.default_port());
        self.host == other.host && port(self.port) == port(other.port)
    }
}

/// What a backend sees in `Host` and in `x-forwarded-host`: the host that was matched.
impl fmt::Display for Authority<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.host)?;
        self.port.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}

fn port(digits: &str) -> Result<u16, HostProblem> {
    // `parse` alone would take a plus sign.
    let fine =
        !digits.is_empty() && digits.len() <= 5 && digits.bytes().all(|byte| byte.is_ascii_digit());
    let port = if fine { digits.parse().unwrap_or(0) } else { 0 };
    if port == 0 {
        Err(HostProblem::Invalid)
    } else {
        Ok(port)
    }
}

/// The one spelling of a host name: lower case, without the trailing dot.
///
/// # Errors
/// [`HostProblem::Invalid`] when it is no host name.
pub fn normal_name(name: &str) -> Result<Cow<'_, str>, HostProblem> {
    let name = name.strip_suffix('.').unwrap_or(name);
    if name.is_empty() || name.len() > 253 {
        return Err(HostProblem::Invalid);
    }
    let (mut label_length, mut has_upper) = (0_usize, false);
    for byte in name.bytes() {
        match byte {
            b'.' if label_length == 0 => return Err(HostProblem::Invalid),
            b'.' => label_length = 0,
            b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' => label_length += 1,
            b'A'..=b'Z' => {
                label_length += 1;
                has_upper = true;
            }
            _ => return Err(HostProblem::Invalid),
        }
        if label_length > 63 {
            return Err(HostProblem::Invalid);
        }
    }
    if label_length == 0 {
        return Err(HostProblem::Invalid);
    }
    Ok(if has_upper {
        Cow::Owned(name.to_ascii_lowercase())
    } else {
        Cow::Borrowed(name)
    })
}

/// The host that a request is for. `target` is the authority of an absolute target or
/// `:authority`, `headers` every value of `Host`.
///
/// # Errors
/// When there is none, or more than one, or it is no host.
pub fn requested<'r>(
    version: Version,
    scheme: Scheme,
    target: Option<&'r str>,
    headers: impl IntoIterator<Item = &'r [u8]>,
) -> Result<Authority<'r>, HostProblem> {
    let mut headers = headers.into_iter();
    let header = headers.next();
    if headers.next().is_some() {
        return Err(HostProblem::Duplicate);
    }
    let header = header.map(header_value).transpose()?;
    let target = target.map(Authority::parse).transpose()?;
    match (version, header, target) {
        (_, None, None) | (Version::Http1, None, Some(_)) => Err(HostProblem::Missing),
        (Version::Http2, None, Some(target)) => Ok(target),
        (_, Some(header), None) => Ok(header),
        (_, Some(header), Some(target)) if header.is_same(&target, scheme) => Ok(header),
        (_, Some(_), Some(_)) => Err(HostProblem::Conflict),
    }
}

fn header_value(value: &[u8]) -> Result<Authority<'_>, HostProblem> {
    if value.is_empty() {
        return Err(HostProblem::Missing);
    }
    Authority::parse(std::str::from_utf8(value).map_err(|_| HostProblem::Invalid)?)
}

/// Whether a target's scheme is that of the connection it came over.
///
/// # Errors
/// [`HostProblem::Scheme`] when it is another.
pub fn check_scheme(target: Option<&str>, connection: Scheme) -> Result<(), HostProblem> {
    match target {
        Some(scheme) if !scheme.eq_ignore_ascii_case(connection.name()) => Err(HostProblem::Scheme),
        Some(_) | None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_host_has_one_spelling() {
        for (given, normal) in [
            ("example.com", "example.com"),
            ("EXAMPLE.com.", "example.com"),
            ("example.com:8443", "example.com:8443"),
            ("Example.com.:443", "example.com:443"),
            ("a_b.example.com", "a_b.example.com"),
            ("127.0.0.1:80", "127.0.0.1:80"),
            ("[::1]", "[::1]"),
            ("[0:0::1]:443", "[::1]:443"),
        ] {
            let parsed = Authority::parse(given).map(|authority| authority.to_string());
            assert_eq!(parsed.as_deref(), Ok(normal), "{given}");
        }
        assert!(matches!(
            normal_name("example.com."),
            Ok(Cow::Borrowed("example.com"))
        ));
    }

    #[test]
    fn what_is_no_host_is_refused() {
        let long = "a.".repeat(127);
        for text in [
            "",
            ".",
            "a..",
            "a..b",
            ".a",
            "u@a",
            "u:p@a",
            "a:",
            "a:0",
            "a:+1",
            "a:65536",
            "a:1:2",
            "a:443a",
            "a b",
            "a/b",
            "a\\b",
            "a%2eb",
            "a,b",
            "a?b",
            "a#b",
            "ä.b",
            "::1",
            "[::1",
            "[::1]x",
            "[fe80::1%25lo]",
            "[1.2.3.4]",
            "a\0b",
            "a\tb",
            &format!("{long}bc"),
            &"a".repeat(64),
        ] {
            assert_eq!(Authority::parse(text), Err(HostProblem::Invalid), "{text}");
        }
    }

    #[test]
    fn all_sources_agree_or_the_request_is_refused() {
        let ask = |version, target, headers: &[&'static [u8]]| {
            requested(version, Scheme::Https, target, headers.iter().copied())
                .map(|authority| authority.to_string())
        };
        let (one, two) = (Version::Http1, Version::Http2);
        assert_eq!(ask(one, None, &[b"A.b"]).as_deref(), Ok("a.b"));
        assert_eq!(ask(two, Some("A.b"), &[]).as_deref(), Ok("a.b"));
        assert_eq!(ask(two, None, &[b"a.b"]).as_deref(), Ok("a.b"));
        assert_eq!(ask(one, Some("a.b:443"), &[b"A.B."]).as_deref(), Ok("a.b"));
        assert_eq!(
            ask(one, Some("a.b:80"), &[b"a.b"]),
            Err(HostProblem::Conflict)
        );
        assert_eq!(ask(one, Some("a.b"), &[b"c.d"]), Err(HostProblem::Conflict));
        assert_eq!(ask(two, Some("a.b"), &[b"c.d"]), Err(HostProblem::Conflict));
        assert_eq!(
            ask(one, None, &[b"a.b", b"a.b"]),
            Err(HostProblem::Duplicate)
        );
        assert_eq!(
            ask(two, Some("a.b"), &[b"a.b", b"a.b"]),
            Err(HostProblem::Duplicate)
        );
        assert_eq!(ask(one, Some("a.b"), &[]), Err(HostProblem::Missing));
        assert_eq!(ask(one, None, &[]), Err(HostProblem::Missing));
        assert_eq!(ask(one, None, &[b""]), Err(HostProblem::Missing));
        assert_eq!(ask(one, None, &[b"a.b, c.d"]), Err(HostProblem::Invalid));
        assert_eq!(check_scheme(Some("HTTPS"), Scheme::Https), Ok(()));
        assert_eq!(
            check_scheme(Some("http"), Scheme::Https),
            Err(HostProblem::Scheme)
        );
    }
}
