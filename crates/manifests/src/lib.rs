//! Manifest files as a source of objects, and diagnostics as text.
//!
//! `yaml` reads one text, `document` makes objects of it, `files` finds the files, `tree` knows
//! what each of them held last, [`watch`] delivers whole snapshots of a tree at rest (R19), and
//! [`report`] prints what is wrong.

mod document;
pub mod files;
pub mod fuzz;
pub mod report;
pub mod scan;
mod tree;
pub mod watch;
pub mod yaml;

use std::time::{Duration, Instant};

use files::Roots;
use resources::snapshot::Snapshot;
use yaml::Limits;

/// Reads everything once, as it stands: for `check`, where nothing opens.
#[must_use]
pub fn read(roots: &Roots, limits: Limits) -> Snapshot {
    let mut tree = tree::Tree::new(roots.clone(), limits, Duration::ZERO);
    tree.update(&roots.list(), Instant::now());
    tree.snapshot(false)
}
