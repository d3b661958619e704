//! Backends: a Service's port in the namespace of the declaration, spoken to in plain HTTP/1.
//!
//! Numbers match numbers and names match names that are not empty: upstream let two empty names
//! match, and sent requests to a port that nobody had declared.

use std::collections::BTreeMap;

use model::{
    backend::{ServicePort, label},
    host::HostPattern,
};
use resources::{
    builtin::{self, Protocol, Service, ServiceType},
    ingress::{IngressBackend, IngressServicePort},
    kinds::Kind,
    problem::FieldPath,
    snapshot::{Object, ObjectKey},
};

use crate::{
    annotations::APP_PROTOCOLS,
    codes::Code,
    findings::{Findings, Site, Verdict},
    references::{Found, References, annotation, object_name, reference, spec},
    wish::Backend,
};

/// The backend of an Ingress path.
pub(crate) fn of_ingress(
    references: &References<'_>,
    namespace: &str,
    (site, field): (Site<'_>, &FieldPath),
    backend: &IngressBackend,
) -> Backend {
    match backend {
        IngressBackend::Resource(resource) => {
            let mut findings = Findings::default();
            let message = format!(
                "the backend is a {}, and only Services answer here",
                resource.kind
            );
            findings.push(site.finding(
                Code::BackendInvalid,
                &field.member("resource"),
                message,
                "name a Service and its port",
            ));
            Backend {
                port: None,
                external: None,
                text: None,
                findings,
            }
        }
        IngressBackend::Service(service) => {
            let key = ObjectKey::new(namespace, service.name.as_str());
            of_service(
                references,
                &key,
                &service.port,
                (site, &field.member("service")),
            )
        }
    }
}

/// The backend of a hand-written edge: labels that name a Service (see [`label`]).
pub(crate) fn of_labels(
    references: &References<'_>,
    namespace: &str,
    (site, field): (Site<'_>, &FieldPath),
    labels: &BTreeMap<String, String>,
) -> Backend {
    let at = field.member("labels");
    let mut backend = Backend::default();
    let get = |name| labels.get(name).map(String::as_str);
    let known = [
        label::NAMESPACE,
        label::SERVICE,
        label::SERVICE_UID,
        label::PORT,
    ];
    let port = get(label::PORT).and_then(|port| port.parse::<u16>().ok());
    let (Some(service), Some(port)) = (get(label::SERVICE), port) else {
        return no_tunnels(backend, site, &at);
    };
    if labels.keys().any(|key| !known.contains(&key.as_str())) {
        return no_tunnels(backend, site, &at);
    }
    let of = get(label::NAMESPACE).unwrap_or(namespace);
    if of != namespace {
        let message = format!("the backend lies in the namespace {of}");
        let remedy = "a declaration reaches only Services of its own namespace: move one of them";
        backend
            .findings
            .push(site.finding(Code::BackendNamespace, &at, message, remedy));
        return backend;
    }
    let key = ObjectKey::new(of, service);
    let services = &references.input.snapshot.services;
    let uid = services.get(&key).map(|object| object.uid.as_str());
    if let (Some(wanted), Some(found)) = (get(label::SERVICE_UID), uid)
        && wanted != found
    {
        let message =
            format!("Service {key} has another uid than the labels say: it was made anew");
        backend.findings.push(site.finding(
            Code::ServiceMissing,
            &at,
            message,
            "write its present uid, or leave the label out",
        ));
        return backend;
    }
    of_service(
        references,
        &key,
        &IngressServicePort::Number(port),
        (site, &at),
    )
}

fn no_tunnels(mut backend: Backend, site: Site<'_>, at: &FieldPath) -> Backend {
    let message = "these labels name no Service port, so only a tunnel could answer, and this edge has no tunnels yet";
    let remedy = format!("write the labels {} and {}", label::SERVICE, label::PORT);
    backend
        .findings
        .push(site.finding(Code::NoTunnels, at, message, remedy));
    backend
}

fn of_service(
    references: &References<'_>,
    key: &ObjectKey,
    wanted: &IngressServicePort,
    (site, field): (Site<'_>, &FieldPath),
) -> Backend {
    let mut backend = Backend {
        port: None,
        external: None,
        text: Some(match wanted {
            IngressServicePort::Name(name) => format!("{key}:{name}"),
            IngressServicePort::Number(number) => format!("{key}:{number}"),
        }),
        findings: Findings::default(),
    };
    let missing = (
        Code::ServiceMissing,
        "create it in the same namespace, or name another one",
    );
    let kind = (Kind::Service, &references.input.snapshot.services);
    let found = references.find(kind, key, (site, field), missing, &mut backend.findings);
    // A Service is no protection: its loss holds, it does not start a grace (R2).
    backend.findings.rests_on.clear();
    let Found::Sound(object, service) = found else {
        return backend;
    };
    let Some(port) = find_port(service, wanted) else {
        let message = format!("Service {key} has no TCP port {}", port_text(wanted));
        let remedy = format!("its ports are {}", ports_text(service));
        backend.findings.push(site.finding(
            Code::ServicePortMissing,
            &field.member("port"),
            message,
            remedy,
        ));
        return backend;
    };
    let port_found = ServicePort {
        service: object_name(key),
        uid: object.uid.clone(),
        port: port.port,
        port_name: port.name.clone(),
    };
    backend.text = Some(port_found.to_string());
    backend.external = external_name(
        references,
        &port_found,
        service,
        (site, field),
        &mut backend.findings,
    );
    protocol(object, port, &mut backend.findings);
    let is_sound = backend.findings.verdict() == Verdict::Sound;
    let is_here = backend.external.is_none();
    if is_sound && is_here && references.endpoints(&port_found).is_empty() {
        let message =
            format!("Service {port_found} has no ready endpoint, so requests get 503 until it has");
        let remedy = format!(
            "start what should answer, or say where it is with --service {port_found}=ADDRESS"
        );
        backend
            .findings
            .push(site.finding(Code::NoEndpoints, field, message, remedy));
    }
    backend.port = Some(port_found);
    backend
}

fn find_port<'s>(
    service: &'s Service,
    wanted: &IngressServicePort,
) -> Option<&'s builtin::ServicePort> {
    service
        .spec
        .ports
        .iter()
        .filter(|port| port.protocol == Protocol::TCP)
        .find(|port| match wanted {
            IngressServicePort::Number(number) => port.port == *number,
            IngressServicePort::Name(name) => !name.is_empty() && port.name == *name,
        })
}

fn port_text(port: &IngressServicePort) -> String {
    match port {
        IngressServicePort::Name(name) => format!("named {name:?}"),
        IngressServicePort::Number(number) => number.to_string(),
    }
}

fn ports_text(service: &Service) -> String {
    let ports: Vec<String> = service
        .spec
        .ports
        .iter()
        .map(|port| {
            if port.name.is_empty() {
                port.port.to_string()
            } else {
                format!("{} ({})", port.port, port.name)
            }
        })
        .collect();
    if ports.is_empty() {
        String::from("none")
    } else {
        ports.join(", ")
    }
}

/// A Service that stands for a name outside: whoever may write Services could point an edge
/// anywhere, so the operator must allow it. Where the operator names the address, nothing is
/// looked up and nothing is to fear.
fn external_name(
    references: &References<'_>,
    port: &ServicePort,
    service: &Service,
    (site, field): (Site<'_>, &FieldPath),
    findings: &mut Findings,
) -> Option<String> {
    if service.spec.service_type != ServiceType::ExternalName
        || references.override_of(port).is_some()
    {
        return None;
    }
    let name = service.spec.external_name.as_deref().unwrap_or_default();
    if !references.input.options.allow_external_names {
        let message = format!(
            "Service {} stands for {name}, a name outside the cluster, which is not allowed",
            port.service
        );
        let remedy = format!(
            "name a Service with endpoints, or let the operator allow it with --allow-external-names, or with --service {port}=ADDRESS"
        );
        findings.push(site.finding(Code::ExternalName, field, message, remedy));
        return None;
    }
    // Kubernetes takes digits and dots for a name too; nobody could look that up.
    let is_name = HostPattern::parse(name).is_ok_and(|host| !host.is_wildcard())
        && !name.ends_with(|last: char| last.is_ascii_digit());
    if !is_name {
        let message = format!(
            "Service {} stands for {name:?}, which is not the name of a host",
            port.service
        );
        let remedy = format!(
            "write a name under externalName, or say where it is with --service {port}=ADDRESS"
        );
        findings.push(site.finding(Code::ServiceInvalid, field, message, remedy));
        return None;
    }
    Some(format!("{name}:{}", port.port))
}

/// How a Service port is spoken to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Speaks {
    Http1,
    Http2,
    Tls,
}

/// Anything but plain HTTP/1 is refused: an HTTPS backend is never dialled in clear.
fn protocol(object: &Object<Service>, port: &builtin::ServicePort, findings: &mut Findings) {
    let service = reference(Kind::Service, &object.key);
    let site = Site {
        object: &service,
        origin: &object.origin,
    };
    let by_annotation = object.annotations.get(APP_PROTOCOLS).map(|text| {
        let protocols: Option<BTreeMap<String, String>> = serde_json::from_str(text).ok();
        protocols.and_then(|protocols| {
            match protocols
                .get(&port.name)
                .map(|p| p.to_ascii_uppercase())
                .as_deref()
            {
                None | Some("HTTP") => Some(Speaks::Http1),
                Some("HTTPS") => Some(Speaks::Tls),
                Some(_) => None,
            }
        })
    });
    let by_field = match port.app_protocol.as_deref() {
        None | Some("" | "http" | "kubernetes.io/ws") => Some(Speaks::Http1),
        Some("https" | "kubernetes.io/wss") => Some(Speaks::Tls),
        Some("k8s.ngrok.com/http2" | "kubernetes.io/h2c" | "grpc" | "h2c") => Some(Speaks::Http2),
        Some(_) => None,
    };
    let field = spec("ports");
    if by_field.is_none() {
        let message = format!(
            "appProtocol {:?} of port {} is not one that can be spoken here",
            port.app_protocol.as_deref().unwrap_or_default(),
            port.port
        );
        findings.push(site.finding(
            Code::ServiceInvalid,
            &field,
            message,
            "write http, or leave it out",
        ));
    }
    if by_annotation == Some(None) {
        let message =
            format!("{APP_PROTOCOLS} is not a JSON object of port names and HTTP or HTTPS");
        findings.push(site.finding(
            Code::ServiceInvalid,
            &annotation(APP_PROTOCOLS),
            message,
            r#"write it as {"PORT NAME": "HTTP"}"#,
        ));
    }
    for (speaks, field) in [
        (by_field, field),
        (by_annotation.flatten(), annotation(APP_PROTOCOLS)),
    ] {
        let name = match speaks {
            None | Some(Speaks::Http1) => continue,
            Some(Speaks::Http2) => "HTTP/2",
            Some(Speaks::Tls) => "HTTPS",
        };
        let message = format!(
            "port {} is to be spoken to in {name}, which this edge does not do yet",
            port.port
        );
        findings.push(site.finding(
            Code::ProtocolNotEnforced,
            &field,
            message,
            "offer a port that speaks plain HTTP/1.1",
        ));
    }
}
