//! Which controller is at work: one at a time (R19).
//!
//! Terms fence a writer that is late. They cannot keep two controllers apart that each raise the
//! term in turn, so whoever wants to raise it is refused by name while another's connection is
//! open. A controller that is at rest shows with a read now and then that it is still there; one
//! that has been silent for longer than [`SILENCE_MAX`] is taken to have gone, whatever the network
//! says of its connection.

use std::{
    net::SocketAddr,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

/// Three times as long as a controller at rest is silent.
const SILENCE_MAX: Duration = Duration::from_secs(15);

/// A connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Peer {
    pub(crate) number: u64,
    pub(crate) address: SocketAddr,
}

/// The seat of the controller at work.
#[derive(Debug, Default)]
pub(crate) struct Seat(Mutex<Option<Taken>>);

#[derive(Debug)]
struct Taken {
    peer: Peer,
    seen: Instant,
}

impl Seat {
    fn with<T>(&self, act: impl FnOnce(&mut Option<Taken>) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Where another controller is connected from, if there is one.
    pub(crate) fn other(&self, peer: &Peer) -> Option<SocketAddr> {
        self.with(|taken| {
            let there =
                |taken: &&mut Taken| taken.peer != *peer && taken.seen.elapsed() < SILENCE_MAX;
            taken.as_mut().filter(there).map(|taken| taken.peer.address)
        })
    }

    /// This connection has written as a controller whose term stands.
    pub(crate) fn take(&self, peer: Peer) {
        self.with(|taken| {
            *taken = Some(Taken {
                peer,
                seen: Instant::now(),
            })
        });
    }

    /// Something came over this connection.
    pub(crate) fn seen(&self, peer: &Peer) {
        self.with(|taken| {
            if let Some(taken) = taken.as_mut().filter(|taken| taken.peer == *peer) {
                taken.seen = Instant::now();
            }
        });
    }

    /// The connection has ended.
    pub(crate) fn leave(&self, peer: &Peer) {
        self.with(|taken| *taken = taken.take().filter(|taken| taken.peer != *peer));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_seat_is_anothers_until_it_leaves_or_falls_silent() {
        let peer = |number| Peer {
            number,
            address: ([127, 0, 0, 1], 4000).into(),
        };
        let seat = Seat::default();
        assert_eq!(seat.other(&peer(1)), None);
        seat.take(peer(1));
        assert_eq!(seat.other(&peer(1)), None);
        assert_eq!(seat.other(&peer(2)), Some(peer(1).address));
        seat.leave(&peer(2));
        assert!(
            seat.other(&peer(2)).is_some(),
            "only its own connection frees it"
        );
        tokio::time::advance(SILENCE_MAX / 2).await;
        seat.seen(&peer(1));
        tokio::time::advance(SILENCE_MAX / 2).await;
        assert!(seat.other(&peer(2)).is_some());
        tokio::time::advance(SILENCE_MAX).await;
        assert_eq!(seat.other(&peer(2)), None);
        seat.take(peer(2));
        seat.leave(&peer(2));
        assert_eq!(seat.other(&peer(1)), None);
    }
}
