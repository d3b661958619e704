//! Which addresses may be dialled (R20), decided on the address itself when it is connected to.

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    time::Duration,
};

use ipnet::IpNet;
use model::address::canonical_socket;
use tokio::net::TcpStream;

use crate::{listen::tune, options};

/// Why a connection to a backend was not made.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DialError {
    /// The policy forbids the address.
    #[error("the address may not be dialled")]
    Forbidden,
    /// Nobody answers there.
    #[error("the address does not accept connections")]
    Connect(#[source] std::io::Error),
    /// Nobody answers there in time.
    #[error("the address does not accept connections in time")]
    Timeout,
}

/// The dial policy of a process.
#[derive(Clone, Debug)]
pub(crate) struct Policy {
    allow: Vec<IpNet>,
    own: Vec<SocketAddr>,
}

/// Where clouds answer with credentials. Those in link-local ranges are refused with the range.
const METADATA: [IpAddr; 4] = [
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254)),
    IpAddr::V6(Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254)),
    IpAddr::V4(Ipv4Addr::new(100, 100, 100, 200)),
    IpAddr::V4(Ipv4Addr::new(168, 63, 129, 16)),
];

impl Policy {
    /// The policy of these options in a process that listens on `own` besides.
    pub(crate) fn new(dial: &options::Dial, own: impl IntoIterator<Item = SocketAddr>) -> Self {
        let own = dial
            .own
            .iter()
            .copied()
            .chain(own)
            .map(canonical_socket)
            .collect();
        Self {
            allow: dial.allow.clone(),
            own,
        }
    }

    fn permits(&self, address: SocketAddr) -> bool {
        let address = canonical_socket(address);
        let ip = address.ip();
        let never = ip.is_unspecified()
            || ip.is_multicast()
            || is_link_local(ip)
            || METADATA.contains(&ip)
            || matches!(ip, IpAddr::V4(v4) if v4.is_broadcast() || v4.octets()[0] == 0)
            || matches!(ip, IpAddr::V6(v6) if carries_v4(v6))
            || address.port() == 0
            || self.is_own(address);
        !never && (!ip.is_loopback() || self.allow.iter().any(|net| net.contains(&ip)))
    }

    /// Whether one of our listeners answers there: on that very address, or on all addresses.
    fn is_own(&self, address: SocketAddr) -> bool {
        self.own.iter().any(|own| {
            own.port() == address.port()
                && (own.ip() == address.ip()
                    || (own.ip().is_unspecified() && address.ip().is_loopback()))
        })
    }

    /// Connects, if the address may be dialled.
    pub(super) async fn dial(
        &self,
        address: SocketAddr,
        timeout: Duration,
    ) -> Result<TcpStream, DialError> {
        if !self.permits(address) {
            return Err(DialError::Forbidden);
        }
        let stream = match tokio::time::timeout(timeout, TcpStream::connect(address)).await {
            Ok(stream) => stream.map_err(DialError::Connect)?,
            Err(_) => return Err(DialError::Timeout),
        };
        if self.reached_ourselves(&stream) {
            return Err(DialError::Forbidden);
        }
        tune(&stream);
        Ok(stream)
    }

    /// An address of this machine that we were not told about shows itself by having the same
    /// address at both ends; listeners on all addresses answer there too.
    fn reached_ourselves(&self, stream: &TcpStream) -> bool {
        let (Ok(here), Ok(there)) = (stream.local_addr(), stream.peer_addr()) else {
            return true;
        };
        here.ip() == there.ip()
            && self
                .own
                .iter()
                .any(|own| own.port() == there.port() && own.ip().is_unspecified())
    }
}

const fn is_link_local(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(v4) => v4.is_link_local(),
        IpAddr::V6(v6) => v6.is_unicast_link_local(),
    }
}

/// Forms that reach an IPv4 address through IPv6 machinery (RFC 4291 section 2.5.5.1, RFC 6052,
/// RFC 3056): the address inside would escape the policy.
const fn carries_v4(ip: Ipv6Addr) -> bool {
    let segments = ip.segments();
    let compatible = segments[0] == 0
        && segments[1] == 0
        && segments[2] == 0
        && segments[3] == 0
        && segments[4] == 0
        && segments[5] == 0;
    let translated = segments[0] == 0x64 && segments[1] == 0xff9b;
    (compatible && !ip.is_loopback()) || translated || segments[0] == 0x2002
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(allow: &[&str], own: &[&str]) -> Policy {
        let dial = options::Dial {
            allow: allow
                .iter()
                .map(|net| net.parse().expect("a network"))
                .collect(),
            own: Vec::new(),
        };
        Policy::new(
            &dial,
            own.iter()
                .map(|address| address.parse().expect("an address")),
        )
    }

    #[test]
    fn only_addresses_of_backends_are_dialled() {
        let strict = policy(&[], &["10.0.0.1:443"]);
        let permits = |address: &str| strict.permits(address.parse().expect("an address"));
        for address in [
            "10.0.0.2:443",
            "10.0.0.1:80",
            "192.168.1.1:80",
            "[fd00::1]:80",
            "203.0.113.1:80",
            "[2001:db8::1]:1",
        ] {
            assert!(permits(address), "{address}");
        }
        for address in [
            "127.0.0.1:80",
            "[::1]:80",
            "[::ffff:127.0.0.1]:80",
            "169.254.169.254:80",
            "[::ffff:169.254.169.254]:80",
            "[fe80::1]:80",
            "[fd00:ec2::254]:80",
            "100.100.100.200:80",
            "0.0.0.0:80",
            "[::]:80",
            "224.0.0.1:80",
            "[ff02::1]:80",
            "255.255.255.255:80",
            "0.1.2.3:80",
            "10.0.0.1:443",
            "[::ffff:10.0.0.1]:443",
            "[::7f00:1]:80",
            "[64:ff9b::7f00:1]:80",
            "[2002:7f00:1::]:80",
            "10.0.0.2:0",
        ] {
            assert!(!permits(address), "{address}");
        }
    }

    #[test]
    fn loopback_is_allowed_by_name_and_never_our_own_listeners() {
        let up = policy(
            &["127.0.0.0/8", "::1/128", "169.254.0.0/16"],
            &["0.0.0.0:8443", "127.0.0.1:4041"],
        );
        let permits = |address: &str| up.permits(address.parse().expect("an address"));
        assert!(permits("127.0.0.1:8080") && permits("127.5.5.5:4041") && permits("[::1]:80"));
        assert!(
            !permits("127.0.0.1:8443") && !permits("127.9.9.9:8443") && !permits("127.0.0.1:4041")
        );
        assert!(
            !permits("169.254.169.254:80"),
            "an allowance is for loopback"
        );
    }
}
