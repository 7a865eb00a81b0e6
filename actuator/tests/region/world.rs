//! A region, an actuator in it, and a client that watches.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use aws_config::identity::IdentityCache;
use aws_credential_types::Credentials;
use aws_credential_types::provider::{ProvideCredentials, future};
use clap::Parser;
use longshore_actuator::cloud::Cloud;
use longshore_actuator::ec2::Aws;
use longshore_actuator::{Args, Config, Sharing, start_with};
use longshore_lab::region::{
    CLUSTER, CONTROLLER_KEY, NODE_ROLE, Region, RegionConfig, RegionHandle,
};
use longshore_proto::capacity::v1::capacity_service_client::CapacityServiceClient;
use longshore_proto::capacity::v1::{
    ApplyPlanRequest, ApplyPlanResponse, Fence, PutClusterRequest, WatchRequest,
};
use longshore_proto::types::v1::{ClusterFacts, Launch, NodeClass, SelectorTerm, Termination};
use longshore_runtime::clock::Clock;
use longshore_runtime::metrics::Metrics;
use longshore_runtime::platform::Platform;
use longshore_runtime::tasks::Supervisor;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tonic::transport::Channel;
use tonic::{Code, Status, Streaming};

use crate::shown::Shown;

pub const REGION: &str = "us-east-1";
pub const CLASS: &str = "EC2NodeClass/default";
/// Longest wait for anything on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);

/// A client with what its watch has shown.
pub struct Client {
    pub service: CapacityServiceClient<Channel>,
    stream: Streaming<longshore_proto::capacity::v1::WatchResponse>,
    pub shown: Shown,
    epoch: u64,
}

/// Credentials that ask for the time whenever they are asked for, which is in each call to AWS: so
/// a clock sees from where it is made.
struct Asking {
    credentials: Credentials,
    clock: Clock,
}

impl std::fmt::Debug for Asking {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Asking").finish_non_exhaustive()
    }
}

impl ProvideCredentials for Asking {
    fn provide_credentials<'a>(&'a self) -> future::ProvideCredentials<'a>
    where
        Self: 'a,
    {
        let _asked_ms = self.clock.now_ms();
        future::ProvideCredentials::ready(Ok(self.credentials.clone()))
    }
}

/// The clients of a region.
pub async fn aws(region: &RegionHandle, key: &str, clock: &Clock) -> Aws {
    let credentials = Credentials::new(key, "x", None, None, "test");
    let asking = Asking { credentials, clock: clock.clone() };
    Aws::connect_with(REGION, clock, |loader| {
        let loader = loader.identity_cache(IdentityCache::no_cache());
        loader.endpoint_url(region.endpoint_url()).credentials_provider(asking)
    })
    .await
}

/// An actuator in this process.
pub struct Actuator {
    pub address: String,
    supervisor: Supervisor,
}

impl Actuator {
    /// Starts one with arguments beyond the region and listening address.
    pub async fn start(region: &RegionHandle, key: &str, more: &[&str]) -> Self {
        Self::start_on(Platform::system(), region, key, more).await
    }

    /// The same, on a platform of the test's own.
    pub async fn start_on(
        platform: Platform,
        region: &RegionHandle,
        key: &str,
        more: &[&str],
    ) -> Self {
        let cloud: Arc<dyn Cloud> = Arc::new(aws(region, key, &platform.clock).await);
        let own = ["x", "--region", REGION, "--inventory-interval", "200ms"];
        let args = Args::parse_from(own.iter().chain(more));
        let mut config = Config::try_from(args).unwrap();
        // As with a ledger in etcd, so that calls for several go over the wire.
        config.tuning.sharing = Sharing::All;
        let supervisor = Supervisor::new(CancellationToken::new(), platform);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = start_with(config, listener, cloud, &Metrics::new(), &supervisor).unwrap();
        Self { address: format!("http://{address}"), supervisor }
    }

    /// True while the process has not been told to end, by itself or by others.
    pub fn goes_on(&self) -> bool {
        !self.supervisor.token().is_cancelled()
    }

    /// What a process that ended by itself said.
    pub async fn ended(self) -> String {
        format!("{:#}", self.supervisor.join(LIMIT).await.expect_err("a clean end"))
    }

    /// Ends it in order.
    pub async fn stop(self) {
        self.supervisor.token().cancel();
        self.supervisor.join(LIMIT).await.unwrap();
    }
}

/// A region as it comes, with an actuator and a client that has put the cluster.
pub struct World {
    pub region: RegionHandle,
    pub actuator: Actuator,
    pub client: Client,
}

impl World {
    pub async fn new() -> Self {
        Self::with(CONTROLLER_KEY, class()).await
    }

    pub async fn with(key: &str, class: NodeClass) -> Self {
        Self::on(RegionConfig::simple(REGION).unwrap(), key, class).await
    }

    pub async fn on(config: RegionConfig, key: &str, class: NodeClass) -> Self {
        let region = Region::start(config).await.unwrap();
        let actuator = Actuator::start(&region, key, &[]).await;
        let mut client = Client::connect(&actuator.address, 1).await;
        client.put_cluster(facts(), vec![class]).await.unwrap();
        Self { region, actuator, client }
    }

    /// Waits until launches may use the class.
    pub async fn ready() -> Self {
        let mut world = Self::new().await;
        world.client.until("class ready", |shown| shown.class_ready()).await;
        world
    }
}

impl Client {
    /// A client of an actuator that will answer before long.
    pub async fn connect(address: &str, epoch: u64) -> Self {
        let channel =
            longshore_runtime::client::channel(address, &longshore_runtime::net::Network::System)
                .unwrap();
        let mut service = CapacityServiceClient::new(channel);
        let stream = answered(|| {
            let mut service = service.clone();
            async move { service.watch(WatchRequest::default()).await }
        })
        .await
        .into_inner();
        service = service.max_decoding_message_size(4 * 1024 * 1024);
        Self { service, stream, shown: Shown::default(), epoch }
    }

    /// Reads the watch until it has shown what is waited for.
    pub async fn until(&mut self, what: &str, done: impl Fn(&Shown) -> bool) {
        let reading = async {
            while !done(&self.shown) {
                let message = self.stream.message().await.unwrap().expect("the watch goes on");
                for change in message.changes {
                    self.shown.take(change.change.unwrap());
                }
            }
        };
        if tokio::time::timeout(LIMIT, reading).await.is_err() {
            panic!(
                "{what}: never shown; classes {:#?} launches {:#?} instances {:#?}",
                self.shown.classes, self.shown.launches, self.shown.instances
            );
        }
    }

    /// Reads the state that the watch begins with.
    pub async fn begin(&mut self) {
        let mut ended = false;
        while !ended {
            let message = self.stream.message().await.unwrap().expect("the watch goes on");
            ended = message.snapshot_end;
            message.changes.into_iter().for_each(|c| self.shown.take(c.change.unwrap()));
        }
    }

    /// Reads the watch to its end and returns the status it ends with.
    pub async fn end(&mut self) -> Status {
        loop {
            match self.stream.message().await {
                Ok(Some(_)) => {}
                Ok(None) => panic!("the watch ended without a status"),
                Err(status) => return status,
            }
        }
    }

    pub fn fence(&self, plan_seq: u64) -> Fence {
        Fence { cluster_id: CLUSTER.to_owned(), session_epoch: self.epoch, plan_seq }
    }

    pub async fn put_cluster(
        &mut self,
        facts: ClusterFacts,
        node_classes: Vec<NodeClass>,
    ) -> Result<(), Status> {
        let fence = Some(self.fence(1));
        let request = PutClusterRequest { fence, cluster: Some(facts), node_classes };
        self.service.put_cluster(request).await.map(drop)
    }

    pub async fn apply(
        &mut self,
        plan_seq: u64,
        launches: Vec<Launch>,
        terminations: Vec<Termination>,
    ) -> Result<ApplyPlanResponse, Status> {
        let expire_ms = longshore_runtime::clock::Clock::system().now_ms() + 60_000;
        let request = ApplyPlanRequest {
            plan_id: format!("plan-{plan_seq}"),
            fence: Some(self.fence(plan_seq)),
            expire_time: Some(longshore_proto::time::timestamp(expire_ms)),
            launches,
            terminations,
        };
        self.service.apply_plan(request).await.map(tonic::Response::into_inner)
    }
}

/// Calls until the service answers something else than that it is not there yet.
pub async fn answered<T, F, Fut>(call: F) -> T
where
    F: Fn() -> Fut,
    Fut: Future<Output = Result<T, Status>>,
{
    let asking = async {
        loop {
            match call().await {
                Ok(answer) => return answer,
                Err(status) if status.code() == Code::Unavailable => {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                Err(status) => panic!("{status:?}"),
            }
        }
    };
    tokio::time::timeout(LIMIT, asking).await.expect("the service answers in time")
}

pub fn facts() -> ClusterFacts {
    ClusterFacts {
        name: CLUSTER.to_owned(),
        region: REGION.to_owned(),
        kubernetes_version: "1.34".to_owned(),
        ..ClusterFacts::default()
    }
}

pub fn class() -> NodeClass {
    let tagged = SelectorTerm {
        tags: [("karpenter.sh/discovery".to_owned(), CLUSTER.to_owned())].into(),
        ..SelectorTerm::default()
    };
    NodeClass {
        name: CLASS.to_owned(),
        hash: "h1".to_owned(),
        ami_terms: vec![SelectorTerm {
            alias: "al2023@latest".to_owned(),
            ..SelectorTerm::default()
        }],
        subnet_terms: vec![tagged.clone()],
        security_group_terms: vec![tagged],
        role: NODE_ROLE.to_owned(),
        ..NodeClass::default()
    }
}
