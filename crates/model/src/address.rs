//! Network addresses in one canonical form (R16: IPv4-mapped IPv6 is IPv4).

use std::net::{IpAddr, SocketAddr};

/// The canonical form of an address: an IPv4-mapped IPv6 address is the IPv4 address it carries.
#[must_use]
pub const fn canonical(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(v6) => match v6.to_ipv4_mapped() {
            Some(v4) => IpAddr::V4(v4),
            None => address,
        },
    }
}

/// The same for a socket address.
#[must_use]
pub fn canonical_socket(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(canonical(address.ip()), address.port())
}
