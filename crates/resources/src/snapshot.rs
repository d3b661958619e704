//! A whole set of objects, as translation judges it: each with its origin, each decoded or not,
//! and what is known about the objects that could not be read (R19).

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
};

use crate::{
    builtin::{ConfigMap, EndpointSlice, Namespace, Service},
    domain::Domain,
    https_edge::HttpsEdge,
    ingress::{Ingress, IngressClass},
    ip_policy::IpPolicy,
    kinds::Kind,
    module_set::NgrokModuleSet,
    position::{Origin, Place},
    problem::Problem,
    secret::Secret,
    tcp_edge::TcpEdge,
    tls_edge::TlsEdge,
    traffic_policy::NgrokTrafficPolicy,
    tunnel::Tunnel,
};

/// An object's name within its kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectKey {
    /// The namespace; empty for cluster-scoped kinds.
    pub namespace: String,
    /// The name.
    pub name: String,
}

impl ObjectKey {
    /// Puts the two parts together.
    pub fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            namespace: namespace.into(),
            name: name.into(),
        }
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.namespace.is_empty() {
            f.write_str(&self.name)
        } else {
            write!(f, "{}/{}", self.namespace, self.name)
        }
    }
}

/// One object, decoded or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Object<T> {
    /// Its name.
    pub key: ObjectKey,
    /// Its uid; in files derived from kind, namespace and name.
    pub uid: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Its annotations.
    pub annotations: BTreeMap<String, String>,
    /// Which of two objects is older: the smaller number; at a tie the smaller key.
    pub age: u64,
    /// Whether it is being deleted.
    pub terminating: bool,
    /// Where it stands.
    pub origin: Origin,
    /// What it says, or why that cannot be told.
    pub value: Result<T, Undecodable>,
}

/// An object that does not decode. It is there, it is invalid, and whoever refers to it is
/// closed or held; the hosts and paths that could still be read are staged closed (R3).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Undecodable {
    /// All that is wrong with it, sorted; never empty.
    pub problems: Vec<Problem>,
    /// What could still be read.
    pub salvaged: Salvaged,
}

/// What could be read of an object that does not decode.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Salvaged {
    /// Hosts that it names, with their paths, in the order written. Texts as they stand, unchecked.
    pub hosts: Vec<SalvagedHost>,
    /// Whether a host may be there that could not be read: then hosts of its namespace that are
    /// not open yet stay closed (R3).
    pub hosts_unreadable: bool,
    /// Objects of its namespace that it names.
    pub references: BTreeSet<(Kind, String)>,
    /// The class that an Ingress names.
    pub class: SalvagedClass,
    /// Names of the modules that it carries, as written, understood or not.
    pub modules: Vec<String>,
}

/// A host that an undecodable object names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SalvagedHost {
    /// The host or pattern, as written, without a port.
    pub host: String,
    /// Its paths. None means that the whole host is meant, or that they cannot be told.
    pub paths: Vec<SalvagedPath>,
    /// Whether a path may be there that could not be read: then the whole host is meant.
    pub paths_unreadable: bool,
}

/// A path that an undecodable object names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SalvagedPath {
    /// The path, as written.
    pub path: String,
    /// `Exact`, `Prefix`, `exact_path`, …, as written.
    pub path_type: Option<String>,
}

/// The class that an undecodable Ingress names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum SalvagedClass {
    /// None, so the default class is meant.
    #[default]
    Absent,
    /// This one.
    Named(String),
    /// It cannot be told: it may be ours.
    Unreadable,
}

/// All objects of one kind. Shared, so that a source keeps what it has decoded and builds the
/// next snapshot from it.
pub type Objects<T> = BTreeMap<ObjectKey, Arc<Object<T>>>;

/// A file that could not be read, or is empty or half written: unreadable, not empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnreadableFile {
    /// Where reading stopped.
    pub place: Place,
    /// What is wrong, as a finding on the file.
    pub problem: Problem,
    /// What its last readable version held: pending. `None` if it was never read: it may hold
    /// anything, so everything that is missing may stand in it.
    pub known: Option<BTreeSet<(Kind, ObjectKey)>>,
    /// Hosts that a lenient scan of the text finds; staged closed where they are not open.
    pub hosts: BTreeSet<String>,
    /// Whether the text names a kind that declares hosts. With no host found, no new host opens.
    pub declares: bool,
}

/// A finding on a document that is not an object with a name: nobody can refer to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Where; `None` in a cluster.
    pub place: Option<Place>,
    /// The kind as written; empty if there is none.
    pub kind: String,
    /// The namespace and name as far as written.
    pub key: ObjectKey,
    /// What is wrong.
    pub problem: Problem,
}

/// One object that is written twice. The first one, by file and position, is not better than the
/// second: neither is used. The object is in the snapshot as undecodable, with what both name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Duplicate {
    /// The kind.
    pub kind: Kind,
    /// The name.
    pub key: ObjectKey,
    /// Where it stands, every time.
    pub places: Vec<Place>,
}

/// Whether an object is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence<'a, T> {
    /// It is; its value may be undecodable.
    There(&'a Object<T>),
    /// It has not been read, or could not be.
    Pending,
    /// It is not.
    Missing,
}

/// A whole set of objects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// Modules for Ingresses.
    pub module_sets: Objects<NgrokModuleSet>,
    /// Hosts and routes.
    pub https_edges: Objects<HttpsEdge>,
    /// TCP addresses.
    pub tcp_edges: Objects<TcpEdge>,
    /// TLS names.
    pub tls_edges: Objects<TlsEdge>,
    /// Tunnels.
    pub tunnels: Objects<Tunnel>,
    /// Reserved names.
    pub domains: Objects<Domain>,
    /// Allowed and denied addresses.
    pub ip_policies: Objects<IpPolicy>,
    /// Traffic policies.
    pub traffic_policies: Objects<NgrokTrafficPolicy>,
    /// Hosts and paths.
    pub ingresses: Objects<Ingress>,
    /// Whose Ingresses.
    pub ingress_classes: Objects<IngressClass>,
    /// Backends.
    pub services: Objects<Service>,
    /// Where backends are.
    pub endpoint_slices: Objects<EndpointSlice>,
    /// Secret values.
    pub secrets: Objects<Secret>,
    /// Certificate authorities.
    pub config_maps: Objects<ConfigMap>,
    /// Namespaces.
    pub namespaces: Objects<Namespace>,
    /// Kinds that could not be listed: every object that is missing is pending.
    pub pending_kinds: BTreeSet<Kind>,
    /// Single objects that could not be read.
    pub pending_objects: BTreeSet<(Kind, ObjectKey)>,
    /// Files that could not be read.
    pub unreadable_files: Vec<UnreadableFile>,
    /// Objects that are written more than once.
    pub duplicates: Vec<Duplicate>,
    /// What is wrong with documents that are no objects.
    pub findings: Vec<Finding>,
    /// Whether it was taken from a tree that would not come to rest (R19): it may close, tighten
    /// and withdraw, but what would open or loosen on its word is pending.
    pub only_close: bool,
}

/// A decoded object of any kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AnyObject {
    /// Modules for Ingresses.
    NgrokModuleSet(Arc<Object<NgrokModuleSet>>),
    /// Hosts and routes.
    HttpsEdge(Arc<Object<HttpsEdge>>),
    /// TCP addresses.
    TcpEdge(Arc<Object<TcpEdge>>),
    /// TLS names.
    TlsEdge(Arc<Object<TlsEdge>>),
    /// Tunnels.
    Tunnel(Arc<Object<Tunnel>>),
    /// Reserved names.
    Domain(Arc<Object<Domain>>),
    /// Allowed and denied addresses.
    IpPolicy(Arc<Object<IpPolicy>>),
    /// Traffic policies.
    NgrokTrafficPolicy(Arc<Object<NgrokTrafficPolicy>>),
    /// Hosts and paths.
    Ingress(Arc<Object<Ingress>>),
    /// Whose Ingresses.
    IngressClass(Arc<Object<IngressClass>>),
    /// Backends.
    Service(Arc<Object<Service>>),
    /// Where backends are.
    EndpointSlice(Arc<Object<EndpointSlice>>),
    /// Secret values.
    Secret(Arc<Object<Secret>>),
    /// Certificate authorities.
    ConfigMap(Arc<Object<ConfigMap>>),
    /// Namespaces.
    Namespace(Arc<Object<Namespace>>),
}

impl AnyObject {
    /// Its kind.
    #[must_use]
    pub const fn kind(&self) -> Kind {
        match self {
            Self::NgrokModuleSet(_) => Kind::NgrokModuleSet,
            Self::HttpsEdge(_) => Kind::HttpsEdge,
            Self::TcpEdge(_) => Kind::TcpEdge,
            Self::TlsEdge(_) => Kind::TlsEdge,
            Self::Tunnel(_) => Kind::Tunnel,
            Self::Domain(_) => Kind::Domain,
            Self::IpPolicy(_) => Kind::IpPolicy,
            Self::NgrokTrafficPolicy(_) => Kind::NgrokTrafficPolicy,
            Self::Ingress(_) => Kind::Ingress,
            Self::IngressClass(_) => Kind::IngressClass,
            Self::Service(_) => Kind::Service,
            Self::EndpointSlice(_) => Kind::EndpointSlice,
            Self::Secret(_) => Kind::Secret,
            Self::ConfigMap(_) => Kind::ConfigMap,
            Self::Namespace(_) => Kind::Namespace,
        }
    }

    /// Its name.
    #[must_use]
    pub fn key(&self) -> &ObjectKey {
        match self {
            Self::NgrokModuleSet(object) => &object.key,
            Self::HttpsEdge(object) => &object.key,
            Self::TcpEdge(object) => &object.key,
            Self::TlsEdge(object) => &object.key,
            Self::Tunnel(object) => &object.key,
            Self::Domain(object) => &object.key,
            Self::IpPolicy(object) => &object.key,
            Self::NgrokTrafficPolicy(object) => &object.key,
            Self::Ingress(object) => &object.key,
            Self::IngressClass(object) => &object.key,
            Self::Service(object) => &object.key,
            Self::EndpointSlice(object) => &object.key,
            Self::Secret(object) => &object.key,
            Self::ConfigMap(object) => &object.key,
            Self::Namespace(object) => &object.key,
        }
    }
}

impl Snapshot {
    /// Takes an object in. One that is there already makes both a [`Duplicate`].
    pub fn insert(&mut self, object: AnyObject) {
        match object {
            AnyObject::NgrokModuleSet(object) => self
                .module_sets
                .insert(object.key.clone(), object)
                .is_some(),
            AnyObject::HttpsEdge(object) => self
                .https_edges
                .insert(object.key.clone(), object)
                .is_some(),
            AnyObject::TcpEdge(object) => {
                self.tcp_edges.insert(object.key.clone(), object).is_some()
            }
            AnyObject::TlsEdge(object) => {
                self.tls_edges.insert(object.key.clone(), object).is_some()
            }
            AnyObject::Tunnel(object) => self.tunnels.insert(object.key.clone(), object).is_some(),
            AnyObject::Domain(object) => self.domains.insert(object.key.clone(), object).is_some(),
            AnyObject::IpPolicy(object) => self
                .ip_policies
                .insert(object.key.clone(), object)
                .is_some(),
            AnyObject::NgrokTrafficPolicy(object) => self
                .traffic_policies
                .insert(object.key.clone(), object)
                .is_some(),
            AnyObject::Ingress(object) => {
                self.ingresses.insert(object.key.clone(), object).is_some()
            }
            AnyObject::IngressClass(object) => self
                .ingress_classes
                .insert(object.key.clone(), object)
                .is_some(),
            AnyObject::Service(object) => {
                self.services.insert(object.key.clone(), object).is_some()
            }
            AnyObject::EndpointSlice(object) => self
                .endpoint_slices
                .insert(object.key.clone(), object)
                .is_some(),
            AnyObject::Secret(object) => self.secrets.insert(object.key.clone(), object).is_some(),
            AnyObject::ConfigMap(object) => self
                .config_maps
                .insert(object.key.clone(), object)
                .is_some(),
            AnyObject::Namespace(object) => {
                self.namespaces.insert(object.key.clone(), object).is_some()
            }
        };
    }

    /// Whether an object is there, missing, or not read (R19).
    pub fn find<'a, T>(
        &self,
        kind: Kind,
        objects: &'a Objects<T>,
        key: &ObjectKey,
    ) -> Presence<'a, T> {
        let id = (kind, key.clone());
        let pending = self.pending_kinds.contains(&kind)
            || self.pending_objects.contains(&id)
            || self
                .unreadable_files
                .iter()
                .any(|file| file.known.as_ref().is_none_or(|known| known.contains(&id)));
        match objects.get(key) {
            Some(object) => Presence::There(object),
            None if pending => Presence::Pending,
            None => Presence::Missing,
        }
    }
}
