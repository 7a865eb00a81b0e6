//! Two actuators, one region, one etcd.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use longshore_lab::instance::InstanceSource;
use longshore_lab::region::{CLUSTER, CONTROLLER_KEY, Region, RegionConfig, RegionHandle};
use longshore_proto::capacity::v1::{
    ApplyPlanRequest, Fence, LaunchPhase, WatchRequest,
    capacity_service_client::CapacityServiceClient,
};
use longshore_proto::reason::of_status;
use longshore_proto::types::v1::CapacityType;
use tonic::Code;

use crate::world::{Actuator, Client, REGION, class, facts};

const TYPES: [&str; 1] = ["t4g.small"];
/// From the death of a leader to the next one's first answer.
const FAILOVER_MAX: Duration = Duration::from_secs(5);

/// A child that does not outlive its test.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

struct Etcd {
    _process: Process,
    _dir: tempfile::TempDir,
    endpoint: String,
}

/// One member on free ports; the part is installed by tools/setup.sh.
fn etcd() -> Etcd {
    let setup = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tools/setup.sh");
    let answer = Command::new(setup).args(["--dir", "etcd"]).output().unwrap();
    let program = Path::new(String::from_utf8(answer.stdout).unwrap().trim()).join("bin/etcd");
    assert!(program.exists(), "etcd is not installed; run tools/setup.sh etcd");
    let dir = tempfile::tempdir().unwrap();
    let (client, peer) = (free_url(), free_url());
    let mut command = Command::new(program);
    command.arg("--data-dir").arg(dir.path()).args(["--name", "one"]);
    command.args(["--listen-client-urls", &client, "--advertise-client-urls", &client]);
    command.args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer]);
    command.args(["--initial-cluster", &format!("one={peer}")]);
    command.args(["--unsafe-no-fsync", "--log-level", "error"]);
    let process = Process(command.stderr(Stdio::null()).spawn().unwrap());
    Etcd { _process: process, _dir: dir, endpoint: client }
}

fn free_url() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    format!("http://{}", listener.local_addr().unwrap())
}

/// The program itself, as it runs in production.
fn program(region: &RegionHandle, etcd: &str) -> (Process, String) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_longshore-actuator"))
        .args(["--region", REGION, "--listen", "127.0.0.1:0", "--etcd-endpoints", etcd])
        .env("AWS_ENDPOINT_URL", region.endpoint_url())
        .env("AWS_ACCESS_KEY_ID", CONTROLLER_KEY)
        .env("AWS_SECRET_ACCESS_KEY", "x")
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let address = lines.find_map(|line| {
        line.unwrap().split_once("listening address=").map(|(_, address)| address.trim().to_owned())
    });
    // Keeps reading, so that the program never waits for its log.
    std::thread::spawn(move || lines.for_each(drop));
    (Process(child), format!("http://{}", address.unwrap()))
}

#[tokio::test]
async fn a_standby_names_the_leader_and_takes_over_when_it_is_killed() {
    let region = Region::start(RegionConfig::simple(REGION).unwrap()).await.unwrap();
    let etcd = etcd();
    let (mut first, first_address) = program(&region, &etcd.endpoint);
    let mut client = Client::connect(&first_address, 1).await;
    client.put_cluster(facts(), vec![class()]).await.unwrap();
    client.until("class ready", |shown| shown.class_ready()).await;
    let candidates = client.shown.candidates(&TYPES, CapacityType::Spot);
    let launch = client.shown.launch("l-1", candidates);
    client.apply(7, vec![launch.clone()], vec![]).await.unwrap();
    client.until("launched", |s| s.phase("l-1") == LaunchPhase::Launched).await;
    let first_term = client.shown.region.term;

    let elected = ["--etcd-endpoints", etcd.endpoint.as_str()];
    let standby = Actuator::start(&region, CONTROLLER_KEY, &elected).await;
    refers_to(&standby.address, &first_address).await;
    first.0.kill().unwrap();
    first.0.wait().unwrap();
    let killed = Instant::now();
    client.end().await;
    let mut client = Client::connect(&standby.address, 1).await;
    assert!(killed.elapsed() < FAILOVER_MAX, "{:?}", killed.elapsed());
    client.until("launch known", |s| s.phase("l-1") == LaunchPhase::Launched).await;
    assert!(client.shown.region.term > first_term);

    let stale = client.apply(6, vec![], vec![]).await.unwrap_err();
    assert_eq!(of_status(&stale).unwrap().0, "STALE_FENCE");
    client.apply(7, vec![launch], vec![]).await.unwrap();
    client.until("class ready", |shown| shown.class_ready()).await;
    assert_eq!(region.instances().len(), 1);
    standby.stop().await;
}

/// Asks until the standby knows who leads.
async fn refers_to(standby: &str, leader: &str) {
    let channel =
        longshore_runtime::client::channel(standby, &longshore_runtime::net::Network::System)
            .unwrap();
    let mut service = CapacityServiceClient::new(channel);
    let asking = async {
        loop {
            let status = service.watch(WatchRequest::default()).await.unwrap_err();
            assert_eq!(status.code(), Code::Unavailable);
            let metadata = of_status(&status).map(|(_, metadata)| metadata).unwrap_or_default();
            if metadata.get("leader").is_some_and(|address| address == leader) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), asking).await.expect("the standby knows");
}

#[tokio::test]
async fn without_etcd_requests_are_refused_and_the_process_goes_on() {
    let region = Region::start(RegionConfig::simple(REGION).unwrap()).await.unwrap();
    let nowhere = free_url();
    let actuator = Actuator::start(&region, CONTROLLER_KEY, &["--etcd-endpoints", &nowhere]).await;
    let channel = longshore_runtime::client::channel(
        &actuator.address,
        &longshore_runtime::net::Network::System,
    )
    .unwrap();
    let mut service = CapacityServiceClient::new(channel);
    let asking = async {
        loop {
            let fence = Fence { cluster_id: CLUSTER.to_owned(), session_epoch: 1, plan_seq: 1 };
            let request = ApplyPlanRequest { fence: Some(fence), ..ApplyPlanRequest::default() };
            let status = service.apply_plan(request).await.unwrap_err();
            assert_eq!(status.code(), Code::Unavailable);
            if of_status(&status).is_some_and(|(reason, _)| reason == "STORE_UNAVAILABLE") {
                return status.message().to_owned();
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let message = tokio::time::timeout(Duration::from_secs(30), asking).await.unwrap();
    assert!(message.contains(&nowhere), "{message}");
    actuator.stop().await;
}
