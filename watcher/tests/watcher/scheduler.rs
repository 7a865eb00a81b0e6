//! A scheduler that does as a test tells it.
//!
//! Invariant: it checks what the protocol promises: revisions that fit, shapes before pods, digests
//! that agree.

use std::collections::BTreeMap;
use std::time::Duration;

use longshore_proto::cluster::v1::cluster_service_server::{ClusterService, ClusterServiceServer};
use longshore_proto::cluster::v1::directive::Action;
use longshore_proto::cluster::v1::sync_request::Message;
use longshore_proto::cluster::v1::sync_response::Message as Answer;
use longshore_proto::cluster::v1::{
    Ack, Bookmark, Directive, DirectiveResult, Hello, Resync, SyncRequest, SyncResponse, Welcome,
};
use longshore_proto::reference::{self, Digest};
use longshore_proto::types::v1 as wire;
use longshore_proto::types::v1::object::Kind;
use longshore_proto::types::v1::object_change::Change;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_stream::wrappers::{ReceiverStream, TcpListenerStream};
use tonic::{Request, Response, Status, Streaming};

use super::support::within;

type Outbound = mpsc::Sender<Result<SyncResponse, Status>>;

/// Accepts streams and hands them to the test.
pub struct Scheduler {
    pub endpoint: String,
    streams: mpsc::Receiver<(Streaming<SyncRequest>, Outbound)>,
    _server: JoinSet<()>,
}

struct Service {
    streams: mpsc::Sender<(Streaming<SyncRequest>, Outbound)>,
}

#[tonic::async_trait]
impl ClusterService for Service {
    type SyncStream = ReceiverStream<Result<SyncResponse, Status>>;

    async fn sync(
        &self,
        request: Request<Streaming<SyncRequest>>,
    ) -> Result<Response<Self::SyncStream>, Status> {
        let (outbound, queue) = mpsc::channel(256);
        self.streams.send((request.into_inner(), outbound)).await.unwrap();
        Ok(Response::new(ReceiverStream::new(queue)))
    }
}

impl Scheduler {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let (sender, streams) = mpsc::channel(8);
        let mut server = JoinSet::new();
        server.spawn(async move {
            let service = ClusterServiceServer::new(Service { streams: sender });
            let incoming = TcpListenerStream::new(listener);
            tonic::transport::Server::builder()
                .add_service(service)
                .serve_with_incoming(incoming)
                .await
                .unwrap();
        });
        Self { endpoint, streams, _server: server }
    }

    /// The next stream, before Welcome.
    pub async fn hello(&mut self) -> (Hello, Session) {
        let (mut inbound, outbound) = within("a stream", self.streams.recv()).await.unwrap();
        let first = within("Hello", inbound.message()).await.unwrap().unwrap();
        let Some(Message::Hello(hello)) = first.message else { panic!("no Hello: {first:?}") };
        (hello, Session { inbound, outbound, view: View::default(), directives: 0 })
    }

    /// The next session, welcomed and with its whole view.
    pub async fn session(&mut self) -> (Hello, Session) {
        let (hello, mut session) = self.hello().await;
        session.welcome(Welcome { window: 8, ..Welcome::default() }).await;
        session.until("the snapshot is whole", |view| view.revision.is_some()).await;
        (hello, session)
    }
}

/// What the scheduler knows.
#[derive(Default)]
pub struct View {
    pub revision: Option<u64>,
    pub objects: BTreeMap<(i32, String), Kind>,
    pub traceparents: Vec<String>,
    pub bookmarks: Vec<Bookmark>,
    pub results: BTreeMap<String, DirectiveResult>,
    digest: Digest,
}

impl View {
    pub fn pods(&self) -> impl Iterator<Item = &wire::Pod> {
        let kinds = self.objects.values();
        kinds.filter_map(|kind| if let Kind::Pod(pod) = kind { Some(pod) } else { None })
    }

    pub fn pod(&self, name: &str) -> Option<&wire::Pod> {
        self.pods().find(|pod| pod.name == name)
    }

    pub fn cluster(&self) -> Option<&wire::ClusterFacts> {
        let kind = self.get(wire::ObjectKind::Cluster, "")?;
        if let Kind::Cluster(facts) = kind { Some(facts) } else { None }
    }

    pub fn claim(&self, name: &str) -> Option<&wire::NodeClaim> {
        let kind = self.get(wire::ObjectKind::NodeClaim, name)?;
        if let Kind::NodeClaim(claim) = kind { Some(claim) } else { None }
    }

    pub fn node(&self, name: &str) -> Option<&wire::Node> {
        let kind = self.get(wire::ObjectKind::Node, name)?;
        if let Kind::Node(node) = kind { Some(node) } else { None }
    }

    pub fn pool(&self, name: &str) -> Option<&wire::NodePool> {
        let kind = self.get(wire::ObjectKind::NodePool, name)?;
        if let Kind::NodePool(pool) = kind { Some(pool) } else { None }
    }

    fn get(&self, kind: wire::ObjectKind, key: &str) -> Option<&Kind> {
        self.objects.get(&(kind.into(), key.to_owned()))
    }

    fn apply(&mut self, changes: Vec<wire::ObjectChange>) {
        for change in changes {
            match change.change.unwrap() {
                Change::Upsert(object) => {
                    let kind = object.kind.unwrap();
                    let reference = reference::of(&kind);
                    if let Kind::Pod(pod) = &kind {
                        let shape = (wire::ObjectKind::PodShape.into(), pod.shape_id.clone());
                        assert!(self.objects.contains_key(&shape), "pod before its shape");
                    }
                    self.digest.add(&reference);
                    self.objects.insert((reference.kind, reference.key), kind);
                }
                Change::Remove(reference) => {
                    self.digest.remove(&reference);
                    self.objects.remove(&(reference.kind, reference.key));
                }
            }
        }
    }
}

/// One stream.
pub struct Session {
    inbound: Streaming<SyncRequest>,
    outbound: Outbound,
    pub view: View,
    directives: u32,
}

impl Session {
    pub async fn send(&self, message: Answer) {
        self.outbound.send(Ok(SyncResponse { message: Some(message) })).await.unwrap();
    }

    pub async fn refuse(self, status: Status) {
        self.outbound.send(Err(status)).await.unwrap();
    }

    pub async fn welcome(&self, mut welcome: Welcome) {
        welcome.bookmark_interval = Some(prost_types::Duration { seconds: 0, nanos: 50_000_000 });
        self.send(Answer::Welcome(welcome)).await;
    }

    pub async fn resync(&mut self) {
        self.view = View::default();
        self.send(Answer::Resync(Resync { reason: "a test wants it".to_owned() })).await;
    }

    /// Takes messages until the view is as wanted.
    pub async fn until(&mut self, what: &str, holds: impl Fn(&View) -> bool) {
        within(what, async {
            while !holds(&self.view) {
                let message = self.inbound.message().await.unwrap().unwrap().message.unwrap();
                self.take(message).await;
            }
        })
        .await;
    }

    /// Sends a directive and waits for its result.
    pub async fn direct(&mut self, action: Action) -> DirectiveResult {
        self.directives += 1;
        let id = format!("d{}", self.directives);
        self.direct_as(&id, action).await
    }

    pub async fn direct_as(&mut self, id: &str, action: Action) -> DirectiveResult {
        self.send_directive(directive(id, action)).await
    }

    /// Sends a directive; its result is not waited for.
    pub async fn begin(&self, id: &str, action: Action) {
        self.send(Answer::Directive(directive(id, action))).await;
    }

    pub async fn send_directive(&mut self, directive: Directive) -> DirectiveResult {
        let id = directive.directive_id.clone();
        self.view.results.remove(&id);
        self.send(Answer::Directive(directive)).await;
        self.until("a result", |view| view.results.contains_key(&id)).await;
        self.view.results[&id].clone()
    }

    async fn take(&mut self, message: Message) {
        match message {
            Message::Hello(_) => panic!("Hello twice"),
            Message::SnapshotChunk(chunk) => {
                self.view.apply(chunk.changes);
                self.view.revision = chunk.last.then_some(chunk.revision);
                self.ack(chunk.revision).await;
            }
            Message::Delta(delta) => {
                // Deltas sent before a Resync was read are ignored, as the protocol says.
                if let Some(revision) = self.view.revision {
                    assert_eq!(delta.base_revision, revision, "a delta that does not fit");
                    assert!(delta.revision > revision);
                    self.view.revision = Some(delta.revision);
                    self.view.apply(delta.changes);
                    self.view.traceparents.push(delta.traceparent);
                }
                self.ack(delta.revision).await;
            }
            Message::Bookmark(bookmark) => {
                if self.view.revision == Some(bookmark.revision) {
                    let here = self.view.digest.value();
                    assert_eq!(here, (bookmark.object_count, bookmark.digest));
                }
                self.view.bookmarks.push(bookmark);
            }
            Message::DirectiveResult(result) => {
                self.view.results.insert(result.directive_id.clone(), result);
            }
        }
    }

    async fn ack(&self, revision: u64) {
        let token = format!("at-{revision}").into_bytes().into();
        self.send(Answer::Ack(Ack { revision, resume_token: token })).await;
    }
}

fn directive(id: &str, action: Action) -> Directive {
    Directive { directive_id: id.to_owned(), action: Some(action), ..Directive::default() }
}

/// How long any wait of these tests may take.
pub const DEADLINE: Duration = Duration::from_secs(20);
