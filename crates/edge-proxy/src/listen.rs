//! Sockets that all workers share: each worker has a listener of its own on the same address, and
//! the kernel spreads connections over them (SO_REUSEPORT), so that none hands work to another.

use std::{
    io,
    net::{SocketAddr, TcpListener},
    time::Duration,
};

use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::TcpStream;

/// A listener that cannot be had.
#[derive(Debug, thiserror::Error)]
#[error("{purpose} cannot listen on {address}{hint}")]
pub struct ListenError {
    /// What it is for: `HTTPS` or `HTTP`.
    pub purpose: &'static str,
    /// Where.
    pub address: SocketAddr,
    hint: &'static str,
    #[source]
    source: io::Error,
}

/// One listener for each of `workers`, and the address they are bound to.
pub(crate) fn bind(
    purpose: &'static str,
    address: SocketAddr,
    workers: usize,
) -> Result<(SocketAddr, Vec<TcpListener>), ListenError> {
    let failed = |source: io::Error| {
        let hint = match source.kind() {
            io::ErrorKind::AddrInUse => ": another process does",
            io::ErrorKind::PermissionDenied => {
                ": ports below 1024 need a privilege (on Linux CAP_NET_BIND_SERVICE)"
            }
            io::ErrorKind::AddrNotAvailable => ": this machine has no such address",
            _ => "",
        };
        ListenError {
            purpose,
            address,
            hint,
            source,
        }
    };
    // Sockets with SO_REUSEPORT share an address with any other of the same user, so that a second
    // edge would steal half of the connections instead of failing. One without it finds out.
    let probe = open(address, false).and_then(|socket| {
        socket.bind(&address.into())?;
        socket.listen(1)?;
        Ok(socket)
    });
    drop(probe.map_err(failed)?);
    let first = open(address, true).map_err(failed)?;
    first.bind(&address.into()).map_err(failed)?;
    let bound = first
        .local_addr()
        .map_err(failed)?
        .as_socket()
        .ok_or_else(|| failed(io::ErrorKind::Unsupported.into()))?;
    let mut listeners = vec![ready(first).map_err(failed)?];
    while listeners.len() < workers {
        let socket = open(bound, true).map_err(failed)?;
        socket.bind(&bound.into()).map_err(failed)?;
        listeners.push(ready(socket).map_err(failed)?);
    }
    Ok((bound, listeners))
}

fn open(address: SocketAddr, share: bool) -> io::Result<Socket> {
    let socket = Socket::new(
        Domain::for_address(address),
        Type::STREAM.nonblocking(),
        Some(Protocol::TCP),
    )?;
    socket.set_reuse_address(true)?;
    if share {
        socket.set_reuse_port(true)?;
    }
    if address.is_ipv6() {
        // One listener for both families where the address is unspecified; see `canonical`.
        socket.set_only_v6(false)?;
    }
    Ok(socket)
}

fn ready(socket: Socket) -> io::Result<TcpListener> {
    socket.listen(1024)?;
    Ok(socket.into())
}

/// How long to wait after `accept` failed: errors of one connection are over at once, others (no
/// file descriptors left) last.
pub(crate) fn back_off(error: &io::Error) -> Option<Duration> {
    match error.kind() {
        io::ErrorKind::ConnectionAborted
        | io::ErrorKind::ConnectionReset
        | io::ErrorKind::ConnectionRefused
        | io::ErrorKind::Interrupted => None,
        _ => Some(Duration::from_millis(100)),
    }
}

/// Small writes go out at once: answers are written whole.
pub(crate) fn tune(stream: &TcpStream) {
    // An error means that the connection is gone already; the first read will say so.
    let _ = stream.set_nodelay(true);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_share_a_port_and_strangers_do_not() {
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let (bound, listeners) = bind("HTTPS", any, 2).expect("bound");
        assert_eq!(listeners.len(), 2);
        assert!(
            listeners
                .iter()
                .all(|listener| listener.local_addr().is_ok_and(|address| address == bound))
        );
        let error = bind("HTTPS", bound, 1).expect_err("in use");
        assert_eq!(
            error.to_string(),
            format!("HTTPS cannot listen on {bound}: another process does")
        );
    }
}
