//! DescribeInstances.
//!
//! Invariant: one scan of the region serves all clusters; an instance is ours by its launch tag.

use aws_sdk_ec2::types::{Filter, InstanceLifecycleType, InstanceStateName};
use longshore_proto::capacity::v1::InstancePhase;
use longshore_proto::types::v1::CapacityType;

use super::Aws;
use super::errors::from_sdk;
use super::network::tag_map;
use crate::cloud::{CloudError, Instance, TAG_LAUNCH};

/// Instances on a page: the most EC2 gives.
const PAGE_INSTANCES: i32 = 1000;

impl Aws {
    pub(super) async fn listed(&self) -> Result<Vec<Instance>, CloudError> {
        let filter = Filter::builder().name("tag-key").values(TAG_LAUNCH).build();
        let request = self.ec2.describe_instances().filters(filter).max_results(PAGE_INSTANCES);
        let mut pages = request.into_paginator().send();
        let mut found = Vec::new();
        while let Some(page) = pages.next().await {
            let page = page.map_err(|failure| from_sdk("ec2:DescribeInstances", &failure))?;
            let instances = page.reservations().iter().flat_map(|r| r.instances());
            found.extend(instances.filter_map(instance));
        }
        Ok(found)
    }
}

fn instance(found: &aws_sdk_ec2::types::Instance) -> Option<Instance> {
    let text = |value: Option<&str>| value.unwrap_or_default().to_owned();
    let placement = found.placement();
    let spot = found.instance_lifecycle() == Some(&InstanceLifecycleType::Spot)
        || found.spot_instance_request_id().is_some_and(|id| !id.is_empty());
    Some(Instance {
        instance_id: found.instance_id()?.to_owned(),
        phase: phase(found.state().and_then(|state| state.name())),
        instance_type: text(found.instance_type().map(|t| t.as_str())),
        zone: text(placement.and_then(|p| p.availability_zone())),
        zone_id: text(placement.and_then(|p| p.availability_zone_id())),
        capacity_type: if spot { CapacityType::Spot } else { CapacityType::OnDemand },
        private_dns_name: text(found.private_dns_name()),
        image_id: text(found.image_id()),
        launch_ms: found.launch_time().and_then(|t| t.to_millis().ok()).unwrap_or_default(),
        tags: tag_map(found.tags()),
    })
}

fn phase(state: Option<&InstanceStateName>) -> InstancePhase {
    let name = state.map_or("pending", InstanceStateName::as_str);
    match name {
        "running" => InstancePhase::Running,
        "stopping" | "stopped" => InstancePhase::Stopped,
        "shutting-down" => InstancePhase::ShuttingDown,
        "terminated" => InstancePhase::Terminated,
        _ => InstancePhase::Pending,
    }
}
