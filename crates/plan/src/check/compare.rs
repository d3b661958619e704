//! Whether a step may take a request from one handling to another.

use std::{collections::BTreeSet, net::IpAddr};

use edge_state::exposure::{Handling, Served};
use ipnet::IpNet;
use model::{
    declaration::PolicyName,
    module::{IpRestriction, IpRules},
};
use routing::modules::ip_restriction::AddressSet;

use crate::inputs::Inputs;

/// Knows what is declared for each request of a cell.
pub(super) struct Judge<'a> {
    inputs: &'a Inputs<'a>,
    declared: Vec<Handling>,
}

impl<'a> Judge<'a> {
    pub(super) const fn new(inputs: &'a Inputs<'a>, declared: Vec<Handling>) -> Self {
        Self { inputs, declared }
    }

    /// The promise, for one request and one step.
    pub(super) fn judge(&self, index: usize, old: &Handling, new: &Handling) -> Result<(), String> {
        let Handling::Served(served) = new else {
            return Ok(());
        };
        let declared = self.declared.get(index);
        if new == old || Some(new) == declared {
            return Ok(());
        }
        // The same set, but what refuses on top of it differs: then every address counts (R17).
        let same =
            |other: &Handling| matches!(other, Handling::Served(other) if other.set == served.set);
        let fine = (same(old) || declared.is_some_and(same))
            && self
                .clients(&[Some(new), Some(old), declared])
                .into_iter()
                .all(|client| {
                    !served.admits(client)
                        || (same(old) && (old.admits(client) || self.newest_admits(served, client)))
                        || declared
                            .is_some_and(|declared| same(declared) && declared.admits(client))
                });
        if fine {
            return Ok(());
        }
        Err(format!(
            "it was {old:?}, would be {new:?}, and is declared to be {declared:?}"
        ))
    }
}

impl Judge<'_> {
    fn clients(&self, handlings: &[Option<&Handling>]) -> BTreeSet<IpAddr> {
        let policies = self.inputs.declared.policies.values();
        addresses(
            handlings,
            &policies.map(|policy| &policy.rules).collect::<Vec<_>>(),
        )
    }

    /// Whether the newest valid content of the policies of a held route admits a client: then the
    /// held route need not refuse it any more.
    fn newest_admits(&self, served: &Served, client: IpAddr) -> bool {
        let Some(IpRestriction {
            enabled: _,
            policies,
        }) = &served.set.modules.ip_restriction
        else {
            return true;
        };
        let newest: Vec<IpRules> = policies.iter().map(|rules| self.newest_of(rules)).collect();
        AddressSet::admitted_by(&newest).contains(client)
    }

    /// What the policy that has this content at the edge says now; itself if nothing newer is valid.
    fn newest_of(&self, rules: &IpRules) -> IpRules {
        let actual = self.inputs.actual;
        let newest = actual.ip_policies.iter().find_map(|(id, policy)| {
            policy.versions.values().find(|content| *content == rules)?;
            let name = match &policy.controller {
                Some(_) => PolicyName::Declared(policy.meta.metadata.parse().ok()?),
                None => PolicyName::AtEdge(id.clone()),
            };
            match name {
                PolicyName::Declared(name) => {
                    Some(&self.inputs.declared.policies.get(&name)?.rules)
                }
                PolicyName::AtEdge(_) => policy.versions.get(&policy.newest),
            }
        });
        newest.unwrap_or(rules).clone()
    }
}

/// An address of every range that these handlings tell apart: where a network begins, and right
/// behind where it ends.
fn addresses(handlings: &[Option<&Handling>], declared: &[&IpRules]) -> BTreeSet<IpAddr> {
    let mut found = BTreeSet::from([IpAddr::from([0, 0, 0, 0]), IpAddr::from([0_u16; 8])]);
    for handling in handlings.iter().flatten() {
        let Handling::Served(served) = handling else {
            continue;
        };
        let restricted = served.set.modules.ip_restriction.iter();
        let pooled = restricted.flat_map(|module| &module.policies);
        for rules in pooled.chain(&served.also_refuse) {
            rules.0.keys().for_each(|net| edges_of(net, &mut found));
        }
    }
    for rules in declared {
        rules.0.keys().for_each(|net| edges_of(net, &mut found));
    }
    found
}

fn edges_of(net: &IpNet, found: &mut BTreeSet<IpAddr>) {
    found.insert(net.network());
    match net.broadcast() {
        IpAddr::V4(last) => {
            found.extend(u32::from(last).checked_add(1).map(|n| IpAddr::V4(n.into())))
        }
        IpAddr::V6(last) => found.extend(
            u128::from(last)
                .checked_add(1)
                .map(|n| IpAddr::V6(n.into())),
        ),
    }
}
