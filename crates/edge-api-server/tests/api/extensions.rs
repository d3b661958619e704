//! What this edge adds: capabilities, state, commands, whole edges and routes, endpoints, owners.

use std::time::Duration;

use edge_api_server::{Options, ServeError, serve};
use edge_state::state::Role;
use model::id::EdgeId;
use serde_json::{Value, json};
use tokio::{net::TcpListener, sync::watch};

use crate::common::{Edge, audit_lines, capabilities};

#[test]
fn the_capabilities_document_announces_everything() {
    let edge = Edge::start();
    let body = edge
        .call(Role::Read, "GET", "/portcullis/v1/capabilities", None)
        .expect(200);
    assert_eq!(body["atomicity"], "replace");
    assert_eq!(
        body["enforceable"],
        json!([
            "tls_termination",
            "ip_restriction",
            "request_headers",
            "response_headers"
        ])
    );
    assert_eq!(
        body["match_types"],
        json!(["exact_path", "path_prefix", "path_element_prefix"])
    );
    for name in [
        "state",
        "commands",
        "replace_edge",
        "replace_route",
        "endpoints",
        "expected_generation",
    ] {
        assert!(body["extensions"][name].is_string(), "{name}");
    }
    assert!(body["codes"]["module_not_enforced"].is_string());
    // Its paths have a version of their own and need no other.
    let bearer = format!("Bearer {}", crate::common::key(Role::Read));
    let answer = edge.raw(
        "GET",
        "/portcullis/v1/state",
        &[("authorization", &bearer)],
        "",
    );
    assert_eq!(answer.status, 200);
}

#[test]
fn commands_carry_a_term_and_the_highest_one_stands() {
    let edge = Edge::start();
    let send = |term: Option<&str>, command: Value| {
        let headers: Vec<_> = term
            .map(|term| ("portcullis-term", term))
            .into_iter()
            .collect();
        edge.call_with(
            Role::Controller,
            "POST",
            "/portcullis/v1/commands",
            &headers,
            Some(command),
        )
    };
    let raise = |term: u64| json!({ "command": "raise_term", "term": term });
    let first = send(Some("7"), raise(7)).expect(200);
    assert!(
        first["revision"].is_u64() && first["now"].is_u64(),
        "{first}"
    );
    let again = send(Some("7"), raise(7)).expect(200);
    assert_eq!(again["revision"], first["revision"], "nothing changed");
    let late = send(Some("6"), json!({ "command": "close_overdue" }));
    assert_eq!((late.status, late.code()), (409, "superseded"));
    assert_eq!(send(None, raise(8)).code(), "term_missing");
    assert_eq!(send(Some("x"), raise(8)).code(), "ERR_NGROK_215");

    let edge_id = EdgeId::derived(&["e"]);
    let create = json!({
        "command": "create_edge", "id": edge_id, "controller": "c",
        "patch": { "texts": {"description": null, "metadata": null}, "hosts": null, "tls_termination": null, "mutual_tls": null },
    });
    let made = send(Some("7"), create);
    let lines = audit_lines(&made);
    made.expect(200);
    assert!(
        lines
            .iter()
            .all(|line| line.contains("create_edge") && line.contains(edge_id.as_str()))
    );
    assert_eq!(lines.len(), 1);

    let unknown = send(
        Some("7"),
        json!({ "command": "raise_term", "term": 7, "extra": "SECRET" }),
    );
    assert_eq!((unknown.status, unknown.code()), (400, "ERR_NGROK_213"));
    assert!(
        unknown.text.contains("extra") && !unknown.text.contains("SECRET"),
        "{unknown:?}"
    );
    let wrong = send(
        Some("7"),
        json!({ "command": "raise_term", "term": "SECRET" }),
    );
    assert!(
        wrong.code() == "ERR_NGROK_213" && !wrong.text.contains("SECRET"),
        "{wrong:?}"
    );
}

#[test]
fn a_whole_edge_and_a_whole_route_are_replaced_in_one_step() {
    let edge = Edge::start();
    let post = |path: &str, body: Value| edge.call(Role::Write, "POST", path, Some(body)).id();
    post("/reserved_domains", json!({ "domain": "*.example.com" }));
    let backend = post("/backends/static", json!({ "address": "10.0.0.1:80" }));
    let policy = post("/ip_policies", json!({}));
    let path = format!("/edges/https/{}", EdgeId::derived(&["mine"]));
    let open = json!({ "match_type": "path_element_prefix", "match": "/", "backend": { "backend_id": backend } });
    let guarded = json!({
        "match_type": "exact_path", "match": "/admin", "backend": { "backend_id": backend },
        "ip_restriction": { "ip_policy_ids": [policy] },
    });
    let whole = |routes: Value| json!({ "hostports": ["a.example.com:443"], "routes": routes });
    let put = |expected: &str, body: Value| {
        let expected = [("portcullis-expected-generation", expected)];
        edge.call_with(Role::Write, "PUT", &path, &expected, Some(body))
    };
    let made = put("absent", whole(json!([open, guarded]))).expect(200);
    assert_eq!(made["routes"].as_array().map(Vec::len), Some(2));
    assert_eq!(
        put("absent", whole(json!([]))).code(),
        "generation_mismatch"
    );

    // The same again changes nothing, and routes keep their ids.
    let same = put(
        &made["portcullis"]["generation"].to_string(),
        whole(json!([guarded, open])),
    )
    .expect(200);
    assert_eq!(same, made);
    // One bad route refuses the whole.
    let unknown = json!({ "match_type": "exact_path", "match": "/x", "backend": { "backend_id": format!("bkdsc_{}", "0".repeat(27)) } });
    assert_eq!(
        put(
            &made["portcullis"]["generation"].to_string(),
            whole(json!([open, unknown]))
        )
        .code(),
        "ERR_NGROK_6501"
    );
    let oauth = json!({ "match_type": "exact_path", "match": "/x", "oauth": {} });
    assert_eq!(
        put(
            &made["portcullis"]["generation"].to_string(),
            whole(json!([oauth]))
        )
        .code(),
        "module_not_enforced"
    );
    assert_eq!(edge.call(Role::Read, "GET", &path, None).expect(200), made);

    let route = made["routes"]
        .as_array()
        .expect("routes")
        .iter()
        .find(|r| r["match"] == "/admin")
        .expect("there");
    let route_path = format!("{path}/routes/{}", route["id"].as_str().expect("an id"));
    let closed = json!({ "match_type": "exact_path", "match": "/admin" });
    let closed = edge
        .call(Role::Write, "PUT", &route_path, Some(closed))
        .expect(200);
    assert_eq!(
        (&closed["backend"], &closed["ip_restriction"]),
        (&Value::Null, &Value::Null)
    );
}

#[test]
fn endpoints_change_without_a_new_generation() {
    let edge = Edge::start();
    let post = |path: &str, body: Value| edge.call(Role::Write, "POST", path, Some(body)).id();
    let backend = post("/backends/tunnel_group", json!({ "labels": { "a": "b" } }));
    let id = post("/edges/https", json!({}));
    let route =
        json!({ "match_type": "exact_path", "match": "/", "backend": { "backend_id": backend } });
    post(&format!("/edges/https/{id}/routes"), route);
    let shown = || {
        edge.call(Role::Read, "GET", &format!("/edges/https/{id}"), None)
            .expect(200)
    };
    let before = shown();
    let path = format!("/backends/tunnel_group/{backend}/endpoints");
    let put = |body: Value| edge.call(Role::Write, "PUT", &path, Some(body));
    let after = put(json!({ "endpoints": ["10.0.0.1:80", "[::ffff:10.0.0.2]:80"] })).expect(200);
    assert_eq!(
        after["portcullis"]["endpoints"],
        json!(["10.0.0.1:80", "10.0.0.2:80"]),
        "canonical (R16)"
    );
    assert_eq!(shown(), before);
    assert_eq!(
        put(json!({ "endpoints": ["localhost:80"] })).code(),
        "ERR_NGROK_215"
    );
    assert_eq!(put(json!({})).code(), "ERR_NGROK_215");
}

#[test]
fn an_operator_assigns_and_releases_a_host() {
    let edge = Edge::start();
    let body = json!({ "domain": "a.example" });
    let id = edge
        .call(Role::Write, "POST", "/reserved_domains", Some(body))
        .id();
    let (item, path) = (
        format!("/reserved_domains/{id}"),
        format!("/reserved_domains/{id}/namespace"),
    );
    let assign = |role| edge.call(role, "PUT", &path, Some(json!({ "namespace": "team-a" })));
    assert_eq!(
        assign(Role::Write).status,
        403,
        "only a controller's key says who owns a host"
    );
    assert_eq!(
        assign(Role::Controller).expect(200)["portcullis"]["namespace"],
        "team-a"
    );
    let patched = edge
        .call(
            Role::Controller,
            "PATCH",
            &item,
            Some(json!({ "metadata": "m" })),
        )
        .expect(200);
    assert_eq!(
        patched["portcullis"]["namespace"], "team-a",
        "a text changes no owner"
    );
    assert_eq!(
        edge.call(Role::Controller, "PATCH", &item, Some(json!({})))
            .code(),
        "ERR_NGROK_422"
    );
    edge.call(Role::Controller, "DELETE", &path, None)
        .expect(204);
    assert_eq!(
        edge.call(Role::Read, "GET", &item, None).expect(200)["portcullis"]["namespace"],
        Value::Null
    );
}

#[tokio::test]
async fn keys_never_travel_in_the_clear_beyond_loopback() {
    let dir = tempfile::tempdir().expect("a directory");
    let data_dir = dir.path().join("data");
    let store = edge_store::Store::open(&edge_store::Options::new(data_dir)).expect("a store");
    let listener = TcpListener::bind("0.0.0.0:0").await.expect("a listener");
    let (_stop, stopped) = watch::channel(false);
    let served = serve(listener, store, Options::new(capabilities()), stopped);
    let refused = tokio::time::timeout(Duration::from_secs(10), served)
        .await
        .expect("at once");
    assert!(matches!(refused, Err(ServeError::PlainBeyondLoopback(_))));
}

#[test]
fn an_edge_that_cannot_read_its_state_does_not_blame_the_key() {
    let edge = Edge::start_on(edge_store::Store::refusing());
    let answer = edge.call(Role::Controller, "GET", "/portcullis/v1/state", None);
    assert_eq!((answer.status, answer.code()), (503, "unavailable"));
    assert_eq!(answer.header("retry-after"), Some("1"));
}
