//! Brings the parts together: targets of all hosts, then the steps in an order that uncovers
//! nothing (R3, R5), then the report.

use std::collections::{BTreeMap, BTreeSet};

use edge_state::{
    capabilities::Atomicity,
    command::{Command, Expected},
};
use model::{host::HostPattern, place::Match};

use crate::{
    draft::{About, Draft, Placed},
    inputs::Inputs,
    piecewise, replace,
    report::{Note, report},
    step::Plan,
    target::{Goal, HostTarget, Restraint, Unstaged, host_target},
    upkeep::{self, Made},
    world::{Holder, World},
};

type Targets<'a> = BTreeMap<&'a HostPattern, HostTarget<'a>>;

/// What to do next: a pure function of its inputs.
///
/// A plan need not lead all the way. It holds what may be done in the state as it is; when its
/// steps are done, plan again, until a plan is empty.
#[must_use]
pub fn plan(inputs: &Inputs<'_>) -> Plan {
    plan_in(&World::new(inputs))
}

pub(crate) fn plan_in(world: &World<'_>) -> Plan {
    let mut targets = targets(world);
    let mut draft = Draft::new(world.inputs.rejections);
    let mut made = Made::default();
    upkeep::set_endpoints(world, &mut draft);
    let refused = hosts(world, &mut draft, &mut made, &mut targets, false);
    restrain_wildcards(world, &mut targets, &refused);
    hosts(world, &mut draft, &mut made, &mut targets, true);
    upkeep::collect(world, &mut draft, targets.values());
    let release = upkeep::release_domains(world, &mut draft, &targets);
    let report = report(world, &targets);
    let wake_at = report
        .next_change(world.inputs.now)
        .into_iter()
        .chain(release)
        .min();
    Plan {
        steps: draft.steps,
        report,
        wake_at,
    }
}

/// Every host that is declared or that an edge of ours answers for, unless it is somebody else's.
fn targets<'a>(world: &World<'a>) -> Targets<'a> {
    let mut hosts: BTreeSet<&'a HostPattern> = world.inputs.declared.hosts.keys().collect();
    hosts.extend(world.own_hosts());
    hosts
        .into_iter()
        .filter(|host| !matches!(world.holder(host), Holder::Other(_)))
        .map(|host| (host, target(world, host)))
        .collect()
}

/// The target of a host. Nothing broader than a route that does not stand yet opens or changes
/// (R3), unless both come with one step.
fn target<'a>(world: &World<'a>, host: &'a HostPattern) -> HostTarget<'a> {
    let target = host_target(world, host, &Restraint::default());
    let unstaged = unstaged_routes(world, &target);
    if unstaged.is_empty() {
        return target;
    }
    host_target(world, host, &Restraint { unstaged })
}

fn unstaged_routes(world: &World<'_>, target: &HostTarget<'_>) -> Vec<Unstaged> {
    #[cfg(test)]
    if world.mutated(crate::mutation::Mutation::SkipInsteadOfStage) {
        return Vec::new();
    }
    let replaces = world.inputs.capabilities.atomicity == Atomicity::Replace;
    let missing = target.routes.iter().filter(|route| route.actual.is_none());
    missing
        .map(|route| Unstaged {
            key: route.key.clone(),
            refused: route.goal == Goal::Absent
                || (!replaces
                    && target.actual.is_some()
                    && piecewise::is_staging_refused(world, target, route)),
            whole_host: false,
        })
        // Where an edge is replaced as a whole, what can be staged stands with the rest of it.
        .filter(|unstaged| !replaces || unstaged.refused)
        .collect()
}

/// Holds wildcards back where a host below them does not stand yet.
fn restrain_wildcards<'a>(
    world: &World<'a>,
    targets: &mut Targets<'a>,
    refused: &BTreeSet<&'a HostPattern>,
) {
    #[cfg(test)]
    if world.mutated(crate::mutation::Mutation::WildcardFirst) {
        return;
    }
    let mut restraints: BTreeMap<HostPattern, Restraint> = BTreeMap::new();
    for (host, target) in targets.iter() {
        let Some(broader) = host
            .broader()
            .filter(|broader| targets.contains_key(broader))
        else {
            continue;
        };
        if target.declared.is_none() || target.actual.is_some() {
            continue;
        }
        let first = target.routes.first().map(|route| route.key.clone());
        let key = first.unwrap_or_else(|| ((*host).clone(), any_path()));
        let unstaged = Unstaged {
            key,
            refused: refused.contains(host),
            whole_host: true,
        };
        restraints
            .entry(broader)
            .or_default()
            .unstaged
            .push(unstaged);
    }
    for (wildcard, mut restraint) in restraints {
        let Some((host, target)) = targets.get_key_value(&wildcard) else {
            continue;
        };
        restraint.unstaged.extend(unstaged_routes(world, target));
        let (host, restrained) = (*host, host_target(world, host, &restraint));
        targets.insert(host, restrained);
    }
}

fn any_path() -> Match {
    Match::new(model::place::MatchType::ElementPrefix, "/")
}

/// The steps of all hosts, or all wildcards. Returns the hosts whose edge the edge refuses.
fn hosts<'a>(
    world: &World<'a>,
    draft: &mut Draft<'_>,
    made: &mut Made,
    targets: &mut Targets<'a>,
    wildcards: bool,
) -> BTreeSet<&'a HostPattern> {
    let mut refused = BTreeSet::new();
    let those: Vec<&'a HostPattern> = targets
        .keys()
        .copied()
        .filter(|host| host.is_wildcard() == wildcards)
        .collect();
    for host in those {
        let blocker = uncovers(world, host, targets);
        let Some(target) = targets.get_mut(host) else {
            continue;
        };
        if target.may_go && !world.inputs.only_close {
            match blocker {
                None => {
                    delete_edge(draft, target);
                    continue;
                }
                Some(broader) => {
                    for route in &mut target.routes {
                        route.notes.insert(Note::WaitsForBroader {
                            broader: broader.clone(),
                        });
                    }
                }
            }
        }
        let placed = match world.inputs.capabilities.atomicity {
            Atomicity::Replace => replace::steps(world, draft, made, target),
            Atomicity::None | Atomicity::Patch => piecewise::steps(world, draft, made, target),
        };
        if placed == Placed::Refused {
            refused.insert(host);
        }
    }
    refused
}

/// A route of the host's wildcard to which requests would fall, and which is not as declared.
fn uncovers(
    #[cfg_attr(
        not(test),
        expect(unused_variables, reason = "only tests plan wrongly")
    )]
    world: &World<'_>,
    host: &HostPattern,
    targets: &Targets<'_>,
) -> Option<crate::RouteKey> {
    #[cfg(test)]
    if world.mutated(crate::mutation::Mutation::DeleteHostEarly) {
        return None;
    }
    let broader = host.broader()?;
    let wildcard = targets.get(&broader)?;
    let behind = wildcard
        .routes
        .iter()
        .find(|route| !wildcard.is_ready(route))?;
    Some(behind.key.clone())
}

fn delete_edge(draft: &mut Draft<'_>, target: &mut HostTarget<'_>) {
    let Some(edge) = target.actual else { return };
    let concerns = target
        .routes
        .iter()
        .map(|route| route.key.clone())
        .collect();
    let expected = Expected::Generation(edge.generation);
    let command = Command::DeleteEdge {
        id: target.id.clone(),
        expected,
    };
    draft.push(
        command,
        &[],
        About {
            concerns,
            ..About::default()
        },
    );
    for route in &mut target.routes {
        route.goal = Goal::Absent;
    }
}
