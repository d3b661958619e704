//! Commands in, a new state out. The one place where an edge's state changes.
//!
//! Guarantees: a command is applied whole or refused whole; the result depends on the arguments
//! alone; a command that would change nothing changes nothing, not even a counter (R9).
//! Every handler reads only, and returns the new pieces; [`Machine::apply`] puts them in.

mod checks;
mod closing;
mod edges;
mod objects;
mod policies;
mod record;
mod routes;

use std::{collections::BTreeSet, sync::Arc};

use model::{
    host::HostPattern,
    id::{BackendId, CertificateId, DomainId, EdgeId, IpPolicyId, KeyId, RouteId},
    secret::Digest,
    time::Timestamp,
};

pub use crate::refusal::{At, RefusalCode, RefusedCommand};
use crate::{
    command::{Command, Context, Expected},
    index::{Index, policies_of},
    state::{ApiKey, Backend, Certificate, Domain, Edge, EdgeState, IpPolicy, Role},
};

/// The result of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Applied {
    /// The state now.
    pub state: EdgeState,
    /// Whether it is another than before.
    pub changed: bool,
}

/// Applies one command to a state that is left as it is. For many commands in a row, or a large
/// state, keep a [`Machine`].
///
/// # Errors
/// The reason why the command is refused.
pub fn apply(
    state: &EdgeState,
    command: &Command,
    context: &Context<'_>,
) -> Result<Applied, RefusedCommand> {
    let mut machine = Machine::new(state.clone());
    let changed = machine.apply(command, context)?;
    Ok(Applied {
        state: machine.into_state(),
        changed,
    })
}

/// A state and the index that makes commands on it cheap.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Machine {
    state: EdgeState,
    index: Index,
}

/// One new piece of state; `None` deletes.
enum Change {
    Term(u64),
    Edge(EdgeId, Option<Edge>),
    Backend(BackendId, Option<Backend>),
    Policy(IpPolicyId, Option<IpPolicy>),
    Certificate(CertificateId, Option<Certificate>),
    Domain(DomainId, Option<Domain>),
    Key(KeyId, Option<ApiKey>),
}

type Changes = Result<Vec<Change>, RefusedCommand>;

/// One command being judged.
struct Attempt<'a> {
    state: &'a EdgeState,
    index: &'a Index,
    context: &'a Context<'a>,
}

impl Machine {
    /// Begins with this state, which is taken to be consistent ([`crate::verify::verify`]).
    #[must_use]
    pub fn new(state: EdgeState) -> Self {
        let index = Index::of(&state);
        Self { state, index }
    }

    /// The state now.
    #[must_use]
    pub const fn state(&self) -> &EdgeState {
        &self.state
    }

    /// The state now.
    #[must_use]
    pub fn into_state(self) -> EdgeState {
        self.state
    }

    /// When the next open route is to be closed by the edge itself.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Timestamp> {
        self.index.deadlines.first().map(|(at, _)| *at)
    }

    /// The edge that has this host pattern.
    #[must_use]
    pub fn edge_of_host(&self, host: &HostPattern) -> Option<&EdgeId> {
        self.index.hosts.get(host)
    }

    /// The edge that has this route.
    #[must_use]
    pub fn edge_of_route(&self, route: &RouteId) -> Option<&EdgeId> {
        self.index.routes.get(route)
    }

    /// The API key with this token digest. The digest of a guessed token tells nothing about the
    /// next guess, so an ordinary search is as good as one in constant time.
    #[must_use]
    pub fn find_key(&self, token_digest: &Digest) -> Option<(&KeyId, Role)> {
        let id = self.index.tokens.get(token_digest)?;
        self.state.keys.get(id).map(|key| (id, key.role))
    }

    /// Applies one command; true if the state is another now.
    ///
    /// # Errors
    /// The reason why the command is refused; then nothing has changed.
    pub fn apply(
        &mut self,
        command: &Command,
        context: &Context<'_>,
    ) -> Result<bool, RefusedCommand> {
        let attempt = Attempt {
            state: &self.state,
            index: &self.index,
            context,
        };
        let mut changes = attempt.fence()?;
        changes.extend(attempt.judge(command)?);
        let revision = self.state.revision + 1;
        let mut loosened = BTreeSet::new();
        let mut changed = false;
        for change in changes {
            changed |= self.put(change, revision, &mut loosened);
        }
        if changed {
            self.collect(&loosened);
            self.state.revision = revision;
        }
        Ok(changed)
    }

    /// Puts one piece in, unless it is there already.
    fn put(&mut self, change: Change, revision: u64, loosened: &mut BTreeSet<IpPolicyId>) -> bool {
        let Self { state, index } = self;
        match change {
            Change::Term(term) => {
                let changed = state.term != term;
                state.term = term;
                changed
            }
            Change::Edge(id, new) => {
                let old = state.edges.get(&id).cloned();
                if old.as_deref() == new.as_ref() {
                    return false;
                }
                if let Some(old) = &old {
                    index.remove_edge(&id, old);
                    loosened.extend(
                        old.routes
                            .values()
                            .flat_map(policies_of)
                            .map(|p| p.id.clone()),
                    );
                }
                match new {
                    Some(mut edge) => {
                        number(old.as_deref(), &mut edge, revision);
                        index.add_edge(&id, &edge);
                        state.edges.insert(id, Arc::new(edge));
                    }
                    None => {
                        state.edges.remove(&id);
                    }
                }
                true
            }
            Change::Policy(id, new) => {
                let old = state.ip_policies.get(&id).cloned();
                if old.as_deref() == new.as_ref() {
                    return false;
                }
                if let Some(old) = &old {
                    index.remove_policy(old);
                }
                if let Some(policy) = &new {
                    index.add_policy(&id, policy);
                }
                loosened.insert(id.clone());
                replace(&mut state.ip_policies, id, new)
            }
            Change::Backend(id, new) => replace(&mut state.backends, id, new),
            Change::Certificate(id, new) => replace(&mut state.certificates, id, new),
            Change::Domain(id, new) => {
                if let Some(old) = state.domains.get(&id) {
                    index.remove_domain(old);
                }
                if let Some(domain) = &new {
                    index.add_domain(&id, domain);
                }
                replace(&mut state.domains, id, new)
            }
            Change::Key(id, new) => {
                if let Some(old) = state.keys.get(&id) {
                    index.remove_key(old);
                }
                if let Some(key) = &new {
                    index.add_key(&id, key);
                }
                replace(&mut state.keys, id, new)
            }
        }
    }

    /// Drops the versions of these policies that nothing refers to any more (R17).
    fn collect(&mut self, policies: &BTreeSet<IpPolicyId>) {
        for id in policies {
            let Some(policy) = self.state.ip_policies.get(id) else {
                continue;
            };
            if policy.versions.len() < 2 {
                continue;
            }
            let mut needed = BTreeSet::from([policy.newest]);
            for edge in self.index.policy_users.get(id).into_iter().flatten() {
                let routes = self
                    .state
                    .edges
                    .get(edge)
                    .into_iter()
                    .flat_map(|e| e.routes.values());
                needed.extend(
                    routes
                        .flat_map(policies_of)
                        .filter(|p| p.id == *id)
                        .map(|p| p.version),
                );
            }
            if policy
                .versions
                .keys()
                .any(|version| !needed.contains(version))
            {
                let mut kept = IpPolicy::clone(policy);
                kept.versions.retain(|version, _| needed.contains(version));
                self.state.ip_policies.insert(id.clone(), Arc::new(kept));
            }
        }
    }
}

/// Numbers what is new about an edge. A generation is the revision of the last change, so that
/// it never returns, not even when an edge is deleted and made again: a late writer stays fenced.
fn number(old: Option<&Edge>, edge: &mut Edge, revision: u64) {
    edge.generation = revision;
    for (id, route) in &mut edge.routes {
        let before = old.and_then(|old| old.routes.get(id));
        let same = before.is_some_and(|before| {
            before.place == route.place
                && before.modules == route.modules
                && before.backend == route.backend
                && before.also_refuse == route.also_refuse
                && before.generation == route.generation
        });
        if !same {
            route.generation = revision;
        }
    }
}

/// Puts a value into a map, or takes it out; false if it was so already.
fn replace<K: Ord, V: PartialEq>(
    map: &mut std::collections::BTreeMap<K, Arc<V>>,
    key: K,
    new: Option<V>,
) -> bool {
    if map.get(&key).map(Arc::as_ref) == new.as_ref() {
        return false;
    }
    match new {
        Some(value) => map.insert(key, Arc::new(value)),
        None => map.remove(&key),
    };
    true
}

impl Attempt<'_> {
    /// Who may write at all (R19, R20). A write of a higher term raises it, so that a writer that
    /// was restored from elsewhere is never let in beside an older one.
    fn fence(&self) -> Changes {
        if self.context.role == Role::Read {
            return Err(RefusedCommand::new(
                RefusalCode::ReadOnlyKey,
                "this API key reads and changes nothing",
            ));
        }
        match self.context.term {
            Some(term) if term < self.state.term => Err(superseded(term, self.state.term)),
            Some(term) if term > self.state.term => {
                self.controller_key("to raise the term")?;
                Ok(vec![Change::Term(term)])
            }
            Some(_) | None => Ok(Vec::new()),
        }
    }

    fn judge(&self, command: &Command) -> Changes {
        match command {
            Command::RaiseTerm { term } => self.raise_term(*term),
            Command::CloseOverdue => self.close_overdue(),
            Command::CloseRoutes { routes } => self.close_routes(routes),
            Command::ReplaceEdge(spec) => self.replace_edge(spec),
            Command::ReplaceRoute {
                edge,
                expected,
                route,
            } => self.replace_route(edge, *expected, route),
            Command::CreateEdge {
                id,
                controller,
                patch,
            } => self.create_edge(id, controller.as_deref(), patch),
            Command::UpdateEdge {
                id,
                expected,
                patch,
            } => self.update_edge(id, *expected, patch),
            Command::DeleteEdgeModule { id, expected, kind } => {
                self.delete_edge_module(id, *expected, *kind)
            }
            Command::DeleteEdge { id, expected } => self.delete_edge(id, *expected),
            Command::CreateRoute {
                edge,
                expected,
                id,
                place,
                patch,
            } => self.create_route(edge, *expected, id, place, patch),
            Command::UpdateRoute {
                edge,
                expected,
                id,
                patch,
            } => self.update_route(edge, *expected, id, patch),
            Command::DeleteRouteModule {
                edge,
                expected,
                id,
                kind,
            } => self.delete_route_module(edge, *expected, id, *kind),
            Command::DeleteRouteBackend { edge, expected, id } => {
                self.delete_route_backend(edge, *expected, id)
            }
            Command::SetRecord {
                edge,
                expected,
                id,
                record,
            } => self.set_record(edge, *expected, id, record),
            Command::DeleteRoute { edge, expected, id } => self.delete_route(edge, *expected, id),
            Command::PutIpPolicy {
                id,
                controller,
                description,
                metadata,
                rules,
            } => self.put_ip_policy(id, controller, description, metadata, rules),
            Command::CreateIpPolicy { id, texts } => self.create_ip_policy(id, texts),
            Command::UpdateIpPolicy { id, texts } => self.update_ip_policy(id, texts),
            Command::DeleteIpPolicy { id } => self.delete_ip_policy(id),
            Command::CreateIpRule {
                policy,
                id,
                cidr,
                action,
                texts,
            } => self.create_ip_rule(policy, id, *cidr, *action, texts),
            Command::UpdateIpRule { id, cidr, texts } => self.update_ip_rule(id, *cidr, texts),
            Command::DeleteIpRule { id } => self.delete_ip_rule(id),
            Command::PutBackend {
                id,
                controller,
                kind,
                service,
                endpoints,
                texts,
            } => self.put_backend(
                id,
                controller.as_deref(),
                kind,
                service.as_ref(),
                endpoints,
                texts,
            ),
            Command::UpdateBackend { id, kind, texts } => {
                self.update_backend(id, kind.as_ref(), texts)
            }
            Command::SetEndpoints { endpoints } => self.set_endpoints(endpoints),
            Command::DeleteBackend { id } => self.delete_backend(id),
            Command::PutCertificate {
                id,
                controller,
                chain_pem,
                key_pem,
                texts,
            } => self.put_certificate(id, controller.as_deref(), chain_pem, key_pem, texts),
            Command::UpdateCertificate { id, texts } => self.update_certificate(id, texts),
            Command::DeleteCertificate { id } => self.delete_certificate(id),
            Command::PutDomain {
                id,
                controller,
                host,
                namespace,
                heir,
                declared,
                texts,
            } => {
                let owner = (namespace.as_deref(), heir.as_deref());
                self.put_domain(id, controller.as_deref(), host, owner, *declared, texts)
            }
            Command::DeleteDomain { id } => self.delete_domain(id),
            Command::CreateKey {
                id,
                role,
                token_digest,
                texts,
            } => self.create_key(id, *role, *token_digest, texts),
            Command::UpdateKey { id, texts } => self.update_key(id, texts),
            Command::DeleteKey { id } => self.delete_key(id),
        }
    }

    fn raise_term(&self, term: u64) -> Changes {
        self.controller_key("to raise the term")?;
        if term < self.state.term {
            return Err(superseded(term, self.state.term));
        }
        Ok(vec![Change::Term(term)])
    }

    fn controller_key(&self, what_for: &str) -> Result<(), RefusedCommand> {
        match self.context.role {
            Role::Controller => Ok(()),
            Role::Read | Role::Write => Err(RefusedCommand::new(
                RefusalCode::ControllerKeyRequired,
                format!("a key of role controller is needed {what_for}"),
            )),
        }
    }

    /// Whether the writer may change what `owner` owns.
    fn may_change(&self, owner: Option<&str>) -> Result<(), RefusedCommand> {
        match (owner, self.context.role) {
            (None, _) | (Some(_), Role::Controller) => Ok(()),
            (Some(owner), Role::Read | Role::Write) => Err(RefusedCommand::new(
                RefusalCode::OwnedByController,
                format!(
                    "it belongs to the controller {owner} and can be changed with its key only"
                ),
            )),
        }
    }

    /// Whether the writer may put something of `new`'s where something of `old`'s stands.
    fn may_own(&self, old: Option<Option<&str>>, new: Option<&str>) -> Result<(), RefusedCommand> {
        if new.is_some() {
            self.controller_key("to write as a controller")?;
        }
        match old {
            Some(old) if old != new => {
                self.may_change(old)?;
                Err(RefusedCommand::new(
                    RefusalCode::OwnedByAnother,
                    format!("it belongs to {}", old.unwrap_or("a user of the API")),
                ))
            }
            Some(_) | None => Ok(()),
        }
    }

    fn edge(&self, id: &EdgeId) -> Result<&Edge, RefusedCommand> {
        self.state.edges.get(id).map(Arc::as_ref).ok_or_else(|| {
            RefusedCommand::new(RefusalCode::EdgeNotFound, format!("there is no edge {id}"))
        })
    }

    /// The edge, if the writer may change it and knows its present state.
    fn edge_to_change(&self, id: &EdgeId, expected: Expected) -> Result<&Edge, RefusedCommand> {
        let edge = self.edge(id)?;
        self.may_change(edge.controller.as_deref())?;
        as_expected(Some(edge), expected)?;
        Ok(edge)
    }
}

/// Whether what is there is what the writer has seen.
fn as_expected(edge: Option<&Edge>, expected: Expected) -> Result<(), RefusedCommand> {
    let message = match (edge, expected) {
        (_, Expected::Any) | (None, Expected::Absent) => return Ok(()),
        (Some(edge), Expected::Generation(generation)) if edge.generation == generation => {
            return Ok(());
        }
        (Some(edge), Expected::Generation(generation)) => {
            format!(
                "the edge is at generation {}, not {generation}",
                edge.generation
            )
        }
        (Some(edge), Expected::Absent) => {
            format!(
                "the edge is there already, at generation {}",
                edge.generation
            )
        }
        (None, Expected::Generation(generation)) => {
            format!("the edge is gone, generation {generation} was expected")
        }
    };
    Err(RefusedCommand::new(
        RefusalCode::GenerationMismatch,
        message,
    ))
}

fn superseded(term: u64, present: u64) -> RefusedCommand {
    RefusedCommand::new(
        RefusalCode::Superseded,
        format!("the writer's term is {term}, and a writer of term {present} has taken over"),
    )
}
