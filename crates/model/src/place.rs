//! What a route matches, and which of two matches is asked first.

use std::{cmp::Ordering, fmt};

use serde::{Deserialize, Serialize};

/// How a path is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum MatchType {
    /// The whole path, byte for byte. Kubernetes `Exact`.
    #[serde(rename = "exact_path")]
    Exact,
    /// Path elements from the left: `/a` takes `/a` and `/a/b`, not `/ab`. Kubernetes `Prefix`.
    #[serde(rename = "path_element_prefix")]
    ElementPrefix,
    /// Bytes from the left: `/a` takes `/ab` too. The edge API's `path_prefix`.
    #[serde(rename = "path_prefix")]
    StringPrefix,
}

impl MatchType {
    /// The name in statuses and tables: `exact`, `prefix`, `string_prefix`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::ElementPrefix => "prefix",
            Self::StringPrefix => "string_prefix",
        }
    }

    /// The name at the edge API.
    #[must_use]
    pub const fn wire(self) -> &'static str {
        match self {
            Self::Exact => "exact_path",
            Self::ElementPrefix => "path_element_prefix",
            Self::StringPrefix => "path_prefix",
        }
    }
}

/// A match: the identity of a route on its edge. Two declarations of one match are one route.
///
/// `path` is normalised (`routing::path`) and starts with `/`; an element prefix other than `/`
/// has no trailing slash, since Prefix `/x` and `/x/` are one (R16).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Match {
    /// How the path is compared.
    pub match_type: MatchType,
    /// The normalised path.
    pub path: String,
}

impl Match {
    /// A match on an already normalised path; strips the slash that an element prefix must not end in.
    #[must_use]
    pub fn new(match_type: MatchType, normalised: &str) -> Self {
        let path = match match_type {
            MatchType::ElementPrefix if normalised.len() > 1 => {
                normalised.strip_suffix('/').unwrap_or(normalised)
            }
            MatchType::Exact | MatchType::ElementPrefix | MatchType::StringPrefix => normalised,
        };
        Self {
            match_type,
            path: path.to_owned(),
        }
    }

    /// Whether a normalised request path is matched, seen alone.
    #[must_use]
    pub fn matches(&self, path: &str) -> bool {
        match self.match_type {
            MatchType::Exact => path == self.path,
            MatchType::StringPrefix => path.starts_with(&self.path),
            MatchType::ElementPrefix => {
                self.path == "/"
                    || path
                        .strip_prefix(self.path.as_str())
                        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            }
        }
    }

    /// The order in which matches are asked: `Less` is asked first. Exact before prefixes, longer
    /// before shorter, element prefix before string prefix at equal length; total.
    #[must_use]
    pub fn rank(&self, other: &Self) -> Ordering {
        let key = |m: &Self| {
            (
                m.match_type != MatchType::Exact,
                std::cmp::Reverse(m.path.len()),
                m.match_type,
            )
        };
        key(self)
            .cmp(&key(other))
            .then_with(|| self.path.cmp(&other.path))
    }

    /// Whether `other` would answer some request of `self` if `self` were not there: it ranks
    /// lower and some path is matched by both (R3, R5).
    #[must_use]
    pub fn is_narrower_than(&self, other: &Self) -> bool {
        self.rank(other) == Ordering::Less && self.intersects(other)
    }

    /// Whether some path is matched by both.
    #[must_use]
    pub fn intersects(&self, other: &Self) -> bool {
        use MatchType::{ElementPrefix, Exact, StringPrefix};
        match (self.match_type, other.match_type) {
            (Exact, _) => other.matches(&self.path),
            (_, Exact) => self.matches(&other.path),
            (ElementPrefix, ElementPrefix) => {
                self.matches(&other.path) || other.matches(&self.path)
            }
            (StringPrefix, StringPrefix) => {
                self.path.starts_with(&other.path) || other.path.starts_with(&self.path)
            }
            (StringPrefix, ElementPrefix) => string_meets_elements(self, other),
            (ElementPrefix, StringPrefix) => string_meets_elements(other, self),
        }
    }
}

/// A string prefix and an element prefix share a path when the one's path is taken by the other,
/// or the string reaches below the element (`/a/` and `/a`, `/a/b` and `/a`).
fn string_meets_elements(string: &Match, element: &Match) -> bool {
    element.path.starts_with(&string.path) || element.matches(&string.path)
}

impl fmt::Display for Match {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.match_type.name(), self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TYPES: [MatchType; 3] = [
        MatchType::Exact,
        MatchType::ElementPrefix,
        MatchType::StringPrefix,
    ];

    #[test]
    fn intersection_agrees_with_trying_every_short_path() {
        let mut paths = vec![String::from("/")];
        for length in 1..=4 {
            for number in 0..3_u32.pow(length) {
                let tail: String = (0..length)
                    .map(|i| ['a', 'b', '/'][(number / 3_u32.pow(i) % 3) as usize])
                    .collect();
                paths.push(format!("/{tail}"));
            }
        }
        let short: Vec<_> = paths
            .iter()
            .filter(|p| p.len() <= 4 && !p.contains("//"))
            .collect();
        for left in TYPES
            .into_iter()
            .flat_map(|t| short.iter().map(move |p| Match::new(t, p)))
        {
            for right in TYPES
                .into_iter()
                .flat_map(|t| short.iter().map(move |p| Match::new(t, p)))
            {
                let seen = paths.iter().any(|p| left.matches(p) && right.matches(p));
                assert_eq!(left.intersects(&right), seen, "{left} and {right}");
            }
        }
    }
}
