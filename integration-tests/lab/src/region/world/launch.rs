//! Bringing an instance into the world.
//!
//! Invariant: an order that reaches this point has passed every check; launching cannot fail except
//! for want of an address, which the order's maker has counted.

use jiff::Timestamp;

use super::super::clock::after;
use super::super::config::Tags;
use super::super::offer::Offer;
use super::{Health, InstanceRecord, TemplateData, World};
use crate::instance::{Instance, InstanceState};

/// Share of a machine's memory that firmware and kernel keep, in thousandths; measured values for
/// Nitro types lie between 17 and 53.
const HIDDEN_MEMORY_PERMILLE: u64 = 45;

/// A launch that was decided.
#[derive(Clone, Debug)]
pub struct LaunchOrder {
    /// What to buy.
    pub offer: Offer,
    /// Where to attach it.
    pub subnet_id: String,
    /// What to boot.
    pub image_id: String,
    /// Everything the launch template or the call says.
    pub data: TemplateData,
    /// Tags of the instance.
    pub tags: Tags,
    /// Tags of its volumes.
    pub volume_tags: Tags,
    /// Reservation id shared by one launch.
    pub reservation_id: String,
    /// Client token of the call.
    pub client_token: Option<String>,
}

impl World {
    /// Launches one instance; returns its id, or `None` when the subnet ran out of addresses.
    pub fn launch(&mut self, order: LaunchOrder, now: Timestamp) -> Option<String> {
        let address = self.addresses.take(&order.subnet_id)?;
        self.market.take(&order.offer);
        let timing = self.config.timing;
        let boot_ms = self.ids.between("boot", timing.boot_min_ms, timing.boot_max_ms);
        let seen = self.machine(&order, &address.to_string());
        let instance_id = seen.instance_id.clone();
        let spot = order.offer.spot;
        let spot_request_id = spot.then(|| self.ids.ec2("sir"));
        let volumes = self.volumes(&order);
        let facts = self.types.get(&order.offer.instance_type);
        let record = InstanceRecord {
            vcpus: facts.map_or(0, |facts| facts.hardware.vcpus),
            seen,
            subnet_id: order.subnet_id,
            group_ids: order.data.group_ids,
            reservation_id: order.reservation_id,
            launched: now,
            visible_at: after(now, timing.visible_after_ms),
            due: Some(after(now, boot_ms)),
            warned_at: self.warning(spot, now),
            reclaimed_at: None,
            ended: None,
            spot_request_id,
            reason: None,
            volumes,
            capacity_reservation: order.data.reservation_id,
            reservation_preference: order.data.reservation_preference,
            placement_group: order.data.placement_group,
            http_tokens: order.data.http_tokens.unwrap_or_else(|| "optional".to_owned()),
            client_token: order.client_token,
            health: Health::default(),
        };
        self.instances.insert(instance_id.clone(), record);
        self.touch();
        self.announce_state(&instance_id, now);
        Some(instance_id)
    }

    /// When the weather ends a new spot instance.
    fn warning(&mut self, spot: bool, now: Timestamp) -> Option<Timestamp> {
        let mean_ms = self.config.weather.spot_mean_life_ms.filter(|_| spot)?;
        Some(after(now, self.ids.between("interruption", 0, mean_ms.saturating_mul(2))))
    }

    fn machine(&mut self, order: &LaunchOrder, private_ip: &str) -> Instance {
        let facts = self.types.get(&order.offer.instance_type);
        let memory = facts.map_or(0, |facts| facts.hardware.memory_mib) * 1024 * 1024;
        let seen_memory = memory / 1000 * (1000 - HIDDEN_MEMORY_PERMILLE);
        Instance {
            instance_type: order.offer.instance_type.clone(),
            zone: order.offer.zone.clone(),
            zone_id: self.zone_id(&order.offer.zone),
            arch: facts.map_or("amd64", |facts| facts.hardware.arch.as_str()).to_owned(),
            spot: order.offer.spot,
            state: InstanceState::Pending,
            private_dns_name: self.dns_name(private_ip),
            private_ip: private_ip.to_owned(),
            image_id: order.image_id.clone(),
            user_data: order.data.user_data.clone(),
            instance_profile: order.data.profile_name.clone(),
            tags: order.tags.clone(),
            cpu_millis: facts.map_or(0, |facts| i64::from(facts.hardware.vcpus) * 1000),
            memory_bytes: i64::try_from(seen_memory).unwrap_or(i64::MAX),
            eni_max_pods: facts.map_or(0, |facts| facts.eni_max_pods()),
            instance_id: self.ids.ec2("i"),
        }
    }

    fn dns_name(&self, private_ip: &str) -> String {
        let host = format!("ip-{}", private_ip.replace('.', "-"));
        match self.config.name.as_str() {
            "us-east-1" => format!("{host}.ec2.internal"),
            region => format!("{host}.{region}.compute.internal"),
        }
    }

    fn volumes(&mut self, order: &LaunchOrder) -> Vec<(String, String, Tags)> {
        let mut devices: Vec<String> =
            order.data.volumes.iter().map(|(device, _)| device.clone()).collect();
        if devices.is_empty() {
            devices.push("/dev/xvda".to_owned());
        }
        devices
            .into_iter()
            .map(|device| (device, self.ids.ec2("vol"), order.volume_tags.clone()))
            .collect()
    }
}
