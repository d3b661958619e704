//! YAML within bounds: no panic, no document deeper or larger than allowed.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| manifests::fuzz::yaml(bytes));
