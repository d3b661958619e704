//! What a thing must be like to be stored: within limits, valid in itself, and enforceable here.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::SocketAddr,
};

use model::{
    address,
    backend::BackendKind,
    host::HostPattern,
    id::{BackendId, EdgeId},
    module::{HeaderChanges, ModuleKind, Modules},
    place::Match,
    secret::Secret,
};

use super::{Attempt, RefusalCode, RefusedCommand};
use crate::{
    command::Texts,
    state::{Edge, Meta, MutualTls, PolicyRef, Route, TlsTermination},
};

type Check = Result<(), RefusedCommand>;

/// Longest description, in bytes.
const DESCRIPTION_BYTES: usize = 255;
/// Longest metadata, in bytes.
const METADATA_BYTES: usize = 4096;
/// Longest key and value of a label, name and value of a header, in bytes.
const NAME_BYTES: usize = 255;
const VALUE_BYTES: usize = 4096;

/// The codes for texts that are too long differ by kind of object.
#[derive(Clone, Copy)]
pub(super) struct TextCodes {
    description: RefusalCode,
    metadata: RefusalCode,
}

impl TextCodes {
    pub(super) const EDGE: Self = Self {
        description: RefusalCode::EdgeDescription,
        metadata: RefusalCode::EdgeMetadata,
    };
    pub(super) const BACKEND: Self = Self {
        description: RefusalCode::BackendDescription,
        metadata: RefusalCode::BackendMetadata,
    };
    pub(super) const DOMAIN: Self = Self {
        description: RefusalCode::DomainDescription,
        metadata: RefusalCode::DomainMetadata,
    };
    pub(super) const OTHER: Self = Self {
        description: RefusalCode::Description,
        metadata: RefusalCode::Metadata,
    };
}

fn refuse(code: RefusalCode, message: impl Into<String>) -> RefusedCommand {
    RefusedCommand::new(code, message)
}

/// Refuses more than `most` of something.
pub(super) fn at_most(count: usize, most: usize, code: RefusalCode, what: &str) -> Check {
    if count > most {
        return Err(refuse(code, format!("at most {most} {what} are allowed")));
    }
    Ok(())
}

impl Attempt<'_> {
    /// Refuses one more object where there are as many as may be.
    pub(super) fn room_for_one(&self, present: usize, code: RefusalCode, what: &str) -> Check {
        at_most(
            present + 1,
            self.context.limits.objects_per_kind,
            code,
            what,
        )
    }

    /// The texts of an object that is changed, or made now.
    pub(super) fn meta(
        &self,
        old: Option<&Meta>,
        texts: &Texts,
        codes: TextCodes,
    ) -> Result<Meta, RefusedCommand> {
        let Texts {
            description,
            metadata,
        } = texts;
        let fresh = Meta {
            created_at: self.context.now,
            ..Meta::default()
        };
        let mut meta = old.cloned().unwrap_or(fresh);
        if let Some(description) = description {
            at_most(
                description.len(),
                DESCRIPTION_BYTES,
                codes.description,
                "bytes of description",
            )?;
            meta.description.clone_from(description);
        }
        if let Some(metadata) = metadata {
            at_most(
                metadata.len(),
                METADATA_BYTES,
                codes.metadata,
                "bytes of metadata",
            )?;
            meta.metadata.clone_from(metadata);
        }
        Ok(meta)
    }

    /// What holds for an edge as a whole, apart from its routes.
    pub(super) fn check_edge(&self, id: &EdgeId, edge: &Edge) -> Check {
        let limits = self.context.limits;
        at_most(
            edge.hosts.len(),
            limits.hosts_per_edge,
            RefusalCode::TooManyHosts,
            "hosts of an edge",
        )?;
        for host in &edge.hosts {
            self.check_host(id, host)
                .map_err(|refusal| refusal.at(id, Some(host), None))?;
        }
        if let Some(TlsTermination {
            enabled: _,
            minimum: _,
        }) = &edge.tls_termination
        {
            self.check_enforced(ModuleKind::TlsTermination)?;
        }
        if let Some(MutualTls {
            enabled: _,
            authorities,
        }) = &edge.mutual_tls
        {
            self.check_enforced(ModuleKind::MutualTls)?;
            if authorities.is_empty() || authorities.iter().any(|pem| pem.trim().is_empty()) {
                return Err(refuse(
                    RefusalCode::NoAuthority,
                    "mutual TLS needs at least one certificate authority, and none that is empty",
                ));
            }
        }
        match &edge.certificate {
            Some(certificate) if !self.state.certificates.contains_key(certificate) => Err(refuse(
                RefusalCode::UnknownCertificate,
                format!("there is no certificate {certificate}"),
            )),
            Some(_) | None => Ok(()),
        }
    }

    fn check_host(&self, id: &EdgeId, host: &HostPattern) -> Check {
        match self.index.hosts.get(host) {
            Some(other) if other != id => {
                return Err(refuse(
                    RefusalCode::HostTaken,
                    format!("the edge {other} answers for {host}"),
                ));
            }
            Some(_) | None => {}
        }
        if !self.index.is_reserved(host, None) {
            return Err(refuse(
                RefusalCode::HostNotReserved,
                format!("{host} is no reserved domain, nor below a reserved wildcard"),
            ));
        }
        Ok(())
    }

    /// What holds for a route.
    pub(super) fn check_route(&self, route: &Route) -> Check {
        self.check_match(&route.place)?;
        self.check_modules(&route.modules)?;
        for policy in &route.also_refuse {
            self.check_policy(policy)?;
        }
        match &route.backend {
            Some(backend) if !self.state.backends.contains_key(&backend.id) => Err(refuse(
                RefusalCode::UnknownBackend,
                format!("there is no backend {}", backend.id),
            )),
            Some(_) | None => Ok(()),
        }
    }

    fn check_match(&self, place: &Match) -> Check {
        let most = self.context.limits.path_bytes;
        at_most(
            place.path.len(),
            most,
            RefusalCode::MatchTooLong,
            "bytes of path",
        )?;
        if !place.path.starts_with('/') || Match::new(place.match_type, &place.path) != *place {
            return Err(refuse(
                RefusalCode::MatchInvalid,
                format!(
                    "{:?} is no normalised path: it begins with a slash, and an element prefix ends in none",
                    place.path
                ),
            ));
        }
        Ok(())
    }

    fn check_policy(&self, policy: &PolicyRef) -> Check {
        let known = self.state.ip_policies.get(&policy.id);
        if known.is_some_and(|known| known.versions.contains_key(&policy.version)) {
            return Ok(());
        }
        Err(refuse(
            RefusalCode::UnknownPolicy,
            format!(
                "there is no IP policy {} of version {}",
                policy.id, policy.version
            ),
        ))
    }

    fn check_enforced(&self, kind: ModuleKind) -> Check {
        if self.context.enforceable.contains(&kind) {
            return Ok(());
        }
        Err(refuse(
            RefusalCode::NotEnforced,
            format!(
                "the module {} is not enforced by this edge yet, so it is not stored either",
                kind.name()
            ),
        ))
    }

    /// Whether every module is enforceable and valid, alone and together. What is not enforced
    /// yet is refused before its content is looked at.
    fn check_modules(&self, modules: &Modules<PolicyRef>) -> Check {
        for kind in modules.kinds() {
            self.check_enforced(kind)?;
        }
        let Modules {
            ip_restriction,
            user_agent_filter: _,
            webhook_verification,
            oauth,
            oidc,
            saml,
            traffic_policy: _,
            circuit_breaker: _,
            websocket_tcp_converter: _,
            request_headers,
            response_headers,
            compression: _,
        } = modules;
        if let Some(module) = ip_restriction {
            if module.policies.is_empty() {
                return Err(refuse(
                    RefusalCode::NoPolicyNamed,
                    "an IP restriction needs at least one policy",
                ));
            }
            let most = self.context.limits.policies_per_module;
            at_most(
                module.policies.len(),
                most,
                RefusalCode::TooManyPoliciesNamed,
                "policies of a restriction",
            )?;
            module
                .policies
                .iter()
                .try_for_each(|policy| self.check_policy(policy))?;
        }
        let webhook = webhook_verification
            .as_ref()
            .and_then(|module| module.secret.as_ref());
        let application = oauth
            .as_ref()
            .and_then(|module| module.application.as_ref());
        not_empty(webhook, "a webhook's secret")?;
        not_empty(
            application.map(|app| &app.client_secret),
            "an OAuth client's secret",
        )?;
        not_empty(
            oidc.as_ref().map(|module| &module.client_secret),
            "an OpenID client's secret",
        )?;
        let logins = [
            oauth.as_ref().is_some_and(|module| module.enabled),
            oidc.as_ref().is_some_and(|module| module.enabled),
            saml.as_ref().is_some_and(|module| module.enabled),
        ];
        if logins.into_iter().filter(|enabled| *enabled).count() > 1 {
            return Err(refuse(
                RefusalCode::SeveralLogins,
                "at most one of oauth, oidc and saml can be enabled",
            ));
        }
        request_headers
            .iter()
            .try_for_each(|changes| self.check_headers(changes, Some("host")))?;
        response_headers
            .iter()
            .try_for_each(|changes| self.check_headers(changes, None))
    }

    /// `replaceable`: the one header that may be removed only where it is added too.
    fn check_headers(&self, changes: &HeaderChanges, replaceable: Option<&str>) -> Check {
        let HeaderChanges {
            enabled: _,
            add,
            remove,
        } = changes;
        let most = self.context.limits.headers_per_module;
        at_most(
            add.len(),
            most,
            RefusalCode::TooManyHeaders,
            "headers to add",
        )?;
        at_most(
            remove.len(),
            most,
            RefusalCode::TooManyHeaders,
            "headers to remove",
        )?;
        for name in add.keys().chain(remove) {
            if !is_header_name(name) {
                return Err(refuse(
                    RefusalCode::HeaderName,
                    format!("{name:?} is no header name in lower case"),
                ));
            }
        }
        for (name, value) in add {
            if !is_header_value(value) {
                return Err(refuse(
                    RefusalCode::HeaderValue,
                    format!("the value of {name} is no header value"),
                ));
            }
        }
        match replaceable {
            Some(name) if remove.contains(name) && !add.contains_key(name) => Err(refuse(
                RefusalCode::HeaderForbidden,
                format!("{name} can be replaced, not removed"),
            )),
            Some(_) | None => Ok(()),
        }
    }

    /// What holds for a backend.
    pub(super) fn check_backend(
        &self,
        id: &BackendId,
        kind: &BackendKind,
        endpoints: &BTreeSet<SocketAddr>,
    ) -> Check {
        let limits = self.context.limits;
        match (id, kind) {
            (BackendId::TunnelGroup(_), BackendKind::TunnelGroup { labels }) => {
                check_labels(labels, limits.labels)?;
            }
            (
                BackendId::HttpResponse(_),
                BackendKind::HttpResponse {
                    status,
                    headers,
                    body,
                },
            ) => {
                check_response(*status, headers)?;
                at_most(
                    body.len(),
                    limits.response_body_bytes,
                    RefusalCode::ResponseBody,
                    "bytes of body",
                )?;
            }
            (BackendId::Static(_), BackendKind::Static { address }) => check_address(address)?,
            (BackendId::TunnelGroup(_) | BackendId::HttpResponse(_) | BackendId::Static(_), _) => {
                return Err(refuse(
                    RefusalCode::WrongIdKind,
                    format!("{id} is the id of another kind of backend"),
                ));
            }
        }
        if !matches!(kind, BackendKind::TunnelGroup { .. }) && !endpoints.is_empty() {
            return Err(refuse(
                RefusalCode::NoEndpointsHere,
                "only a tunnel group has endpoints",
            ));
        }
        let most = limits.endpoints_per_backend;
        at_most(
            endpoints.len(),
            most,
            RefusalCode::EndpointsInvalid,
            "endpoints of a backend",
        )?;
        for endpoint in endpoints {
            if endpoint.port() == 0
                || endpoint.ip().is_unspecified()
                || endpoint.ip().is_multicast()
            {
                return Err(refuse(
                    RefusalCode::EndpointsInvalid,
                    format!("{endpoint} cannot be dialled"),
                ));
            }
        }
        Ok(())
    }
}

/// Endpoints in the one form in which addresses are compared (R16).
pub(super) fn canonical(endpoints: &BTreeSet<SocketAddr>) -> BTreeSet<SocketAddr> {
    endpoints
        .iter()
        .map(|endpoint| address::canonical_socket(*endpoint))
        .collect()
}

/// R14: an empty or blank secret would verify anything.
fn not_empty(secret: Option<&Secret>, what: &str) -> Check {
    match secret {
        Some(secret) if secret.expose().trim().is_empty() => {
            Err(refuse(RefusalCode::EmptySecret, format!("{what} is empty")))
        }
        Some(_) | None => Ok(()),
    }
}

fn check_labels(labels: &BTreeMap<String, String>, most: usize) -> Check {
    at_most(labels.len(), most, RefusalCode::TooManyLabels, "labels")?;
    for (key, value) in labels {
        if key.is_empty() || key.len() > NAME_BYTES {
            return Err(refuse(
                RefusalCode::LabelKey,
                format!("a label's key has 1 to {NAME_BYTES} bytes"),
            ));
        }
        at_most(
            value.len(),
            NAME_BYTES,
            RefusalCode::LabelValue,
            "bytes of a label's value",
        )?;
        if key.contains('=') || value.contains('=') {
            return Err(refuse(
                RefusalCode::LabelEquals,
                format!("the label {key:?} has a = in key or value"),
            ));
        }
    }
    Ok(())
}

fn check_response(status: u16, headers: &BTreeMap<String, String>) -> Check {
    if !(200..=599).contains(&status) {
        return Err(refuse(
            RefusalCode::ResponseStatus,
            "a response's status is 200 to 599",
        ));
    }
    for (name, value) in headers {
        if !is_header_name(name) {
            return Err(refuse(
                RefusalCode::ResponseHeaderName,
                format!("{name:?} is no header name in lower case"),
            ));
        }
        if !is_header_value(value) {
            return Err(refuse(
                RefusalCode::ResponseHeaderValue,
                format!("the value of {name} is no header value"),
            ));
        }
    }
    Ok(())
}

fn check_address(address: &str) -> Check {
    let fine = address.rsplit_once(':').is_some_and(|(host, port)| {
        let host = host
            .strip_prefix('[')
            .and_then(|host| host.strip_suffix(']'))
            .unwrap_or(host);
        let named =
            model::host::Host::parse(host).is_ok() || host.parse::<std::net::IpAddr>().is_ok();
        named && port.parse::<u16>().is_ok_and(|port| port > 0)
    });
    if fine {
        return Ok(());
    }
    Err(refuse(
        RefusalCode::BackendAddress,
        format!("{address:?} is no address of the form host:port"),
    ))
}

/// RFC 9110, section 5.1: a token; in lower case, as everything here compares names.
fn is_header_name(name: &str) -> bool {
    let token =
        |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"!#$%&'*+-.^_`|~".contains(&b);
    !name.is_empty() && name.len() <= NAME_BYTES && name.bytes().all(token)
}

/// RFC 9110, section 5.5: visible characters, spaces and tabs; no line can be begun.
fn is_header_value(value: &str) -> bool {
    let visible = |c: char| c == '\t' || (!c.is_control() && c.is_ascii());
    value.len() <= VALUE_BYTES && value.chars().all(visible)
}
