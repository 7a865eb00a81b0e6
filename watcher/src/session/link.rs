//! One session on the wire.
//!
//! Invariant: inbound messages are never kept waiting by outbound ones: what the connection does
//! not take now is tried again when it does, and what the view changes meanwhile is coalesced.

use std::time::Duration;

use longshore_proto::cluster::v1::Welcome;
use longshore_proto::cluster::v1::cluster_service_client::ClusterServiceClient;
use longshore_proto::cluster::v1::sync_request::Message;
use longshore_proto::cluster::v1::sync_response::Message as Answer;
use longshore_proto::cluster::v1::{Directive, DirectiveResult, Hello, SyncRequest, SyncResponse};
use longshore_proto::limits::{
    BOOKMARK_INTERVAL_SECONDS, DIRECTIVE_QUEUE, PROTOCOL_VERSION, SYNC_WINDOW, is_spoken,
};
use longshore_runtime::propagate;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Streaming;
use tonic::transport::Channel;

use super::sender::Sender;
use super::{Ended, Sessions};
use crate::index::Index;

/// How long changes are gathered before they are sent: long enough to batch what one API call
/// brings about, short beside everything that follows.
const BATCH: Duration = Duration::from_millis(5);
/// How long the scheduler may take to answer Hello.
const WELCOME_PATIENCE: Duration = Duration::from_secs(10);
/// How long the scheduler may take to acknowledge a message; a large snapshot takes it seconds.
const ACK_PATIENCE: Duration = Duration::from_secs(60);
/// A link that has not come round for this long has stalled: bookmarks alone bring it round every
/// few seconds.
const ROUND_MAX: Duration = Duration::from_secs(120);
/// Messages queued towards the connection: a full window, and as many results.
const OUTBOUND: usize = 2 * SYNC_WINDOW as usize;

/// An open session.
pub(super) struct Link {
    outbound: mpsc::Sender<SyncRequest>,
    inbound: Streaming<SyncResponse>,
    bookmark_interval: Duration,
}

/// Opens a session of this epoch: Hello out, Welcome in. For so long nothing has been carried out
/// for any.
pub(super) async fn open(
    client: &mut ClusterServiceClient<Channel>,
    sessions: &Sessions,
    (epoch, idle): (u64, Duration),
    sender: &mut Sender,
) -> Result<Link, Ended> {
    let (outbound, queue) = mpsc::channel(OUTBOUND);
    let (cluster_uid, region) = sessions.store.read(|index| {
        index.cluster().map(|facts| (facts.uid.clone(), facts.region.clone())).unwrap_or_default()
    });
    let hello = Message::Hello(Hello {
        cluster_id: sessions.cluster_id.clone(),
        session_epoch: epoch,
        resume_token: sender.resume_token(),
        protocol_version: PROTOCOL_VERSION,
        watcher_version: env!("CARGO_PKG_VERSION").to_owned(),
        pins_pods: sessions.directives.pins_pods(),
        cluster_uid,
        account_id: sessions.account_id.clone(),
        region,
        losses: sessions.directives.losses.told(),
        idle: idle.try_into().ok(),
    });
    // The queue is new and empty.
    let _ = outbound.try_send(SyncRequest { message: Some(hello) });
    let opening = async {
        let mut inbound = client.sync(ReceiverStream::new(queue)).await?.into_inner();
        match inbound.message().await?.and_then(|response| response.message) {
            Some(Answer::Welcome(welcome)) => Ok((inbound, welcome)),
            _ => Err(Ended::Protocol("the scheduler's first message was not Welcome")),
        }
    };
    let (inbound, welcome) = tokio::time::timeout(WELCOME_PATIENCE, opening)
        .await
        .map_err(|_| Ended::Protocol("the scheduler did not answer Hello in time"))??;
    // A scheduler from before versions were told speaks the first.
    if welcome.protocol_version != 0 && !is_spoken(welcome.protocol_version) {
        return Err(Ended::Version(welcome.protocol_version));
    }
    let bookmark_interval = bookmark_interval(&welcome);
    sessions.store.update(|index| sender.welcome(&welcome, index.settled()));
    tracing::info!(cluster = sessions.cluster_id, epoch, resumed = welcome.resumed, "session open");
    Ok(Link { outbound, inbound, bookmark_interval })
}

/// How long the oldest message that is not acknowledged has waited.
#[derive(Debug, Default)]
struct Silence(Option<(u64, Instant)>);

impl Silence {
    /// Looked at when changes or bookmarks are sent, which is often enough. `awaited` counts the
    /// messages that have been acknowledged; nothing when none is under way.
    fn is_too_long(&mut self, awaited: Option<u64>) -> bool {
        let Some(awaited) = awaited else {
            self.0 = None;
            return false;
        };
        match self.0 {
            Some((same, since)) if same == awaited => since.elapsed() > ACK_PATIENCE,
            _ => {
                self.0 = Some((awaited, Instant::now()));
                false
            }
        }
    }
}

fn bookmark_interval(welcome: &Welcome) -> Duration {
    let announced = welcome.bookmark_interval.and_then(|d| Duration::try_from(d).ok());
    let announced = announced.filter(|d| !d.is_zero());
    announced.unwrap_or(Duration::from_secs(BOOKMARK_INTERVAL_SECONDS))
}

impl Link {
    /// Serves the session until it ends.
    pub(super) async fn run(self, sessions: &Sessions, sender: &mut Sender) -> Ended {
        let (directives, directive_queue) = mpsc::channel(DIRECTIVE_QUEUE);
        let (results, result_queue) = mpsc::channel(DIRECTIVE_QUEUE);
        let carrying_out = sessions.directives.run(directive_queue, results);
        tokio::select! {
            biased;
            ended = self.serve(sessions, sender, directives, result_queue) => ended,
            () = carrying_out => Ended::Protocol("directives are no longer carried out"),
        }
    }

    async fn serve(
        mut self,
        sessions: &Sessions,
        sender: &mut Sender,
        directives: mpsc::Sender<Directive>,
        mut results: mpsc::Receiver<DirectiveResult>,
    ) -> Ended {
        let mut changes = sessions.store.changes();
        let mut flush_at = Some(Instant::now());
        let mut trace = String::new();
        let mut bookmark_at = Instant::now() + self.bookmark_interval;
        let mut silence = Silence::default();
        let pulse = sessions.directives.platform.pulses.begin("session link", ROUND_MAX);
        loop {
            pulse.beat();
            // In an order in which none starves another: what is first comes at most so often, and
            // results only while the connection takes them.
            tokio::select! {
                biased;
                () = tokio::time::sleep_until(flush_at.unwrap_or(bookmark_at)) => {
                    flush_at = None;
                    self.flush(sessions, sender, &mut trace);
                    if silence.is_too_long(sender.awaited()) {
                        return Ended::Protocol("the scheduler acknowledges nothing any more");
                    }
                    if Instant::now() >= bookmark_at {
                        bookmark_at = Instant::now() + self.bookmark_interval;
                        let bookmark = sessions.store.update(|i| sender.bookmark(i.settled()));
                        bookmark.into_iter().for_each(|bookmark| self.post(bookmark));
                    }
                    sessions.connected.send_if_modified(|connected| {
                        !std::mem::replace(connected, sender.is_whole())
                    });
                }
                Some(result) = results.recv(), if self.outbound.capacity() > 0 => {
                    self.post(Message::DirectiveResult(result));
                }
                answer = next(&mut self.inbound, &self.outbound) => {
                    let taken = answer.and_then(|it| take(it, sessions, sender, &directives));
                    if let Err(ended) = taken {
                        return ended;
                    }
                    flush_at.get_or_insert_with(Instant::now);
                }
                _ = changes.changed() => {
                    changes.mark_unchanged();
                    flush_at.get_or_insert_with(|| Instant::now() + BATCH);
                }
            }
        }
    }

    /// Sends what the window and the connection take. A trace that was started waits for the delta
    /// that carries its pods.
    fn flush(&self, sessions: &Sessions, sender: &mut Sender, trace: &mut String) {
        if let Some(fresh) = sessions.store.update(observation) {
            *trace = fresh;
        }
        let mut told = false;
        while self.outbound.capacity() > 0 {
            let next = sessions.store.update(|index| sender.next(index.settled(), trace));
            let Some(message) = next else { break };
            told |= matches!(message, Message::Delta(_));
            self.post(message);
        }
        if told {
            trace.clear();
        }
    }

    /// Queues a message for which there is room; a closed connection ends the session elsewhere.
    fn post(&self, message: Message) {
        let _ = self.outbound.try_send(SyncRequest { message: Some(message) });
    }
}

/// Starts the trace of pods that have been seen waiting for the first time; nothing for none.
fn observation(index: &mut Index) -> Option<String> {
    let fresh = index.take_fresh_pending();
    let first = fresh.iter().find_map(|uid| index.pod(uid)).filter(|pod| pod.waits())?;
    let span = tracing::info_span!(
        parent: None,
        "watcher.pod_pending",
        pods = fresh.len(),
        first_pod = format!("{}/{}", first.row.namespace, first.row.name),
    );
    Some(propagate::traceparent_of(&span))
}

/// The scheduler's next message. One that shuts down closes both directions at once: what it said
/// last comes before the end of the other one.
async fn next(
    inbound: &mut Streaming<SyncResponse>,
    outbound: &mpsc::Sender<SyncRequest>,
) -> Result<SyncResponse, Ended> {
    tokio::select! {
        biased;
        answer = inbound.message() => {
            answer?.ok_or(Ended::Protocol("the scheduler ended the stream"))
        }
        () = outbound.closed() => Err(Ended::Protocol("the connection to the scheduler was lost")),
    }
}

fn take(
    answer: SyncResponse,
    sessions: &Sessions,
    sender: &mut Sender,
    directives: &mpsc::Sender<Directive>,
) -> Result<(), Ended> {
    match answer.message {
        Some(Answer::Ack(ack)) => sender.acknowledge(ack),
        Some(Answer::Directive(directive)) => directives
            .try_send(directive)
            .map_err(|_| Ended::Protocol("the scheduler sent more directives than agreed"))?,
        Some(Answer::Resync(resync)) => {
            tracing::warn!(reason = resync.reason, "the scheduler asked for a snapshot");
            sessions.store.update(|index| sender.snapshot(index.settled()));
        }
        Some(Answer::GoAway(away)) => {
            let delay = away.delay.and_then(|d| Duration::try_from(d).ok()).unwrap_or_default();
            return Err(Ended::GoAway { delay, reason: away.reason });
        }
        Some(Answer::Welcome(_)) => {
            return Err(Ended::Protocol("the scheduler said Welcome twice"));
        }
        None => return Err(Ended::Protocol("the scheduler sent a message without content")),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use http_body_util::Full;
    use longshore_proto::cluster::v1::GoAway;
    use prost::Message as _;
    use prost::bytes::{Buf as _, BufMut as _, Bytes, BytesMut};
    use tonic::Status;
    use tonic::codec::{DecodeBuf, Decoder};

    use super::*;

    /// Reads messages as tonic's own codec does.
    struct Answers;

    impl Decoder for Answers {
        type Item = SyncResponse;
        type Error = Status;

        fn decode(&mut self, bytes: &mut DecodeBuf<'_>) -> Result<Option<SyncResponse>, Status> {
            let text = bytes.copy_to_bytes(bytes.remaining());
            SyncResponse::decode(text).map(Some).map_err(|e| Status::internal(e.to_string()))
        }
    }

    /// A stream that holds one message.
    fn holding(message: Answer) -> Streaming<SyncResponse> {
        let text = SyncResponse { message: Some(message) }.encode_to_vec();
        let mut frame = BytesMut::new();
        frame.put_u8(0);
        frame.put_u32(u32::try_from(text.len()).unwrap());
        frame.put_slice(&text);
        let body = Full::new(Bytes::from(frame));
        Streaming::new_response(Answers, body, http::StatusCode::OK, None, None)
    }

    #[tokio::test]
    async fn what_the_scheduler_says_last_is_heard_although_it_listens_no_more() {
        let (outbound, closed) = mpsc::channel(1);
        drop(closed);
        let mut inbound = holding(Answer::GoAway(GoAway::default()));
        let heard = next(&mut inbound, &outbound).await.unwrap();
        assert!(matches!(heard.message, Some(Answer::GoAway(_))), "{heard:?}");
        assert!(next(&mut inbound, &outbound).await.is_err(), "nothing comes after it");
    }

    #[tokio::test(start_paused = true)]
    async fn a_scheduler_that_acknowledges_nothing_is_given_up() {
        let mut silence = Silence::default();
        assert!(!silence.is_too_long(Some(0)));
        tokio::time::advance(ACK_PATIENCE).await;
        assert!(!silence.is_too_long(Some(1)), "one came meanwhile");
        tokio::time::advance(ACK_PATIENCE).await;
        assert!(!silence.is_too_long(None), "nothing is awaited");
        assert!(!silence.is_too_long(Some(1)));
        tokio::time::advance(ACK_PATIENCE + Duration::from_secs(1)).await;
        assert!(silence.is_too_long(Some(1)));
    }
}
