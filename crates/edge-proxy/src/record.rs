//! What becomes of a request, from its first byte here to its last, for metrics and access log.
//!
//! A record is counted when it is dropped, so that none is forgotten, however a request ends.

use std::{rc::Rc, time::Instant};

use http::{Method, StatusCode};
use routing::{host::Version, refusal::Refusal};

use crate::{
    access_log::Line,
    admission::RouteSeen,
    connection::Peer,
    flight::{Cut, Flight},
    worker::RequestId,
};

/// How a request ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// The client went away first.
    Abandoned,
    /// Answered by its backend.
    Passed,
    /// Refused by the edge.
    Refused(Refusal),
    /// Let through, and ended before its end.
    Cut(Cut),
}

/// What becomes of a request.
pub(crate) struct Record {
    peer: Rc<Peer>,
    began: Instant,
    pub(crate) id: RequestId,
    verdict: Verdict,
    status: StatusCode,
    bytes_out: u64,
    flight: Option<Rc<Flight>>,
    answered_us: Option<u64>,
    details: Option<Box<Details>>,
}

/// What only the log needs.
#[derive(Debug, Default)]
struct Details {
    method: Method,
    host: String,
    path: String,
    route: RouteSeen,
}

impl Record {
    pub(crate) fn begin(peer: &Rc<Peer>) -> Self {
        peer.control.request_began();
        let worker = &peer.worker;
        Self {
            began: worker.clock.refresh(),
            id: worker.request_id(),
            peer: Rc::clone(peer),
            verdict: Verdict::Abandoned,
            status: StatusCode::OK,
            bytes_out: 0,
            flight: None,
            answered_us: None,
            details: worker.logger.wants(true).then(Box::default),
        }
    }

    /// What the request asks for, as far as it could be understood.
    pub(crate) fn asks(&mut self, method: &Method, host: &str, path: &str) {
        if let Some(details) = &mut self.details {
            details.method.clone_from(method);
            host.clone_into(&mut details.host);
            path.clone_into(&mut details.path);
        }
    }

    /// Where the route is noted, if anybody wants to know.
    pub(crate) fn route(&mut self) -> Option<&mut RouteSeen> {
        self.details.as_mut().map(|details| &mut details.route)
    }

    pub(crate) fn passed(&mut self, status: StatusCode, flight: Option<Rc<Flight>>) {
        self.verdict = Verdict::Passed;
        self.status = status;
        self.flight = flight;
        if self.details.is_some() {
            self.answered_us = Some(micros(self.began));
        }
    }

    pub(crate) fn refused(&mut self, reason: Refusal) {
        self.verdict = Verdict::Refused(reason);
        self.status =
            StatusCode::from_u16(reason.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    }

    /// The backend's answer broke off.
    pub(crate) fn broke(&mut self) {
        self.verdict = Verdict::Refused(Refusal::UpstreamInvalid);
    }

    pub(crate) fn cut(&mut self, cut: Cut) {
        self.verdict = Verdict::Cut(cut);
    }

    pub(crate) fn sent(&mut self, bytes: usize) {
        self.bytes_out += bytes as u64;
    }

    fn log(&mut self) {
        let refused = !matches!(self.verdict, Verdict::Passed);
        let worker = &self.peer.worker;
        let Some(details) = self.details.take_if(|_| worker.logger.wants(refused)) else {
            return;
        };
        let (verdict, reason) = match self.verdict {
            Verdict::Abandoned => ("abandoned", None),
            Verdict::Passed => ("passed", None),
            Verdict::Refused(reason) => ("refused", Some(reason)),
            Verdict::Cut(cut) => ("cut", Some(cut.refusal())),
        };
        let route = details.route.as_ref();
        let line = Line {
            request_id: &self.id.to_string(),
            client: self.peer.address,
            method: details.method.as_str(),
            host: &details.host,
            path: &details.path,
            protocol: match self.peer.version {
                Version::Http1 => "HTTP/1.1",
                Version::Http2 => "HTTP/2",
            },
            verdict,
            reason: reason.map(Refusal::label),
            module: reason.and_then(module),
            route: route.map(|(id, _)| id.as_str()),
            generation: route.map(|(_, generation)| *generation),
            status: self.status.as_u16(),
            bytes_in: self.flight.as_ref().map_or(0, |flight| flight.bytes_in()),
            bytes_out: self.bytes_out,
            backend_us: self.answered_us,
            total_us: micros(self.began),
        };
        if !worker.logger.log(&line) {
            worker.metrics.log_lines_dropped.add(1);
        }
    }
}

/// The module whose refusal this is.
fn module(reason: Refusal) -> Option<&'static str> {
    match reason {
        Refusal::AddressRefused => Some(model::module::ModuleKind::IpRestriction.name()),
        Refusal::Misdirected | Refusal::HandshakeOutdated => {
            Some(model::module::ModuleKind::TlsTermination.name())
        }
        _ => None,
    }
}

fn micros(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_micros()).unwrap_or(u64::MAX)
}

impl Drop for Record {
    fn drop(&mut self) {
        self.peer.control.request_ended();
        let metrics = &self.peer.worker.metrics;
        if let (Verdict::Passed, Some(cut)) = (
            self.verdict,
            self.flight.as_ref().and_then(|flight| flight.cut_reason()),
        ) {
            self.verdict = Verdict::Cut(cut);
        }
        let is_tunnel = self.status == StatusCode::SWITCHING_PROTOCOLS;
        let took = (!is_tunnel).then(|| self.began.elapsed());
        match self.verdict {
            Verdict::Passed => metrics.request(None, took),
            Verdict::Cut(_) => {
                metrics.request(None, took);
                metrics.cut.add(1);
            }
            Verdict::Refused(reason) => metrics.request(Some(reason), took),
            Verdict::Abandoned => {
                metrics.abandoned.add(1);
                self.peer.control.request_abandoned();
            }
        }
        metrics.bytes_sent.add(self.bytes_out);
        if let Some(flight) = &self.flight {
            metrics.bytes_received.add(flight.bytes_in());
        }
        self.log();
    }
}
