//! Every reason for a refusal, each brought about once.

use std::collections::BTreeSet;

use edge_state::{
    apply::RefusalCode,
    command::{Command, EdgePatch, Expected, RoutePatch, RouteSpec, Texts},
    state::{MutualTls, Phase, Role},
};
use model::{
    module::{
        LoginSession, ModuleKind, Modules, Oauth, OauthProvider, Oidc, Switch, WebhookVerification,
    },
    secret::Secret,
};

use crate::world::*;

mod objects;

use objects::{backends, other_objects};

type Case = (RefusalCode, As, Command);

fn fencing() -> Vec<Case> {
    let delete = |name: &str, expected| Command::DeleteEdge {
        id: edge(name),
        expected,
    };
    let mut twice = spec(Phase::Open, None);
    twice.routes.push(RouteSpec {
        place: prefix("/b"),
        ..twice.routes[0].clone()
    });
    let mut foreign = spec(Phase::Open, None);
    foreign.id = edge("user");
    let record = Command::SetRecord {
        edge: edge("user"),
        expected: Expected::Any,
        id: route("user"),
        record: Box::new(record(Phase::Open, None)),
    };
    let compression = Modules {
        compression: Some(Switch { enabled: false }),
        ..Modules::default()
    };
    vec![
        (
            RefusalCode::GenerationMismatch,
            user(),
            delete("user", Expected::Generation(999)),
        ),
        (
            RefusalCode::GenerationMismatch,
            user(),
            delete("user", Expected::Absent),
        ),
        (
            RefusalCode::AlreadyExists,
            user(),
            create_edge("user", Texts::default()),
        ),
        (
            RefusalCode::Superseded,
            As {
                term: Some(0),
                ..controller()
            },
            delete("controller", Expected::Any),
        ),
        (
            RefusalCode::Superseded,
            controller(),
            Command::RaiseTerm { term: 0 },
        ),
        (
            RefusalCode::ReadOnlyKey,
            As {
                role: Role::Read,
                ..user()
            },
            delete("user", Expected::Any),
        ),
        (
            RefusalCode::ControllerKeyRequired,
            user(),
            Command::RaiseTerm { term: 2 },
        ),
        (
            RefusalCode::ControllerKeyRequired,
            user(),
            create_key("new", Role::Controller, 9),
        ),
        (
            RefusalCode::ControllerKeyRequired,
            user(),
            Command::CloseOverdue,
        ),
        (
            RefusalCode::OwnedByController,
            user(),
            delete("controller", Expected::Any),
        ),
        (
            RefusalCode::OwnedByController,
            user(),
            Command::DeleteDomain {
                id: domain("owned"),
            },
        ),
        (
            RefusalCode::OwnedByAnother,
            controller(),
            Command::ReplaceEdge(Box::new(foreign)),
        ),
        (
            RefusalCode::NotEnforced,
            user(),
            update_route(modules(compression)),
        ),
        (
            RefusalCode::Immutable,
            controller(),
            put_policy("controller", "0.0.0.0/0"),
        ),
        (
            RefusalCode::Immutable,
            controller(),
            create_rule("controller", "new", "0.0.0.0/0"),
        ),
        (
            RefusalCode::Immutable,
            user(),
            put_certificate("one", "CHAIN", "OTHER"),
        ),
        (RefusalCode::RecordWithoutController, controller(), record),
        (
            RefusalCode::IdInUse,
            controller(),
            Command::ReplaceEdge(Box::new(twice)),
        ),
    ]
}

fn edges_and_routes() -> Vec<Case> {
    let mutual_tls = Some(MutualTls {
        enabled: true,
        authorities: BTreeSet::new(),
    });
    let mut with_certificate = spec(Phase::Open, None);
    with_certificate.certificate = Some(certificate("missing"));
    let no_module = Command::DeleteEdgeModule {
        id: edge("user"),
        expected: Expected::Any,
        kind: ModuleKind::Oauth,
    };
    let no_route = Command::DeleteRoute {
        edge: edge("user"),
        expected: Expected::Any,
        id: route("missing"),
    };
    let no_edge = Command::DeleteEdge {
        id: edge("missing"),
        expected: Expected::Any,
    };
    let empty = RoutePatch::default;
    let to = |id| RoutePatch {
        backend: Some(on(id)),
        ..RoutePatch::default()
    };
    vec![
        (RefusalCode::EdgeNotFound, user(), no_edge),
        (
            RefusalCode::TooManyEdges,
            with_limits(|l| l.edges = 2),
            create_edge("new", Texts::default()),
        ),
        (
            RefusalCode::EdgeDescription,
            user(),
            create_edge("new", described(256)),
        ),
        (
            RefusalCode::EdgeMetadata,
            user(),
            create_edge("new", noted(4097)),
        ),
        (
            RefusalCode::HostNotReserved,
            user(),
            update_edge(hosts(&["nowhere.test"])),
        ),
        (
            RefusalCode::HostTaken,
            user(),
            update_edge(hosts(&["owned.test"])),
        ),
        (
            RefusalCode::TooManyHosts,
            with_limits(|l| l.hosts_per_edge = 1),
            update_edge(hosts(&["a.example.com", "b.example.com"])),
        ),
        (RefusalCode::ModuleNotAvailable, user(), no_module),
        (
            RefusalCode::NoAuthority,
            enforcing_everything(),
            update_edge(EdgePatch {
                mutual_tls,
                ..EdgePatch::default()
            }),
        ),
        (
            RefusalCode::UnknownCertificate,
            controller(),
            Command::ReplaceEdge(Box::new(with_certificate)),
        ),
        (RefusalCode::RouteNotFound, user(), no_route),
        (
            RefusalCode::MatchTaken,
            user(),
            create_route("new", prefix("/"), empty()),
        ),
        (
            RefusalCode::TooManyRoutes,
            with_limits(|l| l.routes_per_edge = 1),
            create_route("new", prefix("/b"), empty()),
        ),
        (
            RefusalCode::MatchInvalid,
            user(),
            create_route("new", prefix("b"), empty()),
        ),
        (
            RefusalCode::MatchInvalid,
            user(),
            create_route("new", prefix("/b/"), empty()),
        ),
        (
            RefusalCode::MatchInvalid,
            user(),
            create_route("new", prefix("/b/../c"), empty()),
        ),
        (
            RefusalCode::MatchInvalid,
            user(),
            create_route("new", prefix("/b;c"), empty()),
        ),
        (
            RefusalCode::MatchTooLong,
            with_limits(|l| l.path_bytes = 4),
            create_route("new", prefix("/long"), empty()),
        ),
        (
            RefusalCode::UnknownBackend,
            user(),
            update_route(to(group("missing"))),
        ),
    ]
}

fn module_contents() -> Vec<Case> {
    let everything = enforcing_everything;
    let oauth = Oauth {
        enabled: true,
        session: LoginSession::default(),
        auth_check_interval: 0,
        provider: OauthProvider::Github,
        application: None,
        scopes: BTreeSet::new(),
        email_addresses: BTreeSet::new(),
        email_domains: BTreeSet::new(),
        teams: BTreeSet::new(),
        organizations: BTreeSet::new(),
    };
    let oidc = |secret: &str| Oidc {
        enabled: true,
        session: LoginSession::default(),
        issuer: "https://issuer.test".to_owned(),
        client_id: "id".to_owned(),
        client_secret: Secret::new(secret.to_owned()),
        scopes: BTreeSet::new(),
    };
    let logins = Modules {
        oauth: Some(oauth),
        oidc: Some(oidc("secret")),
        ..Modules::default()
    };
    let webhook = WebhookVerification {
        enabled: true,
        provider: "github".to_owned(),
        secret: Some(Secret::new(" \n".to_owned())),
    };
    let webhook = Modules {
        webhook_verification: Some(webhook),
        ..Modules::default()
    };
    let blank = Modules {
        oidc: Some(oidc("")),
        ..Modules::default()
    };
    let named =
        |names: &[&str]| modules(restricted(names.iter().map(|name| policy(name)).collect()));
    vec![
        (
            RefusalCode::SeveralLogins,
            everything(),
            update_route(modules(logins)),
        ),
        (
            RefusalCode::EmptySecret,
            everything(),
            update_route(modules(webhook)),
        ),
        (
            RefusalCode::EmptySecret,
            everything(),
            update_route(modules(blank)),
        ),
        (
            RefusalCode::UnknownPolicy,
            user(),
            update_route(named(&["missing"])),
        ),
        (
            RefusalCode::TooManyPoliciesNamed,
            with_limits(|l| l.policies_per_module = 1),
            update_route(named(&["user", "controller"])),
        ),
        (RefusalCode::NoPolicyNamed, user(), update_route(named(&[]))),
        (
            RefusalCode::TooManyHeaders,
            with_limits(|l| l.headers_per_module = 0),
            update_route(headers("x-a", "1")),
        ),
        (
            RefusalCode::HeaderName,
            user(),
            update_route(headers("X-A", "1")),
        ),
        (
            RefusalCode::HeaderValue,
            user(),
            update_route(headers("x-a", "1\nx-b: 2")),
        ),
        (
            RefusalCode::HeaderExpression,
            user(),
            update_route(headers("x-a", "${.ngrok.client_ip}")),
        ),
        (
            RefusalCode::HeaderForbidden,
            user(),
            update_route(headers("content-length", "1")),
        ),
    ]
}

#[test]
fn every_refusal_has_its_cause_and_changes_nothing() {
    let cases = [
        fencing(),
        edges_and_routes(),
        module_contents(),
        backends(),
        other_objects(),
    ]
    .concat();
    let before = world();
    for (code, writer, command) in &cases {
        let mut machine = before.clone();
        let refusal = apply(&mut machine, writer, command).expect_err("it is refused");
        assert_eq!(refusal.code, *code, "{command:?}: {refusal}");
        assert!(!refusal.message.ends_with('.') && !refusal.message.is_empty());
        assert_eq!(machine, before, "{command:?}");
    }
    let seen: BTreeSet<_> = cases.iter().map(|(code, _, _)| *code).collect();
    let all: BTreeSet<_> = RefusalCode::ALL.iter().copied().collect();
    assert_eq!(
        all.difference(&seen).collect::<Vec<_>>(),
        [&RefusalCode::HeaderForbidden; 0]
    );
}
