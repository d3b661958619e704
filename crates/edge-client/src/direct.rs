//! An edge in the same process: the same contract without a network.

use controller::ports::{EdgeControl, EdgeError, Reading, Receipt};
use edge_state::{capabilities::Capabilities, command::Command, state::Role};
use edge_store::{Applied, Store, Writer};

use crate::classify;

/// A store, driven as a controller drives an edge.
#[derive(Clone)]
pub struct DirectEdge {
    store: Store,
    capabilities: Capabilities,
}

impl std::fmt::Debug for DirectEdge {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            store: _,
            capabilities,
        } = self;
        f.debug_struct("DirectEdge")
            .field("capabilities", capabilities)
            .finish_non_exhaustive()
    }
}

impl DirectEdge {
    /// The edge whose state this store owns.
    #[must_use]
    pub const fn new(store: Store, capabilities: Capabilities) -> Self {
        Self {
            store,
            capabilities,
        }
    }
}

impl EdgeControl for DirectEdge {
    async fn capabilities(&self) -> Result<Capabilities, EdgeError> {
        Ok(self.capabilities.clone())
    }

    async fn read(&self) -> Result<Reading, EdgeError> {
        // The clock first, as the server does: ages come out shorter, never longer.
        let now = self.store.now();
        let state = self.store.current().state.redacted(Role::Controller);
        Ok(Reading { state, now })
    }

    async fn apply(&self, term: u64, command: Command) -> Result<Receipt, EdgeError> {
        let writer = Writer {
            role: Role::Controller,
            term: Some(term),
        };
        let applied = self
            .store
            .apply(command, &writer)
            .await
            .map_err(classify::direct)?;
        let Applied {
            revision,
            changed: _,
            now,
            published: _,
        } = applied;
        Ok(Receipt { revision, now })
    }

    async fn changed(&self, revision: u64) {
        let newer = self
            .store
            .subscribe()
            .wait_for(|now| *now > revision)
            .await
            .is_ok();
        if !newer {
            // The store has ended: nothing changes any more, and the next call says so.
            std::future::pending::<()>().await;
        }
    }
}
