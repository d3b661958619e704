//! A small edge with something of everybody's, and the commands that make it.

use std::collections::{BTreeMap, BTreeSet};

use edge_state::{
    apply::{Machine, RefusedCommand},
    command::{
        Command, Context, EdgePatch, EdgeSpec, Expected, Limits, RecordSpec, RoutePatch, RouteSpec,
        Texts,
    },
    state::{Declared, Phase, PolicyRef, Role, RouteBackend},
};
use model::{
    backend::BackendKind,
    host::HostPattern,
    id::{
        BackendId, CertificateId, DomainId, EdgeId, HttpResponseId, IpPolicyId, IpRuleId, KeyId,
        RouteId, TunnelGroupId,
    },
    module::{EdgeDemands, HeaderChanges, IpAction, IpRestriction, IpRules, ModuleKind, Modules},
    object::ObjectRef,
    place::{Match, MatchType},
    secret::{Digest, Secret},
    time::{Span, Timestamp},
};

pub(crate) const NOW: Timestamp = Timestamp(1_000);

/// Who asks, and under which limits.
#[derive(Clone)]
pub(crate) struct As {
    pub(crate) role: Role,
    pub(crate) term: Option<u64>,
    pub(crate) enforceable: BTreeSet<ModuleKind>,
    pub(crate) limits: Limits,
    pub(crate) now: Timestamp,
}

pub(crate) fn controller() -> As {
    As {
        role: Role::Controller,
        term: None,
        enforceable: routing::chain::enforced(),
        limits: Limits::default(),
        now: NOW,
    }
}

pub(crate) fn user() -> As {
    As {
        role: Role::Write,
        ..controller()
    }
}

pub(crate) fn with_limits(change: impl FnOnce(&mut Limits)) -> As {
    let mut writer = user();
    change(&mut writer.limits);
    writer
}

pub(crate) fn enforcing_everything() -> As {
    As {
        enforceable: ModuleKind::ALL.into_iter().collect(),
        ..user()
    }
}

pub(crate) fn apply(
    machine: &mut Machine,
    writer: &As,
    command: &Command,
) -> Result<bool, RefusedCommand> {
    let As {
        role,
        term,
        enforceable,
        limits,
        now,
    } = writer;
    let context = Context {
        now: *now,
        role: *role,
        term: *term,
        enforceable,
        limits,
    };
    machine.apply(command, &context)
}

pub(crate) fn must(machine: &mut Machine, writer: &As, command: &Command) {
    assert_eq!(apply(machine, writer, command), Ok(true), "{command:?}");
}

pub(crate) fn edge(name: &str) -> EdgeId {
    EdgeId::derived(&[name])
}

pub(crate) fn route(name: &str) -> RouteId {
    RouteId::derived(&[name])
}

pub(crate) fn group(name: &str) -> BackendId {
    BackendId::TunnelGroup(TunnelGroupId::derived(&[name]))
}

pub(crate) fn response() -> BackendId {
    BackendId::HttpResponse(HttpResponseId::derived(&["page"]))
}

pub(crate) fn policy(name: &str) -> IpPolicyId {
    IpPolicyId::derived(&[name])
}

pub(crate) fn rule(name: &str) -> IpRuleId {
    IpRuleId::derived(&[name])
}

pub(crate) fn certificate(name: &str) -> CertificateId {
    CertificateId::derived(&[name])
}

pub(crate) fn domain(name: &str) -> DomainId {
    DomainId::derived(&[name])
}

pub(crate) fn key(name: &str) -> KeyId {
    KeyId::derived(&[name])
}

pub(crate) fn host(text: &str) -> HostPattern {
    HostPattern::parse(text).expect("a host")
}

pub(crate) fn net(text: &str) -> ipnet::IpNet {
    text.parse().expect("a network")
}

pub(crate) fn prefix(path: &str) -> Match {
    Match {
        match_type: MatchType::ElementPrefix,
        path: path.to_owned(),
    }
}

pub(crate) fn described(length: usize) -> Texts {
    Texts {
        description: Some("x".repeat(length)),
        metadata: None,
    }
}

pub(crate) fn noted(length: usize) -> Texts {
    Texts {
        description: None,
        metadata: Some("x".repeat(length)),
    }
}

pub(crate) fn put_domain(name: &str, text: &str, owner: Option<&str>) -> Command {
    Command::PutDomain {
        id: domain(name),
        controller: owner.map(str::to_owned),
        host: host(text),
        namespace: owner.map(|_| "default".to_owned()),
        heir: None,
        declared: true,
        texts: Texts::default(),
    }
}

pub(crate) fn labels(key: &str, value: &str) -> BackendKind {
    BackendKind::TunnelGroup {
        labels: BTreeMap::from([(key.to_owned(), value.to_owned())]),
    }
}

pub(crate) fn page(status: u16, name: &str, value: &str) -> BackendKind {
    let headers = BTreeMap::from([(name.to_owned(), value.to_owned())]);
    BackendKind::HttpResponse {
        status,
        headers,
        body: "gone".to_owned(),
    }
}

pub(crate) fn put_backend(id: BackendId, owner: Option<&str>, kind: BackendKind) -> Command {
    Command::PutBackend {
        id,
        controller: owner.map(str::to_owned),
        kind,
        service: None,
        endpoints: BTreeSet::new(),
        texts: Texts::default(),
    }
}

pub(crate) fn put_policy(name: &str, network: &str) -> Command {
    Command::PutIpPolicy {
        id: policy(name),
        controller: "c".to_owned(),
        description: String::new(),
        metadata: String::new(),
        rules: IpRules(BTreeMap::from([(net(network), IpAction::Allow)])),
    }
}

pub(crate) fn create_rule(to: &str, name: &str, network: &str) -> Command {
    Command::CreateIpRule {
        policy: policy(to),
        id: rule(name),
        cidr: net(network),
        action: IpAction::Allow,
        texts: Texts::default(),
    }
}

pub(crate) fn put_certificate(name: &str, chain: &str, key: &str) -> Command {
    Command::PutCertificate {
        id: certificate(name),
        controller: None,
        chain_pem: chain.to_owned(),
        key_pem: Secret::new(key.to_owned()),
        texts: Texts::default(),
    }
}

pub(crate) fn create_key(name: &str, role: Role, digest: u8) -> Command {
    let token_digest = Digest([digest; 32]);
    Command::CreateKey {
        id: key(name),
        role,
        token_digest,
        texts: Texts::default(),
    }
}

pub(crate) fn restricted<P>(policies: Vec<P>) -> Modules<P> {
    let ip_restriction = Some(IpRestriction {
        enabled: true,
        policies,
    });
    Modules {
        ip_restriction,
        ..Modules::default()
    }
}

pub(crate) fn headers(name: &str, value: &str) -> RoutePatch {
    let add = BTreeMap::from([(name.to_owned(), value.to_owned())]);
    let request_headers = Some(HeaderChanges {
        enabled: true,
        add,
        remove: BTreeSet::new(),
    });
    modules(Modules {
        request_headers,
        ..Modules::default()
    })
}

pub(crate) fn modules(modules: Modules<IpPolicyId>) -> RoutePatch {
    RoutePatch {
        modules,
        ..RoutePatch::default()
    }
}

pub(crate) fn on(id: BackendId) -> RouteBackend {
    RouteBackend { enabled: true, id }
}

pub(crate) fn create_route(name: &str, place: Match, patch: RoutePatch) -> Command {
    let expected = Expected::Any;
    Command::CreateRoute {
        edge: edge("user"),
        expected,
        id: route(name),
        place,
        patch: Box::new(patch),
    }
}

/// Changes the user's route.
pub(crate) fn update_route(patch: RoutePatch) -> Command {
    let expected = Expected::Any;
    Command::UpdateRoute {
        edge: edge("user"),
        expected,
        id: route("user"),
        patch: Box::new(patch),
    }
}

pub(crate) fn update_edge(patch: EdgePatch) -> Command {
    Command::UpdateEdge {
        id: edge("user"),
        expected: Expected::Any,
        patch,
    }
}

pub(crate) fn hosts(texts: &[&str]) -> EdgePatch {
    EdgePatch {
        hosts: Some(texts.iter().map(|text| host(text)).collect()),
        ..EdgePatch::default()
    }
}

pub(crate) fn create_edge(name: &str, texts: Texts) -> Command {
    Command::CreateEdge {
        id: edge(name),
        controller: None,
        patch: EdgePatch {
            texts,
            ..EdgePatch::default()
        },
    }
}

pub(crate) fn record(phase: Phase, close_after: Option<Span>) -> RecordSpec {
    let declared = Declared {
        generation: 1,
        digest: Some(Digest([1; 32])),
    };
    RecordSpec {
        owner: ObjectRef::new("Ingress", "default", "web"),
        wanted: Some(declared.clone()),
        serving: Some(declared),
        has_access_modules: true,
        rests_on: BTreeSet::new(),
        phase,
        close_after,
    }
}

/// The controller's edge.
pub(crate) fn spec(phase: Phase, close_after: Option<Span>) -> EdgeSpec {
    let at = |id| PolicyRef { id, version: 1 };
    EdgeSpec {
        id: edge("controller"),
        expected: Expected::Any,
        controller: Some("c".to_owned()),
        hosts: BTreeSet::from([host("owned.test")]),
        demands: EdgeDemands::default(),
        certificate: Some(certificate("one")),
        description: String::new(),
        metadata: String::new(),
        routes: vec![RouteSpec {
            id: route("controller"),
            place: prefix("/"),
            modules: restricted(vec![
                at(policy("controller")),
                PolicyRef {
                    id: policy("user"),
                    version: 2,
                },
            ]),
            backend: Some(on(group("controller"))),
            also_refuse: BTreeSet::new(),
            description: String::new(),
            metadata: String::new(),
            record: Some(record(phase, close_after)),
        }],
    }
}

/// An edge of a user, one of a controller, and one of everything else.
pub(crate) fn world() -> Machine {
    let mut machine = Machine::default();
    let patch = RoutePatch {
        backend: Some(on(group("user"))),
        ..modules(restricted(vec![policy("user")]))
    };
    let controllers = [
        Command::RaiseTerm { term: 1 },
        put_domain("owned", "owned.test", Some("c")),
        put_backend(group("controller"), Some("c"), labels("app", "c")),
        put_policy("controller", "10.0.0.0/8"),
        create_key("controller", Role::Controller, 1),
    ];
    let users = [
        put_domain("free", "*.example.com", None),
        put_backend(group("user"), None, labels("app", "u")),
        put_backend(response(), None, page(410, "x-why", "gone")),
        Command::CreateIpPolicy {
            id: policy("user"),
            texts: Texts::default(),
        },
        create_rule("user", "ten", "10.0.0.0/8"),
        put_certificate("one", "CHAIN", "KEY"),
        create_edge("user", Texts::default()),
        update_edge(hosts(&["a.example.com"])),
        create_route("user", prefix("/"), patch),
    ];
    controllers
        .iter()
        .for_each(|command| must(&mut machine, &controller(), command));
    users
        .iter()
        .for_each(|command| must(&mut machine, &user(), command));
    must(
        &mut machine,
        &controller(),
        &Command::ReplaceEdge(Box::new(spec(Phase::Open, None))),
    );
    machine
}
