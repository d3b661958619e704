//! What an edge says of itself: the capabilities document.

use std::collections::BTreeSet;

use model::module::ModuleKind;
use serde::{Deserialize, Serialize};

/// What an edge can change in one atomic step (R4). Our own edge offers [`Atomicity::Replace`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Atomicity {
    /// Single-module calls only.
    None,
    /// One call sets several modules and the backend, but deletes no module.
    Patch,
    /// One call replaces a route, or a whole edge.
    Replace,
}

/// What the controller must know of an edge before it plans.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capabilities {
    /// The edge's version.
    pub version: String,
    /// What it can do in one step.
    pub atomicity: Atomicity,
    /// The modules that it enforces. Whatever is not here is refused, never stored.
    pub enforceable: BTreeSet<ModuleKind>,
}
