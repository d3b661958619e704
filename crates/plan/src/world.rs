//! The edge as one controller sees it: by host, with what is its own apart from what is not.

use std::collections::BTreeMap;

use edge_state::state::{Domain, Edge, Route};
use model::{
    declaration::{DeclaredHost, PolicyName, Unreadable},
    host::HostPattern,
    id::{DomainId, EdgeId, IpPolicyId, RouteId},
    module::IpRules,
    object::{ObjectName, ObjectRef},
    place::Match,
};

use crate::inputs::Inputs;

/// The inputs, with what is looked up again and again found once.
pub(crate) struct World<'a> {
    pub(crate) inputs: Inputs<'a>,
    /// Declared policies by the id that their content has at the edge, and the reverse.
    pub(crate) policies: BTreeMap<IpPolicyId, &'a ObjectName>,
    pub(crate) policy_ids: BTreeMap<&'a ObjectName, IpPolicyId>,
    edges: BTreeMap<&'a HostPattern, (&'a EdgeId, &'a Edge)>,
    domains: BTreeMap<&'a HostPattern, (&'a DomainId, &'a Domain)>,
    #[cfg(test)]
    pub(crate) mutation: crate::mutation::Mutation,
}

/// Who answers for a host at the edge.
pub(crate) enum Holder<'a> {
    /// Nobody.
    Nobody,
    /// This controller.
    Us(&'a EdgeId, &'a Edge),
    /// Another controller, or a user of the API: never touched.
    Other(Option<String>),
}

impl<'a> World<'a> {
    pub(crate) fn new(inputs: &Inputs<'a>) -> Self {
        let Inputs {
            actual,
            declared,
            controller,
            ..
        } = *inputs;
        let edges = actual
            .edges
            .iter()
            .flat_map(|(id, edge)| {
                edge.hosts
                    .iter()
                    .map(move |host| (host, (id, edge.as_ref())))
            })
            .collect();
        let domains = actual
            .domains
            .iter()
            .map(|(id, domain)| (&domain.host, (id, domain.as_ref())))
            .collect();
        let policy_ids: BTreeMap<_, _> = declared
            .policies
            .iter()
            .map(|(name, policy)| {
                (
                    name,
                    policy_id(controller, &name.to_string(), &policy.rules),
                )
            })
            .collect();
        Self {
            inputs: *inputs,
            policies: policy_ids
                .iter()
                .map(|(name, id)| (id.clone(), *name))
                .collect(),
            policy_ids,
            edges,
            domains,
            #[cfg(test)]
            mutation: crate::mutation::Mutation::None,
        }
    }

    /// Every host that an edge of ours answers for.
    pub(crate) fn own_hosts(&self) -> impl Iterator<Item = &'a HostPattern> + '_ {
        self.edges
            .iter()
            .filter(|(_, (_, edge))| self.is_own(edge.controller.as_deref()))
            .map(|(host, _)| *host)
    }

    /// Who answers for a host. A reservation by another controller counts: it was there first.
    pub(crate) fn holder(&self, host: &HostPattern) -> Holder<'a> {
        match self.edges.get(host) {
            // Ours have one host each; one with several was not made by the planner.
            Some((id, edge))
                if self.is_own(edge.controller.as_deref()) && edge.hosts.len() == 1 =>
            {
                Holder::Us(id, edge)
            }
            Some((_, edge)) => Holder::Other(edge.controller.clone()),
            None => match self.domains.get(host) {
                Some((_, domain))
                    if domain.controller.is_some()
                        && !self.is_own(domain.controller.as_deref()) =>
                {
                    Holder::Other(domain.controller.clone())
                }
                Some(_) | None => Holder::Nobody,
            },
        }
    }

    /// Our edge for a host, if it stands.
    pub(crate) fn own_edge(&self, host: &HostPattern) -> Option<(&'a EdgeId, &'a Edge)> {
        match self.holder(host) {
            Holder::Us(id, edge) => Some((id, edge)),
            Holder::Nobody | Holder::Other(_) => None,
        }
    }

    /// Whether any edge answers for exactly this host.
    pub(crate) fn is_answered(&self, host: &HostPattern) -> bool {
        self.edges.contains_key(host)
    }

    /// The reservation of a host.
    pub(crate) fn domain(&self, host: &HostPattern) -> Option<(&'a DomainId, &'a Domain)> {
        self.domains.get(host).copied()
    }

    pub(crate) fn declared(&self, host: &HostPattern) -> Option<&'a DeclaredHost> {
        self.inputs.declared.hosts.get(host)
    }

    pub(crate) fn is_own(&self, controller: Option<&str>) -> bool {
        controller == Some(self.inputs.controller)
    }

    /// The id of the edge for a host, standing or not.
    pub(crate) fn edge_id(&self, host: &HostPattern) -> EdgeId {
        self.own_edge(host).map_or_else(
            || EdgeId::derived(&[self.inputs.controller, host.as_str()]),
            |(id, _)| id.clone(),
        )
    }

    /// Whether an object stands in the way that could declare this host and cannot be read (R3).
    pub(crate) fn is_shadowed(&self, namespace: &str) -> bool {
        self.inputs
            .declared
            .unreadable
            .iter()
            .any(|unreadable| match unreadable {
                Unreadable::Namespace(name) => name == namespace,
                Unreadable::Everything => true,
            })
    }

    /// What keeps a tombstone from ending although its time is over: its owner, a neighbour's, or
    /// the namespace of either is being deleted (R5). Neighbours are the other routes of the
    /// host, and those of its wildcard, to which its requests would fall.
    pub(crate) fn going_beside(&self, host: &HostPattern, owner: &ObjectRef) -> Option<ObjectRef> {
        let going = &self.inputs.declared.terminating;
        if going.is_empty() {
            return None;
        }
        let wildcard = host.broader();
        let edges = [Some(host), wildcard.as_ref()].into_iter().flatten();
        let routes = edges
            .filter_map(|host| self.own_edge(host))
            .flat_map(|(_, edge)| edge.routes.values());
        let neighbours = routes.filter_map(|route| Some(&route.record.as_ref()?.owner));
        std::iter::once(owner)
            .chain(neighbours)
            .flat_map(|object| [namespace_of(object), object.clone()])
            .find(|object| going.contains(object))
    }

    /// The rules that a policy's name stands for now.
    pub(crate) fn newest_rules(&self, name: &PolicyName) -> Option<&'a IpRules> {
        match name {
            PolicyName::Declared(name) => self
                .inputs
                .declared
                .policies
                .get(name)
                .map(|policy| &policy.rules),
            PolicyName::AtEdge(id) => {
                let policy = self.inputs.actual.ip_policies.get(id)?;
                policy.versions.get(&policy.newest)
            }
        }
    }

    #[cfg(test)]
    pub(crate) fn mutated(&self, mutation: crate::mutation::Mutation) -> bool {
        self.mutation == mutation
    }
}

fn namespace_of(object: &ObjectRef) -> ObjectRef {
    ObjectRef::new("Namespace", "", object.namespace.as_str())
}

/// The routes of an edge by match.
pub(crate) fn by_place(edge: &Edge) -> BTreeMap<&Match, (&RouteId, &Route)> {
    edge.routes
        .iter()
        .map(|(id, route)| (&route.place, (id, route)))
        .collect()
}

/// The id of a route, the same every time.
pub(crate) fn route_id(edge: &EdgeId, place: &Match) -> RouteId {
    RouteId::derived(&[edge.as_str(), place.match_type.wire(), &place.path])
}

/// The id of a policy of ours: its name and its content, so that another content is another
/// policy and nothing that is shared ever changes in place (R17).
pub(crate) fn policy_id(controller: &str, name: &str, rules: &IpRules) -> IpPolicyId {
    let mut text = String::new();
    for (net, action) in &rules.0 {
        text.push_str(&format!("{net} {action:?}\n"));
    }
    IpPolicyId::derived(&[controller, name, &text])
}
