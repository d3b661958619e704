//! The controller's copy of the edge: read once, then followed by repeating its own commands on
//! it with the edge's own state machine. On any doubt it is dropped and read again (R6).

use edge_state::{
    apply::Machine,
    capabilities::Capabilities,
    command::{Command, Context, Limits},
    state::{EdgeState, Role},
};
use model::time::Timestamp;

use crate::ports::{Reading, Receipt};

/// The edge as it is believed to be.
#[derive(Clone, Debug)]
pub(crate) struct Followed {
    machine: Machine,
    pub(crate) capabilities: Capabilities,
    /// The edge's clock less ours at the last answer, in milliseconds.
    skew: i128,
}

impl Followed {
    pub(crate) fn new(reading: Reading, capabilities: Capabilities, here: Timestamp) -> Self {
        let skew = i128::from(reading.now.0) - i128::from(here.0);
        Self {
            machine: Machine::new(reading.state),
            capabilities,
            skew,
        }
    }

    pub(crate) const fn state(&self) -> &EdgeState {
        self.machine.state()
    }

    /// The edge's clock now.
    pub(crate) fn now(&self, here: Timestamp) -> Timestamp {
        let there = i128::from(here.0) + self.skew;
        Timestamp(u64::try_from(there.max(0)).unwrap_or(u64::MAX))
    }

    /// An instant of the edge's clock on ours.
    pub(crate) fn here(&self, there: Timestamp) -> Timestamp {
        let here = i128::from(there.0) - self.skew;
        Timestamp(u64::try_from(here.max(0)).unwrap_or(u64::MAX))
    }

    /// Whether a command would close a route that is open.
    pub(crate) fn would_close(&self, command: &Command, term: u64) -> bool {
        let limits = Limits::default();
        let mut machine = self.machine.clone();
        let context = Context {
            now: Timestamp(0),
            role: Role::Controller,
            term: Some(term),
            enforceable: &self.capabilities.enforceable,
            limits: &limits,
        };
        let applied = machine.apply(command, &context).is_ok();
        applied && open_routes(machine.state()) < open_routes(self.state())
    }

    /// Repeats an acknowledged command. `None` when the copy does not come out as the edge did:
    /// somebody else wrote, or the two disagree; then it must be read again.
    pub(crate) fn repeat(
        mut self,
        command: &Command,
        term: u64,
        receipt: Receipt,
        here: Timestamp,
    ) -> Option<Self> {
        let limits = Limits::default();
        let context = Context {
            now: receipt.now,
            role: Role::Controller,
            term: Some(term),
            enforceable: &self.capabilities.enforceable,
            limits: &limits,
        };
        self.machine.apply(command, &context).ok()?;
        if self.state().revision != receipt.revision {
            return None;
        }
        self.skew = i128::from(receipt.now.0) - i128::from(here.0);
        Some(self)
    }
}

fn open_routes(state: &EdgeState) -> usize {
    let routes = state.edges.values().flat_map(|edge| edge.routes.values());
    routes
        .filter(|route| route.open_backend().is_some())
        .count()
}
