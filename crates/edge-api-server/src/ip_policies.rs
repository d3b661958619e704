//! `/ip_policies` and `/ip_policy_rules`

use std::collections::BTreeMap;

use axum::extract::Path;
use edge_api::{
    error::ApiError,
    ip_policy::{IpPolicy, IpPolicyRule, RuleCreate, RulePatch, read_create, read_update},
};
use edge_state::{
    command::Command,
    state::{EdgeState, IpRule},
};
use edge_store::Published;
use model::id::{IpPolicyId, IpRuleId};

use crate::{
    answer::{Answer, Failure, Outcome},
    call::Call,
    edges::texts,
    ids, page, views,
};

fn show(call: &Call, published: &Published, id: &IpPolicyId) -> Result<IpPolicy, Failure> {
    match published.state.ip_policies.get(id) {
        Some(policy) => Ok(views::ip_policy(&call.base, id, policy)),
        None => Err(ApiError::not_found().into()),
    }
}

pub(crate) async fn list(call: Call) -> Outcome {
    let published = call.state();
    page::answer(
        &call,
        IpPolicyId::parse,
        published.state.ip_policies.iter(),
        |id, policy| Some(views::ip_policy(&call.base, id, policy)),
    )
}

pub(crate) async fn create(call: Call) -> Outcome {
    let texts = texts(read_create(call.members()?)?);
    let id = IpPolicyId::from_bits(ids::bits()?);
    let _turn = call.turn().await;
    let applied = call
        .apply(Command::CreateIpPolicy {
            id: id.clone(),
            texts,
        })
        .await?;
    Ok(Answer::created(&show(&call, &applied.published, &id)?)?.about(id))
}

pub(crate) async fn get(Path(id): Path<String>, call: Call) -> Outcome {
    call.no_parameters()?;
    let id = page::id(&id, IpPolicyId::parse)?;
    Answer::ok(&show(&call, &call.state(), &id)?)
}

pub(crate) async fn update(Path(id): Path<String>, call: Call) -> Outcome {
    let id = page::id(&id, IpPolicyId::parse)?;
    let texts = texts(read_update(call.members()?, id.as_str())?);
    let _turn = call.turn().await;
    let applied = call
        .apply(Command::UpdateIpPolicy {
            id: id.clone(),
            texts,
        })
        .await?;
    Ok(Answer::ok(&show(&call, &applied.published, &id)?)?.about(id))
}

pub(crate) async fn delete(Path(id): Path<String>, call: Call) -> Outcome {
    call.no_parameters()?;
    let id = page::id(&id, IpPolicyId::parse)?;
    let _turn = call.turn().await;
    call.apply(Command::DeleteIpPolicy { id: id.clone() })
        .await?;
    Ok(Answer::done().about(id))
}

/// Every rule of every policy, by its id.
fn rules(state: &EdgeState) -> BTreeMap<&IpRuleId, (&IpPolicyId, &IpRule)> {
    let mut rules = BTreeMap::new();
    for (policy, content) in &state.ip_policies {
        rules.extend(content.rules.iter().map(|(id, rule)| (id, (policy, rule))));
    }
    rules
}

fn show_rule(call: &Call, published: &Published, id: &IpRuleId) -> Result<IpPolicyRule, Failure> {
    let mut policies = published.state.ip_policies.iter();
    policies
        .find_map(|(policy, content)| {
            Some(views::ip_rule(
                &call.base,
                id,
                policy,
                content.rules.get(id)?,
            ))
        })
        .ok_or_else(|| ApiError::not_found().into())
}

pub(crate) async fn list_rules(call: Call) -> Outcome {
    let published = call.state();
    let rules = rules(&published.state);
    let items = rules.iter().map(|(id, rule)| (*id, rule));
    page::answer(&call, IpRuleId::parse, items, |id, (policy, rule)| {
        Some(views::ip_rule(&call.base, id, policy, rule))
    })
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
    let _turn = call.turn().await;
    let applied = call.apply(command).await?;
    Ok(
        Answer::created(&show_rule(&call, &applied.published, &id)?)?
            .about(about)
            .about(id),
    )
}

pub(crate) async fn get_rule(Path(id): Path<String>, call: Call) -> Outcome {
    call.no_parameters()?;
    let id = page::id(&id, IpRuleId::parse)?;
    Answer::ok(&show_rule(&call, &call.state(), &id)?)
}

pub(crate) async fn update_rule(Path(id): Path<String>, call: Call) -> Outcome {
    let id = page::id(&id, IpRuleId::parse)?;
    let RulePatch {
        cidr,
        texts: written,
    } = RulePatch::read(call.members()?, id.as_str())?;
    let _turn = call.turn().await;
    let command = Command::UpdateIpRule {
        id: id.clone(),
        cidr,
        texts: texts(written),
    };
    let applied = call.apply(command).await?;
    Ok(Answer::ok(&show_rule(&call, &applied.published, &id)?)?.about(id))
}

pub(crate) async fn delete_rule(Path(id): Path<String>, call: Call) -> Outcome {
    call.no_parameters()?;
    let id = page::id(&id, IpRuleId::parse)?;
    let _turn = call.turn().await;
    call.apply(Command::DeleteIpRule { id: id.clone() }).await?;
    Ok(Answer::done().about(id))
}
