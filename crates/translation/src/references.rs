//! Everything that one object may know of others: look-ups in the snapshot that tell missing,
//! undecodable and pending apart (R19), and the indexes that keep them cheap.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::SocketAddr,
};

use model::{
    backend::ServicePort,
    host::HostPattern,
    object::{ObjectName, ObjectRef},
    place::Match,
};
use resources::{
    builtin::{AddressType, EndpointSlice, Protocol},
    kinds::Kind,
    problem::FieldPath,
    secret::SecretBytes,
    snapshot::{Object, ObjectKey, Objects, Presence},
};

use crate::{
    Input, RecordedRoute,
    codes::Code,
    findings::{Findings, Site},
    options::ServicePortName,
};

/// The label that names a slice's Service (Kubernetes API reference, EndpointSlice).
const SERVICE_NAME: &str = "kubernetes.io/service-name";

/// A kind and name as the model writes it.
pub(crate) fn reference(kind: Kind, key: &ObjectKey) -> ObjectRef {
    ObjectRef::new(kind.name(), key.namespace.clone(), key.name.clone())
}

/// A field of `metadata.annotations`.
pub(crate) fn annotation(name: &str) -> FieldPath {
    FieldPath::root()
        .member("metadata")
        .member("annotations")
        .member(name)
}

/// A field below `spec`.
pub(crate) fn spec(name: &str) -> FieldPath {
    FieldPath::root().member("spec").member(name)
}

/// What is found where a name points.
pub(crate) enum Found<'a, T> {
    /// A sound object.
    Sound(&'a Object<T>, &'a T),
    /// Nothing usable; the finding has been made.
    Unusable,
}

/// The input with its indexes.
pub(crate) struct References<'a> {
    pub(crate) input: &'a Input<'a>,
    slices: BTreeMap<(&'a str, &'a str), Vec<&'a EndpointSlice>>,
    owned: BTreeMap<&'a ObjectRef, Vec<(&'a HostPattern, &'a Match, &'a RecordedRoute)>>,
}

impl<'a> References<'a> {
    pub(crate) fn new(input: &'a Input<'a>) -> Self {
        let mut slices: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for object in input.snapshot.endpoint_slices.values() {
            if let (Some(service), Ok(slice)) = (object.labels.get(SERVICE_NAME), &object.value) {
                slices
                    .entry((object.key.namespace.as_str(), service.as_str()))
                    .or_default()
                    .push(slice);
            }
        }
        let mut owned: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for (host, record) in &input.records.hosts {
            for (place, route) in &record.routes {
                owned
                    .entry(&route.owner)
                    .or_default()
                    .push((host, place, route));
            }
        }
        Self {
            input,
            slices,
            owned,
        }
    }

    /// The routes that the edge remembers for an object.
    pub(crate) fn recorded(
        &self,
        owner: &ObjectRef,
    ) -> &[(&'a HostPattern, &'a Match, &'a RecordedRoute)] {
        self.owned.get(owner).map_or(&[], Vec::as_slice)
    }

    /// Looks up what `from` names in `field`. What is wrong becomes a finding: `missing` if it is
    /// not there, the object's own problems if it does not decode.
    pub(crate) fn find<T>(
        &self,
        (kind, objects): (Kind, &'a Objects<T>),
        key: &ObjectKey,
        (from, field): (Site<'_>, &FieldPath),
        missing: (Code, &str),
        findings: &mut Findings,
    ) -> Found<'a, T> {
        let object = reference(kind, key);
        match self.input.snapshot.find(kind, objects, key) {
            Presence::There(there) => match &there.value {
                Ok(value) => Found::Sound(there, value),
                Err(undecodable) => {
                    let site = Site {
                        object: &object,
                        origin: &there.origin,
                    };
                    for problem in &undecodable.problems {
                        findings.push(site.problem(problem));
                    }
                    findings.rests_on.insert(object);
                    Found::Unusable
                }
            },
            Presence::Pending => {
                findings.push(not_read_yet(from, field, &object));
                Found::Unusable
            }
            Presence::Missing => {
                let (code, remedy) = missing;
                let message = format!("{object} does not exist");
                let diagnostic = from.finding(code, field, message, remedy);
                match code.cause() {
                    model::diagnostic::Cause::Missing => findings.push_missing(object, diagnostic),
                    model::diagnostic::Cause::Invalid
                    | model::diagnostic::Cause::Absent
                    | model::diagnostic::Cause::Pending
                    | model::diagnostic::Cause::Unenforceable
                    | model::diagnostic::Cause::Conflict
                    | model::diagnostic::Cause::Notice => findings.push(diagnostic),
                }
                Found::Unusable
            }
        }
    }

    /// The value of a Secret's key on which a protection rests. A key that is gone, or whose
    /// value is empty, is as missing as the Secret (R2, R14).
    pub(crate) fn secret(
        &self,
        key: &ObjectKey,
        entry: &str,
        at: (Site<'_>, &FieldPath),
        findings: &mut Findings,
    ) -> Option<&'a SecretBytes> {
        let (from, field) = at;
        let remedy = format!("create it with the key {entry}, or name another one");
        let kind = (Kind::Secret, &self.input.snapshot.secrets);
        let Found::Sound(_, secret) =
            self.find(kind, key, at, (Code::SecretMissing, &remedy), findings)
        else {
            if findings.missing.contains(&reference(Kind::Secret, key)) {
                name_key(findings, entry);
            }
            return None;
        };
        let object = reference(Kind::Secret, key);
        let Some(value) = secret.data.get(entry) else {
            let message = format!("{object} has no key {entry}");
            let remedy = format!("add the key {entry}, or name another one");
            findings.push_missing(
                object,
                from.finding(Code::SecretKeyMissing, field, message, remedy),
            );
            return None;
        };
        if value.expose().iter().all(u8::is_ascii_whitespace) {
            let message = format!("the key {entry} of {object} is empty");
            let remedy = "put the secret's value there: nothing is protected by an empty one";
            findings.push_missing(
                object,
                from.finding(Code::SecretEmpty, field, message, remedy),
            );
            return None;
        }
        findings.rests_on.insert(object);
        Some(value)
    }

    /// Where a Service port is reached: as the operator says, or else its ready endpoints.
    pub(crate) fn endpoints(&self, port: &ServicePort) -> BTreeSet<SocketAddr> {
        if let Some(addresses) = self.override_of(port) {
            return addresses.clone();
        }
        let key = (port.service.namespace.as_str(), port.service.name.as_str());
        let mut addresses = BTreeSet::new();
        for slice in self.slices.get(&key).into_iter().flatten() {
            if slice.address_type == AddressType::Fqdn {
                continue;
            }
            let Some(number) = slice
                .ports
                .iter()
                .find(|p| p.name == port.port_name && p.protocol == Protocol::TCP)
                .and_then(|p| p.port)
            else {
                continue;
            };
            let ready = slice
                .endpoints
                .iter()
                .filter(|e| e.conditions.ready != Some(false));
            addresses.extend(
                ready
                    .flat_map(|endpoint| &endpoint.addresses)
                    .filter_map(|address| address.parse().ok())
                    .map(|ip| model::address::canonical_socket(SocketAddr::new(ip, number))),
            );
        }
        if addresses.is_empty() {
            addresses.extend(self.input.options.stand_in);
        }
        addresses
    }

    /// What the operator says about a Service port (`--service`).
    pub(crate) fn override_of(&self, port: &ServicePort) -> Option<&'a BTreeSet<SocketAddr>> {
        let services = &self.input.options.services;
        let by = |name| services.get(&(port.service.clone(), name));
        by(ServicePortName::Number(port.port))
            .or_else(|| by(ServicePortName::Name(port.port_name.clone())))
    }
}

/// Names the key beside a Secret that is missing as a whole.
fn name_key(findings: &mut Findings, entry: &str) {
    if let Some(last) = findings.diagnostics.last_mut() {
        last.message = format!("{}; its key {entry} is needed", last.message);
    }
}

/// The finding about something that has not been read (R19).
pub(crate) fn not_read_yet(
    from: Site<'_>,
    field: &FieldPath,
    object: &ObjectRef,
) -> model::diagnostic::Diagnostic {
    from.finding(
        Code::NotReadYet,
        field,
        format!("{object} has not been read yet, or could not be read"),
        "nothing changes until it has been; if that lasts, see what keeps it from being read",
    )
}

/// The name of a namespaced object in the model's words.
pub(crate) fn object_name(key: &ObjectKey) -> ObjectName {
    ObjectName::new(key.namespace.clone(), key.name.clone())
}
