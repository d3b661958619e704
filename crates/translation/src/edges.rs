//! Edges written by hand, reserved domains, and the kinds that this edge does not serve yet.

use std::rc::Rc;

use model::{
    declaration::PolicyName,
    diagnostic::Diagnostic,
    host::HostPattern,
    module::{EdgeDemands, Modules},
    place::MatchType,
};
use resources::{
    builtin::{Service, ServiceType},
    https_edge::{HttpsEdge, HttpsEdgeRoute, HttpsEdgeSpec, HttpsTlsTermination, RouteMatchType},
    kinds::Kind,
    module_set::TlsTermination,
    problem::FieldPath,
    snapshot::Object,
};

use crate::{
    annotations::{DOMAIN, OWNER_LABEL, UPSTREAM_LABELS},
    backend,
    codes::Code,
    digest::Digester,
    findings::{Findings, Site, Verdict},
    ingress::{fault_finding, parse_host},
    labelled,
    module_sets::names_edge_wide,
    place::{self, Placed},
    preflight::{Chosen, Judged, PolicyDocument, Written, judge},
    references::{References, annotation, reference, spec},
    salvage,
    wish::{Backend, EdgeWide, Wish, WishedRoute},
};

/// The only port of an HTTPS edge.
const HTTPS: &str = "443";

/// Reads every object of these kinds.
pub(crate) fn wishes<'a>(
    references: &References<'a>,
    loose: &mut Vec<Diagnostic>,
) -> Vec<Wish<'a>> {
    let snapshot = references.input.snapshot;
    let mut all = Vec::new();
    for object in snapshot
        .https_edges
        .values()
        .filter(|object| is_declaration(Kind::HttpsEdge, object, loose))
    {
        all.push(https_edge(references, object));
    }
    for object in snapshot
        .domains
        .values()
        .filter(|object| is_declaration(Kind::Domain, object, loose))
    {
        let mut wish = Wish::new(Kind::Domain, object);
        labelled::judge(references, &mut wish, object);
        match &object.value {
            Ok(domain) => {
                let at = spec("domain");
                if let Some(host) = parse_host(&mut wish, &domain.spec.domain, &at) {
                    wish.host(host, &at);
                }
            }
            Err(undecodable) => salvage::stage(&mut wish, undecodable, &nothing(references)),
        }
        all.push(wish);
    }
    for object in snapshot
        .tls_edges
        .values()
        .filter(|object| is_declaration(Kind::TlsEdge, object, loose))
    {
        let mut wish = Wish::new(Kind::TlsEdge, object);
        not_served(&mut wish, "TLS edges");
        match &object.value {
            Ok(edge) => hostports(&mut wish, &edge.spec.hostports, &spec("hostports"), None),
            Err(undecodable) => salvage::stage(&mut wish, undecodable, &nothing(references)),
        }
        all.push(wish);
    }
    for object in snapshot
        .tcp_edges
        .values()
        .filter(|object| is_declaration(Kind::TcpEdge, object, loose))
    {
        let mut wish = Wish::new(Kind::TcpEdge, object);
        not_served(&mut wish, "TCP edges");
        all.push(wish);
    }
    for object in snapshot.tunnels.values() {
        if !is_declaration(Kind::Tunnel, object, loose) {
            continue;
        }
        let tunnel = reference(Kind::Tunnel, &object.key);
        let site = Site {
            object: &tunnel,
            origin: &object.origin,
        };
        loose.push(site.finding(
            Code::NoTunnels,
            &FieldPath::root(),
            "this edge has no tunnels yet",
            "let Ingresses name the Service; its endpoints are dialled directly",
        ));
    }
    all.extend(
        snapshot
            .services
            .values()
            .filter_map(|object| load_balancer(references, object)),
    );
    all
}

/// Whether an object is somebody's declaration: not what we, or the upstream controller, made
/// from declarations (R20), and not on its way out.
fn is_declaration<T>(kind: Kind, object: &Object<T>, loose: &mut Vec<Diagnostic>) -> bool {
    if object.terminating || object.labels.contains_key(OWNER_LABEL) {
        return false;
    }
    if UPSTREAM_LABELS
        .iter()
        .any(|label| object.labels.contains_key(*label))
    {
        let of = reference(kind, &object.key);
        let site = Site {
            object: &of,
            origin: &object.origin,
        };
        let message = "the upstream controller made this object from an Ingress, so it is not read as a declaration";
        let remedy = "delete it once its Ingress is served here, or take the label k8s.ngrok.com/controller-name off to declare it by hand";
        loose.push(site.finding(Code::UpstreamOwned, &FieldPath::root(), message, remedy));
        return false;
    }
    true
}

/// A kind that declares hosts and is not served: its hosts exist, and nothing answers there.
fn not_served(wish: &mut Wish<'_>, what: &str) {
    let message = format!("{what} are not served by this edge yet");
    let diagnostic = wish.site().finding(
        Code::KindNotEnforced,
        &FieldPath::root(),
        message,
        "wait for a version of the edge that serves them, or delete this object",
    );
    wish.findings.push(diagnostic);
}

/// A Service of type LoadBalancer and of our class.
fn load_balancer<'a>(references: &References<'a>, object: &'a Object<Service>) -> Option<Wish<'a>> {
    let service = object.value.as_ref().ok()?;
    let ours = service.spec.service_type == ServiceType::LoadBalancer
        && service.spec.load_balancer_class.as_deref()
            == Some(&references.input.options.load_balancer_class);
    if !ours || object.terminating || object.labels.contains_key(OWNER_LABEL) {
        return None;
    }
    let mut wish = Wish::new(Kind::Service, object);
    not_served(&mut wish, "Services of type LoadBalancer");
    if let Some(domain) = object.annotations.get(DOMAIN) {
        let field = annotation(DOMAIN);
        if let Some(host) = parse_host(&mut wish, domain.trim(), &field) {
            wish.host(host, &field);
        }
    }
    Some(wish)
}

/// Hosts with their ports; `port` is the only one admitted.
fn hostports(wish: &mut Wish<'_>, hostports: &[String], at: &FieldPath, port: Option<&str>) {
    for (index, hostport) in hostports.iter().enumerate() {
        let field = at.item(index);
        let (name, found) = hostport
            .rsplit_once(':')
            .filter(|(_, port)| port.bytes().all(|byte| byte.is_ascii_digit()))
            .unwrap_or((hostport, HTTPS));
        if port.is_some_and(|port| port != found) {
            let message = format!(
                "{hostport} asks for port {found}, and an HTTPS edge answers on {HTTPS} only"
            );
            let diagnostic = wish.site().finding(
                Code::HostPort,
                &field,
                message,
                format!("write {name}:{HTTPS}"),
            );
            wish.findings.push(diagnostic);
        }
        if let Some(host) = parse_host(wish, name, &field) {
            wish.host(host, &field);
        }
    }
}

fn https_edge<'a>(references: &References<'a>, object: &'a Object<HttpsEdge>) -> Wish<'a> {
    let mut wish = Wish::new(Kind::HttpsEdge, object);
    labelled::judge(references, &mut wish, object);
    let spec_of_edge = match &object.value {
        Ok(edge) => &edge.spec,
        Err(undecodable) => {
            wish.edge_wide = if names_edge_wide(&undecodable.salvaged.modules) {
                EdgeWide::Failed
            } else {
                EdgeWide::Unknown(EdgeDemands::default())
            };
            salvage::stage(&mut wish, undecodable, &nothing(references));
            return wish;
        }
    };
    let HttpsEdgeSpec {
        common: _,
        hostports: names,
        routes,
        tls_termination,
        mutual_tls,
    } = spec_of_edge;
    hostports(&mut wish, names, &spec("hostports"), Some(HTTPS));
    let edge_wide = Chosen {
        tls_termination: tls_termination.map(|HttpsTlsTermination { min_version }| Written {
            site: wish.site(),
            field: spec("tlsTermination"),
            content: TlsTermination {
                terminate_at: None,
                min_version: Some(min_version),
            },
        }),
        mutual_tls: mutual_tls.as_ref().map(|content| Written {
            site: wish.site(),
            field: spec("mutualTLS"),
            content,
        }),
        ..Chosen::default()
    };
    let judged = judge(references, &object.key.namespace, &edge_wide);
    wish.edge_wide = match judged.edge.verdict() {
        Verdict::Pending => EdgeWide::Pending,
        Verdict::Invalid => EdgeWide::Failed,
        Verdict::Sound => EdgeWide::Known(judged.demands.clone()),
    };
    wish.edge_findings = judged.edge;
    if routes.is_empty() {
        let diagnostic = wish.site().finding(
            Code::NothingDeclared,
            &spec("routes"),
            "this edge has no route",
            "write a route, or delete the edge",
        );
        wish.findings.push(diagnostic);
    }
    for (index, route) in routes.iter().enumerate() {
        let at = spec("routes").item(index);
        let wished = Route {
            references,
            namespace: &object.key.namespace,
            at: &at,
            edge_kinds: &judged.kinds,
        }
        .read(wish.site(), route);
        for host in wish.hosts.values_mut() {
            host.routes.push(wished.clone());
        }
    }
    wish
}

struct Route<'r, 'a> {
    references: &'r References<'a>,
    namespace: &'r str,
    at: &'r FieldPath,
    edge_kinds: &'r std::collections::BTreeSet<model::module::ModuleKind>,
}

impl Route<'_, '_> {
    fn read(&self, site: Site<'_>, route: &HttpsEdgeRoute) -> WishedRoute {
        let HttpsEdgeRoute {
            common: _,
            match_type,
            path,
            backend,
            circuit_breaker,
            compression,
            ip_restriction,
            headers,
            oauth,
            oidc,
            saml,
            webhook_verification,
            policy,
        } = route;
        let Self {
            references,
            namespace,
            at,
            edge_kinds,
        } = *self;
        macro_rules! written {
            ($name:literal, $module:expr) => {
                $module.as_ref().map(|content| Written {
                    site,
                    field: at.member($name),
                    content,
                })
            };
        }
        let chosen = Chosen {
            circuit_breaker: written!("circuitBreaker", circuit_breaker),
            compression: written!("compression", compression),
            headers: written!("headers", headers),
            ip_restriction: written!("ipRestriction", ip_restriction),
            oauth: written!("oauth", oauth),
            policy: policy.as_ref().map(|policy| Written {
                site,
                field: at.member("policy"),
                content: PolicyDocument {
                    enabled: true,
                    document: serde_json::Value::Object(policy.0.clone()),
                },
            }),
            oidc: written!("oidc", oidc),
            saml: written!("saml", saml),
            tls_termination: None,
            mutual_tls: None,
            webhook_verification: written!("webhookVerification", webhook_verification),
        };
        let mut judged = judge(references, namespace, &chosen);
        judged.kinds.extend(edge_kinds);
        let match_type = match match_type {
            RouteMatchType::ExactPath => MatchType::Exact,
            RouteMatchType::PathPrefix => MatchType::StringPrefix,
        };
        let field = at.member("match");
        let Placed {
            place,
            fault,
            is_guess,
        } = place::place(match_type, path, false);
        let mut findings = Findings::default();
        if let Some(fault) = fault {
            findings.push(fault_finding(
                site,
                &field,
                path,
                (&place, is_guess),
                &fault,
            ));
        }
        let backend = match backend {
            Some(group) => backend::of_labels(
                references,
                namespace,
                (site, &at.member("backend")),
                &group.labels,
            ),
            None => {
                let mut findings = Findings::default();
                findings.push(site.finding(
                    Code::BackendInvalid,
                    &at.member("backend"),
                    "this route has no backend, so nothing could answer",
                    "write backend.labels that name a Service and its port",
                ));
                Backend {
                    external: None,
                    port: None,
                    text: None,
                    findings,
                }
            }
        };
        WishedRoute {
            place,
            is_guess,
            field,
            is_default: false,
            judged: Rc::new(judged),
            backend,
            findings,
        }
    }
}

/// The modules of an object of which nothing is known.
pub(crate) fn nothing(references: &References<'_>) -> Rc<Judged> {
    Rc::new(Judged {
        modules: Modules::<PolicyName>::default(),
        demands: EdgeDemands::default(),
        kinds: std::collections::BTreeSet::new(),
        route: Findings::default(),
        edge: Findings::default(),
        content: Digester::new(references.input.key, "nothing").finish(),
    })
}

/// Hosts as the snapshot's unreadable files name them.
pub(crate) fn scanned(
    hosts: &std::collections::BTreeSet<String>,
) -> impl Iterator<Item = HostPattern> {
    hosts
        .iter()
        .filter_map(|host| HostPattern::parse(host).ok())
}
