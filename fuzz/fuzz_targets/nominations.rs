//! What `Connection` nominates is for this hop; no nomination reaches past its bound.

#![no_main]

use libfuzzer_sys::fuzz_target;
use routing::headers::{Nominations, fate};

fuzz_target!(|bytes: &[u8]| {
    let values = bytes.split(|byte| *byte == b'\n');
    if let Ok(nominations) = Nominations::parse(values) {
        for name in bytes.split(|byte| matches!(byte, b'\n' | b',')) {
            let _ = nominations.name(name.trim_ascii());
        }
        let _ = nominations.has("upgrade");
    }
    let _ = fate(bytes);
});
