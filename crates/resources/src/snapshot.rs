//! A whole set of objects, as translation judges it: each with its origin, each decoded or not,
//! and what is known about the objects that could not be read (R19).

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
};

use serde::Serialize;

use crate::{
    builtin::{ConfigMap, EndpointSlice, Namespace, Service},
    domain::Domain,
    https_edge::HttpsEdge,
    ingress::{Ingress, IngressClass},
    ip_policy::IpPolicy,
    kinds::Kind,
    module_set::NgrokModuleSet,
    position::{Origin, Place},
    problem::{FieldPath, Problem, ProblemCode},
    salvage::salvage,
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
    /// Paths that the user named and under which no object of these kinds stands, each with how
    /// many manifests there are.
    pub empty_paths: BTreeMap<String, usize>,
    /// Objects that are written more than once, with every place where they stand: the first one,
    /// by file and position, is not better than the second, and neither is used. The object is in
    /// the snapshot as undecodable, with what all of them name.
    pub duplicates: BTreeMap<(Kind, ObjectKey), Vec<Place>>,
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

/// The same expression for an object of whatever kind.
macro_rules! of_any {
    ($any:expr, $object:ident => $body:expr) => {
        match $any {
            AnyObject::NgrokModuleSet($object) => $body,
            AnyObject::HttpsEdge($object) => $body,
            AnyObject::TcpEdge($object) => $body,
            AnyObject::TlsEdge($object) => $body,
            AnyObject::Tunnel($object) => $body,
            AnyObject::Domain($object) => $body,
            AnyObject::IpPolicy($object) => $body,
            AnyObject::NgrokTrafficPolicy($object) => $body,
            AnyObject::Ingress($object) => $body,
            AnyObject::IngressClass($object) => $body,
            AnyObject::Service($object) => $body,
            AnyObject::EndpointSlice($object) => $body,
            AnyObject::Secret($object) => $body,
            AnyObject::ConfigMap($object) => $body,
            AnyObject::Namespace($object) => $body,
        }
    };
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
        of_any!(self, object => &object.key)
    }

    /// Where it stands.
    #[must_use]
    pub fn origin(&self) -> &Origin {
        of_any!(self, object => &object.origin)
    }
}

impl Snapshot {
    /// Takes an object in. Where one of the kind and name is already, neither is used: the place is
    /// taken by an undecodable object that names what both name, and `duplicates` tells where
    /// they stand. Many of one name cost what they are, not what went before them.
    pub fn insert(&mut self, object: AnyObject) {
        let kind = object.kind();
        let twice = &mut self.duplicates;
        match object {
            AnyObject::NgrokModuleSet(object) => add(kind, &mut self.module_sets, twice, object),
            AnyObject::HttpsEdge(object) => add(kind, &mut self.https_edges, twice, object),
            AnyObject::TcpEdge(object) => add(kind, &mut self.tcp_edges, twice, object),
            AnyObject::TlsEdge(object) => add(kind, &mut self.tls_edges, twice, object),
            AnyObject::Tunnel(object) => add(kind, &mut self.tunnels, twice, object),
            AnyObject::Domain(object) => add(kind, &mut self.domains, twice, object),
            AnyObject::IpPolicy(object) => add(kind, &mut self.ip_policies, twice, object),
            AnyObject::NgrokTrafficPolicy(object) => {
                add(kind, &mut self.traffic_policies, twice, object)
            }
            AnyObject::Ingress(object) => add(kind, &mut self.ingresses, twice, object),
            AnyObject::IngressClass(object) => add(kind, &mut self.ingress_classes, twice, object),
            AnyObject::Service(object) => add(kind, &mut self.services, twice, object),
            AnyObject::EndpointSlice(object) => add(kind, &mut self.endpoint_slices, twice, object),
            AnyObject::Secret(object) => add(kind, &mut self.secrets, twice, object),
            AnyObject::ConfigMap(object) => add(kind, &mut self.config_maps, twice, object),
            AnyObject::Namespace(object) => add(kind, &mut self.namespaces, twice, object),
        }
    }

    /// Whether an object is there, missing, or not read (R19).
    pub fn find<'a, T>(
        &self,
        kind: Kind,
        objects: &'a Objects<T>,
        key: &ObjectKey,
    ) -> Presence<'a, T> {
        match objects.get(key) {
            Some(object) => Presence::There(object),
            None if self.may_be_unread(kind, key) => Presence::Pending,
            None => Presence::Missing,
        }
    }

    /// Whether an object that is not here may stand where nothing could be read.
    fn may_be_unread(&self, kind: Kind, key: &ObjectKey) -> bool {
        let id = (kind, key.clone());
        self.pending_kinds.contains(&kind)
            || self.pending_objects.contains(&id)
            || self
                .unreadable_files
                .iter()
                .any(|file| file.known.as_ref().is_none_or(|known| known.contains(&id)))
    }
}

fn add<T: Serialize>(
    kind: Kind,
    objects: &mut Objects<T>,
    duplicates: &mut BTreeMap<(Kind, ObjectKey), Vec<Place>>,
    object: Arc<Object<T>>,
) {
    let places = |object: &Object<T>| object.origin.place(&FieldPath::root());
    let Some(first) = objects.get_mut(&object.key) else {
        objects.insert(object.key.clone(), object);
        return;
    };
    let id = (kind, object.key.clone());
    let known = duplicates.contains_key(&id);
    let all = duplicates.entry(id).or_default();
    // What stands for the earlier ones was made here, and nobody else has it: it is added to.
    if let Some(both) = Arc::get_mut(first).filter(|_| known)
        && let Err(Undecodable {
            problems: _,
            salvaged,
        }) = &mut both.value
    {
        all.extend(places(&object));
        salvaged.add(named_by(kind, &object));
        both.age = both.age.min(object.age);
        both.terminating &= object.terminating;
        return;
    }
    all.extend(places(first));
    all.extend(places(&object));
    let mut salvaged = named_by(kind, first);
    salvaged.add(named_by(kind, &object));
    let Object {
        key,
        uid,
        labels,
        annotations,
        age,
        terminating,
        origin,
        value: _,
    } = &**first;
    let problem = Problem::new(
        FieldPath::root(),
        ProblemCode::Duplicate,
        format!("{kind} {key} is written more than once"),
        "keep one of them; until then none is used",
    );
    *first = Arc::new(Object {
        key: key.clone(),
        uid: uid.clone(),
        labels: labels.clone(),
        annotations: annotations.clone(),
        age: *age.min(&object.age),
        terminating: *terminating && object.terminating,
        origin: origin.clone(),
        value: Err(Undecodable {
            problems: vec![problem],
            salvaged,
        }),
    });
}

/// What an object names, decoded or not.
fn named_by<T: Serialize>(kind: Kind, object: &Object<T>) -> Salvaged {
    match &object.value {
        // A typed value that cannot be written down does not exist; if it did, nothing is known.
        Ok(value) => salvage(kind, &serde_json::to_value(value).unwrap_or_default()),
        Err(undecodable) => undecodable.salvaged.clone(),
    }
}

impl Salvaged {
    /// Takes in what another one names.
    fn add(&mut self, other: Self) {
        let Self {
            hosts,
            hosts_unreadable,
            references,
            class,
            modules,
        } = other;
        self.hosts.extend(hosts);
        self.hosts_unreadable |= hosts_unreadable;
        self.references.extend(references);
        if self.class != class {
            // Of two classes one may be ours.
            self.class = SalvagedClass::Unreadable;
        }
        self.modules.extend(modules);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An Ingress of one name, with a host of its own.
    fn ingress(number: usize) -> AnyObject {
        let host = SalvagedHost {
            host: format!("{number}.example.com"),
            paths: Vec::new(),
            paths_unreadable: false,
        };
        AnyObject::Ingress(Arc::new(Object {
            key: ObjectKey::new("default", "web"),
            uid: String::new(),
            labels: BTreeMap::new(),
            annotations: BTreeMap::new(),
            age: number as u64,
            terminating: false,
            origin: Origin::Cluster,
            value: Err(Undecodable {
                problems: Vec::new(),
                salvaged: Salvaged {
                    hosts: vec![host],
                    ..Salvaged::default()
                },
            }),
        }))
    }

    #[test]
    fn many_objects_of_one_name_cost_what_each_of_them_is() {
        let mut snapshot = Snapshot::default();
        snapshot.insert(ingress(0));
        snapshot.insert(ingress(1));
        let key = ObjectKey::new("default", "web");
        let stands = |snapshot: &Snapshot| Arc::as_ptr(&snapshot.ingresses[&key]);
        let first = stands(&snapshot);
        for number in 2..50_000 {
            snapshot.insert(ingress(number));
            // What stands for all of them is added to: made anew, each would cost all before it.
            assert_eq!(stands(&snapshot), first);
        }
        let Err(undecodable) = &snapshot.ingresses[&key].value else {
            panic!("none of them is used");
        };
        assert_eq!(undecodable.salvaged.hosts.len(), 50_000);
        assert_eq!(undecodable.problems.len(), 1);
        assert_eq!(snapshot.ingresses[&key].age, 0);
        assert_eq!(snapshot.duplicates.len(), 1);
    }
}
