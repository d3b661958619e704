//! The edge kinds, Domain and Tunnel.

use resources::kinds::Kind::{Domain, HttpsEdge, TcpEdge, TlsEdge, Tunnel};
use serde_json::json;

use crate::{accepted, refused};

const DESCRIPTION: &str = "Created by kubernetes-ingress-controller";
const METADATA: &str = r#"{"owned-by":"kubernetes-ingress-controller"}"#;

#[test]
fn https_edges_are_defaulted_as_the_api_server_does() {
    accepted(
        HttpsEdge,
        &json!({"spec": {
            "hostports": ["www.example.com:443"],
            "routes": [{
                "match": "/",
                "matchType": "path_prefix",
                "backend": {"labels": {"app": "web"}},
                "policy": {"inbound": []},
            }],
            "tlsTermination": {"minVersion": "1.2"},
            "mutualTLS": {"certificateAuthorities": ["ca_1"]},
        }}),
        &json!({"spec": {
            "description": DESCRIPTION,
            "metadata": METADATA,
            "hostports": ["www.example.com:443"],
            "routes": [{
                "description": DESCRIPTION,
                "metadata": METADATA,
                "match": "/",
                "matchType": "path_prefix",
                "backend": {"description": DESCRIPTION, "metadata": METADATA, "labels": {"app": "web"}},
                "policy": {"inbound": []},
            }],
            "tlsTermination": {"minVersion": "1.2"},
            "mutualTLS": {"certificateAuthorities": ["ca_1"]},
        }}),
    );
}

#[test]
fn https_edge_mistakes() {
    refused(
        HttpsEdge,
        &json!({}),
        &["spec: missing-field: spec is missing: what the edge answers for, and how"],
    );
    refused(
        HttpsEdge,
        &json!({"spec": {"hostports": []}}),
        &["spec.hostports: empty: the list is empty (name at least one entry)"],
    );
    refused(
        HttpsEdge,
        &json!({"spec": {
            "hostports": ["www.example.com", ":443", "www.example.com:https"],
            "mutualTls": {"certificateAuthorities": ["ca_1"]},
            "tlsTermination": {"terminateAt": "edge"},
            "oauth": {"google": {}},
            "routes": [
                {"matchType": "Prefix"},
                {"match": "", "matchType": "exact_path", "backend": {"labels": {}}, "policy": {}, "modules": {}},
                {"match": "/", "match_type": "exact_path", "ipRestriction": {}, "backend": {}},
            ],
        }}),
        &[
            r#"spec.hostports[0]: bad-value: "www.example.com" has no port (write www.example.com:443)"#,
            r#"spec.hostports[1]: bad-value: ":443" is not of the form host:port (write a name and a port, such as www.example.com:443)"#,
            r#"spec.hostports[2]: bad-value: "www.example.com:https" is not of the form host:port (write a name and a port, such as www.example.com:443)"#,
            "spec.mutualTls: unknown-field: there is no field mutualTls in spec (did you mean mutualTLS?)",
            "spec.oauth: unknown-field: there is no field oauth in spec (it belongs at spec.routes[].oauth)",
            "spec.routes[0].match: missing-field: match is missing: the path",
            r#"spec.routes[0].matchType: not-allowed-value: "Prefix" is not exact_path or path_prefix"#,
            "spec.routes[1].backend.labels: empty: nothing stands in it, so it would do nothing (fill it in or remove it)",
            "spec.routes[1].match: empty: the text is empty (write a value)",
            "spec.routes[1].modules: unknown-field: there is no field modules in routes (the fields here are backend, circuitBreaker, compression, description, headers, ipRestriction, match, matchType, metadata, oauth, oidc, policy, saml and webhookVerification)",
            "spec.routes[1].policy: empty: nothing stands in it, so it would do nothing (fill it in or remove it)",
            "spec.routes[2].backend.labels: missing-field: labels is missing: the labels",
            "spec.routes[2].ipRestriction.policies: missing-field: policies is missing: names of IPPolicies in the same namespace, or ids of policies at the edge",
            "spec.routes[2].match_type: unknown-field: there is no field match_type in routes (did you mean matchType?)",
            "spec.tlsTermination.minVersion: missing-field: minVersion is missing: lowest TLS version: 1.0, 1.1, 1.2 or 1.3",
            "spec.tlsTermination.terminateAt: unknown-field: there is no field terminateAt in tlsTermination (the only field here is minVersion)",
        ],
    );
}

#[test]
fn tcp_edges() {
    accepted(
        TcpEdge,
        &json!({"spec": {"description": "mine", "ipRestriction": {"policies": ["office"]}}}),
        &json!({"spec": {"description": "mine", "metadata": METADATA, "ipRestriction": {"policies": ["office"]}}}),
    );
    refused(
        TcpEdge,
        &json!({"spec": {"hostports": ["a:1"], "ipRestriction": {"policies": []}, "metadata": {}}}),
        &[
            "spec.hostports: unknown-field: there is no field hostports in spec (the fields here are backend, description, ipRestriction, metadata and policy)",
            "spec.ipRestriction.policies: empty: the list is empty (name at least one entry)",
            "spec.metadata: wrong-type: a text is needed here, not an object",
        ],
    );
}

#[test]
fn tls_edges() {
    accepted(
        TlsEdge,
        &json!({"spec": {
            "hostports": ["db.example.com:5432"],
            "tlsTermination": {"terminateAt": "upstream"},
            "mutualTls": {"certificateAuthorities": ["ca_1"]},
        }}),
        &json!({"spec": {
            "description": DESCRIPTION,
            "metadata": METADATA,
            "hostports": ["db.example.com:5432"],
            "tlsTermination": {"terminateAt": "upstream"},
            "mutualTls": {"certificateAuthorities": ["ca_1"]},
        }}),
    );
    refused(
        TlsEdge,
        &json!({"spec": {"mutualTLS": {"certificateAuthorities": ["ca_1"]}, "routes": []}}),
        &[
            "spec.hostports: missing-field: hostports is missing: names this edge answers for, as host:port",
            "spec.mutualTLS: unknown-field: there is no field mutualTLS in spec (did you mean mutualTls?)",
            "spec.routes: unknown-field: there is no field routes in spec (the fields here are backend, description, hostports, ipRestriction, metadata, mutualTls, policy and tlsTermination)",
        ],
    );
}

#[test]
fn domains() {
    accepted(
        Domain,
        &json!({"spec": {"domain": "*.example.com", "region": "us"}}),
        &json!({"spec": {"description": DESCRIPTION, "metadata": METADATA, "domain": "*.example.com", "region": "us"}}),
    );
    refused(
        Domain,
        &json!({"spec": {}}),
        &[
            "spec.domain: missing-field: domain is missing: the host name, possibly with a wildcard as its first label",
        ],
    );
    refused(
        Domain,
        &json!({"spec": {"domain": "", "reclaimPolicy": "Delete"}}),
        &[
            "spec.domain: empty: the text is empty (write a value)",
            "spec.reclaimPolicy: unknown-field: there is no field reclaimPolicy in spec (the fields here are description, domain, metadata and region)",
        ],
    );
}

#[test]
fn tunnels() {
    accepted(
        Tunnel,
        &json!({"spec": {"forwardsTo": "web.shop.svc:80", "labels": {"a": "b"}, "backend": {"protocol": "HTTPS"}}}),
        &json!({"spec": {"forwardsTo": "web.shop.svc:80", "labels": {"a": "b"}, "backend": {"protocol": "HTTPS"}}}),
    );
    refused(
        Tunnel,
        &json!({"spec": {"forwardsTo": "", "labels": {}, "backend": {"protocol": "https"}}}),
        &[
            r#"spec.backend.protocol: not-allowed-value: "https" is not HTTP or HTTPS (did you mean HTTPS?)"#,
            "spec.forwardsTo: empty: the text is empty (write a value)",
            "spec.labels: empty: nothing stands in it, so it would do nothing (fill it in or remove it)",
        ],
    );
}
