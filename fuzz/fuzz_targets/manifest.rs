//! A manifest file: whatever cannot be read is told (R15).

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| manifests::fuzz::manifest(bytes));
