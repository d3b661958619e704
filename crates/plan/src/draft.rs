//! A plan in the making.

use std::collections::{BTreeMap, BTreeSet};

use edge_state::command::Command;
use model::secret::Digest;

use crate::{
    inputs::{Rejections, RouteKey},
    step::Step,
};

/// The steps so far.
pub(crate) struct Draft<'a> {
    rejections: &'a Rejections,
    pub(crate) steps: Vec<Step>,
}

/// Whether a step is in the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Placed {
    /// At this place.
    At(usize),
    /// Not needed.
    Needless,
    /// The edge refused it before, or one that it requires: it is left out (R7).
    Refused,
}

/// What a step is about.
#[derive(Clone, Debug, Default)]
pub(crate) struct About {
    pub(crate) concerns: BTreeSet<RouteKey>,
    pub(crate) opens: BTreeMap<RouteKey, Option<Digest>>,
}

impl About {
    pub(crate) fn route(key: &RouteKey) -> Self {
        Self {
            concerns: BTreeSet::from([key.clone()]),
            ..Self::default()
        }
    }

    pub(crate) fn opening(key: &RouteKey, digest: Option<Digest>) -> Self {
        Self {
            concerns: BTreeSet::from([key.clone()]),
            opens: BTreeMap::from([(key.clone(), digest)]),
        }
    }
}

impl<'a> Draft<'a> {
    pub(crate) const fn new(rejections: &'a Rejections) -> Self {
        Self {
            rejections,
            steps: Vec::new(),
        }
    }

    /// Adds a step, unless the edge refused it or one that it requires.
    pub(crate) fn push(&mut self, command: Command, requires: &[Placed], about: About) -> Placed {
        let mut places = Vec::new();
        for required in requires {
            match required {
                Placed::At(place) => places.push(*place),
                Placed::Needless => {}
                Placed::Refused => return Placed::Refused,
            }
        }
        places.sort_unstable();
        places.dedup();
        let About { concerns, opens } = about;
        let step = Step {
            command,
            requires: places,
            concerns,
            opens,
        };
        if self.rejections.of_step(&step).is_some() {
            return Placed::Refused;
        }
        self.steps.push(step);
        Placed::At(self.steps.len() - 1)
    }
}
