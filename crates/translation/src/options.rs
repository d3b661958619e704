//! What the operator decides about translation.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::SocketAddr,
};

use model::{host::HostPattern, module::ModuleKind, object::ObjectName};

/// How an operator names a Service's port.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ServicePortName {
    /// By number.
    Number(u16),
    /// By name.
    Name(String),
}

/// What becomes of protective annotations of other controllers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ForeignProtection {
    /// A warning.
    #[default]
    Warn,
    /// An error like any other.
    Refuse,
}

/// What the operator decides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The class that is ours where there are no IngressClass objects at all (files).
    pub ingress_class: Option<String>,
    /// Values of `spec.controller` that make an IngressClass ours.
    pub controller_names: BTreeSet<String>,
    /// The load balancer class of Services that is ours.
    pub load_balancer_class: String,
    /// `--hosts NAMESPACE=PATTERN`: a namespace that is named here may claim only what its
    /// patterns cover, and what a pattern covers may be claimed only by the namespaces that it is
    /// given to.
    pub host_limits: BTreeSet<(String, HostPattern)>,
    /// A host is free as soon as its namespace declares it no more (files: one author).
    pub release_hosts_at_once: bool,
    /// Whether Services that stand for names outside the cluster are admitted.
    pub allow_external_names: bool,
    /// What becomes of protective annotations of other controllers.
    pub foreign_protection: ForeignProtection,
    /// The modules that the edge enforces; absent if no edge was asked.
    pub enforceable: Option<BTreeSet<ModuleKind>>,
    /// `--service NAMESPACE/NAME:PORT=ADDRESS`: wins over endpoint slices.
    pub services: BTreeMap<(ObjectName, ServicePortName), BTreeSet<SocketAddr>>,
    /// What answers for Services without ready endpoints (`--demo`).
    pub stand_in: Option<SocketAddr>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            ingress_class: Some(String::from("ngrok")),
            controller_names: BTreeSet::from([String::from("k8s.ngrok.com/ingress-controller")]),
            load_balancer_class: String::from("ngrok"),
            host_limits: BTreeSet::new(),
            release_hosts_at_once: false,
            allow_external_names: false,
            foreign_protection: ForeignProtection::Warn,
            enforceable: None,
            services: BTreeMap::new(),
            stand_in: None,
        }
    }
}
