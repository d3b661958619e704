//! Requests that stand for all requests of a host.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use edge_state::{command::Command, state::Edge};
use model::{host::HostPattern, id::EdgeId, place::Match};

use crate::{inputs::Inputs, step::Plan};

/// The paths to ask for: whatever two routes could tell apart, one of these tells apart.
pub(super) struct Requests {
    pub(super) paths: Vec<String>,
}

impl Requests {
    /// Around every path that a route has on one of these hosts, by what is there, what is
    /// declared and what the steps make.
    pub(super) fn on(
        inputs: &Inputs<'_>,
        plan: &Plan,
        hosts: &[&HostPattern],
        steps: &BTreeSet<usize>,
        edges: &BTreeMap<&HostPattern, (&EdgeId, &Arc<Edge>)>,
    ) -> Self {
        let mut paths = BTreeSet::from([String::from("/"), String::from("/no-route-names-this")]);
        for host in hosts {
            if let Some((_, edge)) = edges.get(host) {
                edge.routes
                    .values()
                    .for_each(|route| around(&route.place, &mut paths));
            }
            if let Some(declared) = inputs.declared.hosts.get(host) {
                declared
                    .routes
                    .keys()
                    .for_each(|place| around(place, &mut paths));
            }
        }
        for step in steps.iter().filter_map(|number| plan.steps.get(*number)) {
            if let Command::ReplaceEdge(spec) = &step.command {
                spec.routes
                    .iter()
                    .for_each(|route| around(&route.place, &mut paths));
            } else if let Command::CreateRoute { place, .. } = &step.command {
                around(place, &mut paths);
            }
        }
        Self {
            paths: paths.into_iter().collect(),
        }
    }
}

/// The path itself, one below it, and its neighbours that only a comparison by bytes takes.
fn around(place: &Match, paths: &mut BTreeSet<String>) {
    let bare = place.path.trim_end_matches('/');
    paths.insert(place.path.clone());
    paths.insert(format!("{bare}/"));
    paths.insert(format!("{bare}/below"));
    if !bare.is_empty() {
        paths.insert(bare.to_owned());
        paths.insert(format!("{bare}beside"));
    }
}
