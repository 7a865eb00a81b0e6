//! Tags of instances, volumes and launch templates.
//!
//! Invariant: all resources of a call are tagged, or none.

use super::super::config::Tags;
use super::super::iam::Context;
use super::super::wire::{AwsError, Body, Result};
use super::super::world::{Call, World};
use super::instances::{done, instance_context};

/// `CreateTags`.
pub fn create(world: &mut World, call: &Call<'_>) -> Result<Body> {
    let tags = call.request.params.tags("Tag");
    if let Some(key) = tags.keys().find(|key| key.starts_with("aws:")) {
        let message = format!("Tag keys starting with 'aws:' are reserved for internal use: {key}");
        return Err(AwsError::invalid_parameter(message));
    }
    change(world, call, |found| found.extend(tags.clone()))
}

/// `DeleteTags`.
pub fn delete(world: &mut World, call: &Call<'_>) -> Result<Body> {
    let tags = call.request.params.tags("Tag");
    change(world, call, |found| found.retain(|key, _| !tags.contains_key(key)))
}

fn change(world: &mut World, call: &Call<'_>, edit: impl Fn(&mut Tags)) -> Result<Body> {
    let params = &call.request.params;
    let tags = params.tags("Tag");
    let ids = params.texts("ResourceId");
    for id in &ids {
        let (kind, context) = resource(world, id, call)?;
        let arn = world.ec2_arn(kind, id);
        world.allow(call, &arn, context.with_request_tags(&tags))?;
    }
    if params.flag("DryRun") {
        return Err(AwsError::dry_run());
    }
    for id in &ids {
        if let Some(found) = tags_of(world, id) {
            edit(found);
        }
    }
    world.touch();
    Ok(done())
}

/// Kind and conditions of a resource, or EC2's complaint about its id.
fn resource(world: &World, id: &str, call: &Call<'_>) -> Result<(&'static str, Context)> {
    let kind = id.split('-').next().unwrap_or_default();
    match kind {
        "i" => {
            super::instances::visible(world, &[id.to_owned()], call.now)?;
            let context = world.instances.get(id).map(|record| instance_context(world, record));
            Ok(("instance", context.unwrap_or_default()))
        }
        "lt" => {
            let found = world.templates.values().find(|template| template.id == id);
            let template =
                found.ok_or_else(|| not_found("InvalidLaunchTemplateId.NotFound", id))?;
            Ok(("launch-template", Context::default().with_resource_tags(&template.tags)))
        }
        "vol" => {
            let volumes = world.instances.values().flat_map(|record| &record.volumes);
            let found = volumes.into_iter().find(|(_, volume, _)| volume == id);
            let (_, _, tags) = found.ok_or_else(|| not_found("InvalidVolume.NotFound", id))?;
            Ok(("volume", Context::default().with_resource_tags(tags)))
        }
        _ => Err(not_found("InvalidID", id)),
    }
}

fn not_found(code: &str, id: &str) -> AwsError {
    AwsError::client(code, format!("The ID '{id}' is not valid"))
}

fn tags_of<'a>(world: &'a mut World, id: &str) -> Option<&'a mut Tags> {
    if id.starts_with("lt-") {
        return world.templates.values_mut().find(|found| found.id == id).map(|t| &mut t.tags);
    }
    if id.starts_with("vol-") {
        let volumes = world.instances.values_mut().flat_map(|record| &mut record.volumes);
        return volumes.into_iter().find(|(_, volume, _)| volume == id).map(|(_, _, t)| t);
    }
    world.instances.get_mut(id).map(|record| &mut record.seen.tags)
}
