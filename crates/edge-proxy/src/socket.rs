//! A TCP connection that sends small pieces as one.
//!
//! Parsers and TLS hand over what they send as lists of pieces. The system call for a list costs
//! more than the one for a single piece, and more than the copy of a few kilobytes.

use std::{
    cell::RefCell,
    io::{self, IoSlice},
    pin::Pin,
    task::{Context, Poll},
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
};

/// Pieces of more bytes together are not copied.
const COPIED_MAX: usize = 8 * 1024;

thread_local! {
    static TOGETHER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// The connection.
#[derive(Debug)]
pub(crate) struct Socket(pub(crate) TcpStream);

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buf)
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let stream = Pin::new(&mut self.0);
        if let [only] = pieces {
            return stream.poll_write(cx, only);
        }
        if pieces.iter().map(|piece| piece.len()).sum::<usize>() > COPIED_MAX {
            return stream.poll_write_vectored(cx, pieces);
        }
        TOGETHER.with_borrow_mut(|together| {
            together.clear();
            for piece in pieces {
                together.extend_from_slice(piece);
            }
            stream.poll_write(cx, together)
        })
    }

    fn is_write_vectored(&self) -> bool {
        self.0.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}
