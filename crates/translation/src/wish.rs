//! What one object asks for, judged by itself: before anybody asks whose the host is, and which
//! of two declarations stands.

use std::{collections::BTreeMap, rc::Rc};

use model::{
    backend::ServicePort, declaration::DeclaredCertificate, host::HostPattern, module::EdgeDemands,
    object::ObjectRef, place::Match,
};
use resources::{kinds::Kind, position::Origin, problem::FieldPath, snapshot::Object};

use crate::{
    annotations,
    findings::{Findings, Site},
    preflight::Judged,
    references::reference,
};

/// The edge-wide modules that an object demands (R13).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum EdgeWide {
    /// These.
    Known(EdgeDemands),
    /// These at least; a module set that may demand more is missing or unreadable. If the object
    /// has been served, what is in force on its hosts stays.
    Unknown(EdgeDemands),
    /// Something that cannot be had: no route of the host may open.
    Failed,
    /// It has not been read yet.
    Pending,
}

/// What one object asks for.
pub(crate) struct Wish<'a> {
    pub(crate) object: ObjectRef,
    pub(crate) origin: &'a Origin,
    /// Smaller is older.
    pub(crate) age: u64,
    /// What concerns every route of it.
    pub(crate) findings: Findings,
    /// What it demands edge-wide, and what was found about that.
    pub(crate) edge_wide: EdgeWide,
    pub(crate) edge_findings: Findings,
    /// Names of modules that could not be understood.
    pub(crate) unread_modules: Vec<String>,
    /// Whether modules may be meant that could not be read: they may be access modules.
    pub(crate) may_restrict: bool,
    /// The namespace that may declare names below its wildcards, and that its hosts pass to when
    /// the last declaration of this namespace ends (R20).
    pub(crate) hand_over: Option<String>,
    /// Its hosts.
    pub(crate) hosts: BTreeMap<HostPattern, WishedHost>,
    /// What could not even be salvaged of it.
    pub(crate) unread: Unread,
}

/// What could not be read of an object that does not decode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Unread {
    /// Every host and path could.
    Nothing,
    /// Some paths.
    Paths,
    /// Some hosts.
    Hosts,
}

/// A host in a wish.
pub(crate) struct WishedHost {
    /// Where the object names it.
    pub(crate) field: FieldPath,
    pub(crate) routes: Vec<WishedRoute>,
    pub(crate) certificate: Certificate,
    /// What concerns every route of this host in this object.
    pub(crate) findings: Findings,
}

/// The certificate that a wish brings for a host.
pub(crate) enum Certificate {
    /// None is named.
    None,
    /// This one, from this Secret.
    Sound(Rc<DeclaredCertificate>),
    /// One is named that cannot be used; the one in force stays.
    Unusable,
}

/// A route in a wish.
#[derive(Clone)]
pub(crate) struct WishedRoute {
    pub(crate) place: Match,
    /// Whether the path could not be told, only that it lies at or below `place`: then nobody's
    /// routes there may open or change (R3), since they would answer in its stead.
    pub(crate) is_guess: bool,
    /// Where the object names it.
    pub(crate) field: FieldPath,
    /// Whether it only answers where nobody else does (`defaultBackend`).
    pub(crate) is_default: bool,
    pub(crate) judged: Rc<Judged>,
    pub(crate) backend: Backend,
    pub(crate) findings: Findings,
}

/// A backend in a wish.
#[derive(Clone, Debug, Default)]
pub(crate) struct Backend {
    /// The Service port, if all is well.
    pub(crate) port: Option<ServicePort>,
    /// `name:port` outside the cluster, if it stands for that.
    pub(crate) external: Option<String>,
    /// `NAMESPACE/NAME:PORT` as far as known.
    pub(crate) text: Option<String>,
    pub(crate) findings: Findings,
}

impl<'a> Wish<'a> {
    pub(crate) fn new<T>(kind: Kind, object: &'a Object<T>) -> Self {
        Self {
            object: reference(kind, &object.key),
            origin: &object.origin,
            age: object.age,
            findings: Findings::default(),
            edge_wide: EdgeWide::Known(EdgeDemands::default()),
            edge_findings: Findings::default(),
            unread_modules: Vec::new(),
            may_restrict: false,
            hand_over: object
                .annotations
                .get(annotations::HAND_OVER)
                .map(|namespace| namespace.trim().to_owned())
                .filter(|namespace| *namespace != object.key.namespace),
            hosts: BTreeMap::new(),
            unread: Unread::Nothing,
        }
    }

    pub(crate) fn site(&self) -> Site<'_> {
        Site {
            object: &self.object,
            origin: self.origin,
        }
    }

    /// The order in which declarations stand: the older first, then by name.
    pub(crate) fn rank(&self) -> (u64, &str, &str, &str) {
        let ObjectRef {
            kind,
            namespace,
            name,
        } = &self.object;
        (self.age, namespace, name, kind)
    }

    /// The host of this name, named first in `field`.
    pub(crate) fn host(&mut self, host: HostPattern, field: &FieldPath) -> &mut WishedHost {
        self.hosts.entry(host).or_insert_with(|| WishedHost {
            field: field.clone(),
            routes: Vec::new(),
            certificate: Certificate::None,
            findings: Findings::default(),
        })
    }
}
