//! Launch settings as they come in a launch template, in RunInstances, and in fleet overrides.
//!
//! Invariant: what is read here reaches the instance; what is not read has no effect on a model of
//! capacity and identity (kernel ids, hibernation and the like).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::super::config::Tags;
use super::super::wire::{AwsError, Params, Result};
use super::super::world::TemplateData;

/// EC2's limit on user data, after decoding.
const USER_DATA_BYTES_MAX: usize = 16_384;

/// Reads `LaunchTemplateData` or the same fields of RunInstances.
pub fn read(params: &Params) -> Result<TemplateData> {
    Ok(TemplateData {
        image_id: owned(params, "ImageId"),
        instance_type: owned(params, "InstanceType"),
        user_data: user_data(params)?,
        profile_name: profile_name(params),
        group_ids: group_ids(params),
        tags: tag_specifications(params),
        volumes: volumes(params)?,
        http_tokens: owned(params, "MetadataOptions.HttpTokens"),
        reservation_id: owned(
            params,
            "CapacityReservationSpecification.CapacityReservationTarget.CapacityReservationId",
        ),
        reservation_preference: owned(
            params,
            "CapacityReservationSpecification.CapacityReservationPreference",
        ),
        monitoring: params.flag("Monitoring.Enabled"),
        placement_group: owned(params, "Placement.GroupName")
            .or_else(|| owned(params, "Placement.GroupId")),
    })
}

/// Reads `TagSpecification.N`: resource kind and tags.
pub fn tag_specifications(params: &Params) -> Vec<(String, Tags)> {
    let specification = |entry: &Params| {
        (entry.text("ResourceType").unwrap_or_default().to_owned(), entry.tags("Tag"))
    };
    params.list("TagSpecification").into_iter().map(specification).collect()
}

/// Tags meant for one kind of resource; later specifications win.
pub fn tags_for(specifications: &[(String, Tags)], kind: &str) -> Tags {
    let matching = specifications.iter().filter(|(found, _)| found == kind);
    matching.flat_map(|(_, tags)| tags.clone()).collect()
}

/// `later` over `base`: what an override or a call says wins over the template.
pub fn overlay(base: &TemplateData, later: TemplateData) -> TemplateData {
    let either = |later: Option<String>, base: &Option<String>| later.or_else(|| base.clone());
    let non_empty = |later: Vec<u8>, base: &Vec<u8>| {
        if later.is_empty() { base.clone() } else { later }
    };
    TemplateData {
        image_id: either(later.image_id, &base.image_id),
        instance_type: either(later.instance_type, &base.instance_type),
        user_data: non_empty(later.user_data, &base.user_data),
        profile_name: either(later.profile_name, &base.profile_name),
        group_ids: if later.group_ids.is_empty() {
            base.group_ids.clone()
        } else {
            later.group_ids
        },
        tags: base.tags.iter().cloned().chain(later.tags).collect(),
        volumes: if later.volumes.is_empty() { base.volumes.clone() } else { later.volumes },
        http_tokens: either(later.http_tokens, &base.http_tokens),
        reservation_id: either(later.reservation_id, &base.reservation_id),
        reservation_preference: either(later.reservation_preference, &base.reservation_preference),
        monitoring: later.monitoring || base.monitoring,
        placement_group: either(later.placement_group, &base.placement_group),
    }
}

fn owned(params: &Params, path: &str) -> Option<String> {
    params.text(path).map(str::to_owned)
}

fn user_data(params: &Params) -> Result<Vec<u8>> {
    let Some(encoded) = params.text("UserData") else { return Ok(Vec::new()) };
    let decoded = STANDARD.decode(encoded).map_err(|_| {
        AwsError::client("InvalidUserData.Malformed", "Invalid BASE64 encoding of user data.")
    })?;
    if decoded.len() > USER_DATA_BYTES_MAX {
        let message = format!("User data is limited to {USER_DATA_BYTES_MAX} bytes");
        return Err(AwsError::invalid_parameter(message));
    }
    Ok(decoded)
}

fn profile_name(params: &Params) -> Option<String> {
    let from_arn = || {
        let arn = params.text("IamInstanceProfile.Arn")?;
        Some(arn.rsplit('/').next()?.to_owned())
    };
    owned(params, "IamInstanceProfile.Name").or_else(from_arn)
}

fn group_ids(params: &Params) -> Vec<String> {
    let top = params.texts("SecurityGroupId");
    if !top.is_empty() {
        return top;
    }
    let interfaces = params.list("NetworkInterface");
    interfaces.first().map(|first| first.texts("SecurityGroupId")).unwrap_or_default()
}

fn volumes(params: &Params) -> Result<Vec<(String, u32)>> {
    let mut volumes = Vec::new();
    for mapping in params.list("BlockDeviceMapping") {
        let device = mapping.text("DeviceName").unwrap_or("/dev/xvda").to_owned();
        volumes.push((device, mapping.number("Ebs.VolumeSize")?.unwrap_or(20)));
    }
    Ok(volumes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interfaces_carry_the_groups_and_overrides_win() {
        let params = Params::parse(
            b"ImageId=ami-1&UserData=aGVsbG8=\
              &IamInstanceProfile.Arn=arn:aws:iam::1:instance-profile/p/q\
              &NetworkInterface.1.SecurityGroupId.1=sg-1",
        );
        let base = read(&params).expect("valid");
        assert_eq!(base.user_data, b"hello");
        assert_eq!(base.profile_name.as_deref(), Some("q"));
        assert_eq!(base.group_ids, ["sg-1"]);
        let later = TemplateData { image_id: Some("ami-2".to_owned()), ..Default::default() };
        let both = overlay(&base, later);
        assert_eq!(both.image_id.as_deref(), Some("ami-2"));
        assert_eq!(both.group_ids, ["sg-1"]);
    }

    #[test]
    fn user_data_is_limited() {
        let long = STANDARD.encode(vec![b'x'; USER_DATA_BYTES_MAX + 1]);
        let error = read(&Params::parse(format!("UserData={long}").as_bytes())).expect_err("long");
        assert_eq!(error.code, "InvalidParameterValue");
    }
}
