//! Plans and their steps, as values with a stable text.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use edge_state::command::{Command, EdgePatch, Expected};
use model::{
    host::HostPattern,
    module::{ModuleKind, Modules},
    secret::Digest,
    time::Timestamp,
};

use crate::{inputs::RouteKey, report::Report};

/// What to do, and how things stand.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// The steps, in the order in which they must be taken.
    pub steps: Vec<Step>,
    /// How every route stands at this moment, and why.
    pub report: Report,
    /// When an age will next change something, if nothing else does before.
    pub wake_at: Option<Timestamp>,
}

impl Plan {
    /// Whether the edge is as declared, as far as it can be: nothing is to be written (R9).
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }
}

/// One call to the edge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The call.
    pub command: Command,
    /// Earlier steps that must have been applied and acknowledged. If one was not, this one is
    /// left out, and the edge is read and planned for again (R6).
    pub requires: Vec<usize>,
    /// The routes that it is about.
    pub concerns: BTreeSet<RouteKey>,
    /// The routes that it opens, changes while open, or prepares for that, with the digest of
    /// what they are declared to be. A refusal of the edge is a refusal of these.
    pub opens: BTreeMap<RouteKey, Option<Digest>>,
}

impl Step {
    /// The declaration of a route that this step would have stand closed.
    pub(crate) fn staged_digest(&self, key: &RouteKey) -> Option<Option<Digest>> {
        let Command::ReplaceEdge(spec) = &self.command else {
            return None;
        };
        let route = spec.routes.iter().find(|route| route.place == key.1)?;
        let record = route.record.as_ref()?;
        Some(record.wanted.as_ref().and_then(|wanted| wanted.digest))
    }

    /// Everything that the command says, but the generation that it expects: that changes by
    /// itself.
    pub(crate) fn content_text(&self) -> String {
        let mut command = self.command.clone();
        if let Command::ReplaceEdge(spec) = &mut command {
            spec.expected = Expected::Any;
        } else if let Command::DeleteEdge { id: _, expected } = &mut command {
            *expected = Expected::Any;
        }
        format!("{command:?}")
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.command {
            Command::ReplaceEdge(spec) => {
                write!(
                    f,
                    "replace edge {} {}",
                    names(&spec.hosts),
                    expected(spec.expected)
                )?;
                spec.routes.iter().try_for_each(|route| {
                    let backend = route.backend.as_ref().map_or("closed", |b| b.id.as_str());
                    let kinds = kinds(&route.modules);
                    let more = if route.also_refuse.is_empty() {
                        ""
                    } else {
                        ", refusing more"
                    };
                    write!(f, "; {} [{kinds}] {backend}{more}", route.place)
                })
            }
            Command::CreateEdge {
                id,
                controller: _,
                patch,
            } => {
                let hosts = patch.hosts.as_ref().map(names).unwrap_or_default();
                write!(f, "create edge {id} {hosts}")
            }
            Command::UpdateEdge {
                id,
                expected: _,
                patch,
            } => {
                let EdgePatch {
                    texts: _,
                    hosts: _,
                    tls_termination,
                    mutual_tls,
                } = patch;
                write!(
                    f,
                    "update edge {id}: tls {tls_termination:?}, mutual tls {}",
                    mutual_tls.is_some()
                )
            }
            Command::DeleteEdgeModule {
                id,
                expected: _,
                kind,
            } => {
                write!(f, "delete edge module {id} {}", kind.name())
            }
            Command::DeleteEdge { id, expected: at } => {
                write!(f, "delete edge {id} {}", expected(*at))
            }
            Command::CreateRoute {
                edge,
                expected: _,
                id,
                place,
                patch: _,
            } => {
                write!(f, "create route {id} {place} on {edge}")
            }
            Command::UpdateRoute {
                edge: _,
                expected: _,
                id,
                patch,
            } => {
                let backend = patch.backend.as_ref().map_or("as it is", |b| b.id.as_str());
                write!(
                    f,
                    "update route {id}: [{}] {backend}",
                    kinds(&patch.modules)
                )
            }
            Command::DeleteRouteModule {
                edge: _,
                expected: _,
                id,
                kind,
            } => {
                write!(f, "delete route module {id} {}", kind.name())
            }
            Command::DeleteRouteBackend {
                edge: _,
                expected: _,
                id,
            } => write!(f, "close route {id}"),
            Command::DeleteRoute {
                edge: _,
                expected: _,
                id,
            } => write!(f, "delete route {id}"),
            Command::SetRecord {
                edge: _,
                expected: _,
                id,
                record,
            } => {
                write!(f, "set record {id}: {:?}", record.phase)
            }
            Command::PutIpPolicy {
                id,
                metadata,
                rules,
                ..
            } => {
                write!(
                    f,
                    "put ip policy {metadata} as {id}, {} rules",
                    rules.0.len()
                )
            }
            Command::DeleteIpPolicy { id } => write!(f, "delete ip policy {id}"),
            Command::PutBackend { id, endpoints, .. } => {
                write!(f, "put backend {id}, {} endpoints", endpoints.len())
            }
            Command::SetEndpoints { endpoints } => {
                write!(f, "set endpoints of {} backends", endpoints.len())
            }
            Command::DeleteBackend { id } => write!(f, "delete backend {id}"),
            Command::PutCertificate { id, .. } => write!(f, "put certificate {id}"),
            Command::DeleteCertificate { id } => write!(f, "delete certificate {id}"),
            Command::PutDomain {
                host,
                namespace,
                heir,
                declared,
                ..
            } => {
                let namespace = namespace.as_deref().unwrap_or("any");
                let heir = heir.iter().map(|heir| format!(", then of {heir}"));
                let heir: String = heir.collect();
                let declared = if *declared {
                    "declared"
                } else {
                    "not declared"
                };
                write!(f, "put domain {host} of {namespace}{heir}, {declared}")
            }
            Command::DeleteDomain { id } => write!(f, "delete domain {id}"),
            // No plan holds these.
            Command::RaiseTerm { .. }
            | Command::CloseOverdue
            | Command::CloseRoutes { .. }
            | Command::ReplaceRoute { .. }
            | Command::CreateIpPolicy { .. }
            | Command::UpdateIpPolicy { .. }
            | Command::CreateIpRule { .. }
            | Command::UpdateIpRule { .. }
            | Command::DeleteIpRule { .. }
            | Command::UpdateBackend { .. }
            | Command::UpdateCertificate { .. }
            | Command::CreateKey { .. }
            | Command::UpdateKey { .. }
            | Command::DeleteKey { .. } => write!(f, "{:?}", self.command),
        }
    }
}

fn names(hosts: &BTreeSet<HostPattern>) -> String {
    hosts
        .iter()
        .map(HostPattern::as_str)
        .collect::<Vec<_>>()
        .join(" ")
}

fn expected(at: Expected) -> String {
    match at {
        Expected::Absent => String::from("(new)"),
        Expected::Generation(generation) => format!("(over {generation})"),
        Expected::Any => String::from("(as it is)"),
    }
}

fn kinds<P>(modules: &Modules<P>) -> String {
    modules
        .kinds()
        .into_iter()
        .map(ModuleKind::name)
        .collect::<Vec<_>>()
        .join(" ")
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, step) in self.steps.iter().enumerate() {
            write!(f, "{number}: {step}")?;
            if !step.requires.is_empty() {
                write!(f, " (after {:?})", step.requires)?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}
