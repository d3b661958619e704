//! Ids of things that users of the API make: the second of their making, then random bits, so
//! that they sort by age.

use std::time::{SystemTime, UNIX_EPOCH};

use model::{
    id::{base62, ksuid},
    time::Timestamp,
};

use crate::answer::{Failure, internal};

/// 160 bits for a new id.
pub(crate) fn bits() -> Result<[u8; 20], Failure> {
    let mut random = [0; 20];
    getrandom::fill(&mut random).map_err(|error| internal(&error))?;
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let made = Timestamp(u64::try_from(now.as_millis()).unwrap_or(u64::MAX));
    Ok(ksuid(made, random))
}

/// The id of a call.
pub(crate) fn operation() -> String {
    // Only a name in the log: without randomness the call itself goes on.
    format!("op_{}", base62(bits().unwrap_or_default()))
}
