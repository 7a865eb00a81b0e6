//! Launch templates.
//!
//! Invariant: a template's name carries a hash of its content, so one that exists already is the
//! one that is wanted, and none is ever changed.

use aws_sdk_ec2::types::{
    CapacityReservationPreference, CapacityReservationTarget, Filter,
    LaunchTemplateBlockDeviceMappingRequest, LaunchTemplateCapacityReservationSpecificationRequest,
    LaunchTemplateEbsBlockDeviceRequest, LaunchTemplateHttpTokensState,
    LaunchTemplateIamInstanceProfileSpecificationRequest,
    LaunchTemplateInstanceMetadataEndpointState, LaunchTemplateInstanceMetadataOptionsRequest,
    LaunchTemplateInstanceMetadataProtocolIpv6,
    LaunchTemplateInstanceNetworkInterfaceSpecificationRequest,
    LaunchTemplateTagSpecificationRequest, LaunchTemplatesMonitoringRequest,
    RequestLaunchTemplateData, ResourceType, TagSpecification,
};

use super::Aws;
use super::errors::from_sdk;
use super::tag::tag;
use crate::cloud::{
    Class, CloudError, Disk, InstanceMetadata, ReservationUse, TAG_CLUSTER, Template, TemplateRef,
};

/// Templates on a page: the most EC2 gives.
const PAGE_TEMPLATES: i32 = 200;

/// Creates a template unless one of that name exists.
pub async fn ensure(aws: &Aws, template: &Template) -> Result<(), CloudError> {
    let tags = template.tags.iter().map(|(key, value)| tag(key, value)).collect();
    let specification = TagSpecification::builder()
        .resource_type(ResourceType::LaunchTemplate)
        .set_tags(Some(tags))
        .build();
    let request = aws
        .ec2
        .templates
        .create_launch_template()
        .launch_template_name(&template.name)
        .launch_template_data(data(template))
        .tag_specifications(specification);
    let Err(failure) = request.send().await else { return Ok(()) };
    let failure = from_sdk("ec2:CreateLaunchTemplate", &failure);
    if failure.class == Class::Exists { Ok(()) } else { Err(failure) }
}

/// Templates that Longshore has made in this region.
pub async fn list(aws: &Aws) -> Result<Vec<TemplateRef>, CloudError> {
    let filter = Filter::builder().name("tag-key").values(TAG_CLUSTER).build();
    let request =
        aws.ec2.templates.describe_launch_templates().filters(filter).max_results(PAGE_TEMPLATES);
    let mut pages = request.into_paginator().send();
    let mut found = Vec::new();
    while let Some(page) = pages.next().await {
        let page = page.map_err(|failure| from_sdk("ec2:DescribeLaunchTemplates", &failure))?;
        found.extend(page.launch_templates().iter().filter_map(|template| {
            let created = template.create_time().and_then(|time| time.to_millis().ok());
            Some(TemplateRef {
                name: template.launch_template_name()?.to_owned(),
                created_ms: created.unwrap_or_default(),
            })
        }));
    }
    Ok(found)
}

/// Deletes a template.
pub async fn delete(aws: &Aws, name: &str) -> Result<(), CloudError> {
    let request = aws.ec2.templates.delete_launch_template().launch_template_name(name);
    let Err(failure) = request.send().await else { return Ok(()) };
    let failure = from_sdk("ec2:DeleteLaunchTemplate", &failure);
    if failure.class == Class::TemplateMissing { Ok(()) } else { Err(failure) }
}

fn data(template: &Template) -> RequestLaunchTemplateData {
    let profile = LaunchTemplateIamInstanceProfileSpecificationRequest::builder()
        .name(&template.instance_profile)
        .build();
    let interface = LaunchTemplateInstanceNetworkInterfaceSpecificationRequest::builder()
        .device_index(0)
        .set_associate_public_ip_address(template.public_address)
        .set_groups(Some(template.security_group_ids.clone()))
        .build();
    let tags = template.tags.iter().map(|(key, value)| tag(key, value)).collect();
    let interface_tags = LaunchTemplateTagSpecificationRequest::builder()
        .resource_type(ResourceType::NetworkInterface)
        .set_tags(Some(tags))
        .build();
    let disks: Vec<_> = template.disks.iter().map(disk).collect();
    RequestLaunchTemplateData::builder()
        .image_id(&template.image_id)
        .set_iam_instance_profile((!template.instance_profile.is_empty()).then_some(profile))
        .network_interfaces(interface)
        .set_user_data((!template.user_data.is_empty()).then(|| template.user_data.clone()))
        .set_block_device_mappings((!disks.is_empty()).then_some(disks))
        .metadata_options(metadata(&template.metadata))
        .monitoring(
            LaunchTemplatesMonitoringRequest::builder()
                .enabled(template.detailed_monitoring)
                .build(),
        )
        .set_capacity_reservation_specification(reservations(&template.reservations))
        .tag_specifications(interface_tags)
        .build()
}

fn reservations(
    wanted: &ReservationUse,
) -> Option<LaunchTemplateCapacityReservationSpecificationRequest> {
    let request = LaunchTemplateCapacityReservationSpecificationRequest::builder();
    let request = match wanted {
        ReservationUse::Open => return None,
        ReservationUse::Never => {
            request.capacity_reservation_preference(CapacityReservationPreference::None)
        }
        ReservationUse::Only(id) => {
            let target = CapacityReservationTarget::builder().capacity_reservation_id(id).build();
            let only = CapacityReservationPreference::CapacityReservationsOnly;
            request.capacity_reservation_preference(only).capacity_reservation_target(target)
        }
    };
    Some(request.build())
}

fn disk(disk: &Disk) -> LaunchTemplateBlockDeviceMappingRequest {
    let ebs = LaunchTemplateEbsBlockDeviceRequest::builder()
        .set_volume_size(disk.size_gib)
        .volume_type(disk.volume_type.as_str().into())
        .set_iops(disk.iops)
        .set_throughput(disk.throughput_mib_per_second)
        .set_encrypted(disk.encrypted)
        .set_kms_key_id(disk.kms_key_id.clone())
        .set_snapshot_id(disk.snapshot_id.clone())
        .delete_on_termination(disk.delete_on_termination)
        .build();
    LaunchTemplateBlockDeviceMappingRequest::builder()
        .device_name(&disk.device_name)
        .ebs(ebs)
        .build()
}

fn metadata(metadata: &InstanceMetadata) -> LaunchTemplateInstanceMetadataOptionsRequest {
    let endpoint = LaunchTemplateInstanceMetadataEndpointState::from(metadata.endpoint.as_str());
    let ipv6 = LaunchTemplateInstanceMetadataProtocolIpv6::from(metadata.ipv6.as_str());
    LaunchTemplateInstanceMetadataOptionsRequest::builder()
        .http_endpoint(endpoint)
        .http_protocol_ipv6(ipv6)
        .http_put_response_hop_limit(metadata.hop_limit)
        .http_tokens(LaunchTemplateHttpTokensState::from(metadata.tokens.as_str()))
        .build()
}
