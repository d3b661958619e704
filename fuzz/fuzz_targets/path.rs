//! A path has one spelling: normalising twice changes nothing, and what it says is absolute.

#![no_main]

use libfuzzer_sys::fuzz_target;
use routing::path;

fuzz_target!(|text: &str| {
    if let Ok(normal) = path::normalise(text) {
        assert!(normal.starts_with('/'));
        assert!(
            !normal.contains("/../") && !normal.ends_with("/.."),
            "{normal:?} climbs"
        );
        assert_eq!(
            path::normalise(&normal).as_deref(),
            Ok(&*normal),
            "{text:?}"
        );
    }
    if let Ok(declared) = path::normalise_declared(text) {
        assert_eq!(
            path::normalise_declared(&declared).as_ref(),
            Ok(&declared),
            "{text:?}"
        );
    }
    let _ = path::literal_prefix(text);
    let _ = path::expression_prefix(text);
    let _ = path::check_query(text);
});
