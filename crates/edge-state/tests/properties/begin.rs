//! How every story begins.

use std::collections::{BTreeMap, BTreeSet};

use edge_state::{
    apply::Machine,
    command::{Command, Context, Limits, Texts},
    state::{EdgeState, Role},
};
use model::{
    backend::BackendKind,
    host::HostPattern,
    id::{BackendId, DomainId, IpPolicyId, TunnelGroupId},
    module::{IpAction, IpRules, ModuleKind},
    time::Timestamp,
};

use crate::universe::{CONTROLLER, NETWORKS, PATTERNS};

/// The world at the beginning of a story: hosts of users and of the controller, something to
/// refer to, no edge.
pub(crate) fn begin() -> EdgeState {
    let every: BTreeSet<_> = ModuleKind::ALL.into_iter().collect();
    let limits = Limits::default();
    let mut machine = Machine::default();
    let owned = [0, 2].map(|place| Command::PutDomain {
        id: DomainId::derived(&[&place.to_string()]),
        controller: Some(CONTROLLER.to_owned()),
        host: HostPattern::parse(PATTERNS[place]).expect("a pattern"),
        namespace: Some("default".to_owned()),
        heir: None,
        declared: true,
        texts: Texts::default(),
    });
    let free = [1, 3].map(|place| Command::PutDomain {
        id: DomainId::derived(&[&place.to_string()]),
        controller: None,
        host: HostPattern::parse(PATTERNS[place]).expect("a pattern"),
        namespace: None,
        heir: None,
        declared: true,
        texts: Texts::default(),
    });
    let backends = [(0, Some(CONTROLLER.to_owned())), (1, None)].map(|(number, controller)| {
        let id = BackendId::TunnelGroup(TunnelGroupId::derived(&[&number.to_string()]));
        let labels = BTreeMap::from([("app".to_owned(), number.to_string())]);
        Command::PutBackend {
            id,
            controller,
            kind: BackendKind::TunnelGroup { labels },
            service: None,
            endpoints: BTreeSet::new(),
            texts: Texts::default(),
        }
    });
    let allow = |text: &str| (text.parse().expect("a network"), IpAction::Allow);
    let policies = [
        Command::PutIpPolicy {
            id: IpPolicyId::derived(&["0"]),
            controller: CONTROLLER.to_owned(),
            description: String::new(),
            metadata: String::new(),
            rules: IpRules(BTreeMap::from([allow(NETWORKS[0])])),
        },
        Command::CreateIpPolicy {
            id: IpPolicyId::derived(&["1"]),
            texts: Texts::default(),
        },
    ];
    for command in free
        .into_iter()
        .chain(owned)
        .chain(backends)
        .chain(policies)
    {
        let context = Context {
            now: Timestamp(1),
            role: Role::Controller,
            term: None,
            enforceable: &every,
            limits: &limits,
        };
        machine
            .apply(&command, &context)
            .expect("it is a fine world");
    }
    machine.into_state()
}
