//! The keys of a mapping that is complete: duplicates are errors, merge keys are resolved.

use std::collections::{BTreeMap, BTreeSet};

use resources::problem::{FieldPath, Problem, ProblemCode};

use super::{Entry, Mark, Node, Value};

/// The place that marks an entry as a merge key until its mapping ends; no text has it.
pub(super) const MERGE: Mark = Mark { line: 0, column: 0 };

/// Settles the keys of the mapping at `path`.
pub(super) fn settle(
    entries: Vec<Entry>,
    path: impl Fn() -> FieldPath,
    found: &mut Vec<Problem>,
) -> Vec<Entry> {
    let mut order: Vec<usize> = (0..entries.len()).collect();
    order.sort_by(|a, b| entries[*a].key.cmp(&entries[*b].key));
    let pairs = order
        .windows(2)
        .filter(|pair| entries[pair[0]].key == entries[pair[1]].key);
    let mut again = BTreeSet::new();
    for pair in pairs {
        found.push(duplicate(&path(), &entries[pair[0]], &entries[pair[1]]));
        again.insert(pair[1]);
    }
    if again.is_empty() && entries.iter().all(|entry| entry.mark != MERGE) {
        return entries;
    }
    let mut kept: Vec<Entry> = Vec::with_capacity(entries.len());
    let mut merged = Vec::new();
    let mut said_again = Vec::new();
    for (index, entry) in entries.into_iter().enumerate() {
        if entry.mark == MERGE {
            merged.push(entry.node);
        } else if again.contains(&index) {
            said_again.push(entry);
        } else {
            kept.push(entry);
        }
    }
    keep_both(&mut kept, said_again);
    for node in merged {
        if !merge(&mut kept, node) {
            let message = "the merge key << needs a mapping or a list of mappings";
            found.push(Problem::new(
                path(),
                ProblemCode::WrongType,
                message,
                "quote it if it is a key",
            ));
        }
    }
    kept
}

fn duplicate(path: &FieldPath, first: &Entry, second: &Entry) -> Problem {
    let place = |entry: &Entry| {
        let at = if entry.mark == MERGE {
            entry.node.mark
        } else {
            entry.mark
        };
        format!("{}:{}", at.line, at.column)
    };
    let message = format!(
        "the key {:?} stands twice, at {} and at {}",
        first.key,
        place(first),
        place(second)
    );
    Problem::new(
        path.member(&first.key),
        ProblemCode::Duplicate,
        message,
        "remove one of them",
    )
}

/// Neither of two values is the right one. Both stay, as a list where none belongs, so that
/// nothing reads the one and overlooks the other: not even a lenient search for hosts (R3).
fn keep_both(kept: &mut [Entry], said_again: Vec<Entry>) {
    let mut others: BTreeMap<Box<str>, Vec<Node>> = BTreeMap::new();
    for entry in said_again {
        others.entry(entry.key).or_default().push(entry.node);
    }
    for entry in kept {
        let Some(others) = others.remove(&entry.key) else {
            continue;
        };
        let first = std::mem::replace(&mut entry.node.value, Value::Null);
        let first = Node {
            value: first,
            ..entry.node.clone()
        };
        entry.node.value = Value::List(std::iter::once(first).chain(others).collect());
    }
}

/// YAML's merge key: the keys of another mapping (or of several, earlier ones first), where this
/// one does not have them itself. Whether it was one.
fn merge(kept: &mut Vec<Entry>, node: Node) -> bool {
    let nodes = match node.value {
        Value::List(items) => items,
        value @ (Value::Null
        | Value::Bool(_)
        | Value::Number(_)
        | Value::Text(_)
        | Value::Map(_)) => {
            vec![Node { value, ..node }]
        }
    };
    let mut known: BTreeSet<Box<str>> = kept.iter().map(|entry| entry.key.clone()).collect();
    let mut all_maps = true;
    for node in nodes {
        let Value::Map(entries) = node.value else {
            all_maps = false;
            continue;
        };
        kept.extend(
            entries
                .into_iter()
                .filter(|entry| known.insert(entry.key.clone())),
        );
    }
    all_maps
}
