//! `ipRestriction`: names of IPPolicies, or ids of policies at the edge; their rules are pooled.

use model::{
    declaration::PolicyName,
    id::IpPolicyId,
    module::{IpRestriction, IpRules},
    object::ObjectName,
};
use resources::{kinds::Kind, module_set as written, problem::FieldPath, snapshot::ObjectKey};

use crate::{
    codes::Code,
    modules::POLICIES_MAX,
    policies,
    preflight::{Judge, Written},
    references::{Found, reference},
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
    let mut pool = Pool {
        policies: Vec::new(),
        somebody: false,
        whole: true,
    };
    for (index, name) in names.iter().enumerate() {
        pool.add(judge, &at.item(index), name);
    }
    let Pool {
        policies,
        somebody,
        whole,
    } = pool;
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

/// The policies of one restriction.
struct Pool {
    /// Each once, in the order written.
    policies: Vec<PolicyName>,
    /// Whether any rule may let somebody in.
    somebody: bool,
    /// Whether all of them are known.
    whole: bool,
}

impl Pool {
    fn add(&mut self, judge: &mut Judge<'_, '_>, field: &FieldPath, name: &str) {
        let policy = if let Ok(id) = IpPolicyId::parse(name) {
            // Only the edge knows its rules: it refuses the route if there is no such policy.
            self.somebody = true;
            PolicyName::AtEdge(id)
        } else if let Some(rules) = named(judge, field, name) {
            judge.content("policy", &rules);
            self.somebody |= rules.allows_somebody();
            PolicyName::Declared(ObjectName::new(judge.namespace, name))
        } else {
            self.whole = false;
            return;
        };
        if !self.policies.contains(&policy) {
            self.policies.push(policy);
        }
    }
}

/// The rules of the IPPolicy of this name.
fn named(judge: &mut Judge<'_, '_>, field: &FieldPath, name: &str) -> Option<IpRules> {
    let key = ObjectKey::new(judge.namespace, name);
    let kind = (Kind::IpPolicy, &judge.references.input.snapshot.ip_policies);
    let remedy = if name.starts_with("ipp_") {
        "create it, or write the id of a policy at the edge whole: ipp_ and 27 letters and digits"
    } else {
        "create it in the same namespace, or name another one"
    };
    let missing = (Code::PolicyMissing, remedy);
    let from = (judge.site, field);
    let Found::Sound(_, policy) = judge
        .references
        .find(kind, &key, from, missing, judge.findings)
    else {
        return None;
    };
    let object = reference(Kind::IpPolicy, &key);
    let rules = policies::rules(policy);
    if rules.is_none() {
        let message = format!("{object} cannot be used");
        judge.report(Code::ModuleInvalid, field, message, "write each range once");
    }
    judge.findings.rests_on.insert(object);
    rules
}
