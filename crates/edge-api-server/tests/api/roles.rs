//! Who may do what: the whole matrix.

use edge_state::{
    command::{Command, EdgePatch, Texts},
    state::Role,
};
use model::id::{EdgeId, KeyId};
use serde_json::{Value, json};

use crate::common::{Edge, audit_lines, key};

const ROLES: [Role; 3] = [Role::Read, Role::Write, Role::Controller];

fn outcomes(answers: impl Fn(Role) -> crate::common::Answer) -> [String; 3] {
    ROLES.map(|role| {
        let answer = answers(role);
        if answer.status < 300 {
            answer.status.to_string()
        } else {
            answer.code().to_owned()
        }
    })
}

#[test]
fn the_matrix() {
    let edge = Edge::start();
    let read = |path: &'static str| outcomes(|role| edge.call(role, "GET", path, None));
    for path in [
        "/edges/https",
        "/api_keys",
        "/portcullis/v1/state",
        "/portcullis/v1/capabilities",
    ] {
        assert_eq!(read(path), ["200", "200", "200"], "{path}");
    }
    let write = |method: &str, path: &str, body: Value| {
        outcomes(|role| edge.call(role, method, path, Some(body.clone())))
    };
    let key_of = |role: &str| write("POST", "/api_keys", json!({ "role": role }));
    assert_eq!(
        write("POST", "/ip_policies", json!({})),
        ["read_only_key", "201", "201"]
    );
    assert_eq!(key_of("read"), ["read_only_key", "201", "201"]);
    assert_eq!(key_of("write"), ["read_only_key", "201", "201"]);
    assert_eq!(
        key_of("controller"),
        ["read_only_key", "controller_key_required", "201"]
    );

    let command = json!({ "command": "close_overdue" });
    let term = [("portcullis-term", "1")];
    let commands = outcomes(|role| {
        edge.call_with(
            role,
            "POST",
            "/portcullis/v1/commands",
            &term,
            Some(command.clone()),
        )
    });
    assert_eq!(
        commands,
        ["read_only_key", "controller_key_required", "200"]
    );

    let controllers = EdgeId::derived(&["controllers"]);
    edge.command(Command::CreateEdge {
        id: controllers.clone(),
        controller: Some("c".to_owned()),
        patch: EdgePatch::default(),
    });
    let path = format!("/edges/https/{controllers}");
    let patched = write("PATCH", &path, json!({ "description": "mine" }));
    assert_eq!(patched, ["read_only_key", "owned_by_controller", "200"]);
    let deleted = outcomes(|role| edge.call(role, "DELETE", &path, None));
    assert_eq!(deleted, ["read_only_key", "owned_by_controller", "204"]);
}

#[test]
fn a_key_is_shown_once_works_and_ends_with_its_deletion() {
    let edge = Edge::start();
    let body = json!({ "description": "ci", "role": "read" });
    let made = edge.call(Role::Write, "POST", "/api_keys", Some(body));
    let audited = audit_lines(&made);
    let made = made.expect(201);
    let (id, token) = (
        made["id"].as_str().expect("an id"),
        made["token"].as_str().expect("a key"),
    );
    assert!(
        audited
            .iter()
            .all(|line| line.contains(id) && !line.contains(token)),
        "{audited:?}"
    );
    assert_eq!((audited.len(), &made["role"]), (1, &json!("read")));
    assert!(token.starts_with(id.strip_prefix("ak_").expect("the prefix")));

    let bearer = format!("Bearer {token}");
    let headers = [("authorization", bearer.as_str()), ("ngrok-version", "2")];
    assert_eq!(edge.raw("GET", "/edges/https", &headers, "").status, 200);
    let path = format!("/api_keys/{id}");
    assert_eq!(
        edge.call(Role::Read, "GET", &path, None).expect(200)["token"],
        Value::Null
    );
    edge.call(Role::Write, "DELETE", &path, None).expect(204);
    assert_eq!(
        edge.raw("GET", "/edges/https", &headers, "").code(),
        "ERR_NGROK_203"
    );
}

#[test]
fn a_write_key_cannot_take_away_a_controllers() {
    let edge = Edge::start();
    let id = KeyId::parse(&format!("ak_{}", &key(Role::Controller)[..27])).expect("an id");
    let path = format!("/api_keys/{id}");
    let answer = edge.call(Role::Write, "DELETE", &path, None);
    assert_eq!(
        (answer.status, answer.code()),
        (403, "controller_key_required")
    );
}

#[test]
fn every_write_is_one_line_with_key_object_and_result() {
    let edge = Edge::start();
    edge.command(Command::CreateIpPolicy {
        id: model::id::IpPolicyId::derived(&["p"]),
        texts: Texts::default(),
    });
    let id = model::id::IpPolicyId::derived(&["p"]);
    let path = format!("/ip_policies/{id}");
    let secret = "not-in-the-log";
    for (role, body, result) in [
        (Role::Write, json!({ "metadata": secret }), "ok"),
        (Role::Write, json!({ "secret": secret }), "ERR_NGROK_214"),
        (Role::Read, json!({}), "read_only_key"),
    ] {
        let answer = edge.call(role, "PATCH", &path, Some(body));
        let lines = audit_lines(&answer);
        let [line] = lines.as_slice() else {
            panic!("{lines:?}")
        };
        let id_of_key = format!("ak_{}", &key(role)[..27]);
        for part in [id_of_key.as_str(), id.as_str(), result, "PATCH"] {
            assert!(line.contains(part), "{part} in {line}");
        }
        assert!(
            !line.contains(secret) && !line.contains(&key(role)),
            "{line}"
        );
    }
    assert_eq!(
        audit_lines(&edge.call(Role::Read, "GET", &path, None)),
        [""; 0]
    );
}
