//! The linear reference matcher: which declared route answers a request, written from the text of
//! the Kubernetes documentation ("Ingress": path types, multiple matches, hostname wildcards) and
//! of the edge API (`path_prefix`), and from nothing of ours but the names of things.
//!
//! It asks every route, and it shares no code with `routing` nor with the methods of
//! [`model::place::Match`], so that a matching bug there cannot hide here. It is the oracle of
//! `routing`'s property tests and of the planner's exhaustive check. Paths are normalised already.

use model::{
    host::HostPattern,
    place::{Match, MatchType},
};

/// The pattern that answers for a host: the precise one, or the wildcard whose suffix is
/// everything but the host's first label.
#[must_use]
pub fn host<'p>(
    patterns: impl IntoIterator<Item = &'p HostPattern>,
    host: &str,
) -> Option<&'p HostPattern> {
    let labels: Vec<&str> = host.split('.').collect();
    let mut wildcard = None;
    for pattern in patterns {
        let wanted: Vec<&str> = pattern.as_str().split('.').collect();
        if wanted == labels {
            return Some(pattern);
        }
        // "Equal to the suffix", and "only covers a single DNS label".
        if wanted.first() == Some(&"*") && labels.len() > 1 && wanted[1..] == labels[1..] {
            wildcard = Some(pattern);
        }
    }
    wildcard
}

/// The match that answers for a path: of all that match it, the longest; of equally long ones
/// Exact, then Prefix by elements, then prefix by bytes.
#[must_use]
pub fn route<'m>(matches: impl IntoIterator<Item = &'m Match>, path: &str) -> Option<&'m Match> {
    let mut best: Option<(usize, u8, &Match)> = None;
    for candidate in matches {
        let preference = match candidate.match_type {
            MatchType::Exact => 3,
            MatchType::ElementPrefix => 2,
            MatchType::StringPrefix => 1,
        };
        let is_better = best.is_none_or(|(length, other, _)| {
            candidate.path.len() > length || (candidate.path.len() == length && preference > other)
        });
        if matches_alone(candidate, path) && is_better {
            best = Some((candidate.path.len(), preference, candidate));
        }
    }
    best.map(|(_, _, found)| found)
}

/// Both together. A host whose routes all miss does not fall back to the wildcard's.
#[must_use]
pub fn answering<'d>(
    hosts: impl IntoIterator<Item = (&'d HostPattern, &'d [Match])> + Clone,
    wanted: &str,
    path: &str,
) -> Option<(&'d HostPattern, &'d Match)> {
    let pattern = host(
        hosts.clone().into_iter().map(|(pattern, _)| pattern),
        wanted,
    )?;
    let matches = hosts
        .into_iter()
        .filter(|(other, _)| *other == pattern)
        .flat_map(|(_, matches)| matches);
    route(matches, path).map(|found| (pattern, found))
}

fn matches_alone(candidate: &Match, path: &str) -> bool {
    match candidate.match_type {
        // "Matches the URL path exactly and with case sensitivity."
        MatchType::Exact => candidate.path.bytes().eq(path.bytes()),
        // "A request is a match for path p if every p is an element-wise prefix of p of the
        // request path"; the element behind a trailing slash is none.
        MatchType::ElementPrefix => {
            let (wanted, given) = (elements(&candidate.path), elements(path));
            wanted.len() <= given.len()
                && wanted.iter().zip(&given).all(|(left, right)| left == right)
        }
        // The edge API compares characters from the left.
        MatchType::StringPrefix => {
            let (wanted, given) = (candidate.path.as_bytes(), path.as_bytes());
            wanted.len() <= given.len() && (0..wanted.len()).all(|at| wanted[at] == given[at])
        }
    }
}

/// "The list of labels in the path split by the / separator."
fn elements(path: &str) -> Vec<&str> {
    path.split('/')
        .filter(|element| !element.is_empty())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table of examples in the Kubernetes documentation, row by row.
    #[test]
    fn the_examples_of_the_documentation_hold() {
        use MatchType::{ElementPrefix as Prefix, Exact};
        type Row = (
            &'static [(MatchType, &'static str)],
            &'static str,
            Option<usize>,
        );
        let rows: [Row; 19] = [
            (&[(Prefix, "/")], "/any/path", Some(0)),
            (&[(Exact, "/foo")], "/foo", Some(0)),
            (&[(Exact, "/foo")], "/bar", None),
            (&[(Exact, "/foo")], "/foo/", None),
            (&[(Exact, "/foo/")], "/foo", None),
            (&[(Prefix, "/foo")], "/foo", Some(0)),
            (&[(Prefix, "/foo")], "/foo/", Some(0)),
            (&[(Prefix, "/foo/")], "/foo", Some(0)),
            (&[(Prefix, "/foo/")], "/foo/", Some(0)),
            (&[(Prefix, "/aaa/bb")], "/aaa/bbb", None),
            (&[(Prefix, "/aaa/bbb")], "/aaa/bbb", Some(0)),
            (&[(Prefix, "/aaa/bbb/")], "/aaa/bbb", Some(0)),
            (&[(Prefix, "/aaa/bbb")], "/aaa/bbb/", Some(0)),
            (&[(Prefix, "/aaa/bbb")], "/aaa/bbb/ccc", Some(0)),
            (&[(Prefix, "/aaa/bbb")], "/aaa/bbbxyz", None),
            (&[(Prefix, "/"), (Prefix, "/aaa")], "/aaa/ccc", Some(1)),
            (
                &[(Prefix, "/"), (Prefix, "/aaa"), (Prefix, "/aaa/bbb")],
                "/aaa/bbb",
                Some(2),
            ),
            (&[(Prefix, "/"), (Prefix, "/aaa")], "/ccc", Some(0)),
            (&[(Prefix, "/foo"), (Exact, "/foo")], "/foo", Some(1)),
        ];
        for (declared, path, expected) in rows {
            let matches: Vec<Match> = declared
                .iter()
                .map(|(kind, path)| Match::new(*kind, path))
                .collect();
            assert_eq!(
                route(&matches, path),
                expected.map(|at| &matches[at]),
                "{declared:?} {path}"
            );
        }
    }

    #[test]
    fn hosts_match_as_the_documentation_says() {
        let pattern = |text| HostPattern::parse(text).expect("a pattern");
        let all = [pattern("*.foo.com"), pattern("bar.foo.com")];
        assert_eq!(host(&all, "bar.foo.com"), Some(&all[1]));
        assert_eq!(host(&all, "baz.foo.com"), Some(&all[0]));
        assert_eq!(host(&all, "baz.bar.foo.com"), None);
        assert_eq!(host(&all, "foo.com"), None);
        let root = [Match::new(MatchType::ElementPrefix, "/")];
        let hosts: [(&HostPattern, &[Match]); 2] = [(&all[0], &root), (&all[1], &[])];
        assert_eq!(
            answering(hosts, "baz.foo.com", "/x"),
            Some((&all[0], &root[0]))
        );
        assert_eq!(answering(hosts, "bar.foo.com", "/x"), None);
    }
}
