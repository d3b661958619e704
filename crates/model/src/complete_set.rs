//! The complete set: everything that handles a request, as one value.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::{
    id::BackendId,
    module::{EdgeDemands, ModuleKind, Modules},
};

/// All the modules that one declaration gives a route, the edge-wide ones included, and the
/// backend. The promise is about this value as a whole: old modules with a new backend are a mix.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(bound(deserialize = "P: Deserialize<'de>"))]
pub struct CompleteSet<P> {
    /// Edge-wide modules.
    pub demands: EdgeDemands,
    /// The route's own modules.
    pub modules: Modules<P>,
    /// Who answers. A backend that is another in any respect but its endpoints has another id.
    pub backend: BackendId,
}

impl<P> CompleteSet<P> {
    /// The kinds of module in it.
    #[must_use]
    pub fn kinds(&self) -> BTreeSet<ModuleKind> {
        let mut kinds = self.demands.kinds();
        kinds.extend(self.modules.kinds());
        kinds
    }

    /// Whether any of them can refuse.
    #[must_use]
    pub fn has_access_modules(&self) -> bool {
        self.kinds().into_iter().any(ModuleKind::is_access)
    }
}
