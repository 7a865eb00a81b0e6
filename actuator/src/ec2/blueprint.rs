//! The launch template that a launch needs.
//!
//! Invariant: pure; the name hashes everything in it, so equal needs share a template and a changed
//! class gets a new one.

use longshore_ec2_data::AmiFamily;
use longshore_proto::types::v1::{BlockDevice, Launch, MetadataOptions};
use sha2::{Digest, Sha256};

use super::request::{Source, class_tags};
use super::userdata::{Boot, UserDataError};
use crate::cloud::{Disk, InstanceMetadata, ReservationUse, Template};
use crate::nodeclass::Resolved;

/// Hexadecimal digits of the hash in a template's name.
const HASH_DIGITS: usize = 24;
const GIB: i64 = 1 << 30;

/// The template for a launch from an image, and into a reservation where it is for one.
///
/// # Errors
/// When the class's user data cannot be merged or is too large.
pub fn template(
    class: &Resolved,
    launch: &Launch,
    source: &Source,
) -> Result<Template, UserDataError> {
    let spec = &class.class;
    let user_data = Boot::new(class.family, &class.cluster, spec, launch).encode()?;
    let mut template = Template {
        name: String::new(),
        image_id: source.image_id.clone(),
        instance_profile: class.instance_profile.clone(),
        security_group_ids: class.security_groups.iter().map(|group| group.id.clone()).collect(),
        public_address: spec.associate_public_ip_address,
        user_data,
        disks: disks(&spec.block_devices, class.family),
        metadata: metadata(spec.metadata_options.as_ref()),
        detailed_monitoring: spec.detailed_monitoring,
        reservations: reservations(class, source),
        tags: class_tags(class, &launch.pool),
    };
    template.name = name(&template);
    Ok(template)
}

/// Who selects reservations wants what is in them for launches that were planned there: no others
/// may come into one by chance. Where none are selected, open ones are there to be used.
fn reservations(class: &Resolved, source: &Source) -> ReservationUse {
    match (source.reservation_id.is_empty(), class.class.capacity_reservation_terms.is_empty()) {
        (false, _) => ReservationUse::Only(source.reservation_id.clone()),
        (true, false) => ReservationUse::Never,
        (true, true) => ReservationUse::Open,
    }
}

/// `longshore-` and a hash of the content.
fn name(template: &Template) -> String {
    let mut content = serde_json::json!([
        template.image_id,
        template.instance_profile,
        template.security_group_ids,
        template.public_address,
        template.user_data,
        template.disks,
        template.metadata,
        template.detailed_monitoring,
        template.tags,
    ]);
    // Left out where there is nothing to say, so that a template keeps the name that it has.
    if let (Some(all), false) =
        (content.as_array_mut(), template.reservations == ReservationUse::Open)
    {
        all.push(serde_json::json!(template.reservations));
    }
    let digest = Sha256::digest(content.to_string());
    let digits: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("longshore-{}", digits.chars().take(HASH_DIGITS).collect::<String>())
}

/// Volumes of a class, or its family's defaults.
fn disks(devices: &[BlockDevice], family: AmiFamily) -> Vec<Disk> {
    if !devices.is_empty() {
        return devices.iter().map(disk).collect();
    }
    let defaults: &[(&str, i32)] = match family {
        AmiFamily::Al2 | AmiFamily::Al2023 => &[("/dev/xvda", 20)],
        AmiFamily::Bottlerocket => &[("/dev/xvda", 4), ("/dev/xvdb", 20)],
        AmiFamily::Custom
        | AmiFamily::Windows2019
        | AmiFamily::Windows2022
        | AmiFamily::Windows2025 => &[],
    };
    let gp3 = |(device_name, gib): &(&str, i32)| Disk {
        device_name: (*device_name).to_owned(),
        size_gib: Some(*gib),
        volume_type: "gp3".to_owned(),
        iops: None,
        throughput_mib_per_second: None,
        encrypted: Some(true),
        kms_key_id: None,
        snapshot_id: None,
        delete_on_termination: true,
    };
    defaults.iter().map(gp3).collect()
}

fn disk(device: &BlockDevice) -> Disk {
    let positive = |number: i64| i32::try_from(number).ok().filter(|number| *number > 0);
    let named = |text: &String| (!text.is_empty()).then(|| text.clone());
    Disk {
        device_name: device.device_name.clone(),
        // EC2 counts in GiB; rounded up, so that nobody gets less than asked.
        size_gib: positive(device.volume_size_bytes.saturating_add(GIB - 1) / GIB),
        volume_type: named(&device.volume_type).unwrap_or_else(|| "gp3".to_owned()),
        iops: positive(device.iops),
        throughput_mib_per_second: positive(device.throughput_mib_per_second),
        encrypted: device.encrypted,
        kms_key_id: named(&device.kms_key_id),
        snapshot_id: named(&device.snapshot_id),
        delete_on_termination: device.delete_on_termination.unwrap_or(true),
    }
}

/// Settings of the class, with the API's hardened defaults.
fn metadata(options: Option<&MetadataOptions>) -> InstanceMetadata {
    let options = options.cloned().unwrap_or_default();
    let or = |value: String, default: &str| match value.is_empty() {
        true => default.to_owned(),
        false => value,
    };
    let hops = options.http_put_response_hop_limit;
    InstanceMetadata {
        endpoint: or(options.http_endpoint, "enabled"),
        ipv6: or(options.http_protocol_ipv6, "disabled"),
        hop_limit: if hops > 0 { hops } else { 1 },
        tokens: or(options.http_tokens, "required"),
    }
}
