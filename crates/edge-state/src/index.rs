//! What a command must find without reading the whole state: who answers for a host, who uses a
//! backend, which route closes next. A function of the state, kept beside it.

use std::collections::{BTreeMap, BTreeSet};

use model::{
    host::HostPattern,
    id::{BackendId, CertificateId, DomainId, EdgeId, IpPolicyId, IpRuleId, KeyId, RouteId},
    secret::Digest,
    time::Timestamp,
};

use crate::state::{ApiKey, Domain, Edge, EdgeState, IpPolicy, Route};

/// Who uses what.
type Users<K> = BTreeMap<K, BTreeSet<EdgeId>>;

/// The index of one state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Index {
    pub(crate) hosts: BTreeMap<HostPattern, EdgeId>,
    pub(crate) routes: BTreeMap<RouteId, EdgeId>,
    pub(crate) backend_users: Users<BackendId>,
    pub(crate) policy_users: Users<IpPolicyId>,
    pub(crate) certificate_users: Users<CertificateId>,
    pub(crate) deadlines: BTreeSet<(Timestamp, RouteId)>,
    pub(crate) rules: BTreeMap<IpRuleId, IpPolicyId>,
    pub(crate) domains: BTreeMap<HostPattern, DomainId>,
    pub(crate) tokens: BTreeMap<Digest, KeyId>,
}

/// The policies that a route refers to.
pub(crate) fn policies_of(route: &Route) -> impl Iterator<Item = &crate::state::PolicyRef> {
    let restricted = route
        .modules
        .ip_restriction
        .iter()
        .flat_map(|module| &module.policies);
    restricted.chain(&route.also_refuse)
}

/// When the edge closes the route by itself, if it is open.
fn deadline(route: &Route) -> Option<Timestamp> {
    let at = route.record.as_ref()?.close_at?;
    route.open_backend().is_some().then_some(at)
}

fn unuse<K: Ord>(users: &mut Users<K>, key: &K, edge: &EdgeId) {
    if let Some(set) = users.get_mut(key) {
        set.remove(edge);
        if set.is_empty() {
            users.remove(key);
        }
    }
}

impl Index {
    pub(crate) fn of(state: &EdgeState) -> Self {
        let mut index = Self::default();
        state
            .edges
            .iter()
            .for_each(|(id, edge)| index.add_edge(id, edge));
        state
            .ip_policies
            .iter()
            .for_each(|(id, policy)| index.add_policy(id, policy));
        state
            .domains
            .iter()
            .for_each(|(id, domain)| index.add_domain(id, domain));
        state
            .keys
            .iter()
            .for_each(|(id, key)| index.add_key(id, key));
        index
    }

    pub(crate) fn add_edge(&mut self, id: &EdgeId, edge: &Edge) {
        for host in &edge.hosts {
            self.hosts.insert(host.clone(), id.clone());
        }
        if let Some(certificate) = &edge.certificate {
            self.certificate_users
                .entry(certificate.clone())
                .or_default()
                .insert(id.clone());
        }
        for (route_id, route) in &edge.routes {
            self.routes.insert(route_id.clone(), id.clone());
            if let Some(backend) = &route.backend {
                self.backend_users
                    .entry(backend.id.clone())
                    .or_default()
                    .insert(id.clone());
            }
            for policy in policies_of(route) {
                self.policy_users
                    .entry(policy.id.clone())
                    .or_default()
                    .insert(id.clone());
            }
            if let Some(at) = deadline(route) {
                self.deadlines.insert((at, route_id.clone()));
            }
        }
    }

    pub(crate) fn remove_edge(&mut self, id: &EdgeId, edge: &Edge) {
        for host in &edge.hosts {
            self.hosts.remove(host);
        }
        if let Some(certificate) = &edge.certificate {
            unuse(&mut self.certificate_users, certificate, id);
        }
        for (route_id, route) in &edge.routes {
            self.routes.remove(route_id);
            if let Some(backend) = &route.backend {
                unuse(&mut self.backend_users, &backend.id, id);
            }
            for policy in policies_of(route) {
                unuse(&mut self.policy_users, &policy.id, id);
            }
            if let Some(at) = deadline(route) {
                self.deadlines.remove(&(at, route_id.clone()));
            }
        }
    }

    pub(crate) fn add_policy(&mut self, id: &IpPolicyId, policy: &IpPolicy) {
        for rule in policy.rules.keys() {
            self.rules.insert(rule.clone(), id.clone());
        }
    }

    pub(crate) fn remove_policy(&mut self, policy: &IpPolicy) {
        for rule in policy.rules.keys() {
            self.rules.remove(rule);
        }
    }

    pub(crate) fn add_domain(&mut self, id: &DomainId, domain: &Domain) {
        self.domains.insert(domain.host.clone(), id.clone());
    }

    pub(crate) fn remove_domain(&mut self, domain: &Domain) {
        self.domains.remove(&domain.host);
    }

    pub(crate) fn add_key(&mut self, id: &KeyId, key: &ApiKey) {
        self.tokens.insert(key.token_digest, id.clone());
    }

    pub(crate) fn remove_key(&mut self, key: &ApiKey) {
        self.tokens.remove(&key.token_digest);
    }

    /// The reserved domain, other than `without`, that a host is under: its own, or the nearest
    /// wildcard above it, however many labels up.
    pub(crate) fn domain_of(
        &self,
        host: &HostPattern,
        without: Option<&DomainId>,
    ) -> Option<&DomainId> {
        let reserved = |name: &HostPattern| {
            self.domains
                .get(name)
                .filter(|domain| Some(*domain) != without)
        };
        if let Some(domain) = reserved(host) {
            return Some(domain);
        }
        let mut name = host.suffix().unwrap_or(host.as_str());
        while let Some((_, above)) = name.split_once('.') {
            let wildcard = HostPattern::parse(&format!("*.{above}")).ok();
            if let Some(domain) = wildcard.as_ref().and_then(reserved) {
                return Some(domain);
            }
            name = above;
        }
        None
    }
}
