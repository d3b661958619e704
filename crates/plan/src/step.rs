//! Plans and their steps, as values with a stable text.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use edge_state::command::Command;
use model::{secret::Digest, time::Timestamp};

use crate::{inputs::RouteKey, report::Report};

/// What to do, and how things stand.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// The steps, in the order in which they must be taken.
    pub steps: Vec<Step>,
    /// How every route stands at this moment, and why.
    pub report: Report,
    /// When an age will next change something, if nothing else does before.
    pub wake_at: Option<Timestamp>,
}

impl Plan {
    /// Whether the edge is as declared, as far as it can be: nothing is to be written (R9).
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }
}

/// One call to the edge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The call.
    pub command: Command,
    /// Earlier steps that must have been applied and acknowledged. If one was not, this one is
    /// left out, and the edge is read and planned for again (R6).
    pub requires: Vec<usize>,
    /// The routes that it is about.
    pub concerns: BTreeSet<RouteKey>,
    /// The routes that it opens, changes while open, or prepares for that, with the digest of
    /// what they are declared to be. A refusal of the edge is a refusal of these.
    pub opens: BTreeMap<RouteKey, Option<Digest>>,
    /// Whether it can let through a request that was refused: then everything it rests on is
    /// confirmed by a consistent read before it is taken (R19).
    pub makes_laxer: bool,
}

impl Step {
    /// What it does, without what changes by itself.
    pub(crate) fn content_text(&self) -> String {
        format!("{:?}", self.command)
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.command)
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, step) in self.steps.iter().enumerate() {
            writeln!(f, "{number}: {step}")?;
        }
        Ok(())
    }
}
