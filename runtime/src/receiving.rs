//! Messages on their way in: the parts of them that have arrived fill no more than a bounded
//! memory.
//!
//! Invariant: of every gRPC message that is not whole yet, each byte that is kept is granted by one
//! budget of the server, and none is handed on. A message that gets no more is refused with its
//! stream, and the others go on.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::Request;
use http_body::{Body as HttpBody, Frame};
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
    request.map(|body| {
        let framing = Framing::default();
        let (held, whole) = (VecDeque::new(), VecDeque::new());
        Body::new(Metered { body, grant, framing, refuse, held, whole })
    })
}

/// A body that hands on whole messages only, and is granted what it keeps until then. The decoder
/// above makes room for a message as soon as it knows its length: for those of a thousand streams
/// at once, were they handed on in part.
struct Metered {
    body: Body,
    grant: Grant,
    framing: Framing,
    refuse: Refuse,
    /// Pieces of the message under way.
    held: VecDeque<Bytes>,
    /// Pieces that are the end of a message, or lie before one.
    whole: VecDeque<Bytes>,
}

impl Metered {
    /// Keeps a piece that has arrived, and frees what is whole with it.
    fn keep(&mut self, mut piece: Bytes) -> Result<(), Status> {
        let kept = self.framing.partial + piece.len();
        if let Err(spent) = self.grant.resize(granted(kept)) {
            let message = format!("messages that have arrived in part fill the memory: {spent}");
            return Err((self.refuse)(message));
        }
        let ended = self.framing.pass(&piece);
        if ended > 0 {
            self.whole.append(&mut self.held);
            self.whole.push_back(piece.split_to(ended));
        }
        if !piece.is_empty() {
            self.held.push_back(piece);
        }
        Ok(())
    }
}

impl HttpBody for Metered {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let this = &mut *self;
        loop {
            if let Some(piece) = this.whole.pop_front() {
                return Poll::Ready(Some(Ok(Frame::data(piece))));
            }
            // Whoever asks for more has taken out what was whole. Less is always granted.
            let _ = this.grant.resize(granted(this.framing.partial));
            match ready!(Pin::new(&mut this.body).poll_frame(context)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(piece) => {
                        if let Err(refused) = this.keep(piece) {
                            return Poll::Ready(Some(Err(refused)));
                        }
                    }
                    Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
                },
                // The decoder says that a message has no end.
                None if !this.held.is_empty() => this.whole.append(&mut this.held),
                other => return Poll::Ready(other),
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.held.is_empty() && self.whole.is_empty() && self.body.is_end_stream()
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
    /// Goes on by what has arrived; how many bytes of it lie before the end of a message.
    fn pass(&mut self, piece: &[u8]) -> usize {
        let (mut data, mut ended) = (piece, 0);
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
                }
            } else {
                let taken = data.len().min(self.left);
                self.left -= taken;
                self.partial += taken;
                data = &data[taken..];
            }
            if self.head.len() == HEAD && self.left == 0 {
                self.head.clear();
                self.partial = 0;
                ended = piece.len() - data.len();
            }
        }
        ended
    }
}

#[cfg(test)]
mod tests {
    use futures::{StreamExt as _, stream};
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
            let ended: Vec<_> = bytes.chunks(size).map(|piece| framing.pass(piece)).collect();
            assert_eq!(ended.last(), bytes.chunks(size).last().map(<[u8]>::len).as_ref());
            assert_eq!((framing.partial, framing.left), (0, 0), "pieces of {size}");
            assert_eq!(framing.pass(&[&message(3), &message(300)[..200]].concat()), 8);
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
    async fn nothing_of_a_message_is_handed_on_before_it_is_whole() {
        let (tell, arriving) = futures::channel::mpsc::unbounded::<Vec<u8>>();
        let frames = arriving.map(|piece| Ok::<_, Status>(Frame::data(piece.into())));
        let request = Request::new(Body::new(StreamBody::new(frames)));
        let mut body =
            meter(&Budget::new(100_000), Status::resource_exhausted, request).into_body();
        let bytes = message(40_000);
        tell.unbounded_send(bytes[..30_000].to_vec()).unwrap();
        assert!(futures::poll!(std::pin::pin!(body.frame())).is_pending());
        tell.unbounded_send([&bytes[30_000..], &message(50)[..20]].concat()).unwrap();
        let mut handed_on = Vec::new();
        while handed_on.len() < bytes.len() {
            handed_on.extend(body.frame().await.unwrap().unwrap().into_data().unwrap());
        }
        assert_eq!(handed_on, bytes, "and nothing of the next");
        drop(tell);
        assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap().len(), 20);
        assert!(body.frame().await.is_none(), "what has no end is the decoder's to refuse");
    }

    #[tokio::test]
    async fn a_message_that_gets_no_more_memory_is_refused_and_whole_ones_pass_for_ever() {
        let budget = Budget::new(100_000);
        let refuse: Refuse = Status::resource_exhausted;
        let pieces: Vec<_> = message(90_000).chunks(10_000).map(<[u8]>::to_vec).collect();
        let halves = pieces[..4].to_vec();
        let metered = meter(&budget, refuse, body(pieces));
        let (frames, refused) = read(metered.into_body()).await;
        assert_eq!((frames, refused.unwrap().code()), (0, tonic::Code::ResourceExhausted));
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
