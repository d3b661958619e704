//! Waiting for a state, with a limit: tests never sleep and hope.

use std::{
    fmt::Debug,
    time::{Duration, Instant},
};

/// Looks until `look` is content, or ends the test with what was seen last.
pub fn until<T, E: Debug>(
    what: &str,
    limit: Duration,
    mut look: impl FnMut() -> Result<T, E>,
) -> T {
    let begun = Instant::now();
    loop {
        match look() {
            Ok(found) => return found,
            Err(seen) if begun.elapsed() > limit => {
                panic!("{what}: not within {limit:?}; seen last: {seen:?}")
            }
            Err(_) => std::thread::park_timeout(Duration::from_millis(10)),
        }
    }
}
