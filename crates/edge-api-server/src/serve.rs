//! Connections: accepted with a limit, encrypted off loopback, ended in order.

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use axum::{Extension, Router};
use edge_store::Store;
use hyper::server::conn::http1;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore, watch},
    task::JoinSet,
    time::timeout,
};
use tokio_rustls::TlsAcceptor;

use crate::{Api, Options, answer::chain, router, seat::Peer};

/// Bytes of a request's head.
const HEAD_BYTES_MAX: usize = 32 << 10;
/// How long to wait after the system could not give a connection (no file handle left).
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Why the API cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Keys would travel in the clear.
    #[error("{0} is not a loopback address: without TLS the API is served on loopback only")]
    PlainBeyondLoopback(SocketAddr),
    /// The listener is none.
    #[error("the API's listener cannot be used")]
    Listener(#[source] io::Error),
}

/// Serves the edge API until `shutdown` turns true or its sender goes away; then no connection is
/// accepted, no call begun, and those under way have the drain time to end.
///
/// # Errors
/// When the listener cannot be used, or would serve plain HTTP beyond loopback.
pub async fn serve(
    listener: TcpListener,
    store: Store,
    options: Options,
    mut shutdown: watch::Receiver<bool>,
) -> Result<(), ServeError> {
    let address = listener.local_addr().map_err(ServeError::Listener)?;
    if options.tls.is_none() && !address.ip().is_loopback() {
        return Err(ServeError::PlainBeyondLoopback(address));
    }
    let acceptor = options.tls.clone().map(TlsAcceptor::from);
    let (head_timeout, drain_timeout) = (options.head_timeout, options.drain_timeout);
    let free = Arc::new(Semaphore::new(options.connections_max));
    let api = Api::new(store, options);
    let router = router(api.clone());
    let mut number = 0;
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = accept(&listener, &free) => accepted,
            _ended = shutdown.wait_for(|stop| *stop) => break,
            Some(_ended) = connections.join_next() => continue,
        };
        let Some((stream, address, permit)) = accepted else {
            continue;
        };
        number += 1;
        let peer = Peer { number, address };
        let connection = Connection {
            router: router.clone().layer(Extension(peer.clone())),
            head_timeout,
            shutdown: shutdown.clone(),
        };
        let (acceptor, api) = (acceptor.clone(), api.clone());
        connections.spawn(async move {
            connection.serve(stream, acceptor).await;
            api.seat.leave(&peer);
            drop(permit);
        });
    }
    drop(listener);
    let drained = async { while connections.join_next().await.is_some() {} };
    if timeout(drain_timeout, drained).await.is_err() {
        tracing::warn!("API calls were still under way when the time to end was over");
    }
    Ok(())
}

/// The next connection, once there is room for it.
async fn accept(
    listener: &TcpListener,
    free: &Arc<Semaphore>,
) -> Option<(TcpStream, SocketAddr, OwnedSemaphorePermit)> {
    let permit = Arc::clone(free).acquire_owned().await.ok()?;
    match listener.accept().await {
        Ok((stream, address)) => Some((stream, address, permit)),
        Err(error) => {
            tracing::warn!(error = %chain(&error), "an API connection could not be accepted");
            tokio::time::sleep(ACCEPT_PAUSE).await;
            None
        }
    }
}

struct Connection {
    router: Router,
    head_timeout: Duration,
    shutdown: watch::Receiver<bool>,
}

impl Connection {
    async fn serve(self, stream: TcpStream, acceptor: Option<TlsAcceptor>) {
        // Answers are small and whole; waiting for more to send only delays them.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "TCP_NODELAY could not be set");
        }
        let ended = match acceptor {
            None => self.http(stream).await,
            Some(acceptor) => match timeout(self.head_timeout, acceptor.accept(stream)).await {
                Err(_late) => return,
                Ok(Err(error)) => {
                    tracing::debug!(%error, "a TLS handshake with the API failed");
                    return;
                }
                Ok(Ok(stream)) => self.http(stream).await,
            },
        };
        if let Err(error) = ended {
            tracing::debug!(error = %chain(&error), "an API connection ended early");
        }
    }

    async fn http<S>(mut self, stream: S) -> hyper::Result<()>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(self.head_timeout)
            .max_buf_size(HEAD_BYTES_MAX)
            .serve_connection(TokioIo::new(stream), TowerToHyperService::new(self.router));
        let mut connection = std::pin::pin!(connection);
        tokio::select! {
            ended = connection.as_mut() => return ended,
            _ended = self.shutdown.wait_for(|stop| *stop) => {}
        }
        connection.as_mut().graceful_shutdown();
        connection.await
    }
}
