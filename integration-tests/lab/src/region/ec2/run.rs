//! RunInstances, plain and as a dry run.
//!
//! Invariant: at least `MinCount` instances or none; the first refusal is the call's error.

use super::super::offer::Offer;
use super::super::wire::{AwsError, Body, Params, Result};
use super::super::world::{Call, InstanceRecord, World};
use super::admit::Candidate;
use super::fleet::once;
use super::instances;
use super::template_data::{overlay, read};

/// `RunInstances`.
pub fn run_instances(world: &mut World, call: &Call<'_>) -> Result<Body> {
    let params = &call.request.params;
    let candidate = candidate(world, params)?;
    world.admit(call, &candidate)?;
    if params.flag("DryRun") {
        return Err(AwsError::dry_run());
    }
    let least = params.number("MinCount")?.unwrap_or(1);
    let most = params.number("MaxCount")?.unwrap_or(least).max(least);
    once(world, params, |world| launch(world, call, &candidate, (least, most)))
}

fn launch(
    world: &mut World,
    call: &Call<'_>,
    candidate: &Candidate,
    (least, most): (u32, u32),
) -> Result<Body> {
    let mut room = world.room();
    let mut granted = 0;
    while granted < most {
        match world.take(&mut room, candidate) {
            Ok(()) => granted += 1,
            Err(error) if granted < least => return Err(error),
            Err(_) => break,
        }
    }
    let reservation_id = world.ids.ec2("r");
    let token = call.request.params.text("ClientToken");
    let ids: Vec<String> = (0..granted)
        .filter_map(|_| world.launch(candidate.order(&reservation_id, token), call.now))
        .collect();
    let records: Vec<&InstanceRecord> =
        ids.iter().filter_map(|id| world.instances.get(id)).collect();
    Ok(Body::Xml(instances::reservation(world, &reservation_id, &records)))
}

fn candidate(world: &World, params: &Params) -> Result<Candidate> {
    let own = read(params)?;
    let specification = params.at("LaunchTemplate");
    let mut template_used = None;
    let mut data = own;
    if !specification.is_absent() {
        let (name, id) =
            (specification.text("LaunchTemplateName"), specification.text("LaunchTemplateId"));
        let template = world.template(name, id)?;
        let found = template.version(specification.text("Version"));
        let (version, base) = found.ok_or_else(|| {
            let message = "Could not find the launch template version";
            AwsError::client("InvalidLaunchTemplateId.VersionNotFound", message)
        })?;
        data = overlay(base, data);
        template_used = Some((template.id.clone(), template.name.clone(), version));
    }
    let subnet = subnet(world, params)?;
    let instance_type =
        data.instance_type.as_deref().ok_or_else(|| AwsError::missing_parameter("InstanceType"))?;
    let spot = params.text("InstanceMarketOptions.MarketType") == Some("spot");
    Ok(Candidate {
        template: template_used,
        offer: Offer::new(instance_type, &subnet.zone, spot),
        subnet_id: subnet.id.clone(),
        max_price_micro_usd: None,
        data,
    })
}

fn subnet<'a>(world: &'a World, params: &Params) -> Result<&'a super::super::config::SubnetConfig> {
    let primary = params.list("NetworkInterface").first().and_then(|first| first.text("SubnetId"));
    let wanted = params.text("SubnetId").or(primary);
    match wanted {
        Some(id) => world.subnet(id).ok_or_else(|| {
            let message = format!("The subnet ID '{id}' does not exist");
            AwsError::client("InvalidSubnetID.NotFound", message)
        }),
        None => world.config.subnets.first().ok_or_else(|| {
            AwsError::client("MissingInput", "No subnet exists in the VPC of this region.")
        }),
    }
}
