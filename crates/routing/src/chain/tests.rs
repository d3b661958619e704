//! What compiles to a chain, what refuses to, and whom a chain lets pass.

use std::collections::BTreeMap;

use model::module::{
    CircuitBreaker, IpAction, LoginSession, Oauth, OauthProvider, Oidc, Saml, Switch,
    TrafficPolicy, UserAgentFilter, WebhookVerification,
};
use model::secret::Secret;

use super::*;

fn rules(entries: &[(&str, IpAction)]) -> IpRules {
    IpRules(
        entries
            .iter()
            .map(|(net, action)| (net.parse().expect("a network"), *action))
            .collect(),
    )
}

fn restricted(policies: Vec<IpRules>, enabled: bool) -> Modules<IpRules> {
    Modules {
        ip_restriction: Some(IpRestriction { enabled, policies }),
        ..Modules::default()
    }
}

fn verdict(modules: &Modules<IpRules>, also_refuse: &[IpRules], peer: &str) -> Result<(), Refusal> {
    let chain = Chain::compile(modules, also_refuse).expect("enforced");
    chain.judge(&Facts::new(
        peer.parse().expect("an address"),
        "GET",
        "a.b",
        "/",
    ))
}

/// Every module that is not enforced, switched on or off.
fn unenforced(enabled: bool) -> Vec<(ModuleKind, Modules<IpRules>)> {
    let none = Modules::default;
    let session = LoginSession::default;
    let user_agent = UserAgentFilter {
        enabled,
        allow: Vec::new(),
        deny: Vec::new(),
    };
    let webhook = WebhookVerification {
        enabled,
        provider: "github".to_owned(),
        secret: None,
    };
    let oauth = Oauth {
        enabled,
        session: session(),
        auth_check_interval: 0,
        provider: OauthProvider::Google,
        application: None,
        scopes: BTreeSet::new(),
        email_addresses: BTreeSet::new(),
        email_domains: BTreeSet::new(),
        teams: BTreeSet::new(),
        organizations: BTreeSet::new(),
    };
    let oidc = Oidc {
        enabled,
        session: session(),
        issuer: String::new(),
        client_id: String::new(),
        client_secret: Secret::new(String::new()),
        scopes: BTreeSet::new(),
    };
    let saml = Saml {
        enabled,
        session: session(),
        idp_metadata: String::new(),
        force_authn: false,
        allow_idp_initiated: false,
        authorized_groups: BTreeSet::new(),
        nameid_format: String::new(),
    };
    let breaker = CircuitBreaker {
        enabled,
        tripped_duration: 1,
        rolling_window: 1,
        num_buckets: 1,
        volume_threshold: 1,
        error_threshold_millionths: 1,
    };
    let policy = TrafficPolicy {
        enabled,
        document: String::new(),
    };
    vec![
        (
            ModuleKind::UserAgentFilter,
            Modules {
                user_agent_filter: Some(user_agent),
                ..none()
            },
        ),
        (
            ModuleKind::WebhookVerification,
            Modules {
                webhook_verification: Some(webhook),
                ..none()
            },
        ),
        (
            ModuleKind::Oauth,
            Modules {
                oauth: Some(oauth),
                ..none()
            },
        ),
        (
            ModuleKind::Oidc,
            Modules {
                oidc: Some(oidc),
                ..none()
            },
        ),
        (
            ModuleKind::Saml,
            Modules {
                saml: Some(saml),
                ..none()
            },
        ),
        (
            ModuleKind::TrafficPolicy,
            Modules {
                traffic_policy: Some(policy),
                ..none()
            },
        ),
        (
            ModuleKind::CircuitBreaker,
            Modules {
                circuit_breaker: Some(breaker),
                ..none()
            },
        ),
        (
            ModuleKind::WebsocketTcpConverter,
            Modules {
                websocket_tcp_converter: Some(Switch { enabled }),
                ..none()
            },
        ),
        (
            ModuleKind::Compression,
            Modules {
                compression: Some(Switch { enabled }),
                ..none()
            },
        ),
    ]
}

#[test]
fn what_is_not_enforced_never_becomes_a_chain() {
    for (kind, modules) in unenforced(true) {
        assert_eq!(
            Chain::compile(&modules, &[]).err(),
            Some(ChainProblem::NotEnforced(kind)),
            "{}",
            kind.name()
        );
        assert!(!enforced().contains(&kind));
    }
    for (kind, modules) in unenforced(false) {
        assert!(
            Chain::compile(&modules, &[]).is_ok(),
            "{} is off",
            kind.name()
        );
    }
    let refused: BTreeSet<_> = unenforced(true).into_iter().map(|(kind, _)| kind).collect();
    let edge_wide = BTreeSet::from([ModuleKind::TlsTermination, ModuleKind::MutualTls]);
    for kind in ModuleKind::ALL {
        let decided =
            enforced().contains(&kind) || refused.contains(&kind) || edge_wide.contains(&kind);
        assert!(decided, "{} is neither enforced nor refused", kind.name());
    }
}

#[test]
fn the_order_names_every_stage_once() {
    let stages: BTreeSet<Stage> = ORDER.into_iter().collect();
    assert_eq!(stages.len(), ORDER.len());
    assert!(
        ModuleKind::ALL
            .into_iter()
            .filter_map(stage)
            .all(|stage| stages.contains(&stage))
    );
    assert!(
        enforced().into_iter().all(|kind| stage(kind).is_some()),
        "what is enforced has its place"
    );
}

#[test]
fn an_address_passes_the_restriction_and_each_further_policy() {
    use IpAction::{Allow, Deny};
    let modules = restricted(vec![rules(&[("10.0.0.0/8", Allow)])], true);
    assert_eq!(verdict(&modules, &[], "10.1.2.3"), Ok(()));
    assert_eq!(
        verdict(&modules, &[], "::ffff:10.1.2.3"),
        Ok(()),
        "mapped addresses are IPv4"
    );
    assert_eq!(
        verdict(&modules, &[], "11.1.2.3"),
        Err(Refusal::AddressRefused)
    );
    let newest = [rules(&[("0.0.0.0/0", Allow), ("10.1.0.0/16", Deny)])];
    assert_eq!(
        verdict(&modules, &newest, "10.1.2.3"),
        Err(Refusal::AddressRefused)
    );
    assert_eq!(verdict(&modules, &newest, "10.2.2.3"), Ok(()));
    assert_eq!(
        verdict(&modules, &newest, "11.2.2.3"),
        Err(Refusal::AddressRefused),
        "never widened"
    );
    assert_eq!(
        verdict(&Modules::default(), &newest, "10.1.2.3"),
        Err(Refusal::AddressRefused)
    );
    assert_eq!(verdict(&Modules::default(), &newest, "12.1.2.3"), Ok(()));
    let apart = [
        rules(&[("10.0.0.0/8", Allow)]),
        rules(&[("11.0.0.0/8", Allow)]),
    ];
    assert_eq!(
        verdict(&Modules::default(), &apart, "10.1.2.3"),
        Err(Refusal::AddressRefused),
        "each alone lets pass"
    );
}

#[test]
fn a_restriction_without_policies_refuses_everybody_and_one_switched_off_nobody() {
    assert_eq!(
        verdict(&restricted(Vec::new(), true), &[], "10.1.2.3"),
        Err(Refusal::AddressRefused)
    );
    assert_eq!(
        verdict(&restricted(vec![IpRules::default()], true), &[], "10.1.2.3"),
        Err(Refusal::AddressRefused)
    );
    assert_eq!(
        verdict(&restricted(Vec::new(), false), &[], "10.1.2.3"),
        Ok(())
    );
}

#[test]
fn header_changes_are_compiled_or_the_route_refuses() {
    let add = |name: &str, enabled| HeaderChanges {
        enabled,
        add: BTreeMap::from([(name.to_owned(), "v".to_owned())]),
        remove: BTreeSet::new(),
    };
    let modules = Modules {
        request_headers: Some(add("x-a", true)),
        response_headers: Some(add("x-b", true)),
        ..Modules::default()
    };
    let chain = Chain::compile(&modules, &[]).expect("allowed");
    let names = |edits: Option<&HeaderEdits>| {
        edits.map(|edits| {
            edits
                .added()
                .map(|(name, _)| name.to_owned())
                .collect::<Vec<_>>()
        })
    };
    assert_eq!(names(chain.request_headers()), Some(vec!["x-a".to_owned()]));
    assert_eq!(
        names(chain.response_headers()),
        Some(vec!["x-b".to_owned()])
    );
    assert!(!chain.method_decides());

    let forged = Modules {
        request_headers: Some(add("x-forwarded-for", true)),
        ..Modules::default()
    };
    let problem = HeaderProblem::Protected("x-forwarded-for".to_owned());
    assert_eq!(
        Chain::compile(&forged, &[]).err(),
        Some(ChainProblem::Headers {
            kind: ModuleKind::RequestHeaders,
            problem
        })
    );
    let off = Modules {
        request_headers: Some(add("x-forwarded-for", false)),
        ..Modules::default()
    };
    assert!(
        Chain::compile(&off, &[])
            .expect("off")
            .request_headers()
            .is_none()
    );
}
