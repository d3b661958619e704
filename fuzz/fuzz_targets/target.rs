//! A request target is split, never changed: its parts stand in it in their order.

#![no_main]

use libfuzzer_sys::fuzz_target;
use routing::target::Target;

fuzz_target!(|text: &str| {
    if let Ok(target) = Target::parse(text) {
        assert!(
            target.path.starts_with('/') || target.path.is_empty() || target.authority.is_some()
        );
        let length = target.path.len() + target.query.map_or(0, |query| query.len() + 1);
        assert!(length <= text.len() + 1, "{text:?}");
    }
    let _ = Target::parse_path(text);
});
