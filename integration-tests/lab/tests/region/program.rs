//! The program itself: what it prints is enough to reach it, and machines join its cluster.
//!
//! Invariant: every port is a free one.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use base64::Engine as _;
use bytes::Bytes;
use clap::Parser as _;
use http::Request;
use http_body_util::Full;
use k8s_openapi::api::core::v1::Node;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::runtime::wait::await_condition;
use longshore_lab::program::{Lab, LabArgs};
use longshore_lab::region::CONTROLLER_KEY;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::Command;

use crate::support::{Client, authorization, fleet, send, subnets, template};

/// How long anything here may take.
const DEADLINE: Duration = Duration::from_secs(60);

async fn get(url: &str, path: &str) -> String {
    let address = url.trim_start_matches("http://");
    let request = Request::builder().uri(path).header("host", address);
    let request = request.header("authorization", authorization(CONTROLLER_KEY, "eks"));
    let request = request.body(Full::new(Bytes::new())).expect("request");
    send(address, request).await.expect("a reply").ok().body
}

fn file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{}-{name}", std::process::id()))
}

#[tokio::test]
async fn what_is_printed_reaches_region_and_control_port() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_longshore-lab"));
    command.args(["--output", "json", "--cluster-name", "prod"]).kill_on_drop(true);
    let mut lab = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it starts");
    let mut lines = BufReader::new(lab.stdout.take().expect("piped")).lines();
    let line = tokio::time::timeout(DEADLINE, lines.next_line()).await.expect("in time");
    let found: Value = serde_json::from_str(&line.expect("text").expect("a line")).expect("JSON");
    let url = |name: &str| found[name].as_str().expect("a URL").to_owned();
    let cluster: Value =
        serde_json::from_str(&get(&url("endpoint_url"), "/clusters/prod").await).expect("JSON");
    assert_eq!(cluster["cluster"]["name"], "prod");
    let state: Value =
        serde_json::from_str(&get(&url("control_url"), "/state").await).expect("JSON");
    assert_eq!(
        (&state["region"], &state["queues"][0]["name"]),
        (&"us-east-1".into(), &"prod".into())
    );
    assert_eq!((&found["cluster_name"], &found["kubeconfig"]), (&"prod".into(), &Value::Null));
    let calls: Value =
        serde_json::from_str(&get(&url("control_url"), "/calls").await).expect("JSON");
    assert_eq!(calls["calls"][0]["api"], "eks:DescribeCluster");
}

const NODE_CONFIG: &str = "\
apiVersion: node.eks.aws/v1alpha1
kind: NodeConfig
spec:
  cluster:
    name: lab
    apiServerEndpoint: https://lab.example
    certificateAuthority: Y2E=
    cidr: 10.100.0.0/16
";

#[tokio::test]
async fn a_machine_that_is_launched_joins_the_cluster_and_one_without_user_data_says_why_not() {
    let kubeconfig = file("joins.kubeconfig");
    let path = kubeconfig.to_str().expect("text");
    let lab = Lab::start(&LabArgs::parse_from(["longshore-lab", "--cluster", path])).await;
    let lab = lab.expect("it starts");
    let client = Client::of(lab.region.clone());
    let user_data = base64::prelude::BASE64_STANDARD.encode(NODE_CONFIG);
    template(&client, &[("LaunchTemplateData.UserData", &user_data)]).await.ok();
    let subnets = subnets(&client).await;
    fleet(&client, (1, "spot"), &[("m5.large", &subnets[0])], &[]).await.ok();
    let control = &lab.found().control_url;
    let state: Value = serde_json::from_str(&get(control, "/state").await).expect("JSON");
    let name = state["instances"][0]["node_name"].as_str().expect("a name").to_owned();
    let read = Kubeconfig::read_from(&kubeconfig).expect("it was written");
    let options = KubeConfigOptions::default();
    let config = kube::Config::from_custom_kubeconfig(read, &options).await.expect("usable");
    let cluster = kube::Client::try_from(config).expect("a client");
    let nodes: kube::Api<Node> = kube::Api::all(cluster);
    let ready = await_condition(nodes, &name, is_ready);
    tokio::time::timeout(DEADLINE, ready).await.expect("in time").expect("a watch");

    let silent = [
        ("LaunchTemplate.LaunchTemplateName", "t"),
        ("InstanceType", "m5.large"),
        ("SubnetId", subnets[0].as_str()),
        ("UserData", "aGVsbG8="),
    ];
    let id = client.ec2("RunInstances", &silent).await.ok().first("instanceId");
    let reason = tokio::time::timeout(DEADLINE, never_joins(control, &id)).await.expect("in time");
    assert!(reason.contains("no NodeConfig"), "{reason}");
    lab.stop().await;
    std::fs::remove_file(kubeconfig).expect("it is there");
}

/// Why an instance does not join, once the control port says so.
async fn never_joins(control: &str, id: &str) -> String {
    loop {
        let state: Value = serde_json::from_str(&get(control, "/state").await).expect("JSON");
        if let Some(reason) = state["never_join"][id].as_str() {
            return reason.to_owned();
        }
    }
}

fn is_ready(node: Option<&Node>) -> bool {
    let conditions = node.and_then(|node| node.status.as_ref()?.conditions.as_ref());
    conditions.is_some_and(|all| all.iter().any(|it| it.type_ == "Ready" && it.status == "True"))
}

#[tokio::test]
async fn a_cluster_that_cannot_be_reached_is_said_before_anything_is_launched() {
    let absent = file("absent.kubeconfig");
    let args = ["longshore-lab", "--kubeconfig", absent.to_str().expect("text")];
    let error = Lab::start(&LabArgs::parse_from(args)).await.expect_err("there is no such file");
    assert!(format!("{error:#}").contains("absent.kubeconfig"), "{error:#}");
}
