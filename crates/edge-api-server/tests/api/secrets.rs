//! No answer holds a secret: everything is filled with marked ones, and every GET is searched.

use std::{collections::BTreeSet, sync::Arc};

use edge_api::api_key::digest;
use edge_state::{
    command::{Command, EdgeSpec, Expected, RecordSpec, RouteSpec, Texts},
    state::{Declared, EdgeState, Phase, Role},
};
use model::{
    host::HostPattern,
    id::{CertificateId, DomainId, EdgeId, RouteId},
    module::{
        EdgeDemands, LoginSession, Modules, Oauth, OauthApplication, OauthProvider, Oidc,
        WebhookVerification,
    },
    object::ObjectRef,
    place::{Match, MatchType},
    secret::{Digest, Secret},
};
use serde_json::json;

use crate::common::{Edge, key};

const ROLES: [Role; 3] = [Role::Read, Role::Write, Role::Controller];

/// Commands that leave a secret, or a digest, in every place that can hold one.
fn fill(edge: &Edge) {
    let host = HostPattern::parse("a.example").expect("a host");
    edge.command(Command::PutDomain {
        id: DomainId::derived(&["a"]),
        controller: Some("c".to_owned()),
        host: host.clone(),
        namespace: Some("default".to_owned()),
        heir: None,
        declared: true,
        texts: Texts::default(),
    });
    edge.command(Command::PutCertificate {
        id: CertificateId::derived(&["c"]),
        controller: Some("c".to_owned()),
        chain_pem: "CHAIN".to_owned(),
        key_pem: Secret::new("MARKED-KEY".to_owned()),
        texts: Texts::default(),
    });
    let declared = |byte| {
        Some(Declared {
            generation: 1,
            digest: Some(Digest([byte; 32])),
        })
    };
    edge.command(Command::ReplaceEdge(Box::new(EdgeSpec {
        id: EdgeId::derived(&["a"]),
        expected: Expected::Absent,
        controller: Some("c".to_owned()),
        hosts: BTreeSet::from([host]),
        demands: EdgeDemands::default(),
        certificate: Some(CertificateId::derived(&["c"])),
        description: String::new(),
        metadata: String::new(),
        routes: vec![RouteSpec {
            id: RouteId::derived(&["r"]),
            place: Match::new(MatchType::Exact, "/"),
            modules: Modules::default(),
            backend: None,
            also_refuse: BTreeSet::new(),
            description: String::new(),
            metadata: String::new(),
            record: Some(RecordSpec {
                owner: ObjectRef::new("Ingress", "default", "a"),
                wanted: declared(0xaa),
                serving: None,
                has_access_modules: false,
                rests_on: BTreeSet::new(),
                phase: Phase::Closed,
                close_after: None,
            }),
        }],
    })));
}

#[test]
fn no_answer_to_any_reader_holds_a_secret() {
    let edge = Edge::start();
    fill(&edge);
    let generated =
        rcgen::generate_simple_self_signed(["b.example".to_owned()]).expect("generated");
    let uploaded = generated.signing_key.serialize_pem();
    let body = json!({ "certificate_pem": generated.cert.pem(), "private_key_pem": uploaded });
    let answer = edge.call(Role::Write, "POST", "/tls_certificates", Some(body));
    let mut texts = vec![(Role::Write, answer.text.clone())];
    answer.expect(201);
    let state = edge.store.current();
    let mut paths: Vec<String> = [
        "/edges/https",
        "/backends/tunnel_group",
        "/backends/http_response",
        "/backends/static",
        "/reserved_domains",
        "/tls_certificates",
        "/ip_policies",
        "/ip_policy_rules",
        "/api_keys",
        "/portcullis/v1/state",
        "/portcullis/v1/capabilities",
    ]
    .map(str::to_owned)
    .into();
    let items = |path: &str, ids: Vec<String>| {
        ids.into_iter()
            .map(|id| format!("{path}/{id}"))
            .collect::<Vec<_>>()
    };
    paths.extend(items(
        "/api_keys",
        state.state.keys.keys().map(ToString::to_string).collect(),
    ));
    paths.extend(items(
        "/tls_certificates",
        state
            .state
            .certificates
            .keys()
            .map(ToString::to_string)
            .collect(),
    ));
    let edge_path = format!("/edges/https/{}", EdgeId::derived(&["a"]));
    paths.push(format!("{edge_path}/routes/{}", RouteId::derived(&["r"])));
    paths.push(edge_path);
    for role in ROLES {
        for path in &paths {
            let answer = edge.call(role, "GET", path, None);
            assert_eq!(answer.status, 200, "{path}: {answer:?}");
            texts.push((role, answer.text));
        }
    }

    let mut nowhere: Vec<String> = vec!["MARKED-KEY".to_owned()];
    nowhere.extend(
        uploaded
            .lines()
            .filter(|line| !line.contains("-----"))
            .map(str::to_owned),
    );
    nowhere.extend(ROLES.map(key));
    let mut controllers_only = vec![hex(Digest([0xaa; 32]))];
    controllers_only.extend(ROLES.map(|role| hex(digest(&key(role)))));
    for (role, text) in &texts {
        for secret in &nowhere {
            assert!(!text.contains(secret), "{role:?} reads {secret}: {text}");
        }
        for secret in &controllers_only {
            assert!(
                *role == Role::Controller || !text.contains(secret),
                "{role:?}: {secret} in {text}"
            );
        }
    }
    let controllers: String = texts
        .iter()
        .filter(|(role, _)| *role == Role::Controller)
        .map(|(_, text)| text.as_str())
        .collect();
    assert!(
        controllers.contains(&controllers_only[0]),
        "a controller finds its digests again (R9)"
    );
}

/// The modules that this edge does not enforce yet cannot be stored through any door, but a state
/// that holds one (of a later version) is not to be read out either.
#[test]
fn secrets_of_modules_are_hidden_from_everybody() {
    let secret = || Secret::new("MARKED".to_owned());
    let session = LoginSession::default();
    let modules = Modules {
        webhook_verification: Some(WebhookVerification {
            enabled: true,
            provider: "github".to_owned(),
            secret: Some(secret()),
        }),
        oauth: Some(Oauth {
            enabled: true,
            session: session.clone(),
            auth_check_interval: 0,
            provider: OauthProvider::Google,
            application: Some(OauthApplication {
                client_id: "shown".to_owned(),
                client_secret: secret(),
            }),
            scopes: BTreeSet::new(),
            email_addresses: BTreeSet::new(),
            email_domains: BTreeSet::new(),
            teams: BTreeSet::new(),
            organizations: BTreeSet::new(),
        }),
        oidc: Some(Oidc {
            enabled: true,
            session,
            issuer: "https://issuer.example".to_owned(),
            client_id: "shown".to_owned(),
            client_secret: secret(),
            scopes: BTreeSet::new(),
        }),
        ..Modules::default()
    };
    let edge = Edge::start();
    fill(&edge);
    let mut state = EdgeState::clone(&edge.store.current().state);
    let stored = state.edges.values_mut().next().expect("an edge");
    let route = Arc::make_mut(stored)
        .routes
        .values_mut()
        .next()
        .expect("a route");
    route.modules = modules;
    for role in ROLES {
        let text = serde_json::to_string(&state.redacted(role)).expect("text");
        assert!(
            !text.contains("MARKED") && text.contains("shown"),
            "{role:?}: {text}"
        );
        assert_eq!(
            text.contains(&hex(Digest([0xaa; 32]))),
            role == Role::Controller
        );
    }
}

fn hex(digest: Digest) -> String {
    digest.into()
}

#[test]
fn an_uploaded_certificate_is_checked_and_described() {
    let edge = Edge::start();
    let one = rcgen::generate_simple_self_signed(["b.example".to_owned()]).expect("generated");
    let mut named = rcgen::CertificateParams::new(["c.example".to_owned()]).expect("a name");
    named
        .distinguished_name
        .push(rcgen::DnType::CommonName, "another");
    let two_pair = rcgen::KeyPair::generate().expect("generated");
    let two = named.self_signed(&two_pair).expect("generated");
    let upload = |chain: String, key: &str| {
        let body = json!({ "certificate_pem": chain, "private_key_pem": key });
        edge.call(Role::Write, "POST", "/tls_certificates", Some(body))
    };
    let (one_key, two_key) = (one.signing_key.serialize_pem(), two_pair.serialize_pem());
    let encrypted =
        "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----";
    for (chain, key, code) in [
        ("x".to_owned(), one_key.as_str(), "ERR_NGROK_1900"),
        (one.cert.pem(), "x", "ERR_NGROK_1903"),
        (one.cert.pem(), encrypted, "ERR_NGROK_1902"),
        (one.cert.pem(), two_key.as_str(), "ERR_NGROK_1923"),
        (
            one.cert.pem() + &two.pem(),
            one_key.as_str(),
            "ERR_NGROK_1926",
        ),
    ] {
        assert_eq!(upload(chain, key).code(), code);
    }
    let made = upload(one.cert.pem().trim().to_owned(), &one_key).expect(201);
    assert_eq!(
        made["subject_alternative_names"]["dns_names"],
        json!(["b.example"])
    );
    assert_eq!(made["private_key_type"], "ecdsa");
    assert!(
        made["certificate_pem"]
            .as_str()
            .is_some_and(|pem| pem.ends_with("-----\n"))
    );
    assert!(
        made["not_after"]
            .as_str()
            .is_some_and(|at| at.ends_with('Z'))
    );
    assert!(made.get("private_key_pem").is_none());
    let id = made["id"].as_str().expect("an id");
    let path = format!("/tls_certificates/{id}");
    let patched = edge
        .call(
            Role::Write,
            "PATCH",
            &path,
            Some(json!({ "metadata": "m" })),
        )
        .expect(200);
    assert_eq!(patched["metadata"], "m");
    // Used by an edge, it stays; then it goes.
    let whole = format!("/edges/https/{}", EdgeId::derived(&["e"]));
    edge.call(
        Role::Write,
        "PUT",
        &whole,
        Some(json!({ "certificate_id": id })),
    )
    .expect(200);
    assert_eq!(
        edge.call(Role::Write, "DELETE", &path, None).code(),
        "certificate_in_use"
    );
    edge.call(Role::Write, "DELETE", &whole, None).expect(204);
    edge.call(Role::Write, "DELETE", &path, None).expect(204);
}
