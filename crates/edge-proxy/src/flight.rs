//! A request in flight: from its admission until the last byte of its answer, or for as long as
//! its tunnel is open.
//!
//! It carries what is needed to judge it again (R12): what changes is the table, never its facts.

use std::{
    cell::{Cell, RefCell},
    net::IpAddr,
    panic::{AssertUnwindSafe, catch_unwind},
    rc::Rc,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use http::{Method, uri::PathAndQuery};
use routing::{
    chain::Facts,
    refusal::Refusal,
    table::{Admitted, EdgeEntry, Handshake, Table},
};

use crate::{
    admission::RouteSeen,
    codec::control::Control,
    options::{Defences, Timeouts},
    watch::{Bell, Clock, Tick, overdue},
};

/// Why a request in flight ends before its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Cut {
    /// The client sends or takes nothing, or breaks off.
    #[error("the client takes too long")]
    Client,
    /// The client sends a body that is none.
    #[error("the request's body is malformed")]
    Malformed,
    /// The client sends more than it may.
    #[error("the request's body is too large")]
    TooLarge,
    /// The backend sends nothing.
    #[error("the backend takes too long")]
    Backend,
    /// It is not admitted any more.
    #[error("the request is not admitted any more")]
    Revoked,
    /// The process ends.
    #[error("the edge is ending")]
    Drained,
}

impl Cut {
    pub(crate) const fn refusal(self) -> Refusal {
        match self {
            Self::Client => Refusal::RequestTimeout,
            Self::Malformed => Refusal::AmbiguousFraming,
            Self::TooLarge => Refusal::BodyTooLarge,
            Self::Backend => Refusal::UpstreamTimeout,
            Self::Revoked => Refusal::Revoked,
            Self::Drained => Refusal::Draining,
        }
    }
}

/// How long a request that must end may stay before its connection does.
const UNHEARD: Duration = Duration::from_millis(150);

/// What is waited for from a backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Awaiting {
    Head,
    Body,
    /// Anything, from either side.
    Tunnel,
}

/// What a request is judged by.
#[derive(Debug)]
pub(crate) struct Subject {
    pub(crate) peer: IpAddr,
    pub(crate) method: Method,
    /// Normalised.
    pub(crate) host: Box<str>,
    /// Normalised path, and query, as they are forwarded.
    pub(crate) target: PathAndQuery,
    pub(crate) handshake: Rc<Handshake>,
}

impl Subject {
    /// Judges the request by a table: host, demands on the connection, route, chain. The one way
    /// to an admission, for new requests and for those in flight alike.
    pub(crate) fn judge<'t>(
        &self,
        table: &'t Table,
        defences: &Defences,
    ) -> Result<(&'t Arc<EdgeEntry>, Admitted<'t>), Refusal> {
        if let Some(reason) = table.refuses_everything() {
            return Err(reason);
        }
        let entry = table.host(&self.host).ok_or(Refusal::UnknownHost)?;
        if defences.handshake {
            table.check_handshake(&self.handshake, &self.host, &entry.edge)?;
        }
        let path = self.target.path();
        if table.is_reserved(path) {
            return Err(Refusal::NoRoute);
        }
        let route = if defences.readings {
            entry.edge.select(path).route()?
        } else {
            let mut routes = entry.edge.routes().iter();
            routes
                .find(|route| route.place.matches(path))
                .ok_or(Refusal::NoRoute)?
        };
        let facts = Facts::new(self.peer, self.method.as_str(), &self.host, path);
        Ok((&entry.edge, route.admit(&facts)?))
    }

    /// The route that judges it, for the log.
    pub(crate) fn route(&self, table: &Table) -> RouteSeen {
        let entry = table.host(&self.host)?;
        let route = entry.edge.select(self.target.path()).route().ok()?;
        Some((route.id.clone(), route.generation))
    }
}

/// A request in flight.
#[derive(Debug)]
pub(crate) struct Flight {
    clock: Rc<Clock>,
    subject: Subject,
    edge: RefCell<Arc<EdgeEntry>>,
    /// Wakes whoever drives the request.
    bell: Bell,
    began: Cell<Tick>,
    cut: Cell<Option<Cut>>,
    cut_since: Cell<Tick>,
    connection: Rc<Control>,
    revoked_since: Cell<Tick>,
    client_since: Cell<Tick>,
    taking_since: Cell<Tick>,
    backend_since: Cell<Tick>,
    awaiting: Cell<Awaiting>,
    upload_ended: Cell<bool>,
    bytes_in: Cell<u64>,
}

impl Flight {
    pub(crate) fn new(
        clock: Rc<Clock>,
        connection: Rc<Control>,
        subject: Subject,
        edge: Arc<EdgeEntry>,
    ) -> Self {
        Self {
            began: Cell::new(clock.now()),
            clock,
            subject,
            edge: RefCell::new(edge),
            bell: Bell::default(),
            cut: Cell::new(None),
            cut_since: Cell::new(0),
            connection,
            revoked_since: Cell::new(0),
            client_since: Cell::new(0),
            taking_since: Cell::new(0),
            backend_since: Cell::new(0),
            awaiting: Cell::new(Awaiting::Head),
            upload_ended: Cell::new(false),
            bytes_in: Cell::new(0),
        }
    }

    pub(crate) fn host(&self) -> &str {
        &self.subject.host
    }

    pub(crate) fn cut(&self, reason: Cut) {
        if self.cut.get().is_none() {
            self.cut.set(Some(reason));
            self.cut_since.set(self.clock.now());
            self.bell.ring();
        }
    }

    /// Why it had to end, if it had to.
    pub(crate) fn cut_reason(&self) -> Option<Cut> {
        self.cut.get()
    }

    /// Ready when it must end; otherwise the task is woken when it must.
    pub(crate) fn poll_cut(&self, cx: &Context<'_>) -> Poll<Cut> {
        match self.cut.get() {
            Some(reason) => Poll::Ready(reason),
            None => {
                self.bell.hear(cx.waker());
                Poll::Pending
            }
        }
    }

    /// The client has sent something.
    pub(crate) fn client_progressed(&self, bytes: usize) {
        self.client_since.set(0);
        self.bytes_in.set(self.bytes_in.get() + bytes as u64);
        // While it sends, nobody waits: neither the backend for it, nor it for the backend.
        for since in [&self.backend_since, &self.taking_since] {
            if since.get() != 0 {
                since.set(self.clock.now());
            }
        }
    }

    pub(crate) fn await_client(&self) {
        if self.client_since.get() == 0 {
            self.client_since.set(self.clock.now());
        }
    }

    /// A piece of the answer is on its way to the client. HTTP/2 holds it for as long as the
    /// client opens no window, without a write that blocks.
    pub(crate) fn handed_over(&self) {
        self.taking_since.set(self.clock.now());
    }

    /// The client has room for the next piece.
    pub(crate) fn taken(&self) {
        self.taking_since.set(0);
    }

    pub(crate) fn upload_ended(&self) {
        self.client_since.set(0);
        self.upload_ended.set(true);
    }

    pub(crate) fn is_upload_ended(&self) -> bool {
        self.upload_ended.get()
    }

    pub(crate) fn bytes_in(&self) -> u64 {
        self.bytes_in.get()
    }

    pub(crate) fn await_backend(&self, what: Awaiting) {
        if self.backend_since.get() == 0 || self.awaiting.get() != what {
            self.backend_since.set(self.clock.now());
            self.awaiting.set(what);
        }
    }

    /// The backend has sent something.
    pub(crate) fn backend_progressed(&self) {
        self.backend_since.set(0);
    }

    /// Something went through the tunnel.
    pub(crate) fn tunnel_used(&self) {
        self.backend_since.set(self.clock.now());
    }

    /// Ends it when somebody takes too long, or when its grace is over.
    pub(crate) fn check(&self, timeouts: &Timeouts, grace: Duration) {
        let now = self.clock.now();
        if self.cut.get().is_some() {
            // The codec looks at an answer when the client takes some of it. One that takes
            // nothing cannot be told on its stream; its connection ends.
            if overdue(&self.cut_since, now, UNHEARD) {
                self.connection.cut();
            }
            return;
        }
        let backend_limit = match self.awaiting.get() {
            Awaiting::Head => timeouts.backend_head,
            Awaiting::Body => timeouts.backend_body,
            Awaiting::Tunnel => timeouts.tunnel_idle,
        };
        // While the client still sends, it is the one that is waited for.
        let client_waits = self.client_since.get() != 0;
        if overdue(&self.revoked_since, now, grace) {
            self.cut(Cut::Revoked);
        } else if overdue(&self.client_since, now, timeouts.client)
            || overdue(&self.taking_since, now, timeouts.stalled)
        {
            self.cut(Cut::Client);
        } else if !client_waits && overdue(&self.backend_since, now, backend_limit) {
            self.cut(Cut::Backend);
        } else if overdue(&self.began, now, timeouts.total) {
            let ended = self.upload_ended.get();
            self.cut(if ended { Cut::Backend } else { Cut::Client });
        }
    }

    /// Judges it by a new table. What is not admitted any more has the grace to end.
    pub(crate) fn judge_again(&self, table: &Table, defences: &Defences, grace: Duration) {
        if table
            .host(&self.subject.host)
            .is_some_and(|entry| Arc::ptr_eq(&entry.edge, &self.edge.borrow()))
            && table.refuses_everything().is_none()
            && self.revoked_since.get() == 0
        {
            return;
        }
        // What cannot be judged is not admitted (R11).
        let judge = AssertUnwindSafe(|| self.subject.judge(table, defences));
        match catch_unwind(judge).unwrap_or(Err(Refusal::ModuleFailed)) {
            Ok((edge, _)) => {
                *self.edge.borrow_mut() = Arc::clone(edge);
                self.revoked_since.set(0);
            }
            Err(_) if grace.is_zero() => self.cut(Cut::Revoked),
            Err(_) if self.revoked_since.get() == 0 => self.revoked_since.set(self.clock.now()),
            Err(_) => {}
        }
    }
}
