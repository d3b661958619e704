//! Entries for fuzzers into what stands before the HTTP/1 parser (R16).

use crate::{
    codec::{
        chunks::Chunks,
        head::{HeadLimits, find_end, judge},
    },
    options::Defences,
};

const LIMITS: HeadLimits = HeadLimits {
    head_bytes: 4096,
    target_bytes: 1024,
    headers: 30,
};

/// The length of the request head that `bytes` begin with, if it is let through to the parser.
#[must_use]
pub fn head(bytes: &[u8]) -> Option<usize> {
    let defences = Defences::all();
    let length = find_end(bytes, 0, &defences).ok()?.ok()?;
    judge(&bytes[..length], LIMITS, &defences)
        .is_ok()
        .then_some(length)
}

/// Where the chunked body that `bytes` begin with ends, when it comes in pieces of this size.
///
/// None: it is refused, or has not ended.
#[must_use]
pub fn body_end(bytes: &[u8], piece: usize) -> Option<usize> {
    let mut chunks = Chunks::default();
    let mut at = 0;
    for bytes in bytes.chunks(piece.max(1)) {
        let (taken, ended) = chunks.take(bytes).ok()?;
        at += taken;
        if ended {
            return Some(at);
        }
    }
    None
}
