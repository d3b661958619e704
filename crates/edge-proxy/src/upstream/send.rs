//! Sends an admitted request to one of its backend's endpoints.
//!
//! Takes an [`Admission`] and nothing less: there is no way to a backend but through the chain.

use std::{net::SocketAddr, rc::Rc, task::Poll};

use http::{HeaderMap, Method, Request, Response, Uri, Version, uri::PathAndQuery};
use hyper::body::Incoming;
use model::backend::BackendKind;
use routing::refusal::Refusal;

use super::{
    body::{AbortOnDrop, AnswerBody, ClientBody, Driver},
    dial::DialError,
    pool::Lease,
    resolve,
};
use crate::{
    admission::Admission,
    flight::{Awaiting, Flight},
    watch::{Entry, Tick},
    worker::Worker,
};

/// Endpoints that one request tries.
const TRIES_MAX: usize = 3;
/// A connection that was idle for so long may have been closed by the other side meanwhile; one
/// that was not is not worth a copy of the request.
const STALE_MS: Tick = 100;

/// A request as the backend gets it.
pub(crate) struct Outgoing {
    pub(crate) method: Method,
    pub(crate) target: PathAndQuery,
    pub(crate) headers: HeaderMap,
    pub(crate) body: ClientBody,
}

/// What a backend answers.
pub(crate) struct Reply {
    pub(crate) response: Response<Incoming>,
    pub(crate) lease: Lease,
}

impl Reply {
    /// The answer's body, which drives the connection from now on.
    pub(crate) fn into_body(self, flight: Entry<Flight>) -> Response<AnswerBody> {
        let Self {
            response,
            mut lease,
        } = self;
        let driver = if flight.is_upload_ended() {
            Driver::Body(lease)
        } else {
            // The client still sends, and may take nothing until it is done.
            let drive = async move {
                std::future::poll_fn(|cx| {
                    if lease.drive(cx) {
                        Poll::Pending
                    } else {
                        Poll::Ready(())
                    }
                })
                .await;
            };
            Driver::Task(AbortOnDrop(tokio::task::spawn_local(drive)))
        };
        response.map(|incoming| AnswerBody::new(incoming, driver, flight))
    }
}

/// Sends the request and waits for the head of the answer.
pub(crate) async fn send(
    worker: &Rc<Worker>,
    admission: &Admission,
    outgoing: Outgoing,
) -> Result<Reply, Refusal> {
    let resolved;
    let endpoints: &[SocketAddr] = match &admission.backend().kind {
        BackendKind::TunnelGroup { labels: _ } => &admission.backend().endpoints,
        BackendKind::Static { address } => {
            resolved = resolve::endpoints(worker, address).await?;
            &resolved
        }
        // Answered without a connection, before it comes to this.
        BackendKind::HttpResponse { .. } => return Err(Refusal::Internal),
    };
    if endpoints.is_empty() {
        return Err(Refusal::NoEndpoints);
    }
    let mut attempt = Attempt {
        worker,
        flight: admission.flight(),
        endpoints,
        tried: Vec::new(),
        failure: Refusal::UpstreamUnreachable,
    };
    attempt.run(request(outgoing)).await
}

fn request(outgoing: Outgoing) -> Request<ClientBody> {
    let Outgoing {
        method,
        target,
        headers,
        body,
    } = outgoing;
    let mut request = Request::new(body);
    *request.method_mut() = method;
    *request.uri_mut() = Uri::from(target);
    *request.version_mut() = Version::HTTP_11;
    *request.headers_mut() = headers;
    request
}

/// The same request once more, if it may be sent twice.
fn copy(request: &Request<ClientBody>) -> Option<Request<ClientBody>> {
    let repeatable = matches!(request.body(), ClientBody::Empty)
        && matches!(
            *request.method(),
            Method::GET | Method::HEAD | Method::OPTIONS | Method::PUT | Method::DELETE
        );
    repeatable.then(|| {
        let mut copy = Request::new(ClientBody::Empty);
        copy.method_mut().clone_from(request.method());
        copy.uri_mut().clone_from(request.uri());
        copy.headers_mut().clone_from(request.headers());
        *copy.version_mut() = request.version();
        copy
    })
}

struct Attempt<'a> {
    worker: &'a Rc<Worker>,
    flight: &'a Entry<Flight>,
    endpoints: &'a [SocketAddr],
    tried: Vec<SocketAddr>,
    failure: Refusal,
}

impl Attempt<'_> {
    async fn run(&mut self, mut request: Request<ClientBody>) -> Result<Reply, Refusal> {
        let pool = &self.worker.pool;
        let mut reuse = true;
        while self.tried.len() < TRIES_MAX {
            let Some(address) = pool.choose(self.endpoints, &self.tried) else {
                return Err(self.failure);
            };
            // Ends: each round takes a kept connection out of the pool, or tries an endpoint.
            if let Some((lease, idle)) = if reuse { pool.reuse(address) } else { None } {
                let copy = if idle >= STALE_MS {
                    copy(&request)
                } else {
                    None
                };
                request = match self.exchange(lease, request).await {
                    Ok(reply) => return Ok(reply),
                    Err(Some(unsent)) => unsent,
                    Err(None) => {
                        // It may have been sent: once more, and not on a kept connection again.
                        reuse = false;
                        copy.ok_or(Refusal::UpstreamInvalid)?
                    }
                };
                self.worker.metrics.upstream_retries.add(1);
                continue;
            }
            match pool.connect(address).await {
                Ok(lease) => match self.exchange(lease, request).await {
                    Ok(reply) => return Ok(reply),
                    Err(Some(unsent)) => {
                        request = unsent;
                        self.failed(address, Refusal::UpstreamUnreachable);
                    }
                    Err(None) => return Err(Refusal::UpstreamInvalid),
                },
                Err(DialError::Forbidden) => self.failed(address, Refusal::UpstreamForbidden),
                Err(DialError::Connect(_)) => self.failed(address, Refusal::UpstreamUnreachable),
                Err(DialError::Timeout) => self.failed(address, Refusal::UpstreamTimeout),
            }
        }
        Err(self.failure)
    }

    fn failed(&mut self, address: SocketAddr, why: Refusal) {
        tracing::debug!(endpoint.address = %address, reason = why.label(), "an endpoint was not reached");
        self.worker.pool.shun(address);
        self.tried.push(address);
        self.failure = why;
    }

    /// One exchange; a failure gives back the request if none of it was sent.
    async fn exchange(
        &self,
        mut lease: Lease,
        request: Request<ClientBody>,
    ) -> Result<Reply, Option<Request<ClientBody>>> {
        if matches!(request.body(), ClientBody::Empty) {
            self.flight.upload_ended();
        }
        self.flight.await_backend(Awaiting::Head);
        match lease.exchange(request).await {
            Ok(response) => {
                self.flight.backend_progressed();
                Ok(Reply { response, lease })
            }
            Err(mut error) => Err(error.take_message()),
        }
    }
}
