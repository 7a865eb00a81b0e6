//! A watcher by hand: it speaks Sync as a watcher does and carries nothing out.
//!
//! Invariant: every directive is answered as done, once.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use longshore_proto::cluster::v1::cluster_service_client::ClusterServiceClient;
use longshore_proto::cluster::v1::directive::Action;
use longshore_proto::cluster::v1::sync_request::Message as Up;
use longshore_proto::cluster::v1::sync_response::Message as Down;
use longshore_proto::cluster::v1::{
    Delta, DirectiveResult, DirectiveStatus, Hello, SnapshotChunk, SyncRequest, SyncResponse,
};
use longshore_proto::limits::{CHUNK_BYTES_TARGET, PROTOCOL_VERSION};
use longshore_proto::types::v1::object::Kind;
use longshore_proto::types::v1::object_change::Change;
use longshore_proto::types::v1::{Object, ObjectChange, ObjectKind, ObjectRef, Pod};
use longshore_runtime::client;
use longshore_runtime::net::Network;
use prost::Message as _;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Streaming;
use tonic::transport::Channel;

use super::cluster::{Cluster, REGION};

/// Messages that wait for the connection.
const QUEUE: usize = 256;
/// How long a session may take to begin.
const OPEN_LIMIT: Duration = Duration::from_secs(10);

/// A session under way.
pub struct Watcher {
    up: mpsc::Sender<SyncRequest>,
    down: Streaming<SyncResponse>,
    revision: u64,
}

impl Watcher {
    /// Opens a session and sends the whole cluster.
    ///
    /// # Errors
    /// When the scheduler cannot be reached or refuses it.
    pub async fn open(
        url: &str,
        cluster: &Cluster,
        objects: Vec<Object>,
        epoch: u64,
    ) -> Result<Self> {
        let channel = client::channel(url, &Network::System)?;
        Self::open_over(channel, cluster, objects, epoch).await
    }

    /// The same over a channel of its own.
    ///
    /// # Errors
    /// As for [`Watcher::open`].
    pub async fn open_over(
        channel: Channel,
        cluster: &Cluster,
        objects: Vec<Object>,
        epoch: u64,
    ) -> Result<Self> {
        let opened = tokio::time::timeout(OPEN_LIMIT, Self::greet(channel, cluster, epoch)).await;
        let mut watcher = opened.context("the scheduler does not answer Hello")??;
        watcher.snapshot(objects).await?;
        Ok(watcher)
    }

    async fn greet(channel: Channel, cluster: &Cluster, epoch: u64) -> Result<Self> {
        let (up, queue) = mpsc::channel(QUEUE);
        let hello = Hello {
            cluster_id: cluster.name.clone(),
            session_epoch: epoch,
            protocol_version: PROTOCOL_VERSION,
            cluster_uid: format!("uid-{}", cluster.name),
            region: REGION.to_owned(),
            ..Hello::default()
        };
        up.send(SyncRequest { message: Some(Up::Hello(hello)) }).await?;
        let requests = ReceiverStream::new(queue);
        let down = ClusterServiceClient::new(channel).sync(requests).await?.into_inner();
        Ok(Self { up, down, revision: 0 })
    }

    async fn snapshot(&mut self, objects: Vec<Object>) -> Result<()> {
        self.revision += 1;
        let mut changes = Vec::new();
        let mut bytes = 0;
        for object in objects {
            bytes += object.encoded_len();
            changes.push(upsert(object));
            if bytes > CHUNK_BYTES_TARGET {
                self.chunk(std::mem::take(&mut changes), false).await?;
                bytes = 0;
            }
        }
        self.chunk(changes, true).await
    }

    async fn chunk(&self, changes: Vec<ObjectChange>, last: bool) -> Result<()> {
        self.send(Up::SnapshotChunk(SnapshotChunk { revision: self.revision, changes, last })).await
    }

    /// Sends changes.
    ///
    /// # Errors
    /// When the session has ended.
    pub async fn change(&mut self, changes: Vec<ObjectChange>) -> Result<()> {
        let (base_revision, revision) = (self.revision, self.revision + 1);
        self.revision = revision;
        self.send(Up::Delta(Delta { base_revision, revision, changes, ..Delta::default() })).await
    }

    /// The next thing to do, already answered.
    ///
    /// # Errors
    /// When the session has ended, or the scheduler asks for a snapshot.
    pub async fn next(&mut self) -> Result<Action> {
        loop {
            match self.message().await? {
                Down::Directive(directive) => {
                    self.answer(directive.directive_id).await?;
                    return directive.action.context("a directive without action");
                }
                Down::Resync(resync) => bail!("a snapshot is asked for: {}", resync.reason),
                Down::Welcome(_) | Down::Ack(_) | Down::GoAway(_) => {}
            }
        }
    }

    /// Waits until the scheduler has taken in all that was sent.
    ///
    /// # Errors
    /// When the session has ended.
    pub async fn acknowledged(&mut self) -> Result<()> {
        loop {
            match self.message().await? {
                Down::Ack(ack) if ack.revision == self.revision => return Ok(()),
                Down::Directive(directive) => self.answer(directive.directive_id).await?,
                Down::Ack(_) | Down::Welcome(_) | Down::Resync(_) | Down::GoAway(_) => {}
            }
        }
    }

    async fn message(&mut self) -> Result<Down> {
        let response = self.down.message().await?;
        response.and_then(|response| response.message).context("the session has ended")
    }

    async fn answer(&self, directive_id: String) -> Result<()> {
        let status = DirectiveStatus::Done.into();
        let result = DirectiveResult { directive_id, status, ..DirectiveResult::default() };
        self.send(Up::DirectiveResult(result)).await
    }

    async fn send(&self, message: Up) -> Result<()> {
        Ok(self.up.send(SyncRequest { message: Some(message) }).await?)
    }

    /// Waits until the scheduler says where this pod goes.
    ///
    /// # Errors
    /// When the session has ended.
    pub async fn place_of(&mut self, uid: &str) -> Result<()> {
        while !places(&self.next().await?, uid) {}
        Ok(())
    }
}

/// True when an action is what a plan for this pod asks for: a place on a node, or a new node.
#[must_use]
pub fn places(action: &Action, uid: &str) -> bool {
    let named = |pods: &[String]| pods.iter().any(|pod| pod == uid);
    match action {
        Action::NominatePods(nominate) => named(&nominate.pods),
        Action::CreateClaim(create) => named(&create.pods),
        Action::RecordLaunch(_)
        | Action::RecordLaunchFailure(_)
        | Action::RegisterNode(_)
        | Action::DisruptClaim(_)
        | Action::DeleteClaim(_)
        | Action::ReleaseClaim(_)
        | Action::SetNodeClassStatus(_)
        | Action::PublishEvent(_)
        | Action::NoteDrift(_)
        | Action::PinPods(_)
        | Action::SetNodePoolStatus(_)
        | Action::SetConditions(_) => false,
    }
}

/// An object that is there now.
#[must_use]
pub const fn upsert(object: Object) -> ObjectChange {
    ObjectChange { change: Some(Change::Upsert(object)) }
}

/// A pod that is there now.
#[must_use]
pub const fn pod(pod: Pod) -> ObjectChange {
    upsert(object(pod))
}

/// A pod as an object.
#[must_use]
pub const fn object(pod: Pod) -> Object {
    Object { kind: Some(Kind::Pod(pod)) }
}

/// A pod that has gone.
#[must_use]
pub fn gone(uid: &str) -> ObjectChange {
    let reference = ObjectRef { kind: ObjectKind::Pod.into(), key: uid.to_owned() };
    ObjectChange { change: Some(Change::Remove(reference)) }
}
