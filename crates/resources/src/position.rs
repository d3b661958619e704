//! Where an object and its fields stand in a file.

use std::sync::Arc;

use crate::problem::FieldPath;

/// A line and a column, both from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LineColumn {
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
}

/// Where the fields of one object stand: sorted once, searched rarely, and no larger than it
/// must be, because there is one for every object of ten thousand.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Positions(Box<[(Box<str>, LineColumn)]>);

impl FromIterator<(FieldPath, LineColumn)> for Positions {
    fn from_iter<I: IntoIterator<Item = (FieldPath, LineColumn)>>(places: I) -> Self {
        let mut sorted: Vec<(Box<str>, LineColumn)> = places
            .into_iter()
            .map(|(path, place)| (path.as_str().into(), place))
            .collect();
        sorted.sort();
        Self(sorted.into_boxed_slice())
    }
}

impl Positions {
    /// Where a field stands; a field that is missing is looked for where it ought to be, in what
    /// contains it.
    #[must_use]
    pub fn find(&self, path: &FieldPath) -> Option<LineColumn> {
        let mut wanted = Some(path.clone());
        while let Some(path) = wanted {
            if let Ok(index) = self
                .0
                .binary_search_by(|(known, _)| known.as_ref().cmp(path.as_str()))
            {
                return Some(self.0[index].1);
            }
            wanted = path.parent();
        }
        None
    }
}

/// A place in a file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// The file as the user named it; `-` is standard input.
    pub file: Arc<str>,
    /// Where in it.
    pub at: LineColumn,
}

/// Where an object came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A cluster: no file, no lines.
    Cluster,
    /// A document in a file.
    File {
        /// The file as the user named it; `-` is standard input.
        file: Arc<str>,
        /// The fields' places; the empty path is the object itself.
        positions: Positions,
    },
}

impl Origin {
    /// The place of a field, or the nearest known one around it.
    #[must_use]
    pub fn place(&self, path: &FieldPath) -> Option<Place> {
        match self {
            Self::Cluster => None,
            Self::File { file, positions } => positions.find(path).map(|at| Place {
                file: Arc::clone(file),
                at,
            }),
        }
    }
}
