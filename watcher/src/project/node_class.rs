//! EC2NodeClasses.
//!
//! Invariant: the hash names the content: classes that would launch the same have the same hash,
//! whatever their generation.

use longshore_proto::content;
use longshore_proto::types::v1 as wire;
use longshore_proto::types::v1::{BlockDevice, Kubelet, SelectorTerm};

use super::drift;
use super::fault::{Fault, FieldFault, FieldResult};
use super::quantity::{Rounding, integer};
use crate::api::instance_options::{BlockDeviceMapping, MetadataOptions};
use crate::api::kubelet::KubeletConfiguration;
use crate::api::selector::AmiSelectorTerm;
use crate::api::{EC2NodeClass, EC2NodeClassSpec, Quantity, ResourceList};

/// Families by the first half of an alias.
const ALIASES: [(&str, &str); 6] = [
    ("al2", "AL2"),
    ("al2023", "AL2023"),
    ("bottlerocket", "Bottlerocket"),
    ("windows2019", "Windows2019"),
    ("windows2022", "Windows2022"),
    ("windows2025", "Windows2025"),
];

/// A node class.
///
/// # Errors
/// A volume size that cannot be read.
pub fn ec2_node_class(class: &EC2NodeClass) -> Result<wire::NodeClass, Fault> {
    let name = format!("EC2NodeClass/{}", class.metadata.name.clone().unwrap_or_default());
    let spec = &class.spec;
    let block_devices = block_devices(&spec.block_device_mappings)
        .map_err(|fault| fault.within("spec.blockDeviceMappings").of(name.clone()))?;
    Ok(named(wire::NodeClass {
        name,
        ami_family: family(spec),
        ami_terms: spec.ami_selector_terms.iter().map(ami_term).collect(),
        subnet_terms: subnet_terms(spec),
        security_group_terms: security_group_terms(spec),
        capacity_reservation_terms: capacity_reservation_terms(spec),
        role: spec.role.clone().unwrap_or_default(),
        instance_profile: spec.instance_profile.clone().unwrap_or_default(),
        tags: spec.tags.clone(),
        user_data: spec.user_data.clone().unwrap_or_default(),
        block_devices,
        metadata_options: Some(metadata(&spec.metadata_options)),
        kubelet: spec.kubelet.as_ref().map(kubelet),
        associate_public_ip_address: spec.associate_public_ip_address,
        detailed_monitoring: spec.detailed_monitoring == Some(true),
        instance_store_policy: spec
            .instance_store_policy
            .map(|_| "RAID0".to_owned())
            .unwrap_or_default(),
        generation: class.metadata.generation.unwrap_or(0),
        uid: class.metadata.uid.clone().unwrap_or_default(),
        deleting: class.metadata.deletion_timestamp.is_some(),
        ..wire::NodeClass::default()
    }))
}

/// The class with the hashes of its content.
#[must_use]
pub fn named(class: wire::NodeClass) -> wire::NodeClass {
    let content = wire::NodeClass {
        name: String::new(),
        hash: String::new(),
        drift_hash: String::new(),
        generation: 0,
        uid: String::new(),
        deleting: false,
        ..class.clone()
    };
    let (hash, drift_hash) = (content::hash::<8>(&content), drift::of_class(content));
    wire::NodeClass { hash, drift_hash, ..class }
}

fn family(spec: &EC2NodeClassSpec) -> String {
    if let Some(family) = spec.ami_family {
        return family.as_str().to_owned();
    }
    let mut aliases = spec.ami_selector_terms.iter().filter_map(|term| term.alias.as_deref());
    let name = aliases.next().map(|alias| alias.split_once('@').map_or(alias, |(name, _)| name));
    let known = ALIASES.into_iter().find(|(alias, _)| Some(*alias) == name);
    known.map_or("Custom", |(_, family)| family).to_owned()
}

/// Alias of the newest image of a family; nothing for a family without one.
#[must_use]
pub fn latest_alias(family: &str) -> Option<String> {
    let (alias, _) = ALIASES.into_iter().find(|(_, name)| *name == family)?;
    Some(format!("{alias}@latest"))
}

fn ami_term(term: &AmiSelectorTerm) -> SelectorTerm {
    SelectorTerm {
        tags: term.tags.clone(),
        id: term.id.clone().unwrap_or_default(),
        name: term.name.clone().unwrap_or_default(),
        alias: term.alias.clone().unwrap_or_default(),
        owner: term.owner.clone().unwrap_or_default(),
        ssm_parameter: term.ssm_parameter.clone().unwrap_or_default(),
        ..SelectorTerm::default()
    }
}

fn subnet_terms(spec: &EC2NodeClassSpec) -> Vec<SelectorTerm> {
    let terms = spec.subnet_selector_terms.iter();
    terms
        .map(|term| SelectorTerm {
            tags: term.tags.clone(),
            id: term.id.clone().unwrap_or_default(),
            ..SelectorTerm::default()
        })
        .collect()
}

fn security_group_terms(spec: &EC2NodeClassSpec) -> Vec<SelectorTerm> {
    let terms = spec.security_group_selector_terms.iter();
    terms
        .map(|term| SelectorTerm {
            tags: term.tags.clone(),
            id: term.id.clone().unwrap_or_default(),
            name: term.name.clone().unwrap_or_default(),
            ..SelectorTerm::default()
        })
        .collect()
}

fn capacity_reservation_terms(spec: &EC2NodeClassSpec) -> Vec<SelectorTerm> {
    let terms = spec.capacity_reservation_selector_terms.iter();
    terms
        .map(|term| SelectorTerm {
            tags: term.tags.clone(),
            id: term.id.clone().unwrap_or_default(),
            owner: term.owner_id.clone().unwrap_or_default(),
            instance_match_criteria: term
                .instance_match_criteria
                .map(|criteria| criteria.as_str().to_owned())
                .unwrap_or_default(),
            ..SelectorTerm::default()
        })
        .collect()
}

fn metadata(options: &MetadataOptions) -> wire::MetadataOptions {
    wire::MetadataOptions {
        http_endpoint: options.http_endpoint.as_str().to_owned(),
        http_protocol_ipv6: options.http_protocol_ipv6.as_str().to_owned(),
        http_put_response_hop_limit: i32::try_from(options.http_put_response_hop_limit)
            .unwrap_or(1),
        http_tokens: options.http_tokens.as_str().to_owned(),
    }
}

fn block_devices(list: &[BlockDeviceMapping]) -> FieldResult<Vec<BlockDevice>> {
    list.iter()
        .enumerate()
        .map(|(n, mapping)| {
            let ebs = mapping.ebs.clone().unwrap_or_default();
            let size = volume_size(ebs.volume_size.as_ref())
                .map_err(|fault| fault.within(format!("[{n}].ebs")))?;
            Ok(BlockDevice {
                device_name: mapping.device_name.clone().unwrap_or_default(),
                root_volume: mapping.root_volume == Some(true),
                volume_size_bytes: size,
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

/// Size of a volume in bytes; zero for the image's own.
///
/// # Errors
/// A quantity that cannot be read.
pub fn volume_size(size: Option<&Quantity>) -> FieldResult<i64> {
    let Some(Quantity(text)) = size else { return Ok(0) };
    integer(text, 1, Rounding::Up).map_err(|problem| FieldFault::new("volumeSize", problem))
}

/// Kubelet configuration.
#[must_use]
pub fn kubelet(from: &KubeletConfiguration) -> Kubelet {
    let amounts = |list: &ResourceList| {
        list.iter().map(|(name, quantity)| (name.clone(), quantity.0.clone())).collect()
    };
    Kubelet {
        max_pods: from.max_pods,
        pods_per_core: from.pods_per_core,
        cluster_dns: from.cluster_dns.clone(),
        system_reserved: amounts(&from.system_reserved),
        kube_reserved: amounts(&from.kube_reserved),
        eviction_hard: from.eviction_hard.clone(),
        eviction_soft: from.eviction_soft.clone(),
        eviction_soft_grace_period: from.eviction_soft_grace_period.clone(),
        eviction_max_pod_grace_period_seconds: from.eviction_max_pod_grace_period,
        image_gc_high_threshold_percent: from.image_gc_high_threshold_percent,
        image_gc_low_threshold_percent: from.image_gc_low_threshold_percent,
        cpu_cfs_quota: from.cpu_cfs_quota,
    }
}
