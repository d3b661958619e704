//! IPPolicy objects: canonical rules, so that the same range written twice is the same (R16).

use std::collections::BTreeMap;

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use model::{
    declaration::DeclaredPolicy,
    module::{IpAction, IpRules},
    object::ObjectName,
};
use resources::ip_policy::{IpPolicy, IpPolicyAction};

use crate::references::{References, object_name};

/// Every valid policy, used or not.
pub(crate) fn declared(references: &References<'_>) -> BTreeMap<ObjectName, DeclaredPolicy> {
    let policies = references.input.snapshot.ip_policies.iter();
    policies
        .filter_map(|(key, object)| {
            let policy = object.value.as_ref().ok()?;
            let description = policy.spec.common.description.clone();
            Some((
                object_name(key),
                DeclaredPolicy {
                    rules: rules(policy)?,
                    description,
                },
            ))
        })
        .collect()
}

/// The rules of a policy, canonical. A decoded policy has only ranges, each once; `None` all the
/// same rather than one rule fewer, should that ever be otherwise.
pub(crate) fn rules(policy: &IpPolicy) -> Option<IpRules> {
    let mut rules = BTreeMap::new();
    for rule in &policy.spec.rules {
        let action = match rule.action {
            IpPolicyAction::Allow => IpAction::Allow,
            IpPolicyAction::Deny => IpAction::Deny,
        };
        if rules.insert(network(&rule.cidr)?, action).is_some() {
            return None;
        }
    }
    Some(IpRules(rules))
}

/// A range in its canonical form: no host bits, and IPv4 written as IPv6 is IPv4.
fn network(text: &str) -> Option<IpNet> {
    let network: IpNet = text.parse().ok()?;
    if network.trunc() != network {
        return None;
    }
    Some(match network {
        IpNet::V4(_) => network,
        IpNet::V6(v6) => mapped(v6).map_or(network, IpNet::V4),
    })
}

fn mapped(v6: Ipv6Net) -> Option<Ipv4Net> {
    let length = v6.prefix_len().checked_sub(96)?;
    Ipv4Net::new(v6.addr().to_ipv4_mapped()?, length).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_range_has_one_spelling() {
        let net = |text| network(text).map(|n| n.to_string());
        assert_eq!(net("10.0.0.0/8").as_deref(), Some("10.0.0.0/8"));
        assert_eq!(net("::ffff:10.0.0.0/104").as_deref(), Some("10.0.0.0/8"));
        assert_eq!(net("2001:DB8:0::/32").as_deref(), Some("2001:db8::/32"));
        assert_eq!(net("10.0.0.1/8"), None);
        assert_eq!(net("10.0.0.1"), None);
    }
}
