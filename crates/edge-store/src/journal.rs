//! The journal of closings that could not be saved (R10): a small file of fixed size, written in
//! place, so that it needs no room on a full disk.
//!
//! Two slots take turns, so that a write that is cut off leaves the one before it. Each holds a
//! sequence number, the revision at which the closings were published, the routes, and a
//! checksum. A state of that revision or a later one has them in it already.

use std::collections::BTreeSet;

use model::id::RouteId;
use sha2::{Digest, Sha256};

const SLOT_BYTES: usize = 256 * 1024;
const MAGIC: &[u8; 8] = b"closings";
const HEAD_BYTES: usize = 8 + 8 + 8 + 4;
const SUM_BYTES: usize = 32;
const ID_BYTES: usize = 27;
/// How many routes a slot can name.
const CAPACITY: usize = (SLOT_BYTES - HEAD_BYTES - SUM_BYTES) / ID_BYTES;
/// The count that stands for every route: there were more than can be named.
const EVERY: u32 = u32::MAX;

/// Which routes are to be closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Closings {
    These(BTreeSet<RouteId>),
    /// More than the journal holds: all are closed, which is always allowed.
    Every,
}

/// What a slot says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) sequence: u64,
    pub(crate) revision: u64,
    pub(crate) closings: Closings,
}

/// The file as it begins: nothing is to be closed.
pub(crate) fn empty() -> Vec<u8> {
    let mut file = vec![0; 2 * SLOT_BYTES];
    let entry = Entry {
        sequence: 0,
        revision: 0,
        closings: Closings::These(BTreeSet::new()),
    };
    let (offset, bytes) = write(&entry);
    file[offset..offset + bytes.len()].copy_from_slice(&bytes);
    file
}

/// Where an entry goes, and its bytes.
pub(crate) fn write(entry: &Entry) -> (usize, Vec<u8>) {
    let Entry {
        sequence,
        revision,
        closings,
    } = entry;
    let none = BTreeSet::new();
    let (count, routes) = match closings {
        Closings::These(routes) if routes.len() <= CAPACITY => {
            (u32::try_from(routes.len()).unwrap_or(EVERY), routes)
        }
        Closings::These(_) | Closings::Every => (EVERY, &none),
    };
    let mut bytes = Vec::with_capacity(HEAD_BYTES + routes.len() * ID_BYTES + SUM_BYTES);
    bytes.extend_from_slice(MAGIC);
    bytes.extend_from_slice(&sequence.to_be_bytes());
    bytes.extend_from_slice(&revision.to_be_bytes());
    bytes.extend_from_slice(&count.to_be_bytes());
    for route in routes {
        let id = route.as_str();
        bytes.extend_from_slice(&id.as_bytes()[id.len() - ID_BYTES..]);
    }
    let sum = Sha256::digest(&bytes);
    bytes.extend_from_slice(&sum);
    let slot = usize::from(sequence % 2 == 1);
    (slot * SLOT_BYTES, bytes)
}

/// The newest whole entry; `None` if there is none, which no crash can bring about.
pub(crate) fn read(file: &[u8]) -> Option<Entry> {
    let slots = file.chunks(SLOT_BYTES).take(2);
    slots
        .filter_map(read_slot)
        .max_by_key(|entry| entry.sequence)
}

fn read_slot(slot: &[u8]) -> Option<Entry> {
    let rest = slot.strip_prefix(MAGIC)?;
    let (sequence, rest) = rest.split_first_chunk::<8>()?;
    let (revision, rest) = rest.split_first_chunk::<8>()?;
    let (count, rest) = rest.split_first_chunk::<4>()?;
    let count = u32::from_be_bytes(*count);
    let named = if count == EVERY {
        0
    } else {
        usize::try_from(count).ok()?
    };
    if named > CAPACITY {
        return None;
    }
    let ids = rest.get(..named * ID_BYTES)?;
    let sum = rest.get(ids.len()..ids.len() + SUM_BYTES)?;
    let whole = slot.get(..HEAD_BYTES + ids.len())?;
    if Sha256::digest(whole).as_slice() != sum {
        return None;
    }
    let id = |bytes: &[u8]| {
        let text = std::str::from_utf8(bytes).ok()?;
        RouteId::parse(&format!("{}_{text}", RouteId::PREFIX)).ok()
    };
    let closings = if count == EVERY {
        Closings::Every
    } else {
        Closings::These(ids.chunks(ID_BYTES).map(id).collect::<Option<_>>()?)
    };
    Some(Entry {
        sequence: u64::from_be_bytes(*sequence),
        revision: u64::from_be_bytes(*revision),
        closings,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn routes(count: usize) -> BTreeSet<RouteId> {
        (0..count)
            .map(|i| RouteId::derived(&[&i.to_string()]))
            .collect()
    }

    fn put(file: &mut [u8], entry: &Entry) {
        let (offset, bytes) = write(entry);
        file[offset..offset + bytes.len()].copy_from_slice(&bytes);
    }

    #[test]
    fn what_is_written_is_read_and_the_newest_counts() {
        let mut file = empty();
        for (sequence, count) in [(1, 3), (2, 0), (3, CAPACITY), (4, 1)] {
            let entry = Entry {
                sequence,
                revision: 7,
                closings: Closings::These(routes(count)),
            };
            put(&mut file, &entry);
            assert_eq!(read(&file), Some(entry));
        }
    }

    #[test]
    fn a_write_cut_off_anywhere_leaves_the_entry_before_it() {
        let mut file = empty();
        let before = Entry {
            sequence: 1,
            revision: 7,
            closings: Closings::These(routes(2)),
        };
        put(&mut file, &before);
        let after = Entry {
            sequence: 2,
            revision: 8,
            closings: Closings::These(routes(3)),
        };
        let (offset, bytes) = write(&after);
        for cut in 0..bytes.len() {
            let mut torn = file.clone();
            torn[offset..offset + cut].copy_from_slice(&bytes[..cut]);
            assert_eq!(read(&torn), Some(before.clone()), "cut after {cut} bytes");
        }
    }

    #[test]
    fn too_many_routes_are_all_routes() {
        let mut file = empty();
        let many = Closings::These(routes(CAPACITY + 1));
        put(
            &mut file,
            &Entry {
                sequence: 1,
                revision: 7,
                closings: many,
            },
        );
        assert_eq!(
            read(&file).map(|entry| entry.closings),
            Some(Closings::Every)
        );
    }

    #[test]
    fn a_damaged_file_says_nothing() {
        assert_eq!(read(&vec![0; 2 * SLOT_BYTES]), None);
        let mut file = empty();
        file[20] ^= 1;
        assert_eq!(read(&file), None);
        assert_eq!(read(&[]), None);
    }
}
