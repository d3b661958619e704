//! The route table: what an edge answers, compiled so that a request costs two look-ups.
//!
//! A table never changes; a new state makes a new one, published with one pointer swap. What did
//! not change is shared by `Arc`.
//!
//! Guarantees: [`Table::host`] prefers the exact host over its one-label wildcard; [`EdgeEntry::select`]
//! returns the route that a scan of all routes in the order of [`Match::rank`] would find first
//! (held against an independent oracle by a property test), or nothing where a backend may read
//! the path as that of another route (R16). [`Admitted`] can only be made by a chain that passed.
//!
//! Assumptions: hosts come from [`crate::host`], paths from [`crate::path`].

use std::{
    collections::{BTreeMap, BTreeSet},
    net::SocketAddr,
    sync::Arc,
};

use model::{
    backend::{BackendKind, ServicePort},
    host::HostPattern,
    id::{BackendId, CertificateId, EdgeId, RouteId},
    module::{EdgeDemands, TlsVersion},
    place::Match,
};

use crate::{
    chain::{Chain, Facts},
    path::alternative_readings,
    refusal::Refusal,
};

mod index;

use index::PathIndex;

/// Everything that an edge process serves.
#[derive(Clone, Debug, Default)]
pub struct Table {
    exact: BTreeMap<Box<str>, HostEntry>,
    wildcard: BTreeMap<Box<str>, HostEntry>,
    refuses_everything: Option<Refusal>,
    reserved_prefix: Option<Match>,
}

/// A host pattern and the edge that answers for it.
#[derive(Clone, Debug)]
pub struct HostEntry {
    /// What was declared: a host or a wildcard.
    pub pattern: HostPattern,
    /// Who answers.
    pub edge: Arc<EdgeEntry>,
}

/// An edge: its demands on connections, its certificate and its routes.
#[derive(Clone, Debug)]
pub struct EdgeEntry {
    /// The edge.
    pub id: EdgeId,
    /// Demands on every connection (R13).
    pub demands: EdgeDemands,
    /// The certificate to show; absent: one of the local authority.
    pub certificate: Option<CertificateId>,
    /// The edge's generation.
    pub generation: u64,
    routes: Vec<RouteEntry>,
    index: PathIndex,
}

/// A route.
#[derive(Clone, Debug)]
pub struct RouteEntry {
    /// The route.
    pub id: RouteId,
    /// What it matches.
    pub place: Match,
    /// The route's generation.
    pub generation: u64,
    /// What it does with requests.
    pub outcome: RouteOutcome,
}

/// What a route does with requests.
#[derive(Clone, Debug)]
pub enum RouteOutcome {
    /// Refuses each, always for this reason.
    Refuse(Refusal),
    /// Serves those that the chain lets pass.
    Serve(Arc<CompiledSet>),
}

/// A complete set, compiled.
#[derive(Clone, Debug)]
pub struct CompiledSet {
    /// The modules, in order.
    pub chain: Chain,
    /// Who answers.
    pub backend: Arc<BackendEntry>,
}

/// A backend and where it is reached at the moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackendEntry {
    /// The backend.
    pub id: BackendId,
    /// What it is.
    pub kind: BackendKind,
    /// The Service port it stands for.
    pub service: Option<ServicePort>,
    /// Ready endpoints, in order.
    pub endpoints: Vec<SocketAddr>,
}

/// A request that a route's chain has let pass, and the one thing a backend may be dialled with.
/// Only [`RouteEntry::admit`] makes it (R11): there is no other way past the chain.
#[derive(Clone, Copy, Debug)]
pub struct Admitted<'t> {
    route: &'t RouteEntry,
    set: &'t Arc<CompiledSet>,
}

impl<'t> Admitted<'t> {
    /// The route that admitted it.
    #[must_use]
    pub const fn route(&self) -> &'t RouteEntry {
        self.route
    }

    /// The set under which it was admitted.
    #[must_use]
    pub const fn set(&self) -> &'t Arc<CompiledSet> {
        self.set
    }
}

impl RouteEntry {
    /// Judges a request by the route's chain.
    ///
    /// # Errors
    /// The reason for which it is refused.
    pub fn admit(&self, facts: &Facts<'_>) -> Result<Admitted<'_>, Refusal> {
        match &self.outcome {
            RouteOutcome::Refuse(reason) => Err(*reason),
            RouteOutcome::Serve(set) => {
                set.chain.judge(facts)?;
                Ok(Admitted { route: self, set })
            }
        }
    }
}

/// What a path selects on an edge.
#[derive(Clone, Copy, Debug)]
pub enum Selection<'t> {
    /// This route.
    Route(&'t RouteEntry),
    /// None.
    Nothing,
    /// Backends may read the path as one that selects something else (R16).
    Ambiguous,
}

impl<'t> Selection<'t> {
    /// The route, or why there is none.
    ///
    /// # Errors
    /// The reason for which the request is refused.
    pub const fn route(self) -> Result<&'t RouteEntry, Refusal> {
        match self {
            Self::Route(route) => Ok(route),
            Self::Nothing => Err(Refusal::NoRoute),
            Self::Ambiguous => Err(Refusal::PathAmbiguous),
        }
    }
}

impl EdgeEntry {
    /// Compiles an edge. Two routes of one match contradict each other, so that neither is
    /// trusted: one stays and refuses (R11).
    #[must_use]
    pub fn new(
        id: EdgeId,
        demands: EdgeDemands,
        certificate: Option<CertificateId>,
        generation: u64,
        mut routes: Vec<RouteEntry>,
    ) -> Self {
        routes.sort_by(|left, right| left.place.rank(&right.place));
        routes.dedup_by(|later, kept| {
            let twice = later.place == kept.place;
            if twice {
                kept.outcome = RouteOutcome::Refuse(Refusal::NotEnforceable);
            }
            twice
        });
        let index = PathIndex::new(routes.iter().map(|route| &route.place));
        Self {
            id,
            demands,
            certificate,
            generation,
            routes,
            index,
        }
    }

    /// Every route, in the order in which they are asked.
    #[must_use]
    pub fn routes(&self) -> &[RouteEntry] {
        &self.routes
    }

    /// The route for a normalised path.
    #[must_use]
    pub fn select(&self, path: &str) -> Selection<'_> {
        let selected = self.index.find(path);
        let Ok(readings) = alternative_readings(path) else {
            return Selection::Ambiguous;
        };
        if readings
            .iter()
            .any(|reading| self.index.find(reading) != selected)
        {
            return Selection::Ambiguous;
        }
        selected
            .and_then(|place| self.routes.get(place))
            .map_or(Selection::Nothing, Selection::Route)
    }
}

/// What is known of a connection's TLS handshake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Handshake {
    /// The host that the client named, normalised; absent if it named none.
    pub server_name: Option<String>,
    /// The version agreed on.
    pub version: TlsVersion,
    /// The authorities that the client's certificate was verified against; absent: none was asked for.
    pub authorities: Option<Arc<BTreeSet<String>>>,
}

impl Table {
    /// A table of these hosts. Where two edges claim one pattern, neither is trusted: the host
    /// refuses (R11).
    #[must_use]
    pub fn new(hosts: impl IntoIterator<Item = (HostPattern, Arc<EdgeEntry>)>) -> Self {
        let mut table = Self::default();
        for (pattern, edge) in hosts {
            let (map, key) = match pattern.suffix() {
                None => (&mut table.exact, pattern.as_str()),
                Some(suffix) => (&mut table.wildcard, suffix),
            };
            match map.get_mut(key) {
                None => {
                    map.insert(key.into(), HostEntry { pattern, edge });
                }
                Some(first) => {
                    first.edge = Arc::new(EdgeEntry {
                        routes: Vec::new(),
                        index: PathIndex::default(),
                        ..(*first.edge).clone()
                    })
                }
            }
        }
        table
    }

    /// The same table with other answers for some hosts; `None` takes a host out. No two edges may
    /// claim one pattern.
    #[must_use]
    pub fn with_hosts(
        &self,
        changes: impl IntoIterator<Item = (HostPattern, Option<Arc<EdgeEntry>>)>,
    ) -> Self {
        let mut table = self.clone();
        for (pattern, edge) in changes {
            let (map, key) = match pattern.suffix() {
                None => (&mut table.exact, pattern.as_str()),
                Some(suffix) => (&mut table.wildcard, suffix),
            };
            match edge {
                None => map.remove(key),
                Some(edge) => map.insert(key.into(), HostEntry { pattern, edge }),
            };
        }
        table
    }

    /// A table that refuses every request for this reason (a state that cannot be read whole, R10).
    #[must_use]
    pub fn refusing(reason: Refusal) -> Self {
        Self {
            refuses_everything: Some(reason),
            ..Self::default()
        }
    }

    /// Why everything is refused, if it is.
    #[must_use]
    pub const fn refuses_everything(&self) -> Option<Refusal> {
        self.refuses_everything
    }

    /// The same table with paths that belong to the edge itself (its login pages): they are taken
    /// before any route is asked. None are today.
    #[must_use]
    pub fn with_reserved_prefix(mut self, reserved: Option<Match>) -> Self {
        self.reserved_prefix = reserved;
        self
    }

    /// Whether a normalised path belongs to the edge itself.
    #[must_use]
    pub fn is_reserved(&self, path: &str) -> bool {
        self.reserved_prefix
            .as_ref()
            .is_some_and(|reserved| reserved.matches(path))
    }

    /// The edge that answers for a normalised host.
    #[must_use]
    pub fn host(&self, host: &str) -> Option<&HostEntry> {
        self.exact.get(host).or_else(|| {
            let (_, parent) = host.split_once('.')?;
            self.wildcard.get(parent)
        })
    }

    /// Every host, exact ones first, each group sorted.
    pub fn hosts(&self) -> impl Iterator<Item = &HostEntry> {
        self.exact.values().chain(self.wildcard.values())
    }

    /// Whether a request for `host` may come over a connection with this handshake. Asked for
    /// every request, since demands change and connections live on (R12).
    ///
    /// # Errors
    /// [`Refusal::Misdirected`] when the server name differs from the host (absent counts as
    /// different) and the two edges differ in their demands; [`Refusal::HandshakeOutdated`] when
    /// the handshake does not meet the present demands.
    pub fn check_handshake(
        &self,
        handshake: &Handshake,
        host: &str,
        edge: &EdgeEntry,
    ) -> Result<(), Refusal> {
        let Handshake {
            server_name,
            version,
            authorities,
        } = handshake;
        if server_name.as_deref() != Some(host) {
            let of_name = server_name.as_deref().and_then(|name| self.host(name));
            let none = EdgeDemands::default();
            let demands = of_name.map_or(&none, |entry| &entry.edge.demands);
            if *demands != edge.demands {
                return Err(Refusal::Misdirected);
            }
        }
        let EdgeDemands {
            tls_minimum,
            mutual_tls,
        } = &edge.demands;
        let version_is_met = tls_minimum.is_none_or(|minimum| *version >= minimum);
        let client_is_known = match mutual_tls {
            None => true,
            Some(demanded) => authorities.as_deref() == Some(demanded),
        };
        if version_is_met && client_is_known {
            Ok(())
        } else {
            Err(Refusal::HandshakeOutdated)
        }
    }
}

#[cfg(test)]
mod tests;
