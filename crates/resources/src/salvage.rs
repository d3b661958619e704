//! What can still be read of a document that does not decode (R3): lenient, because whatever is
//! found here is only ever closed, and whatever is overlooked might be answered by a neighbour.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::{
    kinds::Kind,
    rules,
    snapshot::{Salvaged, SalvagedClass, SalvagedHost, SalvagedPath},
    suggestion::folded,
};

/// Reads what it can. Misspelt names that the walk understood are already put right.
pub(crate) fn salvage(kind: Kind, document: &Value) -> Salvaged {
    let mut salvaged = Salvaged::default();
    references(document, &mut salvaged.references);
    match kind {
        Kind::Ingress => {
            ingress_hosts(document, &mut salvaged);
            salvaged.class = class(document);
        }
        Kind::HttpsEdge | Kind::TlsEdge => {
            edge_hosts(document, &mut salvaged);
            salvaged.modules = edge_modules(document);
        }
        Kind::Domain => match document.pointer("/spec/domain") {
            Some(Value::String(host)) => salvaged.hosts.push(whole_host(host)),
            Some(_) | None => salvaged.hosts_unreadable = true,
        },
        Kind::NgrokModuleSet => salvaged.modules = module_names(document),
        Kind::TcpEdge
        | Kind::Tunnel
        | Kind::IpPolicy
        | Kind::NgrokTrafficPolicy
        | Kind::IngressClass
        | Kind::Service
        | Kind::EndpointSlice
        | Kind::Secret
        | Kind::ConfigMap
        | Kind::Namespace => {}
    }
    salvaged
}

fn whole_host(host: &str) -> SalvagedHost {
    SalvagedHost {
        host: host.to_owned(),
        paths: Vec::new(),
        paths_unreadable: false,
    }
}

/// The value of a field whose name differs at most in case and style.
fn field<'a>(map: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    map.get(name).or_else(|| {
        map.iter()
            .find(|(known, _)| folded(known) == folded(name))
            .map(|(_, value)| value)
    })
}

/// What is below a value, one level.
fn children(value: &Value) -> impl Iterator<Item = (Option<&str>, &Value)> {
    let items = value
        .as_array()
        .into_iter()
        .flatten()
        .map(|item| (None, item));
    let fields = value
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, value)| (Some(name.as_str()), value));
    items.chain(fields)
}

/// The hosts of an Ingress, and whether one may be hidden in what cannot be read.
fn ingress_hosts(document: &Value, salvaged: &mut Salvaged) {
    rule_hosts(document, salvaged);
    let has_only = |map: &Map<String, Value>, names: &[&str]| {
        map.keys().all(|key| names.contains(&key.as_str()))
    };
    let Some(spec) = document.get("spec").and_then(Value::as_object) else {
        salvaged.hosts_unreadable |= salvaged.hosts.is_empty();
        return;
    };
    salvaged.hosts_unreadable |= match spec.get("rules") {
        Some(Value::Array(rules)) => rules.iter().any(|rule| match rule {
            Value::Object(rule) => {
                !rule.contains_key("host") && !has_only(rule, &["http"]) && !names_a_host(rule)
            }
            _ => true,
        }),
        Some(_) => salvaged.hosts.is_empty(),
        None => {
            salvaged.hosts.is_empty()
                && !has_only(spec, &["ingressClassName", "defaultBackend", "tls"])
        }
    };
}

/// Whether something below holds a host.
fn names_a_host(rule: &Map<String, Value>) -> bool {
    let mut found = Salvaged::default();
    rule_hosts(&Value::Object(rule.clone()), &mut found);
    !found.hosts.is_empty()
}

/// Every object with a host, wherever it stands, but not what certificates are for.
fn rule_hosts(value: &Value, salvaged: &mut Salvaged) {
    if let Some(map) = value.as_object() {
        for name in ["host", "hostname"] {
            // Two values under one key have become a list.
            let written = match field(map, name) {
                Some(Value::Array(items)) => items.as_slice(),
                Some(value) => std::slice::from_ref(value),
                None => &[],
            };
            for host in written {
                match host {
                    Value::String(host) if !host.is_empty() => {
                        let mut found = whole_host(host);
                        paths(value, &mut found);
                        salvaged.hosts.push(found);
                    }
                    Value::String(_) | Value::Null => {}
                    Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
                        salvaged.hosts_unreadable = true;
                    }
                }
            }
        }
    }
    for (name, child) in children(value) {
        let skipped = matches!(
            name.map(folded).as_deref(),
            Some("metadata" | "status" | "tls" | "defaultbackend" | "http")
        );
        if !skipped {
            rule_hosts(child, salvaged);
        }
    }
}

/// Every path below a rule. One that cannot be read may be any.
fn paths(value: &Value, host: &mut SalvagedHost) {
    for (name, child) in children(value) {
        match (name.map(folded).as_deref(), child) {
            (Some("backend"), _) => {}
            (Some("paths"), Value::Array(items)) => {
                for item in items {
                    match item
                        .as_object()
                        .and_then(|item| Some((field(item, "path")?.as_str()?, item)))
                    {
                        Some((path, item)) => host.paths.push(SalvagedPath {
                            path: path.to_owned(),
                            path_type: field(item, "pathType")
                                .and_then(Value::as_str)
                                .map(str::to_owned),
                        }),
                        None => host.paths_unreadable = true,
                    }
                }
            }
            (Some("paths"), _) => host.paths_unreadable = true,
            (Some("http"), Value::Object(http)) if field(http, "paths").is_none() => {
                host.paths_unreadable = true
            }
            (Some("http"), Value::Array(_) | Value::String(_)) => host.paths_unreadable = true,
            (_, child) => paths(child, host),
        }
    }
}

fn class(document: &Value) -> SalvagedClass {
    let Some(spec) = document.get("spec").and_then(Value::as_object) else {
        return SalvagedClass::Unreadable;
    };
    match spec.get("ingressClassName") {
        Some(Value::String(name)) => SalvagedClass::Named(name.clone()),
        Some(_) => SalvagedClass::Unreadable,
        None => match spec.iter().find(|(key, _)| folded(key).contains("class")) {
            Some((_, Value::String(name))) => SalvagedClass::Named(name.clone()),
            Some(_) => SalvagedClass::Unreadable,
            None => SalvagedClass::Absent,
        },
    }
}

/// The hosts of an edge: every `hostports`, with the edge's routes.
fn edge_hosts(document: &Value, salvaged: &mut Salvaged) {
    let Some(spec) = document.get("spec") else {
        salvaged.hosts_unreadable = true;
        return;
    };
    let listed = spec
        .as_object()
        .and_then(|spec| field(spec, "hostports"))
        .unwrap_or(&Value::Null);
    let texts: Vec<&Value> = match listed {
        Value::Array(items) => items.iter().collect(),
        other => vec![other],
    };
    let mut routes = whole_host("");
    route_matches(spec, &mut routes);
    for text in texts {
        match text.as_str() {
            Some(text) => {
                let host = rules::host_port(text).map_or(text, |(host, _)| host);
                salvaged.hosts.push(SalvagedHost {
                    host: host.to_owned(),
                    ..routes.clone()
                });
            }
            None => salvaged.hosts_unreadable = true,
        }
    }
}

fn route_matches(spec: &Value, host: &mut SalvagedHost) {
    let routes = spec.as_object().and_then(|spec| field(spec, "routes"));
    match routes {
        Some(Value::Array(routes)) => {
            for route in routes {
                match route
                    .as_object()
                    .and_then(|route| Some((field(route, "match")?.as_str()?, route)))
                {
                    Some((path, route)) => host.paths.push(SalvagedPath {
                        path: path.to_owned(),
                        path_type: field(route, "matchType")
                            .and_then(Value::as_str)
                            .map(str::to_owned),
                    }),
                    None => host.paths_unreadable = true,
                }
            }
        }
        Some(_) => host.paths_unreadable = true,
        None => {}
    }
}

/// Names that stand where modules stand in an edge.
fn edge_modules(document: &Value) -> Vec<String> {
    const OTHERS: [&str; 7] = [
        "description",
        "metadata",
        "hostports",
        "routes",
        "backend",
        "match",
        "matchType",
    ];
    let spec = document.get("spec");
    let routes = spec
        .and_then(|spec| spec.get("routes"))
        .and_then(Value::as_array);
    let names: BTreeSet<&String> = spec
        .into_iter()
        .chain(routes.into_iter().flatten())
        .filter_map(Value::as_object)
        .flat_map(Map::keys)
        .filter(|name| !OTHERS.contains(&name.as_str()))
        .collect();
    names.into_iter().cloned().collect()
}

/// Names that stand where modules stand in a set, or where people put them by mistake.
fn module_names(document: &Value) -> Vec<String> {
    const OTHERS: [&str; 6] = [
        "apiVersion",
        "kind",
        "metadata",
        "status",
        "modules",
        "spec",
    ];
    let below = |pointer: &str| {
        document
            .pointer(pointer)
            .and_then(Value::as_object)
            .into_iter()
            .flat_map(Map::keys)
    };
    let top = document.as_object().into_iter().flat_map(Map::keys);
    let names: BTreeSet<&String> = below("/modules")
        .chain(below("/spec"))
        .chain(below("/spec/modules"))
        .chain(top)
        .filter(|name| !OTHERS.contains(&name.as_str()))
        .collect();
    names.into_iter().cloned().collect()
}

/// Names of other objects, recognised by how they are written.
fn references(value: &Value, found: &mut BTreeSet<(Kind, String)>) {
    let texts = |value: &Value| -> Vec<String> {
        value
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect()
    };
    if let Some(map) = value.as_object()
        && let (Some(Value::String(name)), Some(Value::String(_))) =
            (map.get("name"), map.get("key"))
    {
        found.insert((Kind::Secret, name.clone()));
    }
    for (name, child) in children(value) {
        match name.unwrap_or_default() {
            "metadata" | "status" => {}
            "policies" => found.extend(texts(child).into_iter().map(|name| (Kind::IpPolicy, name))),
            "certificateAuthorities" => {
                for name in texts(child) {
                    found.insert((Kind::Secret, name.clone()));
                    found.insert((Kind::ConfigMap, name));
                }
            }
            "secretName" => {
                found.extend(child.as_str().map(|name| (Kind::Secret, name.to_owned())))
            }
            "service" => {
                found.extend(
                    child
                        .get("name")
                        .and_then(Value::as_str)
                        .map(|name| (Kind::Service, name.to_owned())),
                );
            }
            _ => references(child, found),
        }
    }
}
