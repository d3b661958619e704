//! What is read of documents that do not decode (R3).

use resources::{
    kinds::Kind,
    snapshot::{Salvaged, SalvagedClass},
};
use serde_json::{Value, json};

use crate::{decoded, document};

fn salvaged(kind: Kind, content: &Value) -> Salvaged {
    decoded(kind, document(kind, content))
        .expect_err("it does not decode")
        .salvaged
}

/// Hosts with their paths, `?` for what cannot be told: `a.example.com / /x? |?`.
fn hosts(kind: Kind, content: &Value) -> String {
    let salvaged = salvaged(kind, content);
    let mut told: Vec<String> = Vec::new();
    for host in &salvaged.hosts {
        let paths = host.paths.iter().map(|path| match &path.path_type {
            Some(path_type) => format!(" {}({path_type})", path.path),
            None => format!(" {}", path.path),
        });
        let paths: String = paths.collect();
        told.push(format!(
            "{}{paths}{}",
            host.host,
            if host.paths_unreadable { " ?" } else { "" }
        ));
    }
    if salvaged.hosts_unreadable {
        told.push("?".to_owned());
    }
    told.join(", ")
}

fn backend() -> Value {
    json!({"service": {"name": "web", "port": {"number": 80}}})
}

#[test]
fn a_mistake_elsewhere_costs_no_host() {
    let rules = json!([
        {"host": "a.example.com", "http": {"paths": [
            {"path": "/", "pathType": "Prefix", "backend": backend()},
            {"path": "/admin", "pathType": "exact", "backend": {"service": {"name": "web", "port": 80}}},
        ]}},
        {"host": "b.example.com"},
        {"http": {"paths": []}},
    ]);
    assert_eq!(
        hosts(
            Kind::Ingress,
            &json!({"spec": {"rules": rules, "bogus": true}})
        ),
        "a.example.com /(Prefix) /admin(exact), b.example.com"
    );
}

#[test]
fn misspelt_and_misplaced_hosts_are_found() {
    let paths = json!([{"path": "/", "pathType": "Prefix", "backend": backend()}]);
    let http = json!({"paths": paths});
    for (content, expected) in [
        (
            json!({"spec": {"rules": [{"hosts": "a.example.com", "http": http}]}}),
            "a.example.com /(Prefix)",
        ),
        (
            json!({"spec": {"rule": [{"host": "a.example.com", "http": http}]}}),
            "a.example.com /(Prefix)",
        ),
        (
            json!({"spec": {"rules": {"host": "a.example.com", "http": http}}}),
            "a.example.com /(Prefix)",
        ),
        (
            json!({"rules": [{"host": "a.example.com", "http": http}]}),
            "a.example.com /(Prefix)",
        ),
        (
            json!({"Spec": {"Rules": [{"Host": "a.example.com", "HTTP": http}]}}),
            "a.example.com /(Prefix)",
        ),
        (
            json!({"spec": {"rules": [{"host": "a.example.com", "paths": paths}]}}),
            "a.example.com /(Prefix)",
        ),
        (
            json!({"spec": {"rules": [{"rule": {"host": "a.example.com", "http": http}}]}}),
            "a.example.com /(Prefix)",
        ),
    ] {
        assert_eq!(hosts(Kind::Ingress, &content), expected, "{content}");
    }
}

#[test]
fn what_cannot_be_read_is_said() {
    let http = json!({"paths": [{"path": 1, "pathType": "Prefix", "backend": backend()}]});
    for (content, expected) in [
        (
            json!({"spec": {"rules": [{"host": 1, "http": http}, {"host": "b.example.com", "http": http}]}}),
            "b.example.com ?, ?",
        ),
        (
            json!({"spec": {"rules": [{"host": ["a.example.com", {}]}]}}),
            "a.example.com, ?",
        ),
        (json!({"spec": {"rules": "a.example.com"}}), "?"),
        (json!({"spec": {"rules": ["a.example.com"]}}), "?"),
        (
            json!({"spec": {"rules": [{"domain": "a.example.com"}]}}),
            "?",
        ),
        (
            json!({"spec": {"routes": [{"domain": "a.example.com"}]}}),
            "?",
        ),
        (json!({"spec": []}), "?"),
        (json!({}), "?"),
        (
            json!({"spec": {"rules": [{"host": "a.example.com", "http": {"path": []}}]}}),
            "a.example.com",
        ),
        (
            json!({"spec": {"rules": [{"host": "a.example.com", "http": {"routes": []}}]}}),
            "a.example.com ?",
        ),
        (
            json!({"spec": {"rules": [{"host": "a.example.com", "http": {"paths": {"path": "/"}}}]}}),
            "a.example.com ?",
        ),
        (
            json!({"spec": {"rules": [{"host": "a.example.com", "http": ["/"]}]}}),
            "a.example.com ?",
        ),
        // What has no host on purpose hides none.
        (json!({"spec": {"rules": [{"http": {"paths": []}}]}}), ""),
        (
            json!({"spec": {"defaultBackend": {}, "tls": [{"hosts": ["a.example.com"]}]}}),
            "",
        ),
    ] {
        assert_eq!(hosts(Kind::Ingress, &content), expected, "{content}");
    }
}

#[test]
fn the_class_is_read_or_may_be_ours() {
    let class = |spec: &Value| salvaged(Kind::Ingress, &json!({"spec": spec, "bogus": 1})).class;
    assert_eq!(
        class(&json!({"ingressClassName": "nginx"})),
        SalvagedClass::Named("nginx".to_owned())
    );
    assert_eq!(
        class(&json!({"ingressClass": "nginx"})),
        SalvagedClass::Named("nginx".to_owned())
    );
    assert_eq!(
        class(&json!({"ingress_class_name": "nginx"})),
        SalvagedClass::Named("nginx".to_owned())
    );
    assert_eq!(class(&json!({})), SalvagedClass::Absent);
    assert_eq!(
        class(&json!({"ingressClassName": ["nginx"]})),
        SalvagedClass::Unreadable
    );
    assert_eq!(class(&json!("nginx")), SalvagedClass::Unreadable);
}

#[test]
fn edges_and_domains() {
    let routes = json!([
        {"match": "/", "matchType": "path_prefix", "bogus": 1},
        {"match": "/admin", "match_type": "exact_path", "ouath": {"google": {}}},
    ]);
    let edge =
        json!({"spec": {"hostports": ["a.example.com:443", "*.b.example.com"], "routes": routes}});
    assert_eq!(
        hosts(Kind::HttpsEdge, &edge),
        "a.example.com /(path_prefix) /admin(exact_path), *.b.example.com /(path_prefix) /admin(exact_path)"
    );
    assert_eq!(salvaged(Kind::HttpsEdge, &edge).modules, ["bogus", "oauth"]);
    assert_eq!(
        hosts(
            Kind::HttpsEdge,
            &json!({"spec": {"host_ports": ["a.example.com:443", 1], "routes": {}}})
        ),
        "a.example.com ?, ?"
    );
    assert_eq!(
        hosts(Kind::HttpsEdge, &json!({"spec": {"routes": [{}]}})),
        "?"
    );
    assert_eq!(
        hosts(
            Kind::HttpsEdge,
            &json!({"spec": {"hostports": "a.example.com:443", "routes": [{}]}})
        ),
        "a.example.com ?"
    );
    assert_eq!(
        hosts(
            Kind::TlsEdge,
            &json!({"spec": {"hostports": ["a.example.com:443"], "x": 1}})
        ),
        "a.example.com"
    );
    assert_eq!(
        hosts(Kind::Domain, &json!({"spec": {"Domain": "a.example.com"}})),
        "a.example.com"
    );
    assert_eq!(hosts(Kind::Domain, &json!({"spec": {"domain": 1}})), "?");
    assert_eq!(
        hosts(
            Kind::TcpEdge,
            &json!({"spec": {"hostports": ["a.example.com:443"]}})
        ),
        ""
    );
}

#[test]
fn modules_and_references_of_a_module_set() {
    let found = salvaged(
        Kind::NgrokModuleSet,
        &json!({"modules": {
            "ip_restriction": {"policies": ["office", 1]},
            "mutualTLS": {"certificateAuthorities": ["clients"]},
            "oidc": {"clientSecret": {"name": "login", "key": "secret"}},
            "saml": null,
            "rateLimit": {},
        }}),
    );
    assert_eq!(
        found.modules,
        ["ipRestriction", "mutualTLS", "oidc", "rateLimit", "saml"]
    );
    let references: Vec<String> = found
        .references
        .iter()
        .map(|(kind, name)| format!("{kind} {name}"))
        .collect();
    assert_eq!(
        references,
        [
            "IPPolicy office",
            "Secret clients",
            "Secret login",
            "ConfigMap clients"
        ]
    );
    for misplaced in [
        json!({"spec": {"modules": {"oauth": {}}}}),
        json!({"spec": {"oauth": {}}}),
        json!({"oauth": {}}),
    ] {
        assert_eq!(
            salvaged(Kind::NgrokModuleSet, &misplaced).modules,
            ["oauth"],
            "{misplaced}"
        );
    }
}
