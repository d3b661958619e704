//! Commands on what edges refer to and rest on: backends, certificates, domains, API keys.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::SocketAddr,
    sync::Arc,
};

use model::{
    backend::{BackendKind, ServicePort},
    host::HostPattern,
    id::{BackendId, CertificateId, DomainId, EdgeId, KeyId},
    secret::{Digest, Secret},
};

use super::{
    Attempt, Change, Changes, RefusalCode, RefusedCommand,
    checks::{TextCodes, canonical},
};
use crate::{
    command::Texts,
    state::{ApiKey, Backend, Certificate, Domain, Edge, Role},
};

fn immutable(what: &str, id: impl std::fmt::Display) -> RefusedCommand {
    RefusedCommand::new(
        RefusalCode::Immutable,
        format!("the {what} {id} has another content: make another {what}"),
    )
}

/// Refuses to delete what an edge refers to: the reference would dangle.
fn unused(users: Option<&BTreeSet<EdgeId>>, code: RefusalCode) -> Result<(), RefusedCommand> {
    match users.and_then(|users| users.first()) {
        Some(user) => Err(RefusedCommand::new(
            code,
            format!("the edge {user} refers to it"),
        )),
        None => Ok(()),
    }
}

impl Attempt<'_> {
    pub(super) fn put_backend(
        &self,
        id: &BackendId,
        controller: Option<&str>,
        kind: &BackendKind,
        service: Option<&ServicePort>,
        endpoints: &BTreeSet<SocketAddr>,
        texts: &Texts,
    ) -> Changes {
        let old = self.state.backends.get(id).map(Arc::as_ref);
        self.may_own(old.map(|old| old.controller.as_deref()), controller)?;
        if old.is_some_and(|old| old.kind != *kind || old.service.as_ref() != service) {
            return Err(immutable("backend", id));
        }
        if old.is_none() {
            self.room_for_one(
                self.state.backends.len(),
                RefusalCode::TooManyObjects,
                "backends",
            )?;
        }
        let endpoints = canonical(endpoints);
        self.check_backend(id, kind, &endpoints)?;
        let backend = Backend {
            meta: self.meta(old.map(|old| &old.meta), texts, TextCodes::BACKEND)?,
            controller: controller.map(str::to_owned),
            kind: kind.clone(),
            service: service.cloned(),
            endpoints,
        };
        Ok(vec![Change::Backend(id.clone(), Some(backend))])
    }

    pub(super) fn update_backend(
        &self,
        id: &BackendId,
        kind: Option<&BackendKind>,
        texts: &Texts,
    ) -> Changes {
        let old = self.backend(id)?;
        let mut backend = old.clone();
        backend.meta = self.meta(Some(&old.meta), texts, TextCodes::BACKEND)?;
        let mut changes = Vec::new();
        if let Some(kind) = kind.filter(|kind| **kind != old.kind) {
            backend.kind = kind.clone();
            changes = self.users_of_changed_backend(id, old)?;
        }
        self.check_backend(id, &backend.kind, &backend.endpoints)?;
        changes.push(Change::Backend(id.clone(), Some(backend)));
        Ok(changes)
    }

    /// The edges whose routes get another backend under the same id: they move with it (R17),
    /// unless a controller's route is among them, which nobody may change in place.
    fn users_of_changed_backend(&self, id: &BackendId, old: &Backend) -> Changes {
        if old.controller.is_some() {
            return Err(immutable("backend", id));
        }
        let mut changes = Vec::new();
        for edge_id in self.index.backend_users.get(id).into_iter().flatten() {
            let mut edge = Edge::clone(self.edge(edge_id)?);
            if let Some(controller) = &edge.controller {
                return Err(RefusedCommand::new(
                    RefusalCode::OwnedByController,
                    format!("a route of the controller {controller} rests on the backend {id}"),
                ));
            }
            for route in edge.routes.values_mut() {
                if route
                    .backend
                    .as_ref()
                    .is_some_and(|backend| backend.id == *id)
                {
                    route.generation = 0; // asks for a new number
                }
            }
            changes.push(Change::Edge(edge_id.clone(), Some(edge)));
        }
        Ok(changes)
    }

    pub(super) fn set_endpoints(
        &self,
        endpoints: &BTreeMap<BackendId, BTreeSet<SocketAddr>>,
    ) -> Changes {
        let mut changes = Vec::new();
        for (id, endpoints) in endpoints {
            let mut backend = self.backend(id)?.clone();
            backend.endpoints = canonical(endpoints);
            self.check_backend(id, &backend.kind, &backend.endpoints)?;
            changes.push(Change::Backend(id.clone(), Some(backend)));
        }
        Ok(changes)
    }

    pub(super) fn delete_backend(&self, id: &BackendId) -> Changes {
        self.backend(id)?;
        unused(self.index.backend_users.get(id), RefusalCode::BackendInUse)?;
        Ok(vec![Change::Backend(id.clone(), None)])
    }

    fn backend(&self, id: &BackendId) -> Result<&Backend, RefusedCommand> {
        let backend = self.state.backends.get(id).ok_or_else(|| {
            RefusedCommand::new(
                RefusalCode::BackendNotFound,
                format!("there is no backend {id}"),
            )
        })?;
        self.may_change(backend.controller.as_deref())?;
        Ok(backend)
    }

    pub(super) fn put_certificate(
        &self,
        id: &CertificateId,
        controller: Option<&str>,
        chain_pem: &str,
        key_pem: &Secret,
        texts: &Texts,
    ) -> Changes {
        let old = self.state.certificates.get(id).map(Arc::as_ref);
        self.may_own(old.map(|old| old.controller.as_deref()), controller)?;
        if old.is_some_and(|old| old.chain_pem != chain_pem || old.key_pem != *key_pem) {
            return Err(immutable("certificate", id));
        }
        if old.is_none() {
            self.room_for_one(
                self.state.certificates.len(),
                RefusalCode::TooManyObjects,
                "certificates",
            )?;
        }
        if chain_pem.trim().is_empty() {
            return Err(RefusedCommand::new(
                RefusalCode::CertificateInvalid,
                "the chain is empty",
            ));
        }
        if key_pem.expose().trim().is_empty() {
            return Err(RefusedCommand::new(
                RefusalCode::KeyInvalid,
                "the private key is empty",
            ));
        }
        let certificate = Certificate {
            meta: self.meta(old.map(|old| &old.meta), texts, TextCodes::OTHER)?,
            controller: controller.map(str::to_owned),
            chain_pem: chain_pem.to_owned(),
            key_pem: key_pem.clone(),
        };
        Ok(vec![Change::Certificate(id.clone(), Some(certificate))])
    }

    pub(super) fn update_certificate(&self, id: &CertificateId, texts: &Texts) -> Changes {
        let mut certificate = self.certificate(id)?.clone();
        certificate.meta = self.meta(Some(&certificate.meta), texts, TextCodes::OTHER)?;
        Ok(vec![Change::Certificate(id.clone(), Some(certificate))])
    }

    pub(super) fn delete_certificate(&self, id: &CertificateId) -> Changes {
        self.certificate(id)?;
        unused(
            self.index.certificate_users.get(id),
            RefusalCode::CertificateInUse,
        )?;
        Ok(vec![Change::Certificate(id.clone(), None)])
    }

    fn certificate(&self, id: &CertificateId) -> Result<&Certificate, RefusedCommand> {
        let certificate = self.state.certificates.get(id).ok_or_else(|| {
            let message = format!("there is no certificate {id}");
            RefusedCommand::new(RefusalCode::CertificateNotFound, message)
        })?;
        self.may_change(certificate.controller.as_deref())?;
        Ok(certificate)
    }

    /// Reserves a host. Who owns it is the operator's and the controller's matter (R20): a plain
    /// key reserves for any namespace, and changes no more than that.
    pub(super) fn put_domain(
        &self,
        id: &DomainId,
        controller: Option<&str>,
        host: &HostPattern,
        (namespace, heir): (Option<&str>, Option<&str>),
        declared: bool,
        texts: &Texts,
    ) -> Changes {
        let old = self.state.domains.get(id).map(Arc::as_ref);
        if controller.is_some() || namespace.is_some() || heir.is_some() {
            self.controller_key("to record who owns a host")?;
        }
        if let Some(old) = old {
            self.may_change_domain(old)?;
            if old.host != *host {
                return Err(immutable("domain", id));
            }
        } else {
            self.room_for_one(
                self.state.domains.len(),
                RefusalCode::TooManyObjects,
                "domains",
            )?;
        }
        if let Some(other) = self.index.domains.get(host).filter(|other| *other != id) {
            let message = format!("{host} is reserved already, as {other}");
            return Err(RefusedCommand::new(RefusalCode::DomainTaken, message));
        }
        if old.is_none() {
            self.may_reserve(host)?;
        }
        let undeclared_since = match (declared, old.and_then(|old| old.undeclared_since)) {
            (true, _) => None,
            (false, Some(since)) => Some(since),
            (false, None) => Some(self.context.now),
        };
        let domain = Domain {
            meta: self.meta(old.map(|old| &old.meta), texts, TextCodes::DOMAIN)?,
            controller: controller.map(str::to_owned),
            host: host.clone(),
            namespace: namespace.map(str::to_owned),
            heir: heir.map(str::to_owned),
            undeclared_since,
        };
        Ok(vec![Change::Domain(id.clone(), Some(domain))])
    }

    pub(super) fn delete_domain(&self, id: &DomainId) -> Changes {
        let domain = self.state.domains.get(id).ok_or_else(|| {
            RefusedCommand::new(
                RefusalCode::DomainNotFound,
                format!("there is no domain {id}"),
            )
        })?;
        self.may_change_domain(domain)?;
        let used = |host: &HostPattern| {
            *host == domain.host
                || (domain.host.owns(host) && self.index.domain_of(host, Some(id)).is_none())
        };
        match self.index.hosts.iter().find(|(host, _)| used(host)) {
            Some((host, edge)) => Err(RefusedCommand::new(
                RefusalCode::DomainInUse,
                format!("the edge {edge} answers for {host}"),
            )
            .at(edge, Some(host), None)),
            None => Ok(vec![Change::Domain(id.clone(), None)]),
        }
    }

    /// A plain key reserves nothing below what somebody owns, nor above it (R20).
    fn may_reserve(&self, host: &HostPattern) -> Result<(), RefusedCommand> {
        match self.context.role {
            // It may change every domain, so that none is in its way; and it reserves one for each
            // of its hosts, which would be compared with all the others.
            Role::Controller => return Ok(()),
            Role::Read | Role::Write => {}
        }
        let conflicts = |domain: &&Arc<Domain>| {
            let touches = domain.host.owns(host) || host.owns(&domain.host);
            touches && self.may_change_domain(domain).is_err()
        };
        match self.state.domains.values().find(conflicts) {
            Some(domain) => Err(RefusedCommand::new(
                RefusalCode::DomainConflict,
                format!("{} belongs to somebody", domain.host),
            )),
            None => Ok(()),
        }
    }

    pub(super) fn may_change_domain(&self, domain: &Domain) -> Result<(), RefusedCommand> {
        self.may_change(domain.controller.as_deref())?;
        self.may_change(domain.namespace.as_deref())
    }

    pub(super) fn create_key(
        &self,
        id: &KeyId,
        role: Role,
        token_digest: Digest,
        texts: &Texts,
    ) -> Changes {
        self.may_grant(role)?;
        if self.state.keys.contains_key(id) {
            let message = format!("the API key {id} is there already");
            return Err(RefusedCommand::new(RefusalCode::AlreadyExists, message));
        }
        if self.index.tokens.contains_key(&token_digest) {
            let message = "the token is that of another key";
            return Err(RefusedCommand::new(RefusalCode::TokenTaken, message));
        }
        self.room_for_one(
            self.state.keys.len(),
            RefusalCode::TooManyObjects,
            "API keys",
        )?;
        let meta = self.meta(None, texts, TextCodes::OTHER)?;
        Ok(vec![Change::Key(
            id.clone(),
            Some(ApiKey {
                meta,
                role,
                token_digest,
            }),
        )])
    }

    pub(super) fn update_key(&self, id: &KeyId, texts: &Texts) -> Changes {
        let mut key = self.key(id)?.clone();
        key.meta = self.meta(Some(&key.meta), texts, TextCodes::OTHER)?;
        Ok(vec![Change::Key(id.clone(), Some(key))])
    }

    pub(super) fn delete_key(&self, id: &KeyId) -> Changes {
        self.key(id)?;
        Ok(vec![Change::Key(id.clone(), None)])
    }

    fn key(&self, id: &KeyId) -> Result<&ApiKey, RefusedCommand> {
        let key = self.state.keys.get(id).ok_or_else(|| {
            RefusedCommand::new(
                RefusalCode::KeyNotFound,
                format!("there is no API key {id}"),
            )
        })?;
        self.may_grant(key.role)?;
        Ok(key)
    }

    /// Nobody makes, or takes away, a key that may do more than their own.
    fn may_grant(&self, role: Role) -> Result<(), RefusedCommand> {
        match role {
            Role::Controller => self.controller_key("to manage keys of that role"),
            Role::Read | Role::Write => Ok(()),
        }
    }
}
