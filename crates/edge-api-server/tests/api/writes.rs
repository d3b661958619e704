//! Writes: what they set, what they leave, who comes first, and what a restart keeps.

use edge_state::state::Role;
use serde_json::{Value, json};

use crate::common::Edge;

fn post(edge: &Edge, path: &str, body: Value) -> String {
    edge.call(Role::Write, "POST", path, Some(body)).id()
}

/// An edge with a domain, a backend, a policy and a route that uses them.
fn furnished(edge: &Edge) -> (String, String) {
    post(
        edge,
        "/reserved_domains",
        json!({ "domain": "app.example.com" }),
    );
    let backend = post(
        edge,
        "/backends/tunnel_group",
        json!({ "labels": { "app": "x" } }),
    );
    let policy = post(edge, "/ip_policies", json!({ "description": "office" }));
    let rule = json!({ "ip_policy_id": policy, "cidr": "10.0.0.0/8", "action": "allow" });
    post(edge, "/ip_policy_rules", rule);
    let id = post(
        edge,
        "/edges/https",
        json!({ "hostports": ["app.example.com:443"], "tls_termination": { "min_version": "1.3" } }),
    );
    let route = json!({
        "match_type": "path_prefix", "match": "/", "description": "d", "metadata": "m",
        "backend": { "backend_id": backend },
        "ip_restriction": { "ip_policy_ids": [policy] },
        "response_headers": { "add": { "X-A": "1" }, "remove": ["Server"] },
    });
    let route = post(edge, &format!("/edges/https/{id}/routes"), route);
    (
        format!("/edges/https/{id}"),
        format!("/edges/https/{id}/routes/{route}"),
    )
}

#[test]
fn a_patch_leaves_what_it_does_not_name_and_a_module_is_replaced_whole() {
    let edge = Edge::start();
    let (_, route) = furnished(&edge);
    let before = edge.call(Role::Read, "GET", &route, None).expect(200);
    assert_eq!(
        before["response_headers"],
        json!({ "enabled": true, "add": { "x-a": "1" }, "remove": ["server"] })
    );
    assert_eq!(before["oauth"], Value::Null);
    assert_eq!(before["policy"], Value::Null);
    let patch = json!({
        "match_type": "", "match": "", "description": "", "metadata": "",
        "response_headers": { "remove": ["via"] },
    });
    let after = edge
        .call(Role::Write, "PATCH", &route, Some(patch))
        .expect(200);
    let mut expected = before.clone();
    expected["response_headers"] = json!({ "enabled": true, "add": {}, "remove": ["via"] });
    expected["portcullis"]["generation"] = after["portcullis"]["generation"].clone();
    assert_eq!(after, expected);
    assert_ne!(
        after["portcullis"]["generation"],
        before["portcullis"]["generation"]
    );

    let moved = json!({ "match": "/x" });
    let moved = edge
        .call(Role::Write, "PATCH", &route, Some(moved))
        .expect(200);
    assert_eq!(
        (&moved["match_type"], &moved["match"]),
        (&json!("path_prefix"), &json!("/x"))
    );
}

#[test]
fn modules_have_paths_of_their_own() {
    let edge = Edge::start();
    let (edge_path, route) = furnished(&edge);
    let path = |module: &str| format!("{route}/{module}");
    for (module, body) in [
        ("request_headers", json!({ "add": { "X-B": "2" } })),
        (
            "response_headers",
            json!({ "enabled": false, "remove": ["X"] }),
        ),
    ] {
        let put = edge
            .call(Role::Write, "PUT", &path(module), Some(body))
            .expect(200);
        assert_eq!(
            edge.call(Role::Read, "GET", &path(module), None)
                .expect(200),
            put
        );
    }
    for module in [
        "backend",
        "ip_restriction",
        "request_headers",
        "response_headers",
    ] {
        edge.call(Role::Read, "GET", &path(module), None)
            .expect(200);
        for _twice in 0..2 {
            edge.call(Role::Write, "DELETE", &path(module), None)
                .expect(204);
        }
        assert_eq!(
            edge.call(Role::Read, "GET", &path(module), None).code(),
            "none"
        );
    }
    let tls = format!("{edge_path}/tls_termination");
    let shown = edge.call(Role::Read, "GET", &tls, None).expect(200);
    assert_eq!(
        shown,
        json!({ "enabled": true, "terminate_at": "edge", "min_version": "1.3" })
    );
    for _twice in 0..2 {
        edge.call(Role::Write, "DELETE", &tls, None).expect(204);
    }
    // A module without members may come without a body at all.
    let empty = edge.call(Role::Write, "PUT", &tls, None).expect(200);
    assert_eq!(empty["min_version"], Value::Null);
    assert_eq!(
        edge.call(Role::Write, "PUT", &path("backend"), None).code(),
        "ERR_NGROK_242"
    );
    assert_eq!(
        edge.call(Role::Write, "PUT", &path("ip_restriction"), None)
            .code(),
        "ERR_NGROK_7025"
    );
}

#[test]
fn what_is_not_enforced_is_refused_by_name_everywhere() {
    let edge = Edge::start();
    let (edge_path, route) = furnished(&edge);
    let names = [
        "circuit_breaker",
        "compression",
        "webhook_verification",
        "oauth",
        "saml",
        "oidc",
        "websocket_tcp_converter",
        "user_agent_filter",
        "traffic_policy",
        "policy",
    ];
    let before = edge.call(Role::Read, "GET", &edge_path, None).expect(200);
    let all = names
        .map(|name| (name, route.as_str()))
        .into_iter()
        .chain([("mutual_tls", edge_path.as_str())]);
    for (name, parent) in all {
        let path = format!("{parent}/{name}");
        let member = json!({ name: { "enabled": false } });
        for answer in [
            edge.call(Role::Write, "PUT", &path, Some(json!({}))),
            edge.call(Role::Write, "PUT", &path, None),
            edge.call(Role::Write, "PATCH", parent, Some(member)),
        ] {
            assert_eq!(
                (answer.status, answer.code()),
                (400, "module_not_enforced"),
                "{name}"
            );
            assert_eq!(answer.body["details"]["module"], name);
        }
        assert_eq!(edge.call(Role::Read, "GET", &path, None).code(), "none");
        edge.call(Role::Write, "DELETE", &path, None).expect(204);
    }
    assert_eq!(
        edge.call(Role::Read, "GET", &edge_path, None).expect(200),
        before
    );
    assert_eq!(
        edge.call(Role::Write, "PUT", &format!("{route}/jwt_validation"), None)
            .status,
        404
    );
}

#[test]
fn of_writers_that_expect_one_generation_one_wins() {
    let edge = Edge::start();
    let (path, _) = furnished(&edge);
    let generation =
        edge.call(Role::Read, "GET", &path, None).expect(200)["portcullis"]["generation"]
            .to_string();
    let answers: Vec<_> = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..8)
            .map(|number| {
                let (edge, path, generation) = (&edge, &path, generation.as_str());
                scope.spawn(move || {
                    let expected = [("portcullis-expected-generation", generation)];
                    let body = json!({ "description": format!("writer {number}") });
                    edge.call_with(Role::Write, "PATCH", path, &expected, Some(body))
                })
            })
            .collect();
        writers
            .into_iter()
            .map(|writer| writer.join().expect("no panic"))
            .collect()
    });
    let won: Vec<_> = answers
        .iter()
        .filter(|answer| answer.status == 200)
        .collect();
    let [winner] = won.as_slice() else {
        panic!("{won:?}")
    };
    for lost in answers.iter().filter(|answer| answer.status != 200) {
        assert_eq!((lost.status, lost.code()), (409, "generation_mismatch"));
    }
    let now = edge.call(Role::Read, "GET", &path, None).expect(200);
    assert_eq!(now["description"], winner.body["description"]);
    for wrong in ["x", "-1", "+1"] {
        let expected = [("portcullis-expected-generation", wrong)];
        let answer = edge.call_with(Role::Write, "DELETE", &path, &expected, None);
        assert_eq!(answer.code(), "ERR_NGROK_215");
    }
}

#[test]
fn patches_at_the_same_time_lose_nothing() {
    let edge = Edge::start();
    let id = post(&edge, "/backends/http_response", json!({ "body": "b" }));
    let path = format!("/backends/http_response/{id}");
    let bodies = [
        json!({ "body": "new" }),
        json!({ "status_code": 404 }),
        json!({ "headers": { "a": "1" } }),
        json!({ "metadata": "m" }),
    ];
    std::thread::scope(|scope| {
        for body in &bodies {
            scope.spawn(|| {
                edge.call(Role::Write, "PATCH", &path, Some(body.clone()))
                    .expect(200)
            });
        }
    });
    let now = edge.call(Role::Read, "GET", &path, None).expect(200);
    let shown = (
        &now["body"],
        &now["status_code"],
        &now["headers"],
        &now["metadata"],
    );
    assert_eq!(
        shown,
        (
            &json!("new"),
            &json!(404),
            &json!({ "a": "1" }),
            &json!("m")
        )
    );
}

#[test]
fn what_is_in_use_stays() {
    let edge = Edge::start();
    let (edge_path, _) = furnished(&edge);
    for (path, plural, code) in [
        ("/backends/tunnel_group", "backends", "ERR_NGROK_6502"),
        ("/ip_policies", "ip_policies", "ERR_NGROK_1420"),
        ("/reserved_domains", "reserved_domains", "ERR_NGROK_446"),
    ] {
        let id = edge.call(Role::Read, "GET", path, None).expect(200)[plural][0]["id"].clone();
        let item = format!("{path}/{}", id.as_str().expect("an id"));
        assert_eq!(edge.call(Role::Write, "DELETE", &item, None).code(), code);
    }
    edge.call(Role::Write, "DELETE", &edge_path, None)
        .expect(204);
    assert_eq!(edge.call(Role::Read, "GET", &edge_path, None).status, 404);
    for (path, plural) in [
        ("/ip_policies", "ip_policies"),
        ("/reserved_domains", "reserved_domains"),
    ] {
        let id = edge.call(Role::Read, "GET", path, None).expect(200)[plural][0]["id"].clone();
        let item = format!("{path}/{}", id.as_str().expect("an id"));
        edge.call(Role::Write, "DELETE", &item, None).expect(204);
    }
}

#[test]
fn a_restart_keeps_everything() {
    let edge = Edge::start();
    furnished(&edge);
    post(
        &edge,
        "/api_keys",
        json!({ "role": "read", "description": "kept" }),
    );
    let paths = [
        "/edges/https",
        "/backends/tunnel_group",
        "/reserved_domains",
        "/ip_policies",
        "/ip_policy_rules",
        "/api_keys",
    ];
    let shown = |edge: &Edge| {
        paths.map(|path| {
            // The port is another after the restart, and stands in every address.
            let text = edge.call(Role::Read, "GET", path, None).text;
            text.replace(&edge.address.to_string(), "HERE")
        })
    };
    let before = shown(&edge);
    let edge = edge.restart();
    assert_eq!(shown(&edge), before);
}
