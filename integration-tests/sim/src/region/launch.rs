//! CreateFleet of type instant, and CreateTags.
//!
//! Invariant: a token buys once, whatever is asked for with it later. A fleet gets all that it asks
//! for or less, and says of some offerings why.

use std::collections::{BTreeMap, VecDeque};

use longshore_actuator::cloud::{FleetInstance, FleetOffer, FleetOutcome, Instance, Order};
use longshore_proto::capacity::v1::InstancePhase;

use super::{Happening, Model, Record, Refusal, announce};

/// From launch to running, shortest and longest, in milliseconds.
const BOOT_MS: (u64, u64) = (18_000, 35_000);
/// How long a new instance stays invisible, at most, in milliseconds.
const INVISIBLE_MS: u64 = 5_000;
/// The same while EC2 is slow to show what it has launched, in milliseconds.
const SLOW_MS: u64 = 50_000;
/// Fleets of several instances that get fewer, in percent.
const PARTIAL_PERCENT: u64 = 10;
/// Offerings that have fewer left than such a fleet wants, in percent.
const DRY_PERCENT: u64 = 10;

impl Model {
    /// Buys instances, as CreateFleet of type instant with these overrides would.
    pub fn launch(&mut self, order: &Order, now_ms: i64) -> Result<FleetOutcome, Refusal> {
        self.tell(&Happening::Asked(order.client_token.clone()));
        if let Some((before, outcome)) = self.tokens.get(&order.client_token) {
            let same = before == order;
            return if same { Ok(outcome.clone()) } else { Err(Refusal::TokenReused) };
        }
        let missing = order.offers.iter().find(|at| !self.templates.contains_key(&at.template));
        if missing.is_some() || self.templates_missing {
            return Err(Refusal::TemplateMissing);
        }
        let mut offers: VecDeque<(String, FleetOffer)> = order
            .offers
            .iter()
            .flat_map(|at| at.offers.iter().map(|offer| (at.template.clone(), offer.clone())))
            .collect();
        offers.make_contiguous().sort_by_key(|(_, offer)| offer.rank);
        let mut outcome = FleetOutcome { request_id: self.id("req"), ..FleetOutcome::default() };
        if self.random.chance(self.failing_percent) {
            // CreateFleet answers, and says of each offer that it could not be tried.
            outcome.shortages.extend(offers.drain(..).map(|(_, offer)| announce::untried(&offer)));
        }
        let mut left = self.at_most(order.count, PARTIAL_PERCENT).max(1);
        while let Some((template, offer)) = offers.pop_front().filter(|_| left > 0) {
            if !self.knows_profile(&template, now_ms) {
                outcome.shortages.push(announce::profile_unknown(&offer));
                continue;
            }
            if self.sold_out.contains(&(offer.instance_type.clone(), offer.zone.clone())) {
                outcome.shortages.push(announce::shortage(&offer));
                continue;
            }
            let here = left.min(self.at_most(order.count, DRY_PERCENT));
            let bought = (0..here).map(|_| self.buy(order, &template, &offer, now_ms));
            outcome.bought.extend(bought);
            left -= here;
            let got = u32::try_from(outcome.bought.len()).unwrap_or(u32::MAX);
            if left > 0 || got < order.count {
                outcome.shortages.push(announce::shortage(&offer));
            }
        }
        self.tokens.insert(order.client_token.clone(), (order.clone(), outcome.clone()));
        Ok(outcome)
    }

    /// How many of so many are to be had; all when it is one.
    fn at_most(&mut self, count: u32, fewer_percent: u64) -> u32 {
        if count < 2 || !self.random.chance(fewer_percent) {
            return count;
        }
        u32::try_from(self.random.between(0, u64::from(count) - 1)).unwrap_or(count)
    }

    fn buy(
        &mut self,
        order: &Order,
        template: &str,
        offer: &FleetOffer,
        now_ms: i64,
    ) -> FleetInstance {
        let instance_id = self.id("i");
        let boot = self.random.between(BOOT_MS.0, BOOT_MS.1);
        let invisible = self.random.between(0, if self.slow { SLOW_MS } else { INVISIBLE_MS });
        let (template, _) = self.templates.get(template).cloned().unwrap_or_else(announce::nothing);
        let number = self.instances.len() + self.tokens.len();
        let dns_name = format!("ip-10-{}-{}.internal", self.config.account_id, number);
        let hardware = self.types.get(&offer.instance_type);
        let zones = self.config.zones.iter();
        let zone_id = zones.clone().find(|zone| zone.name == offer.zone).map(|zone| &zone.id);
        let seen = Instance {
            phase: InstancePhase::Pending,
            instance_type: offer.instance_type.clone(),
            zone: offer.zone.clone(),
            zone_id: zone_id.cloned().unwrap_or_default(),
            capacity_type: order.capacity_type,
            private_dns_name: dns_name.clone(),
            image_id: template.image_id.clone(),
            subnet_id: offer.subnet_id.clone(),
            security_group_ids: template.security_group_ids.clone(),
            launch_ms: now_ms,
            tags: order.tags.clone(),
            ..Instance::unseen(&instance_id)
        };
        let later = |ms: u64| now_ms + i64::try_from(ms).unwrap_or_default();
        let record = Record {
            seen,
            visible_ms: later(invisible),
            due_ms: Some(later(boot)),
            reclaimed_ms: None,
            announced_ms: None,
            template,
            token: order.client_token.clone(),
            dns_name,
            cpu_millis: hardware.map_or(0, |found| i64::from(found.vcpus) * 1000),
        };
        if self.random.chance(self.dud_percent) {
            self.never_joins.insert(instance_id.clone());
        }
        self.tell(&Happening::Launched(Box::new(record.clone())));
        self.instances.insert(instance_id.clone(), record);
        let (instance_type, zone) = (offer.instance_type.clone(), offer.zone.clone());
        FleetInstance { instance_id, instance_type, zone }
    }

    /// Adds tags to an instance; false when there is none to be seen.
    pub fn tag(&mut self, instance_id: &str, tags: &BTreeMap<String, String>, now_ms: i64) -> bool {
        let seen = self.instances.get_mut(instance_id).filter(|found| found.visible_ms <= now_ms);
        seen.map(|found| found.seen.tags.extend(tags.clone())).is_some()
    }
}
