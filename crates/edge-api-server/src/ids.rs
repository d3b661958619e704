//! Ids of things that users of the API make: the second of their making, then random bits, so
//! that they sort by age (KSUID).

use std::time::{SystemTime, UNIX_EPOCH};

use model::id::base62;

use crate::answer::{Failure, internal};

/// 2014-05-13T16:53:20Z, from which the seconds in ids count.
const EPOCH_SECS: u64 = 1_400_000_000;

/// 160 bits for a new id.
pub(crate) fn bits() -> Result<[u8; 20], Failure> {
    let mut bits = [0; 20];
    getrandom::fill(&mut bits).map_err(|error| internal(&error))?;
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_secs();
    let secs = u32::try_from(now.saturating_sub(EPOCH_SECS)).unwrap_or(u32::MAX);
    bits[..4].copy_from_slice(&secs.to_be_bytes());
    Ok(bits)
}

/// The id of a call.
pub(crate) fn operation() -> String {
    // Only a name in the log: without randomness the call itself goes on.
    format!("op_{}", base62(bits().unwrap_or_default()))
}
