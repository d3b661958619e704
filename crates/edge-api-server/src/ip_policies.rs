//! `/ip_policies` and `/ip_policy_rules`

use std::collections::BTreeSet;

use edge_api::ip_policy::{
    IpPolicy, IpPolicyRule, RuleCreate, RulePatch, read_create, read_update,
};
use edge_state::command::Command;
use model::id::{IpPolicyId, IpRuleId};

use crate::{
    answer::{Answer, Outcome},
    call::Call,
    collection::Collection,
    edges::texts,
    ids, views,
};

pub(crate) static POLICIES: Collection<IpPolicyId, IpPolicy> = Collection {
    parse: IpPolicyId::parse,
    ids: |state| Box::new(state.ip_policies.keys()),
    find: |base, state, id| Some(views::ip_policy(base, id, state.ip_policies.get(id)?)),
    update: |id, members| {
        let texts = texts(read_update(members, id.as_str())?);
        Ok(Command::UpdateIpPolicy { id, texts })
    },
    delete: |id| Command::DeleteIpPolicy { id },
};

/// The rules of all policies together.
pub(crate) static RULES: Collection<IpRuleId, IpPolicyRule> = Collection {
    parse: IpRuleId::parse,
    ids: |state| {
        let policies = state.ip_policies.values();
        let ids: BTreeSet<_> = policies.flat_map(|policy| policy.rules.keys()).collect();
        Box::new(ids.into_iter())
    },
    find: |base, state, id| {
        let mut policies = state.ip_policies.iter();
        let (policy, rule) =
            policies.find_map(|(policy, content)| Some((policy, content.rules.get(id)?)))?;
        Some(views::ip_rule(base, id, policy, rule))
    },
    update: |id, members| {
        let RulePatch {
            cidr,
            texts: written,
        } = RulePatch::read(members, id.as_str())?;
        let texts = texts(written);
        Ok(Command::UpdateIpRule { id, cidr, texts })
    },
    delete: |id| Command::DeleteIpRule { id },
};

pub(crate) async fn create(call: Call) -> Outcome {
    let texts = texts(read_create(call.members()?)?);
    let id = IpPolicyId::from_bits(ids::bits()?);
    let command = Command::CreateIpPolicy {
        id: id.clone(),
        texts,
    };
    POLICIES.make(&call, id, command).await
}

pub(crate) async fn create_rule(call: Call) -> Outcome {
    let RuleCreate {
        policy,
        cidr,
        action,
        texts: written,
    } = RuleCreate::read(call.members()?)?;
    let id = IpRuleId::from_bits(ids::bits()?);
    let about = policy.clone();
    let command = Command::CreateIpRule {
        policy,
        id: id.clone(),
        cidr,
        action,
        texts: texts(written),
    };
    let shown = RULES.write(&call, &id, command).await?;
    Ok(Answer::created(&shown)?.about(about).about(id))
}
