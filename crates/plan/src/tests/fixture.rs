//! Declarations and states to plan between, in few words.

use std::collections::{BTreeMap, BTreeSet};

use edge_state::{
    apply::Machine,
    capabilities::{Atomicity, Capabilities},
    command::{Command, Context, EdgeSpec, Expected, Limits, RecordSpec, RouteSpec, Texts},
    state::{Declared, EdgeState, Phase, PolicyRef, Role, RouteBackend},
};
use model::{
    backend::{BackendKind, DeclaredBackend, ServicePort},
    complete_set::CompleteSet,
    declaration::{Declaration, DeclaredHost, DeclaredPolicy, DeclaredRoute, Outcome, PolicyName},
    host::HostPattern,
    id::{DomainId, EdgeId},
    module::{EdgeDemands, HeaderChanges, IpAction, IpRestriction, IpRules, ModuleKind, Modules},
    object::{ObjectName, ObjectRef},
    place::{Match, MatchType},
    secret::Digest,
    time::{Span, Timestamp},
};
use sha2::{Digest as _, Sha256};

use crate::{
    inputs::{Inputs, Options, Rejections},
    world::{policy_id, route_id},
};

pub(super) const CONTROLLER: &str = "ours";
/// Long after every instant that a state of the tests holds.
pub(super) const NOW: Timestamp = Timestamp(1_000_000_000);

pub(super) fn host(text: &str) -> HostPattern {
    HostPattern::parse(text).expect("a host of the tests")
}

pub(super) fn prefix(path: &str) -> Match {
    Match::new(MatchType::ElementPrefix, path)
}

pub(super) fn exact(path: &str) -> Match {
    Match::new(MatchType::Exact, path)
}

pub(super) fn rules(allowed: &[&str]) -> IpRules {
    let net = |text: &&str| {
        (
            text.parse().expect("a network of the tests"),
            IpAction::Allow,
        )
    };
    IpRules(allowed.iter().map(net).collect())
}

pub(super) fn digest(text: &str) -> Digest {
    Digest(Sha256::digest(text).into())
}

pub(super) fn service(name: &str) -> ServicePort {
    ServicePort {
        service: ObjectName::new("ns", name),
        uid: format!("uid-{name}"),
        port: 80,
        port_name: String::new(),
    }
}

pub(super) fn ingress(name: &str) -> ObjectRef {
    ObjectRef::new("Ingress", "ns", name)
}

pub(super) fn mutual_tls() -> EdgeDemands {
    EdgeDemands {
        tls_minimum: None,
        mutual_tls: Some(BTreeSet::from([String::from("an authority")])),
    }
}

/// What a route's declaration says, in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Say {
    /// Nothing.
    Absent,
    /// Something that cannot be applied; at the edge: a closed route.
    Closed,
    /// Set A with backend x: only what the shared policy lets in.
    A,
    /// Set B with backend y: another policy, and a header.
    B,
    /// No module with backend x.
    Plain,
}

impl Say {
    pub(super) const ALL: [Self; 5] = [Self::Absent, Self::Closed, Self::A, Self::B, Self::Plain];

    pub(super) const fn backend(self) -> Option<&'static str> {
        match self {
            Self::Absent | Self::Closed => None,
            Self::A | Self::Plain => Some("x"),
            Self::B => Some("y"),
        }
    }

    pub(super) fn modules(self) -> Modules<PolicyName> {
        let policy = |name| PolicyName::Declared(ObjectName::new("ns", name));
        let restriction = |name| {
            Some(IpRestriction {
                enabled: true,
                policies: vec![policy(name)],
            })
        };
        match self {
            Self::Absent | Self::Closed | Self::Plain => Modules::default(),
            Self::A => Modules {
                ip_restriction: restriction("shared"),
                ..Modules::default()
            },
            Self::B => Modules {
                ip_restriction: restriction("other"),
                request_headers: Some(HeaderChanges {
                    enabled: true,
                    add: BTreeMap::from([(String::from("x-set"), String::from("b"))]),
                    remove: BTreeSet::new(),
                }),
                ..Modules::default()
            },
        }
    }

    pub(super) fn rests_on(self) -> BTreeSet<ObjectRef> {
        match self {
            Self::Absent | Self::Closed | Self::Plain => BTreeSet::new(),
            Self::A => BTreeSet::from([ObjectRef::new("IPPolicy", "ns", "shared")]),
            Self::B => BTreeSet::from([ObjectRef::new("IPPolicy", "ns", "other")]),
        }
    }
}

/// The policies: the shared one narrow or wide.
pub(super) fn policies(wide: bool) -> BTreeMap<ObjectName, DeclaredPolicy> {
    let shared = if wide {
        rules(&["10.0.0.0/8", "192.0.2.0/24"])
    } else {
        rules(&["10.0.0.0/8"])
    };
    [("shared", shared), ("other", rules(&["198.51.100.0/24"]))]
        .into_iter()
        .map(|(name, rules)| {
            (
                ObjectName::new("ns", name),
                DeclaredPolicy {
                    rules,
                    description: String::new(),
                },
            )
        })
        .collect()
}

/// One declared route.
pub(super) fn declared_route(
    place: &Match,
    say: Say,
    demands: &EdgeDemands,
    wide: bool,
) -> DeclaredRoute {
    let outcome = match say.backend() {
        Some(backend) => Outcome::Complete(CompleteSet {
            demands: demands.clone(),
            modules: say.modules(),
            backend: service(backend).backend_id(),
        }),
        None => Outcome::Invalid {
            missing: BTreeSet::new(),
        },
    };
    DeclaredRoute {
        place: place.clone(),
        owner: ingress("one"),
        outcome,
        digest: Some(digest(&format!("{say:?} {demands:?} {wide}"))),
        rests_on: say.rests_on(),
        has_access_modules: matches!(say, Say::A | Say::B),
        modules: Vec::new(),
        backend: say.backend().map(|name| service(name).to_string()),
        reasons: Vec::new(),
    }
}

/// A declaration: what is said of each route of each host.
pub(super) fn declaration(
    says: &[(&HostPattern, &Match, Say)],
    demands: &BTreeMap<HostPattern, EdgeDemands>,
    wide: bool,
) -> Declaration {
    let mut declared = Declaration {
        policies: policies(wide),
        ..Declaration::default()
    };
    for name in ["x", "y"] {
        let backend = DeclaredBackend {
            service: service(name),
            external: None,
            endpoints: BTreeSet::new(),
        };
        declared
            .backends
            .insert(service(name).backend_id(), backend);
    }
    for (name, place, say) in says {
        if *say == Say::Absent {
            continue;
        }
        let demanded = demands.get(name).cloned().unwrap_or_default();
        let route = declared_route(place, *say, &demanded, wide);
        let entry = declared
            .hosts
            .entry((*name).clone())
            .or_insert_with(|| DeclaredHost {
                namespace: String::from("ns"),
                heir: None,
                demands: Some(demanded),
                certificate: None,
                keep_certificate: false,
                routes: BTreeMap::new(),
            });
        entry.routes.insert((*place).clone(), route);
    }
    declared
}

/// Every module that the tests use.
pub(super) fn capabilities(atomicity: Atomicity) -> Capabilities {
    let enforceable = [
        ModuleKind::IpRestriction,
        ModuleKind::RequestHeaders,
        ModuleKind::MutualTls,
        ModuleKind::TlsTermination,
    ];
    Capabilities {
        version: String::from("test"),
        atomicity,
        enforceable: enforceable.into(),
    }
}

/// An edge to try commands on.
pub(super) fn apply(
    machine: &mut Machine,
    command: &Command,
    now: Timestamp,
) -> Result<bool, String> {
    let enforceable = capabilities(Atomicity::Replace).enforceable;
    let limits = Limits::default();
    let context = Context {
        now,
        role: Role::Controller,
        term: None,
        enforceable: &enforceable,
        limits: &limits,
    };
    machine
        .apply(command, &context)
        .map_err(|refused| format!("{refused:?}"))
}

/// A state in which each route is as said, made without the planner.
pub(super) fn state(
    says: &[(&HostPattern, &Match, Say)],
    demands: &BTreeMap<HostPattern, EdgeDemands>,
) -> EdgeState {
    let mut machine = Machine::new(EdgeState::default());
    let mut run = |command: Command| {
        apply(&mut machine, &command, Timestamp(0)).expect("a start state is valid");
    };
    for (name, policy) in policies(false) {
        run(Command::PutIpPolicy {
            id: policy_id(CONTROLLER, &name.to_string(), &policy.rules),
            controller: CONTROLLER.to_owned(),
            description: String::new(),
            metadata: name.to_string(),
            rules: policy.rules,
        });
    }
    for name in ["x", "y"] {
        run(Command::PutBackend {
            id: service(name).backend_id(),
            controller: Some(CONTROLLER.to_owned()),
            kind: BackendKind::TunnelGroup {
                labels: service(name).labels(),
            },
            service: Some(service(name)),
            endpoints: BTreeSet::new(),
            texts: Texts::default(),
        });
    }
    let hosts: BTreeSet<&HostPattern> = says
        .iter()
        .filter(|(_, _, say)| *say != Say::Absent)
        .map(|(host, _, _)| *host)
        .collect();
    for name in hosts {
        run(Command::PutDomain {
            id: DomainId::derived(&[CONTROLLER, name.as_str()]),
            controller: Some(CONTROLLER.to_owned()),
            host: name.clone(),
            namespace: Some(String::from("ns")),
            heir: None,
            declared: true,
            texts: Texts::default(),
        });
        let id = EdgeId::derived(&[CONTROLLER, name.as_str()]);
        let demanded = demands.get(name).cloned().unwrap_or_default();
        let routes = says
            .iter()
            .filter(|(host, _, say)| *host == name && *say != Say::Absent)
            .map(|(_, place, say)| route_spec(&id, place, *say, &demanded))
            .collect();
        run(Command::ReplaceEdge(Box::new(EdgeSpec {
            id,
            expected: Expected::Absent,
            controller: Some(CONTROLLER.to_owned()),
            hosts: BTreeSet::from([name.clone()]),
            demands: demanded,
            certificate: None,
            description: String::new(),
            metadata: String::new(),
            routes,
        })));
    }
    machine.into_state()
}

fn route_spec(edge: &EdgeId, place: &Match, say: Say, demands: &EdgeDemands) -> RouteSpec {
    let known = policies(false);
    let modules = say.modules().with_policies(|name| match name {
        PolicyName::Declared(name) => Ok::<_, std::convert::Infallible>(PolicyRef {
            id: policy_id(CONTROLLER, &name.to_string(), &known[&name].rules),
            version: 1,
        }),
        PolicyName::AtEdge(id) => Ok(PolicyRef { id, version: 1 }),
    });
    let declared = declared_route(place, say, demands, false);
    let says = Declared {
        generation: 1,
        digest: declared.digest,
    };
    let open = say.backend().is_some();
    RouteSpec {
        id: route_id(edge, place),
        place: place.clone(),
        modules: modules.expect("cannot fail"),
        backend: say.backend().map(|name| RouteBackend {
            enabled: true,
            id: service(name).backend_id(),
        }),
        also_refuse: BTreeSet::new(),
        description: String::new(),
        metadata: String::new(),
        record: Some(RecordSpec {
            owner: declared.owner,
            serving: open.then(|| says.clone()),
            wanted: Some(says),
            has_access_modules: declared.has_access_modules || *demands != EdgeDemands::default(),
            rests_on: declared.rests_on,
            phase: if open { Phase::Open } else { Phase::Closed },
            close_after: None,
        }),
    }
}

/// The options of the tests: holds without limit, everything else far apart.
pub(super) fn options() -> Options {
    Options {
        host_release: Span::from_secs(3600),
        ..Options::default()
    }
}

/// Inputs that live as long as a test.
pub(super) struct Given {
    pub(super) options: Options,
    pub(super) capabilities: Capabilities,
    pub(super) rejections: Rejections,
}

impl Given {
    pub(super) fn new(atomicity: Atomicity) -> Self {
        Self {
            options: options(),
            capabilities: capabilities(atomicity),
            rejections: Rejections::default(),
        }
    }

    pub(super) fn inputs<'a>(
        &'a self,
        actual: &'a EdgeState,
        declared: &'a Declaration,
        now: Timestamp,
    ) -> Inputs<'a> {
        Inputs {
            actual,
            declared,
            now,
            options: &self.options,
            capabilities: &self.capabilities,
            rejections: &self.rejections,
            controller: CONTROLLER,
            only_close: false,
        }
    }
}
