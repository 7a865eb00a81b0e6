//! CreateFleet and what becomes of it.
//!
//! Invariant: what is bought and what is refused add up to what was asked.

use longshore_lab::instance::{InstanceSource as _, InstanceState};
use longshore_lab::region::{Offer, Quotas, ReservationConfig};

use crate::support::{Client, fleet, image, start, subnets, template};

const ON_DEMAND: &str = "on-demand";
const SPOT: &str = "spot";

async fn with_template() -> (Client, Vec<String>) {
    let client = start(|_| {}).await;
    template(&client, &[]).await.ok();
    let subnets = subnets(&client).await;
    (client, subnets)
}

#[tokio::test]
async fn the_template_reaches_the_instance_and_it_boots() {
    let (client, subnets) = with_template().await;
    let mut changes = client.region.changes();
    let tags = [
        ("TagSpecification.1.ResourceType", "instance"),
        ("TagSpecification.1.Tag.1.Key", "karpenter.sh/nodepool"),
        ("TagSpecification.1.Tag.1.Value", "default"),
    ];
    let reply = fleet(&client, (1, ON_DEMAND), &[("m5.large", &subnets[1])], &tags).await.ok();
    assert!(reply.all("errorCode").is_empty());

    let seen = client.region.instances().remove(0);
    assert_eq!(reply.first("instanceIds"), format!("<item>{}</item>", seen.instance_id));
    assert_eq!((seen.instance_type.as_str(), seen.arch.as_str()), ("m5.large", "amd64"));
    assert_eq!(seen.user_data, b"hello");
    assert_eq!(seen.instance_profile.as_deref(), Some(longshore_lab::region::NODE_PROFILE));
    assert_eq!(seen.tags["karpenter.sh/nodepool"], "default");
    assert_eq!(seen.image_id, image(&client, "x86_64").await);
    assert_eq!((seen.cpu_millis, seen.eni_max_pods), (2000, 29));
    assert!(seen.memory_bytes > 7_000_000_000 && seen.memory_bytes < 8 * 1024 * 1024 * 1024);

    let running = |client: &Client| {
        client.region.instances().iter().all(|seen| seen.state == InstanceState::Running)
    };
    while !running(&client) {
        changes.changed().await.expect("region lives");
    }
    let filter = [("Filter.1.Name", "tag-key"), ("Filter.1.Value.1", "karpenter.sh/*")];
    let described = client.ec2("DescribeInstances", &filter).await.ok();
    assert_eq!(described.first("privateDnsName"), seen.private_dns_name);
    assert!(described.body.contains("<name>running</name>"));
    assert_eq!(described.first("groupId"), "sg-00000000000000001");
}

#[tokio::test]
async fn errors_come_together_with_instances_grouped_per_override() {
    let (client, subnets) = with_template().await;
    client.region.set_capacity(Offer::new("t3.small", "us-east-1a", false), Some(2));
    let overrides = [("t3.small", subnets[0].as_str()), ("m5.large", subnets[0].as_str())];
    let reply = fleet(&client, (3, ON_DEMAND), &overrides, &[]).await.ok();
    assert_eq!(reply.all("errorCode"), ["InsufficientInstanceCapacity"]);
    let groups: Vec<usize> =
        reply.all("instanceIds").iter().map(|ids| ids.matches("<item>").count()).collect();
    assert_eq!(groups, [2, 1]);
    assert_eq!(client.region.instances().len(), 3);
}

#[tokio::test]
async fn each_shortage_has_its_own_code() {
    let client = start(|config| {
        config.quotas = Quotas { on_demand_vcpus: Some(3), spot_vcpus: Some(1) };
    })
    .await;
    template(&client, &[]).await.ok();
    let subnets = subnets(&client).await;
    client.region.set_free_addresses(&subnets[2], 0);
    let code = async |market: &str, instance_type: &str, subnet: &str, more: &[(&str, &str)]| {
        let one = [(instance_type, subnet)];
        fleet(&client, (1, market), &one, more).await.ok().first("errorCode")
    };
    let cheap = [("LaunchTemplateConfigs.1.Overrides.1.MaxPrice", "0.0001")];
    for (market, instance_type, subnet, more, expected) in [
        (ON_DEMAND, "m5.xlarge", &subnets[0], &[][..], "VcpuLimitExceeded"),
        (SPOT, "m5.large", &subnets[0], &[], "MaxSpotInstanceCountExceeded"),
        (ON_DEMAND, "m5.large", &subnets[2], &[], "InsufficientFreeAddressesInSubnet"),
        (SPOT, "m5.large", &subnets[0], &cheap, "SpotMaxPriceTooLow"),
        (ON_DEMAND, "m6g.large", &subnets[0], &[], "InvalidParameterValue"),
        (ON_DEMAND, "m5.nano", &subnets[0], &[], "InvalidParameterValue"),
    ] {
        assert_eq!(code(market, instance_type, subnet, more).await, expected, "{instance_type}");
    }
    assert!(client.region.instances().is_empty());
}

#[tokio::test]
async fn what_runs_out_halfway_is_counted_within_one_request() {
    let client = start(|config| config.quotas.spot_vcpus = Some(5)).await;
    template(&client, &[]).await.ok();
    let subnets = subnets(&client).await;
    client.region.set_free_addresses(&subnets[0], 2);
    let one = [("m5.large", subnets[0].as_str())];
    let reply = fleet(&client, (3, ON_DEMAND), &one, &[]).await.ok();
    assert_eq!(reply.all("errorCode"), ["InsufficientFreeAddressesInSubnet"]);
    assert_eq!(client.region.instances().len(), 2);
    let other = [("m5.large", subnets[1].as_str())];
    let reply = fleet(&client, (3, SPOT), &other, &[]).await.ok();
    assert_eq!(reply.all("errorCode"), ["MaxSpotInstanceCountExceeded"]);
    assert_eq!(client.region.instances().len(), 4);
}

#[tokio::test]
async fn a_type_is_unsupported_where_it_is_not_offered() {
    let client = start(|config| {
        let facts = config.instance_types.iter_mut().find(|facts| facts.name() == "m5.large");
        facts.expect("m5.large").zones.remove("us-east-1b");
    })
    .await;
    template(&client, &[]).await.ok();
    let subnets = subnets(&client).await;
    let reply = fleet(&client, (1, ON_DEMAND), &[("m5.large", &subnets[1])], &[]).await.ok();
    assert_eq!(reply.first("errorCode"), "Unsupported");
    assert!(reply.first("errorMessage").contains("us-east-1b"));
}

#[tokio::test]
async fn a_minimum_is_met_or_nothing_is_launched() {
    let (client, subnets) = with_template().await;
    client.region.set_capacity(Offer::new("m5.large", "us-east-1a", true), Some(2));
    let minimum =
        [("SpotOptions.MinTargetCapacity", "3"), ("SpotOptions.SingleInstanceType", "true")];
    let one = [("m5.large", subnets[0].as_str())];
    let reply = fleet(&client, (3, SPOT), &one, &minimum).await.ok();
    assert_eq!(reply.all("errorCode"), ["InsufficientInstanceCapacity"]);
    assert!(client.region.instances().is_empty());
    let reply = fleet(&client, (2, SPOT), &one, &[]).await.ok();
    assert!(reply.all("errorCode").is_empty(), "the failed fleet took nothing");
}

#[tokio::test]
async fn spot_goes_to_the_cheapest_of_the_deep_pools() {
    let (client, subnets) = with_template().await;
    for (zone, price) in [("us-east-1a", 30_000), ("us-east-1b", 20_000), ("us-east-1c", 10_000)] {
        client.region.set_spot_price("m5.large", zone, price);
    }
    client.region.set_capacity(Offer::new("m5.large", "us-east-1c", true), Some(1));
    let overrides: Vec<(&str, &str)> =
        subnets.iter().map(|subnet| ("m5.large", subnet.as_str())).collect();
    let strategy = |name| [("SpotOptions.AllocationStrategy", name)];
    let zone = async |name| {
        let reply = fleet(&client, (1, SPOT), &overrides, &strategy(name)).await.ok();
        reply.first("availabilityZone")
    };
    assert_eq!(zone("price-capacity-optimized").await, "us-east-1b");
    assert_eq!(zone("lowest-price").await, "us-east-1c");
    assert_eq!(zone("lowest-price").await, "us-east-1b", "the cheapest pool is empty now");
}

#[tokio::test]
async fn a_client_token_buys_once() {
    let (client, subnets) = with_template().await;
    let one = [("m5.large", subnets[0].as_str())];
    let token = [("ClientToken", "plan-1")];
    let first = fleet(&client, (1, ON_DEMAND), &one, &token).await.ok();
    let again = fleet(&client, (1, ON_DEMAND), &one, &token).await.ok();
    assert_eq!(first.first("instanceIds"), again.first("instanceIds"));
    assert_ne!(first.request_id, again.request_id);
    assert_eq!(client.region.token_uses("plan-1"), 2);
    let other = fleet(&client, (2, ON_DEMAND), &one, &token).await;
    assert_eq!(other.error().0, "IdempotentParameterMismatch");
    assert_eq!(client.region.instances().len(), 1);
}

#[tokio::test]
async fn capacity_and_addresses_return_when_an_instance_ends() {
    let (client, subnets) = with_template().await;
    let offer = Offer::new("m5.large", "us-east-1a", false);
    client.region.set_capacity(offer, Some(1));
    client.region.set_free_addresses(&subnets[0], 1);
    let one = [("m5.large", subnets[0].as_str())];
    fleet(&client, (1, ON_DEMAND), &one, &[]).await.ok();
    let id = client.region.instances()[0].instance_id.clone();
    let mut changes = client.region.changes();
    let reply = client.ec2("TerminateInstances", &[("InstanceId.1", &id)]).await.ok();
    assert!(reply.first("currentState").contains("shutting-down"));
    while client.region.instances()[0].state != InstanceState::Terminated {
        changes.changed().await.expect("region lives");
    }
    let reply = fleet(&client, (1, ON_DEMAND), &one, &[]).await.ok();
    assert!(reply.all("errorCode").is_empty(), "{}", reply.body);
}

#[tokio::test]
async fn a_reservation_fills_up() {
    let client = start(|config| {
        config.reservations.push(ReservationConfig {
            id: "cr-1".to_owned(),
            instance_type: "m5.large".to_owned(),
            zone: "us-east-1a".to_owned(),
            total: 1,
            tags: Default::default(),
        });
    })
    .await;
    let target = "LaunchTemplateData.CapacityReservationSpecification.\
                  CapacityReservationTarget.CapacityReservationId";
    template(&client, &[(target, "cr-1")]).await.ok();
    let subnets = subnets(&client).await;
    // A reservation holds its capacity even where there is none to buy.
    client.region.set_capacity(Offer::new("m5.large", "us-east-1a", false), Some(0));
    let reply = fleet(&client, (2, ON_DEMAND), &[("m5.large", &subnets[0])], &[]).await.ok();
    assert_eq!(reply.all("errorCode"), ["ReservationCapacityExceeded"]);
    assert_eq!(client.region.instances().len(), 1);
    let described = client.ec2("DescribeCapacityReservations", &[]).await.ok();
    assert_eq!(described.first("availableInstanceCount"), "0");
    let id = client.region.instances()[0].instance_id.clone();
    client.region.interrupt_spot(&id).expect("reservations can be taken back");
}

#[tokio::test]
async fn run_instances_launches_or_only_says_it_would() {
    let (client, subnets) = with_template().await;
    let base = [
        ("LaunchTemplate.LaunchTemplateName", "t"),
        ("InstanceType", "m5.large"),
        ("SubnetId", subnets[0].as_str()),
        ("MinCount", "2"),
        ("MaxCount", "3"),
    ];
    let mut dry = base.to_vec();
    dry.push(("DryRun", "true"));
    assert_eq!(client.ec2("RunInstances", &dry).await.error().0, "DryRunOperation");
    client.region.set_capacity(Offer::new("m5.large", "us-east-1a", false), Some(1));
    let refused = client.ec2("RunInstances", &base).await;
    assert_eq!(refused.error().0, "InsufficientInstanceCapacity");
    assert!(client.region.instances().is_empty());
    client.region.set_capacity(Offer::new("m5.large", "us-east-1a", false), Some(2));
    let reply = client.ec2("RunInstances", &base).await.ok();
    assert_eq!(reply.all("instanceId").len(), 2);
}
