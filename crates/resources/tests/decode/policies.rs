//! IPPolicy and NgrokTrafficPolicy.

use resources::{
    kinds::Kind::{IpPolicy, NgrokTrafficPolicy},
    rules::cidr,
};
use serde_json::json;

use crate::{accepted, refused};

#[test]
fn ip_policies() {
    let text = json!({"description": "office", "metadata": ""});
    let mut rule = text.clone();
    rule["cidr"] = "203.0.113.0/24".into();
    rule["action"] = "allow".into();
    let mut spec = text;
    spec["rules"] = json!([rule]);
    accepted(IpPolicy, &json!({"spec": spec}), &json!({"spec": spec}));
}

#[test]
fn ip_policy_mistakes() {
    refused(
        IpPolicy,
        &json!({"spec": {}}),
        &["spec.rules: missing-field: rules is missing: the rules"],
    );
    refused(
        IpPolicy,
        &json!({"spec": {"rules": []}}),
        &["spec.rules: empty: the list is empty (name at least one entry)"],
    );
    refused(
        IpPolicy,
        &json!({"spec": {"rules": [{}, {"cidr": "10.0.0.0/8", "action": "Allow"}]}}),
        &[
            "spec.rules[0].action: missing-field: action is missing: what is done with its addresses",
            "spec.rules[0].cidr: missing-field: cidr is missing: a network in CIDR notation, IPv4 or IPv6",
            r#"spec.rules[1].action: not-allowed-value: "Allow" is not allow or deny (did you mean allow?)"#,
        ],
    );
    let rule = |cidr: &str, action: &str| json!({"cidr": cidr, "action": action});
    refused(
        IpPolicy,
        &json!({"spec": {"rules": [
            rule("10.0.0.1", "allow"),
            rule("10.0.0.1/8", "allow"),
            rule("10.0.0.0/33", "allow"),
            rule("2001:db8::1", "allow"),
            rule("example.com", "allow"),
            rule("010.0.0.0/8", "allow"),
            rule("", "allow"),
        ]}}),
        &[
            r#"spec.rules[0].cidr: bad-cidr: "10.0.0.1" is an address without a mask (write 10.0.0.1/32)"#,
            r#"spec.rules[1].cidr: bad-cidr: "10.0.0.1/8" has bits set behind its mask (write 10.0.0.0/8 for the network or 10.0.0.1/32 for the one address)"#,
            r#"spec.rules[2].cidr: bad-cidr: "10.0.0.0/33" has no valid mask (IPv4 masks go from /0 to /32, IPv6 masks from /0 to /128)"#,
            r#"spec.rules[3].cidr: bad-cidr: "2001:db8::1" is an address without a mask (write 2001:db8::1/128)"#,
            r#"spec.rules[4].cidr: bad-cidr: "example.com" is not a network in CIDR notation (write a network such as 203.0.113.0/24 or 2001:db8::/32)"#,
            r#"spec.rules[5].cidr: bad-cidr: "010.0.0.0/8" is not a network in CIDR notation (write a network such as 203.0.113.0/24 or 2001:db8::/32)"#,
            r#"spec.rules[6].cidr: bad-cidr: "" is not a network in CIDR notation (write a network such as 203.0.113.0/24 or 2001:db8::/32)"#,
        ],
    );
    refused(
        IpPolicy,
        &json!({"spec": {"rules": [
            rule("10.0.0.0/8", "allow"),
            rule("10.0.0.0/8", "allow"),
            rule("::ffff:10.0.0.0/104", "deny"),
            rule("2001:db8::/32", "allow"),
            rule("2001:DB8:0::/32", "deny"),
        ]}}),
        &[
            "spec.rules[1].cidr: duplicate: 10.0.0.0/8 stands in this policy already, at rules[0] (keep one of the two rules)",
            "spec.rules[2].cidr: duplicate: ::ffff:10.0.0.0/104 is both allowed and denied in this policy, see rules[0] (keep one of the two rules)",
            "spec.rules[4].cidr: duplicate: 2001:DB8:0::/32 is both allowed and denied in this policy, see rules[3] (keep one of the two rules)",
        ],
    );
}

#[test]
fn networks_are_canonical() {
    let network = |text: &str| cidr(text).expect("it is a network").to_string();
    assert_eq!(network("::ffff:10.0.0.0/104"), "10.0.0.0/8");
    assert_eq!(network("::ffff:0:0/96"), "0.0.0.0/0");
    assert_eq!(network("::/0"), "::/0");
    assert_eq!(network("2001:DB8::/32"), "2001:db8::/32");
}

#[test]
fn traffic_policies() {
    let policy = json!({"spec": {"policy": {"on_http_request": [{"actions": [{"type": "deny"}]}], "x": null}}});
    accepted(NgrokTrafficPolicy, &policy, &policy);
    refused(
        NgrokTrafficPolicy,
        &json!({"spec": {"policy": {}}}),
        &[
            "spec.policy: empty: nothing stands in it, so it would do nothing (fill it in or remove it)",
        ],
    );
    refused(
        NgrokTrafficPolicy,
        &json!({"spec": {"policy": "inbound: []"}}),
        &["spec.policy: wrong-type: an object is needed here, not a text"],
    );
    refused(
        NgrokTrafficPolicy,
        &json!({"policy": {"inbound": []}}),
        &[
            "policy: unknown-field: there is no field policy here (it belongs at spec.policy)",
            "spec: missing-field: spec is missing: the policy",
        ],
    );
}
