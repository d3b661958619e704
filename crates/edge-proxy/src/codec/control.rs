//! What a connection's guard, its driver and its request handlers tell each other.

use std::{cell::Cell, rc::Rc, task::Waker, time::Duration};

use super::head::HeadError;
use crate::{
    options::Timeouts,
    watch::{Bell, Clock, Tick, overdue},
};

/// Where an upgrade stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Upgrade {
    /// Nobody asked, or the answer is not known yet.
    Undecided,
    /// No: what follows is the next request.
    Refused,
    /// Yes: what follows is not HTTP.
    Granted,
}

/// Requests of a connection that its client gives up, and they are most of it: from here on that
/// is what the connection is for (rapid reset: each one costs a backend a connection, and the
/// client nothing).
const ABANDONED_MAX: u64 = 100;

/// A connection's state, shared by all that work on it.
#[derive(Debug)]
pub(crate) struct Control {
    clock: Rc<Clock>,
    is_http2: bool,
    /// Heads that were let through, and requests that were taken up.
    heads: Cell<u64>,
    requests: Cell<u64>,
    abandoned: Cell<u64>,
    /// Which request stands in for a refused one, and why.
    refused: Cell<Option<(u64, HeadError)>>,
    upgrade: Cell<Upgrade>,
    /// Wakes whoever reads.
    reader: Bell,
    /// Wakes the connection's driver.
    pub(crate) driver: Bell,
    /// The connection takes no further request.
    pub(crate) closing: Cell<bool>,
    /// The connection ends now.
    pub(crate) cut: Cell<bool>,
    in_flight: Cell<u32>,
    idle_since: Cell<Tick>,
    head_since: Cell<Tick>,
    /// The head that has begun is to be refused, since it takes too long.
    late: Cell<bool>,
    write_since: Cell<Tick>,
}

impl Control {
    pub(crate) fn new(clock: Rc<Clock>, is_http2: bool) -> Self {
        let now = clock.now();
        Self {
            clock,
            is_http2,
            heads: Cell::new(0),
            requests: Cell::new(0),
            abandoned: Cell::new(0),
            refused: Cell::new(None),
            upgrade: Cell::new(Upgrade::Undecided),
            reader: Bell::default(),
            driver: Bell::default(),
            closing: Cell::new(false),
            cut: Cell::new(false),
            in_flight: Cell::new(0),
            idle_since: Cell::new(now),
            head_since: Cell::new(0),
            late: Cell::new(false),
            write_since: Cell::new(0),
        }
    }

    /// Why the request that was taken up last is not the one that was sent. Requests of one
    /// connection are taken up one after the other.
    pub(crate) fn refused(&self) -> Option<HeadError> {
        let (number, error) = self.refused.get()?;
        (number + 1 == self.requests.get()).then_some(error)
    }

    /// Decides about an upgrade.
    pub(crate) fn decide(&self, upgrade: Upgrade) {
        self.upgrade.set(upgrade);
        self.reader.ring();
    }

    pub(crate) fn request_began(&self) {
        self.requests.set(self.requests.get() + 1);
        self.in_flight.set(self.in_flight.get() + 1);
        self.idle_since.set(0);
        self.head_since.set(0);
    }

    pub(crate) fn request_ended(&self) {
        let left = self.in_flight.get().saturating_sub(1);
        self.in_flight.set(left);
        if left == 0 {
            self.idle_since.set(self.clock.now());
        }
    }

    /// The client did not wait for an answer.
    pub(crate) fn request_abandoned(&self) {
        self.abandoned.set(self.abandoned.get() + 1);
        if self.abandoned.get() > ABANDONED_MAX && self.abandoned.get() > self.requests.get() / 2 {
            self.cut();
        }
    }

    /// No request in progress and all answers handed over, as of the last tick.
    pub(crate) fn is_quiet(&self) -> bool {
        let idle = self.idle_since.get();
        idle != 0 && idle < self.clock.now() && self.write_since.get() == 0
    }

    /// Ends the connection at once.
    pub(crate) fn cut(&self) {
        self.cut.set(true);
        self.driver.ring();
    }

    /// Ends it after the requests that are in progress.
    pub(crate) fn close(&self) {
        self.closing.set(true);
        self.driver.ring();
    }

    /// Ends the connection when its client takes too long, or when it is closing and done.
    pub(crate) fn check(&self, timeouts: &Timeouts) {
        let now = self.clock.now();
        if overdue(&self.write_since, now, timeouts.client) {
            self.cut();
        } else if overdue(&self.head_since, now, timeouts.head) {
            if self.late.replace(true) {
                self.cut();
            } else {
                // It has as long again to take the refusal.
                self.head_since.set(now);
                self.reader.ring();
            }
        } else if self.head_since.get() == 0 && overdue(&self.idle_since, now, timeouts.idle) {
            self.close();
        }
        // HTTP/2 says goodbye first; the client has a moment to hear it.
        let goodbye = if self.is_http2 {
            timeouts.goodbye()
        } else {
            Duration::ZERO
        };
        if self.closing.get() && self.is_quiet() && overdue(&self.idle_since, now, goodbye) {
            self.cut();
        }
    }

    /// A head was let through.
    pub(super) fn head_passed(&self) {
        self.heads.set(self.heads.get() + 1);
    }

    /// The next request is a stand-in.
    pub(super) fn refuse(&self, error: HeadError) {
        self.refused.set(Some((self.heads.get(), error)));
    }

    pub(super) fn upgrade_asked(&self) {
        self.upgrade.set(Upgrade::Undecided);
    }

    pub(super) fn upgrade(&self) -> Upgrade {
        self.upgrade.get()
    }

    pub(super) fn is_late(&self) -> bool {
        self.late.get()
    }

    /// Wakes the reader when an upgrade is decided, or when a head is late.
    pub(super) fn wake(&self, reader: &Waker) {
        self.reader.hear(reader);
    }

    /// Why, and in the place of which request, a stand-in was put.
    #[cfg(test)]
    pub(super) fn stand_in(&self) -> Option<(u64, HeadError)> {
        self.refused.get()
    }

    pub(super) fn head_began(&self) {
        if self.head_since.get() == 0 && self.in_flight.get() == 0 {
            self.head_since.set(self.clock.now());
        }
    }

    /// The client has sent something: one that sends is there, though it takes nothing.
    pub(super) fn has_read(&self) {
        if self.write_since.get() != 0 {
            self.write_since.set(self.clock.now());
        }
    }

    pub(super) fn write_blocked(&self, blocked: bool) {
        if !blocked {
            self.write_since.set(0);
        } else if self.write_since.get() == 0 {
            self.write_since.set(self.clock.now());
        }
    }
}
