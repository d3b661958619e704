//! What a route is to be, in the edge's words, and whether it already is.

use std::collections::BTreeSet;

use edge_state::state::{PolicyRef, Route};
use model::{
    complete_set::CompleteSet,
    declaration::PolicyName,
    id::{BackendId, IpPolicyId},
    module::{EdgeDemands, IpAction, IpRules, ModuleKind, Modules},
    secret::Digest,
};

use crate::{
    report::Note,
    world::{World, policy_id},
};

/// A complete set with its policies named as the edge names them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Content {
    pub(crate) demands: EdgeDemands,
    pub(crate) modules: Modules<PolicyRef>,
    pub(crate) backend: BackendId,
    /// The digest of the declaration that says so.
    pub(crate) digest: Option<Digest>,
}

/// A policy that must be at the edge before something refers to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PolicyPut {
    pub(crate) id: IpPolicyId,
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) rules: IpRules,
}

/// Finds every policy and backend that a set names; the first that is not to be had is the reason
/// why it cannot be served.
pub(crate) fn resolve(
    world: &World<'_>,
    set: &CompleteSet<PolicyName>,
    digest: Option<Digest>,
) -> Result<Content, Note> {
    let CompleteSet {
        demands,
        modules,
        backend,
    } = set;
    let unenforced: BTreeSet<ModuleKind> = set
        .kinds()
        .difference(&world.inputs.capabilities.enforceable)
        .copied()
        .collect();
    if !unenforced.is_empty() {
        return Err(Note::Unenforceable { kinds: unenforced });
    }
    let modules = modules
        .clone()
        .with_policies(|name| policy_ref(world, &name))?;
    let at_edge = world.inputs.actual.backends.get(backend);
    let usable = match at_edge {
        Some(backend) => {
            backend.controller.is_none() || world.is_own(backend.controller.as_deref())
        }
        None => world.inputs.declared.backends.contains_key(backend),
    };
    if !usable {
        return Err(Note::BackendMissing {
            id: backend.clone(),
        });
    }
    Ok(Content {
        demands: demands.clone(),
        modules,
        backend: backend.clone(),
        digest,
    })
}

fn policy_ref(world: &World<'_>, name: &PolicyName) -> Result<PolicyRef, Note> {
    match name {
        PolicyName::Declared(object) => world
            .policy_ids
            .get(object)
            .map(|id| PolicyRef {
                id: id.clone(),
                version: 1,
            })
            .ok_or_else(|| Note::PolicyMissing {
                name: object.to_string(),
            }),
        PolicyName::AtEdge(id) => world
            .inputs
            .actual
            .ip_policies
            .get(id)
            .map(|policy| PolicyRef {
                id: id.clone(),
                version: policy.newest,
            })
            .ok_or_else(|| Note::PolicyMissing {
                name: id.to_string(),
            }),
    }
}

/// What a held route must refuse beyond its old policies: what the newest valid content of the
/// same policies refuses (R17). One policy that pools them all, so that an address which any of
/// them newly admits counts as before.
pub(crate) fn newest_refusal(
    world: &World<'_>,
    route: &Route,
) -> (BTreeSet<PolicyRef>, Option<PolicyPut>) {
    let Some(restriction) = route
        .modules
        .ip_restriction
        .as_ref()
        .filter(|module| module.enabled)
    else {
        return (BTreeSet::new(), None);
    };
    let (mut old, mut new, mut whole) = (IpRules::default(), IpRules::default(), true);
    let mut valid = false;
    let mut names = Vec::new();
    for reference in &restriction.policies {
        let Some(policy) = world.inputs.actual.ip_policies.get(&reference.id) else {
            continue;
        };
        let served = policy
            .versions
            .get(&reference.version)
            .cloned()
            .unwrap_or_default();
        let name = if world.is_own(policy.controller.as_deref()) {
            names.push(policy.meta.metadata.clone());
            policy.meta.metadata.parse().ok().map(PolicyName::Declared)
        } else {
            Some(PolicyName::AtEdge(reference.id.clone()))
        };
        let newest = name.as_ref().and_then(|name| world.newest_rules(name));
        valid |= matches!(name, Some(PolicyName::AtEdge(_)));
        valid |= newest.unwrap_or(&served).allows_somebody();
        whole &= newest.is_some();
        pool(&mut new, newest.unwrap_or(&served));
        pool(&mut old, &served);
    }
    // Declared policies that pooled let nobody in are an error (R14), not a newest valid version:
    // the route goes on refusing what it refuses, and is not closed by them. At the API they are
    // accepted and refuse everybody.
    if !valid {
        return (route.also_refuse.clone(), None);
    }
    let mut refuse = if whole {
        BTreeSet::new()
    } else {
        route.also_refuse.clone()
    };
    if new == old {
        return (refuse, None);
    }
    let name = format!("newest of {}", names.join(" and "));
    let id = policy_id(world.inputs.controller, &name, &new);
    refuse.insert(PolicyRef {
        id: id.clone(),
        version: 1,
    });
    let description = String::from("refuses, on a held route, what the newest policies refuse");
    (
        refuse,
        Some(PolicyPut {
            id,
            name,
            description,
            rules: new,
        }),
    )
}

/// Adds rules to a pool: where two say different things of one network, deny wins, as it does
/// when policies are pooled at the edge.
fn pool(into: &mut IpRules, rules: &IpRules) {
    for (net, action) in &rules.0 {
        let entry = into.0.entry(*net).or_insert(*action);
        if *action == IpAction::Deny {
            *entry = IpAction::Deny;
        }
    }
}

/// Whether a route serves exactly this content, its edge's demands apart. What is read from an
/// edge may not show secrets: where there are some, the record's digest speaks for them (R9).
pub(crate) fn serves(route: &Route, content: &Content) -> bool {
    let Content {
        demands: _,
        modules,
        backend,
        digest,
    } = content;
    let blank = without_secrets(modules);
    let serving = route
        .record
        .as_ref()
        .and_then(|record| record.serving.as_ref());
    let vouched = digest.is_some() && serving.is_some_and(|serving| serving.digest == *digest);
    route.open_backend() == Some(backend)
        && route.also_refuse.is_empty()
        && (vouched || blank == *modules)
        && without_secrets(&route.modules) == blank
}

/// The same modules with every secret blank.
pub(crate) fn without_secrets<P: Clone>(modules: &Modules<P>) -> Modules<P> {
    let mut blank = modules.clone();
    blank.hide_secrets();
    blank
}

/// The modules that can refuse: what a change must not weaken.
pub(crate) fn access_part(modules: &Modules<PolicyRef>) -> Modules<PolicyRef> {
    let mut part = without_secrets(modules);
    part.request_headers = None;
    part.response_headers = None;
    part.compression = None;
    part
}
