//! ClusterService: accepts watchers and gives each a session task.

use std::sync::PoisonError;
use std::time::Duration;

use futures::stream::{self, BoxStream, PollNext, StreamExt as _};
use longshore_proto::cluster::v1 as cluster;
use longshore_proto::cluster::v1::cluster_service_server::ClusterService;
use longshore_proto::epoch;
use longshore_proto::reason::{self, Reason};
use longshore_runtime::net::Peer;
use longshore_runtime::tasks::Supervisor;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status, Streaming};

use super::{Connected, Identity, Sessions};
use crate::counters::Counters;
use crate::memory::Memory;
use crate::proof;
use crate::region::directory::Regions;
use crate::session::{self, Lanes, Parts};
use crate::settings::Settings;

/// Most questions that wait for a session's answer.
const QUERIES: usize = 64;
/// How long a client that has opened a stream may take to say who it is.
const HELLO_PATIENCE: Duration = Duration::from_secs(10);

/// Serves Sync.
pub struct Service {
    /// Owner of the session tasks.
    pub supervisor: Supervisor,
    /// The connected clusters.
    pub sessions: Sessions,
    /// The regions within reach.
    pub regions: Regions,
    /// How plans are made.
    pub settings: Settings,
    /// What is counted.
    pub counters: Counters,
    /// What views of clusters may take.
    pub memory: Memory,
}

#[tonic::async_trait]
impl ClusterService for Service {
    type SyncStream = Responses;

    async fn sync(
        &self,
        request: Request<Streaming<cluster::SyncRequest>>,
    ) -> Result<Response<Self::SyncStream>, Status> {
        let peer = Peer::of(request.extensions());
        let tenant = peer.tenant();
        let mut inbound = request.into_inner();
        let first = tokio::time::timeout(HELLO_PATIENCE, inbound.message()).await;
        let first = first.map_err(|_| silent())?.map_err(reason::of_receiving)?;
        let mut hello = session::hello(first)?;
        let now_ms = self.supervisor.platform().clock.now_ms();
        proof::complete(&mut hello, peer.identity.as_deref())
            .and_then(|()| epoch::check(&hello.cluster_id, hello.session_epoch, now_ms))
            .map_err(|status| *status)?;
        let memory = self.memory.session(&tenant)?;
        let (queries, query_queue) = mpsc::channel(QUERIES);
        let token = self.supervisor.token().child_token();
        let connected =
            Connected { session_epoch: hello.session_epoch, queries, token: token.clone() };
        let cluster = Identity::of(&hello);
        let admitted = self.sessions.admit(&cluster, connected);
        let breaker = admitted.map_err(|rival| rival.refusal(&cluster, hello.session_epoch))?;
        breaker
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .recall(&hello.losses, Instant::now());
        let (outbound, responses) = responses();
        let parts = Parts {
            hello,
            inbound,
            outbound,
            regions: self.regions.clone(),
            queries: query_queue,
            token,
            supervisor: self.supervisor.clone(),
            settings: self.settings.clone(),
            breaker,
            counters: self.counters.clone(),
            memory,
            identity: peer.identity,
        };
        self.start(parts, cluster);
        Ok(Response::new(responses))
    }
}

/// Answers to a watcher.
type Responses = BoxStream<'static, Result<cluster::SyncResponse, Status>>;

/// The two ends of a stream in which what is urgent overtakes the rest.
fn responses() -> (Lanes, Responses) {
    let (urgent, first) = mpsc::channel(session::outbound_queue());
    let (plain, second) = mpsc::channel(session::outbound_queue());
    let (first, second) = (ReceiverStream::new(first), ReceiverStream::new(second));
    let both = stream::select_with_strategy(first, second, |(): &mut ()| PollNext::Left);
    (Lanes { urgent, plain }, both.boxed())
}

fn silent() -> Status {
    let message = format!("no Hello within {HELLO_PATIENCE:?}; send it first");
    Reason::ProtocolOrder.status(message)
}

impl Service {
    fn start(&self, parts: Parts, cluster: Identity) {
        let sessions = self.sessions.clone();
        let epoch = parts.hello.session_epoch;
        let version = parts.hello.watcher_version.clone();
        tracing::info!(%cluster, epoch, watcher_version = version, "watcher connected");
        let (outbound, of_panic) = (parts.outbound.plain.clone(), parts.outbound.plain.clone());
        let name = cluster.to_string();
        let task = async move {
            if let Err(status) = session::run(parts).await {
                tracing::info!(
                    cluster = name,
                    code = %status.code(),
                    "session ended: {}",
                    status.message()
                );
                // The watcher may have gone already; then nobody needs the status.
                let _ = outbound.try_send(Err(status));
            }
            Ok(())
        };
        // One cluster's trouble is not that of the others: its watcher comes back with a new
        // session.
        self.supervisor.spawn_contained("session", task, move |outcome| {
            if let Err(error) = outcome {
                let message = format!("the session of cluster {cluster} failed: {error:#}");
                let _ = of_panic.try_send(Err(Status::internal(message)));
            }
            sessions.leave(&cluster, epoch);
        });
    }
}
