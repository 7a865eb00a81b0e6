//! AWSNodeTemplates: node classes of the first API.
//!
//! Invariant: a selector of the first API is one map; here it is spread into terms, one for each
//! combination of the values that its commas separate.

use std::collections::BTreeMap;

use longshore_proto::types::v1 as wire;
use longshore_proto::types::v1::{BlockDevice, SelectorTerm};

use super::fault::{Fault, FieldResult};
use super::node_class::{latest_alias, named, volume_size};
use crate::api::aws_node_template::{LegacyBlockDeviceMapping, LegacyMetadataOptions};
use crate::api::{AWSNodeTemplate, AWSNodeTemplateSpec};

/// Family of a template that names none.
const FAMILY_DEFAULT: &str = "AL2023";
/// Hops that answers of the metadata service may travel, in the first API: pods may ask it.
const HOP_LIMIT_DEFAULT: i32 = 2;

/// A template.
///
/// # Errors
/// A volume size that cannot be read.
pub fn node_template(template: &AWSNodeTemplate) -> Result<wire::NodeClass, Fault> {
    let name = format!("AWSNodeTemplate/{}", template.metadata.name.clone().unwrap_or_default());
    let class = node_template_spec(&template.spec)
        .map_err(|fault| fault.within("spec").of(name.clone()))?;
    Ok(named(wire::NodeClass {
        name,
        generation: template.metadata.generation.unwrap_or(0),
        uid: template.metadata.uid.clone().unwrap_or_default(),
        deleting: template.metadata.deletion_timestamp.is_some(),
        ..class
    }))
}

/// The specification of a template or of an in-line provider, without a name.
///
/// # Errors
/// A volume size that cannot be read.
pub fn node_template_spec(spec: &AWSNodeTemplateSpec) -> FieldResult<wire::NodeClass> {
    let family = spec.ami_family.clone().unwrap_or_else(|| FAMILY_DEFAULT.to_owned());
    let mut ami_terms = terms(&spec.ami_selector);
    if ami_terms.is_empty() {
        let alias = latest_alias(&family);
        ami_terms.extend(alias.map(|alias| SelectorTerm { alias, ..SelectorTerm::default() }));
    }
    Ok(wire::NodeClass {
        ami_family: family,
        ami_terms,
        subnet_terms: terms(&spec.subnet_selector),
        security_group_terms: terms(&spec.security_group_selector),
        instance_profile: spec.instance_profile.clone().unwrap_or_default(),
        tags: spec.tags.clone(),
        user_data: spec.user_data.clone().unwrap_or_default(),
        block_devices: block_devices(&spec.block_device_mappings)?,
        metadata_options: Some(metadata(spec.metadata_options.as_ref())),
        detailed_monitoring: spec.detailed_monitoring == Some(true),
        launch_template: spec.launch_template.clone().unwrap_or_default(),
        ..wire::NodeClass::default()
    })
}

/// Terms of a selector: ids one each; other keys multiplied over the values between commas.
fn terms(selector: &BTreeMap<String, String>) -> Vec<SelectorTerm> {
    if let Some(ids) = selector.get("aws-ids").or_else(|| selector.get("aws::ids")) {
        let by_id = |id| SelectorTerm { id, ..SelectorTerm::default() };
        return values(ids).map(by_id).collect();
    }
    if selector.is_empty() {
        return Vec::new();
    }
    selector.iter().fold(vec![SelectorTerm::default()], |terms, (key, list)| {
        let each = terms.iter().flat_map(|term| values(list).map(move |value| (term, value)));
        each.map(|(term, value)| with(term.clone(), key, value)).collect()
    })
}

fn with(mut term: SelectorTerm, key: &str, value: String) -> SelectorTerm {
    match key {
        "aws::name" => term.name = value,
        "aws::owners" => term.owner = value,
        _ => {
            term.tags.insert(key.to_owned(), value);
        }
    }
    term
}

fn values(list: &str) -> impl Iterator<Item = String> {
    list.split(',').map(|value| value.trim().to_owned()).filter(|value| !value.is_empty())
}

fn block_devices(list: &[LegacyBlockDeviceMapping]) -> FieldResult<Vec<BlockDevice>> {
    list.iter()
        .enumerate()
        .map(|(n, mapping)| {
            let ebs = mapping.ebs.clone().unwrap_or_default();
            let field = format!("blockDeviceMappings[{n}].ebs");
            Ok(BlockDevice {
                device_name: mapping.device_name.clone().unwrap_or_default(),
                root_volume: false,
                volume_size_bytes: volume_size(ebs.volume_size.as_ref())
                    .map_err(|fault| fault.within(field))?,
                volume_type: ebs.volume_type.map(|t| t.as_str().to_owned()).unwrap_or_default(),
                iops: ebs.iops.unwrap_or(0),
                throughput_mib_per_second: ebs.throughput.unwrap_or(0),
                encrypted: ebs.encrypted,
                kms_key_id: ebs.kms_key_id.unwrap_or_default(),
                snapshot_id: ebs.snapshot_id.unwrap_or_default(),
                delete_on_termination: ebs.delete_on_termination,
            })
        })
        .collect()
}

fn metadata(options: Option<&LegacyMetadataOptions>) -> wire::MetadataOptions {
    let switch = |value: Option<crate::api::instance_options::Switch>, default: &str| {
        value.map_or(default, |v| v.as_str()).to_owned()
    };
    wire::MetadataOptions {
        http_endpoint: switch(options.and_then(|o| o.http_endpoint), "enabled"),
        http_protocol_ipv6: switch(options.and_then(|o| o.http_protocol_ipv6), "disabled"),
        http_put_response_hop_limit: options
            .and_then(|o| o.http_put_response_hop_limit)
            .and_then(|hops| i32::try_from(hops).ok())
            .unwrap_or(HOP_LIMIT_DEFAULT),
        http_tokens: options
            .and_then(|o| o.http_tokens)
            .map_or("required", |tokens| tokens.as_str())
            .to_owned(),
    }
}
