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
};
use routing::{
    modules::headers::{self, Direction, HeaderProblem},
    path::normalise_declared,
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
/// Longest key and value of a label, in bytes.
const LABEL_BYTES: usize = 255;

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
            self.check_host(id, edge, host)
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

    /// A host is answered for by one edge, under a reserved domain; under a domain that belongs to
    /// a namespace, only by who may write there (R20).
    fn check_host(&self, id: &EdgeId, edge: &Edge, host: &HostPattern) -> Check {
        let present = self.index.hosts.get(host);
        if let Some(other) = present.filter(|other| *other != id) {
            let message = format!("the edge {other} answers for {host}");
            return Err(refuse(RefusalCode::HostTaken, message));
        }
        let domain = self
            .index
            .domain_of(host, None)
            .and_then(|domain| self.state.domains.get(domain));
        let Some(domain) = domain else {
            let message = format!("{host} is no reserved domain, nor below a reserved wildcard");
            return Err(refuse(RefusalCode::HostNotReserved, message));
        };
        if present.is_none() && edge.controller.is_none() {
            self.may_change_domain(domain)?;
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
        match normalise_declared(&place.path) {
            Ok(path) if Match::new(place.match_type, &path) == *place => Ok(()),
            Ok(path) => Err(refuse(
                RefusalCode::MatchInvalid,
                format!(
                    "the path {:?} is not written as it is matched: {path:?}",
                    place.path
                ),
            )),
            Err(problem) => Err(refuse(RefusalCode::MatchInvalid, problem.to_string())),
        }
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
            webhook_verification: _,
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
            .try_for_each(|changes| self.check_headers(Direction::Request, changes))?;
        response_headers
            .iter()
            .try_for_each(|changes| self.check_headers(Direction::Response, changes))
    }

    /// What holds for the modules that a command brings. Secrets are not empty, since an empty one
    /// would verify anything (R14); of modules that are there already this is not asked again: a
    /// controller's copy of the state has no secrets in it.
    pub(super) fn check_brought<P>(&self, modules: &Modules<P>) -> Check {
        for kind in modules.kinds() {
            self.check_enforced(kind)?;
        }
        for (what, secret) in modules.secrets() {
            if secret.expose().trim().is_empty() {
                return Err(refuse(RefusalCode::EmptySecret, format!("{what} is empty")));
            }
        }
        Ok(())
    }

    fn check_headers(&self, direction: Direction, changes: &HeaderChanges) -> Check {
        let most = self.context.limits.headers_per_module;
        at_most(
            changes.add.len(),
            most,
            RefusalCode::TooManyHeaders,
            "headers to add",
        )?;
        at_most(
            changes.remove.len(),
            most,
            RefusalCode::TooManyHeaders,
            "headers to remove",
        )?;
        match headers::problems(direction, changes).into_iter().next() {
            Some(problem) => Err(refuse(header_code(&problem), problem.to_string())),
            None => Ok(()),
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

fn header_code(problem: &HeaderProblem) -> RefusalCode {
    match problem {
        HeaderProblem::Name(_) => RefusalCode::HeaderName,
        HeaderProblem::Value(_) => RefusalCode::HeaderValue,
        HeaderProblem::Expression(_) => RefusalCode::HeaderExpression,
        HeaderProblem::Protected(_) | HeaderProblem::HostRemoved => RefusalCode::HeaderForbidden,
    }
}

fn check_labels(labels: &BTreeMap<String, String>, most: usize) -> Check {
    at_most(labels.len(), most, RefusalCode::TooManyLabels, "labels")?;
    for (key, value) in labels {
        if key.is_empty() || key.len() > LABEL_BYTES {
            return Err(refuse(
                RefusalCode::LabelKey,
                format!("a label's key has 1 to {LABEL_BYTES} bytes"),
            ));
        }
        at_most(
            value.len(),
            LABEL_BYTES,
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
    let added = HeaderChanges {
        enabled: true,
        add: headers.clone(),
        remove: BTreeSet::new(),
    };
    match headers::problems(Direction::Response, &added)
        .into_iter()
        .next()
    {
        Some(problem @ HeaderProblem::Name(_)) => {
            Err(refuse(RefusalCode::ResponseHeaderName, problem.to_string()))
        }
        Some(problem) => Err(refuse(
            RefusalCode::ResponseHeaderValue,
            problem.to_string(),
        )),
        None => Ok(()),
    }
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
