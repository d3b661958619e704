//! One contract, held by every way to drive an edge: in process, over HTTP, over HTTPS.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    sync::Arc,
};

use controller::ports::{EdgeControl, EdgeError, Refused};
use edge_api::{
    api_key::{ApiKey, digest, new_key},
    backend::{HttpResponse, StaticAddress, TunnelGroup},
    certificate::TlsCertificate,
    domain::ReservedDomain,
    edge::HttpsEdge,
    ip_policy::{IpPolicy, IpPolicyRule},
    list::Resource,
};
use edge_api_server::{Options, serve};
use edge_client::{
    ConnectOptions, EdgeAddress, KeySource, direct::DirectEdge, http::HttpEdge, rest::RestClient,
};
use edge_state::{
    apply::apply,
    capabilities::{Atomicity, Capabilities},
    command::{Command, Context, EdgeSpec, Expected, Limits, RouteSpec, Texts},
    state::{Role, RouteBackend},
};
use edge_store::{Store, Writer};
use model::{
    backend::BackendKind,
    host::HostPattern,
    id::{
        BackendId, CertificateId, DomainId, EdgeId, HttpResponseId, IpPolicyId, IpRuleId, RouteId,
        StaticId, TunnelGroupId,
    },
    module::{EdgeDemands, IpAction, Modules},
    place::{Match, MatchType},
    secret::Secret,
    time::Timestamp,
};
use rustls_pki_types::{PrivateKeyDer, pem::PemObject as _};
use tokio::{net::TcpListener, sync::watch};

/// A store with a controller's and a writer's key, its server if there is one, and its directory.
struct Served {
    store: Store,
    address: EdgeAddress,
    ca_file: Option<PathBuf>,
    _stop: watch::Sender<bool>,
    _dir: tempfile::TempDir,
}

fn key(role: Role) -> String {
    new_key([role as u8; 20], [role as u8; 15])
        .1
        .expose()
        .to_owned()
}

fn capabilities() -> Capabilities {
    let enforceable = edge_store::Options::new(PathBuf::new()).enforceable;
    Capabilities {
        version: "test".to_owned(),
        atomicity: Atomicity::Replace,
        enforceable,
    }
}

async fn served(tls: bool) -> Served {
    let dir = tempfile::tempdir().expect("a directory");
    let store_options = edge_store::Options::new(dir.path().join("data"));
    let store = tokio::task::spawn_blocking(move || Store::open(&store_options))
        .await
        .expect("no panic")
        .expect("a store");
    for role in [Role::Write, Role::Controller] {
        let (id, key) = new_key([role as u8; 20], [role as u8; 15]);
        let token_digest = digest(key.expose());
        let command = Command::CreateKey {
            id,
            role,
            token_digest,
            texts: Texts::default(),
        };
        store.apply(command, &Writer::EDGE).await.expect("a key");
    }
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a listener");
    let port = listener.local_addr().expect("bound").port();
    let mut options = Options::new(capabilities());
    let mut ca_file = None;
    if tls {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("generated");
        let path = dir.path().join("ca.pem");
        std::fs::write(&path, made.cert.pem()).expect("written");
        ca_file = Some(path);
        let key = PrivateKeyDer::from_pem_slice(made.signing_key.serialize_pem().as_bytes());
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.der().clone()], key.expect("a key"))
            .expect("a configuration");
        options.tls = Some(Arc::new(config));
    }
    let (stop, stopped) = watch::channel(false);
    tokio::spawn(serve(listener, store.clone(), options, stopped));
    let scheme = if tls { "https" } else { "http" };
    let address = format!("{scheme}://localhost:{port}")
        .parse()
        .expect("an address");
    Served {
        store,
        address,
        ca_file,
        _stop: stop,
        _dir: dir,
    }
}

impl Served {
    fn options(&self) -> ConnectOptions {
        let mut options = ConnectOptions::new(self.address.clone());
        options.ca_file.clone_from(&self.ca_file);
        options
    }

    fn http(&self) -> HttpEdge {
        let key = KeySource::Text(Secret::new(key(Role::Controller)));
        HttpEdge::new(self.options(), key).expect("a client")
    }
}

fn host() -> HostPattern {
    HostPattern::parse("a.example").expect("a host")
}

fn backend() -> BackendId {
    BackendId::Static(StaticId::derived(&["b"]))
}

fn put_domain() -> Command {
    Command::PutDomain {
        id: DomainId::derived(&["a.example"]),
        controller: Some("c".to_owned()),
        host: host(),
        namespace: Some("default".to_owned()),
        heir: None,
        declared: true,
        texts: Texts::default(),
    }
}

fn put_backend() -> Command {
    Command::PutBackend {
        id: backend(),
        controller: Some("c".to_owned()),
        kind: BackendKind::Static {
            address: "10.0.0.1:80".to_owned(),
        },
        service: None,
        endpoints: BTreeSet::new(),
        texts: Texts::default(),
    }
}

fn replace_edge(expected: Expected, path: &str) -> Command {
    Command::ReplaceEdge(Box::new(EdgeSpec {
        id: EdgeId::derived(&["c", "a.example"]),
        expected,
        controller: Some("c".to_owned()),
        hosts: BTreeSet::from([host()]),
        demands: EdgeDemands::default(),
        certificate: None,
        description: String::new(),
        metadata: String::new(),
        routes: vec![RouteSpec {
            id: RouteId::derived(&["c", "a.example", path]),
            place: Match::new(MatchType::Exact, path),
            modules: Modules::default(),
            backend: Some(RouteBackend {
                enabled: true,
                id: backend(),
            }),
            also_refuse: BTreeSet::new(),
            description: String::new(),
            metadata: String::new(),
            record: None,
        }],
    }))
}

fn refusal(error: EdgeError) -> Option<Refused> {
    match error {
        EdgeError::Refused(refused) => Some(refused),
        _ => None,
    }
}

/// Applies to the edge, and the same to the caller's copy under the receipt's clock.
async fn follow(
    edge: &impl EdgeControl,
    copy: &mut edge_state::state::EdgeState,
    command: Command,
) -> Timestamp {
    let receipt = edge.apply(7, command.clone()).await.expect("applied");
    let enforceable = capabilities().enforceable;
    let context = Context {
        now: receipt.now,
        role: Role::Controller,
        term: Some(7),
        enforceable: &enforceable,
        limits: &Limits::default(),
    };
    *copy = apply(copy, &command, &context)
        .expect("applied to the copy")
        .state;
    assert_eq!(copy.revision, receipt.revision, "{command:?}");
    receipt.now
}

async fn contract(edge: &impl EdgeControl) {
    assert_eq!(edge.capabilities().await, Ok(capabilities()));

    // A controller follows the edge by doing on its copy what it did to the edge.
    let before = edge.read().await.expect("read");
    let mut copy = before.state.clone();
    let mut now = before.now;
    follow(edge, &mut copy, Command::RaiseTerm { term: 7 }).await;
    for command in [
        put_domain(),
        put_backend(),
        replace_edge(Expected::Absent, "/"),
    ] {
        let at = follow(edge, &mut copy, command).await;
        assert!(at >= now, "the edge's clock");
        now = at;
    }
    let after = edge.read().await.expect("read");
    assert_eq!(after.state, copy);
    assert!(after.now >= now);

    // The same again changes nothing (R9).
    let again = edge.apply(7, put_backend()).await.expect("applied");
    assert_eq!(again.revision, copy.revision);

    // What somebody else has changed, and who has taken over (R19).
    for expected in [Expected::Absent, Expected::Generation(1)] {
        let result = edge.apply(7, replace_edge(expected, "/x")).await;
        assert!(matches!(result, Err(EdgeError::Changed(_))), "{result:?}");
    }
    let id = EdgeId::derived(&["nowhere"]);
    let gone = edge
        .apply(
            7,
            Command::DeleteEdge {
                id,
                expected: Expected::Any,
            },
        )
        .await;
    assert!(matches!(gone, Err(EdgeError::Changed(_))), "{gone:?}");
    let late = edge.apply(6, put_backend()).await;
    assert!(matches!(late, Err(EdgeError::Superseded(_))), "{late:?}");

    // What the input is at fault for, with the route that it is about (R7).
    let Command::ReplaceEdge(mut spec) = replace_edge(Expected::Any, "/x") else {
        unreachable!()
    };
    let nowhere = BackendId::Static(StaticId::derived(&["no"]));
    spec.routes[0].backend = Some(RouteBackend {
        enabled: true,
        id: nowhere,
    });
    let refused = edge
        .apply(7, Command::ReplaceEdge(spec))
        .await
        .err()
        .and_then(refusal);
    let refused = refused.expect("refused");
    assert_eq!(
        (refused.status, refused.code.as_str()),
        (400, "ERR_NGROK_6501")
    );
    assert_eq!(
        refused.route,
        Some((host(), Match::new(MatchType::Exact, "/x")))
    );

    // Keys go in and do not come out.
    let id = CertificateId::derived(&["cert"]);
    let command = Command::PutCertificate {
        id: id.clone(),
        controller: Some("c".to_owned()),
        chain_pem: "CHAIN".to_owned(),
        key_pem: Secret::new("KEY".to_owned()),
        texts: Texts::default(),
    };
    edge.apply(7, command).await.expect("applied");
    let state = edge.read().await.expect("read").state;
    assert_eq!(state.certificates[&id].key_pem.expose(), "");

    // Of two writers that expect one generation one wins.
    let generation =
        Expected::Generation(state.edges[&EdgeId::derived(&["c", "a.example"])].generation);
    let (one, two) = tokio::join!(
        edge.apply(7, replace_edge(generation, "/one")),
        edge.apply(7, replace_edge(generation, "/two")),
    );
    assert!(one.is_ok() != two.is_ok(), "{one:?} {two:?}");
    let lost = one.err().or(two.err());
    assert!(matches!(lost, Some(EdgeError::Changed(_))), "{lost:?}");
}

#[tokio::test]
async fn in_process() {
    let served = served(false).await;
    contract(&DirectEdge::new(served.store.clone(), capabilities())).await;
}

#[tokio::test]
async fn over_http() {
    let served = served(false).await;
    contract(&served.http()).await;
}

#[tokio::test]
async fn over_https() {
    let served = served(true).await;
    contract(&served.http()).await;
}

#[tokio::test]
async fn an_edge_of_another_authority_is_not_spoken_to() {
    let served = served(true).await;
    let mut options = served.options();
    options.ca_file = None;
    let key = KeySource::Text(Secret::new(key(Role::Controller)));
    let edge = HttpEdge::new(options, key).expect("a client");
    match edge.apply(7, put_backend()).await {
        Err(EdgeError::Unavailable(unavailable)) => assert!(!unavailable.may_have_applied),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_role_that_does_not_suffice_is_a_refusal_and_a_wrong_key_is_not() {
    let served = served(false).await;
    let edge_with = |key: String| {
        HttpEdge::new(served.options(), KeySource::Text(Secret::new(key))).expect("a client")
    };
    let written = edge_with(key(Role::Write)).apply(7, put_backend()).await;
    match written {
        Err(EdgeError::Refused(refused)) => assert_eq!(refused.code, "controller_key_required"),
        other => panic!("{other:?}"),
    }
    let wrong = edge_with("TEST_KEY".to_owned()).read().await;
    assert!(matches!(wrong, Err(EdgeError::Credentials(_))), "{wrong:?}");
}

#[tokio::test]
async fn a_second_controller_is_refused_by_name_until_the_first_has_gone() {
    let served = served(false).await;
    let (first, second) = (served.http(), served.http());
    first
        .apply(1, Command::RaiseTerm { term: 1 })
        .await
        .expect("the first");
    let raise = || second.apply(2, Command::RaiseTerm { term: 2 });
    match raise().await {
        Err(EdgeError::Unavailable(refused)) => {
            assert!(
                refused.message.contains("connected from 127.0.0.1:"),
                "{refused:?}"
            );
            assert!(
                !refused.may_have_applied && refused.retry_after.is_some(),
                "{refused:?}"
            );
        }
        other => panic!("{other:?}"),
    }
    first
        .apply(1, put_backend())
        .await
        .expect("the first goes on");
    drop(first);
    let taken_over = async {
        while raise().await.is_err() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(10), taken_over)
        .await
        .expect("freed");
}

#[tokio::test]
async fn every_kind_of_thing_can_be_listed_and_read() {
    let served = served(false).await;
    let direct = DirectEdge::new(served.store.clone(), capabilities());
    let policy = IpPolicyId::derived(&["p"]);
    let backend = |id: BackendId, kind: BackendKind| Command::PutBackend {
        id,
        controller: None,
        kind,
        service: None,
        endpoints: BTreeSet::new(),
        texts: Texts::default(),
    };
    let labels = BTreeMap::from([("a".to_owned(), "b".to_owned())]);
    let fixed = BackendKind::HttpResponse {
        status: 404,
        headers: BTreeMap::new(),
        body: "no".to_owned(),
    };
    for command in [
        put_backend(),
        backend(
            BackendId::TunnelGroup(TunnelGroupId::derived(&["t"])),
            BackendKind::TunnelGroup { labels },
        ),
        backend(
            BackendId::HttpResponse(HttpResponseId::derived(&["h"])),
            fixed,
        ),
        Command::CreateIpPolicy {
            id: policy.clone(),
            texts: Texts::default(),
        },
        Command::CreateIpRule {
            policy: policy.clone(),
            id: IpRuleId::derived(&["r"]),
            cidr: "10.0.0.0/8".parse().expect("a network"),
            action: IpAction::Deny,
            texts: Texts::default(),
        },
        Command::PutCertificate {
            id: CertificateId::derived(&["c"]),
            controller: None,
            chain_pem: "CHAIN".to_owned(),
            key_pem: Secret::new("KEY".to_owned()),
            texts: Texts::default(),
        },
    ] {
        direct.apply(1, command).await.expect("applied");
    }
    let key = KeySource::Text(Secret::new(key(Role::Write)));
    let client = RestClient::new(served.options(), key).expect("a client");
    let group = only::<TunnelGroup>(&client).await;
    assert_eq!(group.labels["a"], "b");
    assert_eq!(only::<HttpResponse>(&client).await.status_code, 404);
    assert_eq!(only::<StaticAddress>(&client).await.address, "10.0.0.1:80");
    let rule = only::<IpPolicyRule>(&client).await;
    assert_eq!(
        (rule.cidr.as_str(), rule.action),
        ("10.0.0.0/8", IpAction::Deny)
    );
    assert_eq!(rule.ip_policy.id, policy.as_str());
    assert_eq!(only::<IpPolicy>(&client).await.portcullis.version, 2);
    assert_eq!(
        only::<TlsCertificate>(&client).await.certificate_pem,
        "CHAIN"
    );
    let one: TunnelGroup = client.one(&group.id).await.expect("read");
    assert_eq!(one, group);
}

async fn only<T: Resource>(client: &RestClient) -> T {
    let mut all = client.all::<T>().await.expect("listed");
    assert_eq!(all.len(), 1, "{}", T::PATH);
    all.remove(0)
}

#[tokio::test]
async fn commands_for_people_page_through_everything() {
    let served = served(false).await;
    let direct = DirectEdge::new(served.store.clone(), capabilities());
    for number in 0..230 {
        let command = Command::CreateEdge {
            id: EdgeId::derived(&[&number.to_string()]),
            controller: None,
            patch: edge_state::command::EdgePatch::default(),
        };
        direct.apply(1, command).await.expect("applied");
    }
    direct.apply(1, put_domain()).await.expect("applied");
    let key = KeySource::Text(Secret::new(key(Role::Controller)));
    let client = RestClient::new(served.options(), key).expect("a client");
    let edges: Vec<HttpsEdge> = client.all().await.expect("listed");
    let ids: BTreeSet<_> = edges.iter().map(|edge| &edge.id).collect();
    assert_eq!((edges.len(), ids.len()), (230, 230));

    let domains: Vec<ReservedDomain> = client.all().await.expect("listed");
    let [domain] = domains.as_slice() else {
        panic!("{domains:?}")
    };
    let assigned = client
        .assign_domain(&domain.id, "team-a")
        .await
        .expect("assigned");
    assert_eq!(assigned.portcullis.namespace.as_deref(), Some("team-a"));
    client.release_domain(&domain.id).await.expect("released");
    let released: ReservedDomain = client.one(&domain.id).await.expect("read");
    assert_eq!(released.portcullis.namespace, None);

    let made = client.create_key("read", "ci").await.expect("made");
    assert!(made.token.is_some());
    client.delete_key(&made.id).await.expect("deleted");
    let keys: Vec<ApiKey> = client.all().await.expect("listed");
    assert!(
        keys.iter()
            .all(|key| key.id != made.id && key.token.is_none())
    );
}
