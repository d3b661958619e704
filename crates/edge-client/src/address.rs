//! Where an edge's API is.

use std::{fmt, net::IpAddr, str::FromStr};

use http::Uri;

/// The address of an edge's API: `https://HOST[:PORT]`, or `http://` to loopback.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EdgeAddress {
    /// Whether TLS is spoken.
    pub(crate) tls: bool,
    /// The host, without brackets.
    pub(crate) host: String,
    /// The port.
    pub(crate) port: u16,
}

/// Why a text is not the address of an edge's API.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// Not a URL of this form.
    #[error("{0:?} is not of the form https://HOST or https://HOST:PORT")]
    Form(String),
    /// The API key would travel in the clear.
    #[error(
        "{0:?} would send the API key in the clear: http:// is for loopback only, use https://"
    )]
    PlainBeyondLoopback(String),
}

impl EdgeAddress {
    /// An API in plain HTTP on this machine.
    #[must_use]
    pub fn loopback(address: std::net::SocketAddr) -> Option<Self> {
        let loopback = address.ip().is_loopback();
        loopback.then(|| Self {
            tls: false,
            host: address.ip().to_string(),
            port: address.port(),
        })
    }

    /// The value of the Host header.
    pub(crate) fn authority(&self) -> String {
        let Self { tls: _, host, port } = self;
        if host.contains(':') {
            format!("[{host}]:{port}")
        } else {
            format!("{host}:{port}")
        }
    }
}

impl FromStr for EdgeAddress {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let form = || AddressError::Form(text.to_owned());
        let uri: Uri = text.parse().map_err(|_| form())?;
        let authority = uri.authority().ok_or_else(form)?;
        let tls = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            Some(_) | None => return Err(form()),
        };
        let bare = uri.path().trim_start_matches('/').is_empty() && uri.query().is_none();
        // Whatever stands before an @ would be a second, forgotten credential.
        if !bare || authority.as_str().contains('@') {
            return Err(form());
        }
        let host = authority.host();
        let host = host
            .strip_prefix('[')
            .and_then(|h| h.strip_suffix(']'))
            .unwrap_or(host);
        if host.is_empty() {
            return Err(form());
        }
        let loopback = host.eq_ignore_ascii_case("localhost")
            || host
                .parse::<IpAddr>()
                .is_ok_and(|address| address.is_loopback());
        if !tls && !loopback {
            return Err(AddressError::PlainBeyondLoopback(text.to_owned()));
        }
        let port = authority.port_u16().unwrap_or(if tls { 443 } else { 80 });
        Ok(Self {
            tls,
            host: host.to_ascii_lowercase(),
            port,
        })
    }
}

impl fmt::Display for EdgeAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}://{}",
            if self.tls { "https" } else { "http" },
            self.authority()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_http_goes_to_loopback_only() {
        for (text, shown) in [
            ("http://127.0.0.1:4041", "http://127.0.0.1:4041"),
            ("http://[::1]:4041/", "http://[::1]:4041"),
            ("http://LOCALHOST:4041", "http://localhost:4041"),
            ("https://edge.example", "https://edge.example:443"),
            ("https://10.0.0.1:4041", "https://10.0.0.1:4041"),
        ] {
            assert_eq!(text.parse::<EdgeAddress>().expect(text).to_string(), shown);
        }
        for text in [
            "http://10.0.0.1:4041",
            "http://edge.example",
            "http://localhost.evil.example",
            "http://[::]:1",
        ] {
            let plain = AddressError::PlainBeyondLoopback(text.to_owned());
            assert_eq!(text.parse::<EdgeAddress>(), Err(plain));
        }
        for text in [
            "",
            "edge",
            "ftp://edge",
            "https://",
            "https://edge/path",
            "https://edge?x",
            "https://k@edge",
        ] {
            assert_eq!(
                text.parse::<EdgeAddress>(),
                Err(AddressError::Form(text.to_owned())),
                "{text}"
            );
        }
    }
}
