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
    trailers::AnswerTrailers,
    watch::Entry,
    worker::Worker,
};

/// Endpoints that one request tries.
const TRIES_MAX: usize = 3;

/// Which connections a request may go out on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Connections {
    /// Kept ones, if there are any.
    Kept,
    /// New ones: a kept one has failed it.
    New,
}

/// Why there is no answer.
#[derive(Debug)]
pub(crate) enum Failure {
    Refused(Refusal),
    /// The request was not sent, or may be sent twice: it is judged anew and begun again, since
    /// the table may be another by now (R12).
    Again {
        connections: Connections,
        body: Option<Incoming>,
    },
}

impl From<Refusal> for Failure {
    fn from(reason: Refusal) -> Self {
        Self::Refused(reason)
    }
}

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
    pub(crate) fn into_body(
        self,
        trailers: Option<AnswerTrailers>,
        flight: Entry<Flight>,
    ) -> Response<AnswerBody> {
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
        response.map(|incoming| AnswerBody::new(incoming, driver, trailers, flight))
    }
}

/// Sends the request and waits for the head of the answer.
pub(crate) async fn send(
    worker: &Rc<Worker>,
    admission: &Admission,
    outgoing: Outgoing,
    connections: Connections,
) -> Result<Reply, Failure> {
    let resolved;
    let endpoints: &[SocketAddr] = match &admission.backend().kind {
        BackendKind::TunnelGroup { labels: _ } => &admission.backend().endpoints,
        BackendKind::Static { address } => {
            resolved = resolve::endpoints(worker, address).await?;
            &resolved
        }
        // Answered without a connection, before it comes to this.
        BackendKind::HttpResponse { .. } => return Err(Refusal::Internal.into()),
    };
    if endpoints.is_empty() {
        return Err(Refusal::NoEndpoints.into());
    }
    let mut attempt = Attempt {
        worker,
        admission,
        connections,
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

/// Whether a request may be sent twice (RFC 9110 section 9.2.2).
fn is_repeatable(request: &Request<ClientBody>) -> bool {
    matches!(request.body(), ClientBody::Empty)
        && matches!(
            *request.method(),
            Method::GET | Method::HEAD | Method::OPTIONS | Method::PUT | Method::DELETE
        )
}

/// How one exchange fails.
enum Broken {
    /// Nothing was sent.
    Unsent(Box<Request<ClientBody>>),
    /// It may have been sent. Whether anything was heard.
    Sent { heard: bool },
}

struct Attempt<'a> {
    worker: &'a Rc<Worker>,
    admission: &'a Admission,
    connections: Connections,
    endpoints: &'a [SocketAddr],
    tried: Vec<SocketAddr>,
    failure: Refusal,
}

impl Attempt<'_> {
    async fn run(&mut self, mut request: Request<ClientBody>) -> Result<Reply, Failure> {
        let pool = &self.worker.pool;
        // Ends: each round takes a kept connection out of the pool, or tries an endpoint.
        while self.tried.len() < TRIES_MAX {
            let Some(address) = pool.choose(self.endpoints, &self.tried) else {
                return Err(self.failure.into());
            };
            let kept = match self.connections {
                Connections::Kept => pool.reuse(address),
                Connections::New => None,
            };
            request = match kept {
                Some(lease) => {
                    let repeatable = is_repeatable(&request);
                    match self.exchange(lease, request).await {
                        Ok(reply) => return Ok(reply),
                        Err(Broken::Unsent(unsent)) => *unsent,
                        Err(Broken::Sent { heard: false }) if repeatable => {
                            // The backend had ended the connection before the request reached it,
                            // in all likelihood.
                            self.worker.metrics.upstream_retries.add(1);
                            return Err(Failure::Again {
                                connections: Connections::New,
                                body: None,
                            });
                        }
                        Err(Broken::Sent { heard: _ }) => {
                            return Err(Refusal::UpstreamInvalid.into());
                        }
                    }
                }
                None => match pool.connect(address).await {
                    Ok(lease) => match self.exchange(lease, request).await {
                        Ok(reply) => return Ok(reply),
                        Err(Broken::Unsent(unsent)) => {
                            self.failed(address, Refusal::UpstreamUnreachable);
                            *unsent
                        }
                        Err(Broken::Sent { heard: _ }) => {
                            return Err(Refusal::UpstreamInvalid.into());
                        }
                    },
                    Err(error) => {
                        self.failed(address, refusal(&error));
                        request
                    }
                },
            };
            self.worker.metrics.upstream_retries.add(1);
            if !self.admission.is_in_force(self.worker) {
                return Err(Failure::Again {
                    connections: self.connections,
                    body: request.into_body().into_incoming(),
                });
            }
        }
        Err(self.failure.into())
    }

    fn failed(&mut self, address: SocketAddr, why: Refusal) {
        tracing::debug!(endpoint.address = %address, reason = why.label(), "an endpoint was not reached");
        self.worker.pool.shun(address);
        self.tried.push(address);
        self.failure = why;
    }

    /// One exchange.
    async fn exchange(
        &self,
        mut lease: Lease,
        request: Request<ClientBody>,
    ) -> Result<Reply, Broken> {
        let flight = self.admission.flight();
        if matches!(request.body(), ClientBody::Empty) {
            flight.upload_ended();
        }
        flight.await_backend(Awaiting::Head);
        match lease.exchange(request).await {
            Ok(response) => {
                flight.backend_progressed();
                Ok(Reply { response, lease })
            }
            Err(mut error) => Err(match error.take_message() {
                Some(unsent) => Broken::Unsent(Box::new(unsent)),
                None => Broken::Sent {
                    heard: lease.has_heard(),
                },
            }),
        }
    }
}

const fn refusal(error: &DialError) -> Refusal {
    match error {
        DialError::Forbidden => Refusal::UpstreamForbidden,
        DialError::Connect(_) => Refusal::UpstreamUnreachable,
        DialError::Timeout => Refusal::UpstreamTimeout,
    }
}
