//! Messages on their way in: the parts of them that have arrived fill no more than a bounded memory.
//!
//! Invariant: of every gRPC message that is not whole yet, each byte that is kept is granted by one budget of
//! the server. A message that gets no more is refused with its stream, and the others go on.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::Request;
use http_body::{Body as HttpBody, Frame, SizeHint};
use tonic::Status;
use tonic::body::Body;

use crate::budget::{Budget, Grant};
use crate::net::Peer;

/// Most bytes of messages that have arrived in part, of all streams together: eight of the largest.
pub const RECEIVING_BYTES_MAX: usize = 32 * 1024 * 1024;
/// So much of a message needs no grant: what is small is always heard.
const SMALL: usize = 16 * 1024;
/// Bytes before each message: whether it is compressed, and its length.
const HEAD: usize = 5;

/// Makes the status of a refusal from its text.
pub type Refuse = fn(String) -> Status;

/// The request, with its body under the budget.
pub fn meter(budget: &Budget, refuse: Refuse, request: Request<Body>) -> Request<Body> {
    let grant = budget.open(&Peer::of(request.extensions()).tenant());
    request.map(|body| Body::new(Metered { body, grant, framing: Framing::default(), refuse }))
}

/// A body whose messages in part are granted.
struct Metered {
    body: Body,
    grant: Grant,
    framing: Framing,
    refuse: Refuse,
}

impl HttpBody for Metered {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        // Whoever asks for more has taken out what was whole.
        let kept = self.framing.partial;
        let this = &mut *self;
        if this.grant.resize(granted(kept)).is_err() {
            // Less than before is always granted.
            return Poll::Ready(None);
        }
        let frame = match ready!(Pin::new(&mut this.body).poll_frame(context)) {
            Some(Ok(frame)) => frame,
            other => return Poll::Ready(other),
        };
        let Some(data) = frame.data_ref() else { return Poll::Ready(Some(Ok(frame))) };
        let arrived = data.len();
        this.framing.pass(data);
        if let Err(spent) = this.grant.resize(granted(kept + arrived)) {
            let message = format!("messages that have arrived in part fill the memory: {spent}");
            return Poll::Ready(Some(Err((this.refuse)(message))));
        }
        Poll::Ready(Some(Ok(frame)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

const fn granted(kept: usize) -> usize {
    if kept <= SMALL { 0 } else { kept }
}

/// Where in its messages a body is.
#[derive(Default)]
struct Framing {
    head: Vec<u8>,
    /// Bytes of the message under way that are still to come.
    left: usize,
    /// Bytes of the message under way that have come, with its head.
    partial: usize,
}

impl Framing {
    fn pass(&mut self, mut data: &[u8]) {
        while !data.is_empty() {
            if self.head.len() < HEAD {
                let taken = data.len().min(HEAD - self.head.len());
                let (head, rest) = data.split_at(taken);
                self.head.extend_from_slice(head);
                self.partial += taken;
                data = rest;
                if let [_, a, b, c, d] = *self.head.as_slice() {
                    let length = u32::from_be_bytes([a, b, c, d]);
                    self.left = usize::try_from(length).unwrap_or(usize::MAX);
                    self.end_if_whole();
                }
                continue;
            }
            let taken = data.len().min(self.left);
            self.left -= taken;
            self.partial += taken;
            data = &data[taken..];
            self.end_if_whole();
        }
    }

    fn end_if_whole(&mut self) {
        if self.left == 0 {
            self.head.clear();
            self.partial = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::stream;
    use http_body_util::{BodyExt as _, StreamBody};

    use super::*;

    fn message(length: usize) -> Vec<u8> {
        let head = u32::try_from(length).unwrap().to_be_bytes();
        [&[0], head.as_slice(), &vec![7; length]].concat()
    }

    #[test]
    fn the_part_of_a_message_is_counted_however_it_comes_in_pieces() {
        let bytes = [message(10), message(0), message(300)].concat();
        for size in [1, 2, 7, 64, bytes.len()] {
            let mut framing = Framing::default();
            bytes.chunks(size).for_each(|piece| framing.pass(piece));
            assert_eq!((framing.partial, framing.left), (0, 0), "pieces of {size}");
            framing.pass(&message(300)[..200]);
            assert_eq!((framing.partial, framing.left), (200, 105), "pieces of {size}");
        }
    }

    /// Frames of a body until it is refused, and by what.
    async fn read(mut body: Body) -> (usize, Option<Status>) {
        let mut frames = 0;
        while let Some(frame) = body.frame().await {
            match frame {
                Ok(_) => frames += 1,
                Err(status) => return (frames, Some(status)),
            }
        }
        (frames, None)
    }

    fn body(pieces: Vec<Vec<u8>>) -> Request<Body> {
        let frames = pieces.into_iter().map(|piece| Ok::<_, Status>(Frame::data(piece.into())));
        Request::new(Body::new(StreamBody::new(stream::iter(frames))))
    }

    #[tokio::test]
    async fn a_message_that_gets_no_more_memory_is_refused_and_whole_ones_pass_for_ever() {
        let budget = Budget::new(100_000);
        let refuse: Refuse = Status::resource_exhausted;
        let pieces: Vec<_> = message(90_000).chunks(10_000).map(<[u8]>::to_vec).collect();
        let halves = pieces[..4].to_vec();
        let metered = meter(&budget, refuse, body(pieces));
        let (frames, refused) = read(metered.into_body()).await;
        assert_eq!((frames, refused.unwrap().code()), (5, tonic::Code::ResourceExhausted));
        let many = (0..100).flat_map(|_| vec![message(40_000)]).collect();
        let metered = meter(&budget, refuse, body(many));
        assert_eq!(read(metered.into_body()).await.0, 100);
        let mut waiting = meter(&budget, refuse, body(halves)).into_body();
        for _ in 0..4 {
            waiting.frame().await.unwrap().unwrap();
        }
        let other = meter(&budget, refuse, body(vec![message(40_000)]));
        assert!(read(other.into_body()).await.1.is_some(), "half of it is held already");
        drop(waiting);
        let other = meter(&budget, refuse, body(vec![message(40_000)]));
        assert!(read(other.into_body()).await.1.is_none(), "what is dropped is given back");
    }
}
