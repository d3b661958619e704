//! The two bodies that pass through: the client's on its way to a backend, and the answer.
//!
//! Both go through in the pieces in which they are read; what holds them in memory is one read
//! buffer each. What comes behind them goes by the rules of `trailers`.

use std::{
    error::Error,
    io,
    pin::Pin,
    rc::Rc,
    task::{Context, Poll},
};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use tokio::task::JoinHandle;

use super::pool::Lease;
use crate::{
    codec::head::HeadError,
    flight::{Awaiting, Cut, Flight},
    serve_http::until_cut,
    trailers::{AnswerTrailers, RequestTrailers},
    watch::Entry,
};

/// Why a body ends before its end.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BodyError {
    #[error("the message broke off")]
    Broken(#[source] hyper::Error),
    #[error(transparent)]
    Cut(#[from] Cut),
}

/// A request's body on its way to a backend.
#[derive(Debug)]
pub(crate) enum ClientBody {
    Empty,
    Streamed { incoming: Incoming, upload: Upload },
}

/// What is to know of a body while it is passed on.
#[derive(Debug)]
pub(crate) struct Upload {
    flight: Rc<Flight>,
    /// How much may still come.
    left: u64,
    trailers: RequestTrailers,
}

impl Upload {
    pub(crate) fn new(flight: Rc<Flight>, bytes_max: u64, trailers: RequestTrailers) -> Self {
        Self {
            flight,
            left: bytes_max,
            trailers,
        }
    }

    /// Counts bytes; a client that sends more than it may is cut.
    fn take(&mut self, bytes: usize) -> Result<(), Cut> {
        self.flight.client_progressed(bytes);
        match self.left.checked_sub(bytes as u64) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => {
                self.flight.cut(Cut::TooLarge);
                Err(Cut::TooLarge)
            }
        }
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        self.flight.upload_ended();
    }
}

impl ClientBody {
    /// The client's body, when nothing of it was passed on.
    pub(crate) fn into_incoming(self) -> Option<Incoming> {
        match self {
            Self::Empty => None,
            Self::Streamed {
                incoming,
                upload: _,
            } => Some(incoming),
        }
    }
}

impl Body for ClientBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let Self::Streamed { incoming, upload } = &mut *self else {
            return Poll::Ready(None);
        };
        let polled = Pin::new(incoming).poll_frame(cx);
        match polled {
            Poll::Pending => {
                upload.flight.await_client();
                Poll::Pending
            }
            Poll::Ready(Some(Ok(mut frame))) => {
                if let Some(trailers) = frame.trailers_mut() {
                    upload.flight.upload_ended();
                    upload.trailers.filter(trailers);
                }
                let taken = upload.take(frame.data_ref().map_or(0, Bytes::len));
                Poll::Ready(Some(taken.map(|()| frame).map_err(BodyError::from)))
            }
            Poll::Ready(Some(Err(error))) => {
                // The client's fault, and not to be told as one of the backend, which sees half
                // a body.
                upload.flight.cut(if is_malformed(&error) {
                    Cut::Malformed
                } else {
                    Cut::Client
                });
                Poll::Ready(Some(Err(BodyError::Broken(error))))
            }
            Poll::Ready(None) => {
                upload.flight.upload_ended();
                Poll::Ready(None)
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Empty => true,
            Self::Streamed { incoming, .. } => incoming.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Empty => SizeHint::with_exact(0),
            // Only a body of unknown length has a place for trailers on HTTP/1.
            Self::Streamed { upload, .. } if !upload.trailers.is_empty() => SizeHint::default(),
            Self::Streamed { incoming, .. } => incoming.size_hint(),
        }
    }
}

/// Whether the guard has refused what stands in a body.
fn is_malformed(error: &(dyn Error + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(error) = next {
        let refused = error
            .downcast_ref::<io::Error>()
            .and_then(io::Error::get_ref);
        if refused.is_some_and(|inner| inner.is::<HeadError>()) {
            return true;
        }
        next = error.source();
    }
    false
}

/// Who drives the connection that an answer comes from.
pub(crate) enum Driver {
    /// The answer's body itself.
    Body(Lease),
    /// A task of its own: the client still sends, and may not take the answer before it is done.
    Task(AbortOnDrop),
    /// Nobody; it has been given back.
    Nobody,
}

/// A task that ends with whoever holds this.
pub(crate) struct AbortOnDrop(pub(crate) JoinHandle<()>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// A backend's body on its way to the client.
pub(crate) struct AnswerBody {
    incoming: Incoming,
    driver: Driver,
    /// Absent where the client takes none.
    trailers: Option<AnswerTrailers>,
    flight: Rc<Flight>,
    /// Its place among those in flight, for as long as this drives the request.
    entry: Option<Entry<Flight>>,
}

impl AnswerBody {
    pub(crate) fn new(
        incoming: Incoming,
        driver: Driver,
        trailers: Option<AnswerTrailers>,
        entry: Entry<Flight>,
    ) -> Self {
        let mut body = Self {
            incoming,
            driver,
            trailers,
            flight: entry.share(),
            entry: Some(entry),
        };
        if body.incoming.is_end_stream() {
            body.ended();
        }
        body
    }

    pub(crate) fn flight(&self) -> Rc<Flight> {
        Rc::clone(&self.flight)
    }

    fn ended(&mut self) {
        self.flight.backend_progressed();
        match std::mem::replace(&mut self.driver, Driver::Nobody) {
            Driver::Body(lease) if self.flight.is_upload_ended() => lease.give_back(),
            Driver::Task(task) => self.finish_upload(task),
            Driver::Body(_) | Driver::Nobody => {}
        }
    }

    /// The answer is whole, and the client still sends. Ending the upload now could cost it the
    /// answer, which it reads only when it is done; so the upload goes on, as much in flight as
    /// before.
    fn finish_upload(&mut self, mut task: AbortOnDrop) {
        if let Some(entry) = self.entry.take() {
            entry.taken();
            entry.await_backend(Awaiting::Body);
            tokio::task::spawn_local(async move {
                // Whether it ended or was cut: it is over.
                let _ = until_cut(&entry, Pin::new(&mut task.0)).await;
            });
        }
    }

    fn drive(&mut self, cx: &mut Context<'_>) {
        if let Driver::Body(lease) = &mut self.driver {
            lease.drive(cx);
        }
    }
}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        if self.entry.is_some()
            && let Poll::Ready(cut) = self.flight.poll_cut(cx)
        {
            return Poll::Ready(Some(Err(cut.into())));
        }
        self.flight.taken();
        let mut polled = Pin::new(&mut self.incoming).poll_frame(cx);
        if polled.is_pending() {
            self.drive(cx);
            polled = Pin::new(&mut self.incoming).poll_frame(cx);
        }
        match polled {
            Poll::Pending => {
                self.flight.await_backend(Awaiting::Body);
                Poll::Pending
            }
            Poll::Ready(Some(Ok(mut frame))) => {
                if let Some(trailers) = frame.trailers_mut() {
                    // Nothing comes behind them, and nobody may ask for it.
                    self.ended();
                    match &self.trailers {
                        Some(rules) => rules.filter(trailers),
                        None => trailers.clear(),
                    }
                    if trailers.is_empty() {
                        return Poll::Ready(None);
                    }
                    return Poll::Ready(Some(Ok(frame)));
                }
                self.flight.backend_progressed();
                self.flight.handed_over();
                if self.incoming.is_end_stream() {
                    self.ended();
                }
                Poll::Ready(Some(Ok(frame)))
            }
            Poll::Ready(Some(Err(error))) => Poll::Ready(Some(Err(BodyError::Broken(error)))),
            Poll::Ready(None) => {
                self.ended();
                Poll::Ready(None)
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.incoming.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.incoming.size_hint()
    }
}

impl Drop for AnswerBody {
    fn drop(&mut self) {
        // The client may be satisfied with the last byte and never ask for the end.
        if self.incoming.is_end_stream() {
            self.ended();
        }
    }
}
