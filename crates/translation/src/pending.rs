//! What could not be read (R19): whose declarations are pending, which hosts a broken file names,
//! and where nothing new may open.

use std::collections::{BTreeMap, BTreeSet};

use model::{
    declaration::Unreadable,
    diagnostic::{Diagnostic, Position, Severity},
    host::HostPattern,
    object::ObjectRef,
};
use resources::{
    kinds::Kind,
    snapshot::{Finding, Object, ObjectKey, Objects, Snapshot, Undecodable, UnreadableFile},
};

use crate::{
    codes::Code,
    edges::scanned,
    findings::{FILE, fit},
    references::reference,
    wish::{Unread, Wish},
};

/// What could not be read.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    /// Objects that declare something that could not be read.
    pub(crate) owners: BTreeSet<ObjectRef>,
    /// Whether anything that is not here may still be declared.
    pub(crate) nothing_is_removed: bool,
    /// Where nothing new may open.
    pub(crate) unreadable: BTreeSet<Unreadable>,
    /// Hosts that broken files name, with the finding about the file.
    pub(crate) scanned: BTreeMap<HostPattern, Diagnostic>,
    /// Every object that is there, of the kinds that declare routes.
    present: BTreeSet<ObjectRef>,
}

impl Pending {
    /// Reads a snapshot. `unclear`: namespaces with an Ingress that may be ours.
    pub(crate) fn of(snapshot: &Snapshot, unclear: Vec<String>, wishes: &[Wish<'_>]) -> Self {
        let mut pending = Self {
            nothing_is_removed: snapshot
                .pending_kinds
                .iter()
                .any(|kind| kind.is_declaring())
                || snapshot
                    .unreadable_files
                    .iter()
                    .any(|file| file.known.is_none()),
            ..Self::default()
        };
        pending
            .unreadable
            .extend(unclear.into_iter().map(Unreadable::Namespace));
        for wish in wishes {
            match wish.unread {
                // A path that could not be told may be one that it has at the edge.
                Unread::Nothing => {
                    let mut routes = wish.hosts.values().flat_map(|host| &host.routes);
                    if routes.any(|route| route.is_guess) {
                        pending.owners.insert(wish.object.clone());
                    }
                }
                Unread::Paths => {
                    pending.owners.insert(wish.object.clone());
                }
                Unread::Hosts => {
                    let namespace = wish.object.namespace.clone();
                    pending.unreadable.insert(Unreadable::Namespace(namespace));
                    pending.owners.insert(wish.object.clone());
                }
            }
        }
        let keys = |kind| move |key: &ObjectKey| reference(kind, key);
        let present = &mut pending.present;
        present.extend(snapshot.ingresses.keys().map(keys(Kind::Ingress)));
        present.extend(snapshot.https_edges.keys().map(keys(Kind::HttpsEdge)));
        present.extend(snapshot.tls_edges.keys().map(keys(Kind::TlsEdge)));
        present.extend(snapshot.domains.keys().map(keys(Kind::Domain)));
        let known = snapshot
            .unreadable_files
            .iter()
            .filter_map(|file| file.known.as_ref())
            .flatten();
        for (kind, key) in snapshot.pending_objects.iter().chain(known) {
            let object = reference(*kind, key);
            if kind.is_declaring() && !pending.present.contains(&object) {
                pending.owners.insert(object);
            }
        }
        for file in &snapshot.unreadable_files {
            let finding = file_finding(file);
            let before = pending.scanned.len();
            for host in scanned(&file.hosts) {
                pending
                    .scanned
                    .entry(host)
                    .or_insert_with(|| finding.clone());
            }
            let any = pending.scanned.len() > before || scanned(&file.hosts).next().is_some();
            // A file that never held a declaration, and now names one without a readable host, may
            // declare any host.
            let new = file.known.as_ref().is_none_or(BTreeSet::is_empty);
            if new && file.declares && !any {
                pending.unreadable.insert(Unreadable::Everything);
            }
        }
        pending
    }

    /// Whether an object that declared something may still do, though it cannot be read.
    pub(crate) fn is_pending(&self, owner: &ObjectRef) -> bool {
        self.owners.contains(owner) || (self.nothing_is_removed && !self.present.contains(owner))
    }
}

/// Namespaces and objects that declare routes, on their way out (R5).
pub(crate) fn terminating(snapshot: &Snapshot) -> BTreeSet<ObjectRef> {
    fn of<T>(kind: Kind, objects: &Objects<T>) -> impl Iterator<Item = ObjectRef> {
        let going = objects.values().filter(|object| object.terminating);
        going.map(move |object| reference(kind, &object.key))
    }
    of(Kind::Namespace, &snapshot.namespaces)
        .chain(of(Kind::Ingress, &snapshot.ingresses))
        .chain(of(Kind::HttpsEdge, &snapshot.https_edges))
        .collect()
}

/// The finding about a file that cannot be read.
pub(crate) fn file_finding(file: &UnreadableFile) -> Diagnostic {
    let place = &file.place;
    fit(Diagnostic {
        object: ObjectRef::new(FILE, "", place.file.as_ref()),
        field: String::new(),
        position: Some(Position {
            file: place.file.to_string(),
            line: place.at.line,
            column: place.at.column,
        }),
        code: Code::FileUnreadable.name().to_owned(),
        severity: Code::FileUnreadable.severity(),
        cause: Code::FileUnreadable.cause(),
        message: format!(
            "{}; what this file held stays as it is",
            file.problem.message
        ),
        remedy: file.problem.remedy.clone(),
    })
}

/// What the user named and in which nothing is found: a wrong directory or suffix, most often.
fn nothing_found((path, manifests): (&String, &usize)) -> Diagnostic {
    let (message, remedy) = match manifests {
        0 => (
            format!("there is no manifest under {path}"),
            "in directories, files named *.yaml, *.yml and *.json count, and hidden files and backups do not",
        ),
        _ => (
            format!("{path} holds no object of a kind that is used here"),
            "name the file or directory that holds the Ingresses",
        ),
    };
    fit(Diagnostic {
        object: ObjectRef::new(FILE, "", path.as_str()),
        field: String::new(),
        position: None,
        code: Code::NothingFound.name().to_owned(),
        severity: Code::NothingFound.severity(),
        cause: Code::NothingFound.cause(),
        message,
        remedy: remedy.to_owned(),
    })
}

/// What is wrong with every object in itself, used or not, and with documents that are none.
pub(crate) fn problems(snapshot: &Snapshot) -> Vec<Diagnostic> {
    let mut all = Vec::new();
    undecodable(Kind::NgrokModuleSet, &snapshot.module_sets, &mut all);
    undecodable(Kind::HttpsEdge, &snapshot.https_edges, &mut all);
    undecodable(Kind::TcpEdge, &snapshot.tcp_edges, &mut all);
    undecodable(Kind::TlsEdge, &snapshot.tls_edges, &mut all);
    undecodable(Kind::Tunnel, &snapshot.tunnels, &mut all);
    undecodable(Kind::Domain, &snapshot.domains, &mut all);
    undecodable(Kind::IpPolicy, &snapshot.ip_policies, &mut all);
    undecodable(
        Kind::NgrokTrafficPolicy,
        &snapshot.traffic_policies,
        &mut all,
    );
    undecodable(Kind::Ingress, &snapshot.ingresses, &mut all);
    undecodable(Kind::IngressClass, &snapshot.ingress_classes, &mut all);
    undecodable(Kind::Service, &snapshot.services, &mut all);
    undecodable(Kind::EndpointSlice, &snapshot.endpoint_slices, &mut all);
    undecodable(Kind::Secret, &snapshot.secrets, &mut all);
    undecodable(Kind::ConfigMap, &snapshot.config_maps, &mut all);
    undecodable(Kind::Namespace, &snapshot.namespaces, &mut all);
    all.extend(snapshot.unreadable_files.iter().map(file_finding));
    all.extend(snapshot.empty_paths.iter().map(nothing_found));
    all.extend(snapshot.findings.iter().map(document));
    all
}

fn undecodable<T>(kind: Kind, objects: &Objects<T>, all: &mut Vec<Diagnostic>) {
    for object in objects.values() {
        let Object {
            key, origin, value, ..
        } = object.as_ref();
        let Err(Undecodable {
            problems,
            salvaged: _,
        }) = value
        else {
            continue;
        };
        let of = reference(kind, key);
        let site = crate::findings::Site {
            object: &of,
            origin,
        };
        all.extend(problems.iter().map(|problem| site.problem(problem)));
    }
}

fn document(finding: &Finding) -> Diagnostic {
    let Finding {
        place,
        kind,
        key,
        problem,
    } = finding;
    fit(Diagnostic {
        object: ObjectRef::new(kind.clone(), key.namespace.clone(), key.name.clone()),
        field: problem.path.as_str().to_owned(),
        position: place.as_ref().map(|place| Position {
            file: place.file.to_string(),
            line: place.at.line,
            column: place.at.column,
        }),
        code: problem.code.name().to_owned(),
        severity: Severity::Error,
        cause: model::diagnostic::Cause::Invalid,
        message: problem.message.clone(),
        remedy: problem.remedy.clone(),
    })
}

#[cfg(test)]
mod tests {
    use resources::{
        position::{LineColumn, Place},
        problem::{FieldPath, Problem, ProblemCode},
    };

    use super::*;

    fn unreadable(known: Option<BTreeSet<(Kind, ObjectKey)>>) -> BTreeSet<Unreadable> {
        let mut snapshot = Snapshot::default();
        snapshot.unreadable_files.push(UnreadableFile {
            place: Place {
                file: "all.yaml".into(),
                at: LineColumn { line: 1, column: 1 },
            },
            problem: Problem::new(FieldPath::root(), ProblemCode::Unreadable, "broken", ""),
            known,
            hosts: BTreeSet::new(),
            declares: true,
        });
        Pending::of(&snapshot, Vec::new(), &[]).unreadable
    }

    #[test]
    fn a_file_that_names_a_declaring_kind_and_no_host_holds_everything_new_back() {
        let everything = BTreeSet::from([Unreadable::Everything]);
        assert_eq!(unreadable(None), everything);
        // It was read before, and held nothing that declares: what it declares now is new.
        assert_eq!(unreadable(Some(BTreeSet::new())), everything);
        let held = (Kind::Ingress, ObjectKey::new("default", "web"));
        assert_eq!(unreadable(Some(BTreeSet::from([held]))), BTreeSet::new());
    }
}
