//! Text to values with positions, everything bounded.
//!
//! A manifest decides who may pass, so it is read the way the cluster's own tools read it: scalars
//! have the types that kubectl gives them (`scalar`), and what those tools resolve silently in an
//! undefined way (a duplicate key) is an error here. Everything an author can make large has a
//! limit ([`Limits`]), and the cost of a file is linear in its size.
//!
//! Trouble comes in two sizes. A text that does not parse says nothing certain about any of its
//! objects: the whole file is [`Unreadable`] and its objects are pending (R19). Trouble within one
//! document is a [`Problem`] of that document: its object is invalid, its neighbours count (R15).

mod build;
mod keys;
mod node;
mod scalar;

pub use build::parse;
pub use node::{Entry, Mark, Node, Value};
use resources::problem::Problem;

/// How much a file may hold. The defaults leave room for tens of thousands of objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of one file.
    pub file_bytes: usize,
    /// Documents in one file.
    pub documents: usize,
    /// Values in one file.
    pub nodes: usize,
    /// How deep values nest within one document.
    pub depth: usize,
    /// Values that aliases may copy, over a whole file.
    pub copied_nodes: usize,
    /// Bytes of text that aliases may copy, over a whole file.
    pub copied_bytes: usize,
    /// Bytes of one object: what an API server accepts is less (etcd's limit is 1.5 MiB).
    pub object_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            file_bytes: 64 << 20,
            documents: 100_000,
            nodes: 2_000_000,
            depth: 64,
            copied_nodes: 100_000,
            copied_bytes: 4 << 20,
            object_bytes: 3 << 19,
        }
    }
}

/// Why a file as a whole says nothing (R19): its objects are pending.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable {
    /// Where the reading stopped.
    pub mark: Mark,
    /// A stable name in kebab case.
    pub code: &'static str,
    /// What is wrong, in one sentence without a full stop.
    pub message: String,
    /// What to do about it.
    pub remedy: &'static str,
}

/// One document of a file.
#[derive(Clone, Debug)]
pub struct Document {
    /// Its value, as far as it could be read.
    pub root: Node,
    /// What is wrong with it. Not empty: nothing in it may be used to open anything.
    pub problems: Vec<Problem>,
}

#[cfg(test)]
mod tests;
