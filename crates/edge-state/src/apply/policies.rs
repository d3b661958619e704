//! Commands on IP policies. A version never changes; a change is a new version, and the routes
//! that no controller owns move to it in the same command (R17).

use std::{collections::BTreeMap, sync::Arc};

use ipnet::IpNet;
use model::{
    address,
    id::{IpPolicyId, IpRuleId},
    module::{IpAction, IpRules},
};

use super::{
    Attempt, Change, Changes, RefusalCode, RefusedCommand,
    checks::{TextCodes, at_most},
};
use crate::{
    command::Texts,
    state::{Edge, IpPolicy, IpRule, Meta, Route},
};

impl Attempt<'_> {
    pub(super) fn put_ip_policy(
        &self,
        id: &IpPolicyId,
        controller: &str,
        description: &str,
        metadata: &str,
        rules: &IpRules,
    ) -> Changes {
        let old = self.state.ip_policies.get(id).map(Arc::as_ref);
        self.may_own(old.map(|old| old.controller.as_deref()), Some(controller))?;
        if old.is_some_and(|old| old.versions.get(&old.newest) != Some(rules)) {
            return Err(RefusedCommand::new(
                RefusalCode::Immutable,
                format!("the IP policy {id} has other rules: other rules are another policy"),
            ));
        }
        if old.is_none() {
            self.room_for_one(
                self.state.ip_policies.len(),
                RefusalCode::TooManyPolicies,
                "IP policies",
            )?;
        }
        self.check_rule_count(rules.0.len())?;
        rules.0.keys().try_for_each(check_network)?;
        let texts = Texts {
            description: Some(description.to_owned()),
            metadata: Some(metadata.to_owned()),
        };
        let meta = self.meta(old.map(|old| &old.meta), &texts, TextCodes::OTHER)?;
        let made = Meta {
            created_at: meta.created_at,
            ..Meta::default()
        };
        let rule = |(cidr, action): (&IpNet, &IpAction)| {
            let rule_id = IpRuleId::derived(&[id.as_str(), &cidr.to_string()]);
            (
                rule_id,
                IpRule {
                    meta: made.clone(),
                    cidr: *cidr,
                    action: *action,
                },
            )
        };
        let policy = IpPolicy {
            meta,
            controller: Some(controller.to_owned()),
            rules: rules.0.iter().map(rule).collect(),
            newest: 1,
            versions: BTreeMap::from([(1, rules.clone())]),
        };
        Ok(vec![Change::Policy(id.clone(), Some(policy))])
    }

    pub(super) fn create_ip_policy(&self, id: &IpPolicyId, texts: &Texts) -> Changes {
        if self.state.ip_policies.contains_key(id) {
            return Err(RefusedCommand::new(
                RefusalCode::AlreadyExists,
                format!("the IP policy {id} is there already"),
            ));
        }
        self.room_for_one(
            self.state.ip_policies.len(),
            RefusalCode::TooManyPolicies,
            "IP policies",
        )?;
        let policy = IpPolicy {
            meta: self.meta(None, texts, TextCodes::OTHER)?,
            controller: None,
            rules: BTreeMap::new(),
            newest: 1,
            versions: BTreeMap::from([(1, IpRules::default())]),
        };
        Ok(vec![Change::Policy(id.clone(), Some(policy))])
    }

    pub(super) fn update_ip_policy(&self, id: &IpPolicyId, texts: &Texts) -> Changes {
        let mut policy = self.policy(id)?.clone();
        policy.meta = self.meta(Some(&policy.meta), texts, TextCodes::OTHER)?;
        Ok(vec![Change::Policy(id.clone(), Some(policy))])
    }

    pub(super) fn delete_ip_policy(&self, id: &IpPolicyId) -> Changes {
        self.policy(id)?;
        if let Some(user) = self
            .index
            .policy_users
            .get(id)
            .and_then(|users| users.first())
        {
            return Err(RefusedCommand::new(
                RefusalCode::PolicyInUse,
                format!("a route of the edge {user} refers to the IP policy"),
            ));
        }
        Ok(vec![Change::Policy(id.clone(), None)])
    }

    pub(super) fn create_ip_rule(
        &self,
        policy: &IpPolicyId,
        id: &IpRuleId,
        cidr: IpNet,
        action: IpAction,
        texts: &Texts,
    ) -> Changes {
        let old = self.policy_with_rules(policy)?;
        if self.index.rules.contains_key(id) {
            return Err(RefusedCommand::new(
                RefusalCode::AlreadyExists,
                format!("the rule {id} is there already"),
            ));
        }
        self.check_rule_count(old.rules.len() + 1)?;
        check_network(&cidr)?;
        let mut rules = old.rules.clone();
        rules.insert(
            id.clone(),
            IpRule {
                meta: self.meta(None, texts, TextCodes::OTHER)?,
                cidr,
                action,
            },
        );
        self.with_rules(policy, old, rules)
    }

    pub(super) fn update_ip_rule(
        &self,
        id: &IpRuleId,
        cidr: Option<IpNet>,
        texts: &Texts,
    ) -> Changes {
        let policy = self.policy_of_rule(id)?;
        let old = self.policy_with_rules(policy)?;
        let mut rules = old.rules.clone();
        if let Some(rule) = rules.get_mut(id) {
            rule.meta = self.meta(Some(&rule.meta), texts, TextCodes::OTHER)?;
            if let Some(cidr) = cidr {
                check_network(&cidr)?;
                rule.cidr = cidr;
            }
        }
        self.with_rules(policy, old, rules)
    }

    pub(super) fn delete_ip_rule(&self, id: &IpRuleId) -> Changes {
        let policy = self.policy_of_rule(id)?;
        let old = self.policy_with_rules(policy)?;
        let mut rules = old.rules.clone();
        rules.remove(id);
        self.with_rules(policy, old, rules)
    }

    /// The policy with these rules, as a new version if their content is new, and the moves.
    fn with_rules(
        &self,
        id: &IpPolicyId,
        old: &IpPolicy,
        rules: BTreeMap<IpRuleId, IpRule>,
    ) -> Changes {
        let mut content = IpRules::default();
        for rule in rules.values() {
            if content.0.insert(rule.cidr, rule.action).is_some() {
                return Err(RefusedCommand::new(
                    RefusalCode::RuleDuplicate,
                    format!("the policy has a rule for {} already", rule.cidr),
                ));
            }
        }
        let mut policy = IpPolicy {
            rules,
            ..old.clone()
        };
        if old.versions.get(&old.newest) == Some(&content) {
            return Ok(vec![Change::Policy(id.clone(), Some(policy))]);
        }
        policy.newest += 1;
        policy.versions.insert(policy.newest, content);
        let mut changes = Vec::new();
        for edge_id in self.index.policy_users.get(id).into_iter().flatten() {
            let Some(edge) = self.state.edges.get(edge_id) else {
                continue;
            };
            if edge.controller.is_some() {
                continue;
            }
            let mut edge = Edge::clone(edge);
            edge.routes
                .values_mut()
                .for_each(|route| move_to(route, id, policy.newest));
            changes.push(Change::Edge(edge_id.clone(), Some(edge)));
        }
        changes.push(Change::Policy(id.clone(), Some(policy)));
        Ok(changes)
    }

    fn policy(&self, id: &IpPolicyId) -> Result<&IpPolicy, RefusedCommand> {
        let policy = self.state.ip_policies.get(id).ok_or_else(|| {
            RefusedCommand::new(
                RefusalCode::PolicyNotFound,
                format!("there is no IP policy {id}"),
            )
        })?;
        self.may_change(policy.controller.as_deref())?;
        Ok(policy)
    }

    /// A policy whose rules may change: not a controller's, which is named by its content.
    fn policy_with_rules(&self, id: &IpPolicyId) -> Result<&IpPolicy, RefusedCommand> {
        let policy = self.policy(id)?;
        if policy.controller.is_some() {
            return Err(RefusedCommand::new(
                RefusalCode::Immutable,
                format!("the IP policy {id} is a controller's: its rules never change"),
            ));
        }
        Ok(policy)
    }

    fn policy_of_rule(&self, id: &IpRuleId) -> Result<&IpPolicyId, RefusedCommand> {
        self.index.rules.get(id).ok_or_else(|| {
            RefusedCommand::new(RefusalCode::RuleNotFound, format!("there is no rule {id}"))
        })
    }

    fn check_rule_count(&self, count: usize) -> Result<(), RefusedCommand> {
        let most = self.context.limits.rules_per_policy;
        at_most(
            count,
            most,
            RefusalCode::TooManyRules,
            "rules of an IP policy",
        )
    }
}

fn move_to(route: &mut Route, id: &IpPolicyId, version: u64) {
    if let Some(module) = &mut route.modules.ip_restriction {
        module
            .policies
            .iter_mut()
            .filter(|policy| policy.id == *id)
            .for_each(|policy| policy.version = version);
    }
    let also_refuse = std::mem::take(&mut route.also_refuse);
    route.also_refuse = also_refuse
        .into_iter()
        .map(|mut policy| {
            if policy.id == *id {
                policy.version = version;
            }
            policy
        })
        .collect();
}

/// Networks are canonical: no bits behind the mask, and IPv4 written as IPv4 (R16), since an
/// IPv4-mapped network would match nobody.
fn check_network(cidr: &IpNet) -> Result<(), RefusedCommand> {
    if cidr.trunc() != *cidr {
        return Err(RefusedCommand::new(
            RefusalCode::RuleNotLowest,
            format!(
                "{cidr} has bits set behind its mask: write {}",
                cidr.trunc()
            ),
        ));
    }
    if cidr.prefix_len() >= 96 && address::canonical(cidr.addr()) != cidr.addr() {
        return Err(RefusedCommand::new(
            RefusalCode::RuleCidr,
            format!("{cidr} is IPv4 written as IPv6: write it as IPv4"),
        ));
    }
    Ok(())
}
