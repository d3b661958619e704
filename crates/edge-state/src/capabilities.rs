//! What an edge says of itself: the capabilities document.

use std::collections::BTreeSet;

use model::module::ModuleKind;
use serde::{Deserialize, Serialize};

use crate::command::{Command, EdgePatch, RoutePatch};

/// What an edge can change in one atomic step (R4). Our own edge offers [`Atomicity::Replace`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Atomicity {
    /// Single-module calls only.
    None,
    /// One call sets several modules and the backend, but deletes no module.
    Patch,
    /// One call replaces a route, or a whole edge.
    Replace,
}

/// What the controller must know of an edge before it plans.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capabilities {
    /// The edge's version.
    pub version: String,
    /// What it can do in one step.
    pub atomicity: Atomicity,
    /// The modules that it enforces. Whatever is not here is refused, never stored.
    pub enforceable: BTreeSet<ModuleKind>,
}

/// Whether an edge of this level of atomicity has this command. Levels below *replace* are modes
/// of the same machine, so that plans for other edges are checked on the definition of ours.
#[must_use]
pub fn permits(atomicity: Atomicity, command: &Command) -> bool {
    match atomicity {
        Atomicity::Replace => true,
        Atomicity::Patch => !replaces(command),
        Atomicity::None => !replaces(command) && parts(command) <= 1,
    }
}

fn replaces(command: &Command) -> bool {
    matches!(
        command,
        Command::ReplaceEdge(_) | Command::ReplaceRoute { .. }
    )
}

/// How many parts of an edge or route a PATCH or a creation sets in one step. A thing that is
/// made may be named (host, match) in the call that makes it, and gets its modules afterwards.
fn parts(command: &Command) -> usize {
    let edge_parts = |patch: &EdgePatch| {
        let EdgePatch {
            texts: _,
            hosts: _,
            tls_termination,
            mutual_tls,
        } = patch;
        usize::from(tls_termination.is_some()) + usize::from(mutual_tls.is_some())
    };
    let route_parts = |patch: &RoutePatch| {
        let RoutePatch {
            texts: _,
            place: _,
            modules,
            backend,
        } = patch;
        modules.kinds().len() + usize::from(backend.is_some())
    };
    let never = 2;
    match command {
        Command::CreateEdge {
            id: _,
            controller: _,
            patch,
        } => match edge_parts(patch) {
            0 => 0,
            _ => never,
        },
        Command::CreateRoute {
            edge: _,
            expected: _,
            id: _,
            place: _,
            patch,
        } => match route_parts(patch) {
            0 => 0,
            _ => never,
        },
        Command::UpdateEdge {
            id: _,
            expected: _,
            patch,
        } => edge_parts(patch) + usize::from(patch.hosts.is_some()),
        Command::UpdateRoute {
            edge: _,
            expected: _,
            id: _,
            patch,
        } => route_parts(patch) + usize::from(patch.place.is_some()),
        Command::RaiseTerm { .. }
        | Command::CloseOverdue
        | Command::CloseRoutes { .. }
        | Command::ReplaceEdge(_)
        | Command::ReplaceRoute { .. }
        | Command::DeleteEdgeModule { .. }
        | Command::DeleteEdge { .. }
        | Command::DeleteRouteModule { .. }
        | Command::DeleteRouteBackend { .. }
        | Command::SetRecord { .. }
        | Command::DeleteRoute { .. }
        | Command::PutIpPolicy { .. }
        | Command::CreateIpPolicy { .. }
        | Command::UpdateIpPolicy { .. }
        | Command::DeleteIpPolicy { .. }
        | Command::CreateIpRule { .. }
        | Command::UpdateIpRule { .. }
        | Command::DeleteIpRule { .. }
        | Command::PutBackend { .. }
        | Command::UpdateBackend { .. }
        | Command::SetEndpoints { .. }
        | Command::DeleteBackend { .. }
        | Command::PutCertificate { .. }
        | Command::UpdateCertificate { .. }
        | Command::DeleteCertificate { .. }
        | Command::PutDomain { .. }
        | Command::DeleteDomain { .. }
        | Command::CreateKey { .. }
        | Command::UpdateKey { .. }
        | Command::DeleteKey { .. } => 0,
    }
}
