//! Steps for an edge that replaces a whole edge at once (R4): one for each host, with every route
//! open, whatever changes.

use edge_state::{
    command::{Command, EdgeSpec, Expected, RouteSpec},
    state::{Edge, Meta, Route, RouteBackend},
};
use model::{
    id::CertificateId,
    module::{EdgeDemands, Modules},
};

use crate::{
    draft::{About, Draft, Placed},
    record::{as_spec, same_record},
    target::{Goal, HostTarget, RouteTarget, content_is},
    upkeep::Made,
    world::World,
};

/// Brings one host's edge to its target, or as near as one step can. What withdraws waits for
/// nothing (R5): where the whole step must wait for others, this plan only closes what closes,
/// and the next one does the rest.
pub(crate) fn steps(
    world: &World<'_>,
    draft: &mut Draft<'_>,
    made: &mut Made,
    target: &HostTarget<'_>,
) -> Placed {
    if is_reached(target) {
        // Whose it is may change all the same.
        made.reserve(world, draft, target);
        return Placed::Needless;
    }
    let mut requires = made.for_host(world, draft, target);
    let mut about = About::default();
    for route in &target.routes {
        let of_route = about_route(target, route);
        requires.extend(made.for_route(world, draft, &route.key, &route.goal, &of_route));
        about.concerns.extend(of_route.concerns);
        about.opens.extend(of_route.opens);
    }
    let waits = requires.iter().any(|placed| *placed != Placed::Needless);
    match target.actual {
        Some(edge) if waits && target.routes.iter().any(RouteTarget::closes) => {
            let concerns = target
                .routes
                .iter()
                .filter(|r| r.closes())
                .map(|r| r.key.clone())
                .collect();
            let routes = target.routes.iter().filter_map(closing).collect();
            let command = replace(
                world,
                target,
                edge.demands(),
                edge.certificate.clone(),
                routes,
            );
            draft.push(
                command,
                &[],
                About {
                    concerns,
                    ..About::default()
                },
            )
        }
        Some(_) | None => {
            let routes = target
                .routes
                .iter()
                .filter_map(|route| whole(world, route))
                .collect();
            let command = replace(
                world,
                target,
                target.demands.clone(),
                target.certificate.clone(),
                routes,
            );
            draft.push(command, &requires, about)
        }
    }
}

/// Whether the host's edge is what it should become already (R9).
fn is_reached(target: &HostTarget<'_>) -> bool {
    let Some(edge) = target.actual else {
        return target.declared.is_none() && target.routes.is_empty();
    };
    let Edge {
        meta,
        controller: _,
        hosts: _,
        tls_termination: _,
        mutual_tls: _,
        certificate,
        generation: _,
        routes: _,
    } = edge;
    edge.demands() == target.demands
        && *certificate == target.certificate
        && without_texts(meta)
        && target.routes.iter().all(is_route_reached)
}

fn is_route_reached(route: &RouteTarget<'_>) -> bool {
    let Some(actual) = route.actual else {
        return route.goal == Goal::Absent;
    };
    content_is(actual, &route.goal)
        && same_record(actual.record.as_ref(), route.record.as_ref())
        && without_texts(&actual.meta)
}

fn without_texts(meta: &Meta) -> bool {
    let Meta {
        description,
        metadata,
        created_at: _,
    } = meta;
    description.is_empty() && metadata.is_empty()
}

fn about_route(target: &HostTarget<'_>, route: &RouteTarget<'_>) -> About {
    let demands_stay = target
        .actual
        .is_some_and(|edge| edge.demands() == target.demands);
    if demands_stay && is_route_reached(route) {
        return About::default();
    }
    match &route.goal {
        Goal::Open(_) => About::opening(&route.key, route.declared.and_then(|d| d.digest)),
        Goal::Keep(..) | Goal::Absent | Goal::Closed | Goal::Leave => About::route(&route.key),
    }
}

fn replace(
    world: &World<'_>,
    target: &HostTarget<'_>,
    demands: EdgeDemands,
    certificate: Option<CertificateId>,
    routes: Vec<RouteSpec>,
) -> Command {
    let standing = world.inputs.actual.edges.get(&target.id);
    Command::ReplaceEdge(Box::new(EdgeSpec {
        id: target.id.clone(),
        expected: standing.map_or(Expected::Absent, |edge| {
            Expected::Generation(edge.generation)
        }),
        controller: Some(world.inputs.controller.to_owned()),
        hosts: std::iter::once(target.host.clone()).collect(),
        demands,
        certificate,
        description: String::new(),
        metadata: String::new(),
        routes,
    }))
}

/// A route as it is to be.
fn whole(
    #[cfg_attr(
        not(test),
        expect(unused_variables, reason = "only tests plan wrongly")
    )]
    world: &World<'_>,
    route: &RouteTarget<'_>,
) -> Option<RouteSpec> {
    match (&route.goal, route.actual) {
        (Goal::Open(content), _) => {
            let backend = RouteBackend {
                enabled: true,
                id: content.backend.clone(),
            };
            let shut = closed(route);
            Some(RouteSpec {
                modules: content.modules.clone(),
                backend: Some(backend),
                ..shut
            })
        }
        #[cfg(test)]
        (Goal::Keep(..), Some(actual))
            if world.mutated(crate::mutation::Mutation::SharedPolicyInPlace) =>
        {
            Some(moved_with_its_policy(world, as_it_is(route, actual)))
        }
        (Goal::Keep(refuse, _), Some(actual)) => Some(RouteSpec {
            also_refuse: refuse.clone(),
            ..as_it_is(route, actual)
        }),
        (Goal::Leave, Some(actual)) => Some(as_it_is(route, actual)),
        #[cfg(test)]
        (Goal::Closed, None) if world.mutated(crate::mutation::Mutation::SkipInsteadOfStage) => {
            None
        }
        (Goal::Closed, _) | (Goal::Keep(..) | Goal::Leave, None) => Some(closed(route)),
        (Goal::Absent, _) => None,
    }
}

/// A route in a step that only closes: as it is, unless it closes.
fn closing(route: &RouteTarget<'_>) -> Option<RouteSpec> {
    let actual = route.actual?;
    if route.closes() {
        return Some(closed(route));
    }
    let record = actual.record.as_ref().map(as_spec);
    Some(RouteSpec {
        record,
        ..as_it_is(route, actual)
    })
}

fn closed(route: &RouteTarget<'_>) -> RouteSpec {
    RouteSpec {
        id: route.id.clone(),
        place: route.key.1.clone(),
        modules: Modules::default(),
        backend: None,
        also_refuse: std::collections::BTreeSet::new(),
        description: String::new(),
        metadata: String::new(),
        record: route.record.clone(),
    }
}

fn as_it_is(route: &RouteTarget<'_>, actual: &Route) -> RouteSpec {
    let Route {
        meta: _,
        place,
        modules,
        backend,
        also_refuse,
        generation: _,
        record: _,
    } = actual;
    RouteSpec {
        id: route.id.clone(),
        place: place.clone(),
        modules: modules.clone(),
        backend: backend.clone(),
        also_refuse: also_refuse.clone(),
        description: String::new(),
        metadata: String::new(),
        record: route.record.clone(),
    }
}

/// What a policy changed in place would do to a route that only names it.
#[cfg(test)]
fn moved_with_its_policy(world: &World<'_>, mut spec: RouteSpec) -> RouteSpec {
    let policies = spec
        .modules
        .ip_restriction
        .iter_mut()
        .flat_map(|module| &mut module.policies);
    for reference in policies {
        let standing = world.inputs.actual.ip_policies.get(&reference.id);
        let name = standing.and_then(|policy| {
            policy
                .meta
                .metadata
                .parse::<model::object::ObjectName>()
                .ok()
        });
        if let Some(id) = name.and_then(|name| world.policy_ids.get(&name)) {
            reference.id = id.clone();
        }
    }
    spec
}
