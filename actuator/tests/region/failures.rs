//! What users met, and the answers they wanted.

use longshore_lab::region::{CONTROLLER_ROLE, LaunchFault, NODE_KEY, NODE_ROLE, Offer, RoleConfig};
use longshore_proto::capacity::v1::LaunchPhase;
use longshore_proto::types::v1::{CapacityType, NodeClass, SelectorTerm};
use serde_json::json;

use crate::world::{CLASS, World, class};

const TYPES: [&str; 1] = ["t4g.small"];

async fn fail(world: &mut World, capacity_type: CapacityType) -> (String, String, bool) {
    let candidates = world.client.shown.candidates(&TYPES, capacity_type);
    let launch = world.client.shown.launch("l-1", candidates);
    world.client.apply(1, vec![launch], vec![]).await.unwrap();
    world.client.until("failed", |s| s.phase("l-1") == LaunchPhase::Failed).await;
    let state = &world.client.shown.launches["l-1"];
    (state.reason.clone(), state.message.clone(), state.retryable)
}

#[tokio::test]
async fn missing_capacity_closes_offerings_and_the_launch_may_be_planned_again() {
    let mut world = World::ready().await;
    for candidate in world.client.shown.candidates(&TYPES, CapacityType::Spot) {
        let offer =
            Offer { instance_type: candidate.instance_type, zone: candidate.zone, spot: true };
        world.region.set_capacity(offer, Some(0));
    }
    let (reason, message, retryable) = fail(&mut world, CapacityType::Spot).await;
    assert_eq!((reason.as_str(), retryable), ("INSUFFICIENT_CAPACITY", true), "{message}");
    world.client.until("closed", |shown| shown.closed.len() >= 3).await;
    assert!(world.client.shown.closed.iter().all(|(_, _, _, available)| !available));
}

#[tokio::test]
async fn a_launch_falls_back_to_on_demand_where_the_plan_allows_it() {
    let mut world = World::ready().await;
    world.region.refuse_launch(LaunchFault {
        instance_type: None,
        zone: None,
        spot: Some(true),
        code: "MaxSpotInstanceCountExceeded".to_owned(),
        message: "Max spot instance count exceeded".to_owned(),
        remaining: None,
    });
    let mut candidates = world.client.shown.candidates(&TYPES, CapacityType::Spot);
    candidates.extend(world.client.shown.candidates(&TYPES, CapacityType::OnDemand));
    let launch = world.client.shown.launch("l-1", candidates);
    world.client.apply(1, vec![launch], vec![]).await.unwrap();
    world.client.until("launched", |s| s.phase("l-1") == LaunchPhase::Launched).await;
    let state = &world.client.shown.launches["l-1"];
    assert_eq!(state.attempts, 2);
    let instance = &world.client.shown.instances[&state.instance_id];
    assert_eq!(instance.capacity_type(), CapacityType::OnDemand);
}

/// The controller may do what it needs, but launch only from templates with the discovery tag.
fn discovery_policy() -> serde_json::Value {
    let resource = |kind: &str| format!("arn:aws:ec2:*:*:{kind}/*");
    let kinds = ["instance", "volume", "network-interface", "subnet", "security-group"];
    let mut launched: Vec<_> = kinds.into_iter().map(resource).collect();
    launched.push("arn:aws:ec2:*::image/*".to_owned());
    launched.push("arn:aws:ec2:*:*:spot-instances-request/*".to_owned());
    let others = [
        "ec2:Create*",
        "ec2:Describe*",
        "ec2:TerminateInstances",
        "iam:*",
        "ssm:*",
        "sts:*",
        "eks:*",
        "pricing:*",
        "sqs:*",
    ];
    json!({
        "Version": "2012-10-17",
        "Statement": [
            {"Effect": "Allow", "Action": others, "Resource": "*"},
            {"Effect": "Allow", "Action": "ec2:RunInstances", "Resource": launched},
            {
                "Effect": "Allow",
                "Action": "ec2:RunInstances",
                "Resource": resource("launch-template"),
                "Condition": {"StringEquals": {"ec2:ResourceTag/karpenter.sh/discovery": "lab"}},
            },
        ],
    })
}

#[tokio::test]
async fn w0_a_denied_launch_names_action_resource_caller_and_missing_tag() {
    let mut world = World::ready().await;
    let policies = vec![discovery_policy()];
    let role = RoleConfig { name: CONTROLLER_ROLE.to_owned(), path: "/".to_owned(), policies };
    world.region.put_role(&role).unwrap();
    let (reason, message, retryable) = fail(&mut world, CapacityType::OnDemand).await;
    assert_eq!((reason.as_str(), retryable), ("UNAUTHORIZED", false), "{message}");
    for part in ["ec2:RunInstances", "arn:aws:ec2", CONTROLLER_ROLE, "condition keys present"] {
        assert!(message.contains(part), "{part} in {message}");
    }
    assert!(message.contains("missing tag: karpenter.sh/discovery"), "{message}");
    world
        .client
        .until("said on the class", |shown| {
            shown.condition("Ready").is_some_and(|(status, reason, text)| {
                status == Some(false) && reason == "Unauthorized" && text.contains("discovery")
            })
        })
        .await;
}

#[tokio::test]
async fn w3_the_node_role_as_caller_means_that_irsa_is_not_in_effect() {
    let mut world = World::with(NODE_KEY, class()).await;
    world
        .client
        .until("refused", |shown| {
            shown.condition("Ready").is_some_and(|(status, _, text)| {
                status == Some(false) && text.contains("IRSA is not in effect")
            })
        })
        .await;
}

#[tokio::test]
async fn w3_a_role_in_place_of_a_profile_is_told_apart() {
    let wrong =
        NodeClass { role: String::new(), instance_profile: NODE_ROLE.to_owned(), ..class() };
    let mut world = World::with(longshore_lab::region::CONTROLLER_KEY, wrong).await;
    world.client.until("told", |shown| shown.condition("InstanceProfileReady").is_some()).await;
    let (status, _, message) = world.client.shown.condition("InstanceProfileReady").unwrap();
    assert_eq!(status, Some(false));
    for part in [
        "EC2NodeClass/default spec.instanceProfile",
        "is not an instance profile",
        longshore_lab::region::NODE_PROFILE,
    ] {
        assert!(message.contains(part), "{part} in {message}");
    }
    assert!(!world.client.shown.classes[CLASS].ready);
}

#[tokio::test]
async fn a_selector_that_selects_nothing_says_what_there_is() {
    let term = SelectorTerm {
        tags: [("karpenter.sh/discovery".to_owned(), "other".to_owned())].into(),
        ..SelectorTerm::default()
    };
    let wrong = NodeClass { subnet_terms: vec![term], ..class() };
    let key = longshore_lab::region::CONTROLLER_KEY;
    let mut world = World::with(key, wrong).await;
    world.client.until("told", |shown| shown.condition("SubnetsReady").is_some()).await;
    let (status, reason, message) = world.client.shown.condition("SubnetsReady").unwrap();
    assert_eq!((status, reason.as_str()), (Some(false), "SubnetsNotFound"));
    assert!(message.contains("karpenter.sh/discovery is lab"), "{message}");
    assert!(message.contains("aws ec2 create-tags"), "{message}");
}
