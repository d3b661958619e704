//! `ipRestriction`: names of IPPolicies, or ids of policies at the edge; their rules are pooled.

use std::collections::BTreeSet;

use model::{
    declaration::PolicyName,
    id::IpPolicyId,
    module::{IpAction, IpRestriction},
};
use resources::{kinds::Kind, module_set as written, snapshot::ObjectKey};

use crate::{
    codes::Code,
    modules::POLICIES_MAX,
    policies,
    preflight::{Judge, Written},
    references::{Found, object_name, reference},
};

pub(crate) fn judge(
    judge: &mut Judge<'_, '_>,
    written: &Written<'_, &written::IpRestriction>,
) -> Option<IpRestriction<PolicyName>> {
    let at = written.field.member("policies");
    let names = &written.content.policies;
    if names.is_empty() {
        let message = "an IP restriction without policies would restrict nothing";
        judge.report(
            Code::ModuleInvalid,
            &at,
            message,
            "name an IPPolicy, or take ipRestriction out",
        );
        return None;
    }
    if names.len() > POLICIES_MAX {
        let message = format!("{} policies are more than {POLICIES_MAX}", names.len());
        judge.report(
            Code::ModuleInvalid,
            &at,
            message,
            "put the rules into fewer policies",
        );
    }
    let mut seen = BTreeSet::new();
    let mut policies = Vec::new();
    let mut somebody = false;
    let mut whole = true;
    for (index, name) in names.iter().enumerate() {
        let field = at.item(index);
        if let Ok(id) = IpPolicyId::parse(name) {
            // Only the edge knows its rules: it refuses the route if there is no such policy.
            somebody = true;
            if seen.insert(name) {
                policies.push(PolicyName::AtEdge(id));
            }
            continue;
        }
        let key = ObjectKey::new(judge.namespace, name.as_str());
        let kind = (Kind::IpPolicy, &judge.references.input.snapshot.ip_policies);
        let remedy = if name.starts_with("ipp_") {
            "create it, or write the id of a policy at the edge whole: ipp_ and 27 letters and digits"
        } else {
            "create it in the same namespace, or name another one"
        };
        let missing = (Code::PolicyMissing, remedy);
        let found =
            judge
                .references
                .find(kind, &key, (written.site, &field), missing, judge.findings);
        let Found::Sound(_, policy) = found else {
            whole = false;
            continue;
        };
        let object = reference(Kind::IpPolicy, &key);
        judge.findings.rests_on.insert(object.clone());
        match policies::rules(policy) {
            Some(rules) => {
                judge.content("policy", &rules);
                somebody |= rules.0.values().any(|action| *action == IpAction::Allow);
            }
            None => {
                let message = format!("{object} cannot be used");
                judge.report(
                    Code::ModuleInvalid,
                    &field,
                    message,
                    "write each range once",
                );
                whole = false;
            }
        }
        if seen.insert(name) {
            policies.push(PolicyName::Declared(object_name(&key)));
        }
    }
    if whole && !somebody {
        let message = "none of these policies allows anything, so nobody would get in";
        let remedy = "add an allow rule: 0.0.0.0/0 and ::/0 allow everybody who is not denied";
        judge.report(Code::NobodyAllowed, &at, message, remedy);
    }
    whole.then_some(IpRestriction {
        enabled: true,
        policies,
    })
}
