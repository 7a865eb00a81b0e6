//! What a flood of each RPC does to the service: its memory, and whether it answers others.
//!
//! Invariant: each flood meets a service started anew, the real program in a process of its own.
//! Those who ask beside the flood come from another address, as they do in life.

use std::net::{IpAddr, Ipv4Addr};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use longshore_lab::region::{Region, RegionConfig};
use longshore_manifests::neutral::{self, Demand};
use longshore_proto::capacity::v1::capacity_service_client::CapacityServiceClient;
use longshore_proto::capacity::v1::{Fence, PutClusterRequest, WatchRequest};
use longshore_proto::planning::v1::planning_service_client::PlanningServiceClient;
use longshore_proto::planning::v1::{ComputePlanOptions, ComputePlanRequest, Effort};
use longshore_proto::types::v1::ClusterFacts;
use tempfile::TempDir;
use tokio::time::{Instant, sleep, timeout};
use tonic::transport::{Channel, Endpoint};

use super::FloodArgs;
use super::cluster::{REGION, Size};
use super::payload::Rpc;
use super::quantity::Quantity;
use super::send::Answers;
use super::stand::{ANY_PORT, Stand};
use super::watcher::{self, Watcher};
use crate::bench::numbers::float;
use crate::bench::tell;
use crate::parts::{Process, poll};
use crate::stage::ledger;
use crate::stage::services::{Service, Surroundings};

/// Largest resident set, in MiB.
const LIMITS: (f64, f64) = (512.0, 256.0);
/// Where those ask from who are not the flood.
const FRIEND: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));
/// How long a friend waits for an answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// Between two questions of a friend.
const PERIOD: Duration = Duration::from_millis(500);
/// How long an actuator may take to lead.
const LEADS: Duration = Duration::from_secs(60);
/// The cluster that is served beside the flood.
const SIZE: Size = Size { nodes: 20, pods_each: 10 };

/// What friends were answered during a flood.
#[derive(Clone, Copy, Debug, Default)]
struct Friends {
    asked: u32,
    answered: u32,
    slowest: Duration,
}

impl Friends {
    fn note(&mut self, began: Instant, answered: bool) {
        self.asked += 1;
        self.answered += u32::from(answered);
        self.slowest = self.slowest.max(began.elapsed());
    }
}

/// Floods one RPC after the other.
///
/// # Errors
/// When a part does not start, or the service ends.
pub async fn measure(args: &FloodArgs) -> Result<Vec<Quantity>> {
    let rpcs = args.rpc.map_or_else(|| Rpc::ALL.to_vec(), |rpc| vec![rpc]);
    let mut quantities = Vec::new();
    for rpc in rpcs {
        let name = format!("memory under a flood of {rpc:?}");
        tell(&format!("flood: of {rpc:?}"));
        let measured = if rpc.is_actuators() {
            Box::pin(flood_actuator(args, rpc)).await
        } else {
            Box::pin(flood_scheduler(args, rpc)).await
        };
        quantities.push(measured.unwrap_or_else(|error| Quantity::failed(&name, &error)));
    }
    Ok(quantities)
}

async fn flood_scheduler(args: &FloodArgs, rpc: Rpc) -> Result<Quantity> {
    let mut stand = Stand::start(1, 1, SIZE).await?;
    let (cluster, service) = (stand.clusters[0].clone(), &mut stand.schedulers[0]);
    let url = service.url();
    let mut watcher = Watcher::open(&url, &cluster, cluster.objects(), 1).await?;
    let mut planning = PlanningServiceClient::new(friendly(&url)?);
    let mut flood = Flood::start(args, rpc, service)?;
    let mut number = 0;
    while flood.goes_on()? {
        number += 1;
        let began = Instant::now();
        let pod = cluster.waiting(number);
        let uid = pod.uid.clone();
        let placed = async {
            watcher.change(vec![watcher::pod(pod)]).await?;
            watcher.place_of(&uid).await?;
            watcher.change(vec![watcher::gone(&uid)]).await
        };
        let placed = timeout(PATIENCE, placed).await;
        flood.friends.note(began, matches!(placed, Ok(Ok(()))));
        let began = Instant::now();
        let asked = planning.compute_plan(tokio_stream::iter([question()]));
        let answered = timeout(PATIENCE, asked).await;
        flood.friends.note(began, matches!(answered, Ok(Ok(_))));
        sleep(PERIOD).await;
    }
    flood.judge(service)
}

async fn flood_actuator(args: &FloodArgs, rpc: Rpc) -> Result<Quantity> {
    let dir = tempfile::tempdir()?;
    let lab = Region::start(RegionConfig::simple("us-east-1")?).await?;
    let surroundings = Surroundings::without_cluster(dir.path(), "us-east-1", &lab.endpoint_url());
    let mut service = surroundings.start_actuator("actuator", ANY_PORT).await?;
    let url = service.url();
    poll::until("the actuator leads", LEADS, || ledger::term(&url)).await?;
    let mut client = CapacityServiceClient::new(friendly(&url)?);
    let mut flood = Flood::start(args, rpc, &service)?;
    let mut plan_seq = 0;
    while flood.goes_on()? {
        plan_seq += 1;
        let fence = Fence { cluster_id: "friend".to_owned(), session_epoch: 1, plan_seq };
        let facts = ClusterFacts { name: "friend".to_owned(), ..ClusterFacts::default() };
        let request = PutClusterRequest {
            fence: Some(fence),
            cluster: Some(facts),
            node_classes: Vec::new(),
        };
        let began = Instant::now();
        let answered = timeout(PATIENCE, client.put_cluster(request)).await;
        flood.friends.note(began, matches!(answered, Ok(Ok(_))));
        let began = Instant::now();
        let seen = timeout(PATIENCE, async {
            client.watch(WatchRequest::default()).await?.into_inner().message().await
        });
        flood.friends.note(began, matches!(seen.await, Ok(Ok(Some(_)))));
        sleep(PERIOD).await;
    }
    flood.judge(&mut service)
}

/// A flood under way.
struct Flood {
    rpc: Rpc,
    client: Process,
    friends: Friends,
    idle_bytes: u64,
    _dir: TempDir,
}

impl Flood {
    fn start(args: &FloodArgs, rpc: Rpc, service: &Service) -> Result<Self> {
        let dir = tempfile::tempdir()?;
        let mut command = Command::new("nice");
        command.args(["-n", "19"]).arg(std::env::current_exe()?);
        command.args(["reach", "send", "--url", &service.url(), "--rpc"]);
        command.arg(clap::ValueEnum::to_possible_value(&rpc).context("no name")?.get_name());
        for (name, value) in [
            ("seconds", args.seconds),
            ("connections", args.connections.into()),
            ("streams", args.streams.into()),
        ] {
            command.arg(format!("--{name}={value}"));
        }
        let idle_bytes = service.process.peak_rss_bytes()?;
        let client = Process::start("send", command, dir.path())?;
        Ok(Self { rpc, client, friends: Friends::default(), idle_bytes, _dir: dir })
    }

    fn goes_on(&mut self) -> Result<bool> {
        match self.client.exit_status()? {
            None => Ok(true),
            Some(status) => {
                ensure!(status.success(), "the flood failed: {}", self.client.log()?);
                Ok(false)
            }
        }
    }

    fn judge(self, service: &mut Service) -> Result<Quantity> {
        service.process.ensure_running()?;
        let log = self.client.log()?;
        let last = log.lines().last().context("the flood said nothing")?;
        let answers: Answers = serde_json::from_str(last).context("what the flood was answered")?;
        let mib = |bytes: u64| float(bytes) / f64::from(1 << 20);
        let peak = mib(service.process.peak_rss_bytes()?);
        let Friends { asked, answered, slowest } = self.friends;
        let told: Vec<String> = answers.iter().map(|(name, n)| format!("{name} {n}")).collect();
        let detail = format!(
            "idle {:.0} MiB; others: {answered} of {asked} answered, slowest {} ms; the flood: {}",
            mib(self.idle_bytes),
            slowest.as_millis(),
            told.join(", ")
        );
        let name = format!("memory under a flood of {:?}", self.rpc);
        let answers = asked > 0 && answered == asked;
        Ok(Quantity::new(name, " MiB", peak, LIMITS).with(detail, answers))
    }
}

/// A channel from the address of a friend.
fn friendly(url: &str) -> Result<Channel> {
    Ok(Endpoint::from_shared(url.to_owned())?.local_address(Some(FRIEND)).connect_lazy())
}

/// A small question, with a catalogue of the region.
fn question() -> ComputePlanRequest {
    let demand = [Demand { cpu_millis: 500, memory_mib: 512, count: 20 }];
    let (objects, pods) = neutral::objects(&demand);
    let options = ComputePlanOptions {
        effort: Effort::Greedy.into(),
        region: REGION.to_owned(),
        ..ComputePlanOptions::default()
    };
    ComputePlanRequest { options: Some(options), objects, pods, catalogue: None }
}
