//! IPPolicy objects: canonical rules, so that the same range written twice is the same (R16).

use std::collections::BTreeMap;

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use model::{
    declaration::DeclaredPolicy,
    module::{IpAction, IpRules},
    object::ObjectName,
};
use resources::{
    ip_policy::{IpPolicy, IpPolicyAction},
    kinds::Kind,
    problem::FieldPath,
};

use crate::{
    codes::Code,
    findings::{Findings, Site},
    references::{References, object_name, reference, spec},
};

/// Every valid policy, used or not.
pub(crate) fn declared(
    references: &References<'_>,
    findings: &mut Findings,
) -> BTreeMap<ObjectName, DeclaredPolicy> {
    let mut declared = BTreeMap::new();
    for (key, object) in &references.input.snapshot.ip_policies {
        let Ok(policy) = &object.value else { continue };
        match rules(policy) {
            Ok(rules) => {
                let description = policy.spec.common.description.clone();
                declared.insert(object_name(key), DeclaredPolicy { rules, description });
            }
            Err((field, message)) => {
                let object_ref = reference(Kind::IpPolicy, key);
                let site = Site { object: &object_ref, origin: &object.origin };
                findings.push(site.finding(Code::PolicyInvalid, &field, message, "write each range once, as its lowest address and a mask"));
            }
        }
    }
    declared
}

/// The rules of a policy, canonical.
///
/// # Errors
/// The field of the first rule that cannot be one, and why.
pub(crate) fn rules(policy: &IpPolicy) -> Result<IpRules, (FieldPath, String)> {
    let at = spec("rules");
    let mut rules = BTreeMap::new();
    for (index, rule) in policy.spec.rules.iter().enumerate() {
        let field = at.item(index).member("cidr");
        let Some(network) = network(&rule.cidr) else {
            return Err((field, format!("{:?} is not a range of addresses", rule.cidr)));
        };
        let action = match rule.action {
            IpPolicyAction::Allow => IpAction::Allow,
            IpPolicyAction::Deny => IpAction::Deny,
        };
        if rules.insert(network, action).is_some() {
            return Err((field, format!("{network} is there twice")));
        }
    }
    Ok(IpRules(rules))
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
