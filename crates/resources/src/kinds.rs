//! The kinds that are read, and what every other `apiVersion` and `kind` means.

use std::fmt;

use crate::{
    problem::{FieldPath, Problem, ProblemCode},
    suggestion,
};

/// A kind of object that is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Modules for Ingresses.
    NgrokModuleSet,
    /// Hosts and routes.
    HttpsEdge,
    /// TCP addresses.
    TcpEdge,
    /// TLS names.
    TlsEdge,
    /// Tunnels.
    Tunnel,
    /// Reserved names.
    Domain,
    /// Allowed and denied addresses.
    IpPolicy,
    /// Traffic policies.
    NgrokTrafficPolicy,
    /// Hosts and paths.
    Ingress,
    /// Whose Ingresses.
    IngressClass,
    /// Backends.
    Service,
    /// Where backends are.
    EndpointSlice,
    /// Secret values.
    Secret,
    /// Certificate authorities.
    ConfigMap,
    /// Namespaces.
    Namespace,
}

/// Group of most of our kinds.
const INGRESS_GROUP: &str = "ingress.k8s.ngrok.com";
/// Group of the traffic policies.
const NGROK_GROUP: &str = "ngrok.k8s.ngrok.com";

impl Kind {
    /// Every kind, in order.
    pub const ALL: [Self; 15] = [
        Self::NgrokModuleSet,
        Self::HttpsEdge,
        Self::TcpEdge,
        Self::TlsEdge,
        Self::Tunnel,
        Self::Domain,
        Self::IpPolicy,
        Self::NgrokTrafficPolicy,
        Self::Ingress,
        Self::IngressClass,
        Self::Service,
        Self::EndpointSlice,
        Self::Secret,
        Self::ConfigMap,
        Self::Namespace,
    ];

    /// The kind as manifests write it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::NgrokModuleSet => "NgrokModuleSet",
            Self::HttpsEdge => "HTTPSEdge",
            Self::TcpEdge => "TCPEdge",
            Self::TlsEdge => "TLSEdge",
            Self::Tunnel => "Tunnel",
            Self::Domain => "Domain",
            Self::IpPolicy => "IPPolicy",
            Self::NgrokTrafficPolicy => "NgrokTrafficPolicy",
            Self::Ingress => "Ingress",
            Self::IngressClass => "IngressClass",
            Self::Service => "Service",
            Self::EndpointSlice => "EndpointSlice",
            Self::Secret => "Secret",
            Self::ConfigMap => "ConfigMap",
            Self::Namespace => "Namespace",
        }
    }

    /// The API group; empty for the core group.
    #[must_use]
    pub const fn group(self) -> &'static str {
        match self {
            Self::NgrokModuleSet
            | Self::HttpsEdge
            | Self::TcpEdge
            | Self::TlsEdge
            | Self::Tunnel
            | Self::Domain
            | Self::IpPolicy => INGRESS_GROUP,
            Self::NgrokTrafficPolicy => NGROK_GROUP,
            Self::Ingress | Self::IngressClass => "networking.k8s.io",
            Self::EndpointSlice => "discovery.k8s.io",
            Self::Service | Self::Secret | Self::ConfigMap | Self::Namespace => "",
        }
    }

    /// The version in the group.
    #[must_use]
    pub const fn version(self) -> &'static str {
        if self.is_custom() { "v1alpha1" } else { "v1" }
    }

    /// The plural, as in URLs.
    #[must_use]
    pub const fn plural(self) -> &'static str {
        match self {
            Self::NgrokModuleSet => "ngrokmodulesets",
            Self::HttpsEdge => "httpsedges",
            Self::TcpEdge => "tcpedges",
            Self::TlsEdge => "tlsedges",
            Self::Tunnel => "tunnels",
            Self::Domain => "domains",
            Self::IpPolicy => "ippolicies",
            Self::NgrokTrafficPolicy => "ngroktrafficpolicies",
            Self::Ingress => "ingresses",
            Self::IngressClass => "ingressclasses",
            Self::Service => "services",
            Self::EndpointSlice => "endpointslices",
            Self::Secret => "secrets",
            Self::ConfigMap => "configmaps",
            Self::Namespace => "namespaces",
        }
    }

    /// Whether it is one of ours, defined by a CRD.
    #[must_use]
    pub const fn is_custom(self) -> bool {
        match self {
            Self::NgrokModuleSet
            | Self::HttpsEdge
            | Self::TcpEdge
            | Self::TlsEdge
            | Self::Tunnel
            | Self::Domain
            | Self::IpPolicy
            | Self::NgrokTrafficPolicy => true,
            Self::Ingress
            | Self::IngressClass
            | Self::Service
            | Self::EndpointSlice
            | Self::Secret
            | Self::ConfigMap
            | Self::Namespace => false,
        }
    }

    /// Whether its objects live in namespaces.
    #[must_use]
    pub const fn is_namespaced(self) -> bool {
        !matches!(self, Self::IngressClass | Self::Namespace)
    }

    /// Whether it can declare routes or hosts (R19): while one of its objects cannot be read,
    /// nothing of what it may have declared is removed.
    #[must_use]
    pub const fn is_declaring(self) -> bool {
        match self {
            Self::Ingress | Self::HttpsEdge | Self::TcpEdge | Self::TlsEdge | Self::Domain => true,
            Self::NgrokModuleSet
            | Self::Tunnel
            | Self::IpPolicy
            | Self::NgrokTrafficPolicy
            | Self::IngressClass
            | Self::Service
            | Self::EndpointSlice
            | Self::Secret
            | Self::ConfigMap
            | Self::Namespace => false,
        }
    }

    /// `group/version`, or the version alone in the core group.
    #[must_use]
    pub fn api_version(self) -> String {
        match self.group() {
            "" => self.version().to_owned(),
            group => format!("{group}/{}", self.version()),
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What a document is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Class {
    /// An object that is read.
    Read(Kind),
    /// A list, whose `items` are documents of their own.
    List,
    /// Somebody else's (a Deployment).
    Ignored,
}

/// What a document of this `apiVersion` and `kind` is.
///
/// # Errors
/// A kind of a group ending in `ngrok.com` that is not ours; a misspelt kind in a group that is
/// read; one of the read kinds under another version, or under a group that it once had or is
/// likely meant for: ignoring these would drop a protection or a whole declaration in silence.
pub fn classify(api_version: &str, kind: &str) -> Result<Class, Problem> {
    let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
    if (api_version, kind) == ("v1", "List") {
        return Ok(Class::List);
    }
    let ngrok = group == "ngrok.com" || group.ends_with(".ngrok.com");
    // `Domain` and `Tunnel` are words that other groups use too, so a kind is only suspicious in a
    // group that is read, was once, or is written nearly like one.
    let ours = ngrok
        || group == "extensions"
        || Kind::ALL.iter().any(|known| known.group() == group)
        || suggestion::nearest(group, Kind::ALL.into_iter().map(Kind::group)).is_some();
    let known = Kind::ALL.into_iter().find(|known| known.name() == kind);
    match known {
        Some(known) if known.group() == group && known.version() == version => {
            Ok(Class::Read(known))
        }
        Some(known) if ours => Err(wrong_version(api_version, known)),
        // Whoever writes it means hosts, but for the groups that have one of their own.
        _ if !ours && kind.eq_ignore_ascii_case("Ingress") && !OTHER_INGRESSES.contains(&group) => {
            Err(wrong_version(api_version, Kind::Ingress))
        }
        Some(_) => Ok(Class::Ignored),
        // A list of one kind, as `kubectl get` once wrote it.
        None if kind
            .strip_suffix("List")
            .is_some_and(|item| is_read(api_version, item)) =>
        {
            Ok(Class::List)
        }
        // `kind: ingress`, `kind: Ingresss`: an API server would not know them either.
        None if ngrok || (ours && is_slip(group, kind)) => Err(unknown_kind(api_version, kind)),
        None => Ok(Class::Ignored),
    }
}

/// Groups with an `Ingress` that declares nothing here.
const OTHER_INGRESSES: [&str; 2] = ["config.openshift.io", "networking.internal.knative.dev"];

/// Whether a kind is nearly one that this group has, or one that declares hosts.
fn is_slip(group: &str, kind: &str) -> bool {
    match meant(kind) {
        Some(Class::Read(known)) => known.group() == group || known.is_declaring(),
        Some(Class::List) => group.is_empty(),
        Some(Class::Ignored) | None => false,
    }
}

/// What a kind that is not known was probably meant to be.
#[must_use]
pub fn meant(kind: &str) -> Option<Class> {
    let near = suggestion::nearest(kind, Kind::ALL.into_iter().map(Kind::name).chain(["List"]))?;
    let known = Kind::ALL.into_iter().find(|known| known.name() == near);
    Some(known.map_or(Class::List, Class::Read))
}

fn is_read(api_version: &str, kind: &str) -> bool {
    Kind::ALL
        .into_iter()
        .any(|known| known.name() == kind && known.api_version() == api_version)
}

fn wrong_version(api_version: &str, known: Kind) -> Problem {
    Problem::new(
        FieldPath::root().member("apiVersion"),
        ProblemCode::WrongVersion,
        format!("there is no {known} in {api_version}"),
        format!("write apiVersion: {}", known.api_version()),
    )
}

fn unknown_kind(api_version: &str, kind: &str) -> Problem {
    let group = api_version.rsplit_once('/').map_or("", |(group, _)| group);
    let custom = Kind::ALL
        .into_iter()
        .filter(|known| known.is_custom() || known.group() == group);
    let candidates = custom.clone().chain([Kind::Ingress]).map(Kind::name);
    let list = group.is_empty().then_some("List");
    let remedy = match suggestion::nearest(kind, candidates.chain(list)) {
        Some(near) => format!("did you mean {near}?"),
        None => format!(
            "the kinds are {}",
            suggestion::listing(custom.map(Kind::name), "and")
        ),
    };
    Problem::new(
        FieldPath::root().member("kind"),
        ProblemCode::UnknownKind,
        format!("there is no kind {kind} in {api_version} that this controller handles"),
        remedy,
    )
}
