//! Flags of whatever reads declarations and drives an edge.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::SocketAddr,
    path::PathBuf,
};

use clap::{Args, ValueEnum};
use model::time::Span;
use translation::options::ServicePortName;

use super::values::{HostLimit, ServiceAddress, span};

/// What becomes of an open route whose new declaration cannot be applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OnInvalid {
    /// It keeps serving the old one.
    Hold,
    /// It closes.
    Close,
}

/// What becomes of an Ingress that carries another controller's protection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ForeignProtection {
    /// A warning.
    Warn,
    /// An error like any other.
    Refuse,
}

/// What declares, and how it is read: the flags that change what `check` says.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Declarations")]
pub(crate) struct DeclarationFlags {
    /// Manifest file or directory, or - for standard input; repeatable
    #[arg(short = 'f', long = "file", value_name = "PATH", required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// The class whose Ingresses are ours where the manifests hold no IngressClass
    #[arg(long, value_name = "NAME", default_value = "ngrok")]
    pub(crate) ingress_class: String,
    /// spec.controller of the IngressClasses that are ours; repeatable
    #[arg(
        long = "controller-name",
        value_name = "NAME",
        default_values = ["portcullis.dev/ingress-controller", "k8s.ngrok.com/ingress-controller"]
    )]
    pub(crate) controller_names: Vec<String>,
    /// Where a port of a Service is reached: NAMESPACE/NAME:PORT=ADDRESS; wins over
    /// EndpointSlices; repeatable
    #[arg(long = "service", value_name = "SERVICE")]
    pub(crate) services: Vec<ServiceAddress>,
    /// Hosts that a namespace may claim: NAMESPACE=PATTERN; a namespace that is named may claim
    /// no others; repeatable
    #[arg(long = "hosts", value_name = "LIMIT")]
    pub(crate) hosts: Vec<HostLimit>,
    /// Allow Services of type ExternalName as backends
    #[arg(long)]
    pub(crate) allow_external_names: bool,
    /// What another controller's protective annotation on our Ingress is
    #[arg(long, value_name = "WHAT", default_value = "warn")]
    pub(crate) foreign_protection: ForeignProtection,
}

/// How declarations are carried out over time.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Carrying out")]
pub(crate) struct CarryingFlags {
    /// What becomes of an open route whose new declaration cannot be applied
    #[arg(long, value_name = "WHAT", default_value = "hold")]
    pub(crate) on_invalid: OnInvalid,
    /// How long a route serves on after an object of its set is gone
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = span)]
    pub(crate) lost_grace: Span,
    /// Longest time that a route is held [default: no limit]
    #[arg(long, value_name = "TIME", value_parser = span)]
    pub(crate) hold_limit: Option<Span>,
    /// How long a removed route or host that was protected refuses before it is deleted
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = span)]
    pub(crate) tombstone: Span,
    /// How long a host still belongs to its namespace after its last declaration
    #[arg(long, value_name = "TIME", default_value = "0", value_parser = span)]
    pub(crate) host_release: Span,
    /// How often everything is compared afresh
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = span)]
    pub(crate) resync: Span,
}

impl DeclarationFlags {
    /// The same as translation takes them.
    pub(crate) fn options(
        &self,
        demo_endpoint: Option<SocketAddr>,
    ) -> translation::options::Options {
        let mut services: BTreeMap<_, BTreeSet<SocketAddr>> = BTreeMap::new();
        for ServiceAddress {
            service,
            port,
            address,
        } in &self.services
        {
            let name = port.parse().map_or_else(
                |_| ServicePortName::Name(port.clone()),
                ServicePortName::Number,
            );
            services
                .entry((service.clone(), name))
                .or_default()
                .insert(*address);
        }
        translation::options::Options {
            ingress_class: Some(self.ingress_class.clone()),
            controller_names: self.controller_names.iter().cloned().collect(),
            load_balancer_class: self.ingress_class.clone(),
            host_limits: self
                .hosts
                .iter()
                .map(|limit| (limit.namespace.clone(), limit.pattern.clone()))
                .collect(),
            // Files have one author: a host is free with its last declaration (R20).
            release_hosts_at_once: true,
            allow_external_names: self.allow_external_names,
            foreign_protection: match self.foreign_protection {
                ForeignProtection::Warn => translation::options::ForeignProtection::Warn,
                ForeignProtection::Refuse => translation::options::ForeignProtection::Refuse,
            },
            enforceable: None,
            services,
            stand_in: demo_endpoint,
        }
    }
}

impl CarryingFlags {
    /// The same as the planner takes them.
    pub(crate) const fn options(&self) -> plan::Options {
        plan::Options {
            on_invalid: match self.on_invalid {
                OnInvalid::Hold => plan::OnInvalid::Hold,
                OnInvalid::Close => plan::OnInvalid::Close,
            },
            lost_grace: self.lost_grace,
            hold_limit: self.hold_limit,
            tombstone: self.tombstone,
            host_release: self.host_release,
        }
    }
}
