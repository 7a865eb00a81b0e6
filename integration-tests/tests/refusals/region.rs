//! The region is not as the cluster thinks: a queue that is not there, a region that nobody serves
//! or that does not exist, an etcd out of reach. Each is told where a user looks, nothing else
//! stops, and all is well once the thing appears.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use longshore_it::parts::{EtcdCluster, Process, binary, page, poll, ports};
use longshore_it::stage::fleet::{ETCD_MEMBERS, Fleet, FleetConfig};
use longshore_it::stage::home::Home;
use longshore_it::stage::services::{Service, Surroundings};
use longshore_it::stage::world::{ROOT, World};
use longshore_it::stage::{hands, ledger, question};
use longshore_lab::region::{CLUSTER, QueueConfig, Region, RegionConfig};
use longshore_proto::capacity::v1::WatchRequest;
use longshore_proto::capacity::v1::capacity_service_client::CapacityServiceClient;
use longshore_proto::planning::v1::ExplainPodRequest;
use longshore_proto::planning::v1::planning_service_client::PlanningServiceClient;
use longshore_proto::reason;
use longshore_runtime::client;
use longshore_runtime::platform::Platform;
use longshore_runtime::tls::Server;
use tonic::{Code, Status};

use super::stage::{
    LIMIT, REGION, class, condition, dir, event, good_pod_runs, pod, pool, runs, says,
    surroundings, world,
};

/// A region that exists, without an actuator.
const ABROAD: &str = "eu-west-1";
/// A region that does not exist.
const NOWHERE: &str = "us-nowhere-9";
/// Within this a program that refuses its arguments has to end.
const EXIT_LIMIT: Duration = Duration::from_secs(10);

#[tokio::test]
async fn a_queue_that_does_not_exist() -> Result<()> {
    let world = world("queue", |config| config.queue = "absent".to_owned()).await?;
    let (client, queue_ready) = (&world.client, "InterruptionQueueReady");
    let of_class = ("EC2NodeClass", "good");
    let why = condition(client, of_class, queue_ready, ("False", "QueueNotFound")).await?;
    let parts =
        ["no queue \"absent\" in us-east-1", "create it", "clear settings.interruptionQueue"];
    says(&why, &parts)?;
    condition(client, of_class, "Ready", ("True", "Ready")).await?;
    good_pod_runs(client, "served").await?;
    let queue = QueueConfig {
        name: "absent".to_owned(),
        retention_s: 300,
        visibility_s: 30,
        receives_events: true,
    };
    world.region.create_queue(&queue);
    // An empty queue answers after its long poll only.
    world.region.send_message("absent", "{}")?;
    condition(client, of_class, queue_ready, ("True", queue_ready)).await?;
    Ok(())
}

/// Where the actuator of the other region is expected.
struct Abroad {
    address: SocketAddr,
    pages: SocketAddr,
    surroundings: Surroundings,
}

impl Abroad {
    fn new(surroundings: &Surroundings, address: SocketAddr) -> Result<Self> {
        let pages = local(ports::free()?);
        let mut surroundings = surroundings.clone();
        surroundings.actuator_flags = vec!["--metrics-listen".to_owned(), pages.to_string()];
        Ok(Self { address, pages, surroundings })
    }

    async fn actuator(&self, name: &str, region: &str, url: &str) -> Result<Service> {
        let mut surroundings = self.surroundings.clone();
        (surroundings.region, surroundings.region_url) = (region.to_owned(), url.to_owned());
        surroundings.start_actuator(name, self.address).await
    }
}

fn local(port: u16) -> SocketAddr {
    SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port)
}

/// Waits until the page /readyz has this status, and gives its text.
async fn readyz(address: SocketAddr, wanted: u16, part: &str) -> Result<String> {
    poll::until(&format!("/readyz answers {wanted} {part}"), LIMIT, || async {
        let (status, text) = page::get(address, "/readyz").await?;
        ensure!(status == wanted && text.contains(part), "{status} {text}");
        Ok::<_, anyhow::Error>(text)
    })
    .await
}

/// A second cluster, whose watcher says that it lies abroad.
async fn foreign_cluster(world: &World) -> Result<(Home, Process)> {
    let mut surroundings = world.surroundings.clone();
    surroundings.dir = surroundings.dir.join("abroad");
    std::fs::create_dir_all(&surroundings.dir)?;
    let home = Home::start(false, &surroundings.dir).await?;
    hands::apply(&home.client, &hands::manifests(&Path::new(ROOT).join("deploy/crds"))?).await?;
    hands::established(&home.client).await?;
    let objects = [class("far", CLUSTER), pool("far", "far", "c5"), pod("waits", "far", "1")];
    hands::apply(&home.client, &objects).await?;
    surroundings.cluster = "abroad".to_owned();
    surroundings.region = ABROAD.to_owned();
    surroundings.kubeconfig.clone_from(&home.kubeconfig);
    surroundings.queue = String::new();
    let watcher = surroundings.start_watcher("watcher-abroad", &world.scheduler.url())?;
    Ok((home, watcher))
}

#[tokio::test]
async fn a_region_that_nobody_serves_or_that_does_not_exist() -> Result<()> {
    let address = local(ports::free()?);
    let extra = format!("https://{address}");
    let world = world("abroad", |config| config.more_actuators = vec![extra]).await?;
    let abroad = Abroad::new(&world.surroundings, address)?;
    let url = world.region.endpoint_url();
    let lost = abroad.actuator("actuator-nowhere", NOWHERE, &url).await?;
    let text = readyz(abroad.pages, 503, NOWHERE).await?;
    let parts = ["AWS does not say who we are", "is --region right?", "eu-west-1"];
    says(&text, &parts)?;
    let (home, _watcher) = foreign_cluster(&world).await?;
    let far = ("NodePool", "far");
    let why = condition(&home.client, far, "Ready", ("False", "NoActuator")).await?;
    let parts = [
        "no actuator of region eu-west-1 is within the scheduler's reach",
        "regions that are: us-east-1",
        "start one with --region eu-west-1",
        "correct the watcher's --region",
    ];
    says(&why, &parts)?;
    event(&home.client, "waits", &["Longshore cannot place the pod: no actuator of region"])
        .await?;
    let refused = explain(&world).await.err().context("explained")?;
    ensure!(refused.code() == Code::Unavailable, "{refused:?}");
    ensure!(reason_of(&refused) == "REGION_UNREACHABLE", "{refused:?}");
    says(refused.message(), &parts)?;
    good_pod_runs(&world.client, "served").await?;
    drop(lost);
    let region = Region::start(RegionConfig::simple(ABROAD)?).await?;
    let _actuator = abroad.actuator("actuator-abroad", ABROAD, &region.endpoint_url()).await?;
    // The region answers; what EKS does not know of this cluster is the class's own matter.
    condition(&home.client, far, "Ready", ("False", "NodeClassNotReady")).await?;
    Ok(())
}

async fn explain(world: &World) -> Result<(), Status> {
    let (url, asker) = (world.scheduler.url(), world.keys.client());
    let channel = asker.and_then(|asker| client::channel_to(Server::Scheduler, &url, &asker));
    let channel = channel.map_err(|error| Status::internal(error.to_string()))?;
    let mut client = PlanningServiceClient::new(channel);
    let pod = ExplainPodRequest {
        cluster_id: "abroad".to_owned(),
        namespace: "default".to_owned(),
        name: "waits".to_owned(),
    };
    client.explain_pod(pod).await.map(drop)
}

fn reason_of(status: &Status) -> String {
    reason::of_status(status).map(|(name, _)| name).unwrap_or_default()
}

#[tokio::test]
async fn a_zone_where_a_region_is_asked_for() -> Result<()> {
    let program = binary::workspace_program("longshore-actuator")?;
    let mut command = std::process::Command::new(program);
    command.args(["--region", "us-east-1a", "--listen", "127.0.0.1:0"]);
    let dir = dir("zone")?;
    let mut process = Process::start("actuator", command, &dir)?;
    let status = process.wait_for_exit(EXIT_LIMIT).await?;
    ensure!(status.code() == Some(1), "{status}");
    says(&process.log()?, &["--region \"us-east-1a\" is not a region's name", "us-east-1, without"])
}

#[tokio::test]
async fn etcd_out_of_reach_from_the_start() -> Result<()> {
    let mut etcd = EtcdCluster::start(1).await?;
    etcd.kill(0)?;
    let region = Region::start(RegionConfig::simple(REGION)?).await?;
    let mut alone = surroundings("etcd-start", &region.endpoint_url())?;
    alone.etcd = etcd.endpoints();
    let abroad = Abroad::new(&alone, local(0))?;
    let actuator = abroad.actuator("actuator", REGION, &region.endpoint_url()).await?;
    let endpoint = etcd.endpoints().concat();
    readyz(abroad.pages, 503, &endpoint).await?;
    let refused = watch(&actuator.url()).await.err().context("it leads without etcd")?;
    ensure!(refused.code() == Code::Unavailable, "{refused:?}");
    ensure!(reason_of(&refused) == "STORE_UNAVAILABLE", "{refused:?}");
    says(refused.message(), &["etcd", &endpoint])?;
    let (status, _) = page::get(abroad.pages, "/healthz").await?;
    ensure!(status == 200, "an actuator without etcd is not ready, but alive: {status}");
    etcd.restart(0).await?;
    readyz(abroad.pages, 200, "ready").await?;
    let url = actuator.url();
    poll::until("the actuator leads", LIMIT, || ledger::term(&url)).await?;
    Ok(())
}

async fn watch(url: &str) -> Result<(), Status> {
    let client = CapacityServiceClient::connect(url.to_owned()).await;
    let mut client = client.map_err(|error| Status::internal(error.to_string()))?;
    client.watch(WatchRequest { cluster_ids: Vec::new() }).await.map(drop)
}

#[tokio::test]
async fn etcd_lost_and_found() -> Result<()> {
    let region = RegionConfig::simple(REGION)?;
    let config = FleetConfig::new(region, CLUSTER, &dir("etcd-lost")?);
    let mut fleet = Box::pin(Fleet::start(config)).await?;
    let client = fleet.client.clone();
    let pool = pool("good", "good", "c5");
    hands::apply(&client, &[class("good", CLUSTER), pool.clone()]).await?;
    good_pod_runs(&client, "before").await?;
    let lost = 1..ETCD_MEMBERS;
    lost.clone().try_for_each(|member| fleet.etcd.kill(member))?;
    let good = ("NodePool", "good");
    let why = condition(&client, good, "Ready", ("False", "ActuatorUnreachable")).await?;
    let parts = ["no actuator of region us-east-1 leads", "nothing is launched", "etcd"];
    says(&why, &parts)?;
    hands::apply(&client, &[pod("meanwhile", "good", "1800m")]).await?;
    planned(&fleet, &pool).await?;
    runs(&client, "before").await?;
    for member in lost {
        fleet.etcd.restart(member).await?;
    }
    runs(&client, "meanwhile").await?;
    condition(&client, good, "Ready", ("True", "Ready")).await?;
    Ok(())
}

/// The scheduler answers questions all the while.
async fn planned(fleet: &Fleet, pool: &serde_json::Value) -> Result<()> {
    let template = pod("question", "good", "500m");
    let workload = serde_json::json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": { "name": "question" },
        "spec": {
            "selector": { "matchLabels": template["metadata"]["labels"] },
            "template": { "metadata": template["metadata"], "spec": template["spec"] },
        },
    });
    let manifests = [pool.clone(), workload];
    let plan = question::plan((&fleet.scheduler_url(), &Platform::system()), REGION, &manifests, 3)
        .await?;
    ensure!(plan.unplaced.is_empty(), "{plan:?}");
    Ok(())
}
