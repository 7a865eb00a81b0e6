//! CreateFleet, CreateTags and TerminateInstances.
//!
//! Invariant: an instant fleet with the caller's client token and count; overrides are the order's
//! offers and nothing else; spot by price-capacity-optimized, on-demand by lowest price.

use std::collections::BTreeMap;

use async_trait::async_trait;
use aws_sdk_ec2::operation::{RequestId, create_fleet::CreateFleetOutput};
use aws_sdk_ec2::types::{
    CreateFleetError, CreateFleetInstance, DefaultTargetCapacityType,
    FleetLaunchTemplateConfigRequest, FleetLaunchTemplateOverridesRequest,
    FleetLaunchTemplateSpecificationRequest, FleetOnDemandAllocationStrategy, FleetType,
    OnDemandOptionsRequest, ResourceType, SpotAllocationStrategy, SpotOptionsRequest, Tag,
    TagSpecification, TargetCapacitySpecificationRequest,
};
use longshore_proto::types::v1::CapacityType;

use super::errors::{error, from_sdk};
use super::tag::tag;
use super::{Aws, templates};
use crate::cloud::{
    CallMarks, Class, CloudError, Fleet, FleetInstance, FleetOffer, FleetOutcome, Found, Instance,
    Order, Shortage, Template, TemplateOffers, TemplateRef,
};

const CREATE_FLEET: &str = "ec2:CreateFleet";

#[async_trait]
impl Fleet for Aws {
    async fn launch(&self, order: &Order) -> Result<FleetOutcome, CloudError> {
        let spot = order.capacity_type == CapacityType::Spot;
        let target = TargetCapacitySpecificationRequest::builder()
            .total_target_capacity(i32::try_from(order.count).unwrap_or(i32::MAX))
            .default_target_capacity_type(if spot {
                DefaultTargetCapacityType::Spot
            } else {
                DefaultTargetCapacityType::OnDemand
            })
            .build();
        let configs = order.offers.iter().map(config).collect();
        let mut request = self
            .ec2
            .fleets
            .create_fleet()
            .client_token(&order.client_token)
            .r#type(FleetType::Instant)
            .target_capacity_specification(target)
            .set_launch_template_configs(Some(configs))
            .set_tag_specifications(Some(tag_specifications(order)));
        request = if spot {
            let strategy = SpotAllocationStrategy::PriceCapacityOptimized;
            let options = SpotOptionsRequest::builder().allocation_strategy(strategy).build();
            request.spot_options(options)
        } else {
            let strategy = FleetOnDemandAllocationStrategy::LowestPrice;
            let options = OnDemandOptionsRequest::builder().allocation_strategy(strategy).build();
            request.on_demand_options(options)
        };
        let answer = request.send().await.map_err(|failure| from_sdk(CREATE_FLEET, &failure))?;
        Ok(outcome(&answer))
    }

    async fn instances(&self) -> Result<Vec<Instance>, CloudError> {
        self.listed().await
    }

    async fn instances_by_id(&self, instance_ids: &[String]) -> Result<Found, CloudError> {
        self.by_id(instance_ids).await
    }

    async fn instances_of_call(&self, marks: CallMarks<'_>) -> Result<Vec<Instance>, CloudError> {
        self.of_call(marks).await
    }

    async fn tag(
        &self,
        instance_id: &str,
        tags: &BTreeMap<String, String>,
    ) -> Result<(), CloudError> {
        let tags = tags.iter().map(|(key, value)| tag(key, value)).collect();
        let request = self.ec2.tags.create_tags().resources(instance_id).set_tags(Some(tags));
        let answer = request.send().await;
        answer.map(drop).map_err(|failure| from_sdk("ec2:CreateTags", &failure))
    }

    async fn terminate(&self, instance_ids: &[String]) -> Result<(), CloudError> {
        let request = self
            .ec2
            .terminations
            .terminate_instances()
            .set_instance_ids(Some(instance_ids.to_vec()));
        let Err(failure) = request.send().await else { return Ok(()) };
        let failure = from_sdk("ec2:TerminateInstances", &failure);
        // One unknown id fails the whole call: the caller asks for the others without it.
        let gone = failure.class == Class::NotFound && instance_ids.len() == 1;
        if gone { Ok(()) } else { Err(failure) }
    }

    async fn ensure_template(&self, template: &Template) -> Result<(), CloudError> {
        templates::ensure(self, template).await
    }

    async fn templates(&self) -> Result<Vec<TemplateRef>, CloudError> {
        templates::list(self).await
    }

    async fn delete_template(&self, name: &str) -> Result<(), CloudError> {
        templates::delete(self, name).await
    }
}

fn config(offers: &TemplateOffers) -> FleetLaunchTemplateConfigRequest {
    let template = FleetLaunchTemplateSpecificationRequest::builder()
        .launch_template_name(&offers.template)
        .version("$Latest")
        .build();
    FleetLaunchTemplateConfigRequest::builder()
        .launch_template_specification(template)
        .set_overrides(Some(offers.offers.iter().map(overriding).collect()))
        .build()
}

fn overriding(offer: &FleetOffer) -> FleetLaunchTemplateOverridesRequest {
    FleetLaunchTemplateOverridesRequest::builder()
        .instance_type(offer.instance_type.as_str().into())
        .subnet_id(&offer.subnet_id)
        // Kept so that errors name the zone.
        .availability_zone(&offer.zone)
        .priority(f64::from(offer.rank))
        .build()
}

fn tag_specifications(order: &Order) -> Vec<TagSpecification> {
    let tags: Vec<Tag> = order.tags.iter().map(|(key, value)| tag(key, value)).collect();
    [ResourceType::Instance, ResourceType::Volume, ResourceType::Fleet]
        .into_iter()
        .map(|resource| {
            TagSpecification::builder().resource_type(resource).set_tags(Some(tags.clone())).build()
        })
        .collect()
}

fn outcome(answer: &CreateFleetOutput) -> FleetOutcome {
    let request_id = answer.request_id().unwrap_or_default();
    FleetOutcome {
        bought: answer.instances().iter().flat_map(bought).collect(),
        shortages: answer.errors().iter().map(|found| shortage(found, request_id)).collect(),
        request_id: request_id.to_owned(),
    }
}

/// An entry of the answer is about all instances that were launched from one override.
fn bought(found: &CreateFleetInstance) -> impl Iterator<Item = FleetInstance> {
    let overrides = found.launch_template_and_overrides().and_then(|both| both.overrides());
    let zone = found.availability_zone().or(overrides.and_then(|o| o.availability_zone()));
    let instance_type = found.instance_type().or(overrides.and_then(|o| o.instance_type()));
    let instance_type = instance_type.map_or(String::new(), |t| t.as_str().to_owned());
    let zone = zone.unwrap_or_default().to_owned();
    found.instance_ids().iter().map(move |instance_id| FleetInstance {
        instance_id: instance_id.clone(),
        instance_type: instance_type.clone(),
        zone: zone.clone(),
    })
}

fn shortage(found: &CreateFleetError, request_id: &str) -> Shortage {
    let overrides = found.launch_template_and_overrides().and_then(|both| both.overrides());
    let text = |value: Option<&str>| value.unwrap_or_default().to_owned();
    let (code, message) = (found.error_code(), found.error_message());
    Shortage {
        instance_type: text(overrides.and_then(|o| o.instance_type()).map(|t| t.as_str())),
        zone: text(overrides.and_then(|o| o.availability_zone())),
        subnet_id: text(overrides.and_then(|o| o.subnet_id())),
        error: error(
            CREATE_FLEET,
            code.unwrap_or("Unknown"),
            message.unwrap_or_default(),
            request_id,
        ),
    }
}
