//! A host has one spelling: what is read from an authority reads as itself.

#![no_main]

use libfuzzer_sys::fuzz_target;
use routing::host::Authority;

fuzz_target!(|text: &str| {
    if let Ok(read) = Authority::parse(text) {
        let again = Authority::parse(read.host()).expect("a host that was read reads again");
        assert_eq!(again.host(), read.host(), "{text:?}");
        assert!(
            !read
                .host()
                .bytes()
                .any(|byte| byte.is_ascii_uppercase() || byte <= b' ')
        );
    }
});
