//! DescribeInstances.
//!
//! Invariant: one scan of the region serves all clusters; a listing is whole or an error; an
//! instance is unknown only when EC2 was asked for it alone and said so.

use std::collections::BTreeMap;

use aws_sdk_ec2::operation::describe_instances::builders::DescribeInstancesFluentBuilder;
use aws_sdk_ec2::types::{
    CapacityReservationPreference, Filter, InstanceLifecycleType, InstanceStateName,
};
use longshore_proto::capacity::v1::InstancePhase;
use longshore_proto::types::v1::CapacityType;

use super::Aws;
use super::errors::from_sdk;
use super::network::tag_map;
use crate::cloud::{
    CallMarks, Class, CloudError, Found, Instance, TAG_BATCH, TAG_LAUNCH, TAG_POOL,
};

/// Instances on a page: the most EC2 gives.
const PAGE_INSTANCES: i32 = 1000;
/// Ids in one look-up.
const LOOKUP_INSTANCES: usize = 200;

impl Aws {
    pub(super) async fn listed(&self) -> Result<Vec<Instance>, CloudError> {
        // Karpenter writes the claim's name some time after the launch, one instance a second.
        let any = Filter::builder().name("tag-key").values(TAG_LAUNCH).values(TAG_BATCH);
        let request = self.ec2.instances.describe_instances().filters(any.values(TAG_POOL).build());
        described(request.max_results(PAGE_INSTANCES)).await
    }

    /// One id that EC2 does not know fails a call for many: they are asked for in halves then.
    pub(super) async fn by_id(&self, instance_ids: &[String]) -> Result<Found, CloudError> {
        let mut found = Found::default();
        let mut waiting: Vec<_> = instance_ids.chunks(LOOKUP_INSTANCES).collect();
        while let Some(part) = waiting.pop() {
            let request =
                self.ec2.instances.describe_instances().set_instance_ids(Some(part.to_vec()));
            match (described(request).await, part) {
                (Ok(instances), _) => found.instances.extend(instances),
                (Err(error), _) if matches!(error.class, Class::Throttled | Class::Unknown) => {
                    return Err(error);
                }
                (Err(error), [id]) if error.class == Class::NotFound => {
                    found.unknown.push(id.clone());
                }
                (Err(error), [_]) => return Err(error),
                (Err(_), many) => {
                    let (front, back) = many.split_at(many.len() / 2);
                    waiting.extend([front, back]);
                }
            }
        }
        Ok(found)
    }

    /// By tag, and by token: either may be visible before the other.
    pub(super) async fn of_call(&self, marks: CallMarks<'_>) -> Result<Vec<Instance>, CloudError> {
        let CallMarks { key, value, client_token } = marks;
        let mut found = BTreeMap::new();
        let tag = format!("tag:{key}");
        for (name, value) in [(tag.as_str(), value), ("client-token", client_token)] {
            let filter = Filter::builder().name(name).values(value).build();
            let listed = described(self.ec2.instances.describe_instances().filters(filter)).await?;
            found.extend(listed.into_iter().map(|found| (found.instance_id.clone(), found)));
        }
        Ok(found.into_values().collect())
    }
}

/// All pages of a description, or the error of the first that failed.
async fn described(request: DescribeInstancesFluentBuilder) -> Result<Vec<Instance>, CloudError> {
    let mut pages = request.into_paginator().send();
    let mut found = Vec::new();
    while let Some(page) = pages.next().await {
        let page = page.map_err(|failure| from_sdk("ec2:DescribeInstances", &failure))?;
        let instances = page.reservations().iter().flat_map(|r| r.instances());
        found.extend(instances.filter_map(instance));
    }
    Ok(found)
}

fn instance(found: &aws_sdk_ec2::types::Instance) -> Option<Instance> {
    let text = |value: Option<&str>| value.unwrap_or_default().to_owned();
    let (placement, groups) = (found.placement(), found.security_groups().iter());
    let spot = found.instance_lifecycle() == Some(&InstanceLifecycleType::Spot)
        || found.spot_instance_request_id().is_some_and(|id| !id.is_empty());
    let reservation_id = text(reservation(found));
    Some(Instance {
        instance_id: found.instance_id()?.to_owned(),
        phase: phase(found.state().and_then(|state| state.name())),
        instance_type: text(found.instance_type().map(|t| t.as_str())),
        zone: text(placement.and_then(|p| p.availability_zone())),
        zone_id: text(placement.and_then(|p| p.availability_zone_id())),
        capacity_type: match (spot, reservation_id.is_empty()) {
            (true, _) => CapacityType::Spot,
            (false, true) => CapacityType::OnDemand,
            (false, false) => CapacityType::Reserved,
        },
        reservation_id,
        private_dns_name: text(found.private_dns_name()),
        image_id: text(found.image_id()),
        subnet_id: text(found.subnet_id()),
        security_group_ids: groups.filter_map(|group| group.group_id()).map(Into::into).collect(),
        launch_ms: found.launch_time().and_then(|t| t.to_millis().ok()).unwrap_or_default(),
        tags: tag_map(found.tags()),
    })
}

/// The capacity reservation that an instance was launched into. One that runs in an open one by
/// chance was bought on demand, and goes on when that one ends.
fn reservation(found: &aws_sdk_ec2::types::Instance) -> Option<&str> {
    let asked = found.capacity_reservation_specification()?;
    let only = asked.capacity_reservation_preference()
        == Some(&CapacityReservationPreference::CapacityReservationsOnly);
    found.capacity_reservation_id().filter(|_| only)
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
