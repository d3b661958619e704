//! The lists of names, in every spelling, and the filters made of them.

use std::collections::{BTreeMap, BTreeSet};

use model::module::HeaderChanges;

use super::{
    names::{FORGED, Names},
    *,
};
use crate::modules::headers::Direction;

fn nominations<'r>(values: &[&'r str]) -> Nominations<'r> {
    Nominations::parse(values.iter().map(|value| value.as_bytes())).expect("well-formed")
}

#[test]
fn what_only_the_edge_may_say_is_dropped_in_every_spelling() {
    for name in [
        "X-Forwarded-For",
        "x_forwarded_for",
        "X_Forwarded-For",
        "x.forwarded.for",
        "X-FORWARDED_PROTO",
        "X-Forwarded-User",
        "X-Forwarded-Client-Cert",
        "X-Forwarded",
        "Forwarded",
        "X-Real-IP",
        "x_real_ip",
        "True-Client-IP",
        "CF-Connecting-IP",
        "Cf-Access-Jwt-Assertion",
        "X-Original-URL",
        "X_Original_Url",
        "X-Rewrite-URL",
        "X-Remote-User",
        "Remote-User",
        "REMOTE_USER",
        "X-Auth-Request-Email",
        "X-WebAuth-User",
        "ngrok-auth-user-email",
        "Ngrok_Auth_User_Email",
        "X-SSL-Client-Verify",
        "ssl-client-subject-dn",
        "X-Client-Cert",
        "Client-Cert",
        "Client-Cert-Chain",
        "Proxy",
        "proxy-authorization",
        "X-Envoy-Original-Path",
        "X-Request-Id",
        "x_request_id",
        "X-Authentik-Username",
        "OIDC_CLAIM_email",
        "Content_Length",
        "Content_Type",
        "X-Middleware-Subrequest",
        "X-Client-Verify",
        "x_client_dn",
        "X-Email",
        "X-Token_Subject",
        "Forwarded-For",
        "forwarded_for",
        "X-Groups",
        "X-Roles",
        "X-Authenticated",
        "X-Authenticated-Groups",
    ] {
        assert_eq!(fate(name.as_bytes()), Fate::Forged, "{name}");
    }
    for name in [
        "Connection",
        "keep-alive",
        "TE",
        "Transfer-Encoding",
        "transfer_encoding",
        "Upgrade",
        "Trailer",
    ] {
        assert_eq!(fate(name.as_bytes()), Fate::HopByHop, "{name}");
    }
    for name in [
        "X-HTTP-Method-Override",
        "x_http_method",
        "X-Method-Override",
    ] {
        assert_eq!(fate(name.as_bytes()), Fate::MethodOverride, "{name}");
    }
}

#[test]
fn what_clients_send_is_kept() {
    for name in [
        "Host",
        "Accept",
        "Accept-Language",
        "Cookie",
        "Authorization",
        "User-Agent",
        "Content-Type",
        "Content-Length",
        "Content-Encoding",
        "If-Match",
        "If-None-Match",
        "Range",
        "Origin",
        "Referer",
        "Sec-Fetch-Mode",
        "Sec-WebSocket-Key",
        "X-Auth-Token",
        "X-Access-Token",
        "X-User-Id",
        "X-Api-Key",
        "api_key",
        "X-Requested-With",
        "X-Csrf-Token",
        "traceparent",
        "X-Correlation-Id",
        "Priority",
        "DNT",
        "Cache-Control",
        "Via",
        "X-Forge",
        "Idempotency-Key",
        "sslx",
        "cfx",
        "x",
        "",
        "X-Remote",
    ] {
        assert_eq!(fate(name.as_bytes()), Fate::Kept, "{name}");
    }
}

#[test]
fn every_entry_is_a_name_that_its_list_finds() {
    fn check<const N: usize>(names: &Names<N>) {
        let distinct: BTreeSet<_> = names.all().iter().collect();
        assert_eq!(distinct.len(), N);
        for name in names.all() {
            assert!(
                name.bytes()
                    .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-'),
                "{name}"
            );
            let shouted = name.to_ascii_uppercase();
            assert!(
                names.contains(name.as_bytes()) && names.contains(shouted.as_bytes()),
                "{name}"
            );
            assert!(names.contains(name.replace('-', "_").as_bytes()), "{name}");
            assert!(
                !names.contains(format!("{name}-").as_bytes())
                    || names.all().contains(&&*format!("{name}-"))
            );
        }
    }
    check(&HOP_BY_HOP);
    check(&FORGED);
    check(&METHOD_OVERRIDES);
    check(&EXACT_ONLY);
    check(&NEVER_NOMINATED);
    check(&NO_TRAILER);
    check(&SPECIAL);
    for prefix in FORGED_PREFIXES.all() {
        assert!(
            FORGED_PREFIXES.begin(format!("{prefix}x").to_ascii_uppercase().as_bytes()),
            "{prefix}"
        );
        assert!(
            !FORGED_PREFIXES.begin(&prefix.as_bytes()[1..]) || prefix.len() < 4,
            "{prefix}"
        );
    }
    for name in added::ALL {
        assert_eq!(
            fate(name.as_bytes()),
            Fate::Forged,
            "{name}: the edge's own is never the client's"
        );
    }
}

#[test]
fn connection_nominates_what_it_may_and_nothing_else() {
    let named = nominations(&[
        "close, X-Hop",
        "x-other,,",
        "Cookie, authorization, HOST, x-forwarded-for",
    ]);
    assert!(named.has("Close") && !named.has("upgrade"));
    assert!(named.name(b"x-hop") && named.name(b"X-Other") && !named.name(b"x-free"));
    for protected in ["cookie", "Authorization", "host", "content-length"] {
        assert!(!named.name(protected.as_bytes()), "{protected}");
    }
    let many = vec!["x"; NOMINATIONS_MAX + 1].join(",");
    for value in [many.as_str(), "a b", "a;b", "\u{e4}", "a:b"] {
        assert_eq!(
            Nominations::parse([value.as_bytes()]).err(),
            Some(Refusal::BadHeader),
            "{value}"
        );
    }
}

#[test]
fn one_filter_decides_about_all_headers_of_a_request() {
    let changes = HeaderChanges {
        enabled: true,
        add: BTreeMap::new(),
        remove: [String::from("x-secret")].into(),
    };
    let edits = HeaderEdits::compile(Direction::Request, &changes).expect("allowed");
    let filter = RequestFilter {
        nominations: nominations(&["x-hop"]),
        edits: Some(&edits),
        method_decides: false,
    };
    for (name, kept) in [
        ("accept", true),
        ("x-hop", false),
        ("X_Secret", false),
        ("x-forwarded-for", false),
        ("te", false),
        ("x-http-method-override", true),
        ("cookie", true),
    ] {
        assert_eq!(filter.keeps(name.as_bytes()), kept, "{name}");
    }
    assert!(
        !RequestFilter {
            method_decides: true,
            ..filter
        }
        .keeps(b"X-HTTP-Method-Override")
    );
    for (name, kept) in [
        ("x-checksum", true),
        ("x-forwarded-for", false),
        ("X_Remote_User", false),
        ("content-length", false),
        ("authorization", false),
        ("transfer-encoding", false),
        ("host", false),
        ("cookie", false),
        ("x-hop", false),
        ("grpc-status", true),
        ("if-match", false),
    ] {
        assert_eq!(
            filter.keeps_trailer(name.as_bytes()),
            kept,
            "trailer {name}"
        );
    }
}

#[test]
fn a_backend_speaks_for_itself_but_not_for_the_edge() {
    let filter = ResponseFilter {
        nominations: nominations(&["x-hop, set-cookie"]),
        edits: None,
    };
    for (name, kept) in [
        ("content-type", true),
        ("set-cookie", true),
        ("x-hop", false),
        ("connection", false),
        ("ngrok-error-code", false),
        ("transfer-encoding", false),
        ("x-forwarded-for", true),
    ] {
        assert_eq!(filter.keeps(name.as_bytes()), kept, "{name}");
    }
    assert!(filter.keeps_trailer(b"grpc-status") && !filter.keeps_trailer(b"set-cookie"));
}
