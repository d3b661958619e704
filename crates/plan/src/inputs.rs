//! What the planner is given: everything it may depend on, and nothing else.

use std::collections::{BTreeMap, BTreeSet};

use edge_state::{capabilities::Capabilities, state::EdgeState};
use model::{
    declaration::Declaration,
    host::HostPattern,
    place::Match,
    secret::Digest,
    time::{Span, Timestamp},
};
use sha2::{Digest as _, Sha256};

use crate::step::Step;

/// A route as people name it: a host and a match.
pub type RouteKey = (HostPattern, Match);

/// Everything that a plan depends on.
#[derive(Clone, Copy, Debug)]
pub struct Inputs<'a> {
    /// The edge as it was last read, or followed by repeating own commands on a copy.
    pub actual: &'a EdgeState,
    /// What is wanted.
    pub declared: &'a Declaration,
    /// The edge's clock.
    pub now: Timestamp,
    /// What the operator chose.
    pub options: &'a Options,
    /// What the edge can do.
    pub capabilities: &'a Capabilities,
    /// What the edge refused, and is not asked again until it changes (R7).
    pub rejections: &'a Rejections,
    /// This controller's name: only what carries it is ever touched.
    pub controller: &'a str,
    /// A pass that may close and stage, but not open, change or delete (R19).
    pub only_close: bool,
}

/// What happens to an open route whose declaration fails preflight (R2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnInvalid {
    /// It keeps its old complete set.
    #[default]
    Hold,
    /// It closes.
    Close,
}

/// The operator's choices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Hold or close.
    pub on_invalid: OnInvalid,
    /// How long a route whose served set lost an object stays open (R2).
    pub lost_grace: Span,
    /// How long a route may be held; absent: without limit.
    pub hold_limit: Option<Span>,
    /// How long a withdrawn route with access modules stays as a closed tombstone (R5).
    pub tombstone: Span,
    /// How long a host belongs to its namespace after its last declaration (R20).
    pub host_release: Span,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            on_invalid: OnInvalid::Hold,
            lost_grace: Span::from_secs(60),
            hold_limit: None,
            tombstone: Span::from_secs(10),
            host_release: Span::from_secs(600),
        }
    }
}

/// What the edge refused with an answer that is not retried on a timer (R7). A route whose
/// declaration was refused counts as invalid until the declaration changes; a command that opens
/// nothing is left out until it would be another one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rejections {
    routes: BTreeMap<RouteKey, Rejected>,
    commands: BTreeMap<Digest, String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Rejected {
    digest: Option<Digest>,
    message: String,
    /// Not even closed would the edge have it.
    unstaged: bool,
}

impl Rejections {
    /// Remembers that the edge refused a step. `route` is the one that the edge's answer named:
    /// only that one is to blame (R15). Without a name all that the step opens are, and if it
    /// opens none, the step itself.
    pub fn remember(&mut self, step: &Step, route: Option<&RouteKey>, message: &str) {
        let reject = |digest, unstaged| Rejected {
            digest,
            message: message.to_owned(),
            unstaged,
        };
        if let Some(key) = route.filter(|key| step.concerns.contains(*key)) {
            let rejected = match (step.opens.get(key), step.staged_digest(key)) {
                (Some(digest), _) => Some(reject(*digest, false)),
                (None, staged) => staged.map(|digest| reject(digest, true)),
            };
            if let Some(rejected) = rejected {
                self.routes.insert(key.clone(), rejected);
                return;
            }
        }
        for (key, digest) in &step.opens {
            self.routes.insert(key.clone(), reject(*digest, false));
        }
        if step.opens.is_empty() {
            self.commands
                .insert(Self::command_key(step), message.to_owned());
        }
    }

    /// Drops what is not declared any more in the words that were refused.
    pub fn forget_changed(&mut self, declared: &Declaration) {
        self.routes.retain(|(host, place), rejected| {
            declared
                .hosts
                .get(host)
                .and_then(|host| host.routes.get(place))
                .is_some_and(|route| rejected.is_about(route.digest))
        });
    }

    /// Whether nothing is remembered.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.routes.is_empty() && self.commands.is_empty()
    }

    /// Forgets everything: a resync tries again.
    pub fn clear(&mut self) {
        self.routes.clear();
        self.commands.clear();
    }

    /// The routes that were refused.
    #[must_use]
    pub fn routes(&self) -> BTreeSet<&RouteKey> {
        self.routes.keys().collect()
    }

    /// What the edge said of this declaration of a route.
    #[must_use]
    pub fn of_route(&self, key: &RouteKey, digest: Option<Digest>) -> Option<&str> {
        let rejected = self
            .routes
            .get(key)
            .filter(|rejected| rejected.is_about(digest))?;
        Some(&rejected.message)
    }

    /// What the edge said when it would not even have this route closed.
    #[must_use]
    pub fn of_staging(&self, key: &RouteKey, digest: Option<Digest>) -> Option<&str> {
        let rejected = self
            .routes
            .get(key)
            .filter(|rejected| rejected.is_about(digest))?;
        rejected.unstaged.then_some(rejected.message.as_str())
    }

    /// What the edge said of this very step.
    #[must_use]
    pub fn of_step(&self, step: &Step) -> Option<&str> {
        if self.commands.is_empty() {
            return None;
        }
        self.commands
            .get(&Self::command_key(step))
            .map(String::as_str)
    }

    /// The text of a step without what changes by itself: the expected generation.
    fn command_key(step: &Step) -> Digest {
        Digest(Sha256::digest(step.content_text()).into())
    }
}

impl Rejected {
    /// Whether it was this declaration. One that could not be read whole may be: it says no more
    /// than the route's place.
    fn is_about(&self, digest: Option<Digest>) -> bool {
        self.digest == digest || (self.unstaged && digest.is_none())
    }
}
