//! The modules of an Ingress: the sets that its annotation names, merged in that order, module by
//! module, and judged once for all Ingresses that name the same.

use std::{collections::BTreeMap, rc::Rc};

use model::object::ObjectRef;
use resources::{
    kinds::Kind,
    module_set::{Modules, NgrokModuleSet},
    position::Origin,
    problem::FieldPath,
    snapshot::ObjectKey,
    traffic_policy::NgrokTrafficPolicy,
};

use crate::{
    annotations::{MODULES, TRAFFIC_POLICY},
    codes::Code,
    findings::{Findings, Site, Verdict},
    preflight::{Chosen, Judged, PolicyDocument, Written, judge},
    references::{Found, References, annotation, reference},
    wish::{EdgeWide, Wish},
};

/// Module sets judged so far, by namespace, names, and traffic policy.
pub(crate) struct ModuleSets<'r, 'a> {
    references: &'r References<'a>,
    judged: BTreeMap<(String, Vec<String>, Option<String>), Merged>,
}

#[derive(Clone)]
struct Merged {
    judged: Rc<Judged>,
    /// Access modules that a later set takes from an earlier one, in words.
    replaced: Vec<String>,
    /// Whether there are two traffic policies.
    two_policies: bool,
}

/// What the annotations name and could be read.
#[derive(Default)]
struct Named {
    sets: Vec<String>,
    policy: Option<String>,
    /// A set is missing or undecodable: it may demand anything.
    unknown: bool,
    /// A set has not been read.
    pending: bool,
    /// An undecodable set names a module that concerns the whole edge.
    edge_wide: bool,
}

impl<'r, 'a> ModuleSets<'r, 'a> {
    pub(crate) const fn new(references: &'r References<'a>) -> Self {
        Self {
            references,
            judged: BTreeMap::new(),
        }
    }

    /// Reads the annotations of an Ingress: the modules of all its routes. What is wrong with
    /// them becomes a finding of the wish.
    pub(crate) fn of(
        &mut self,
        wish: &mut Wish<'_>,
        annotations: &BTreeMap<String, String>,
    ) -> Rc<Judged> {
        let namespace = wish.object.namespace.clone();
        let mut findings = std::mem::take(&mut wish.findings);
        let named = self.name(wish, annotations, &mut findings);
        wish.may_restrict |= named.unknown || named.pending;
        let key = (namespace, named.sets, named.policy);
        let merged = match self.judged.get(&key) {
            Some(merged) => merged.clone(),
            None => {
                let merged = self.merge(&key);
                self.judged.insert(key, merged.clone());
                merged
            }
        };
        let site = wish.site();
        for message in &merged.replaced {
            findings.push(site.finding(
                Code::ModuleReplaced,
                &annotation(MODULES),
                message.clone(),
                "name the stricter set last if that is not meant",
            ));
        }
        if merged.two_policies {
            findings.push(site.finding(
                Code::TrafficPolicyTwice,
                &annotation(TRAFFIC_POLICY),
                "a module set of this Ingress has a policy already",
                "keep one of them",
            ));
        }
        wish.findings = findings;
        wish.edge_findings.absorb(&merged.judged.edge);
        let known = merged.judged.demands.clone();
        wish.edge_wide = match merged.judged.edge.verdict() {
            Verdict::Pending => EdgeWide::Pending,
            _ if named.pending => EdgeWide::Pending,
            Verdict::Invalid => EdgeWide::Failed,
            Verdict::Sound if named.edge_wide => EdgeWide::Failed,
            Verdict::Sound if named.unknown => EdgeWide::Unknown(known),
            Verdict::Sound => EdgeWide::Known(known),
        };
        merged.judged
    }

    /// The objects that the annotations name.
    fn name(
        &self,
        wish: &mut Wish<'_>,
        annotations: &BTreeMap<String, String>,
        findings: &mut Findings,
    ) -> Named {
        let references = self.references;
        let snapshot = references.input.snapshot;
        let mut named = Named::default();
        let field = annotation(MODULES);
        for name in names(wish, annotations, MODULES, findings) {
            let key = ObjectKey::new(wish.object.namespace.as_str(), name.as_str());
            let missing = (
                Code::ModuleSetMissing,
                "create it in the same namespace, or name another one",
            );
            let before = findings.diagnostics.len();
            let kind = (Kind::NgrokModuleSet, &snapshot.module_sets);
            match references.find(kind, &key, (wish.site(), &field), missing, findings) {
                Found::Sound(..) => {
                    findings
                        .rests_on
                        .insert(reference(Kind::NgrokModuleSet, &key));
                    named.sets.push(name);
                }
                Found::Unusable => {
                    let mut fresh = Findings::default();
                    fresh
                        .diagnostics
                        .extend_from_slice(&findings.diagnostics[before..]);
                    named.pending |= fresh.verdict() == Verdict::Pending;
                    let salvaged = snapshot
                        .module_sets
                        .get(&key)
                        .and_then(|object| object.value.as_ref().err());
                    let modules = salvaged.map_or(&[][..], |broken| &broken.salvaged.modules);
                    named.edge_wide |= names_edge_wide(modules);
                    named.unknown |= fresh.verdict() == Verdict::Invalid;
                    wish.unread_modules.extend_from_slice(modules);
                }
            }
        }
        named.policy = self.traffic_policy(wish, annotations, findings);
        named
    }

    /// The traffic policy that an Ingress names.
    fn traffic_policy(
        &self,
        wish: &mut Wish<'_>,
        annotations: &BTreeMap<String, String>,
        findings: &mut Findings,
    ) -> Option<String> {
        let references = self.references;
        let snapshot = references.input.snapshot;
        let mut named = None;
        let field = annotation(TRAFFIC_POLICY);
        let policies = names(wish, annotations, TRAFFIC_POLICY, findings);
        if policies.len() > 1 {
            let message = "one route has one traffic policy, and this names several";
            findings.push(wish.site().finding(
                Code::TrafficPolicyTwice,
                &field,
                message,
                "keep one of them",
            ));
        }
        for name in policies {
            let key = ObjectKey::new(wish.object.namespace.as_str(), name.as_str());
            let missing = (
                Code::TrafficPolicyMissing,
                "create it in the same namespace, or name another one",
            );
            let kind = (Kind::NgrokTrafficPolicy, &snapshot.traffic_policies);
            match references.find(kind, &key, (wish.site(), &field), missing, findings) {
                Found::Sound(..) => {
                    findings
                        .rests_on
                        .insert(reference(Kind::NgrokTrafficPolicy, &key));
                    named = Some(name);
                }
                Found::Unusable => {
                    wish.may_restrict = true;
                    wish.unread_modules.push(String::from("policy"));
                }
            }
        }
        named
    }

    fn merge(&self, (namespace, sets, policy): &(String, Vec<String>, Option<String>)) -> Merged {
        let snapshot = self.references.input.snapshot;
        let key = |name: &String| ObjectKey::new(namespace.as_str(), name.as_str());
        let sets: Vec<(ObjectRef, &Origin, &NgrokModuleSet)> = sets
            .iter()
            .filter_map(|name| snapshot.module_sets.get(&key(name)))
            .filter_map(|object| {
                let set = object.value.as_ref().ok()?;
                Some((
                    reference(Kind::NgrokModuleSet, &object.key),
                    &object.origin,
                    set,
                ))
            })
            .collect();
        let mut chosen = Chosen::default();
        let mut replaced = Vec::new();
        for (object, origin, set) in &sets {
            overlay(
                &mut chosen,
                Site { object, origin },
                &set.modules,
                &mut replaced,
            );
        }
        let policy: Option<(ObjectRef, &Origin, &NgrokTrafficPolicy)> = policy
            .as_ref()
            .and_then(|name| snapshot.traffic_policies.get(&key(name)))
            .and_then(|object| {
                let policy = object.value.as_ref().ok()?;
                Some((
                    reference(Kind::NgrokTrafficPolicy, &object.key),
                    &object.origin,
                    policy,
                ))
            });
        let two_policies = policy.is_some() && chosen.policy.is_some();
        if let Some((object, origin, policy)) = &policy {
            let document = serde_json::Value::Object(policy.spec.policy.0.clone());
            chosen.policy = Some(Written {
                site: Site { object, origin },
                field: FieldPath::root().member("spec").member("policy"),
                content: PolicyDocument {
                    enabled: true,
                    document,
                },
            });
        }
        let judged = Rc::new(judge(self.references, namespace, &chosen));
        Merged {
            judged,
            replaced,
            two_policies,
        }
    }
}

/// Whether something that could not be understood may concern the whole edge (R13).
pub(crate) fn names_edge_wide(modules: &[String]) -> bool {
    modules
        .iter()
        .any(|module| module.to_ascii_lowercase().contains("tls"))
}

/// The names that an annotation lists. One that says nothing is an error (R14).
fn names(
    wish: &Wish<'_>,
    annotations: &BTreeMap<String, String>,
    annotation_name: &str,
    findings: &mut Findings,
) -> Vec<String> {
    let Some(value) = annotations.get(annotation_name) else {
        return Vec::new();
    };
    let names: Vec<String> = value
        .split(',')
        .map(|name| name.trim().to_owned())
        .collect();
    if names.iter().any(String::is_empty) {
        let message = format!("{annotation_name} is {value:?}, where names are needed");
        let remedy = "write the names, separated by commas, or delete the annotation";
        findings.push(wish.site().finding(
            Code::AnnotationEmpty,
            &annotation(annotation_name),
            message,
            remedy,
        ));
    }
    names.into_iter().filter(|name| !name.is_empty()).collect()
}

/// Lays a set over what earlier ones have chosen: a module replaces the earlier one entirely.
fn overlay<'s>(
    chosen: &mut Chosen<'s>,
    site: Site<'s>,
    modules: &'s Modules,
    replaced: &mut Vec<String>,
) {
    let Modules {
        circuit_breaker,
        compression,
        headers,
        ip_restriction,
        oauth,
        policy,
        oidc,
        saml,
        tls_termination,
        mutual_tls,
        webhook_verification,
    } = modules;
    let policy = policy.as_ref().map(|policy| PolicyDocument {
        enabled: policy.enabled != Some(false),
        document: serde_json::to_value(policy).expect("a decoded policy serialises"),
    });
    let mut lay = Lay { site, replaced };
    lay.quietly(
        "circuitBreaker",
        &mut chosen.circuit_breaker,
        circuit_breaker.as_ref(),
    );
    lay.quietly("compression", &mut chosen.compression, compression.as_ref());
    lay.quietly("headers", &mut chosen.headers, headers.as_ref());
    lay.aloud(
        "ipRestriction",
        &mut chosen.ip_restriction,
        ip_restriction.as_ref(),
    );
    lay.aloud("oauth", &mut chosen.oauth, oauth.as_ref());
    lay.aloud("policy", &mut chosen.policy, policy);
    lay.aloud("oidc", &mut chosen.oidc, oidc.as_ref());
    lay.aloud("saml", &mut chosen.saml, saml.as_ref());
    lay.aloud(
        "tlsTermination",
        &mut chosen.tls_termination,
        *tls_termination,
    );
    lay.aloud("mutualTLS", &mut chosen.mutual_tls, mutual_tls.as_ref());
    lay.aloud(
        "webhookVerification",
        &mut chosen.webhook_verification,
        webhook_verification.as_ref(),
    );
}

struct Lay<'s, 'm> {
    site: Site<'s>,
    replaced: &'m mut Vec<String>,
}

impl<'s> Lay<'s, '_> {
    fn quietly<T>(&self, name: &str, slot: &mut Option<Written<'s, T>>, content: Option<T>) {
        if let Some(content) = content {
            let field = FieldPath::root().member("modules").member(name);
            *slot = Some(Written {
                site: self.site,
                field,
                content,
            });
        }
    }

    /// An access module that is replaced by another one is worth a word.
    fn aloud<T: PartialEq>(
        &mut self,
        name: &str,
        slot: &mut Option<Written<'s, T>>,
        content: Option<T>,
    ) {
        if let (Some(earlier), Some(content)) = (slot.as_ref(), &content)
            && earlier.content != *content
        {
            self.replaced.push(format!(
                "{name} of {} takes the place of that of {}, which has no effect",
                self.site.object, earlier.site.object
            ));
        }
        self.quietly(name, slot, content);
    }
}
