//! Hosts with their routes: which declaration stands at each place (R5), what it amounts to, and
//! why it may not open.

use std::{
    collections::{BTreeMap, BTreeSet},
    rc::Rc,
};

use model::{
    backend::DeclaredBackend,
    complete_set::CompleteSet,
    declaration::{
        DeclaredCertificate, DeclaredHost, DeclaredPolicy, DeclaredRoute, Outcome, PolicyName,
    },
    diagnostic::{Cause, Diagnostic, Severity},
    host::HostPattern,
    id::BackendId,
    module::{IpRules, ModuleKind, Modules},
    object::{ObjectName, ObjectRef},
    place::Match,
    secret::Digest,
};
use resources::problem::FieldPath;
use serde::Serialize;

use crate::{
    annotations::HAND_OVER,
    codes::Code,
    demands::{self, Demands},
    digest::Digester,
    findings::{Findings, Verdict},
    pending::Pending,
    place,
    references::{References, annotation},
    wish::{Certificate, Wish, WishedHost, WishedRoute},
};

/// What assembling hosts needs, and what it adds to.
pub(crate) struct Assembly<'r, 'a> {
    pub(crate) references: &'r References<'a>,
    pub(crate) pending: &'r Pending,
    pub(crate) policies: &'r BTreeMap<ObjectName, DeclaredPolicy>,
    pub(crate) backends: BTreeMap<BackendId, DeclaredBackend>,
    pub(crate) diagnostics: Vec<Diagnostic>,
}

/// A route of one of several declarations.
#[derive(Clone, Copy)]
struct Candidate<'w, 'a> {
    wish: &'w Wish<'a>,
    host: &'w WishedHost,
    route: &'w WishedRoute,
}

/// Findings that concern every route of a host.
struct HostFindings {
    demands: Demands,
    /// Declarations that may have further paths on this host at or below a path (R3), each with
    /// its reason.
    unclear: Vec<(Option<ObjectRef>, String, Diagnostic)>,
}

impl Assembly<'_, '_> {
    /// Every host that is declared, or may be.
    pub(crate) fn hosts(&mut self, wishes: &[Wish<'_>]) -> BTreeMap<HostPattern, DeclaredHost> {
        let mut by_host: BTreeMap<&HostPattern, Vec<&Wish<'_>>> = BTreeMap::new();
        for wish in wishes {
            self.diagnostics
                .extend_from_slice(&wish.findings.diagnostics);
            self.diagnostics
                .extend_from_slice(&wish.edge_findings.diagnostics);
            for host in wish.hosts.keys() {
                by_host.entry(host).or_default().push(wish);
            }
        }
        let mut hosts: BTreeMap<_, _> = by_host
            .into_iter()
            .map(|(host, wishes)| (host.clone(), self.host(host, &wishes)))
            .collect();
        for (host, reason) in &self.pending.scanned {
            if !hosts.contains_key(host) {
                hosts.insert(host.clone(), self.scanned(host, reason));
            }
        }
        hosts
    }

    fn host(&mut self, host: &HostPattern, wishes: &[&Wish<'_>]) -> DeclaredHost {
        let away = self
            .references
            .input
            .records
            .hosts
            .get(host)
            .is_some_and(|record| {
                record
                    .routes
                    .values()
                    .any(|route| route.is_open && self.pending.is_pending(&route.owner))
            });
        let demands = demands::combine(self.references, host, wishes, away);
        self.diagnostics
            .extend_from_slice(&demands.findings.diagnostics);
        let mut unclear: Vec<_> = wishes
            .iter()
            .flat_map(|wish| {
                wish.hosts[host]
                    .routes
                    .iter()
                    .map(move |route| (wish, route))
            })
            .filter(|(_, route)| route.is_guess)
            .map(|(wish, route)| {
                let below = route.place.path.clone();
                let message = if below == "/" {
                    format!(
                        "{} may have further paths on {host} that could not be read",
                        wish.object
                    )
                } else {
                    format!(
                        "{} has a path on {host} that could not be read and begins with {below}",
                        wish.object
                    )
                };
                let reason = wish.site().finding(
                    Code::NotReadYet,
                    &FieldPath::root(),
                    message,
                    "mend that object; until then nothing else opens or changes here",
                );
                (Some(wish.object.clone()), below, reason)
            })
            .collect();
        unclear.extend(
            self.pending
                .scanned
                .get(host)
                .map(|reason| (None, String::from("/"), reason.clone())),
        );
        let found = HostFindings { demands, unclear };

        let mut places: BTreeMap<&Match, Vec<Candidate<'_, '_>>> = BTreeMap::new();
        for wish in wishes {
            let wished = &wish.hosts[host];
            self.diagnostics
                .extend_from_slice(&wished.findings.diagnostics);
            for route in &wished.routes {
                places.entry(&route.place).or_default().push(Candidate {
                    wish,
                    host: wished,
                    route,
                });
            }
        }
        let mut routes = BTreeMap::new();
        for (place, candidates) in places {
            if let Some(chosen) = self.choose(host, place, candidates) {
                routes.insert(place.clone(), self.route(&found, chosen));
            }
        }
        self.pending_routes(host, &mut routes);
        let (certificate, keep_certificate) = self.certificate(host, wishes);
        DeclaredHost {
            namespace: wishes
                .first()
                .map(|wish| wish.object.namespace.clone())
                .unwrap_or_default(),
            heir: self.heir(host, wishes),
            demands: found.demands.known,
            certificate,
            keep_certificate,
            routes,
        }
    }

    /// Whom the owner gives the host to when it declares it no more (R20): the oldest declaration
    /// that says so is believed, and the others are told.
    fn heir(&mut self, host: &HostPattern, wishes: &[&Wish<'_>]) -> Option<String> {
        let mut heirs = wishes
            .iter()
            .filter_map(|wish| Some((wish, wish.hand_over.as_ref()?)));
        let (first, heir) = heirs.next()?;
        for (wish, _) in heirs.filter(|(_, other)| *other != heir) {
            let message = format!(
                "{} hands {host} over to the namespace {heir}, and is older, so that counts",
                first.object
            );
            self.diagnostics.push(wish.site().finding(
                Code::HandOverConflict,
                &annotation(HAND_OVER),
                message,
                "name one namespace in all declarations of the host",
            ));
        }
        Some(heir.clone())
    }

    /// The declaration that stands at a place: the one that the edge remembers, or else the
    /// oldest. A default backend stands back for any rule. The others are told.
    fn choose<'w, 'a>(
        &mut self,
        host: &HostPattern,
        place: &Match,
        candidates: Vec<Candidate<'w, 'a>>,
    ) -> Option<Candidate<'w, 'a>> {
        let (defaults, rules): (Vec<_>, Vec<_>) =
            candidates.into_iter().partition(|c| c.route.is_default);
        let candidates = if rules.is_empty() { defaults } else { rules };
        let recorded = self
            .references
            .input
            .records
            .hosts
            .get(host)
            .and_then(|record| record.routes.get(place));
        let chosen = recorded
            .and_then(|record| {
                candidates
                    .iter()
                    .position(|c| c.wish.object == record.owner)
            })
            .unwrap_or(0);
        for (index, loser) in candidates.iter().enumerate() {
            if index != chosen {
                let winner = &candidates[chosen];
                let message = if winner.route.field.as_str().is_empty() {
                    format!(
                        "{place} on {host} is declared twice by {}",
                        winner.wish.object
                    )
                } else if loser.wish.object == winner.wish.object {
                    format!(
                        "{place} on {host} is declared twice here; {} is used",
                        winner.route.field
                    )
                } else {
                    format!(
                        "{place} on {host} is declared by {} already, which was there first",
                        winner.wish.object
                    )
                };
                let diagnostic = loser.wish.site().finding(
                    Code::RouteConflict,
                    &loser.route.field,
                    message,
                    "take it out of one of them",
                );
                self.diagnostics.push(diagnostic);
            }
        }
        candidates.get(chosen).copied()
    }

    fn route(&mut self, host: &HostFindings, candidate: Candidate<'_, '_>) -> DeclaredRoute {
        let Candidate {
            wish,
            host: wished,
            route,
        } = candidate;
        let judged = &route.judged;
        let mut findings = wish.findings.clone();
        for found in [
            &wish.edge_findings,
            &host.demands.findings,
            &wished.findings,
        ] {
            findings.absorb(found);
        }
        for found in [&judged.route, &route.findings, &route.backend.findings] {
            findings.absorb(found);
            self.diagnostics.extend_from_slice(&found.diagnostics);
        }
        // Of the unclear declaration itself only what would otherwise open is held.
        let sound = findings.verdict() == Verdict::Sound;
        for (of, below, reason) in &host.unclear {
            let may_answer = route.place.path.starts_with(below.as_str())
                || route.place.path == below.trim_end_matches('/');
            let own = of.as_ref() == Some(&wish.object);
            if may_answer && !route.is_guess && (sound || !own) {
                findings.push(reason.clone());
                self.diagnostics.push(reason.clone());
            }
        }
        let mut kinds = judged.kinds.clone();
        kinds.extend(
            host.demands
                .known
                .iter()
                .flat_map(model::module::EdgeDemands::kinds),
        );
        let verdict = findings.verdict();
        let Findings {
            mut diagnostics,
            rests_on,
            missing,
        } = findings;
        diagnostics.sort();
        diagnostics.dedup();
        let (outcome, digest) = match (verdict, &host.demands.known, &route.backend.port) {
            (Verdict::Pending, _, _) => (Outcome::Pending, None),
            (Verdict::Sound, Some(demands), Some(port)) => {
                let mut backend = DeclaredBackend {
                    service: port.clone(),
                    external: route.backend.external.clone(),
                    endpoints: BTreeSet::new(),
                };
                let set = CompleteSet {
                    demands: demands.clone(),
                    modules: judged.modules.clone(),
                    backend: backend.id(),
                };
                self.backends.entry(set.backend.clone()).or_insert_with(|| {
                    if backend.external.is_none() {
                        backend.endpoints = self.references.endpoints(port);
                    }
                    backend
                });
                let digest = self.digest_of_set(&set);
                (Outcome::Complete(set), Some(digest))
            }
            (Verdict::Invalid | Verdict::Sound, _, _) => {
                let digest = self.digest_of_fault(route, &diagnostics);
                (Outcome::Invalid { missing }, digest)
            }
        };
        DeclaredRoute {
            place: route.place.clone(),
            owner: wish.object.clone(),
            outcome,
            digest,
            rests_on,
            has_access_modules: wish.may_restrict || kinds.iter().any(|kind| kind.is_access()),
            modules: names(&kinds, &wish.unread_modules),
            backend: route.backend.text.clone(),
            reasons: diagnostics,
        }
    }

    /// Of a set that can be served: everything that it says, the content of policies included.
    fn digest_of_set(&self, set: &CompleteSet<PolicyName>) -> Digest {
        #[derive(Serialize, PartialEq, Eq, PartialOrd, Ord)]
        struct Policy<'p> {
            name: PolicyName,
            rules: Option<&'p IpRules>,
        }
        let CompleteSet {
            demands,
            modules,
            backend,
        } = set;
        let resolve = |name| -> Result<_, std::convert::Infallible> {
            let rules = match &name {
                PolicyName::Declared(object) => {
                    self.policies.get(object).map(|policy| &policy.rules)
                }
                PolicyName::AtEdge(_) => None,
            };
            Ok(Policy { name, rules })
        };
        let mut modules: Modules<Policy<'_>> = match modules.clone().with_policies(resolve) {
            Ok(modules) => modules,
            Err(never) => match never {},
        };
        if let Some(restriction) = &mut modules.ip_restriction {
            restriction.policies.sort();
        }
        let mut digester = Digester::new(self.references.input.key, "set");
        digester.add("demands", demands);
        digester.add("modules", &modules);
        digester.add("backend", backend);
        digester.finish()
    }

    /// Of a declaration that cannot be served: what it says, and what is wrong with it. None
    /// where something is not there: losing an object changes nobody's declaration.
    fn digest_of_fault(&self, route: &WishedRoute, diagnostics: &[Diagnostic]) -> Option<Digest> {
        let errors: Vec<_> = diagnostics
            .iter()
            .filter(|d| d.severity == Severity::Error)
            .collect();
        if errors
            .iter()
            .any(|d| matches!(d.cause, Cause::Missing | Cause::Absent | Cause::Pending))
        {
            return None;
        }
        let mut digester = Digester::new(self.references.input.key, "fault");
        digester.add("modules", &route.judged.content);
        digester.add("backend", &route.backend.port);
        for Diagnostic {
            object,
            field,
            position: _,
            code,
            severity: _,
            cause,
            message,
            remedy: _,
        } in errors
        {
            digester.add("error", &(object, field, code, cause, message));
        }
        Some(digester.finish())
    }

    /// Places whose recorded owner may still declare them though it cannot be read: nothing
    /// changes there, whoever else declares them (R5, R19).
    fn pending_routes(&mut self, host: &HostPattern, routes: &mut BTreeMap<Match, DeclaredRoute>) {
        let Some(record) = self.references.input.records.hosts.get(host) else {
            return;
        };
        for (place, recorded) in &record.routes {
            let Some(route) = routes.get_mut(place) else {
                continue;
            };
            if route.owner == recorded.owner || !self.pending.is_pending(&recorded.owner) {
                continue;
            }
            let message = format!(
                "{place} on {host} is {}'s, which has not been read yet",
                recorded.owner
            );
            let reason = Diagnostic {
                object: recorded.owner.clone(),
                field: String::new(),
                position: None,
                code: Code::NotReadYet.name().to_owned(),
                severity: Code::NotReadYet.severity(),
                cause: Code::NotReadYet.cause(),
                message,
                remedy: String::from("nothing changes there until it has been"),
            };
            self.diagnostics.push(reason.clone());
            route.owner = recorded.owner.clone();
            route.outcome = Outcome::Pending;
            route.digest = None;
            route.reasons = vec![reason];
        }
    }

    /// The certificate of the oldest declaration that brings one.
    fn certificate(
        &mut self,
        host: &HostPattern,
        wishes: &[&Wish<'_>],
    ) -> (Option<DeclaredCertificate>, bool) {
        let mut shown: Option<&Rc<DeclaredCertificate>> = None;
        let mut keep = false;
        for wish in wishes {
            let wished = &wish.hosts[host];
            match (&wished.certificate, shown) {
                (Certificate::None, _) => {}
                (Certificate::Unusable, None) => keep = true,
                (Certificate::Unusable, Some(_)) => {}
                (Certificate::Sound(certificate), None) if !keep => shown = Some(certificate),
                (Certificate::Sound(certificate), Some(first)) if certificate == first => {}
                (Certificate::Sound(_), _) => {
                    let message = format!(
                        "an older Ingress brings another certificate for {host}, which is shown instead"
                    );
                    let diagnostic = wish.site().finding(
                        Code::CertificateConflict,
                        &FieldPath::from("spec.tls"),
                        message,
                        "keep the certificate in one of them",
                    );
                    self.diagnostics.push(diagnostic);
                }
            }
        }
        (
            shown.map(|certificate| DeclaredCertificate::clone(certificate)),
            keep,
        )
    }

    /// A host that only the text of an unreadable file names: closed if it is new (R19).
    fn scanned(&mut self, host: &HostPattern, reason: &Diagnostic) -> DeclaredHost {
        let place = place::everything();
        let record = self.references.input.records.hosts.get(host);
        let route = DeclaredRoute {
            place: place.clone(),
            owner: reason.object.clone(),
            outcome: Outcome::Pending,
            digest: None,
            rests_on: BTreeSet::new(),
            has_access_modules: true,
            modules: Vec::new(),
            backend: None,
            reasons: vec![reason.clone()],
        };
        DeclaredHost {
            namespace: record
                .and_then(|record| record.namespace.clone())
                .unwrap_or_default(),
            heir: record.and_then(|record| record.heir.clone()),
            demands: None,
            certificate: None,
            keep_certificate: true,
            // What is recorded there is pending, and so has its place already.
            routes: if record.is_some() {
                BTreeMap::new()
            } else {
                BTreeMap::from([(place, route)])
            },
        }
    }
}

/// Names of modules as resources write them, each once, in order.
fn names(kinds: &BTreeSet<ModuleKind>, unread: &[String]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for name in kinds
        .iter()
        .map(|kind| kind.name().to_owned())
        .chain(unread.iter().cloned())
    {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}
