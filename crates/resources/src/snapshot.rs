//! placeholder
/// A whole set of objects.
#[derive(Debug, Default)]
pub struct Snapshot;
