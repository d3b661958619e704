//! What translation must know of the edge: who owns which host, and who declared which route.

use edge_state::state::EdgeState;
use translation::records::{HostRecord, RecordedRoute, Records};

/// The records of a state, for the controller of this name.
#[must_use]
pub fn records(state: &EdgeState, controller: &str) -> Records {
    let mut records = Records::default();
    for domain in state.domains.values() {
        let record: &mut HostRecord = records.hosts.entry(domain.host.clone()).or_default();
        record.namespace.clone_from(&domain.namespace);
        record.heir.clone_from(&domain.heir);
        record.undeclared_since = domain.undeclared_since;
    }
    for edge in state.edges.values() {
        if edge.controller.as_deref() != Some(controller) {
            continue;
        }
        for host in &edge.hosts {
            let record = records.hosts.entry(host.clone()).or_default();
            record.demands = edge.demands();
            for route in edge.routes.values() {
                if let Some(kept) = &route.record {
                    let recorded = RecordedRoute {
                        owner: kept.owner.clone(),
                        rests_on: kept.rests_on.clone(),
                        is_open: route.open_backend().is_some(),
                    };
                    record.routes.insert(route.place.clone(), recorded);
                }
            }
        }
    }
    records
}
