//! A whole edge for a test: a store in a directory of its own, and the data plane on free ports.

#![allow(
    dead_code,
    unreachable_pub,
    reason = "each test file uses its part of it"
)]

use std::{
    collections::{BTreeMap, BTreeSet},
    io::Read,
    net::{IpAddr, SocketAddr, TcpListener, TcpStream},
    num::NonZeroUsize,
    sync::Arc,
    time::Duration,
};

use edge_proxy::{Dial, Options, Proxy, Running};
use edge_state::{
    command::{Command, EdgeSpec, Expected, RouteSpec, Texts},
    state::{PolicyRef, RouteBackend},
};
use edge_store::{Store, Writer};
use model::{
    backend::BackendKind,
    host::HostPattern,
    id::{
        BackendId, CertificateId, DomainId, EdgeId, IpPolicyId, RouteId, StaticId, TunnelGroupId,
    },
    module::{EdgeDemands, HeaderChanges, IpAction, IpRestriction, IpRules, Modules, TlsVersion},
    place::{Match, MatchType},
};
use tempfile::TempDir;
use testkit::client::Client;
use tokio::runtime::Runtime;

/// The controller that owns everything here.
const CONTROLLER: &str = "test";

/// An edge that serves.
pub struct Edge {
    pub store: Store,
    pub running: Running,
    pub runtime: Runtime,
    _dir: TempDir,
}

/// A route to be declared.
pub struct RouteDecl {
    place: Match,
    backend: Option<BackendId>,
    modules: Modules<PolicyRef>,
}

/// An edge to be declared.
pub struct HostDecl {
    host: HostPattern,
    demands: EdgeDemands,
    routes: Vec<RouteDecl>,
}

impl Edge {
    pub fn start() -> Self {
        Self::start_with(|_| {})
    }

    /// Starts one with other options than the tests' own.
    pub fn start_with(change: impl FnOnce(&mut Options)) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let data_dir = dir.path().join("data");
        let store = Store::open(&edge_store::Options::new(data_dir.clone())).expect("a store");
        let mut options = Options::new(data_dir);
        options.workers = NonZeroUsize::new(2);
        options.dial = Dial {
            allow: vec!["127.0.0.0/8".parse().expect("a network")],
            own: Vec::new(),
        };
        options.drain_timeout = Duration::from_secs(1);
        change(&mut options);
        let running = Proxy::start(&store, options).expect("the edge starts");
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        Self {
            store,
            running,
            runtime,
            _dir: dir,
        }
    }

    pub fn apply(&self, command: Command) {
        self.runtime
            .block_on(self.store.apply(command, &Writer::EDGE))
            .expect("the command is applied");
    }

    pub fn client(&self) -> Client {
        let pem = std::fs::read(self.running.authority_certificate())
            .expect("the authority's certificate");
        Client::new(self.running.https, &pem)
    }

    /// A backend of these endpoints.
    pub fn backend(&self, name: &str, endpoints: &[SocketAddr]) -> BackendId {
        let id = BackendId::TunnelGroup(TunnelGroupId::derived(&[name]));
        let kind = BackendKind::TunnelGroup {
            labels: BTreeMap::from([(String::from("name"), name.to_owned())]),
        };
        self.put_backend(id.clone(), kind, endpoints);
        id
    }

    pub fn static_backend(&self, address: &str) -> BackendId {
        let id = BackendId::Static(StaticId::derived(&[address]));
        self.put_backend(
            id.clone(),
            BackendKind::Static {
                address: address.to_owned(),
            },
            &[],
        );
        id
    }

    pub fn put_backend(&self, id: BackendId, kind: BackendKind, endpoints: &[SocketAddr]) {
        self.apply(Command::PutBackend {
            id,
            controller: Some(CONTROLLER.to_owned()),
            kind,
            service: None,
            endpoints: endpoints.iter().copied().collect(),
            texts: Texts::default(),
        });
    }

    pub fn set_endpoints(&self, id: &BackendId, endpoints: &[SocketAddr]) {
        self.apply(Command::SetEndpoints {
            endpoints: BTreeMap::from([(id.clone(), endpoints.iter().copied().collect())]),
        });
    }

    /// An IP policy that lets these networks in.
    pub fn policy(&self, allow: &[&str]) -> PolicyRef {
        let rules: BTreeMap<_, _> = allow
            .iter()
            .map(|net| (net.parse().expect("a network"), IpAction::Allow))
            .collect();
        let id = IpPolicyId::derived(allow);
        self.apply(Command::PutIpPolicy {
            id: id.clone(),
            controller: CONTROLLER.to_owned(),
            description: String::new(),
            metadata: String::new(),
            rules: IpRules(rules),
        });
        PolicyRef { id, version: 1 }
    }

    /// Declares an edge, or replaces it.
    pub fn declare(&self, edge: HostDecl) {
        let id = EdgeId::derived(&[CONTROLLER, edge.host.as_str()]);
        self.apply(Command::PutDomain {
            id: DomainId::derived(&[edge.host.as_str()]),
            controller: Some(CONTROLLER.to_owned()),
            host: edge.host.clone(),
            namespace: None,
            heir: None,
            declared: true,
            texts: Texts::default(),
        });
        let routes = edge.routes.into_iter().map(|route| RouteSpec {
            id: RouteId::derived(&[id.as_str(), &route.place.to_string()]),
            place: route.place,
            modules: route.modules,
            backend: route.backend.map(|id| RouteBackend { enabled: true, id }),
            also_refuse: BTreeSet::new(),
            description: String::new(),
            metadata: String::new(),
            record: None,
        });
        self.apply(Command::ReplaceEdge(Box::new(EdgeSpec {
            expected: Expected::Any,
            controller: Some(CONTROLLER.to_owned()),
            hosts: BTreeSet::from([edge.host]),
            demands: edge.demands,
            certificate: None,
            description: String::new(),
            metadata: String::new(),
            routes: routes.collect(),
            id,
        })));
    }

    /// Replaces the declared edge by the same with this certificate.
    pub fn show_certificate(&self, host: &str, certificate: &CertificateId) {
        let id = EdgeId::derived(&[CONTROLLER, host]);
        let published = self.store.current();
        let edge = published.state.edges.get(&id).expect("it is declared");
        let routes = edge.routes.iter().map(|(id, route)| RouteSpec {
            id: id.clone(),
            place: route.place.clone(),
            modules: route.modules.clone(),
            backend: route.backend.clone(),
            also_refuse: route.also_refuse.clone(),
            description: String::new(),
            metadata: String::new(),
            record: None,
        });
        self.apply(Command::ReplaceEdge(Box::new(EdgeSpec {
            expected: Expected::Any,
            controller: Some(CONTROLLER.to_owned()),
            hosts: edge.hosts.clone(),
            demands: edge.demands(),
            certificate: Some(certificate.clone()),
            description: String::new(),
            metadata: String::new(),
            routes: routes.collect(),
            id,
        })));
    }

    pub fn undeclare(&self, host: &str) {
        self.apply(Command::DeleteEdge {
            id: EdgeId::derived(&[CONTROLLER, host]),
            expected: Expected::Any,
        });
    }
}

pub fn host(host: &str) -> HostDecl {
    HostDecl {
        host: HostPattern::parse(host).expect("a host"),
        demands: EdgeDemands::default(),
        routes: Vec::new(),
    }
}

impl HostDecl {
    pub fn route(mut self, route: RouteDecl) -> Self {
        self.routes.push(route);
        self
    }

    pub fn tls_minimum(mut self, version: TlsVersion) -> Self {
        self.demands.tls_minimum = Some(version);
        self
    }
}

pub fn prefix(path: &str) -> RouteDecl {
    RouteDecl {
        place: Match::new(MatchType::ElementPrefix, path),
        backend: None,
        modules: Modules::default(),
    }
}

pub fn exact(path: &str) -> RouteDecl {
    RouteDecl {
        place: Match::new(MatchType::Exact, path),
        ..prefix("/")
    }
}

impl RouteDecl {
    pub fn to(mut self, backend: &BackendId) -> Self {
        self.backend = Some(backend.clone());
        self
    }

    pub fn only_from(mut self, policy: &PolicyRef) -> Self {
        self.modules.ip_restriction = Some(IpRestriction {
            enabled: true,
            policies: vec![policy.clone()],
        });
        self
    }

    pub fn request_headers(mut self, add: &[(&str, &str)], remove: &[&str]) -> Self {
        self.modules.request_headers = Some(changes(add, remove));
        self
    }

    pub fn response_headers(mut self, add: &[(&str, &str)], remove: &[&str]) -> Self {
        self.modules.response_headers = Some(changes(add, remove));
        self
    }
}

fn changes(add: &[(&str, &str)], remove: &[&str]) -> HeaderChanges {
    HeaderChanges {
        enabled: true,
        add: add
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect(),
        remove: remove.iter().map(|name| (*name).to_owned()).collect(),
    }
}

/// Another address of this machine.
pub fn address(last: u8) -> IpAddr {
    IpAddr::from([127, 0, 0, last])
}

/// A backend that does this with each connection, once the head of a request is read.
pub fn scripted(script: impl Fn(TcpStream, String) + Send + Sync + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("bound");
    let script = Arc::new(script);
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let script = Arc::clone(&script);
            std::thread::spawn(move || {
                let head = read_head(&mut stream);
                script(stream, head);
            });
        }
    });
    address
}

/// Reads up to the empty line and nothing behind it; less where the connection ends.
pub fn read_head(stream: &mut impl Read) -> String {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).unwrap_or(0) == 1 {
        head.push(byte[0]);
    }
    String::from_utf8_lossy(&head).into_owned()
}
