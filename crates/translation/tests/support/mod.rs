//! What the tests share: a case's directives, and a declaration as text.
//!
//! A directive is a comment line of the manifest that begins with `#!`; it says what is not in
//! manifests: the operator's options, the edge's records, and what could not be read.

use std::{collections::BTreeSet, fmt::Write as _, path::Path};

use model::{
    declaration::{Declaration, DeclaredHost, DeclaredRoute, Outcome},
    diagnostic::{Diagnostic, Severity},
    host::HostPattern,
    module::{ModuleKind, TlsVersion},
    object::{ObjectName, ObjectRef},
    place::{Match, MatchType},
    time::Timestamp,
};
use resources::{
    kinds::Kind,
    snapshot::{ObjectKey, Snapshot},
};
use translation::{
    Input,
    digest::DigestKey,
    options::{ForeignProtection, Options, ServicePortName},
    records::{RecordedRoute, Records},
    translate,
};

/// What the project's own edge enforces.
pub(crate) const ENFORCED: [ModuleKind; 4] = [
    ModuleKind::TlsTermination,
    ModuleKind::IpRestriction,
    ModuleKind::RequestHeaders,
    ModuleKind::ResponseHeaders,
];

/// Everything that one translation takes.
pub(crate) struct Case {
    pub(crate) snapshot: Snapshot,
    pub(crate) records: Records,
    pub(crate) options: Options,
}

impl Case {
    /// Reads a directory or file of manifests.
    pub(crate) fn read(path: &Path) -> Self {
        let limits = manifests::yaml::Limits::default();
        let roots =
            manifests::files::Roots::open(&[path.to_owned()], 1 << 20).expect("the case is there");
        let mut case = Self {
            snapshot: manifests::read(&roots, limits),
            records: Records::default(),
            options: Options {
                enforceable: Some(BTreeSet::from(ENFORCED)),
                ..Options::default()
            },
        };
        let manifest = if path.is_dir() {
            path.join("input.yaml")
        } else {
            path.to_owned()
        };
        let text = std::fs::read_to_string(&manifest).expect("a case has an input.yaml");
        for line in text.lines().filter_map(|line| line.strip_prefix("#!")) {
            let words: Vec<&str> = line.split_whitespace().collect();
            case.obey(&words);
        }
        case
    }

    pub(crate) fn translate(&self) -> Declaration {
        let key = DigestKey::new(b"a key for tests".to_vec());
        translate(&Input {
            snapshot: &self.snapshot,
            records: &self.records,
            options: &self.options,
            key: &key,
        })
    }

    fn obey(&mut self, words: &[&str]) {
        let host = |text: &str| HostPattern::parse(text).expect("a host");
        match words {
            ["no-edge-asked"] => self.options.enforceable = None,
            ["everything-is-enforced"] => {
                self.options.enforceable = Some(BTreeSet::from(ModuleKind::ALL))
            }
            ["refuse-foreign-protection"] => {
                self.options.foreign_protection = ForeignProtection::Refuse
            }
            ["allow-external-names"] => self.options.allow_external_names = true,
            ["release-hosts-at-once"] => self.options.release_hosts_at_once = true,
            ["hosts", namespace, pattern] => {
                self.options
                    .host_limits
                    .insert(((*namespace).to_owned(), host(pattern)));
            }
            ["service", name, port, address] => {
                let name: ObjectName = name.parse().expect("NAMESPACE/NAME");
                let port = port.parse().map_or_else(
                    |_| ServicePortName::Name((*port).to_owned()),
                    ServicePortName::Number,
                );
                let address = address.parse().expect("an address");
                self.options
                    .services
                    .entry((name, port))
                    .or_default()
                    .insert(address);
            }
            ["record", name, namespace] => {
                self.records.hosts.entry(host(name)).or_default().namespace =
                    Some((*namespace).to_owned());
            }
            ["heir", name, namespace] => {
                self.records.hosts.entry(host(name)).or_default().heir =
                    Some((*namespace).to_owned());
            }
            ["undeclared", name] => {
                self.records
                    .hosts
                    .entry(host(name))
                    .or_default()
                    .undeclared_since = Some(Timestamp(1));
            }
            ["tls-in-force", name, "1.3"] => {
                self.records
                    .hosts
                    .entry(host(name))
                    .or_default()
                    .demands
                    .tls_minimum = Some(TlsVersion::V1_3);
            }
            [
                "recorded",
                name,
                match_type,
                path,
                "of",
                kind,
                owner,
                rests_on @ ..,
            ] => {
                let match_type = match *match_type {
                    "exact" => MatchType::Exact,
                    "prefix" => MatchType::ElementPrefix,
                    _ => MatchType::StringPrefix,
                };
                let route = RecordedRoute {
                    owner: object(kind, owner),
                    rests_on: rests_on
                        .chunks(2)
                        .map(|pair| object(pair[0], pair[1]))
                        .collect(),
                    is_open: true,
                };
                self.records
                    .hosts
                    .entry(host(name))
                    .or_default()
                    .routes
                    .insert(Match::new(match_type, path), route);
            }
            ["closed", name] => {
                let record = self.records.hosts.entry(host(name)).or_default();
                record
                    .routes
                    .values_mut()
                    .for_each(|route| route.is_open = false);
            }
            ["pending", kind] => {
                self.snapshot.pending_kinds.insert(kind_of(kind));
            }
            ["pending", kind, name] => {
                let name = object(kind, name);
                self.snapshot
                    .pending_objects
                    .insert((kind_of(kind), ObjectKey::new(name.namespace, name.name)));
            }
            other => unreachable!("no such directive: {other:?}"),
        }
    }
}

fn kind_of(name: &str) -> Kind {
    Kind::ALL
        .into_iter()
        .find(|kind| kind.name() == name)
        .expect("a kind")
}

fn object(kind: &str, name: &str) -> ObjectRef {
    let (namespace, name) = name.split_once('/').unwrap_or(("", name));
    ObjectRef::new(kind, namespace, name)
}

/// A declaration for people to review.
pub(crate) fn text(declaration: &Declaration) -> String {
    let mut out = String::new();
    let Declaration {
        hosts,
        policies,
        backends,
        unreadable,
        pending_owners,
        terminating,
        nothing_is_removed,
        diagnostics,
    } = declaration;
    for (name, host) in hosts {
        write_host(&mut out, name, host);
    }
    for (name, policy) in policies {
        let rules: Vec<String> = policy
            .rules
            .0
            .iter()
            .map(|(net, action)| format!("{action:?} {net}").to_lowercase())
            .collect();
        line(&mut out, 0, &format!("policy {name}: {}", rules.join(", ")));
    }
    for backend in backends.values() {
        let endpoints = backend.endpoints.iter().map(ToString::to_string);
        let outside = backend
            .external
            .iter()
            .map(|name| format!("looked up: {name}"));
        let endpoints: Vec<String> = endpoints.chain(outside).collect();
        line(
            &mut out,
            0,
            &format!("backend {}: {}", backend.service, endpoints.join(" ")),
        );
    }
    for unreadable in unreadable {
        line(&mut out, 0, &format!("nothing new opens: {unreadable:?}"));
    }
    for owner in pending_owners {
        line(&mut out, 0, &format!("pending: {owner}"));
    }
    for object in terminating {
        line(&mut out, 0, &format!("going: {object}"));
    }
    if *nothing_is_removed {
        line(&mut out, 0, "nothing is removed");
    }
    out.push('\n');
    for diagnostic in diagnostics {
        write_diagnostic(&mut out, diagnostic);
    }
    out
}

fn line(out: &mut String, indent: usize, text: &str) {
    writeln!(out, "{:indent$}{text}", "").expect("writing to a String");
}

fn write_host(out: &mut String, name: &HostPattern, host: &DeclaredHost) {
    let DeclaredHost {
        namespace,
        heir,
        demands,
        certificate,
        keep_certificate,
        routes,
    } = host;
    let heir: String = heir
        .iter()
        .map(|heir| format!(", then of {heir}"))
        .collect();
    line(
        out,
        0,
        &format!("host {name}, of namespace {namespace}{heir}"),
    );
    let demands = match demands {
        None => String::from("those in force stay"),
        Some(demands) => {
            let minimum = demands
                .tls_minimum
                .map(|version| format!("TLS {version:?}"));
            let authorities = demands
                .mutual_tls
                .as_ref()
                .map(|list| format!("{} client authorities", list.len()));
            let all: Vec<String> = minimum.into_iter().chain(authorities).collect();
            if all.is_empty() {
                String::from("none")
            } else {
                all.join(", ")
            }
        }
    };
    line(out, 2, &format!("demands: {demands}"));
    match (certificate, keep_certificate) {
        (Some(_), _) => line(out, 2, "certificate: its own"),
        (None, true) => line(out, 2, "certificate: the one in force"),
        (None, false) => {}
    }
    let mut routes: Vec<_> = routes.values().collect();
    routes.sort_by(|left, right| left.place.rank(&right.place));
    for route in routes {
        write_route(out, route);
    }
}

fn write_route(out: &mut String, route: &DeclaredRoute) {
    let DeclaredRoute {
        place,
        owner,
        outcome,
        digest,
        rests_on,
        has_access_modules,
        modules,
        backend,
        reasons,
    } = route;
    let (state, missing) = match outcome {
        Outcome::Complete(_) => ("complete", None),
        Outcome::Invalid { missing } => ("invalid", Some(missing)),
        Outcome::Pending => ("pending", None),
    };
    let backend = backend.as_deref().unwrap_or("-");
    line(out, 2, &format!("{place}: {state}, {owner} -> {backend}"));
    if !modules.is_empty() || *has_access_modules {
        let access = if *has_access_modules {
            " (restricts access)"
        } else {
            ""
        };
        let names = if modules.is_empty() {
            String::from("none that can be read")
        } else {
            modules.join(", ")
        };
        line(out, 4, &format!("modules: {names}{access}"));
    }
    let list = |objects: &BTreeSet<ObjectRef>| {
        objects
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join(", ")
    };
    if !rests_on.is_empty() {
        line(out, 4, &format!("rests on: {}", list(rests_on)));
    }
    if let Some(missing) = missing.filter(|missing| !missing.is_empty()) {
        line(out, 4, &format!("missing: {}", list(missing)));
    }
    if digest.is_none() {
        line(out, 4, "no digest");
    }
    if !reasons.is_empty() {
        let codes: Vec<&str> = reasons.iter().map(|reason| reason.code.as_str()).collect();
        line(out, 4, &format!("reasons: {}", codes.join(", ")));
    }
}

fn write_diagnostic(out: &mut String, diagnostic: &Diagnostic) {
    let Diagnostic {
        object,
        field,
        position,
        code,
        severity,
        cause,
        message,
        remedy,
    } = diagnostic;
    let place = position.as_ref().map_or_else(
        || String::from("-"),
        |p| {
            let name = p.file.rsplit('/').next().unwrap_or_default();
            format!("{name}:{}:{}", p.line, p.column)
        },
    );
    let severity = match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    };
    line(
        out,
        0,
        &format!("{place}: {severity}[{code}] {cause:?}: {message}"),
    );
    let short = object
        .to_string()
        .rsplit_once('/')
        .filter(|_| object.kind == "File")
        .map_or_else(|| object.to_string(), |(_, name)| format!("File {name}"));
    line(out, 4, format!("{short} {field}").trim_end());
    if !remedy.is_empty() {
        line(out, 4, &format!("> {remedy}"));
    }
}
