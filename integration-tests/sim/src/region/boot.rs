//! What kubelets see of a region's instances.
//!
//! Invariant: a dud instance runs and costs money, and no kubelet ever starts on it.

use std::sync::Arc;

use base64::Engine as _;
use longshore_ec2_data::eni_limited_pods;
use longshore_lab::instance::{Instance, InstanceSource, InstanceState};
use longshore_proto::capacity::v1::InstancePhase;
use longshore_proto::types::v1::CapacityType;
use tokio::sync::watch;

use super::{Model, Record, Region};

/// Share of the memory that the operating system sees, in percent.
const SEEN_MEMORY_PERCENT: i64 = 95;

/// The instances of a region, to those who boot on them.
pub struct Boots(pub Region);

impl InstanceSource for Boots {
    fn changes(&self) -> watch::Receiver<u64> {
        self.0.changes()
    }

    fn instances(&self) -> Vec<Instance> {
        self.0.with(|model, _| {
            let joins = |record: &&Record| !model.never_joins.contains(&record.seen.instance_id);
            model.instances.values().filter(joins).map(|record| machine(model, record)).collect()
        })
    }
}

impl Boots {
    /// The same as kubelets take it.
    #[must_use]
    pub fn source(region: &Region) -> Arc<dyn InstanceSource> {
        Arc::new(Self(region.clone()))
    }
}

fn machine(model: &Model, record: &Record) -> Instance {
    let seen = &record.seen;
    let hardware = model.types.get(&seen.instance_type);
    let decoded = base64::engine::general_purpose::STANDARD.decode(&record.template.user_data);
    let memory_mib = hardware.map_or(0, |found| found.memory_mib);
    let memory_bytes = i64::try_from(memory_mib << 20).unwrap_or(i64::MAX);
    Instance {
        instance_id: seen.instance_id.clone(),
        instance_type: seen.instance_type.clone(),
        zone: seen.zone.clone(),
        zone_id: seen.zone_id.clone(),
        arch: hardware.map_or("amd64", |found| found.arch.as_str()).to_owned(),
        spot: seen.capacity_type == CapacityType::Spot,
        state: match seen.phase {
            InstancePhase::Pending | InstancePhase::Unspecified => InstanceState::Pending,
            InstancePhase::Running | InstancePhase::Stopped => InstanceState::Running,
            InstancePhase::ShuttingDown => InstanceState::ShuttingDown,
            InstancePhase::Terminated => InstanceState::Terminated,
        },
        private_dns_name: record.dns_name.clone(),
        private_ip: "10.0.0.1".to_owned(),
        image_id: seen.image_id.clone(),
        user_data: decoded.unwrap_or_default(),
        instance_profile: Some(record.template.instance_profile.clone()),
        tags: seen.tags.clone(),
        cpu_millis: hardware.map_or(0, |found| i64::from(found.vcpus) * 1000),
        memory_bytes: memory_bytes / 100 * SEEN_MEMORY_PERCENT,
        eni_max_pods: hardware
            .map_or(0, |found| u32::try_from(eni_limited_pods(found, 0)).unwrap_or(u32::MAX)),
    }
}
