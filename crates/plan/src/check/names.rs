//! What edges and steps refer to by id.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use edge_state::{
    command::{Command, EdgeSpec, RouteSpec},
    state::{Edge, PolicyRef},
};
use model::{
    id::{BackendId, CertificateId, IpPolicyId},
    module::Modules,
};

/// Ids of shared things.
#[derive(Default)]
pub(super) struct Names {
    pub(super) policies: BTreeSet<IpPolicyId>,
    pub(super) backends: BTreeSet<BackendId>,
    pub(super) certificates: BTreeSet<CertificateId>,
}

impl Names {
    pub(super) fn edge(&mut self, edge: &Edge) {
        self.certificates.extend(edge.certificate.clone());
        for route in edge.routes.values() {
            self.modules(&route.modules);
            self.policies
                .extend(route.also_refuse.iter().map(|policy| policy.id.clone()));
            self.backends
                .extend(route.backend.iter().map(|backend| backend.id.clone()));
        }
    }

    pub(super) fn command(&mut self, command: &Command) {
        if let Command::ReplaceEdge(spec) = command {
            let EdgeSpec {
                certificate,
                routes,
                ..
            } = spec.as_ref();
            self.certificates.extend(certificate.clone());
            routes.iter().for_each(|route| self.route(route));
        } else if let Command::ReplaceRoute { route, .. } = command {
            self.route(route);
        } else if let Command::UpdateRoute { patch, .. } | Command::CreateRoute { patch, .. } =
            command
        {
            let restriction = patch.modules.ip_restriction.iter();
            self.policies
                .extend(restriction.flat_map(|module| module.policies.iter().cloned()));
            self.backends
                .extend(patch.backend.iter().map(|backend| backend.id.clone()));
        }
    }

    fn route(&mut self, route: &RouteSpec) {
        self.modules(&route.modules);
        self.policies
            .extend(route.also_refuse.iter().map(|policy| policy.id.clone()));
        self.backends
            .extend(route.backend.iter().map(|backend| backend.id.clone()));
    }

    fn modules(&mut self, modules: &Modules<PolicyRef>) {
        let restriction = modules.ip_restriction.iter();
        let policies = restriction.flat_map(|module| &module.policies);
        self.policies
            .extend(policies.map(|policy| policy.id.clone()));
    }
}

/// The named ones of a map.
pub(super) fn those<K: Ord + Clone, V>(
    all: &BTreeMap<K, Arc<V>>,
    names: &BTreeSet<K>,
) -> BTreeMap<K, Arc<V>> {
    let found = names.iter().filter_map(|name| all.get_key_value(name));
    found
        .map(|(name, value)| (name.clone(), Arc::clone(value)))
        .collect()
}
