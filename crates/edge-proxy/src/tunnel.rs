//! An upgraded connection: bytes in both directions until either side, the clock or the table
//! ends it (R12).

use std::{
    io,
    pin::{Pin, pin},
    rc::Rc,
    task::{Context, Poll},
};

use bytes::Bytes;
use tokio::{
    io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf},
    net::TcpStream,
};

use crate::{
    flight::{Awaiting, Flight},
    record::Record,
    serve_http::until_cut,
    watch::Entry,
    worker::Worker,
};

/// A tunnel that has been granted.
pub(crate) struct Tunnel {
    pub(crate) backend: TcpStream,
    /// What the backend said behind its 101.
    pub(crate) read: Bytes,
    pub(crate) flight: Entry<Flight>,
    pub(crate) record: Record,
}

impl Tunnel {
    /// Passes bytes until it ends. `read` is what the client said behind its request, in pieces.
    pub(crate) async fn run<IO: AsyncRead + AsyncWrite + Unpin>(
        self,
        worker: &Rc<Worker>,
        client: IO,
        read: &[&[u8]],
    ) {
        let Self {
            mut backend,
            read: from_backend,
            flight,
            mut record,
        } = self;
        flight.await_backend(Awaiting::Tunnel);
        let mut client = Watched {
            io: client,
            worker,
            flight: &flight,
            sent: 0,
        };
        let pass = async {
            client.write_all(&from_backend).await?;
            for piece in read {
                backend.write_all(piece).await?;
            }
            tokio::io::copy_bidirectional(&mut client, &mut backend).await
        };
        match until_cut(&flight, pin!(pass)).await {
            // A side that breaks off ends the tunnel as one that closes it does.
            Ok(Ok(_) | Err(_)) => {}
            Err(cut) => record.cut(cut),
        }
        record.sent(client.sent);
    }
}

/// The client's side, which shows that the tunnel is in use.
struct Watched<'t, IO> {
    io: IO,
    worker: &'t Rc<Worker>,
    flight: &'t Flight,
    sent: usize,
}

impl<IO: AsyncRead + Unpin> AsyncRead for Watched<'_, IO> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let read = Pin::new(&mut self.io).poll_read(cx, buf);
        let bytes = buf.filled().len() - before;
        if bytes > 0 {
            self.flight.tunnel_used();
            self.worker.metrics.bytes_received.add(bytes as u64);
        }
        read
    }
}

impl<IO: AsyncWrite + Unpin> AsyncWrite for Watched<'_, IO> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.io).poll_write(cx, buf);
        if let Poll::Ready(Ok(bytes)) = &written {
            self.flight.tunnel_used();
            self.sent += bytes;
        }
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}
