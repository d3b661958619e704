//! What differs between two states, found by pointer where nothing does.

use std::{collections::BTreeMap, sync::Arc};

/// A value as it was and as it is; absent where it was not, or is not.
pub type Difference<'a, K, V> = (&'a K, Option<&'a Arc<V>>, Option<&'a Arc<V>>);

/// Walks two maps of shared values together and gives every key whose value is another one.
pub fn differences<'a, K: Ord, V: PartialEq>(
    old: &'a BTreeMap<K, Arc<V>>,
    new: &'a BTreeMap<K, Arc<V>>,
) -> impl Iterator<Item = Difference<'a, K, V>> {
    let (mut old, mut new) = (old.iter().peekable(), new.iter().peekable());
    let next = move || {
        let first = match (old.peek(), new.peek()) {
            (Some((was, _)), Some((is, _))) => (*was).min(*is),
            (Some((key, _)), None) | (None, Some((key, _))) => *key,
            (None, None) => return None,
        };
        let was = old
            .next_if(|(key, _)| *key == first)
            .map(|(_, value)| value);
        let is = new
            .next_if(|(key, _)| *key == first)
            .map(|(_, value)| value);
        Some((first, was, is))
    };
    let differs = |(_, was, is): &Difference<'a, K, V>| match (was, is) {
        (Some(was), Some(is)) => !Arc::ptr_eq(was, is) && was != is,
        (_, _) => true,
    };
    std::iter::from_fn(next).filter(differs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_went_and_changed_is_found_and_nothing_else() {
        let (same, equal) = (Arc::new(0), || Arc::new(9));
        let old = BTreeMap::from([
            (1, Arc::clone(&same)),
            (2, Arc::new(2)),
            (4, Arc::new(4)),
            (6, equal()),
        ]);
        let new = BTreeMap::from([
            (1, same),
            (3, Arc::new(3)),
            (4, Arc::new(5)),
            (6, equal()),
            (7, Arc::new(7)),
        ]);
        let found: Vec<_> = differences(&old, &new)
            .map(|(key, was, is)| (*key, was.map(|v| **v), is.map(|v| **v)))
            .collect();
        let expected = [
            (2, Some(2), None),
            (3, None, Some(3)),
            (4, Some(4), Some(5)),
            (7, None, Some(7)),
        ];
        assert_eq!(found, expected);
    }
}
