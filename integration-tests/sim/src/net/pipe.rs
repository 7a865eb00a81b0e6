//! One direction of a connection.
//!
//! Invariant: bytes leave in the order in which they came, none before its time, none while the way
//! is blocked, and none after a reset.

use std::collections::VecDeque;
use std::future::Future as _;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::{Buf as _, Bytes};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

use super::Net;

/// Bytes under way that a sender may be ahead of its reader.
const WINDOW_BYTES: usize = 1024 * 1024;

#[derive(Default)]
struct State {
    under_way: VecDeque<(Instant, Bytes)>,
    bytes: usize,
    closed: bool,
    reset: bool,
    reader: Option<Waker>,
    writer: Option<Waker>,
}

/// One direction.
pub(super) struct Pipe {
    from: IpAddr,
    to: IpAddr,
    made: Instant,
    state: Mutex<State>,
}

impl Pipe {
    pub(super) fn new(from: IpAddr, to: IpAddr) -> Arc<Self> {
        Arc::new(Self { from, to, made: Instant::now(), state: Mutex::default() })
    }

    /// Breaks it: both ends see an error.
    pub(super) fn reset(&self) {
        self.lock().reset = true;
        self.wake();
    }

    /// How long ago it was made.
    pub(super) fn age(&self) -> Duration {
        self.made.elapsed()
    }

    /// True when nobody will use it any more.
    pub(super) fn is_over(&self) -> bool {
        let state = self.lock();
        state.reset || (state.closed && state.under_way.is_empty())
    }

    /// Lets both ends look again.
    pub(super) fn wake(&self) {
        let mut state = self.lock();
        let wakers = [state.reader.take(), state.writer.take()];
        drop(state);
        wakers.into_iter().flatten().for_each(Waker::wake);
    }

    fn close(&self) {
        self.lock().closed = true;
        self.wake();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn broken() -> io::Error {
    io::Error::from(io::ErrorKind::ConnectionReset)
}

/// One end of a connection.
pub(super) struct Half {
    net: Net,
    inbound: Arc<Pipe>,
    outbound: Arc<Pipe>,
    timer: Option<Pin<Box<Sleep>>>,
}

impl Half {
    pub(super) fn new(net: Net, inbound: Arc<Pipe>, outbound: Arc<Pipe>) -> Self {
        Self { net, inbound, outbound, timer: None }
    }
}

impl Drop for Half {
    fn drop(&mut self) {
        self.outbound.close();
        // Who writes to somebody who has gone gets an error, as with TCP's reset.
        self.inbound.reset();
    }
}

impl AsyncRead for Half {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let pipe = Arc::clone(&self.inbound);
        let blocked = self.net.is_blocked(pipe.from, pipe.to);
        let mut state = pipe.lock();
        if state.reset {
            return Poll::Ready(Err(broken()));
        }
        state.reader = Some(context.waker().clone());
        if blocked {
            return Poll::Pending;
        }
        let Some((due, _)) = state.under_way.front() else {
            return if state.closed { Poll::Ready(Ok(())) } else { Poll::Pending };
        };
        if *due > Instant::now() {
            let mut timer = Box::pin(sleep_until(*due));
            let early = timer.as_mut().poll(context).is_pending();
            self.timer = Some(timer);
            if early {
                return Poll::Pending;
            }
        }
        while buffer.remaining() > 0 {
            let Some((due, chunk)) = state.under_way.front_mut() else { break };
            if *due > Instant::now() {
                break;
            }
            let count = chunk.len().min(buffer.remaining());
            buffer.put_slice(&chunk[..count]);
            chunk.advance(count);
            if chunk.is_empty() {
                state.under_way.pop_front();
            }
            state.bytes -= count;
        }
        if let Some(writer) = state.writer.take() {
            writer.wake();
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Half {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let due = Instant::now() + self.net.delay();
        let mut state = self.outbound.lock();
        if state.reset || state.closed {
            return Poll::Ready(Err(broken()));
        }
        if state.bytes >= WINDOW_BYTES {
            state.writer = Some(context.waker().clone());
            return Poll::Pending;
        }
        let due = state.under_way.back().map_or(due, |(before, _)| due.max(*before));
        state.under_way.push_back((due, Bytes::copy_from_slice(bytes)));
        state.bytes += bytes.len();
        if let Some(reader) = state.reader.take() {
            reader.wake();
        }
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.outbound.close();
        Poll::Ready(Ok(()))
    }
}
