//! When to try again (R7): exponential, with jitter, never before the edge said so, bounded.

use model::time::{Span, Timestamp};

const FIRST: u64 = 250;
const LONGEST: u64 = 60_000;

/// The waits after failures that follow one another.
#[derive(Clone, Debug)]
pub struct Backoff {
    failures: u32,
    noise: u64,
}

impl Backoff {
    /// Starts anew. `seed` spreads controllers that fail together.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self {
            failures: 0,
            noise: seed | 1,
        }
    }

    /// Something worked: the next failure waits shortly again.
    pub const fn succeeded(&mut self) {
        self.failures = 0;
    }

    /// Something failed: how long to wait. Between half and the whole of 250 ms, doubling to a
    /// minute; at least what the edge asked for, at most ten times the longest wait.
    pub fn failed(&mut self, asked: Option<Span>) -> Span {
        let whole = FIRST
            .saturating_mul(1 << self.failures.min(12))
            .min(LONGEST);
        self.failures = self.failures.saturating_add(1);
        // xorshift64 (Marsaglia 2003): spread, not secrecy.
        self.noise ^= self.noise << 13;
        self.noise ^= self.noise >> 7;
        self.noise ^= self.noise << 17;
        let own = whole / 2 + self.noise % (whole / 2 + 1);
        Span(own.max(asked.map_or(0, |span| span.0)).min(LONGEST * 10))
    }
}

/// The earlier of two instants, where either may be absent.
#[must_use]
pub fn earlier(a: Option<Timestamp>, b: Option<Timestamp>) -> Option<Timestamp> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (one, other) => one.or(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_to_a_limit_and_start_over() {
        let mut backoff = Backoff::new(7);
        let waits: Vec<_> = (0..12).map(|_| backoff.failed(None).0).collect();
        assert!((125..=250).contains(&waits[0]), "{waits:?}");
        assert!(waits.iter().all(|wait| *wait <= LONGEST), "{waits:?}");
        assert!(waits[11] >= LONGEST / 2, "{waits:?}");
        backoff.succeeded();
        assert!(backoff.failed(None).0 <= 250);
    }

    #[test]
    fn the_edge_may_ask_for_longer_but_not_for_ever() {
        let mut backoff = Backoff::new(7);
        assert_eq!(
            backoff.failed(Some(Span::from_secs(90))),
            Span::from_secs(90)
        );
        assert_eq!(backoff.failed(Some(Span(u64::MAX))), Span(LONGEST * 10));
    }
}
