//! Stands between a connection and the HTTP/1 parser and lets through what reads one way only.
//!
//! Bytes of a head are held back until the head is whole and `head::judge` accepts it; bytes of a
//! body are followed to their end, so that the next head is found where it really begins. A head
//! that is refused is *replaced* by a harmless one, and [`Control::refused`] says so: the refusal
//! is then answered like any other, in its turn behind the answers before it, and the connection
//! ends with it. Bytes behind an upgrade request wait until the upgrade is granted or refused.

use std::{
    io,
    pin::Pin,
    rc::Rc,
    task::{Context, Poll, ready},
};

use bytes::{Buf, BytesMut};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::{
    chunks::Chunks,
    control::{Control, Upgrade},
    head::{self, Framing, HeadError, HeadFacts, HeadLimits},
};
use crate::options::Defences;

/// What takes the place of a refused head.
const STAND_IN: &[u8] = b"GET / HTTP/1.1\r\nhost: refused.invalid\r\nconnection: close\r\n\r\n";

#[derive(Debug)]
enum State {
    /// In a head; the lines before this byte have been looked at.
    Head {
        seen: usize,
    },
    Length(u64),
    Chunks(Chunks),
    /// Behind an upgrade request.
    Waiting,
    /// Not HTTP any more.
    Raw,
    /// A message was refused; nothing more is read. Its body, unless it was its head.
    Refused {
        body: Option<HeadError>,
    },
}

/// A connection whose bytes are judged on the way in.
#[derive(Debug)]
pub(crate) struct Guard<IO> {
    io: IO,
    control: Rc<Control>,
    limits: HeadLimits,
    defences: Defences,
    state: State,
    /// Bytes read and not handed on.
    held: BytesMut,
    /// How many of them may be handed on.
    cleared: usize,
}

impl<IO> Guard<IO> {
    pub(crate) fn new(
        io: IO,
        control: Rc<Control>,
        limits: HeadLimits,
        defences: Defences,
    ) -> Self {
        Self {
            io,
            control,
            limits,
            defences,
            state: State::Head { seen: 0 },
            held: BytesMut::new(),
            cleared: 0,
        }
    }

    /// A connection whose bytes are judged by another codec; only its writes are watched.
    pub(crate) fn unjudged(
        io: IO,
        control: Rc<Control>,
        limits: HeadLimits,
        defences: Defences,
    ) -> Self {
        Self {
            state: State::Raw,
            ..Self::new(io, control, limits, defences)
        }
    }

    /// The bare connection, and what was read of it and not handed on.
    pub(crate) fn into_parts(self) -> (IO, BytesMut) {
        (self.io, self.held)
    }

    /// Judges bytes that follow those handed on; returns how many of them may be handed on now,
    /// and what is wrong with those behind them.
    fn advance(&mut self, bytes: &[u8]) -> (usize, Option<HeadError>) {
        let mut at = 0;
        while at < bytes.len() {
            match self.step(&bytes[at..]) {
                Ok(0) => break,
                Ok(taken) => at += taken,
                Err(error) => return (at, Some(error)),
            }
        }
        (at, None)
    }

    /// Judges up to the end of a head or body; 0 when more bytes are needed, or an answer first.
    fn step(&mut self, bytes: &[u8]) -> Result<usize, HeadError> {
        match &mut self.state {
            State::Head { seen } => match head::find_end(bytes, *seen, &self.defences)? {
                Ok(length) if length <= self.limits.head_bytes => {
                    let facts = head::judge(&bytes[..length], self.limits, &self.defences)?;
                    self.begin(facts);
                    Ok(length)
                }
                Err(looked) if bytes.len() <= self.limits.head_bytes => {
                    *seen = looked;
                    self.control.head_began();
                    Ok(0)
                }
                Ok(_) | Err(_) => Err(HeadError::TooLarge),
            },
            State::Length(left) => {
                let here = usize::try_from(*left)
                    .unwrap_or(usize::MAX)
                    .min(bytes.len());
                *left -= here as u64;
                if *left == 0 {
                    self.state = State::Head { seen: 0 };
                }
                Ok(here)
            }
            State::Chunks(chunks) if self.defences.framing => {
                let (taken, ended) = chunks.take(bytes)?;
                if ended {
                    self.state = State::Head { seen: 0 };
                }
                Ok(taken)
            }
            State::Chunks(_) | State::Raw => Ok(bytes.len()),
            State::Waiting | State::Refused { .. } => Ok(0),
        }
    }

    fn begin(&mut self, facts: HeadFacts) {
        self.control.head_passed();
        if facts.upgrade {
            self.control.upgrade_asked();
        }
        self.state = match facts.framing {
            Framing::None if facts.upgrade => State::Waiting,
            Framing::None => State::Head { seen: 0 },
            Framing::Length(length) => State::Length(length),
            Framing::Chunked => State::Chunks(Chunks::default()),
        };
    }

    /// Puts the stand-in, or the end of the connection, in the place of what was refused.
    fn refuse(&mut self, error: HeadError) {
        if matches!(self.state, State::Chunks(_)) {
            // The request is being handled already; its body ends in an error.
            self.state = State::Refused { body: Some(error) };
        } else {
            self.state = State::Refused { body: None };
            self.control.refuse(error);
            self.held.extend_from_slice(STAND_IN);
            self.cleared += STAND_IN.len();
        }
    }

    /// Judges what is held; true when something came of it.
    fn judge_held(&mut self) -> bool {
        if self.held.is_empty() {
            return false;
        }
        let mut held = std::mem::take(&mut self.held);
        let (cleared, error) = self.advance(&held);
        self.cleared = cleared;
        if let Some(error) = error {
            held.truncate(cleared);
            self.held = held;
            self.refuse(error);
        } else {
            self.held = held;
        }
        self.cleared > 0
    }

    /// Judges what was just read into `buf` behind `before`, in place when nothing is held.
    fn judge_read(&mut self, buf: &mut ReadBuf<'_>, before: usize) {
        if !self.held.is_empty() {
            self.held.extend_from_slice(&buf.filled()[before..]);
            buf.set_filled(before);
            self.judge_held();
            return;
        }
        let (cleared, error) = self.advance(&buf.filled()[before..]);
        match error {
            Some(error) => self.refuse(error),
            None => self
                .held
                .extend_from_slice(&buf.filled()[before + cleared..]),
        }
        buf.set_filled(before + cleared);
    }
}

impl<IO: AsyncRead + Unpin> AsyncRead for Guard<IO> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        loop {
            if this.cleared > 0 {
                let count = this.cleared.min(buf.remaining());
                buf.put_slice(&this.held[..count]);
                this.held.advance(count);
                this.cleared -= count;
                return Poll::Ready(Ok(()));
            }
            match this.state {
                State::Waiting => match this.control.upgrade() {
                    Upgrade::Undecided => {
                        this.control.wake(cx.waker());
                        return Poll::Pending;
                    }
                    Upgrade::Refused => this.state = State::Head { seen: 0 },
                    Upgrade::Granted => this.state = State::Raw,
                },
                State::Refused { body: Some(error) } => {
                    return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, error)));
                }
                State::Refused { body: None } => return Poll::Pending,
                State::Head { .. } | State::Length(_) | State::Chunks(_) | State::Raw => {}
            }
            if this.fresh() && this.judge_held() {
                continue;
            }
            if matches!(this.state, State::Head { .. }) && !this.held.is_empty() {
                if this.control.is_late() {
                    this.held.clear();
                    this.refuse(HeadError::Late);
                    continue;
                }
                this.control.wake(cx.waker());
            }
            let before = buf.filled().len();
            ready!(Pin::new(&mut this.io).poll_read(cx, buf))?;
            if buf.filled().len() == before {
                return Poll::Ready(Ok(()));
            }
            this.control.has_read();
            this.judge_read(buf, before);
            if buf.filled().len() > before {
                return Poll::Ready(Ok(()));
            }
        }
    }
}

impl<IO> Guard<IO> {
    /// Whether what is held has not been looked at in the present state.
    fn fresh(&self) -> bool {
        !self.held.is_empty() && !matches!(self.state, State::Head { seen } if seen > 0)
    }
}

impl<IO: AsyncWrite + Unpin> AsyncWrite for Guard<IO> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.io).poll_write(cx, buf);
        self.control.write_blocked(written.is_pending());
        written
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.io).poll_write_vectored(cx, bufs);
        self.control.write_blocked(written.is_pending());
        written
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.io).poll_flush(cx);
        self.control.write_blocked(flushed.is_pending());
        flushed
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use super::*;
    use crate::watch::Clock;

    /// A connection on which these pieces arrive, and then nothing.
    struct Pieces(Vec<Vec<u8>>);

    impl AsyncRead for Pieces {
        fn poll_read(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            buf: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            if self.0.is_empty() {
                return Poll::Pending;
            }
            let mut piece = self.0.remove(0);
            let rest = piece.split_off(piece.len().min(buf.remaining()));
            buf.put_slice(&piece);
            if !rest.is_empty() {
                self.0.insert(0, rest);
            }
            Poll::Ready(Ok(()))
        }
    }

    /// Everything that the parser gets, and the refusal.
    fn through(pieces: Vec<Vec<u8>>, buffer: usize) -> (Vec<u8>, Option<(u64, HeadError)>, bool) {
        let control = Rc::new(Control::new(Rc::new(Clock::new()), false));
        let limits = HeadLimits {
            head_bytes: 200,
            target_bytes: 100,
            headers: 10,
        };
        let mut guard = Guard::new(Pieces(pieces), Rc::clone(&control), limits, Defences::all());
        let mut all = Vec::new();
        let mut storage = vec![0; buffer];
        loop {
            let mut buf = ReadBuf::new(&mut storage);
            match Pin::new(&mut guard).poll_read(&mut Context::from_waker(Waker::noop()), &mut buf)
            {
                Poll::Ready(Ok(())) => all.extend(buf.filled()),
                Poll::Ready(Err(_)) => return (all, control.stand_in(), true),
                Poll::Pending
                    if control.upgrade() == Upgrade::Undecided
                        && matches!(guard.state, State::Waiting) =>
                {
                    control.decide(Upgrade::Granted)
                }
                Poll::Pending => return (all, control.stand_in(), false),
            }
        }
    }

    const GET: &str = "GET /a HTTP/1.1\r\nHost: a\r\n\r\n";
    const CHUNKED: &str = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    const UPGRADE: &str = "GET /ws HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\n\r\n";

    #[test]
    fn what_is_let_through_does_not_depend_on_how_it_arrives() {
        let stand_in = String::from_utf8_lossy(STAND_IN);
        let length = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc";
        let body = "3\r\nabc\r\n0\r\n\r\n";
        let long = format!("GET / HTTP/1.1\r\nX: {}\r\n\r\n", "x".repeat(200));
        for (sent, let_through, refused) in [
            (
                format!("{GET}{length}{CHUNKED}{body}{GET}"),
                format!("{GET}{length}{CHUNKED}{body}{GET}"),
                None,
            ),
            (
                format!("{GET}{GET}GET /\n\r\n{GET}"),
                format!("{GET}{GET}{stand_in}"),
                Some((2, HeadError::Newline)),
            ),
            (
                format!("{length}{long}{GET}"),
                format!("{length}{stand_in}"),
                Some((1, HeadError::TooLarge)),
            ),
            (
                format!("{CHUNKED}{body}GET / HTTP/3\r\n\r\n{GET}"),
                format!("{CHUNKED}{body}{stand_in}"),
                Some((1, HeadError::Version)),
            ),
            (
                format!("{UPGRADE}\x01\n\n\n{GET}"),
                format!("{UPGRADE}\x01\n\n\n{GET}"),
                None,
            ),
        ] {
            for buffer in [1, 7, 4096] {
                for cut in 0..sent.len() {
                    let pieces =
                        [&sent[..cut], &sent[cut..]].map(|piece| piece.as_bytes().to_vec());
                    let pieces = pieces
                        .into_iter()
                        .filter(|piece| !piece.is_empty())
                        .collect();
                    let (all, why, broken) = through(pieces, buffer);
                    assert_eq!(
                        String::from_utf8_lossy(&all),
                        let_through,
                        "cut at {cut}, buffer of {buffer}: {sent:?}"
                    );
                    assert_eq!((why, broken), (refused, false), "{sent:?}");
                }
                let bytes = sent.bytes().map(|byte| vec![byte]).collect();
                assert_eq!(
                    String::from_utf8_lossy(&through(bytes, buffer).0),
                    let_through,
                    "byte by byte"
                );
            }
        }
    }

    #[test]
    fn a_bad_chunk_ends_the_body_in_an_error_and_lets_nothing_behind_it_through() {
        let (all, refused, broken) = through(
            vec![format!("{CHUNKED}3;x\r\nabc\r\n0\r\n\r\n{GET}").into_bytes()],
            4096,
        );
        assert_eq!((refused, broken), (None, true));
        assert!(!String::from_utf8_lossy(&all).contains("GET"));
    }
}
