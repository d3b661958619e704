//! A small world, so that random commands meet each other: few hosts, few ids, few matches.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::{IpAddr, SocketAddr},
};

use edge_state::{
    command::{Command, EdgePatch, EdgeSpec, Expected, RecordSpec, RoutePatch, RouteSpec, Texts},
    state::{Declared, EdgeState, MutualTls, Phase, PolicyRef, Role, RouteBackend, TlsTermination},
};
use model::{
    backend::BackendKind,
    host::{Host, HostPattern},
    id::{
        BackendId, CertificateId, DomainId, EdgeId, HttpResponseId, IpPolicyId, IpRuleId, KeyId,
        RouteId, StaticId, TunnelGroupId,
    },
    module::{
        EdgeDemands, HeaderChanges, IpAction, IpRestriction, IpRules, ModuleKind, Modules, Switch,
        TlsVersion,
    },
    object::ObjectRef,
    place::{Match, MatchType},
    secret::{Digest, Secret},
    time::Span,
};

pub(crate) const CONTROLLER: &str = "portcullis";
pub(crate) const PATTERNS: [&str; 4] =
    ["a.example.com", "b.example.com", "*.example.com", "c.test"];
pub(crate) const HOSTS: [&str; 6] = [
    "a.example.com",
    "b.example.com",
    "z.example.com",
    "c.test",
    "y.z.example.com",
    "d.test",
];
pub(crate) const PATHS: [&str; 6] = ["/", "/a", "/a/b", "/ab", "/b", "/a;x"];
pub(crate) const CLIENTS: [&str; 4] = ["10.1.2.3", "10.2.0.1", "192.0.2.1", "2001:db8::1"];
pub(crate) const NETWORKS: [&str; 4] = ["10.0.0.0/8", "10.1.0.0/16", "0.0.0.0/0", "2001:db8::/32"];

pub(crate) fn hosts() -> impl Iterator<Item = Host> {
    HOSTS.iter().map(|text| Host::parse(text).expect("a host"))
}

pub(crate) fn clients() -> impl Iterator<Item = IpAddr> {
    CLIENTS.iter().map(|text| text.parse().expect("an address"))
}

/// Numbers from the test's input, as long as it lasts; then zeros.
pub(crate) struct Dice<'a>(pub(crate) std::slice::Iter<'a, u8>);

impl Dice<'_> {
    pub(crate) fn pick(&mut self, sides: usize) -> usize {
        usize::from(self.0.next().copied().unwrap_or(0)) % sides
    }

    fn flip(&mut self) -> bool {
        self.pick(2) == 1
    }

    fn maybe<T>(&mut self, make: impl FnOnce(&mut Self) -> T) -> Option<T> {
        self.flip().then(|| make(self))
    }

    fn some<T: Ord>(&mut self, most: usize, mut make: impl FnMut(&mut Self) -> T) -> BTreeSet<T> {
        let count = self.pick(most + 1);
        (0..count).map(|_| make(self)).collect()
    }

    pub(crate) fn role(&mut self) -> Role {
        match self.pick(12) {
            0 => Role::Read,
            1..=5 => Role::Write,
            _ => Role::Controller,
        }
    }

    /// Mostly none, or the present one.
    pub(crate) fn term(&mut self, state: &EdgeState) -> Option<u64> {
        match self.pick(12) {
            0 => Some(state.term + 1),
            1 => Some(state.term.saturating_sub(1)),
            2..=4 => Some(state.term),
            _ => None,
        }
    }

    fn edge(&mut self) -> EdgeId {
        EdgeId::derived(&[&self.pick(3).to_string()])
    }

    /// Mostly a route that is there.
    fn edge_and_route(&mut self, state: &EdgeState) -> (EdgeId, RouteId) {
        let there: Vec<_> = state
            .edges
            .iter()
            .flat_map(|(id, edge)| edge.routes.keys().map(|route| (id.clone(), route.clone())))
            .collect();
        match there.len() {
            0 => (self.edge(), self.route()),
            count if self.pick(8) > 0 => there[self.pick(count)].clone(),
            _ => (self.edge(), self.route()),
        }
    }

    fn route(&mut self) -> RouteId {
        RouteId::derived(&[&self.pick(6).to_string()])
    }

    fn host(&mut self) -> HostPattern {
        HostPattern::parse(PATTERNS[self.pick(PATTERNS.len())]).expect("a pattern")
    }

    /// Hosts that such a writer may have, mostly.
    fn hosts_for(&mut self, controller: bool) -> BTreeSet<HostPattern> {
        let own = if controller { [0, 2] } else { [1, 3] };
        let count = self.pick(5).min(2);
        let pick = |dice: &mut Self| match dice.pick(6) {
            0 => dice.host(),
            roll => HostPattern::parse(PATTERNS[own[roll % 2]]).expect("a pattern"),
        };
        (0..count).map(|_| pick(self)).collect()
    }

    fn place(&mut self) -> Match {
        let (match_type, path) = [
            (MatchType::ElementPrefix, "/"),
            (MatchType::ElementPrefix, "/a"),
            (MatchType::Exact, "/a"),
            (MatchType::StringPrefix, "/a"),
        ][self.pick(4)];
        Match::new(match_type, path)
    }

    fn policy(&mut self) -> IpPolicyId {
        IpPolicyId::derived(&[&self.pick(3).to_string()])
    }

    fn rule(&mut self) -> IpRuleId {
        IpRuleId::derived(&[&self.pick(4).to_string()])
    }

    fn network(&mut self) -> ipnet::IpNet {
        NETWORKS[self.pick(NETWORKS.len())]
            .parse()
            .expect("a network")
    }

    fn action(&mut self) -> IpAction {
        [IpAction::Allow, IpAction::Deny][self.pick(2)]
    }

    fn rules(&mut self) -> IpRules {
        let count = self.pick(3);
        IpRules(
            (0..count)
                .map(|_| (self.network(), self.action()))
                .collect(),
        )
    }

    fn policy_version(&mut self, state: &EdgeState) -> PolicyRef {
        let id = self.policy();
        let newest = state.ip_policies.get(&id).map_or(1, |policy| policy.newest);
        let version = if self.pick(4) == 0 { 1 } else { newest };
        PolicyRef { id, version }
    }

    fn backend(&mut self) -> BackendId {
        [
            BackendId::TunnelGroup(TunnelGroupId::derived(&["0"])),
            BackendId::TunnelGroup(TunnelGroupId::derived(&["1"])),
            BackendId::HttpResponse(HttpResponseId::derived(&["0"])),
            BackendId::Static(StaticId::derived(&["0"])),
        ][[0, 1, 0, 1, 2, 3][self.pick(6)]]
        .clone()
    }

    fn kind_for(&mut self, id: &BackendId) -> BackendKind {
        match id {
            BackendId::TunnelGroup(_) => {
                let value = self.pick(2).to_string();
                BackendKind::TunnelGroup {
                    labels: BTreeMap::from([("app".to_owned(), value)]),
                }
            }
            BackendId::HttpResponse(_) => BackendKind::HttpResponse {
                status: 200,
                headers: BTreeMap::new(),
                body: self.pick(2).to_string(),
            },
            BackendId::Static(_) => BackendKind::Static {
                address: format!("s{}.test:80", self.pick(2)),
            },
        }
    }

    fn endpoints(&mut self) -> BTreeSet<SocketAddr> {
        self.some(2, |dice| {
            SocketAddr::from(([10, 9, 9, 1], 80 + dice.pick(2) as u16))
        })
    }

    fn texts(&mut self) -> Texts {
        Texts {
            description: self.maybe(|dice| dice.pick(2).to_string()),
            metadata: None,
        }
    }

    fn controller(&mut self) -> Option<String> {
        self.maybe(|_| CONTROLLER.to_owned())
    }

    fn tls_termination(&mut self) -> TlsTermination {
        let minimum = [None, Some(TlsVersion::V1_2), Some(TlsVersion::V1_3)][self.pick(3)];
        TlsTermination {
            enabled: self.flip(),
            minimum,
        }
    }

    fn mutual_tls(&mut self) -> MutualTls {
        let authorities = self.some(2, |dice| format!("CA {}", dice.pick(2)));
        MutualTls {
            enabled: self.flip(),
            authorities,
        }
    }

    fn expected(&mut self, state: &EdgeState, edge: &EdgeId) -> Expected {
        let present = state.edges.get(edge).map(|edge| edge.generation);
        match (self.pick(12), present) {
            (0, _) => Expected::Absent,
            (1, _) => Expected::Generation(self.pick(8) as u64),
            (2..=5, Some(generation)) => Expected::Generation(generation),
            (_, _) => Expected::Any,
        }
    }

    fn modules<P>(&mut self, mut policy: impl FnMut(&mut Self) -> P) -> Modules<P> {
        let mut modules = Modules::default();
        if self.pick(3) > 0 {
            let count = 1 + self.pick(2);
            modules.ip_restriction = Some(IpRestriction {
                enabled: self.pick(4) > 0,
                policies: (0..count).map(|_| policy(self)).collect(),
            });
        }
        if self.pick(3) == 0 {
            modules.response_headers = Some(HeaderChanges {
                enabled: self.flip(),
                add: BTreeMap::from([("x-one".to_owned(), self.pick(2).to_string())]),
                remove: BTreeSet::new(),
            });
        }
        if self.pick(40) == 0 {
            modules.compression = Some(Switch {
                enabled: self.flip(),
            });
        }
        modules
    }

    fn route_backend(&mut self) -> RouteBackend {
        RouteBackend {
            enabled: self.pick(5) > 0,
            id: self.backend(),
        }
    }

    fn patch(&mut self) -> RoutePatch {
        RoutePatch {
            texts: self.texts(),
            place: (self.pick(4) == 0).then(|| self.place()),
            modules: self.modules(Self::policy),
            backend: self.maybe(Self::route_backend),
        }
    }

    fn record(&mut self) -> RecordSpec {
        let declared = |dice: &mut Self| Declared {
            generation: 1 + dice.pick(2) as u64,
            digest: Some(Digest([dice.pick(2) as u8; 32])),
        };
        RecordSpec {
            owner: ObjectRef::new("Ingress", "default", "web"),
            wanted: self.maybe(declared),
            serving: self.maybe(declared),
            has_access_modules: self.flip(),
            rests_on: BTreeSet::new(),
            phase: [
                Phase::Open,
                Phase::Held,
                Phase::Lost,
                Phase::Closed,
                Phase::Removing,
            ][self.pick(5)],
            close_after: self.maybe(|dice| Span(dice.pick(40) as u64)),
        }
    }

    fn route_spec(&mut self, state: &EdgeState, with_record: bool) -> RouteSpec {
        RouteSpec {
            id: self.route(),
            place: self.place(),
            modules: self.modules(|dice| dice.policy_version(state)),
            backend: (self.pick(4) > 0).then(|| self.route_backend()),
            also_refuse: self.some(1, |dice| dice.policy_version(state)),
            description: String::new(),
            metadata: String::new(),
            record: if with_record {
                self.maybe(Self::record)
            } else {
                None
            },
        }
    }

    fn edge_spec(&mut self, state: &EdgeState) -> EdgeSpec {
        let id = self.edge();
        let controller = self.controller();
        let routes = [1, 2, 2, 3][self.pick(4)];
        EdgeSpec {
            expected: self.expected(state, &id),
            hosts: self.hosts_for(controller.is_some()),
            demands: EdgeDemands {
                tls_minimum: self.maybe(|_| TlsVersion::V1_3),
                mutual_tls: (self.pick(8) == 0).then(|| BTreeSet::from(["CA 0".to_owned()])),
            },
            certificate: (self.pick(4) == 0).then(|| CertificateId::derived(&["0"])),
            description: String::new(),
            metadata: String::new(),
            routes: (0..routes)
                .map(|_| self.route_spec(state, controller.is_some()))
                .collect(),
            id,
            controller,
        }
    }

    fn edge_patch(&mut self) -> EdgePatch {
        EdgePatch {
            texts: self.texts(),
            hosts: self.maybe(|dice| dice.some(2, Self::host)),
            tls_termination: self.maybe(Self::tls_termination),
            mutual_tls: (self.pick(6) == 0).then(|| self.mutual_tls()),
        }
    }

    /// A command of any kind; those that fill the world come more often.
    pub(crate) fn command(&mut self, state: &EdgeState) -> Command {
        match self.pick(12) {
            0 if self.flip() => self.put_domain(),
            0 => self.put_backend(),
            1 => self.policy_command(),
            2..=4 => Command::ReplaceEdge(Box::new(self.edge_spec(state))),
            5..=7 => self.route_command(state),
            8 => self.edge_command(state),
            9 => self.policy_command(),
            10 => self.object_command(),
            _ => self.own_command(),
        }
    }

    fn put_domain(&mut self) -> Command {
        let place = self.pick(PATTERNS.len());
        Command::PutDomain {
            id: DomainId::derived(&[&(place + self.pick(8) / 7).to_string()]),
            controller: self.controller(),
            host: HostPattern::parse(PATTERNS[place]).expect("a pattern"),
            namespace: (self.pick(4) == 0).then(|| "default".to_owned()),
            heir: None,
            declared: self.flip(),
            texts: self.texts(),
        }
    }

    fn put_backend(&mut self) -> Command {
        let id = self.backend();
        Command::PutBackend {
            kind: self.kind_for(&id),
            controller: self.controller(),
            service: None,
            endpoints: if self.flip() {
                self.endpoints()
            } else {
                BTreeSet::new()
            },
            texts: self.texts(),
            id,
        }
    }

    fn policy_command(&mut self) -> Command {
        match self.pick(8) {
            0 => Command::PutIpPolicy {
                id: self.policy(),
                controller: CONTROLLER.to_owned(),
                description: String::new(),
                metadata: "default/office".to_owned(),
                rules: self.rules(),
            },
            1 => Command::CreateIpPolicy {
                id: self.policy(),
                texts: self.texts(),
            },
            2 => Command::UpdateIpPolicy {
                id: self.policy(),
                texts: self.texts(),
            },
            3 => Command::DeleteIpPolicy { id: self.policy() },
            4 => Command::UpdateIpRule {
                id: self.rule(),
                cidr: self.maybe(Self::network),
                texts: self.texts(),
            },
            5 => Command::DeleteIpRule { id: self.rule() },
            _ => Command::CreateIpRule {
                policy: self.policy(),
                id: self.rule(),
                cidr: self.network(),
                action: self.action(),
                texts: self.texts(),
            },
        }
    }

    fn edge_command(&mut self, state: &EdgeState) -> Command {
        let id = self.edge();
        let expected = self.expected(state, &id);
        match self.pick(8) {
            0 | 1 => Command::CreateEdge {
                id,
                controller: self.controller(),
                patch: self.edge_patch(),
            },
            2..=4 => Command::UpdateEdge {
                id,
                expected,
                patch: self.edge_patch(),
            },
            5 | 6 => {
                let kind = ModuleKind::ALL[self.pick(3)];
                Command::DeleteEdgeModule { id, expected, kind }
            }
            _ => Command::DeleteEdge { id, expected },
        }
    }

    fn route_command(&mut self, state: &EdgeState) -> Command {
        let (edge, id) = self.edge_and_route(state);
        let expected = self.expected(state, &edge);
        match self.pick(8) {
            0 => {
                let edge = self.edge();
                let with_record = state
                    .edges
                    .get(&edge)
                    .is_some_and(|e| e.controller.is_some());
                let expected = self.expected(state, &edge);
                let route = Box::new(self.route_spec(state, with_record));
                Command::ReplaceRoute {
                    edge,
                    expected,
                    route,
                }
            }
            1 | 2 => Command::CreateRoute {
                edge: self.edge(),
                expected: Expected::Any,
                id: self.route(),
                place: self.place(),
                patch: Box::new(self.patch()),
            },
            3 => Command::UpdateRoute {
                edge,
                expected,
                id,
                patch: Box::new(self.patch()),
            },
            4 => {
                let kind = ModuleKind::ALL[self.pick(ModuleKind::ALL.len())];
                Command::DeleteRouteModule {
                    edge,
                    expected,
                    id,
                    kind,
                }
            }
            5 => Command::DeleteRouteBackend { edge, expected, id },
            6 => Command::SetRecord {
                edge,
                expected,
                id,
                record: Box::new(self.record()),
            },
            _ => Command::DeleteRoute { edge, expected, id },
        }
    }

    fn object_command(&mut self) -> Command {
        let backend = self.backend();
        let certificate = CertificateId::derived(&[&self.pick(2).to_string()]);
        let key = KeyId::derived(&[&self.pick(2).to_string()]);
        match self.pick(11) {
            0 => Command::UpdateBackend {
                kind: self.maybe(|dice| dice.kind_for(&backend)),
                id: backend,
                texts: self.texts(),
            },
            1 => Command::SetEndpoints {
                endpoints: BTreeMap::from([(backend, self.endpoints())]),
            },
            2 => Command::DeleteBackend { id: backend },
            3 | 4 => Command::PutCertificate {
                id: certificate,
                controller: self.controller(),
                chain_pem: "CHAIN".to_owned(),
                key_pem: Secret::new(format!("KEY {}", self.pick(8) / 7)),
                texts: self.texts(),
            },
            5 => Command::UpdateCertificate {
                id: certificate,
                texts: self.texts(),
            },
            6 => Command::DeleteCertificate { id: certificate },
            7 => Command::DeleteDomain {
                id: DomainId::derived(&[&self.pick(4).to_string()]),
            },
            8 => Command::CreateKey {
                id: key,
                role: self.role(),
                token_digest: Digest([self.pick(3) as u8; 32]),
                texts: self.texts(),
            },
            9 => Command::UpdateKey {
                id: key,
                texts: self.texts(),
            },
            _ => Command::DeleteKey { id: key },
        }
    }

    fn own_command(&mut self) -> Command {
        match self.pick(3) {
            0 => Command::RaiseTerm {
                term: self.pick(3) as u64,
            },
            1 => Command::CloseRoutes {
                routes: self.some(2, Self::route),
            },
            _ => Command::CloseOverdue,
        }
    }
}
