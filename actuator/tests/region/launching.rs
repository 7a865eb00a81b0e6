//! From plan to instance and back.

use std::collections::BTreeSet;

use longshore_actuator::cloud::{TAG_CLAIM, TAG_LAUNCH};
use longshore_lab::instance::InstanceSource;
use longshore_lab::region::{CONTROLLER_KEY, Fault};
use longshore_proto::capacity::v1::{InstancePhase, LaunchPhase};
use longshore_proto::types::v1::{CapacityType, Termination};
use tonic::Code;

use crate::world::{Actuator, CLASS, Client, World, class, facts};

/// Sixty instances at four calls at a time, on a busy machine.
const TAGGED_WITHIN: std::time::Duration = std::time::Duration::from_secs(60);
const TYPES: [&str; 3] = ["t4g.small", "t4g.medium", "t3.small"];

fn termination(instance_id: &str, launch_id: &str) -> Termination {
    Termination {
        instance_id: instance_id.to_owned(),
        launch_id: launch_id.to_owned(),
        ..Termination::default()
    }
}

#[tokio::test]
async fn a_plan_becomes_an_instance_and_a_termination_ends_it() {
    let mut world = World::ready().await;
    let candidates = world.client.shown.candidates(&TYPES, CapacityType::Spot);
    let launch = world.client.shown.launch("l-1", candidates.clone());
    let answer = world.client.apply(1, vec![launch.clone()], vec![]).await.unwrap();
    assert!(answer.refusals.is_empty() && answer.revision > 0);
    world
        .client
        .until("running", |shown| {
            let running = |i: &longshore_proto::capacity::v1::InstanceState| {
                i.phase() == InstancePhase::Running && !i.private_dns_name.is_empty()
            };
            shown.phase("l-1") == LaunchPhase::Launched && shown.instances.values().any(running)
        })
        .await;
    let state = world.client.shown.launches["l-1"].clone();
    let instance = world.client.shown.instances[&state.instance_id].clone();
    assert!(candidates.iter().any(|c| {
        c.instance_type == instance.instance_type
            && c.zone == instance.zone
            && c.zone_id == instance.zone_id
    }));
    assert_eq!((instance.claim.as_str(), instance.launch_id.as_str()), ("claim-l-1", "l-1"));
    assert_eq!(instance.capacity_type(), CapacityType::Spot);
    assert!(!state.ec2_request_id.is_empty());
    let machine = world.region.instances().remove(0);
    assert_eq!(machine.tags[TAG_LAUNCH], "l-1");
    assert_eq!(machine.tags[TAG_CLAIM], "claim-l-1");
    assert_eq!(machine.tags["kubernetes.io/cluster/lab"], "owned");
    let user_data = String::from_utf8(machine.user_data).unwrap();
    assert!(user_data.contains("karpenter.sh/unregistered"), "{user_data}");

    world.client.apply(1, vec![launch], vec![]).await.unwrap();
    let end = termination(&state.instance_id, "l-1");
    world.client.apply(2, vec![], vec![end]).await.unwrap();
    world.client.until("terminated", |s| s.phase("l-1") == LaunchPhase::Terminated).await;
    assert_eq!(world.region.instances().len(), 1);
    world.actuator.stop().await;
}

#[tokio::test]
async fn a_large_plan_is_launched_whole_from_one_template_for_each_image() {
    let mut world = World::ready().await;
    let candidates = world.client.shown.candidates(&TYPES, CapacityType::OnDemand);
    let launches: Vec<_> =
        (0..60).map(|n| world.client.shown.launch(&format!("l-{n}"), candidates.clone())).collect();
    world.client.apply(1, launches, vec![]).await.unwrap();
    world
        .client
        .until("all launched", |shown| {
            shown.launches.values().filter(longshore_launched).count() == 60
        })
        .await;
    let instances: BTreeSet<_> =
        world.client.shown.launches.values().map(|l| l.instance_id.clone()).collect();
    assert_eq!((instances.len(), world.region.instances().len()), (60, 60));
    assert_eq!(world.region.calls_of("ec2:CreateLaunchTemplate").len(), 2);
    let calls = world.region.calls_of("ec2:CreateFleet");
    let asked: Vec<_> = calls.iter().map(|call| call.instances).collect();
    assert_eq!(asked, [60], "equal launches are one call");
    let mut changes = world.region.changes();
    let tagged = async {
        while world.region.instances().iter().any(|it| !it.tags.contains_key(TAG_LAUNCH)) {
            changes.changed().await.unwrap();
        }
    };
    tokio::time::timeout(TAGGED_WITHIN, tagged).await.expect("each gets its launch's tags");
    for machine in world.region.instances() {
        let launch = &world.client.shown.launches[&machine.tags[TAG_LAUNCH]];
        assert_eq!(launch.instance_id, machine.instance_id);
        assert_eq!([&machine.tags[TAG_CLAIM], &machine.tags["Name"]], [&launch.claim; 2]);
    }
}

#[tokio::test]
async fn an_answer_for_several_that_never_comes_launches_nothing_twice() {
    let mut world = World::ready().await;
    world.region.fail_next_calls("ec2:CreateFleet", 5, &Fault::DropAfter);
    let candidates = world.client.shown.candidates(&TYPES, CapacityType::Spot);
    let launches: Vec<_> =
        (0..20).map(|n| world.client.shown.launch(&format!("l-{n}"), candidates.clone())).collect();
    world.client.apply(1, launches, vec![]).await.unwrap();
    world
        .client
        .until("all launched", |shown| {
            shown.launches.values().filter(longshore_launched).count() == 20
        })
        .await;
    let tokens: BTreeSet<_> = world
        .region
        .calls_of("ec2:CreateFleet")
        .into_iter()
        .map(|call| call.client_token)
        .collect();
    assert_eq!((world.region.instances().len(), tokens.len()), (20, 1));
}

fn longshore_launched(launch: &&longshore_proto::capacity::v1::LaunchState) -> bool {
    launch.phase() == LaunchPhase::Launched
}

#[tokio::test]
async fn an_answer_that_never_comes_launches_nothing_twice() {
    let mut world = World::ready().await;
    // The SDK asks four times at most; after that the launch's outcome is unknown.
    world.region.fail_next_calls("ec2:CreateFleet", 5, &Fault::DropAfter);
    let candidates = world.client.shown.candidates(&TYPES, CapacityType::Spot);
    let launch = world.client.shown.launch("l-1", candidates);
    world.client.apply(1, vec![launch], vec![]).await.unwrap();
    world.client.until("launched", |s| s.phase("l-1") == LaunchPhase::Launched).await;
    assert_eq!(world.region.instances().len(), 1);
}

#[tokio::test]
async fn a_restarted_actuator_finds_its_instances_by_their_tags() {
    let mut world = World::ready().await;
    let candidates = world.client.shown.candidates(&TYPES, CapacityType::Spot);
    let launch = world.client.shown.launch("l-1", candidates);
    world.client.apply(1, vec![launch], vec![]).await.unwrap();
    world.client.until("launched", |s| s.phase("l-1") == LaunchPhase::Launched).await;
    let instance_id = world.client.shown.launches["l-1"].instance_id.clone();
    world.actuator.stop().await;

    world.region.fail_next_calls("ec2:DescribeInstances", 1, &Fault::Slow(500));
    let actuator = Actuator::start(&world.region, CONTROLLER_KEY, &[]).await;
    let mut client = Client::connect(&actuator.address, 2).await;
    client.begin().await;
    let known = client.shown.instances.contains_key(&instance_id);
    assert!(known, "the first state holds what EC2 lists: who is not in it is given up as gone");
    client.until("imported", |s| s.phase("l-1") == LaunchPhase::Launched).await;
    assert_eq!(client.shown.launches["l-1"].instance_id, instance_id);
    client.put_cluster(facts(), vec![class()]).await.unwrap();
    client.apply(1, vec![], vec![termination(&instance_id, "l-1")]).await.unwrap();
    client.until("terminated", |s| s.phase("l-1") == LaunchPhase::Terminated).await;
}

#[tokio::test]
async fn plans_are_fenced_and_checked() {
    let mut world = World::ready().await;
    let candidates = world.client.shown.candidates(&TYPES, CapacityType::Spot);
    let good = world.client.shown.launch("l-1", candidates);
    let mut newer = Client::connect(&world.actuator.address, 2).await;
    newer.apply(1, vec![], vec![]).await.unwrap();
    let stale = world.client.apply(2, vec![good.clone()], vec![]).await.unwrap_err();
    assert_eq!(stale.code(), Code::FailedPrecondition, "{stale}");
    let (reason, _) = longshore_proto::reason::of_status(&stale).unwrap();
    assert_eq!(reason, "STALE_FENCE");

    let mut long = good.clone();
    long.launch_id = "x".repeat(49);
    let malformed = newer.apply(2, vec![long], vec![]).await.unwrap_err();
    assert_eq!(malformed.code(), Code::InvalidArgument);
    let mut changed = good;
    changed.node_class_hash = "older".to_owned();
    let wrong = termination("i-0", "nobody");
    let answer = newer.apply(2, vec![changed], vec![wrong]).await.unwrap();
    let reasons: Vec<_> = answer.refusals.iter().map(|r| r.reason.as_str()).collect();
    assert_eq!(reasons, ["UNKNOWN_NODE_CLASS", "LAUNCH_MISMATCH"]);
    assert!(world.region.instances().is_empty());
}

#[tokio::test]
async fn the_catalogue_holds_what_the_class_can_launch() {
    let world = World::ready().await;
    let shown = &world.client.shown;
    assert_eq!((shown.region.region.as_str(), shown.region.account_id.len()), ("us-east-1", 12));
    let class = &shown.classes[CLASS];
    let status = class.status.as_ref().unwrap();
    assert_eq!((status.subnets.len(), status.images.len()), (3, 2));
    let catalogue = &shown.catalogues[&class.catalogue_id];
    let m5 = catalogue.types.iter().find(|t| t.name == "m5.large").unwrap();
    let (capacity, overhead) = (m5.capacity.clone().unwrap(), m5.overhead.clone().unwrap());
    assert_eq!(capacity.cpu_millis - overhead.cpu_millis, 1930);
    assert_eq!((capacity.memory_bytes - overhead.memory_bytes) >> 20, 6903);
    assert_eq!(m5.labels["karpenter.k8s.aws/instance-family"], "m5");
    assert_eq!(m5.offerings.len(), 6);
    assert!(m5.offerings.iter().all(|o| o.available && o.price_micro_usd_per_hour > 0));
    let gpu = catalogue.types.iter().any(|t| t.name.starts_with("g5."));
    assert!(!gpu, "there is no image for GPUs in the lab");
}
