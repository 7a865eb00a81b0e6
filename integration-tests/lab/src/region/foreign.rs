//! Instances that somebody else launched, before any caller of the region was there.
//!
//! Invariant: they differ from others in nothing but that no call made them.

use super::config::Tags;
use super::handle::RegionHandle;
use super::offer::Offer;
use super::world::{LaunchOrder, TemplateData};

/// An instance of somebody else's.
#[derive(Clone, Debug)]
pub struct Foreign {
    /// What it is.
    pub offer: Offer,
    /// Where it is attached.
    pub subnet_id: String,
    /// Its security groups.
    pub group_ids: Vec<String>,
    /// What it booted.
    pub image_id: String,
    /// What its operating system read.
    pub user_data: Vec<u8>,
    /// Its tags.
    pub tags: Tags,
}

impl RegionHandle {
    /// Launches it; returns its id, or `None` when the subnet has no address left.
    pub fn launch_foreign(&self, foreign: Foreign) -> Option<String> {
        self.shared.with(|world, now| {
            let data = TemplateData {
                user_data: foreign.user_data,
                group_ids: foreign.group_ids,
                ..TemplateData::default()
            };
            let order = LaunchOrder {
                offer: foreign.offer,
                subnet_id: foreign.subnet_id,
                image_id: foreign.image_id,
                data,
                tags: foreign.tags,
                volume_tags: Tags::new(),
                reservation_id: world.ids.ec2("r"),
                client_token: None,
            };
            world.launch(order, now)
        })
    }
}
