//! Ingresses: rules, paths, the default backend and certificates of those that are ours.

use std::rc::Rc;

use model::{
    declaration::DeclaredCertificate, diagnostic::Diagnostic, host::HostPattern, place::MatchType,
    secret::Secret,
};
use resources::{
    ingress::{Ingress, IngressBackend, IngressPath, IngressSpec, IngressTls, PathType},
    kinds::Kind,
    problem::FieldPath,
    snapshot::{Object, ObjectKey, Presence},
};

use crate::{
    annotations::OWNER_LABEL,
    backend, certificate,
    classes::{self, Standing},
    codes::Code,
    findings::{Findings, Site},
    host_text, labelled,
    module_sets::ModuleSets,
    place::{self, Fault, Placed},
    preflight::Judged,
    references::{References, not_read_yet, reference, spec},
    salvage,
    wish::{Backend, Certificate, Unread, Wish, WishedRoute},
};

/// What all Ingresses ask for, and the namespaces of those of which even that cannot be told.
pub(crate) struct Wishes<'a> {
    pub(crate) wishes: Vec<Wish<'a>>,
    pub(crate) unclear: Vec<String>,
}

/// Reads every Ingress.
pub(crate) fn wishes<'a>(references: &References<'a>, loose: &mut Vec<Diagnostic>) -> Wishes<'a> {
    let mut sets = ModuleSets::new(references);
    let mut all = Wishes {
        wishes: Vec::new(),
        unclear: Vec::new(),
    };
    for object in references.input.snapshot.ingresses.values() {
        // What is being deleted declares nothing any more; what we made ourselves never did.
        if object.terminating || object.labels.contains_key(OWNER_LABEL) {
            continue;
        }
        match classes::standing(references, object, loose) {
            Standing::Others => {}
            Standing::Unclear => all.unclear.push(object.key.namespace.clone()),
            Standing::Ours(findings) => all
                .wishes
                .push(wish(references, &mut sets, object, findings)),
        }
    }
    all
}

fn wish<'a>(
    references: &References<'a>,
    sets: &mut ModuleSets<'_, 'a>,
    object: &'a Object<Ingress>,
    findings: Findings,
) -> Wish<'a> {
    let mut wish = Wish::new(Kind::Ingress, object);
    wish.findings = findings;
    labelled::judge(references, &mut wish, object);
    let judged = sets.of(&mut wish, &object.annotations);
    match &object.value {
        Ok(ingress) => {
            let mut reader = Reader {
                references,
                judged: &judged,
                namespace: &object.key.namespace,
            };
            reader.rules(&mut wish, &ingress.spec);
            reader.certificates(&mut wish, &ingress.spec.tls);
        }
        Err(undecodable) => salvage::stage(&mut wish, undecodable, &judged),
    }
    wish
}

struct Reader<'r, 'a> {
    references: &'r References<'a>,
    judged: &'r Rc<Judged>,
    namespace: &'r str,
}

impl Reader<'_, '_> {
    fn rules(&mut self, wish: &mut Wish<'_>, ingress: &IngressSpec) {
        let at = spec("rules");
        let default = ingress.default_backend.as_ref();
        for (index, rule) in ingress.rules.iter().enumerate() {
            let rule_at = at.item(index);
            let host_at = rule_at.member("host");
            let Some(name) = rule.host.as_deref().filter(|host| !host.is_empty()) else {
                let message = "this rule has no host, and an edge answers for named hosts only";
                let diagnostic = wish.site().finding(
                    Code::RuleWithoutHost,
                    &host_at,
                    message,
                    "write the host, or delete the rule",
                );
                wish.findings.push(diagnostic);
                // The host that it had may still be meant.
                wish.unread = wish.unread.max(Unread::Paths);
                continue;
            };
            let Some(host) = parse_host(wish, name, &host_at) else {
                continue;
            };
            wish.host(host.clone(), &host_at);
            match &rule.http {
                Some(http) => {
                    for (index, path) in http.paths.iter().enumerate() {
                        let at = rule_at.member("http").member("paths").item(index);
                        let route = self.path(wish.site(), &at, path);
                        wish.host(host.clone(), &host_at).routes.push(route);
                    }
                }
                // Without paths all of the host's requests go to the default backend.
                None if default.is_some() => {}
                None => {
                    let message =
                        "this rule has no paths, and there is no default backend that could answer";
                    let mut route = self.everything(&rule_at);
                    route.findings.push(wish.site().finding(
                        Code::RuleWithoutPaths,
                        &rule_at,
                        message,
                        "write http.paths with a path and a backend",
                    ));
                    wish.host(host, &host_at).routes.push(route);
                }
            }
        }
        if let Some(default) = default {
            self.default_backend(wish, default);
        } else if ingress.rules.is_empty() {
            let message = "this Ingress has neither rules nor a default backend";
            let diagnostic = wish.site().finding(
                Code::NothingDeclared,
                &FieldPath::from("spec"),
                message,
                "write a rule with a host and a path",
            );
            wish.findings.push(diagnostic);
        }
    }

    /// The default backend answers on every host of the Ingress what nothing else there does.
    fn default_backend(&self, wish: &mut Wish<'_>, default: &IngressBackend) {
        let at = spec("defaultBackend");
        if wish.hosts.is_empty() {
            let message = "the default backend has no host to answer on: no rule names one";
            let diagnostic = wish.site().finding(
                Code::DefaultBackendWithoutHost,
                &at,
                message,
                "write a rule with the host; its paths may be left out",
            );
            wish.findings.push(diagnostic);
            return;
        }
        let backend =
            backend::of_ingress(self.references, self.namespace, (wish.site(), &at), default);
        for host in wish.hosts.values_mut() {
            let mut route = self.everything(&at);
            route.is_default = true;
            route.backend = backend.clone();
            host.routes.push(route);
        }
    }

    fn everything(&self, field: &FieldPath) -> WishedRoute {
        WishedRoute {
            place: place::everything(),
            is_guess: false,
            field: field.clone(),
            is_default: false,
            judged: Rc::clone(self.judged),
            backend: Backend::default(),
            findings: Findings::default(),
        }
    }

    fn path(&self, site: Site<'_>, at: &FieldPath, path: &IngressPath) -> WishedRoute {
        let written = path.path.as_deref().unwrap_or_default();
        let (match_type, expressions) = match path.path_type {
            PathType::Exact => (MatchType::Exact, false),
            PathType::Prefix => (MatchType::ElementPrefix, false),
            PathType::ImplementationSpecific => (MatchType::ElementPrefix, true),
        };
        let Placed {
            place,
            fault,
            is_guess,
        } = place::place(match_type, written, expressions);
        let mut findings = Findings::default();
        let field = at.member("path");
        if let Some(fault) = fault {
            findings.push(fault_finding(
                site,
                &field,
                written,
                (&place, is_guess),
                &fault,
            ));
        } else if written.is_empty() && path.path_type != PathType::ImplementationSpecific {
            let message = "this path is empty, which could mean any path or none";
            findings.push(site.finding(
                Code::PathInvalid,
                &field,
                message,
                "write / for every path",
            ));
        }
        WishedRoute {
            place,
            is_guess,
            field,
            is_default: false,
            judged: Rc::clone(self.judged),
            backend: backend::of_ingress(
                self.references,
                self.namespace,
                (site, &at.member("backend")),
                &path.backend,
            ),
            findings,
        }
    }

    /// `spec.tls`: a certificate for each host that an entry lists, or for all if it lists none.
    fn certificates(&self, wish: &mut Wish<'_>, tls: &[IngressTls]) {
        let at = spec("tls");
        for (index, entry) in tls.iter().enumerate() {
            let at = at.item(index);
            let Some(secret) = entry.secret_name.as_deref().filter(|name| !name.is_empty()) else {
                continue;
            };
            let hosts = self.hosts_of(wish, &at, entry);
            let field = at.member("secretName");
            let mut findings = Findings::default();
            let found = self.certificate(wish.site(), &field, secret, &mut findings);
            for host in hosts {
                let mut own = findings.clone();
                if let Some(certificate) = &found
                    && !certificate::names(&certificate.chain_pem, &host)
                {
                    let message = format!(
                        "the certificate in Secret {}/{secret} does not name {host}, so browsers will refuse it",
                        self.namespace
                    );
                    own.push(wish.site().finding(
                        Code::CertificateNames,
                        &field,
                        message,
                        "get a certificate for this host",
                    ));
                }
                if let Some(wished) = wish.hosts.get_mut(&host) {
                    wished.findings.absorb(&own);
                    wished.certificate =
                        found.as_ref().map_or(Certificate::Unusable, |certificate| {
                            Certificate::Sound(Rc::clone(certificate))
                        });
                }
            }
        }
    }

    /// The hosts of the Ingress that an entry means.
    fn hosts_of(
        &self,
        wish: &mut Wish<'_>,
        at: &FieldPath,
        entry: &IngressTls,
    ) -> Vec<HostPattern> {
        if entry.hosts.is_empty() {
            return wish.hosts.keys().cloned().collect();
        }
        let mut hosts = Vec::new();
        for (index, name) in entry.hosts.iter().enumerate() {
            let field = at.member("hosts").item(index);
            // An entry claims nothing, so a host that cannot be read here takes nobody's place.
            let before = wish.unread;
            let listed = parse_host(wish, name, &field);
            wish.unread = before;
            let Some(listed) = listed else {
                continue;
            };
            let meant: Vec<_> = wish
                .hosts
                .keys()
                .filter(|host| {
                    **host == listed
                        || (!host.is_wildcard() && host.broader().as_ref() == Some(&listed))
                })
                .cloned()
                .collect();
            if meant.is_empty() {
                let message = format!(
                    "no rule of this Ingress is for {listed}, so its certificate is not used"
                );
                let diagnostic = wish.site().finding(
                    Code::TlsHostUnused,
                    &field,
                    message,
                    "write a rule for this host, or delete the entry",
                );
                wish.findings.push(diagnostic);
            }
            hosts.extend(meant);
        }
        hosts
    }

    fn certificate(
        &self,
        site: Site<'_>,
        field: &FieldPath,
        name: &str,
        findings: &mut Findings,
    ) -> Option<Rc<DeclaredCertificate>> {
        let key = ObjectKey::new(self.namespace, name);
        let object = reference(Kind::Secret, &key);
        let snapshot = self.references.input.snapshot;
        let remedy = "create it with a certificate in tls.crt and its key in tls.key";
        let secret = match snapshot.find(Kind::Secret, &snapshot.secrets, &key) {
            Presence::There(there) => match &there.value {
                Ok(secret) => secret,
                Err(undecodable) => {
                    let site = Site {
                        object: &object,
                        origin: &there.origin,
                    };
                    undecodable
                        .problems
                        .iter()
                        .for_each(|problem| findings.push(site.problem(problem)));
                    return None;
                }
            },
            Presence::Pending => {
                findings.push(not_read_yet(site, field, &object));
                return None;
            }
            Presence::Missing => {
                let message = format!("{object} does not exist");
                findings.push(site.finding(Code::CertificateMissing, field, message, remedy));
                return None;
            }
        };
        let text = |entry: &str| {
            let bytes = secret.data.get(entry)?.expose();
            std::str::from_utf8(bytes)
                .ok()
                .filter(|text| !text.trim().is_empty())
        };
        let (Some(chain), Some(key)) = (text("tls.crt"), text("tls.key")) else {
            let message = format!("{object} has no tls.crt and tls.key, or they are empty");
            findings.push(site.finding(Code::CertificateMissing, field, message, remedy));
            return None;
        };
        match certificate::check_pair(chain, key) {
            Ok(()) => Some(Rc::new(DeclaredCertificate {
                chain_pem: chain.to_owned(),
                key_pem: Secret::new(key.to_owned()),
            })),
            Err(fault) => {
                let message = format!("{object} {fault}");
                findings.push(site.finding(Code::CertificateInvalid, field, message, "put the certificate chain, leaf first, into tls.crt and its own key into tls.key"));
                None
            }
        }
    }
}

/// A host. One that is none as written is a finding, and what is probably meant stands closed; if
/// even that cannot be told it may be any host of the namespace. Either way what the object has at
/// the edge is not taken for withdrawn (R3).
pub(crate) fn parse_host(
    wish: &mut Wish<'_>,
    name: &str,
    field: &FieldPath,
) -> Option<HostPattern> {
    match HostPattern::parse(name) {
        Ok(host) => Some(host),
        Err(error) => {
            let diagnostic = wish.site().finding(
                Code::HostInvalid,
                field,
                format!("{name:?} is not a host: {error}"),
                "write a name such as www.example.com, or *.example.com",
            );
            wish.findings.push(diagnostic);
            let meant = host_text::meant(name);
            let unread = if meant.is_some() {
                Unread::Paths
            } else {
                Unread::Hosts
            };
            wish.unread = wish.unread.max(unread);
            meant
        }
    }
}

/// Why a path stays closed, and what stands closed in its place.
pub(crate) fn fault_finding(
    site: Site<'_>,
    field: &FieldPath,
    written: &str,
    (place, is_guess): (&model::place::Match, bool),
    fault: &Fault,
) -> Diagnostic {
    let instead = if is_guess {
        format!(
            "{place} is kept for it, and until it is mended no other route there opens or changes"
        )
    } else {
        format!("{place} stays closed in its place")
    };
    match fault {
        Fault::Path(problem) => {
            let message = format!("the path {written:?} cannot be matched: {problem}; {instead}");
            site.finding(Code::PathInvalid, field, message, place::remedy(*problem))
        }
        Fault::Expression => {
            let message = format!(
                "the path {written:?} looks like an expression, and paths are literal here; {instead}"
            );
            site.finding(
                Code::PathExpression,
                field,
                message,
                "write the paths themselves, as Prefix or Exact",
            )
        }
        Fault::Reserved => {
            let message = format!("the edge itself answers below {}", place::OWN_PATHS);
            site.finding(Code::PathReserved, field, message, "use another path")
        }
    }
}
