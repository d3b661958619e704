//! The state in the words of the wire. Nothing secret has a place in any of these types.

use edge_api::{
    api_key::ApiKey,
    backend::{BackendExtras, HttpResponse, StaticAddress, StaticTls, TunnelGroup},
    domain::{DomainExtras, ReservedDomain},
    edge::{EdgeExtras, HttpsEdge, hostport},
    ip_policy::{IpPolicy, IpPolicyExtras, IpPolicyRule},
    list::Reference,
    module::{
        BackendAnswer, HeadersAnswer, IpRestrictionAnswer, TlsTermination, TlsTerminationAnswer,
    },
    route::{HttpsRoute, RouteExtras},
};
use edge_state::state::{self, Phase, PolicyRef, Role};
use model::{
    backend::BackendKind,
    id::{BackendId, DomainId, EdgeId, IpPolicyId, IpRuleId, KeyId, RouteId},
    module::IpRestriction,
    time::Timestamp,
};

/// RFC 3339 in UTC, whole seconds.
pub(crate) fn rfc3339(at: Timestamp) -> String {
    let secs = i64::try_from(at.0 / 1000).unwrap_or(i64::MAX);
    // Beyond what a calendar holds, the calendar's end.
    let at = jiff::Timestamp::from_second(secs).unwrap_or(jiff::Timestamp::MAX);
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

fn reference(base: &str, collection: &str, id: &impl ToString) -> Reference {
    let id = id.to_string();
    let uri = format!("{base}{collection}/{id}");
    Reference { id, uri }
}

pub(crate) fn edge(base: &str, id: &EdgeId, edge: &state::Edge) -> HttpsEdge {
    HttpsEdge {
        id: id.to_string(),
        uri: format!("{base}/edges/https/{id}"),
        created_at: rfc3339(edge.meta.created_at),
        description: edge.meta.description.clone(),
        metadata: edge.meta.metadata.clone(),
        hostports: edge.hosts.iter().map(hostport).collect(),
        tls_termination: edge.tls_termination.map(tls_termination),
        routes: edge
            .routes
            .iter()
            .map(|(route_id, r)| route(base, id, route_id, r))
            .collect(),
        portcullis: EdgeExtras {
            controller: edge.controller.clone(),
            generation: edge.generation,
            certificate_id: edge.certificate.as_ref().map(ToString::to_string),
        },
        others: HttpsEdge::unenforced(),
    }
}

pub(crate) fn tls_termination(module: state::TlsTermination) -> TlsTerminationAnswer {
    let state::TlsTermination { enabled, minimum } = module;
    TlsTermination { enabled, minimum }.into()
}

pub(crate) fn route(
    base: &str,
    edge_id: &EdgeId,
    id: &RouteId,
    route: &state::Route,
) -> HttpsRoute {
    let headers = |module: &Option<_>| module.clone().map(HeadersAnswer::from);
    HttpsRoute {
        edge_id: edge_id.to_string(),
        id: id.to_string(),
        uri: format!("{base}/edges/https/{edge_id}/routes/{id}"),
        created_at: rfc3339(route.meta.created_at),
        match_type: route.place.match_type.wire().to_owned(),
        path: route.place.path.clone(),
        description: route.meta.description.clone(),
        metadata: route.meta.metadata.clone(),
        backend: route
            .backend
            .as_ref()
            .map(|module| backend_module(base, module)),
        ip_restriction: route
            .modules
            .ip_restriction
            .as_ref()
            .map(|m| ip_restriction(base, m)),
        request_headers: headers(&route.modules.request_headers),
        response_headers: headers(&route.modules.response_headers),
        portcullis: RouteExtras {
            generation: route.generation,
            phase: route
                .record
                .as_ref()
                .map(|record| phase(record.phase).to_owned()),
            owner: route.record.as_ref().map(|record| record.owner.to_string()),
        },
        others: HttpsRoute::unenforced(),
    }
}

const fn phase(phase: Phase) -> &'static str {
    match phase {
        Phase::Open => "open",
        Phase::Held => "held",
        Phase::Lost => "lost",
        Phase::Closed => "closed",
        Phase::Removing => "removing",
    }
}

pub(crate) fn backend_module(base: &str, module: &state::RouteBackend) -> BackendAnswer {
    BackendAnswer {
        enabled: module.enabled,
        backend: reference(base, backend_collection(&module.id), &module.id),
    }
}

const fn backend_collection(id: &BackendId) -> &'static str {
    match id {
        BackendId::TunnelGroup(_) => "/backends/tunnel_group",
        BackendId::HttpResponse(_) => "/backends/http_response",
        BackendId::Static(_) => "/backends/static",
    }
}

pub(crate) fn ip_restriction(base: &str, module: &IpRestriction<PolicyRef>) -> IpRestrictionAnswer {
    IpRestrictionAnswer {
        enabled: module.enabled,
        ip_policies: module
            .policies
            .iter()
            .map(|policy| reference(base, "/ip_policies", &policy.id))
            .collect(),
    }
}

/// A backend of any kind.
pub(crate) enum Backend {
    TunnelGroup(TunnelGroup),
    HttpResponse(HttpResponse),
    Static(StaticAddress),
}

pub(crate) fn backend(base: &str, id: &BackendId, backend: &state::Backend) -> Backend {
    let uri = format!("{base}{}/{id}", backend_collection(id));
    let state::Backend {
        meta,
        controller,
        kind,
        service,
        endpoints,
    } = backend;
    let (id, created_at) = (id.to_string(), rfc3339(meta.created_at));
    let (description, metadata) = (meta.description.clone(), meta.metadata.clone());
    let portcullis = BackendExtras {
        controller: controller.clone(),
        service: service.as_ref().map(ToString::to_string),
        endpoints: endpoints.clone(),
    };
    match kind.clone() {
        BackendKind::TunnelGroup { labels } => Backend::TunnelGroup(TunnelGroup {
            id,
            uri,
            created_at,
            description,
            metadata,
            labels,
            tunnels: Vec::new(),
            portcullis,
        }),
        BackendKind::HttpResponse {
            status,
            headers,
            body,
        } => Backend::HttpResponse(HttpResponse {
            id,
            uri,
            created_at,
            description,
            metadata,
            body,
            headers,
            status_code: status,
            portcullis,
        }),
        BackendKind::Static { address } => Backend::Static(StaticAddress {
            id,
            uri,
            created_at,
            description,
            metadata,
            address,
            tls: StaticTls::default(),
            portcullis,
        }),
    }
}

pub(crate) fn domain(base: &str, id: &DomainId, domain: &state::Domain) -> ReservedDomain {
    let state::Domain {
        meta,
        controller,
        host,
        namespace,
        heir: _,
        undeclared_since,
    } = domain;
    ReservedDomain {
        id: id.to_string(),
        uri: format!("{base}/reserved_domains/{id}"),
        created_at: rfc3339(meta.created_at),
        description: meta.description.clone(),
        metadata: meta.metadata.clone(),
        domain: host.to_string(),
        region: String::new(),
        cname_target: None,
        certificate: None,
        certificate_management_policy: None,
        certificate_management_status: None,
        acme_challenge_cname_target: None,
        resolves_to: Vec::new(),
        portcullis: DomainExtras {
            controller: controller.clone(),
            namespace: namespace.clone(),
            undeclared_since: undeclared_since.map(rfc3339),
        },
    }
}

pub(crate) fn ip_policy(base: &str, id: &IpPolicyId, policy: &state::IpPolicy) -> IpPolicy {
    IpPolicy {
        id: id.to_string(),
        uri: format!("{base}/ip_policies/{id}"),
        created_at: rfc3339(policy.meta.created_at),
        description: policy.meta.description.clone(),
        metadata: policy.meta.metadata.clone(),
        portcullis: IpPolicyExtras {
            controller: policy.controller.clone(),
            version: policy.newest,
        },
    }
}

pub(crate) fn ip_rule(
    base: &str,
    id: &IpRuleId,
    policy: &IpPolicyId,
    rule: &state::IpRule,
) -> IpPolicyRule {
    let state::IpRule { meta, cidr, action } = rule;
    IpPolicyRule {
        id: id.to_string(),
        uri: format!("{base}/ip_policy_rules/{id}"),
        created_at: rfc3339(meta.created_at),
        description: meta.description.clone(),
        metadata: meta.metadata.clone(),
        cidr: cidr.to_string(),
        ip_policy: reference(base, "/ip_policies", policy),
        action: *action,
    }
}

/// A key without the key: what is shown of it later is only what was said about it.
pub(crate) fn api_key(base: &str, id: &KeyId, key: &state::ApiKey) -> ApiKey {
    let state::ApiKey {
        meta,
        role,
        token_digest: _,
    } = key;
    ApiKey {
        id: id.to_string(),
        uri: format!("{base}/api_keys/{id}"),
        created_at: rfc3339(meta.created_at),
        description: meta.description.clone(),
        metadata: meta.metadata.clone(),
        owner_id: String::new(),
        token: None,
        role: role_name(*role).to_owned(),
    }
}

const fn role_name(role: Role) -> &'static str {
    match role {
        Role::Read => "read",
        Role::Write => "write",
        Role::Controller => "controller",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_have_whole_seconds_and_always_a_text() {
        assert_eq!(
            rfc3339(Timestamp(1_756_980_697_999)),
            "2025-09-04T10:11:37Z"
        );
        assert_eq!(rfc3339(Timestamp(0)), "1970-01-01T00:00:00Z");
        assert_eq!(rfc3339(Timestamp(u64::MAX)), "9999-12-30T22:00:00Z");
    }
}
