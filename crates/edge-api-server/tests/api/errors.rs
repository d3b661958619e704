//! One case per code that a call can be refused with before it reaches the state.

use edge_state::state::Role;
use serde_json::json;

use crate::common::{Edge, audit_lines, key};

const HOST: &str = "app.example.com";

/// Headers with which a call passes, and what is wrong about them is changed by the case.
fn headers<'a>(bearer: &'a str, changes: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    let mut all = vec![
        ("authorization", bearer),
        ("ngrok-version", "2"),
        ("content-type", "application/json"),
    ];
    for (name, value) in changes {
        all.retain(|(known, _)| known != name);
        if !value.is_empty() {
            all.push((name, value));
        }
    }
    all
}

type Case<'a> = (
    &'a str,
    &'a str,
    &'a [(&'a str, &'a str)],
    &'a str,
    u16,
    &'a str,
);

fn check(edge: &Edge, cases: &[Case<'_>]) {
    let bearer = format!("Bearer {}", key(Role::Write));
    for (method, path, changes, body, status, code) in cases {
        let answer = edge.raw(method, path, &headers(&bearer, changes), body);
        let case = format!("{method} {path} {changes:?} {body}: {answer:?}");
        assert_eq!((answer.status, answer.code()), (*status, *code), "{case}");
        assert_eq!(
            answer.header("content-type"),
            Some("application/json"),
            "{case}"
        );
        let audited = audit_lines(&answer).len();
        assert_eq!(
            audited,
            usize::from(*method != "GET" && *method != "HEAD"),
            "{case}"
        );
    }
}

#[test]
fn credentials() {
    let edge = Edge::start();
    let good = key(Role::Write);
    let unknown = format!("Bearer {}_{}", "0".repeat(27), "1".repeat(21));
    let id = format!("Bearer ak_{}", &good[..27]);
    let twice = format!("Bearer {good}");
    check(
        &edge,
        &[
            (
                "GET",
                "/edges/https",
                &[("authorization", "")],
                "",
                403,
                "ERR_NGROK_200",
            ),
            (
                "GET",
                "/edges/https",
                &[("authorization", "x")],
                "",
                403,
                "ERR_NGROK_201",
            ),
            (
                "GET",
                "/edges/https",
                &[("authorization", "Basic dTpw")],
                "",
                403,
                "ERR_NGROK_201",
            ),
            (
                "GET",
                "/edges/https",
                &[("authorization", "Bearer TEST_KEY")],
                "",
                403,
                "ERR_NGROK_202",
            ),
            (
                "GET",
                "/edges/https",
                &[("authorization", unknown.as_str())],
                "",
                403,
                "ERR_NGROK_203",
            ),
            (
                "GET",
                "/edges/https",
                &[("authorization", id.as_str())],
                "",
                403,
                "ERR_NGROK_208",
            ),
            (
                "POST",
                "/edges/https",
                &[("authorization", unknown.as_str())],
                "{}",
                403,
                "ERR_NGROK_203",
            ),
        ],
    );
    let two = [
        ("authorization", twice.as_str()),
        ("authorization", twice.as_str()),
        ("ngrok-version", "2"),
    ];
    assert_eq!(
        edge.raw("GET", "/edges/https", &two, "").code(),
        "ERR_NGROK_201"
    );
    // The scheme's name has no case (RFC 9110 section 11.1).
    let lower = format!("bearer {good}");
    let fine = edge.raw("GET", "/edges/https", &headers(&lower, &[]), "");
    assert_eq!(fine.status, 200, "{fine:?}");
}

#[test]
fn the_form_of_a_call() {
    let edge = Edge::start();
    let json = "application/json";
    check(
        &edge,
        &[
            (
                "GET",
                "/edges/https",
                &[("ngrok-version", "")],
                "",
                400,
                "ERR_NGROK_218",
            ),
            (
                "GET",
                "/edges/https",
                &[("ngrok-version", "1")],
                "",
                400,
                "ERR_NGROK_217",
            ),
            (
                "POST",
                "/edges/https",
                &[("content-type", "")],
                "{}",
                400,
                "ERR_NGROK_216",
            ),
            (
                "POST",
                "/edges/https",
                &[("content-type", "text/plain")],
                "{}",
                400,
                "ERR_NGROK_210",
            ),
            (
                "GET",
                "/edges/https",
                &[("content-type", json)],
                "{}",
                400,
                "ERR_NGROK_211",
            ),
            ("POST", "/edges/https", &[], "{", 400, "ERR_NGROK_213"),
            ("POST", "/edges/https", &[], "[]", 400, "ERR_NGROK_213"),
            (
                "POST",
                "/edges/https",
                &[],
                r#"{"metadata":"a","metadata":"b"}"#,
                400,
                "ERR_NGROK_213",
            ),
            (
                "POST",
                "/edges/https",
                &[],
                r#"{"hostport":[]}"#,
                400,
                "ERR_NGROK_214",
            ),
            (
                "POST",
                "/edges/https",
                &[],
                r#"{"hostports":"a"}"#,
                400,
                "ERR_NGROK_215",
            ),
            (
                "POST",
                "/edges/https",
                &[],
                r#"{"tls_termination":{"min_version":"1.1"}}"#,
                400,
                "ERR_NGROK_219",
            ),
            (
                "POST",
                "/edges/https",
                &[],
                r#"{"tls_termination":{"terminate_at":"edge"}}"#,
                400,
                "ERR_NGROK_7109",
            ),
            (
                "POST",
                "/edges/https",
                &[],
                r#"{"mutual_tls":{"certificate_authority_ids":["ca_1"]}}"#,
                400,
                "module_not_enforced",
            ),
            (
                "POST",
                "/edges/https",
                &[],
                r#"{"hostports":["app.example.com"]}"#,
                400,
                "ERR_NGROK_7104",
            ),
            (
                "POST",
                "/edges/https",
                &[],
                r#"{"hostports":["app.example.com:0"]}"#,
                400,
                "ERR_NGROK_7112",
            ),
            (
                "POST",
                "/edges/https",
                &[],
                r#"{"hostports":["app.example.com:80"]}"#,
                400,
                "ERR_NGROK_7116",
            ),
            (
                "POST",
                "/edges/https",
                &[],
                r#"{"hostports":["app.example.com:443"]}"#,
                400,
                "ERR_NGROK_7117",
            ),
            ("GET", "/edges/https?limit=0", &[], "", 400, "ERR_NGROK_233"),
            ("GET", "/edges/https?limit=x", &[], "", 400, "ERR_NGROK_244"),
            (
                "GET",
                "/edges/https?before_id=rd_1",
                &[],
                "",
                400,
                "ERR_NGROK_227",
            ),
            ("GET", "/edges/https?x=1", &[], "", 400, "ERR_NGROK_231"),
            (
                "GET",
                "/edges/https?limit=1&limit=2",
                &[],
                "",
                400,
                "ERR_NGROK_232",
            ),
            (
                "GET",
                "/edges/https?limit=%1",
                &[],
                "",
                400,
                "ERR_NGROK_230",
            ),
            (
                "GET",
                "/edges/https/edghts_x",
                &[],
                "",
                400,
                "ERR_NGROK_7001",
            ),
            (
                "GET",
                "/ip_policies/edghts_x",
                &[],
                "",
                400,
                "ERR_NGROK_223",
            ),
            (
                "POST",
                "/reserved_domains",
                &[],
                r#"{"domain":"a..b"}"#,
                400,
                "ERR_NGROK_402",
            ),
            (
                "POST",
                "/ip_policy_rules",
                &[],
                r#"{"ip_policy_id":"x"}"#,
                400,
                "ERR_NGROK_229",
            ),
            (
                "POST",
                "/tls_certificates",
                &[],
                "{}",
                400,
                "ERR_NGROK_1900",
            ),
            (
                "POST",
                "/tls_certificates",
                &[],
                r#"{"certificate_pem":"x"}"#,
                400,
                "ERR_NGROK_1901",
            ),
            (
                "POST",
                "/api_keys",
                &[],
                r#"{"owner_id":"usr_1"}"#,
                400,
                "not_available_at_this_edge",
            ),
            ("POST", "/backends/static", &[], "{}", 400, "ERR_NGROK_6505"),
            (
                "POST",
                "/backends/tunnel_group",
                &[],
                "{}",
                400,
                "ERR_NGROK_6508",
            ),
        ],
    );
    let charset = [("content-type", "application/json; charset=utf-8")];
    let bearer = format!("Bearer {}", key(Role::Write));
    let body = json!({ "domain": HOST, "description": null }).to_string();
    let answer = edge.raw(
        "POST",
        "/reserved_domains",
        &headers(&bearer, &charset),
        &body,
    );
    assert_eq!(answer.status, 201, "{answer:?}");
}

#[test]
fn what_is_not_there_is_not_found_whatever_the_verb() {
    let edge = Edge::start();
    let missing = format!("/edges/https/edghts_{}", "0".repeat(27));
    let route = format!("{missing}/routes/edghtsrt_{}/oauth", "0".repeat(27));
    for (method, path) in [
        ("GET", "/nothing"),
        ("GET", "/"),
        ("PUT", "/edges/https"),
        ("POST", "/edges/https/x"),
        ("GET", "/edges/tcp"),
        ("GET", "/backends/weighted"),
        ("GET", "/edges/https/"),
        ("DELETE", "/ip_policies"),
    ] {
        let answer = edge.call(Role::Write, method, path, None);
        assert_eq!(
            (answer.status, answer.code()),
            (404, "none"),
            "{method} {path}: {answer:?}"
        );
        assert_eq!(answer.body["msg"], "Not Found");
        assert_eq!(answer.body["details"]["path"], path);
    }
    for (method, path) in [
        ("GET", missing.as_str()),
        ("GET", &route),
        ("DELETE", &route),
    ] {
        let answer = edge.call(Role::Write, method, path, None);
        assert_eq!(
            (answer.status, answer.code()),
            (404, "none"),
            "{method} {path}: {answer:?}"
        );
        assert_eq!(answer.body["msg"], "Resource not found");
    }
    assert_eq!(
        edge.call(Role::Write, "DELETE", &missing, None).code(),
        "ERR_NGROK_7000"
    );
    // A HEAD has no body to look at.
    let bearer = format!("Bearer {}", key(Role::Write));
    assert_eq!(
        edge.raw("HEAD", "/edges/https", &headers(&bearer, &[]), "")
            .status,
        404
    );
}

#[test]
fn a_page_in_a_browser_cannot_reach_the_api_under_its_own_name() {
    let edge = Edge::start_with(|options| options.names = vec!["edge.internal".to_owned()]);
    let bearer = format!("Bearer {}", key(Role::Read));
    for (host, status) in [
        ("localhost:4041", 200),
        ("127.0.0.1", 200),
        ("[::1]:4041", 200),
        ("Edge.Internal:4041", 200),
        ("evil.example", 421),
        ("127.0.0.1.evil.example:4041", 421),
        ("127.0.0.1:80@evil.example", 421),
        ("127.0.0.1:x", 421),
        ("localhost:99999", 421),
    ] {
        let answer = edge.raw(
            "GET",
            "/edges/https",
            &headers(&bearer, &[("host", host)]),
            "",
        );
        assert_eq!(answer.status, status, "{host}: {answer:?}");
        if status == 200 {
            let uri = format!("http://{host}/edges/https");
            assert_eq!(
                answer.body["uri"],
                uri.as_str(),
                "addresses lead back the same way"
            );
        } else {
            assert_eq!(answer.code(), "host_not_served");
        }
    }
}

#[test]
fn bodies_and_calls_are_bounded() {
    let edge = Edge::start_with(|options| {
        options.body_bytes_max = 100;
        options.whole_body_bytes_max = 200;
    });
    let long = "x".repeat(150);
    let body = json!({ "metadata": long });
    let answer = edge.call(Role::Write, "POST", "/edges/https", Some(body.clone()));
    assert_eq!((answer.status, answer.code()), (413, "body_too_large"));
    let whole = format!("/edges/https/edghts_{}", "0".repeat(27));
    edge.call(Role::Write, "PUT", &whole, Some(body))
        .expect(200);

    let full = Edge::start_with(|options| options.calls_max = 0);
    let answer = full.call(Role::Write, "GET", "/edges/https", None);
    assert_eq!((answer.status, answer.code()), (429, "ERR_NGROK_225"));
    assert_eq!(answer.header("retry-after"), Some("1"));
}

#[test]
fn a_body_that_does_not_arrive_is_not_waited_for() {
    let edge =
        Edge::start_with(|options| options.body_timeout = std::time::Duration::from_millis(50));
    let bearer = format!("Bearer {}", key(Role::Write));
    let slow = headers(&bearer, &[("content-length", "10")]);
    let answer = edge.raw("POST", "/edges/https", &slow, "");
    assert_eq!((answer.status, answer.code()), (408, "request_timeout"));
}

#[test]
fn a_body_that_breaks_off_is_unreadable() {
    let edge = Edge::start();
    let bearer = format!("Bearer {}", key(Role::Write));
    let chunked = headers(&bearer, &[("transfer-encoding", "chunked")]);
    let answer = edge.raw_body("POST", "/edges/https", &chunked, "5\r\n{\"met\r\nzz\r\n");
    assert_eq!((answer.status, answer.code()), (400, "ERR_NGROK_212"));
}

#[test]
fn a_connection_that_says_nothing_is_closed() {
    use std::io::{Read as _, Write as _};
    let edge =
        Edge::start_with(|options| options.head_timeout = std::time::Duration::from_millis(50));
    for head in ["", "GET /edges/https HTTP/1.1\r\nhost: local"] {
        let mut stream = std::net::TcpStream::connect(edge.address).expect("connected");
        let limit = Some(std::time::Duration::from_secs(20));
        stream.set_read_timeout(limit).expect("a timeout");
        stream.write_all(head.as_bytes()).expect("sent");
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).expect("closed by the edge");
    }
}
