//! The scheduler refuses watchers.

use anyhow::{Context, Result, ensure};
use http::uri::PathAndQuery;
use longshore_it::stage::services::Service;
use longshore_proto::cluster::v1::cluster_service_client::ClusterServiceClient;
use longshore_proto::cluster::v1::sync_request::Message;
use longshore_proto::cluster::v1::sync_response::Message as Answer;
use longshore_proto::cluster::v1::{Hello, SnapshotChunk, SyncRequest, SyncResponse};
use longshore_proto::limits::{MESSAGE_BYTES_MAX, PROTOCOL_VERSION};
use longshore_proto::types::v1::object_change::Change;
use longshore_proto::types::v1::{ObjectChange, ObjectRef};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::client::Grpc;
use tonic::transport::Endpoint;
use tonic::{Code, Request, Status, Streaming};
use tonic_prost::ProstCodec;

use super::{refused, scheduler};

/// A watcher that speaks by hand.
struct Session {
    outbound: mpsc::Sender<SyncRequest>,
    inbound: Streaming<SyncResponse>,
    revision: u64,
}

impl Session {
    /// Sends a first message and waits for the answer to it.
    async fn open(service: &Service, first: Message) -> Result<Self, Status> {
        let (outbound, queue) = mpsc::channel(4);
        let client = ClusterServiceClient::connect(service.url()).await;
        let mut client = client
            .map_err(|error| Status::unavailable(error.to_string()))?
            .max_encoding_message_size(usize::MAX);
        let sent = outbound.send(SyncRequest { message: Some(first) }).await;
        sent.map_err(|_| Status::internal("the queue is closed"))?;
        let inbound = client.sync(ReceiverStream::new(queue)).await?.into_inner();
        let mut session = Self { outbound, inbound, revision: 0 };
        match session.next().await? {
            Answer::Welcome(_) => Ok(session),
            other @ (Answer::Ack(_)
            | Answer::Directive(_)
            | Answer::Resync(_)
            | Answer::GoAway(_)) => Err(Status::internal(format!("not Welcome: {other:?}"))),
        }
    }

    async fn next(&mut self) -> Result<Answer, Status> {
        let response = self.inbound.message().await?;
        let ended = || Status::internal("the stream ended without a status");
        response.and_then(|response| response.message).ok_or_else(ended)
    }

    async fn send(&self, message: Message) -> Result<()> {
        Ok(self.outbound.send(SyncRequest { message: Some(message) }).await?)
    }

    /// Sends a whole view and waits until it is acknowledged: the session is served.
    async fn is_served(&mut self) -> Result<()> {
        self.revision += 1;
        let revision = self.revision;
        self.send(chunk(revision, Vec::new())).await?;
        loop {
            if let Answer::Ack(ack) = self.next().await? {
                ensure!(ack.revision == revision, "{ack:?} for revision {revision}");
                return Ok(());
            }
        }
    }
}

fn hello(cluster: &str, session_epoch: u64) -> Hello {
    Hello {
        cluster_id: cluster.to_owned(),
        session_epoch,
        protocol_version: PROTOCOL_VERSION,
        ..Hello::default()
    }
}

fn chunk(revision: u64, changes: Vec<ObjectChange>) -> Message {
    Message::SnapshotChunk(SnapshotChunk { revision, changes, last: true })
}

/// A scheduler, and a session on it that must not be disturbed.
async fn with_bystander(name: &str) -> Result<(Service, Session)> {
    let service = scheduler(name).await?;
    let mut bystander = Session::open(&service, Message::Hello(hello("bystander", 7))).await?;
    bystander.is_served().await?;
    Ok((service, bystander))
}

#[tokio::test]
async fn another_version_of_the_protocol() -> Result<()> {
    let (service, mut bystander) = with_bystander("version").await?;
    let newer = Hello { protocol_version: PROTOCOL_VERSION + 2, ..hello("newer", 1) };
    let answer = Session::open(&service, Message::Hello(newer)).await;
    let parts = ["cluster \"newer\" speaks Sync version 3", "speaks 1", "upgrade the older"];
    refused(answer, (Code::FailedPrecondition, "PROTOCOL_VERSION"), &parts)?;
    bystander.is_served().await
}

#[tokio::test]
async fn a_hello_without_cluster_or_epoch() -> Result<()> {
    let (service, mut bystander) = with_bystander("hello").await?;
    let refusal = (Code::InvalidArgument, "MALFORMED");
    let answer = Session::open(&service, Message::Hello(hello("", 1))).await;
    refused(answer, refusal, &["Hello.cluster_id is empty", "set the cluster's name"])?;
    let answer = Session::open(&service, Message::Hello(hello("c", 0))).await;
    refused(answer, refusal, &["Hello.session_epoch must be at least 1"])?;
    bystander.is_served().await
}

#[tokio::test]
async fn an_epoch_that_lies_far_ahead() -> Result<()> {
    let (service, mut bystander) = with_bystander("ahead").await?;
    let answer = Session::open(&service, Message::Hello(hello("c", u64::MAX))).await.map(drop);
    let ahead = (Code::FailedPrecondition, "EPOCH_AHEAD");
    refused(answer, ahead, &["of cluster c lies", "set the clocks of both hosts"])?;
    bystander.is_served().await
}

#[tokio::test]
async fn a_first_message_that_is_not_hello() -> Result<()> {
    let (service, mut bystander) = with_bystander("order").await?;
    let refusal = (Code::InvalidArgument, "PROTOCOL_ORDER");
    let answer = Session::open(&service, chunk(1, Vec::new())).await;
    refused(answer, refusal, &["the first message of Sync must be Hello"])?;
    let mut twice = Session::open(&service, Message::Hello(hello("twice", 1))).await?;
    twice.send(Message::Hello(hello("twice", 1))).await?;
    refused(twice.next().await, refusal, &["Hello is the first message and only that"])?;
    bystander.is_served().await
}

/// Bytes where the protocol has a message.
#[derive(Clone, PartialEq, prost::Message)]
struct Garbage {
    #[prost(bytes = "vec", tag = "1")]
    hello: Vec<u8>,
}

#[tokio::test]
async fn garbage() -> Result<()> {
    let (service, mut bystander) = with_bystander("garbage").await?;
    let mut client = Grpc::new(Endpoint::from_shared(service.url())?.connect().await?);
    client.ready().await?;
    let codec = ProstCodec::<Garbage, SyncResponse>::default();
    let path = PathAndQuery::from_static("/longshore.cluster.v1.ClusterService/Sync");
    let first = tokio_stream::once(Garbage { hello: vec![0xff; 64] });
    let answer = client.streaming(Request::new(first), path, codec).await;
    let parts = ["cannot be decoded", "generate the client from the protocol's own files"];
    refused(answer, (Code::InvalidArgument, "MALFORMED"), &parts)?;
    bystander.is_served().await
}

#[tokio::test]
async fn a_message_over_the_limit() -> Result<()> {
    let (service, mut bystander) = with_bystander("limit").await?;
    let mut large = Session::open(&service, Message::Hello(hello("large", 1))).await?;
    let object = ObjectRef { key: "x".repeat(MESSAGE_BYTES_MAX), ..ObjectRef::default() };
    let change = ObjectChange { change: Some(Change::Remove(object)) };
    large.send(chunk(1, vec![change])).await?;
    let parts = ["larger than 4194304 bytes", "several messages of about 1048576 bytes each"];
    refused(large.next().await, (Code::OutOfRange, "MESSAGE_TOO_LARGE"), &parts)?;
    bystander.is_served().await
}

#[tokio::test]
async fn an_epoch_that_is_not_new() -> Result<()> {
    let (service, mut bystander) = with_bystander("epoch").await?;
    for epoch in [6, 7] {
        let answer = Session::open(&service, Message::Hello(hello("bystander", epoch))).await;
        let older = format!("session {epoch} of cluster bystander is not newer than session 7");
        let parts = [older.as_str(), "raise Hello.session_epoch", "a name of its own"];
        refused(answer, (Code::FailedPrecondition, "STALE_FENCE"), &parts)?;
        bystander.is_served().await?;
    }
    let mut next = Session::open(&service, Message::Hello(hello("bystander", 8))).await?;
    let over = bystander.next().await;
    refused(over, (Code::Aborted, "SESSION_SUPERSEDED"), &["session of cluster bystander ends"])?;
    next.is_served().await
}

#[tokio::test]
async fn a_delta_on_an_unknown_revision_is_answered_with_resync() -> Result<()> {
    let (_service, mut bystander) = with_bystander("delta").await?;
    let delta = longshore_proto::cluster::v1::Delta {
        base_revision: 41,
        revision: 42,
        ..Default::default()
    };
    bystander.send(Message::Delta(delta)).await?;
    let answer = bystander.next().await.context("the session ended")?;
    ensure!(
        matches!(&answer, Answer::Resync(resync) if resync.reason.contains("41..42")),
        "{answer:?}"
    );
    bystander.revision = 42;
    bystander.is_served().await
}
