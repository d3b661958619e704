//! What a controller may do at all: only to what is its own, and never to a shared thing in place.

use edge_state::command::Command;
use model::id::EdgeId;

use crate::inputs::Inputs;

/// Whether a controller may do this at all.
pub(super) fn is_allowed(inputs: &Inputs<'_>, command: &Command) -> bool {
    let own = |controller: Option<&str>| controller == Some(inputs.controller);
    let state = inputs.actual;
    let own_edge = |id: &EdgeId| {
        state
            .edges
            .get(id)
            .is_none_or(|edge| own(edge.controller.as_deref()))
    };
    match command {
        Command::ReplaceEdge(spec) => own(spec.controller.as_deref()) && own_edge(&spec.id),
        Command::CreateEdge {
            id,
            controller,
            patch: _,
        } => own(controller.as_deref()) && own_edge(id),
        Command::ReplaceRoute { edge, .. }
        | Command::CreateRoute { edge, .. }
        | Command::UpdateRoute { edge, .. }
        | Command::DeleteRouteModule { edge, .. }
        | Command::DeleteRouteBackend { edge, .. }
        | Command::DeleteRoute { edge, .. }
        | Command::SetRecord { edge, .. } => own_edge(edge),
        Command::UpdateEdge { id, .. }
        | Command::DeleteEdgeModule { id, .. }
        | Command::DeleteEdge { id, .. } => own_edge(id),
        Command::PutIpPolicy { id, rules, .. } => state.ip_policies.get(id).is_none_or(|policy| {
            own(policy.controller.as_deref()) && policy.versions.get(&policy.newest) == Some(rules)
        }),
        Command::DeleteIpPolicy { id } => state
            .ip_policies
            .get(id)
            .is_none_or(|policy| own(policy.controller.as_deref())),
        Command::PutBackend {
            id,
            controller,
            kind,
            ..
        } => {
            own(controller.as_deref())
                && state.backends.get(id).is_none_or(|backend| {
                    own(backend.controller.as_deref()) && backend.kind == *kind
                })
        }
        Command::DeleteBackend { id } => state
            .backends
            .get(id)
            .is_none_or(|backend| own(backend.controller.as_deref())),
        Command::SetEndpoints { endpoints } => endpoints.keys().all(|id| {
            state
                .backends
                .get(id)
                .is_some_and(|backend| own(backend.controller.as_deref()))
        }),
        Command::PutCertificate { id, controller, .. } => {
            own(controller.as_deref()) && !state.certificates.contains_key(id)
        }
        Command::DeleteCertificate { id } => state
            .certificates
            .get(id)
            .is_none_or(|c| own(c.controller.as_deref())),
        Command::PutDomain { id, controller, .. } => {
            own(controller.as_deref())
                && state
                    .domains
                    .get(id)
                    .is_none_or(|domain| own(domain.controller.as_deref()))
        }
        Command::DeleteDomain { id } => state
            .domains
            .get(id)
            .is_none_or(|domain| own(domain.controller.as_deref()) && domain.namespace.is_some()),
        Command::RaiseTerm { .. }
        | Command::CloseOverdue
        | Command::CloseRoutes { .. }
        | Command::CreateIpPolicy { .. }
        | Command::UpdateIpPolicy { .. }
        | Command::CreateIpRule { .. }
        | Command::UpdateIpRule { .. }
        | Command::DeleteIpRule { .. }
        | Command::UpdateBackend { .. }
        | Command::UpdateCertificate { .. }
        | Command::CreateKey { .. }
        | Command::UpdateKey { .. }
        | Command::DeleteKey { .. } => false,
    }
}

/// The edge that a command changes.
pub(super) fn edge_of(command: &Command) -> Option<&EdgeId> {
    match command {
        Command::ReplaceEdge(spec) => Some(&spec.id),
        Command::ReplaceRoute { edge, .. }
        | Command::CreateRoute { edge, .. }
        | Command::UpdateRoute { edge, .. }
        | Command::DeleteRouteModule { edge, .. }
        | Command::DeleteRouteBackend { edge, .. }
        | Command::DeleteRoute { edge, .. }
        | Command::SetRecord { edge, .. } => Some(edge),
        Command::CreateEdge { id, .. }
        | Command::UpdateEdge { id, .. }
        | Command::DeleteEdgeModule { id, .. }
        | Command::DeleteEdge { id, .. } => Some(id),
        Command::RaiseTerm { .. }
        | Command::CloseOverdue
        | Command::CloseRoutes { .. }
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
        | Command::DeleteKey { .. } => None,
    }
}
