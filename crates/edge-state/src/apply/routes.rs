//! Commands on routes.

use model::{
    id::{EdgeId, RouteId},
    module::{ModuleKind, Modules},
    place::Match,
};

use super::{
    Attempt, Changes, RefusalCode, RefusedCommand, as_expected, checks::TextCodes, record,
};
use crate::{
    command::{Expected, PolicyName, RecordSpec, RoutePatch, RouteSpec, Texts},
    state::{Edge, PolicyRef, Route},
};

impl Attempt<'_> {
    /// A route as a controller wants it, on `edge`, in place of `old`.
    pub(super) fn route_from(
        &self,
        edge: &Edge,
        spec: &RouteSpec,
        old: Option<&Route>,
    ) -> Result<Route, RefusedCommand> {
        let RouteSpec {
            id: _,
            place,
            modules,
            backend,
            also_refuse,
            description,
            metadata,
            record,
        } = spec;
        if record.is_some() {
            keeps_records(edge)?;
        }
        let texts = Texts {
            description: Some(description.clone()),
            metadata: Some(metadata.clone()),
        };
        let before = old.and_then(|old| old.record.as_ref());
        let route = Route {
            meta: self.meta(old.map(|old| &old.meta), &texts, TextCodes::EDGE)?,
            place: place.clone(),
            modules: modules.clone(),
            backend: backend.clone(),
            also_refuse: also_refuse.clone(),
            generation: old.map_or(0, |old| old.generation),
            record: record
                .as_ref()
                .map(|spec| record::stamp(before, spec, self.context.now)),
        };
        self.check_brought(modules)?;
        self.check_route(&route)?;
        Ok(route)
    }

    pub(super) fn replace_route(
        &self,
        id: &EdgeId,
        expected: Expected,
        spec: &RouteSpec,
    ) -> Changes {
        let old = self.edge_to_change(id, expected)?;
        let about = |refusal: RefusedCommand| refusal.at(id, old.hosts.first(), Some(&spec.place));
        let route = self
            .route_from(old, spec, old.routes.get(&spec.id))
            .map_err(about)?;
        let mut edge = old.clone();
        edge.routes.insert(spec.id.clone(), route);
        self.edge_change(id, edge, Some(old))
    }

    pub(super) fn create_route(
        &self,
        edge_id: &EdgeId,
        expected: Expected,
        id: &RouteId,
        place: &Match,
        patch: &RoutePatch,
    ) -> Changes {
        let old = self.edge_to_change(edge_id, expected)?;
        if self.index.routes.contains_key(id) {
            return Err(RefusedCommand::new(
                RefusalCode::AlreadyExists,
                format!("the route {id} is there already"),
            )
            .at(edge_id, old.hosts.first(), Some(place)));
        }
        let empty = Route {
            meta: self.meta(None, &Texts::default(), TextCodes::EDGE)?,
            place: place.clone(),
            modules: Modules::default(),
            backend: None,
            also_refuse: std::collections::BTreeSet::new(),
            generation: 0,
            record: None,
        };
        self.put_route(edge_id, old, id, self.patched(empty, patch))
    }

    pub(super) fn update_route(
        &self,
        edge: &EdgeId,
        expected: Expected,
        id: &RouteId,
        patch: &RoutePatch,
    ) -> Changes {
        self.change_route(edge, expected, id, |route| self.patched(route, patch))
    }

    pub(super) fn delete_route_module(
        &self,
        edge: &EdgeId,
        expected: Expected,
        id: &RouteId,
        kind: ModuleKind,
    ) -> Changes {
        self.change_route(edge, expected, id, |mut route| {
            remove(&mut route.modules, kind)?;
            Ok(route)
        })
    }

    pub(super) fn delete_route_backend(
        &self,
        edge: &EdgeId,
        expected: Expected,
        id: &RouteId,
    ) -> Changes {
        self.change_route(edge, expected, id, |route| {
            Ok(record::close(&route, self.context.now))
        })
    }

    pub(super) fn delete_route(
        &self,
        edge_id: &EdgeId,
        expected: Expected,
        id: &RouteId,
    ) -> Changes {
        let old = self.edge(edge_id)?;
        self.may_change(old.controller.as_deref())?;
        known(edge_id, old, id)?;
        as_expected(Some(old), expected)?;
        let mut edge = old.clone();
        edge.routes.remove(id);
        self.edge_change(edge_id, edge, Some(old))
    }

    /// What a controller must remember, for edges where it cannot travel with the content.
    pub(super) fn set_record(
        &self,
        edge_id: &EdgeId,
        expected: Expected,
        id: &RouteId,
        spec: &RecordSpec,
    ) -> Changes {
        let old = self.edge_to_change(edge_id, expected)?;
        let mut route = known(edge_id, old, id)?.clone();
        let stamped = record::stamp(route.record.as_ref(), spec, self.context.now);
        route.record = Some(stamped);
        let route = keeps_records(old).map(|()| route);
        self.put_route(edge_id, old, id, route)
    }

    /// Changes a route by a call that knows nothing of records.
    fn change_route(
        &self,
        edge_id: &EdgeId,
        expected: Expected,
        id: &RouteId,
        change: impl FnOnce(Route) -> Result<Route, RefusedCommand>,
    ) -> Changes {
        let edge = self.edge_to_change(edge_id, expected)?;
        let old = known(edge_id, edge, id)?;
        let route = change(old.clone()).map(|mut route| {
            if route != *old {
                record::void_digest(&mut route);
            }
            route
        });
        self.put_route(edge_id, edge, id, route)
    }

    fn put_route(
        &self,
        edge_id: &EdgeId,
        old: &Edge,
        id: &RouteId,
        route: Result<Route, RefusedCommand>,
    ) -> Changes {
        let place = route.as_ref().ok().map(|route| route.place.clone());
        let about =
            |refusal: RefusedCommand| refusal.at(edge_id, old.hosts.first(), place.as_ref());
        let route = route.map_err(about)?;
        self.check_route(&route).map_err(about)?;
        let mut edge = old.clone();
        edge.routes.insert(id.clone(), route);
        self.edge_change(edge_id, edge, Some(old))
    }

    /// The route with what a PATCH sets; what it does not name stays.
    fn patched(&self, mut route: Route, patch: &RoutePatch) -> Result<Route, RefusedCommand> {
        let RoutePatch {
            texts,
            place,
            modules,
            backend,
        } = patch;
        route.meta = self.meta(Some(&route.meta), texts, TextCodes::EDGE)?;
        if let Some(place) = place {
            route.place = place.clone();
        }
        if let Some(backend) = backend {
            route.backend = Some(backend.clone());
        }
        self.check_brought(modules)?;
        let modules = modules.clone().with_policies(|name| self.newest(name))?;
        set(&mut route.modules, modules);
        Ok(route)
    }

    /// An API user names a policy and means its newest version.
    fn newest(&self, id: PolicyName) -> Result<PolicyRef, RefusedCommand> {
        match self.state.ip_policies.get(&id) {
            Some(policy) => Ok(PolicyRef {
                id,
                version: policy.newest,
            }),
            None => Err(RefusedCommand::new(
                RefusalCode::UnknownPolicy,
                format!("there is no IP policy {id}"),
            )),
        }
    }
}

fn keeps_records(edge: &Edge) -> Result<(), RefusedCommand> {
    match edge.controller {
        Some(_) => Ok(()),
        None => Err(RefusedCommand::new(
            RefusalCode::RecordWithoutController,
            "only a controller's edge keeps records",
        )),
    }
}

fn known<'e>(edge_id: &EdgeId, edge: &'e Edge, id: &RouteId) -> Result<&'e Route, RefusedCommand> {
    edge.routes.get(id).ok_or_else(|| {
        let message = format!("the edge {edge_id} has no route {id}");
        RefusedCommand::new(RefusalCode::RouteNotFound, message).at(
            edge_id,
            edge.hosts.first(),
            None,
        )
    })
}

/// Sets the modules that `new` has.
fn set(modules: &mut Modules<PolicyRef>, new: Modules<PolicyRef>) {
    let Modules {
        ip_restriction,
        user_agent_filter,
        webhook_verification,
        oauth,
        oidc,
        saml,
        traffic_policy,
        circuit_breaker,
        websocket_tcp_converter,
        request_headers,
        response_headers,
        compression,
    } = new;
    let old = std::mem::take(modules);
    *modules = Modules {
        ip_restriction: ip_restriction.or(old.ip_restriction),
        user_agent_filter: user_agent_filter.or(old.user_agent_filter),
        webhook_verification: webhook_verification.or(old.webhook_verification),
        oauth: oauth.or(old.oauth),
        oidc: oidc.or(old.oidc),
        saml: saml.or(old.saml),
        traffic_policy: traffic_policy.or(old.traffic_policy),
        circuit_breaker: circuit_breaker.or(old.circuit_breaker),
        websocket_tcp_converter: websocket_tcp_converter.or(old.websocket_tcp_converter),
        request_headers: request_headers.or(old.request_headers),
        response_headers: response_headers.or(old.response_headers),
        compression: compression.or(old.compression),
    };
}

/// Takes one module out.
fn remove(modules: &mut Modules<PolicyRef>, kind: ModuleKind) -> Result<(), RefusedCommand> {
    match kind {
        ModuleKind::IpRestriction => modules.ip_restriction = None,
        ModuleKind::UserAgentFilter => modules.user_agent_filter = None,
        ModuleKind::WebhookVerification => modules.webhook_verification = None,
        ModuleKind::Oauth => modules.oauth = None,
        ModuleKind::Oidc => modules.oidc = None,
        ModuleKind::Saml => modules.saml = None,
        ModuleKind::TrafficPolicy => modules.traffic_policy = None,
        ModuleKind::CircuitBreaker => modules.circuit_breaker = None,
        ModuleKind::WebsocketTcpConverter => modules.websocket_tcp_converter = None,
        ModuleKind::RequestHeaders => modules.request_headers = None,
        ModuleKind::ResponseHeaders => modules.response_headers = None,
        ModuleKind::Compression => modules.compression = None,
        ModuleKind::TlsTermination | ModuleKind::MutualTls => {
            return Err(RefusedCommand::new(
                RefusalCode::ModuleNotAvailable,
                format!("{} is no module of a route", kind.name()),
            ));
        }
    }
    Ok(())
}
