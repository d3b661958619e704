//! Values as people write them on the command line.

use std::{net::SocketAddr, str::FromStr};

use ipnet::IpNet;
use model::{host::HostPattern, object::ObjectName, time::Span};

/// `2s`, `10m`, `250ms`, `1h30m`, `0`.
pub(crate) fn span(text: &str) -> Result<Span, String> {
    let wrong = || format!("{text:?} is not a length of time; write 2s, 10m, 250ms or 1h30m");
    if text == "0" {
        return Ok(Span::ZERO);
    }
    let mut rest = text;
    let mut total = 0_u64;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).ok_or_else(wrong)?;
        let number: u64 = rest[..digits].parse().map_err(|_| wrong())?;
        rest = &rest[digits..];
        let unit = rest
            .find(|c: char| c.is_ascii_digit())
            .unwrap_or(rest.len());
        let factor = match &rest[..unit] {
            "ms" => 1,
            "s" => 1000,
            "m" => 60_000,
            "h" => 3_600_000,
            _ => return Err(wrong()),
        };
        rest = &rest[unit..];
        total = number
            .checked_mul(factor)
            .and_then(|n| total.checked_add(n))
            .ok_or_else(wrong)?;
    }
    if text.is_empty() {
        Err(wrong())
    } else {
        Ok(Span(total))
    }
}

/// `512`, `64KiB`, `10MiB`, `2GiB`: a number of bytes.
pub(crate) fn bytes(text: &str) -> Result<u64, String> {
    let wrong = || format!("{text:?} is not a size; write 512, 64KiB, 10MiB or 2GiB");
    let digits = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let factor = match &text[digits..] {
        "" => 1,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        _ => return Err(wrong()),
    };
    let number: u64 = text[..digits].parse().map_err(|_| wrong())?;
    number.checked_mul(factor).ok_or_else(wrong)
}

/// An address to listen on or to be asked at.
pub(crate) fn listener(text: &str) -> Result<SocketAddr, String> {
    text.parse()
        .map_err(|_| "write an address and a port, such as 127.0.0.1:8443".to_owned())
}

/// A range of addresses.
pub(crate) fn range(text: &str) -> Result<IpNet, String> {
    text.parse()
        .map_err(|_| "write a range of addresses, such as 127.0.0.0/8".to_owned())
}

/// `--service NAMESPACE/NAME:PORT=ADDRESS`: where a port of a Service is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ServiceAddress {
    pub(crate) service: ObjectName,
    /// A number or a name.
    pub(crate) port: String,
    pub(crate) address: SocketAddr,
}

impl FromStr for ServiceAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = |what: &str| {
            format!(
                "{what}; write NAMESPACE/NAME:PORT=ADDRESS, such as default/web:80=127.0.0.1:3000"
            )
        };
        let (left, address) = text.split_once('=').ok_or_else(|| wrong("there is no ="))?;
        let (service, port) = left
            .rsplit_once(':')
            .ok_or_else(|| wrong("there is no :PORT before the ="))?;
        if !is_port(port) {
            return Err(wrong(&format!(
                "{port:?} is neither a port nor the name of one"
            )));
        }
        Ok(Self {
            service: service
                .parse()
                .map_err(|_| wrong(&format!("{service:?} is not NAMESPACE/NAME")))?,
            port: port.to_owned(),
            address: address.parse().map_err(|_| {
                wrong(&format!(
                    "{address:?} is not an IP address with a port (names are not looked up)"
                ))
            })?,
        })
    }
}

/// A port of a Service as an Ingress may name it.
fn is_port(text: &str) -> bool {
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        text.parse::<u16>().is_ok_and(|number| number > 0)
    } else {
        text.bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
    }
}

/// `--hosts NAMESPACE=PATTERN`: what a namespace may claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HostLimit {
    pub(crate) namespace: String,
    pub(crate) pattern: HostPattern,
}

impl FromStr for HostLimit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong =
            |what: &str| format!("{what}; write NAMESPACE=HOST, such as shop=*.example.com");
        let (namespace, pattern) = text.split_once('=').ok_or_else(|| wrong("there is no ="))?;
        // A namespace is named as an object in it would be.
        let named: Result<ObjectName, _> = format!("{namespace}/x").parse();
        if named.is_err() || namespace.contains('/') {
            return Err(wrong(&format!("{namespace:?} is not a namespace")));
        }
        let pattern =
            HostPattern::parse(pattern).map_err(|error| wrong(&format!("{pattern:?}: {error}")))?;
        Ok(Self {
            namespace: namespace.to_owned(),
            pattern,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_read_as_written() {
        assert_eq!(span("2s"), Ok(Span(2000)));
        assert_eq!(span("1h30m"), Ok(Span(5_400_000)));
        assert_eq!(span("250ms"), Ok(Span(250)));
        assert_eq!(span("0"), Ok(Span(0)));
        for wrong in [
            "",
            "5",
            "s",
            "1d",
            "-1s",
            "1.5s",
            "99999999999999999999s",
            "1s ",
        ] {
            assert!(span(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn sizes_are_read_as_written() {
        assert_eq!(bytes("512"), Ok(512));
        assert_eq!(bytes("64KiB"), Ok(65_536));
        assert_eq!(bytes("2GiB"), Ok(2_147_483_648));
        for wrong in ["", "GiB", "1GB", "1 MiB", "-1", "1.5GiB", "99999999999GiB"] {
            assert!(bytes(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn services_are_read_as_written() {
        let read: ServiceAddress = "shop/web:http=[::1]:3000"
            .parse()
            .expect("it is well formed");
        assert_eq!(
            (
                read.service.name.as_str(),
                read.port.as_str(),
                read.address.port()
            ),
            ("web", "http", 3000)
        );
        for (wrong, said) in [
            ("shop", "there is no ="),
            ("web:80=127.0.0.1:1", "\"web\" is not NAMESPACE/NAME"),
            ("shop/web=127.0.0.1:1", "no :PORT before"),
            (
                "shop/web:80=localhost:1",
                "\"localhost:1\" is not an IP address",
            ),
            (
                "shop/web:80=127.0.0.1",
                "\"127.0.0.1\" is not an IP address with a port",
            ),
            ("shop/web:=127.0.0.1:1", "\"\" is neither a port"),
            ("shop/web:0=127.0.0.1:1", "\"0\" is neither a port"),
            ("shop/web:70000=127.0.0.1:1", "\"70000\" is neither a port"),
            ("shop/web:HTTP=127.0.0.1:1", "\"HTTP\" is neither a port"),
        ] {
            let error = wrong.parse::<ServiceAddress>().expect_err(wrong);
            assert!(error.contains(said), "{wrong}: {error}");
            assert!(
                error.ends_with("default/web:80=127.0.0.1:3000"),
                "{wrong}: {error}"
            );
        }
    }

    #[test]
    fn limits_of_hosts_are_read_as_written() {
        let read: HostLimit = "shop=*.Example.com".parse().expect("it is well formed");
        assert_eq!(
            (read.namespace.as_str(), read.pattern.as_str()),
            ("shop", "*.example.com")
        );
        for (wrong, said) in [
            ("shop", "there is no ="),
            ("=a.example.com", "\"\" is not a namespace"),
            ("a/b=a.example.com", "\"a/b\" is not a namespace"),
            ("shop=https://x", "\"https://x\""),
        ] {
            let error = wrong.parse::<HostLimit>().expect_err(wrong);
            assert!(error.contains(said), "{wrong}: {error}");
            assert!(error.ends_with("shop=*.example.com"), "{wrong}: {error}");
        }
    }
}
