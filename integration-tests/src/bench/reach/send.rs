//! The flooding client: it opens all the streams that it may and sends all that they take.
//!
//! Invariant: nothing that it sends is copied for it, so that it is not the one that is flooded;
//! what it is answered is counted by reason.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::future::pending;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Result;
use bytes::Bytes;
use futures::stream::{self, BoxStream, StreamExt as _};
use http::Request;
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody};
use longshore_proto::reason;
use longshore_runtime::client;
use longshore_runtime::net::Network;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tonic::Status;
use tonic::body::Body;
use tonic::client::GrpcService as _;
use tonic::transport::Channel;

use super::SendArgs;
use super::payload::{MANNERS, Manner, Rpc};
use crate::bench::say;

/// Between two calls of a stream: refusals cost the flooded as little as may be, and still come
/// thick.
const PAUSE: Duration = Duration::from_millis(1);

/// Answers by their reason, and how many there were.
pub type Answers = BTreeMap<String, u64>;

type Frames = BoxStream<'static, Result<Frame<Bytes>, Infallible>>;

/// What the streams share.
#[derive(Default)]
struct Shared {
    numbers: AtomicU64,
    answers: Mutex<Answers>,
}

/// Floods, then says what came back.
///
/// # Errors
/// When the address is none.
pub async fn send(args: &SendArgs) -> Result<()> {
    let Some(rpc) = args.flood.rpc else { anyhow::bail!("say which with --rpc") };
    let shared = Arc::new(Shared::default());
    let messages: Vec<(Manner, Bytes)> =
        MANNERS.map(|manner| (manner, rpc.message(manner, 0))).into();
    let mut streams = JoinSet::new();
    for _ in 0..args.flood.connections {
        let channel = client::channel(&args.url, &Network::System)?;
        for number in 0..args.flood.streams as usize {
            let (manner, message) = messages[number % messages.len()].clone();
            let stream = Stream { rpc, manner, message, channel: channel.clone() };
            streams.spawn(stream.flood(Arc::clone(&shared)));
        }
    }
    let over = sleep(Duration::from_secs(args.flood.seconds));
    let all = async { while streams.join_next().await.is_some() {} };
    drop(timeout(Duration::from_secs(args.flood.seconds), all).await);
    over.await;
    let answers = shared.answers.lock().unwrap_or_else(PoisonError::into_inner).clone();
    say(&serde_json::to_string(&answers)?)
}

/// One of the streams.
struct Stream {
    rpc: Rpc,
    manner: Manner,
    message: Bytes,
    channel: Channel,
}

impl Stream {
    async fn flood(mut self, shared: Arc<Shared>) {
        loop {
            let number = shared.numbers.fetch_add(1, Ordering::Relaxed);
            let answer = self.call(number).await;
            *shared
                .answers
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .entry(answer)
                .or_default() += 1;
            sleep(PAUSE).await;
        }
    }

    async fn call(&mut self, number: u64) -> String {
        let body = Body::new(StreamBody::new(self.frames(number)));
        let request = Request::post(self.rpc.path())
            .header("content-type", "application/grpc")
            .header("te", "trailers")
            .body(body);
        let Ok(request) = request else { return "no request".to_owned() };
        if let Err(error) = std::future::poll_fn(|context| self.channel.poll_ready(context)).await {
            return format!("not connected: {error}");
        }
        let response = match self.channel.call(request).await {
            Ok(response) => response,
            Err(_) => return "connection lost".to_owned(),
        };
        if let Some(status) = Status::from_header_map(response.headers()) {
            return name(&status);
        }
        self.read(response.into_body()).await
    }

    /// A client in a plain manner does not listen.
    async fn read(&self, mut body: Body) -> String {
        if self.manner == Manner::Plain {
            pending::<()>().await;
        }
        while let Some(Ok(frame)) = body.frame().await {
            if let Some(status) = frame.trailers_ref().and_then(Status::from_header_map) {
                return name(&status);
            }
        }
        "stream reset".to_owned()
    }

    fn frames(&self, number: u64) -> Frames {
        let opening = self.rpc.opening(number).map(data);
        let message = match self.manner {
            // Each of another cluster, as far as clusters are named.
            Manner::Plain if !self.rpc.takes_streams() => self.rpc.message(self.manner, number),
            Manner::Plain | Manner::Large | Manner::Dense | Manner::Stalled => self.message.clone(),
        };
        let once = stream::once(std::future::ready(data(message.clone())));
        let body = match self.manner {
            Manner::Stalled => once.chain(stream::pending()).boxed(),
            Manner::Large | Manner::Dense | Manner::Plain if self.rpc.takes_streams() => {
                stream::repeat_with(move || data(message.clone())).boxed()
            }
            Manner::Large | Manner::Dense | Manner::Plain => once.boxed(),
        };
        stream::iter(opening).chain(body).boxed()
    }
}

fn data(bytes: Bytes) -> Result<Frame<Bytes>, Infallible> {
    Ok(Frame::data(bytes))
}

fn name(status: &Status) -> String {
    reason::of_status(status).map_or_else(|| format!("{:?}", status.code()), |(name, _)| name)
}
