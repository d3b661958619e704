//! Finds the first route in rank for a path without asking all of them.
//!
//! Three sorted lists: exact paths, element prefixes, string prefixes. The longest prefix of a
//! text in a sorted list is found by one binary search: it is the greatest entry not above the
//! text, or the longest other entry that is a prefix of that one, and so on; these are linked
//! when the list is made. (Between a prefix of the text and the text itself, in order, there are
//! only texts with that prefix.) An element prefix `/a` is kept as `/a/` and looked up in the
//! path with a slash appended, so that elements need no splitting.

use std::cmp::Ordering;

use model::place::{Match, MatchType};

#[derive(Clone, Debug, Default)]
pub(super) struct PathIndex {
    exact: Vec<(Box<str>, usize)>,
    elements: Prefixes,
    strings: Prefixes,
}

#[derive(Clone, Debug, Default)]
struct Prefixes(Vec<Prefix>);

#[derive(Clone, Debug)]
struct Prefix {
    text: Box<str>,
    place: usize,
    /// The longest other entry that is a prefix of this one.
    shorter: Option<usize>,
}

impl PathIndex {
    /// An index of matches, no two of them equal; answers are positions in this order.
    pub(super) fn new<'m>(matches: impl Iterator<Item = &'m Match>) -> Self {
        let (mut exact, mut elements, mut strings) = (Vec::new(), Vec::new(), Vec::new());
        for (place, Match { match_type, path }) in matches.enumerate() {
            match match_type {
                MatchType::Exact => exact.push((path.as_str().into(), place)),
                MatchType::ElementPrefix if path.ends_with('/') => {
                    elements.push((path.as_str().into(), place))
                }
                MatchType::ElementPrefix => elements.push((format!("{path}/").into(), place)),
                MatchType::StringPrefix => strings.push((path.as_str().into(), place)),
            }
        }
        exact.sort_unstable();
        Self {
            exact,
            elements: Prefixes::new(elements),
            strings: Prefixes::new(strings),
        }
    }

    /// The position of the match that is asked first of those that match.
    pub(super) fn find(&self, path: &str) -> Option<usize> {
        if let Ok(found) = self.exact.binary_search_by(|(text, _)| (**text).cmp(path)) {
            return self.exact.get(found).map(|(_, place)| *place);
        }
        let element = self.elements.longest(path, "/");
        let string = self.strings.longest(path, "");
        // Positions are ranks: the lower one is asked first.
        [element, string].into_iter().flatten().min()
    }
}

impl Prefixes {
    fn new(mut entries: Vec<(Box<str>, usize)>) -> Self {
        entries.sort_unstable();
        let mut prefixes: Vec<Prefix> = Vec::with_capacity(entries.len());
        for (text, place) in entries {
            let mut shorter = prefixes.len().checked_sub(1);
            while let Some(above) = shorter.and_then(|at| prefixes.get(at)) {
                if text.starts_with(&*above.text) {
                    break;
                }
                shorter = above.shorter;
            }
            prefixes.push(Prefix {
                text,
                place,
                shorter,
            });
        }
        Self(prefixes)
    }

    /// The longest entry that is a prefix of `path` and `end`, read as one text.
    fn longest(&self, path: &str, end: &str) -> Option<usize> {
        let above = self
            .0
            .partition_point(|prefix| compare(&prefix.text, path, end) != Ordering::Greater);
        let mut candidate = above.checked_sub(1);
        while let Some(prefix) = candidate.and_then(|at| self.0.get(at)) {
            if is_prefix(&prefix.text, path, end) {
                return Some(prefix.place);
            }
            candidate = prefix.shorter;
        }
        None
    }
}

/// Orders `text` and the text made of `path` and `end`.
fn compare(text: &str, path: &str, end: &str) -> Ordering {
    let (text, path) = (text.as_bytes(), path.as_bytes());
    match text.split_at_checked(path.len()) {
        // Shorter than the path: what follows the path plays no part.
        None => text.cmp(path),
        Some((head, rest)) => head.cmp(path).then_with(|| rest.cmp(end.as_bytes())),
    }
}

fn is_prefix(text: &str, path: &str, end: &str) -> bool {
    match text.strip_prefix(path) {
        Some(rest) => end.starts_with(rest),
        None => path.starts_with(text),
    }
}
