//! Entries for fuzzers: arbitrary bytes in, nothing but a panic or an overrun limit is a finding.

use crate::yaml::{Limits, parse};

/// Reads bytes as a manifest file.
///
/// # Panics
/// When a limit is overrun, which would be a bug.
pub fn yaml(bytes: &[u8]) {
    let limits = Limits {
        file_bytes: 1 << 20,
        documents: 100,
        nodes: 10_000,
        depth: 16,
        copied_nodes: 1_000,
        copied_bytes: 10_000,
        object_bytes: 1 << 16,
    };
    let Ok(documents) = parse(bytes, &limits) else {
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
