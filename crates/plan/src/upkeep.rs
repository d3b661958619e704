//! What edges rest on: reservations, policies, backends and their endpoints, certificates. They
//! are made before anything refers to them, never changed while something does (R17), and go
//! when nothing refers to them any more.

use std::collections::{BTreeMap, BTreeSet};

use edge_state::{
    command::{Command, Texts},
    state::{Edge, Route},
};
use model::{
    address::canonical_socket,
    backend::DeclaredBackend,
    declaration::DeclaredCertificate,
    host::HostPattern,
    id::{BackendId, CertificateId, DomainId, IpPolicyId},
};

use crate::{
    content::PolicyPut,
    draft::{About, Draft, Placed},
    inputs::RouteKey,
    report::Note,
    target::{Goal, HostTarget},
    world::World,
};

/// The steps that made what the edges refer to.
#[derive(Default)]
pub(crate) struct Made {
    policies: BTreeMap<IpPolicyId, Placed>,
    backends: BTreeMap<BackendId, Placed>,
    certificates: BTreeMap<CertificateId, Placed>,
    domains: BTreeMap<HostPattern, Placed>,
}

/// The id of a certificate: its content.
pub(crate) fn certificate_id(
    world: &World<'_>,
    certificate: &DeclaredCertificate,
) -> CertificateId {
    let DeclaredCertificate { chain_pem, key_pem } = certificate;
    CertificateId::derived(&[world.inputs.controller, chain_pem, key_pem.expose()])
}

/// New endpoint addresses of backends that stand, in one step: data, no change of any route.
pub(crate) fn set_endpoints(world: &World<'_>, draft: &mut Draft<'_>) {
    let endpoints: BTreeMap<BackendId, _> = world
        .inputs
        .declared
        .backends
        .iter()
        .filter_map(|(id, declared)| {
            let standing = world.inputs.actual.backends.get(id)?;
            let wanted: BTreeSet<_> = declared
                .endpoints
                .iter()
                .copied()
                .map(canonical_socket)
                .collect();
            let ours = world.is_own(standing.controller.as_deref());
            (ours && standing.endpoints != wanted).then(|| (id.clone(), wanted))
        })
        .collect();
    if !endpoints.is_empty() && !world.inputs.only_close {
        draft.push(Command::SetEndpoints { endpoints }, &[], About::default());
    }
}

/// Reserves a declared host, or renews who owns it (R20).
fn put_domain(world: &World<'_>, draft: &mut Draft<'_>, target: &HostTarget<'_>) -> Placed {
    let Some(declared) = target.declared else {
        return Placed::Needless;
    };
    let id = match world.domain(target.host) {
        None => DomainId::derived(&[world.inputs.controller, target.host.as_str()]),
        Some((_, domain)) if !world.is_own(domain.controller.as_deref()) => {
            return Placed::Needless;
        }
        Some((id, domain)) => {
            let recorded = domain.namespace.as_deref() == Some(declared.namespace.as_str())
                && domain.heir == declared.heir;
            if recorded && domain.undeclared_since.is_none() {
                return Placed::Needless;
            }
            id.clone()
        }
    };
    let command = Command::PutDomain {
        id,
        controller: Some(world.inputs.controller.to_owned()),
        host: target.host.clone(),
        namespace: Some(declared.namespace.clone()),
        heir: declared.heir.clone(),
        declared: true,
        texts: Texts::default(),
    };
    let concerns = target
        .routes
        .iter()
        .map(|route| route.key.clone())
        .collect();
    draft.push(
        command,
        &[],
        About {
            concerns,
            ..About::default()
        },
    )
}

impl Made {
    /// Makes what a host's edge needs in order to stand: its reservation and its certificate.
    pub(crate) fn for_host(
        &mut self,
        world: &World<'_>,
        draft: &mut Draft<'_>,
        target: &HostTarget<'_>,
    ) -> Vec<Placed> {
        let domain = self.reserve(world, draft, target);
        let certificate = self.certificate(world, draft, target);
        vec![domain, certificate]
    }

    /// Makes the reservation of a host say what is declared (R20).
    pub(crate) fn reserve(
        &mut self,
        world: &World<'_>,
        draft: &mut Draft<'_>,
        target: &HostTarget<'_>,
    ) -> Placed {
        let placed = put_domain(world, draft, target);
        self.domains.insert(target.host.clone(), placed);
        placed
    }

    fn certificate(
        &mut self,
        world: &World<'_>,
        draft: &mut Draft<'_>,
        target: &HostTarget<'_>,
    ) -> Placed {
        let Some(id) = &target.certificate else {
            return Placed::Needless;
        };
        if world.inputs.actual.certificates.contains_key(id) {
            return Placed::Needless;
        }
        if let Some(placed) = self.certificates.get(id) {
            return *placed;
        }
        let declared = target.declared.and_then(|host| host.certificate.as_ref());
        let Some(DeclaredCertificate { chain_pem, key_pem }) = declared else {
            return Placed::Needless;
        };
        let command = Command::PutCertificate {
            id: id.clone(),
            controller: Some(world.inputs.controller.to_owned()),
            chain_pem: chain_pem.clone(),
            key_pem: key_pem.clone(),
            texts: Texts::default(),
        };
        let placed = draft.push(command, &[], About::default());
        self.certificates.insert(id.clone(), placed);
        placed
    }

    /// Makes what a route's goal refers to.
    pub(crate) fn for_route(
        &mut self,
        world: &World<'_>,
        draft: &mut Draft<'_>,
        key: &RouteKey,
        goal: &Goal,
        about: &About,
    ) -> Vec<Placed> {
        let mut placed = Vec::new();
        match goal {
            Goal::Open(content) => {
                let restriction = content.modules.ip_restriction.as_ref();
                for policy in restriction.into_iter().flat_map(|module| &module.policies) {
                    if let Some(put) = declared_policy(world, &policy.id) {
                        placed.push(self.policy(world, draft, put, about));
                    }
                }
                placed.push(self.backend(world, draft, &content.backend, about));
            }
            Goal::Keep(_, Some(put)) => {
                placed.push(self.policy(world, draft, put.clone(), &About::route(key)));
            }
            Goal::Keep(_, None) | Goal::Closed | Goal::Leave | Goal::Absent => {}
        }
        placed
    }

    fn policy(
        &mut self,
        world: &World<'_>,
        draft: &mut Draft<'_>,
        put: PolicyPut,
        about: &About,
    ) -> Placed {
        let PolicyPut {
            id,
            name,
            description,
            rules,
        } = put;
        if let Some(placed) = self.policies.get(&id) {
            extend(draft, *placed, about);
            return *placed;
        }
        let stands = world.inputs.actual.ip_policies.get(&id);
        if stands.is_some_and(|policy| {
            policy.meta.description == description && policy.meta.metadata == name
        }) {
            return Placed::Needless;
        }
        let command = Command::PutIpPolicy {
            id: id.clone(),
            controller: world.inputs.controller.to_owned(),
            description,
            metadata: name,
            rules,
        };
        let placed = draft.push(command, &[], about.clone());
        self.policies.insert(id, placed);
        placed
    }

    fn backend(
        &mut self,
        world: &World<'_>,
        draft: &mut Draft<'_>,
        id: &BackendId,
        about: &About,
    ) -> Placed {
        if let Some(placed) = self.backends.get(id) {
            extend(draft, *placed, about);
            return *placed;
        }
        if world.inputs.actual.backends.contains_key(id) {
            return Placed::Needless;
        }
        let Some(declared) = world.inputs.declared.backends.get(id) else {
            return Placed::Refused;
        };
        let DeclaredBackend {
            service,
            external: _,
            endpoints,
        } = declared;
        let command = Command::PutBackend {
            id: id.clone(),
            controller: Some(world.inputs.controller.to_owned()),
            kind: declared.kind(),
            service: Some(service.clone()),
            endpoints: endpoints.iter().copied().map(canonical_socket).collect(),
            texts: Texts::default(),
        };
        let placed = draft.push(command, &[], about.clone());
        self.backends.insert(id.clone(), placed);
        placed
    }
}

/// A step that another route needs too is about that route as well.
fn extend(draft: &mut Draft<'_>, placed: Placed, about: &About) {
    let Placed::At(place) = placed else { return };
    if let Some(step) = draft.steps.get_mut(place) {
        step.concerns.extend(about.concerns.iter().cloned());
        step.opens.extend(
            about
                .opens
                .iter()
                .map(|(key, digest)| (key.clone(), *digest)),
        );
    }
}

fn declared_policy(world: &World<'_>, id: &IpPolicyId) -> Option<PolicyPut> {
    let name = world.policies.get(id)?;
    let policy = world.inputs.declared.policies.get(*name)?;
    Some(PolicyPut {
        id: id.clone(),
        name: name.to_string(),
        description: policy.description.clone(),
        rules: policy.rules.clone(),
    })
}

/// Everything that something at the edge, or some goal, refers to.
#[derive(Default)]
struct Used {
    policies: BTreeSet<IpPolicyId>,
    backends: BTreeSet<BackendId>,
    certificates: BTreeSet<CertificateId>,
}

impl Used {
    fn edge(&mut self, edge: &Edge) {
        self.certificates.extend(edge.certificate.clone());
        edge.routes.values().for_each(|route| self.route(route));
    }

    fn route(&mut self, route: &Route) {
        let restriction = route.modules.ip_restriction.as_ref();
        let policies = restriction.into_iter().flat_map(|module| &module.policies);
        self.policies.extend(
            policies
                .chain(&route.also_refuse)
                .map(|policy| policy.id.clone()),
        );
        self.backends
            .extend(route.backend.iter().map(|backend| backend.id.clone()));
    }

    fn target(&mut self, target: &HostTarget<'_>) {
        self.certificates.extend(target.certificate.clone());
        for route in &target.routes {
            match &route.goal {
                Goal::Open(content) => {
                    let restriction = content.modules.ip_restriction.as_ref();
                    let policies = restriction.into_iter().flat_map(|module| &module.policies);
                    self.policies
                        .extend(policies.map(|policy| policy.id.clone()));
                    self.backends.insert(content.backend.clone());
                }
                Goal::Keep(refuse, _) => {
                    self.policies
                        .extend(refuse.iter().map(|policy| policy.id.clone()));
                }
                Goal::Closed | Goal::Leave | Goal::Absent => {}
            }
        }
    }
}

/// Deletes what is ours and nothing refers to, neither now nor when the plan is done. What the
/// plan itself lets go of is deleted by the next one.
pub(crate) fn collect<'t>(
    world: &World<'_>,
    draft: &mut Draft<'_>,
    targets: impl Iterator<Item = &'t HostTarget<'t>>,
) {
    if world.inputs.only_close {
        return;
    }
    let actual = world.inputs.actual;
    let mut used = Used::default();
    actual.edges.values().for_each(|edge| used.edge(edge));
    targets.for_each(|target| used.target(target));
    for (id, policy) in &actual.ip_policies {
        if world.is_own(policy.controller.as_deref()) && !used.policies.contains(id) {
            draft.push(
                Command::DeleteIpPolicy { id: id.clone() },
                &[],
                About::default(),
            );
        }
    }
    for (id, backend) in &actual.backends {
        if world.is_own(backend.controller.as_deref()) && !used.backends.contains(id) {
            draft.push(
                Command::DeleteBackend { id: id.clone() },
                &[],
                About::default(),
            );
        }
    }
    for (id, certificate) in &actual.certificates {
        if world.is_own(certificate.controller.as_deref()) && !used.certificates.contains(id) {
            draft.push(
                Command::DeleteCertificate { id: id.clone() },
                &[],
                About::default(),
            );
        }
    }
}

/// Notes on reservations that nothing declares any more, and releases them when they are old
/// enough (R20). Returns when the next one will be.
pub(crate) fn release_domains(
    world: &World<'_>,
    draft: &mut Draft<'_>,
    targets: &BTreeMap<&HostPattern, HostTarget<'_>>,
) -> Option<model::time::Timestamp> {
    let inputs = &world.inputs;
    let mut next = None;
    if inputs.only_close || inputs.declared.nothing_is_removed {
        return next;
    }
    for (id, domain) in &inputs.actual.domains {
        let Some(namespace) = &domain.namespace else {
            continue;
        };
        let ours = world.is_own(domain.controller.as_deref());
        if !ours || inputs.declared.hosts.contains_key(&domain.host) {
            continue;
        }
        let unread = world.is_shadowed(namespace)
            || inputs
                .declared
                .pending_owners
                .iter()
                .any(|owner| owner.namespace == *namespace)
            || targets.get(&domain.host).is_some_and(|target| {
                target
                    .routes
                    .iter()
                    .any(|route| route.notes.contains(&Note::RemovalPending))
            });
        if unread {
            continue;
        }
        let Some(since) = domain.undeclared_since else {
            // What the owner said last takes effect now: the host is its heir's, who has as long
            // as an owner has to declare it.
            let owner = domain.heir.as_ref().unwrap_or(namespace);
            let command = Command::PutDomain {
                id: id.clone(),
                controller: domain.controller.clone(),
                host: domain.host.clone(),
                namespace: Some(owner.clone()),
                heir: None,
                declared: false,
                texts: Texts::default(),
            };
            draft.push(command, &[], About::default());
            continue;
        };
        let until = since.after(inputs.options.host_release);
        let stands = world.is_answered(&domain.host);
        if until > inputs.now {
            next = Some(next.map_or(until, |next: model::time::Timestamp| next.min(until)));
        } else if !stands {
            draft.push(
                Command::DeleteDomain { id: id.clone() },
                &[],
                About::default(),
            );
        }
    }
    next
}
