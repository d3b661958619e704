//! A request from its head to its answer.
//!
//! In order: what it asks for in its one meaning, the table once, the chain, and only then the
//! backend. Whatever goes wrong on the way refuses the request (R11): errors are reasons, and a
//! panic is one too.

use std::{
    future::Future,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::{Pin, pin},
    rc::Rc,
    task::{Context, Poll},
};

use bytes::Bytes;
use http::{
    HeaderName, HeaderValue, Method, Request, Response, StatusCode, header, request::Parts,
};
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use model::backend::BackendKind;
use routing::{host::Version, refusal::Refusal};

use crate::{
    admission::Admission,
    codec::control,
    connection::Peer,
    flight::{Cut, Flight, Subject},
    forward,
    pages::{self, Shown},
    record::Record,
    request::{self, Asked, Upgrade},
    trailers::{self, AnswerTrailers, RequestTrailers},
    tunnel::Tunnel,
    upstream::{
        body::{AnswerBody, BodyError, ClientBody, Upload},
        send::{Connections, Failure, Outgoing, Reply, send},
    },
    worker::RequestId,
};

/// The body of an answer.
pub(crate) enum Answer {
    /// All of it is there.
    Whole { data: Option<Bytes>, record: Record },
    /// It comes from a backend.
    Passed { body: AnswerBody, record: Record },
    /// The connection becomes a tunnel; the record is the tunnel's.
    Tunnel,
}

/// What comes of a request that was not refused.
enum Passed {
    Fixed(Response<Bytes>),
    Answered(Response<AnswerBody>),
    Granted {
        response: Response<()>,
        backend: tokio::net::TcpStream,
        read: Bytes,
        flight: crate::watch::Entry<Flight>,
    },
}

/// Answers a request.
pub(crate) async fn serve(peer: &Rc<Peer>, request: Request<Incoming>) -> Response<Answer> {
    let mut record = Record::begin(peer);
    let (head, body) = request.into_parts();
    let method = head.method.clone();
    let accept = head.headers.get(header::ACCEPT).cloned();
    let may_upgrade = head.headers.contains_key(header::UPGRADE);
    let outcome = {
        let passing = pin!(pass(peer, head, body, &mut record));
        contain(passing).await
    };
    let outcome = outcome.unwrap_or_else(|Panicked| {
        peer.worker.metrics.panics.add(1);
        tracing::error!(request.id = %record.id, "a request failed by a defect of this program and was refused");
        Err(Refusal::Internal)
    });
    let granted = matches!(outcome, Ok(Passed::Granted { .. }));
    if may_upgrade && peer.version == Version::Http1 {
        peer.control.decide(if granted {
            control::Upgrade::Granted
        } else {
            control::Upgrade::Refused
        });
    }
    match outcome {
        Ok(Passed::Fixed(response)) => {
            record.passed(response.status(), None);
            let response = response.map(|data| Answer::Whole {
                data: Some(data),
                record,
            });
            end_if_closing(peer, response)
        }
        Ok(Passed::Answered(response)) => {
            record.passed(response.status(), Some(response.body().flight()));
            let response = response.map(|body| Answer::Passed { body, record });
            end_if_closing(peer, response)
        }
        Ok(Passed::Granted {
            response,
            backend,
            read,
            flight,
        }) => {
            record.passed(response.status(), Some(flight.share()));
            *peer.tunnel.borrow_mut() = Some(Tunnel {
                backend,
                read,
                flight,
                record,
            });
            response.map(|()| Answer::Tunnel)
        }
        Err(reason) => refuse(peer, reason, Shown::of(accept.as_ref()), &method, record),
    }
}

fn refuse(
    peer: &Rc<Peer>,
    reason: Refusal,
    shown: Shown,
    method: &Method,
    mut record: Record,
) -> Response<Answer> {
    record.refused(reason);
    let placeholder = peer.worker.shared.placeholder.as_deref();
    let page = pages::refuse(reason, shown, method, &record.id.to_string(), placeholder);
    let mut response = page.map(|data| Answer::Whole {
        data: Some(data),
        record,
    });
    match peer.version {
        Version::Http1 if reason.closes_connection() => {
            response
                .headers_mut()
                .insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        // Where one stream of many was malformed the others are not to blame. But a connection
        // that does not meet the demands ends, and one that was revoked something (R12).
        Version::Http2 if ends_http2(reason) => peer.control.close(),
        Version::Http1 | Version::Http2 => {}
    }
    end_if_closing(peer, response)
}

const fn ends_http2(reason: Refusal) -> bool {
    matches!(
        reason,
        Refusal::Misdirected | Refusal::HandshakeOutdated | Refusal::Revoked
    )
}

/// On HTTP/1 the last answer of a connection says that it is.
fn end_if_closing<B>(peer: &Peer, mut response: Response<B>) -> Response<B> {
    if peer.version == Version::Http1 && peer.control.closing.get() {
        response
            .headers_mut()
            .insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

/// How often one request is begun. Each beginning but the first takes a change of its route or a
/// kept connection that ended at the wrong moment.
const BEGINNINGS_MAX: u32 = 4;

async fn pass(
    peer: &Rc<Peer>,
    head: Parts,
    body: Incoming,
    record: &mut Record,
) -> Result<Passed, Refusal> {
    if let Some(error) = peer.control.refused() {
        return Err(request::head_refusal(error));
    }
    let shared = &peer.worker.shared;
    let mut body = (!body.is_end_stream()).then_some(body);
    let has_body = body.is_some();
    if peer.version == Version::Http2 {
        request::check_size(&head, &shared.limits)?;
    }
    let asked = request::read(&head, peer.version, peer.scheme, has_body, &shared.defences)?;
    record.asks(&head.method, &asked.host, asked.target.path());
    let mut connections = Connections::Kept;
    for _ in 0..BEGINNINGS_MAX {
        let subject = Subject {
            peer: peer.address,
            method: head.method.clone(),
            host: asked.host.clone(),
            target: asked.target.clone(),
            handshake: Rc::clone(&peer.handshake),
        };
        let admission = Admission::obtain(peer, subject, record.route())?;
        if let Some(fault) = shared.fault {
            fault(head.uri.path());
        }
        if let Some(response) = fixed(&admission, &head.method)? {
            return Ok(Passed::Fixed(response));
        }
        let outgoing = outgoing(peer, &head, &asked, body, &admission, record.id)?;
        let sent = {
            let sending = pin!(send(&peer.worker, &admission, outgoing, connections));
            until_cut(admission.flight(), sending).await
        };
        let sent = sent.map_err(Cut::refusal)?;
        // What was cut while it was sent failed for that reason.
        if let (Err(_), Some(cut)) = (&sent, admission.flight().cut_reason()) {
            return Err(cut.refusal());
        }
        match sent {
            Ok(reply) => {
                return answer(peer, &head, asked.upgrade.as_ref(), reply, admission).await;
            }
            Err(Failure::Refused(reason)) => return Err(reason),
            Err(Failure::Again {
                connections: left,
                body: unsent,
            }) => {
                connections = left;
                body = unsent;
            }
        }
    }
    Err(Refusal::Revoked)
}

/// The request as its backend gets it.
fn outgoing(
    peer: &Rc<Peer>,
    head: &Parts,
    asked: &Asked<'_>,
    body: Option<Incoming>,
    admission: &Admission,
    id: RequestId,
) -> Result<Outgoing, Refusal> {
    let shared = &peer.worker.shared;
    let defences = &shared.defences;
    let filter = forward::request_filter(asked, admission.set());
    let mut headers = forward::kept(&head.headers, &filter, defences);
    let host = forward::host_value(&head.headers, asked)?;
    let upgrade = asked.upgrade.as_ref();
    forward::add_to_request(&mut headers, peer, host, upgrade, filter.edits, id);
    if upgrade.is_none() && trailers::are_asked_for(&head.headers) {
        headers.insert(header::TE, HeaderValue::from_static("trailers"));
        headers.insert(header::CONNECTION, HeaderValue::from_static("te"));
    }
    let body = match body {
        None => ClientBody::Empty,
        Some(incoming) => {
            let length = incoming.size_hint().exact();
            if length.is_some_and(|length| length > shared.limits.body_bytes) {
                return Err(Refusal::BodyTooLarge);
            }
            // On HTTP/1 nothing stands behind a body whose length is known.
            let trailers = if peer.version == Version::Http2 || length.is_none() {
                RequestTrailers::announced(&head.headers, &filter, defences)
            } else {
                RequestTrailers::default()
            };
            if let Some(names) = trailers.announcement() {
                headers.insert(header::TRAILER, names);
            }
            let flight = admission.flight().share();
            ClientBody::Streamed {
                incoming,
                upload: Upload::new(flight, shared.limits.body_bytes, trailers),
            }
        }
    };
    Ok(Outgoing {
        method: head.method.clone(),
        target: asked.target.clone(),
        headers,
        body,
    })
}

/// Turns what the backend answered into what the client gets.
async fn answer(
    peer: &Peer,
    asked: &Parts,
    upgrade: Option<&Upgrade>,
    mut reply: Reply,
    admission: Admission,
) -> Result<Passed, Refusal> {
    let defences = &peer.worker.shared.defences;
    let headers = reply.response.headers_mut();
    forward::check_framing(headers)?;
    let trailers = (headers.contains_key(header::TRANSFER_ENCODING)
        && trailers::are_taken(peer.version, &asked.headers))
    .then(|| AnswerTrailers::of(admission.set(), headers));
    let announced = trailers
        .as_ref()
        .and_then(|trailers| trailers.announcement(headers));
    let status = reply.response.status();
    let edits = admission.set().chain.response_headers();
    let granted = upgrade
        .filter(|upgrade| forward::grants(upgrade, status, reply.response.headers(), defences));
    if status == StatusCode::SWITCHING_PROTOCOLS && granted.is_none() {
        return Err(Refusal::UpstreamInvalid);
    }
    let headers = reply.response.headers_mut();
    forward::response_headers(headers, edits, &asked.method, status)?;
    if let Some(names) = announced {
        headers.insert(header::TRAILER, names);
    }
    let Some(Upgrade { protocol, key: _ }) = granted else {
        return Ok(Passed::Answered(
            reply.into_body(trailers, admission.into_flight()),
        ));
    };
    let (mut head, _) = reply.response.into_parts();
    head.headers
        .insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
    head.headers.insert(header::UPGRADE, protocol.clone());
    let flight = admission.into_flight();
    let stream = until_cut(&flight, pin!(reply.lease.into_stream()))
        .await
        .map_err(Cut::refusal)?;
    let (backend, read) = stream.ok_or(Refusal::UpstreamInvalid)?;
    let mut response = Response::new(());
    *response.status_mut() = status;
    *response.headers_mut() = head.headers;
    Ok(Passed::Granted {
        response,
        backend,
        read,
        flight,
    })
}

/// The answer of a backend that is one.
fn fixed(admission: &Admission, method: &Method) -> Result<Option<Response<Bytes>>, Refusal> {
    let BackendKind::HttpResponse {
        status,
        headers,
        body,
    } = &admission.backend().kind
    else {
        return Ok(None);
    };
    let status = StatusCode::from_u16(*status).map_err(|_| Refusal::UpstreamInvalid)?;
    let mut response = Response::new(Bytes::copy_from_slice(body.as_bytes()));
    *response.status_mut() = status;
    for (name, value) in headers {
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| Refusal::UpstreamInvalid)?;
        let value = HeaderValue::from_str(value).map_err(|_| Refusal::UpstreamInvalid)?;
        response.headers_mut().append(name, value);
    }
    let edits = admission.set().chain.response_headers();
    forward::response_headers(response.headers_mut(), edits, method, status)?;
    pages::drop_body_where_none_goes(&mut response, method);
    Ok(Some(response))
}

/// Waits for a future unless the request must end. Futures come here pinned, so that large ones
/// are not copied, and stand in the request's own future once.
pub(crate) async fn until_cut<F: Future>(
    flight: &Flight,
    mut future: Pin<&mut F>,
) -> Result<F::Output, Cut> {
    std::future::poll_fn(|cx| match flight.poll_cut(cx) {
        Poll::Ready(cut) => Poll::Ready(Err(cut)),
        Poll::Pending => future.as_mut().poll(cx).map(Ok),
    })
    .await
}

/// A panic was caught; the panic hook has told of it.
struct Panicked;

/// Contains panics: what panicked is never polled again.
async fn contain<F: Future>(mut future: Pin<&mut F>) -> Result<F::Output, Panicked> {
    std::future::poll_fn(
        |cx| match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(cx))) {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(output)) => Poll::Ready(Ok(output)),
            Err(_) => Poll::Ready(Err(Panicked)),
        },
    )
    .await
}

impl Body for Answer {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        match &mut *self {
            Self::Whole { data, record } => {
                Poll::Ready(data.take().filter(|data| !data.is_empty()).map(|data| {
                    record.sent(data.len());
                    Ok(Frame::data(data))
                }))
            }
            Self::Passed { body, record } => {
                let polled = Pin::new(body).poll_frame(cx);
                match &polled {
                    Poll::Ready(Some(Ok(frame))) => {
                        record.sent(frame.data_ref().map_or(0, Bytes::len))
                    }
                    Poll::Ready(Some(Err(BodyError::Cut(cut)))) => record.cut(*cut),
                    Poll::Ready(Some(Err(BodyError::Broken(_)))) => record.broke(),
                    Poll::Ready(None) | Poll::Pending => {}
                }
                polled
            }
            Self::Tunnel => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole { data, record: _ } => data.as_ref().is_none_or(Bytes::is_empty),
            Self::Passed { body, record: _ } => body.is_end_stream(),
            Self::Tunnel => true,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole { data, record: _ } => {
                SizeHint::with_exact(data.as_ref().map_or(0, |data| data.len() as u64))
            }
            Self::Passed { body, record: _ } => body.size_hint(),
            Self::Tunnel => SizeHint::with_exact(0),
        }
    }
}
