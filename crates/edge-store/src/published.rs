//! What readers get: one state and its table, whole.

use std::{collections::BTreeMap, sync::Arc};

use edge_state::state::{EdgeState, Role};
use model::{id::KeyId, secret::Digest};
use routing::{refusal::Refusal, table::Table};

/// A state as it was acknowledged, and what it compiled to.
#[derive(Clone, Debug)]
pub struct Published {
    /// The state.
    pub state: Arc<EdgeState>,
    /// Its table.
    pub table: Arc<Table>,
    /// The state's revision.
    pub revision: u64,
    tokens: Arc<BTreeMap<Digest, (KeyId, Role)>>,
}

impl Published {
    pub(crate) fn new(state: EdgeState, table: Table, previous: Option<&Self>) -> Self {
        let same_keys = |previous: &&Self| {
            let (old, new) = (&previous.state.keys, &state.keys);
            let same = |((_, a), (_, b)): ((_, &Arc<_>), (_, &Arc<_>))| Arc::ptr_eq(a, b);
            old.len() == new.len() && old.iter().zip(new).all(same)
        };
        let tokens = previous.filter(same_keys).map_or_else(
            || {
                let of = |(id, key): (&KeyId, &Arc<edge_state::state::ApiKey>)| {
                    (key.token_digest, (id.clone(), key.role))
                };
                Arc::new(state.keys.iter().map(of).collect())
            },
            |previous| Arc::clone(&previous.tokens),
        );
        let revision = state.revision;
        Self {
            state: Arc::new(state),
            table: Arc::new(table),
            revision,
            tokens,
        }
    }

    /// Nothing, and a table that refuses everything.
    pub(crate) fn refusing() -> Self {
        let table = Table::refusing(Refusal::StateUnreadable);
        Self::new(EdgeState::default(), table, None)
    }

    /// The API key with this digest of its token (SHA-256). Comparing digests tells whoever
    /// guesses tokens nothing about the next guess.
    #[must_use]
    pub fn find_key(&self, token_digest: &Digest) -> Option<(KeyId, Role)> {
        self.tokens.get(token_digest).cloned()
    }
}
