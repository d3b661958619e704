//! A client's connection, from its handshake to its end.

use std::{
    cell::RefCell,
    convert::Infallible,
    future::Future,
    net::{IpAddr, SocketAddr},
    pin::pin,
    rc::Rc,
    task::Poll,
    time::Duration,
};

use http::HeaderValue;
use hyper::{
    server::conn::{http1, http2},
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use model::{address::canonical, module::TlsVersion};
use routing::{
    host::{Scheme, Version},
    table::Handshake,
};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

use crate::{
    codec::{control::Control, guard::Guard, head::HeadLimits},
    plain, serve_http,
    socket::Socket,
    tls::TlsError,
    tunnel::Tunnel,
    watch::Entry,
    worker::Worker,
};

/// Bytes of heads, and of what is read at once, that the parser of a connection holds.
const BUFFER_BYTES_MAX: usize = 64 * 1024;
/// Bytes of an HTTP/2 connection, and of each of its streams, that a client may send unasked.
const H2_CONNECTION_WINDOW: u32 = 1024 * 1024;
const H2_STREAM_WINDOW: u32 = 256 * 1024;
/// Bytes that wait to be sent on an HTTP/2 stream.
const H2_SEND_BYTES_MAX: usize = 64 * 1024;
/// Streams that a client opened and reset and that are still being dealt with (rapid reset).
const H2_RESETS_MAX: usize = 32;
const H2_PING_EVERY: Duration = Duration::from_secs(30);
/// How much a client may still send while it is told that its connection ends, and for how long.
const LINGER_BYTES_MAX: u64 = 8 * 1024 * 1024;
const LINGER: Duration = Duration::from_secs(3);

/// What the requests of one connection share.
pub(crate) struct Peer {
    pub(crate) worker: Rc<Worker>,
    pub(crate) control: Rc<Control>,
    /// Canonical.
    pub(crate) address: IpAddr,
    /// The address as backends are told.
    pub(crate) forwarded_for: HeaderValue,
    pub(crate) handshake: Rc<Handshake>,
    pub(crate) version: Version,
    pub(crate) scheme: Scheme,
    /// What the connection becomes when the upgrade that was granted is written.
    pub(crate) tunnel: RefCell<Option<Tunnel>>,
}

impl Peer {
    fn new(
        worker: Rc<Worker>,
        entry: &Entry<Control>,
        address: SocketAddr,
        handshake: Rc<Handshake>,
        version: Version,
        scheme: Scheme,
    ) -> Rc<Self> {
        let address = if worker.shared.defences.addresses {
            canonical(address.ip())
        } else {
            address.ip()
        };
        let text = address.to_string();
        Rc::new(Self {
            worker,
            control: entry.share(),
            address,
            forwarded_for: HeaderValue::try_from(text)
                .unwrap_or(HeaderValue::from_static("unknown")),
            handshake,
            version,
            scheme,
            tunnel: RefCell::default(),
        })
    }
}

/// Counts a handshake for as long as it takes.
struct Handshaking<'w>(&'w Worker);

impl<'w> Handshaking<'w> {
    fn begin(worker: &'w Worker) -> Self {
        worker.handshakes.set(worker.handshakes.get() + 1);
        Self(worker)
    }
}

impl Drop for Handshaking<'_> {
    fn drop(&mut self) {
        self.0
            .handshakes
            .set(self.0.handshakes.get().saturating_sub(1));
    }
}

/// Serves a connection to the HTTPS port.
pub(crate) async fn https(worker: Rc<Worker>, stream: TcpStream, address: SocketAddr) {
    let accepted = {
        let _counted = Handshaking::begin(&worker);
        worker
            .tls
            .accept(stream, &worker.store, worker.shared.timeouts.handshake)
            .await
    };
    let accepted = match accepted {
        Ok(accepted) => accepted,
        Err(error) => {
            worker.metrics.handshakes_failed.add(1);
            report(&error);
            return;
        }
    };
    worker.clock.refresh();
    let entry = worker
        .connections
        .enter(Control::new(Rc::clone(&worker.clock), accepted.is_http2));
    if worker.draining.get() {
        entry.close();
    }
    let version = if accepted.is_http2 {
        Version::Http2
    } else {
        Version::Http1
    };
    let peer = Peer::new(
        worker,
        &entry,
        address,
        Rc::new(accepted.handshake),
        version,
        Scheme::Https,
    );
    match version {
        Version::Http1 => http_1(peer, accepted.stream).await,
        Version::Http2 => http_2(peer, accepted.stream).await,
    }
}

/// What a client did wrong is its business; what we cannot do is the operator's.
fn report(error: &TlsError) {
    match error {
        TlsError::Failed(_) | TlsError::UnknownName | TlsError::Timeout => {
            tracing::debug!(error = error as &dyn std::error::Error, "handshake failed");
        }
        TlsError::Authority(_) => {
            tracing::error!(
                error = error as &dyn std::error::Error,
                "no certificate can be shown"
            );
        }
    }
}

fn head_limits(worker: &Worker) -> HeadLimits {
    let limits = worker.shared.limits;
    HeadLimits {
        head_bytes: limits.head_bytes,
        target_bytes: limits.target_bytes,
        headers: limits.headers,
    }
}

fn http1_builder() -> http1::Builder {
    let mut builder = http1::Builder::new();
    builder.half_close(false).max_buf_size(BUFFER_BYTES_MAX);
    builder
}

async fn http_1<IO: AsyncRead + AsyncWrite + Unpin + 'static>(peer: Rc<Peer>, stream: IO) {
    let worker = &peer.worker;
    let guard = Guard::new(
        stream,
        Rc::clone(&peer.control),
        head_limits(worker),
        worker.shared.defences,
    );
    let service = service_fn(|request| {
        let peer = Rc::clone(&peer);
        async move { Ok::<_, Infallible>(serve_http::serve(&peer, request).await) }
    });
    let connection = http1_builder()
        .serve_connection(TokioIo::new(guard), service)
        .without_shutdown();
    let Some(Ok(parts)) = until_cut(&peer.control, connection).await else {
        return;
    };
    let (stream, held) = parts.io.into_inner().into_parts();
    let tunnel = peer.tunnel.borrow_mut().take();
    match tunnel {
        Some(tunnel) => tunnel.run(worker, stream, &[&parts.read_buf, &held]).await,
        None => linger(stream).await,
    }
}

/// Drives a connection until it ends or must; `None` then.
async fn until_cut<F: Future>(control: &Control, connection: F) -> Option<F::Output> {
    let mut connection = pin!(connection);
    std::future::poll_fn(|cx| {
        control.driver.hear(cx.waker());
        if control.cut.get() {
            return Poll::Ready(None);
        }
        connection.as_mut().poll(cx).map(Some)
    })
    .await
}

/// Ends a connection so that the client still reads the last answer: closing while bytes of the
/// client's are unread would make the kernel throw it away (RFC 9112 section 9.6).
async fn linger<IO: AsyncRead + AsyncWrite + Unpin>(mut stream: IO) {
    let farewell = async {
        stream.shutdown().await?;
        let mut unread = stream.take(LINGER_BYTES_MAX);
        tokio::io::copy(&mut unread, &mut tokio::io::sink()).await
    };
    // However it ends, it has ended.
    let _ = timeout(LINGER, farewell).await;
}

/// Runs the streams of HTTP/2 connections on the worker's own thread.
#[derive(Clone, Copy, Debug)]
struct Here;

impl<F> hyper::rt::Executor<F> for Here
where
    F: Future + 'static,
    F::Output: 'static,
{
    fn execute(&self, future: F) {
        tokio::task::spawn_local(future);
    }
}

async fn http_2<IO: AsyncRead + AsyncWrite + Unpin + 'static>(peer: Rc<Peer>, stream: IO) {
    let worker = &peer.worker;
    let limits = worker.shared.limits;
    let watched = Guard::unjudged(
        stream,
        Rc::clone(&peer.control),
        head_limits(worker),
        worker.shared.defences,
    );
    let service = service_fn(|request| {
        let peer = Rc::clone(&peer);
        async move { Ok::<_, Infallible>(serve_http::serve(&peer, request).await) }
    });
    let mut builder = http2::Builder::new(Here);
    builder
        .timer(TokioTimer::new())
        .max_concurrent_streams(limits.streams)
        // Beyond this the codec answers 431 by itself; before, it is ours to answer with a page.
        .max_header_list_size(u32::try_from(limits.head_bytes * 2).unwrap_or(u32::MAX))
        .max_pending_accept_reset_streams(H2_RESETS_MAX)
        .max_local_error_reset_streams(H2_RESETS_MAX)
        .initial_connection_window_size(H2_CONNECTION_WINDOW)
        .initial_stream_window_size(H2_STREAM_WINDOW)
        .max_send_buf_size(H2_SEND_BYTES_MAX)
        .keep_alive_interval(H2_PING_EVERY)
        .keep_alive_timeout(worker.shared.timeouts.head);
    let mut connection = pin!(builder.serve_connection(TokioIo::new(watched), service));
    let mut told = false;
    std::future::poll_fn(|cx| {
        peer.control.driver.hear(cx.waker());
        if peer.control.cut.get() {
            return Poll::Ready(());
        }
        if peer.control.closing.get() && !std::mem::replace(&mut told, true) {
            connection.as_mut().graceful_shutdown();
        }
        // What went wrong is the client's affair, and its streams have ended with it.
        connection.as_mut().poll(cx).map(drop)
    })
    .await;
}

/// Serves a connection to the plain HTTP port where benchmarks have it serve requests.
pub(crate) async fn in_clear(worker: Rc<Worker>, stream: TcpStream, address: SocketAddr) {
    let entry = worker
        .connections
        .enter(Control::new(Rc::clone(&worker.clock), false));
    if worker.draining.get() {
        entry.close();
    }
    // Nothing that is demanded of a handshake is met.
    let handshake = Rc::new(Handshake {
        server_name: None,
        version: TlsVersion::V1_2,
        authorities: None,
    });
    let peer = Peer::new(
        worker,
        &entry,
        address,
        handshake,
        Version::Http1,
        Scheme::Http,
    );
    http_1(peer, Socket(stream)).await;
}

/// Serves a connection to the plain HTTP port.
pub(crate) async fn http(worker: Rc<Worker>, stream: TcpStream, _: SocketAddr) {
    let entry = worker
        .connections
        .enter(Control::new(Rc::clone(&worker.clock), false));
    if worker.draining.get() {
        entry.close();
    }
    let control = entry.share();
    let guard = Guard::new(
        stream,
        entry.share(),
        head_limits(&worker),
        worker.shared.defences,
    );
    let service = service_fn(|request| {
        std::future::ready(Ok::<_, Infallible>(plain::serve(
            &worker, &control, &request,
        )))
    });
    let connection = http1_builder()
        .serve_connection(TokioIo::new(guard), service)
        .without_shutdown();
    if let Some(Ok(parts)) = until_cut(&control, connection).await {
        linger(parts.io.into_inner().into_parts().0).await;
    }
}
