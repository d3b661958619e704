//! Lists: pages that lead on, and never to nothing.

use edge_state::state::Role;
use serde_json::{Value, json};

use crate::common::Edge;

/// Follows the pages of a collection as clients do: the next address as it stands.
fn all(edge: &Edge, path: &str, plural: &str) -> Vec<Vec<Value>> {
    let mut pages = Vec::new();
    let mut path = path.to_owned();
    loop {
        let body = edge.call(Role::Read, "GET", &path, None).expect(200);
        let items = body[plural].as_array().expect("a list").clone();
        assert!(
            !items.is_empty() || pages.is_empty(),
            "an empty page after another"
        );
        pages.push(items);
        assert!(
            body["uri"]
                .as_str()
                .is_some_and(|uri| uri.starts_with("http://127.0.0.1:"))
        );
        match &body["next_page_uri"] {
            Value::Null => return pages,
            next => {
                let next = next.as_str().expect("an address");
                let start = format!("http://{}", edge.address);
                next.strip_prefix(&start)
                    .expect("an absolute address")
                    .clone_into(&mut path);
            }
        }
    }
}

#[test]
fn pages_cover_everything_once_and_none_is_empty() {
    let edge = Edge::start();
    assert_eq!(
        all(&edge, "/edges/https", "https_edges"),
        [Vec::<Value>::new()]
    );
    let mut ids: Vec<String> = (0..5)
        .map(|_| {
            edge.call(Role::Write, "POST", "/edges/https", Some(json!({})))
                .id()
        })
        .collect();
    ids.sort();
    ids.reverse();
    for limit in 1..=6 {
        let pages = all(&edge, &format!("/edges/https?limit={limit}"), "https_edges");
        assert!(pages.iter().all(|page| page.len() <= limit));
        let seen: Vec<_> = pages
            .iter()
            .flatten()
            .map(|e| e["id"].as_str().expect("an id"))
            .collect();
        assert_eq!(seen, ids, "limit {limit}");
        assert_eq!(pages.len(), ids.len().div_ceil(limit));
    }
}

#[test]
fn a_collection_of_backends_has_its_own_kind_only() {
    let edge = Edge::start();
    let group = json!({ "labels": { "a": "b" } });
    let fixed = json!({ "body": "hi", "headers": { "X-A": "1" } });
    let address = json!({ "address": "10.0.0.1:80", "tls": {} });
    for (kind, body) in [
        ("tunnel_group", group),
        ("http_response", fixed),
        ("static", address),
    ] {
        let path = format!("/backends/{kind}");
        let made: Vec<_> = (0..3)
            .map(|_| {
                edge.call(Role::Write, "POST", &path, Some(body.clone()))
                    .id()
            })
            .collect();
        let pages = all(&edge, &format!("{path}?limit=1"), "backends");
        assert_eq!(pages.len(), made.len(), "{kind}");
    }
}

#[test]
fn rules_of_all_policies_are_one_collection() {
    let edge = Edge::start();
    for number in 0..3 {
        let policy = edge
            .call(Role::Write, "POST", "/ip_policies", Some(json!({})))
            .id();
        let rule = json!({ "ip_policy_id": policy, "cidr": format!("10.{number}.0.0/16"), "action": "allow" });
        edge.call(Role::Write, "POST", "/ip_policy_rules", Some(rule))
            .expect(201);
    }
    assert_eq!(
        all(&edge, "/ip_policy_rules?limit=2", "ip_policy_rules").len(),
        2
    );
}
