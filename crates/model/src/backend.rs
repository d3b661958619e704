//! Backends: who answers an admitted request.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::SocketAddr,
};

use serde::{Deserialize, Serialize};

use crate::{
    id::{BackendId, StaticId, TunnelGroupId},
    object::ObjectName,
};

/// What a backend is, apart from where it is reached at the moment.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum BackendKind {
    /// Whatever announces these labels: an agent's tunnel, or a Service's endpoints dialled directly.
    TunnelGroup {
        /// The labels that must be there.
        labels: BTreeMap<String, String>,
    },
    /// A fixed answer.
    HttpResponse {
        /// The status, 200 to 599.
        status: u16,
        /// Lower-case names and values.
        headers: BTreeMap<String, String>,
        /// The body, at most 64 KiB.
        body: String,
    },
    /// One address.
    Static {
        /// `host:port`.
        address: String,
    },
}

/// Labels of the tunnel group that stands for a Service port (Kubernetes API reference of the
/// upstream controller, 0.9 and later).
pub mod label {
    /// The Service's namespace.
    pub const NAMESPACE: &str = "k8s.ngrok.com/namespace";
    /// The Service's name.
    pub const SERVICE: &str = "k8s.ngrok.com/service";
    /// The Service's uid.
    pub const SERVICE_UID: &str = "k8s.ngrok.com/service-uid";
    /// The port's number, decimal.
    pub const PORT: &str = "k8s.ngrok.com/port";
}

/// A port of a Service as a declaration names it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ServicePort {
    /// The Service.
    pub service: ObjectName,
    /// Its uid: a Service that is deleted and made anew is another backend.
    pub uid: String,
    /// The port's number.
    pub port: u16,
    /// The port's name, empty if it has none.
    pub port_name: String,
}

impl ServicePort {
    /// The labels of its tunnel group.
    #[must_use]
    pub fn labels(&self) -> BTreeMap<String, String> {
        [
            (label::NAMESPACE, self.service.namespace.clone()),
            (label::SERVICE, self.service.name.clone()),
            (label::SERVICE_UID, self.uid.clone()),
            (label::PORT, self.port.to_string()),
        ]
        .into_iter()
        .map(|(key, value)| (key.to_owned(), value))
        .collect()
    }

    /// The id of its tunnel group, the same every time.
    #[must_use]
    pub fn backend_id(&self) -> BackendId {
        BackendId::TunnelGroup(TunnelGroupId::derived(&[
            &self.service.namespace,
            &self.service.name,
            &self.uid,
            &self.port.to_string(),
        ]))
    }
}

impl std::fmt::Display for ServicePort {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.service, self.port)
    }
}

/// A backend that a declaration needs, and where it is reached at the moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeclaredBackend {
    /// The Service port it stands for.
    pub service: ServicePort,
    /// `name:port` outside the cluster, for a Service of type ExternalName: the edge looks the
    /// name up, and dials what it finds through the same policy as any address (R20).
    pub external: Option<String>,
    /// Ready endpoints. Empty: the route is open and answers 503, "no endpoints".
    pub endpoints: BTreeSet<SocketAddr>,
}

impl DeclaredBackend {
    /// Its id, the same every time. A Service that stands for another name is another backend.
    #[must_use]
    pub fn id(&self) -> BackendId {
        let Some(address) = &self.external else {
            return self.service.backend_id();
        };
        let ServicePort {
            service,
            uid,
            port,
            port_name: _,
        } = &self.service;
        let port = port.to_string();
        let parts = [&service.namespace, &service.name, uid, &port, address];
        BackendId::Static(StaticId::derived(&parts.map(String::as_str)))
    }

    /// What it is at an edge.
    #[must_use]
    pub fn kind(&self) -> BackendKind {
        match &self.external {
            Some(address) => BackendKind::Static {
                address: address.clone(),
            },
            None => BackendKind::TunnelGroup {
                labels: self.service.labels(),
            },
        }
    }
}
