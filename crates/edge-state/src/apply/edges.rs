//! Commands on edges as a whole.

use std::collections::{BTreeMap, BTreeSet};

use model::{
    id::EdgeId,
    module::{EdgeDemands, ModuleKind},
    place::Match,
};

use super::{
    Attempt, Change, Changes, RefusalCode, RefusedCommand, as_expected,
    checks::{TextCodes, at_most},
    record,
};
use crate::{
    command::{EdgePatch, EdgeSpec, Expected, Texts},
    state::{Edge, MutualTls, TlsTermination},
};

/// The modules that make these demands.
fn modules(demands: &EdgeDemands) -> (Option<TlsTermination>, Option<MutualTls>) {
    let EdgeDemands {
        tls_minimum,
        mutual_tls,
    } = demands;
    (
        tls_minimum.map(|minimum| TlsTermination {
            enabled: true,
            minimum: Some(minimum),
        }),
        mutual_tls.clone().map(|authorities| MutualTls {
            enabled: true,
            authorities,
        }),
    )
}

impl Attempt<'_> {
    pub(super) fn replace_edge(&self, spec: &EdgeSpec) -> Changes {
        let EdgeSpec {
            id,
            expected,
            controller,
            hosts,
            demands,
            certificate,
            description,
            metadata,
            routes,
        } = spec;
        let old = self.state.edges.get(id).map(AsRef::as_ref);
        let owner = old.map(|old| old.controller.as_deref());
        self.may_own(owner, controller.as_deref())?;
        as_expected(old, *expected)?;
        let texts = Texts {
            description: Some(description.clone()),
            metadata: Some(metadata.clone()),
        };
        let (tls_termination, mutual_tls) = modules(demands);
        let mut edge = Edge {
            meta: self.meta(old.map(|old| &old.meta), &texts, TextCodes::EDGE)?,
            controller: controller.clone(),
            hosts: hosts.clone(),
            tls_termination,
            mutual_tls,
            certificate: certificate.clone(),
            generation: old.map_or(0, |old| old.generation),
            routes: BTreeMap::new(),
        };
        for route in routes {
            let before = old.and_then(|old| old.routes.get(&route.id));
            let about = |refusal: RefusedCommand| refusal.at(id, hosts.first(), Some(&route.place));
            let new = self.route_from(&edge, route, before).map_err(about)?;
            if edge.routes.insert(route.id.clone(), new).is_some() {
                return Err(about(RefusedCommand::new(
                    RefusalCode::IdInUse,
                    format!("the route {} is there twice", route.id),
                )));
            }
        }
        self.edge_change(id, edge, old)
    }

    pub(super) fn create_edge(
        &self,
        id: &EdgeId,
        controller: Option<&str>,
        patch: &EdgePatch,
    ) -> Changes {
        self.may_own(None, controller)?;
        if self.state.edges.contains_key(id) {
            return Err(RefusedCommand::new(
                RefusalCode::AlreadyExists,
                format!("the edge {id} is there already"),
            ));
        }
        let EdgePatch {
            texts,
            hosts,
            tls_termination,
            mutual_tls,
        } = patch;
        let edge = Edge {
            meta: self.meta(None, texts, TextCodes::EDGE)?,
            controller: controller.map(str::to_owned),
            hosts: hosts.clone().unwrap_or_default(),
            tls_termination: *tls_termination,
            mutual_tls: mutual_tls.clone(),
            certificate: None,
            generation: 0,
            routes: BTreeMap::new(),
        };
        self.edge_change(id, edge, None)
    }

    pub(super) fn update_edge(
        &self,
        id: &EdgeId,
        expected: Expected,
        patch: &EdgePatch,
    ) -> Changes {
        let old = self.edge_to_change(id, expected)?;
        let EdgePatch {
            texts,
            hosts,
            tls_termination,
            mutual_tls,
        } = patch;
        let mut edge = old.clone();
        edge.meta = self.meta(Some(&old.meta), texts, TextCodes::EDGE)?;
        if let Some(hosts) = hosts {
            edge.hosts.clone_from(hosts);
        }
        if let Some(module) = tls_termination {
            edge.tls_termination = Some(*module);
        }
        if let Some(module) = mutual_tls {
            edge.mutual_tls = Some(module.clone());
        }
        self.foreign_edge_change(id, edge, old)
    }

    pub(super) fn delete_edge_module(
        &self,
        id: &EdgeId,
        expected: Expected,
        kind: ModuleKind,
    ) -> Changes {
        let old = self.edge_to_change(id, expected)?;
        let mut edge = old.clone();
        match kind {
            ModuleKind::TlsTermination => edge.tls_termination = None,
            ModuleKind::MutualTls => edge.mutual_tls = None,
            ModuleKind::IpRestriction
            | ModuleKind::UserAgentFilter
            | ModuleKind::WebhookVerification
            | ModuleKind::Oauth
            | ModuleKind::Oidc
            | ModuleKind::Saml
            | ModuleKind::TrafficPolicy
            | ModuleKind::CircuitBreaker
            | ModuleKind::WebsocketTcpConverter
            | ModuleKind::RequestHeaders
            | ModuleKind::ResponseHeaders
            | ModuleKind::Compression => {
                return Err(RefusedCommand::new(
                    RefusalCode::ModuleNotAvailable,
                    format!("{} is no module of an edge", kind.name()),
                ));
            }
        }
        self.foreign_edge_change(id, edge, old)
    }

    pub(super) fn delete_edge(&self, id: &EdgeId, expected: Expected) -> Changes {
        self.edge_to_change(id, expected)?;
        Ok(vec![Change::Edge(id.clone(), None)])
    }

    /// A change of an edge by a call that knows nothing of records: what its controller thinks
    /// to be in force is so no longer.
    fn foreign_edge_change(&self, id: &EdgeId, mut edge: Edge, old: &Edge) -> Changes {
        if edge == *old {
            return Ok(Vec::new());
        }
        edge.routes.values_mut().for_each(record::void_digest);
        self.edge_change(id, edge, Some(old))
    }

    /// The change, if the edge as a whole is valid. Routes are checked where they change.
    pub(super) fn edge_change(&self, id: &EdgeId, edge: Edge, old: Option<&Edge>) -> Changes {
        let limits = self.context.limits;
        if old.is_none() {
            at_most(
                self.state.edges.len() + 1,
                limits.edges,
                RefusalCode::TooManyEdges,
                "edges",
            )?;
        }
        let about = |refusal: RefusedCommand| refusal.at(id, edge.hosts.first(), None);
        self.check_edge(id, &edge).map_err(about)?;
        at_most(
            edge.routes.len(),
            limits.routes_per_edge,
            RefusalCode::TooManyRoutes,
            "routes of an edge",
        )
        .map_err(about)?;
        let mut places: BTreeSet<&Match> = BTreeSet::new();
        for (route_id, route) in &edge.routes {
            let about = |code, message| {
                RefusedCommand::new(code, message).at(id, edge.hosts.first(), Some(&route.place))
            };
            if !places.insert(&route.place) {
                let message = format!("another route of the edge has the match {}", route.place);
                return Err(about(RefusalCode::MatchTaken, message));
            }
            if self
                .index
                .routes
                .get(route_id)
                .is_some_and(|owner| owner != id)
            {
                let message = format!("the route {route_id} is one of another edge");
                return Err(about(RefusalCode::IdInUse, message));
            }
        }
        Ok(vec![Change::Edge(id.clone(), Some(edge))])
    }
}
