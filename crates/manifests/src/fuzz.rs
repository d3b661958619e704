//! Entries for fuzzers: arbitrary bytes in, nothing but a panic or an overrun limit is a finding.

use crate::{
    document,
    yaml::{Limits, parse},
};

const LIMITS: Limits = Limits {
    file_bytes: 1 << 20,
    documents: 100,
    nodes: 10_000,
    depth: 16,
    copied_nodes: 1_000,
    copied_bytes: 10_000,
    object_bytes: 1 << 16,
};

/// Reads bytes as YAML.
///
/// # Panics
/// When a limit is overrun, which would be a bug.
pub fn yaml(bytes: &[u8]) {
    let limits = LIMITS;
    let parsed = parse(bytes, &limits);
    let Ok(documents) = parsed else {
        return;
    };
    assert!(
        documents.len() <= limits.documents,
        "more documents than allowed"
    );
    let nodes: usize = documents
        .iter()
        .map(|document| document.root.weight().0)
        .sum();
    assert!(
        nodes <= limits.nodes + limits.copied_nodes,
        "more values than allowed"
    );
    for document in &documents {
        assert!(document.root.depth() <= limits.depth, "deeper than allowed");
        let _ = document.root.to_json().to_string();
    }
}

/// Reads bytes as a manifest file: its objects decoded, or the hosts of what is left of it found.
///
/// # Panics
/// When a file says nothing at all: whatever cannot be read must be told.
pub fn manifest(bytes: &[u8]) {
    let contents = document::read(&"fuzz.yaml".into(), bytes, 1 << 32, &LIMITS);
    assert!(
        contents.readable || !contents.parts.is_empty(),
        "an unreadable file without a reason"
    );
}
