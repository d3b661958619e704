//! Steps for an edge that cannot replace a whole edge (R4, *none* and *patch*). A route whose
//! change takes more than one call is closed first, then changed, then opened; a plan holds only
//! what may be done in the state as it is, so that no step depends on one about another route.

use std::collections::BTreeSet;

use edge_state::{
    capabilities::Atomicity,
    command::{Command, EdgePatch, Expected, RoutePatch},
    state::{Edge, MutualTls, PolicyRef, Route, RouteBackend, TlsTermination},
};
use model::{
    id::{BackendId, IpPolicyId},
    module::{EdgeDemands, ModuleKind, Modules},
};

use crate::{
    content::{Content, without_secrets},
    draft::{About, Draft, Placed},
    record::same_record,
    target::{Goal, HostTarget, RouteTarget},
    upkeep::Made,
    world::World,
};

/// Brings one host's edge nearer to its target.
pub(crate) fn steps(
    world: &World<'_>,
    draft: &mut Draft<'_>,
    made: &mut Made,
    target: &HostTarget<'_>,
) -> Placed {
    let Some(edge) = target.actual else {
        return create_edge(world, draft, made, target);
    };
    for placed in made.for_host(world, draft, target) {
        if placed == Placed::Refused {
            return placed;
        }
    }
    let demands_change = edge.demands() != target.demands;
    #[cfg(test)]
    let demands_change =
        demands_change && !world.mutated(crate::mutation::Mutation::OpenBeforeDemands);
    let mut placed = Placed::Needless;
    for route in &target.routes {
        let mut chain = Chain {
            world,
            draft,
            target,
            route,
            last: Placed::Needless,
        };
        chain.run(made, demands_change);
        placed = if chain.last == Placed::Needless {
            placed
        } else {
            chain.last
        };
    }
    // Demands are part of every complete set: they change when no route is open (R13).
    let any_open = target.routes.iter().any(RouteTarget::is_open_now);
    #[cfg(test)]
    if world.mutated(crate::mutation::Mutation::OpenBeforeDemands) {
        return change_demands(world, draft, target, edge);
    }
    if demands_change && !any_open {
        placed = change_demands(world, draft, target, edge);
    }
    placed
}

fn create_edge(
    world: &World<'_>,
    draft: &mut Draft<'_>,
    made: &mut Made,
    target: &HostTarget<'_>,
) -> Placed {
    if target.declared.is_none() {
        return Placed::Needless;
    }
    let requires = made.for_host(world, draft, target);
    let patch = EdgePatch {
        hosts: Some(std::iter::once(target.host.clone()).collect()),
        ..EdgePatch::default()
    };
    let controller = Some(world.inputs.controller.to_owned());
    let concerns = target
        .routes
        .iter()
        .map(|route| route.key.clone())
        .collect();
    let command = Command::CreateEdge {
        id: target.id.clone(),
        controller,
        patch,
    };
    draft.push(
        command,
        &requires,
        About {
            concerns,
            ..About::default()
        },
    )
}

fn change_demands(
    world: &World<'_>,
    draft: &mut Draft<'_>,
    target: &HostTarget<'_>,
    edge: &Edge,
) -> Placed {
    let EdgeDemands {
        tls_minimum,
        mutual_tls,
    } = &target.demands;
    let present = edge.demands();
    let about = || About {
        concerns: target
            .routes
            .iter()
            .map(|route| route.key.clone())
            .collect(),
        ..About::default()
    };
    let mut patches = Vec::new();
    let mut deletions = Vec::new();
    if present.tls_minimum != *tls_minimum {
        match tls_minimum {
            Some(minimum) => patches.push(EdgePatch {
                tls_termination: Some(TlsTermination {
                    enabled: true,
                    minimum: Some(*minimum),
                }),
                ..EdgePatch::default()
            }),
            None => deletions.push(ModuleKind::TlsTermination),
        }
    }
    if present.mutual_tls != *mutual_tls {
        match mutual_tls {
            Some(authorities) => patches.push(EdgePatch {
                mutual_tls: Some(MutualTls {
                    enabled: true,
                    authorities: authorities.clone(),
                }),
                ..EdgePatch::default()
            }),
            None => deletions.push(ModuleKind::MutualTls),
        }
    }
    if world.inputs.capabilities.atomicity == Atomicity::Patch {
        patches = patches
            .into_iter()
            .reduce(|one, other| EdgePatch {
                mutual_tls: one.mutual_tls.or(other.mutual_tls),
                tls_termination: one.tls_termination.or(other.tls_termination),
                ..EdgePatch::default()
            })
            .into_iter()
            .collect();
    }
    let id = &target.id;
    let mut placed = Placed::Needless;
    for patch in patches {
        let command = Command::UpdateEdge {
            id: id.clone(),
            expected: Expected::Any,
            patch,
        };
        placed = draft.push(command, &[placed], about());
    }
    for kind in deletions {
        let command = Command::DeleteEdgeModule {
            id: id.clone(),
            expected: Expected::Any,
            kind,
        };
        placed = draft.push(command, &[placed], about());
    }
    placed
}

/// The steps about one route, each resting on the one before.
struct Chain<'c, 'd, 'r> {
    world: &'c World<'c>,
    draft: &'c mut Draft<'d>,
    target: &'c HostTarget<'c>,
    route: &'c RouteTarget<'r>,
    last: Placed,
}

impl Chain<'_, '_, '_> {
    fn run(&mut self, made: &mut Made, demands_change: bool) {
        let route = self.route;
        #[cfg(test)]
        if route.actual.is_none()
            && route.goal == Goal::Closed
            && self
                .world
                .mutated(crate::mutation::Mutation::SkipInsteadOfStage)
        {
            return;
        }
        if route.actual.is_none() && route.goal == Goal::Absent {
            return;
        }
        let Some(actual) = route.actual else {
            // Staged closed; the next plan opens it.
            let patch = Box::default();
            return self.push(
                |c| Command::CreateRoute {
                    edge: c.target.id.clone(),
                    expected: Expected::Any,
                    id: c.route.id.clone(),
                    place: c.route.key.1.clone(),
                    patch,
                },
                About::route(&route.key),
            );
        };
        match &route.goal {
            Goal::Leave | Goal::Keep(..) => {}
            Goal::Closed => self.close(actual),
            Goal::Absent => return self.delete(actual),
            Goal::Open(content) => {
                if demands_change {
                    // First every route of the edge closes, then the demands change.
                    return self.close(actual);
                }
                let about = About::opening(&route.key, route.declared.and_then(|d| d.digest));
                let requires =
                    made.for_route(self.world, self.draft, &route.key, &route.goal, &about);
                if requires.contains(&Placed::Refused) {
                    return;
                }
                self.change(actual, content, &requires);
            }
        }
        self.remember(actual);
    }

    fn push(&mut self, command: impl FnOnce(&Self) -> Command, about: About) {
        let command = command(self);
        self.last = self.draft.push(command, &[self.last], about);
    }

    fn close(&mut self, actual: &Route) {
        if actual.backend.is_none() {
            return;
        }
        self.push(
            |c| Command::DeleteRouteBackend {
                edge: c.target.id.clone(),
                expected: Expected::Any,
                id: c.route.id.clone(),
            },
            About::route(&self.route.key),
        );
    }

    /// Deletes the route if what it uncovers is as declared now; closes it otherwise, and the
    /// next plan deletes it (R5).
    fn delete(&mut self, actual: &Route) {
        let place = &self.route.key.1;
        // What the route covers must be answered as declared without it: by what is broader, and
        // by whatever is declared for some of it and does not stand yet.
        let ready = self.target.routes.iter().all(|other| {
            let stands = other.actual.is_some() || other.goal == Goal::Absent;
            let broader = place.is_narrower_than(&other.key.1);
            (stands || !place.intersects(&other.key.1)) && (!broader || self.target.is_ready(other))
        });
        #[cfg(test)]
        let ready = ready || self.world.mutated(crate::mutation::Mutation::DeleteEarly);
        if !ready {
            self.close(actual);
            return self.remember(actual);
        }
        let about = About::route(&self.route.key);
        self.push(
            |c| Command::DeleteRoute {
                edge: c.target.id.clone(),
                expected: Expected::Any,
                id: c.route.id.clone(),
            },
            about,
        );
    }

    /// One call if one call is enough, otherwise closed around the calls (R4).
    fn change(&mut self, actual: &Route, content: &Content, requires: &[Placed]) {
        let Difference {
            set,
            delete,
            backend,
        } = Difference::between(actual, content);
        let patch_level = self.world.inputs.capabilities.atomicity == Atomicity::Patch;
        let sets = set.kinds().len();
        let set_calls = if patch_level {
            usize::from(sets > 0 || backend.is_some())
        } else {
            sets + usize::from(backend.is_some())
        };
        let calls = set_calls + delete.len();
        if calls == 0 {
            return;
        }
        let is_open = actual.open_backend().is_some();
        self.last = Placed::Needless;
        if is_open && calls > 1 {
            #[cfg(test)]
            if !self
                .world
                .mutated(crate::mutation::Mutation::ModulesOnOpenRoute)
            {
                self.close(actual);
            }
            #[cfg(not(test))]
            self.close(actual);
        }
        let backend = if is_open && calls == 1 {
            backend
        } else {
            Some(content.backend.clone())
        };
        let opening = About::opening(&self.route.key, self.route.declared.and_then(|d| d.digest));
        for kind in delete {
            self.push_after(
                requires,
                |c| Command::DeleteRouteModule {
                    edge: c.target.id.clone(),
                    expected: Expected::Any,
                    id: c.route.id.clone(),
                    kind,
                },
                opening.clone(),
            );
        }
        if patch_level {
            if sets > 0 || backend.is_some() {
                self.push_after(requires, |c| c.update(set, backend), opening);
            }
            return;
        }
        for single in singles(set) {
            self.push_after(requires, |c| c.update(single, None), opening.clone());
        }
        if backend.is_some() {
            self.push_after(requires, |c| c.update(Modules::default(), backend), opening);
        }
    }

    fn push_after(
        &mut self,
        requires: &[Placed],
        command: impl FnOnce(&Self) -> Command,
        about: About,
    ) {
        let command = command(self);
        let all: Vec<Placed> = requires.iter().copied().chain([self.last]).collect();
        self.last = self.draft.push(command, &all, about);
    }

    fn update(&self, modules: Modules<IpPolicyId>, backend: Option<BackendId>) -> Command {
        Command::UpdateRoute {
            edge: self.target.id.clone(),
            expected: Expected::Any,
            id: self.route.id.clone(),
            patch: Box::new(RoutePatch {
                modules,
                backend: backend.map(|id| RouteBackend { enabled: true, id }),
                ..RoutePatch::default()
            }),
        }
    }

    /// The record follows the content: until it is written, the edge holds the old one to be void.
    fn remember(&mut self, actual: &Route) {
        let changes = self.last != Placed::Needless;
        let Some(record) = &self.route.record else {
            return;
        };
        if !changes && same_record(actual.record.as_ref(), Some(record)) {
            return;
        }
        let record = Box::new(record.clone());
        self.push(
            |c| Command::SetRecord {
                edge: c.target.id.clone(),
                expected: Expected::Any,
                id: c.route.id.clone(),
                record,
            },
            About::route(&self.route.key),
        );
    }
}

/// What must be called to make a route serve a content.
struct Difference {
    set: Modules<IpPolicyId>,
    delete: BTreeSet<ModuleKind>,
    backend: Option<BackendId>,
}

impl Difference {
    fn between(actual: &Route, content: &Content) -> Self {
        let Content {
            demands: _,
            modules,
            backend,
            digest,
        } = content;
        let serving = actual
            .record
            .as_ref()
            .and_then(|record| record.serving.as_ref());
        let known = digest.is_some() && serving.is_some_and(|serving| serving.digest == *digest);
        let present = without_secrets(&actual.modules);
        let wanted = if known {
            without_secrets(modules)
        } else {
            modules.clone()
        };
        let kinds = modules.kinds();
        let delete = actual.modules.kinds().difference(&kinds).copied().collect();
        let open = actual.open_backend();
        Self {
            set: differing(&present, &wanted, modules),
            delete,
            backend: (open != Some(backend)).then(|| backend.clone()),
        }
    }
}

/// Goes through every kind of module, so that a new one must be decided about here.
macro_rules! each_module {
    ($use:ident) => {
        $use!(
            ip_restriction,
            user_agent_filter,
            webhook_verification,
            oauth,
            oidc,
            saml,
            traffic_policy,
            circuit_breaker,
            websocket_tcp_converter,
            request_headers,
            response_headers,
            compression
        )
    };
}

/// The modules of `full` in which `wanted` differs from `present`.
fn differing(
    present: &Modules<PolicyRef>,
    wanted: &Modules<PolicyRef>,
    full: &Modules<PolicyRef>,
) -> Modules<IpPolicyId> {
    macro_rules! pick {
        ($($field:ident),*) => {
            Modules { $($field: if present.$field == wanted.$field { None } else { full.$field.clone() }),* }
        };
    }
    let picked: Modules<PolicyRef> = each_module!(pick);
    by_id(picked)
}

/// A PATCH names a policy by its id and means its newest version.
fn by_id(modules: Modules<PolicyRef>) -> Modules<IpPolicyId> {
    match modules.with_policies(|policy| Ok::<_, std::convert::Infallible>(policy.id)) {
        Ok(modules) => modules,
        Err(never) => match never {},
    }
}

/// The same modules, each alone, in the order of the request chain.
fn singles(modules: Modules<IpPolicyId>) -> Vec<Modules<IpPolicyId>> {
    let mut all = Vec::new();
    macro_rules! split {
        ($($field:ident),*) => {
            let Modules { $($field),* } = modules;
            $(if $field.is_some() {
                all.push(Modules { $field, ..Modules::default() });
            })*
        };
    }
    each_module!(split);
    all
}

/// Whether the edge refused to let this route be staged before.
pub(crate) fn is_staging_refused(
    world: &World<'_>,
    target: &HostTarget<'_>,
    route: &RouteTarget<'_>,
) -> bool {
    let mut draft = Draft::new(world.inputs.rejections);
    let mut chain = Chain {
        world,
        draft: &mut draft,
        target,
        route,
        last: Placed::Needless,
    };
    chain.run(&mut Made::default(), false);
    chain.last == Placed::Refused
}
