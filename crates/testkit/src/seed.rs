//! Chance that can be repeated: a test prints its seed, and `PORTCULLIS_SEED` plays it again.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// xorshift64 (Marsaglia 2003): spread, not secrecy.
#[derive(Clone, Debug)]
pub struct Chance {
    state: u64,
    /// What it began with.
    pub seed: u64,
}

impl Chance {
    /// Begins with `PORTCULLIS_SEED`, or with the time of day.
    #[must_use]
    pub fn new() -> Self {
        let given = std::env::var("PORTCULLIS_SEED")
            .ok()
            .and_then(|text| text.parse().ok());
        let seed = given.unwrap_or_else(|| {
            let since = SystemTime::now().duration_since(UNIX_EPOCH);
            since.map_or(1, |span| u64::from(span.subsec_nanos()) ^ span.as_secs())
        });
        Self {
            state: seed | 1,
            seed,
        }
    }

    /// A number below `limit`.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        self.state % limit.max(1)
    }

    /// Lets a moment of at most `longest` pass: the moment at which something is killed.
    pub fn moment(&mut self, longest: Duration) {
        let longest = u64::try_from(longest.as_micros()).unwrap_or(u64::MAX);
        std::thread::park_timeout(Duration::from_micros(self.below(longest)));
    }
}

impl Default for Chance {
    fn default() -> Self {
        Self::new()
    }
}

/// How often something is repeated: `long` with `PORTCULLIS_LONG=1`, as the whole set of tests
/// does, otherwise `short`.
#[must_use]
pub fn rounds(short: u32, long: u32) -> u32 {
    if std::env::var("PORTCULLIS_LONG").is_ok_and(|value| value == "1") {
        long
    } else {
        short
    }
}
