//! Machine images.
//!
//! Invariant: deprecated images are shown only to who asks for them or owns them.

use super::super::config::ImageConfig;
use super::super::iam::Context;
use super::super::wire::{AwsError, Body, Element, Result, group, maybe, set, text};
use super::super::world::{Call, World};
use super::filter::{Filters, page, paged, retain, tag_set};

/// `DescribeImages`.
pub fn describe(world: &mut World, call: &Call<'_>) -> Result<Body> {
    world.allow(call, "*", Context::default())?;
    let params = &call.request.params;
    let (ids, owners) = (params.texts("ImageId"), params.texts("Owner"));
    for id in &ids {
        if !world.config.images.iter().any(|image| image.id == *id) {
            let message = format!("The image id '[{id}]' does not exist");
            return Err(AwsError::client("InvalidAMIID.NotFound", message));
        }
    }
    let now = format!("{:.3}", call.now);
    let with_deprecated = params.flag("IncludeDeprecated") || !ids.is_empty();
    let account = world.config.account_id.clone();
    let filters = Filters::of(params);
    let kept = retain(world.config.images.iter().collect(), |image: &&ImageConfig| {
        let named = ids.is_empty() || ids.contains(&image.id);
        let fresh = image.deprecation_time.as_ref().is_none_or(|end| *end > now);
        Ok(named
            && (with_deprecated || fresh || image.owner_id == account)
            && owned(image, &owners, &account)
            && filters.keep(&image.tags, |name| attribute(image, name))?)
    })?;
    let (kept, next) = page(params, kept, 1000)?;
    Ok(Body::Xml(paged("imagesSet", kept.into_iter().map(image_xml), next)))
}

fn owned(image: &ImageConfig, owners: &[String], account: &str) -> bool {
    let by = |owner: &String| match owner.as_str() {
        "self" => image.owner_id == account,
        other => image.owner_id == other || image.owner_alias.as_deref() == Some(other),
    };
    owners.is_empty() || owners.iter().any(by)
}

fn attribute(image: &ImageConfig, name: &str) -> Option<Vec<String>> {
    let value = match name {
        "image-id" => image.id.as_str(),
        "name" => image.name.as_str(),
        "architecture" => image.architecture.as_str(),
        "state" => "available",
        "owner-id" => image.owner_id.as_str(),
        "owner-alias" => image.owner_alias.as_deref().unwrap_or_default(),
        "image-type" => "machine",
        "virtualization-type" => "hvm",
        "root-device-type" => "ebs",
        "is-public" => "true",
        _ => return None,
    };
    Some(vec![value.to_owned()])
}

fn image_xml(image: &ImageConfig) -> Vec<Element> {
    let root = vec![
        text("deviceName", "/dev/xvda"),
        group(
            "ebs",
            vec![
                text("snapshotId", image.id.replace("ami-", "snap-")),
                text("volumeSize", 20),
                text("volumeType", "gp3"),
                text("deleteOnTermination", true),
                text("encrypted", false),
            ],
        ),
    ];
    let mut fields = vec![
        text("imageId", &image.id),
        text("name", &image.name),
        text("description", &image.name),
        text("imageLocation", format!("{}/{}", image.owner_id, image.name)),
        text("imageState", "available"),
        text("imageOwnerId", &image.owner_id),
        text("isPublic", true),
        text("architecture", &image.architecture),
        text("imageType", "machine"),
        text("creationDate", &image.creation_date),
        text("platformDetails", "Linux/UNIX"),
        text("virtualizationType", "hvm"),
        text("hypervisor", "xen"),
        text("enaSupport", true),
        text("rootDeviceType", "ebs"),
        text("rootDeviceName", "/dev/xvda"),
        set("blockDeviceMapping", [root]),
        tag_set(&image.tags),
    ];
    fields.extend(maybe("imageOwnerAlias", image.owner_alias.as_ref()));
    fields.extend(maybe("deprecationTime", image.deprecation_time.as_ref()));
    fields
}
