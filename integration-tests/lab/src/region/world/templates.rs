//! Launch templates.
//!
//! Invariant: a version never changes; the newest is `$Latest`.

use jiff::Timestamp;

use super::super::config::Tags;

/// A launch template.
#[derive(Clone, Debug)]
pub struct Template {
    /// Id, `lt-…`.
    pub id: String,
    /// Name, unique in the region.
    pub name: String,
    /// Creation time.
    pub created: Timestamp,
    /// ARN of the creator.
    pub created_by: String,
    /// Tags of the template itself.
    pub tags: Tags,
    /// Versions, the first being number 1.
    pub versions: Vec<TemplateData>,
    /// Client token that made it.
    pub client_token: Option<String>,
}

/// What a version says of the instances launched from it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TemplateData {
    /// Image, when the template names one.
    pub image_id: Option<String>,
    /// Type, when the template names one.
    pub instance_type: Option<String>,
    /// User data after base64 decoding.
    pub user_data: Vec<u8>,
    /// Instance profile by name.
    pub profile_name: Option<String>,
    /// Security groups of the primary interface.
    pub group_ids: Vec<String>,
    /// Tags for resources made from it, by kind (`instance`, `volume`, …).
    pub tags: Vec<(String, Tags)>,
    /// Volumes: device name and size in GiB.
    pub volumes: Vec<(String, u32)>,
    /// IMDSv2 tokens: `required` or `optional`.
    pub http_tokens: Option<String>,
    /// Capacity reservation aimed at.
    pub reservation_id: Option<String>,
    /// Which capacity reservations are used, in EC2's words.
    pub reservation_preference: Option<String>,
    /// Detailed monitoring.
    pub monitoring: bool,
    /// Placement group by name or id.
    pub placement_group: Option<String>,
}

impl Template {
    /// Number and data of a version: a number, `$Latest`, `$Default`, or nothing for the default.
    pub fn version(&self, wanted: Option<&str>) -> Option<(usize, &TemplateData)> {
        let number = match wanted {
            Some("$Latest") => self.versions.len(),
            None | Some("$Default") => 1,
            Some(number) => number.parse().ok()?,
        };
        let data = self.versions.get(number.checked_sub(1)?)?;
        Some((number, data))
    }
}
