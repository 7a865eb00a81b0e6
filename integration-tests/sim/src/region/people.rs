//! Instance profiles, instances that people make, and what is refused.
//!
//! Invariant: EC2 learns of a new profile some seconds after IAM has made it.

use longshore_actuator::cloud::TAG_CLAIM;

use super::{Model, Record};

/// From IAM to EC2, shortest and longest, in milliseconds.
const LEARNED_MS: (u64, u64) = (2_000, 25_000);

impl Model {
    /// Whether IAM has a profile.
    pub fn has_profile(&self, name: &str) -> bool {
        self.profiles.contains_key(name)
    }

    /// Makes a profile.
    pub fn make_profile(&mut self, name: &str, now_ms: i64) {
        let after = self.random.between(LEARNED_MS.0, LEARNED_MS.1);
        let learned_ms = now_ms + i64::try_from(after).unwrap_or_default();
        self.profiles.entry(name.to_owned()).or_insert(learned_ms);
    }

    /// Whether EC2 knows the profile of a template.
    pub(super) fn knows_profile(&self, template: &str, now_ms: i64) -> bool {
        let name = self.templates.get(template).map(|(found, _)| found.instance_profile.as_str());
        let learned_ms = name.and_then(|name| self.profiles.get(name));
        learned_ms.is_none_or(|learned_ms| *learned_ms <= now_ms)
    }

    /// Launches more like an instance, by hand: with its tags, without a token. The copy's id; none
    /// when the instance does not live, or has no tags any more that would say whose the copy is.
    pub fn copy(&mut self, instance_id: &str, now_ms: i64) -> Option<String> {
        let told = |record: &&Record| record.alive() && !record.seen.tag(TAG_CLAIM).is_empty();
        let original = self.instances.get(instance_id).filter(told)?.clone();
        let copy = self.id("i");
        let mut record = Record { token: String::new(), due_ms: Some(now_ms), ..original };
        record.visible_ms = now_ms;
        record.reclaimed_ms = None;
        record.announced_ms = None;
        record.seen.launch_ms = now_ms;
        record.seen.instance_id.clone_from(&copy);
        record.seen.phase = longshore_proto::capacity::v1::InstancePhase::Pending;
        record.dns_name = format!("{copy}.internal");
        record.seen.private_dns_name.clone_from(&record.dns_name);
        self.never_joins.insert(copy.clone());
        self.instances.insert(copy.clone(), record);
        Some(copy)
    }
}

/// Why nothing was bought at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The token was used with another order.
    TokenReused,
    /// A template does not exist.
    TemplateMissing,
}
