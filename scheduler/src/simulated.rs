//! The whole scheduler between a watcher and an actuator of paper, in memory and on a clock that
//! waits for nobody.
//!
//! Invariant: tests see what goes over the wire and nothing else.

use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::BoxFuture;
use futures::stream::{BoxStream, StreamExt as _};
use longshore_proto::capacity::v1 as capacity;
use longshore_proto::capacity::v1::capacity_service_server::{
    CapacityService, CapacityServiceServer,
};
use longshore_proto::capacity::v1::region_change::Change;
use longshore_proto::cluster::v1 as cluster;
use longshore_proto::cluster::v1::cluster_service_client::ClusterServiceClient;
use longshore_proto::cluster::v1::directive::Action;
use longshore_proto::cluster::v1::sync_request::Message as Up;
use longshore_proto::cluster::v1::sync_response::Message as Down;
use longshore_proto::limits::PROTOCOL_VERSION;
use longshore_proto::types::v1;
use longshore_proto::types::v1::object::Kind;
use longshore_runtime::clock::Clock;
use longshore_runtime::entropy::Entropy;
use longshore_runtime::listener::Listener;
use longshore_runtime::net::{Network, Stream, Transport};
use longshore_runtime::platform::Platform;
use longshore_runtime::pulse::Pulses;
use longshore_runtime::server::{AccessArgs, GrpcServer};
use longshore_runtime::tasks::Supervisor;
use longshore_runtime::workers::Workers;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};
use tokio_stream::wrappers::UnboundedReceiverStream;
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status, Streaming};

use crate::args::Config;
use crate::random::{self, CATALOGUE, CLASS, Random};
use crate::settings::Settings;

/// Longest that anything may take.
const PATIENCE: Duration = Duration::from_secs(3_600);

type Changes = mpsc::UnboundedSender<Result<capacity::WatchResponse, Status>>;
type Incoming = mpsc::UnboundedSender<io::Result<Stream>>;

/// Connections by authority.
#[derive(Clone, Default)]
struct Roads(Arc<Mutex<BTreeMap<String, Incoming>>>);

impl Roads {
    fn listen(&self, authority: &str) -> Listener {
        let (incoming, connections) = mpsc::unbounded_channel();
        self.0.lock().unwrap().insert(authority.to_owned(), incoming);
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 1));
        Listener::given(address, UnboundedReceiverStream::new(connections).boxed())
    }
}

impl Transport for Roads {
    fn connect(&self, uri: tonic::transport::Uri) -> BoxFuture<'static, io::Result<Stream>> {
        let authority = uri.authority().map(ToString::to_string).unwrap_or_default();
        let (near, far) = tokio::io::duplex(1 << 20);
        let sent = self.0.lock().unwrap().get(&authority).map(|to| to.send(Ok(Stream::new(far))));
        let nobody = || io::Error::from(io::ErrorKind::ConnectionRefused);
        Box::pin(std::future::ready(sent.map(|_| Stream::new(near)).ok_or_else(nobody)))
    }
}

/// An actuator that says what it is told to say, and notes what it is asked.
#[derive(Clone, Default)]
struct Actuator {
    told: Arc<Mutex<Vec<capacity::RegionChange>>>,
    listeners: Arc<Mutex<Vec<Changes>>>,
    terminations: Arc<Mutex<Vec<String>>>,
    launches: Arc<Mutex<Vec<v1::Launch>>>,
}

#[tonic::async_trait]
impl CapacityService for Actuator {
    type WatchStream = BoxStream<'static, Result<capacity::WatchResponse, Status>>;
    type ReadAuditStream = BoxStream<'static, Result<capacity::ReadAuditResponse, Status>>;

    async fn put_cluster(
        &self,
        _: Request<capacity::PutClusterRequest>,
    ) -> Result<Response<capacity::PutClusterResponse>, Status> {
        Ok(Response::new(Default::default()))
    }

    async fn apply_plan(
        &self,
        request: Request<capacity::ApplyPlanRequest>,
    ) -> Result<Response<capacity::ApplyPlanResponse>, Status> {
        let request = request.into_inner();
        if request.plan_id.is_empty() {
            return Err(Status::invalid_argument("plan_id is empty"));
        }
        let terminations = request.terminations;
        let ids = terminations.into_iter().map(|termination| termination.instance_id);
        self.terminations.lock().unwrap().extend(ids);
        self.launches.lock().unwrap().extend(request.launches);
        Ok(Response::new(Default::default()))
    }

    async fn watch(
        &self,
        _: Request<capacity::WatchRequest>,
    ) -> Result<Response<Self::WatchStream>, Status> {
        let (to, from) = mpsc::unbounded_channel();
        let changes = self.told.lock().unwrap().clone();
        to.send(Ok(capacity::WatchResponse { revision: 1, snapshot_end: true, changes })).unwrap();
        self.listeners.lock().unwrap().push(to);
        Ok(Response::new(UnboundedReceiverStream::new(from).boxed()))
    }

    async fn read_audit(
        &self,
        _: Request<capacity::ReadAuditRequest>,
    ) -> Result<Response<Self::ReadAuditStream>, Status> {
        Ok(Response::new(futures::stream::empty().boxed()))
    }

    async fn forget_cluster(
        &self,
        _: Request<capacity::ForgetClusterRequest>,
    ) -> Result<Response<capacity::ForgetClusterResponse>, Status> {
        Ok(Response::new(Default::default()))
    }
}

impl Actuator {
    fn tell(&self, change: Change) {
        let change = capacity::RegionChange { change: Some(change) };
        self.told.lock().unwrap().push(change.clone());
        for listener in self.listeners.lock().unwrap().iter() {
            let changes = vec![change.clone()];
            let response = capacity::WatchResponse { revision: 2, snapshot_end: false, changes };
            drop(listener.send(Ok(response)));
        }
    }
}

/// The three of them.
struct Scene {
    actuator: Actuator,
    up: mpsc::UnboundedSender<cluster::SyncRequest>,
    down: Streaming<cluster::SyncResponse>,
    revision: u64,
    seen: Vec<Action>,
    ids: Vec<String>,
    supervisor: Supervisor,
}

/// A node in service with its claim, as the watcher shows them.
fn in_service(number: u64) -> (v1::Node, v1::NodeClaim) {
    let [Kind::Node(mut node), Kind::NodeClaim(mut claim)] =
        random::node(&mut Random::new(1), number)
    else {
        panic!("a node and its claim");
    };
    (node.ready, node.cordoned) = (true, false);
    claim.initialize_time = Some(prost_types::Timestamp { seconds: 1_070, nanos: 0 });
    claim.pool = "pool-0".to_owned();
    claim.launch_id = format!("l-{number}");
    claim.deleting = false;
    node.labels.insert("karpenter.sh/nodepool".to_owned(), "pool-0".to_owned());
    (node, claim)
}

fn instance(number: u64) -> capacity::InstanceState {
    capacity::InstanceState {
        instance_id: format!("i-{number}"),
        launch_id: format!("l-{number}"),
        cluster_id: "c".to_owned(),
        claim: format!("claim-{number}"),
        phase: capacity::InstancePhase::Running.into(),
        launch_time: Some(prost_types::Timestamp { seconds: 1_000, nanos: 0 }),
        ..Default::default()
    }
}

/// A pod of shape `s-0`, bound to a node.
fn bound(node: &str) -> Kind {
    Kind::Pod(v1::Pod {
        uid: format!("pod-{node}"),
        namespace: "default".to_owned(),
        name: format!("pod-{node}"),
        shape_id: "s-0".to_owned(),
        node_name: node.to_owned(),
        phase: v1::PodPhase::Running.into(),
        ..Default::default()
    })
}

fn pool(consolidates: bool) -> Kind {
    let Kind::NodePool(mut pool) = random::pool(&mut Random::new(1), 0) else { panic!("a pool") };
    if let Some(rules) = &mut pool.disruption {
        rules.consolidate_after = rules.consolidate_after.filter(|_| consolidates);
    }
    Kind::NodePool(pool)
}

/// What a watcher sends, and what it is sent.
type Sync = (mpsc::UnboundedSender<cluster::SyncRequest>, Streaming<cluster::SyncResponse>);

fn hello(session_epoch: u64, region: &str, uid: &str) -> cluster::Hello {
    cluster::Hello {
        cluster_id: "c".to_owned(),
        session_epoch,
        protocol_version: PROTOCOL_VERSION,
        region: region.to_owned(),
        cluster_uid: uid.to_owned(),
        ..Default::default()
    }
}

async fn connect(platform: &Platform, hello: cluster::Hello) -> Result<Sync, Status> {
    let channel = longshore_runtime::client::channel("http://scheduler:1", &platform.network);
    let (up, requests) = mpsc::unbounded_channel();
    up.send(cluster::SyncRequest { message: Some(Up::Hello(hello)) }).unwrap();
    let requests = UnboundedReceiverStream::new(requests);
    let down = ClusterServiceClient::new(channel.unwrap()).sync(requests).await?;
    Ok((up, down.into_inner()))
}

impl Scene {
    async fn new(nodes: &[u64], objects: Vec<Kind>) -> Self {
        let (roads, actuator) = (Roads::default(), Actuator::default());
        let began = Instant::now();
        let clock = Clock::reading(move || {
            10_000_000 + i64::try_from(began.elapsed().as_millis()).unwrap()
        });
        let platform = Platform {
            clock,
            entropy: Entropy::seeded(1),
            network: Network::Given(Arc::new(roads.clone())),
            credentials: None,
            workers: Workers::inline(Duration::from_millis(1), || ()),
            pulses: Pulses::default(),
            confinement: None,
        };
        let supervisor = Supervisor::new(CancellationToken::new(), platform.clone());
        for change in region() {
            actuator.tell(change);
        }
        nodes.iter().for_each(|number| actuator.tell(Change::Instance(instance(*number))));
        let server =
            GrpcServer::new(longshore_proto::DESCRIPTOR_SET, AccessArgs::default()).unwrap();
        let server = server.with_service(CapacityServiceServer::new(actuator.clone()));
        let (listener, token) = (roads.listen("actuator:1"), supervisor.token().clone());
        supervisor.spawn_once("actuator", server.serve(listener, token));
        let actuator_endpoints = vec!["http://actuator:1".to_owned()];
        let config = Config {
            actuator_endpoints,
            settings: Settings::default(),
            memory_mib: crate::memory::MIB_DEFAULT,
            access: AccessArgs::default(),
        };
        crate::start(config, roads.listen("scheduler:1"), &supervisor).unwrap();
        let (up, down) = connect(&platform, hello(1, "", "")).await.unwrap();
        let mut scene =
            Self { actuator, up, down, revision: 1, seen: Vec::new(), ids: Vec::new(), supervisor };
        let mut all = objects;
        for (node, claim) in nodes.iter().map(|number| in_service(*number)) {
            all.extend([Kind::Node(node), Kind::NodeClaim(claim)]);
        }
        scene.snapshot(all);
        scene
    }

    /// The watcher comes back.
    async fn reconnect(&mut self, session_epoch: u64) {
        self.reconnect_saying(hello(session_epoch, "", "")).await;
    }

    /// The same, with what it has to say.
    async fn reconnect_saying(&mut self, hello: cluster::Hello) {
        (self.up, self.down) = connect(self.supervisor.platform(), hello).await.unwrap();
    }

    fn snapshot(&mut self, objects: Vec<Kind>) {
        let facts = v1::ClusterFacts { region: "r".to_owned(), ..Default::default() };
        let class = v1::NodeClass { name: CLASS.to_owned(), ..Default::default() };
        let shape = random::shape(&mut Random::new(1), 0);
        let known = [Kind::Cluster(facts), Kind::NodeClass(class), shape];
        let changes = known.into_iter().chain(objects).map(random::upsert).collect();
        let chunk = cluster::SnapshotChunk { revision: self.revision, changes, last: true };
        self.up.send(cluster::SyncRequest { message: Some(Up::SnapshotChunk(chunk)) }).unwrap();
    }

    fn delta(&mut self, objects: Vec<Kind>) {
        let (base_revision, revision) = (self.revision, self.revision + 1);
        let changes = objects.into_iter().map(random::upsert).collect();
        let delta = cluster::Delta { base_revision, revision, changes, ..Default::default() };
        self.revision = revision;
        self.up.send(cluster::SyncRequest { message: Some(Up::Delta(delta)) }).unwrap();
    }

    /// What is asked next that `wanted` picks, within a time. Everything asked is answered as done.
    async fn next<T>(
        &mut self,
        within: Duration,
        wanted: impl Fn(&Action) -> Option<T>,
    ) -> Option<T> {
        let until = Instant::now() + within;
        let mut sign = Instant::now();
        loop {
            if Instant::now() >= sign {
                let bookmark = cluster::Bookmark::default();
                self.up
                    .send(cluster::SyncRequest { message: Some(Up::Bookmark(bookmark)) })
                    .ok()?;
                sign = Instant::now() + Duration::from_secs(10);
            }
            let left = until.min(sign) - Instant::now();
            let Ok(response) = timeout(left, self.down.message()).await else {
                if Instant::now() >= until {
                    return None;
                }
                continue;
            };
            let Some(Down::Directive(directive)) = response.unwrap()?.message else { continue };
            self.ids.push(directive.directive_id.clone());
            let result = cluster::DirectiveResult {
                directive_id: directive.directive_id,
                status: cluster::DirectiveStatus::Done.into(),
                ..Default::default()
            };
            let result = Up::DirectiveResult(result);
            self.up.send(cluster::SyncRequest { message: Some(result) }).unwrap();
            let action = directive.action.unwrap();
            self.seen.push(action.clone());
            if let Some(found) = wanted(&action) {
                return Some(found);
            }
        }
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        self.supervisor.token().cancel();
    }
}

fn region() -> [Change; 3] {
    let subnet =
        |zone: &str| cluster::ResolvedSubnet { zone: zone.to_owned(), ..Default::default() };
    let status = cluster::SetNodeClassStatus {
        node_class: CLASS.to_owned(),
        subnets: ["z-a", "z-b", "z-c"].map(subnet).to_vec(),
        ..Default::default()
    };
    let info = capacity::RegionInfo { region: "r".to_owned(), ..Default::default() };
    let class = capacity::NodeClassResolution {
        cluster_id: "c".to_owned(),
        catalogue_id: CATALOGUE.to_owned(),
        ready: true,
        status: Some(status),
        ..Default::default()
    };
    let catalogue = random::catalogue(&mut Random::new(0));
    [Change::Region(info), Change::Catalogue(catalogue), Change::NodeClass(class)]
}

mod bursts;
mod pins;
mod reservations;
mod scenes;
mod statuses;
mod upkeep;
