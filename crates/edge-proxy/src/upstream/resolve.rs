//! Names of static backends, resolved and kept for a moment.
//!
//! Whatever a name resolves to is dialled through the policy like any other address (R20): a
//! name that changes its mind between two look-ups gains nothing.

use std::{cell::RefCell, collections::HashMap, net::SocketAddr, rc::Rc};

use routing::refusal::Refusal;

use crate::{watch::Tick, worker::Worker};

const KEPT_MS: Tick = 5000;
const KEPT_MAX: usize = 1024;
const ADDRESSES_MAX: usize = 16;

/// A worker's names.
#[derive(Debug, Default)]
pub(crate) struct Names(RefCell<HashMap<String, Resolved>>);

/// Addresses, and when they were found.
type Resolved = (Rc<[SocketAddr]>, Tick);

impl Names {
    fn get(&self, name: &str, now: Tick) -> Option<Rc<[SocketAddr]>> {
        let names = self.0.borrow();
        let (addresses, since) = names.get(name)?;
        (now.saturating_sub(*since) < KEPT_MS).then(|| Rc::clone(addresses))
    }

    fn keep(&self, name: &str, addresses: &Rc<[SocketAddr]>, now: Tick) {
        let mut names = self.0.borrow_mut();
        if names.len() >= KEPT_MAX {
            names.clear();
        }
        names.insert(name.to_owned(), (Rc::clone(addresses), now));
    }
}

/// The addresses of `host:port`.
pub(crate) async fn endpoints(worker: &Worker, address: &str) -> Result<Rc<[SocketAddr]>, Refusal> {
    if let Ok(address) = address.parse::<SocketAddr>() {
        return Ok(Rc::new([address]));
    }
    let now = worker.clock.now();
    if let Some(addresses) = worker.names.get(address, now) {
        return Ok(addresses);
    }
    let found = tokio::time::timeout(
        worker.shared.timeouts.connect,
        tokio::net::lookup_host(address),
    );
    let addresses: Rc<[SocketAddr]> = match found.await {
        Ok(Ok(addresses)) => addresses.take(ADDRESSES_MAX).collect(),
        Ok(Err(_)) => return Err(Refusal::UpstreamUnreachable),
        Err(_) => return Err(Refusal::UpstreamTimeout),
    };
    worker.names.keep(address, &addresses, now);
    Ok(addresses)
}
