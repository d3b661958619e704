//! The one way to a backend (R11, R12).

use std::{rc::Rc, sync::Arc};

use model::id::RouteId;
use routing::{
    refusal::Refusal,
    table::{BackendEntry, CompiledSet, EdgeEntry},
};

use crate::{
    connection::Peer,
    flight::{Flight, Subject},
    watch::Entry,
    worker::Worker,
};

/// Tables that may be published while one request is being judged.
const TABLES_MAX: usize = 8;

/// A request that the table in force has admitted, and its place among those in flight. Nothing
/// but [`Admission::obtain`] makes one, and nothing dials without one.
#[derive(Debug)]
pub(crate) struct Admission {
    edge: Arc<EdgeEntry>,
    set: Arc<CompiledSet>,
    flight: Entry<Flight>,
}

impl Admission {
    /// Judges a request. One load of the table serves it; the second one finds out whether
    /// another was published meanwhile, in which case the request starts over with that. From
    /// here on the request is among those that are judged again when the table changes.
    pub(crate) fn obtain(
        peer: &Peer,
        subject: Subject,
        mut log: Option<&mut RouteSeen>,
    ) -> Result<Self, Refusal> {
        let worker = &peer.worker;
        if worker.flights.len() >= worker.shared.limits.requests {
            return Err(Refusal::Overloaded);
        }
        let mut published = worker.store.load();
        for _ in 0..TABLES_MAX {
            let judged = subject.judge(&published.table, &worker.shared.defences);
            let (edge, admitted) = match judged {
                Ok(judged) => judged,
                Err(reason) => {
                    if let Some(log) = &mut log {
                        **log = subject.route(&published.table);
                    }
                    return Err(reason);
                }
            };
            let newest = worker.store.load();
            if !Arc::ptr_eq(&published, &newest) {
                published = newest;
                continue;
            }
            if let Some(log) = log {
                *log = Some((admitted.route().id.clone(), admitted.route().generation));
            }
            let (edge, set) = (Arc::clone(edge), Arc::clone(admitted.set()));
            let (clock, connection) = (Rc::clone(&worker.clock), Rc::clone(&peer.control));
            let flight = Flight::new(clock, connection, subject, Arc::clone(&edge));
            return Ok(Self {
                edge,
                set,
                flight: worker.flights.enter(flight),
            });
        }
        Err(Refusal::Revoked)
    }

    /// Whether the table in force is, for this request, the one that admitted it. Asked before
    /// a backend is tried once more: what has changed since is judged anew, though it would
    /// still be admitted, so that no request goes to a backend that its route has left (R12).
    pub(crate) fn is_in_force(&self, worker: &Worker) -> bool {
        let published = worker.store.load();
        let now = published.table.host(self.flight.host());
        published.table.refuses_everything().is_none()
            && now.is_some_and(|now| Arc::ptr_eq(&now.edge, &self.edge))
    }

    pub(crate) fn set(&self) -> &Arc<CompiledSet> {
        &self.set
    }

    pub(crate) fn backend(&self) -> &BackendEntry {
        &self.set.backend
    }

    pub(crate) fn flight(&self) -> &Entry<Flight> {
        &self.flight
    }

    pub(crate) fn into_flight(self) -> Entry<Flight> {
        self.flight
    }
}

/// The route that handles a request, and its generation.
pub(crate) type RouteSeen = Option<(RouteId, u64)>;
