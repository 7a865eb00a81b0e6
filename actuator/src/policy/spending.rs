//! How much a cluster has, and how fast it gets and ends it.
//!
//! Invariant: what is under way counts as if it were there, at the dearest price that it may come
//! to.

use std::collections::{BTreeMap, VecDeque};

use longshore_proto::types::v1::{CapacityType, Launch};

use super::{Denied, Dollars, Limits, among};
use crate::catalogue::Prices;
use crate::cloud::{Instance, TAG_CLUSTER};
use crate::inventory::Inventory;
use crate::ledger::{Book, LaunchRecord, Phase};

/// The time over which rates count, in milliseconds.
const MINUTE_MS: i64 = 60_000;

/// What a cluster has at present, and what is under way for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fleet {
    /// Nodes.
    pub nodes: usize,
    /// What they cost, in millionths of a dollar an hour.
    pub micro_usd_per_hour: i64,
}

impl Fleet {
    /// What the ledger says of a cluster. What other autoscalers launched and nobody has claimed
    /// since is not in it.
    #[must_use]
    pub fn of(book: &Book, cluster: &str, prices: &Prices, running: &Running) -> Self {
        let living = book.launches.values().filter(|record| {
            record.cluster_id == cluster && (record.living() || record.phase() == Phase::Pending)
        });
        let cost = |record: &LaunchRecord| match running.0.get(&record.instance_id) {
            Some(price) => *price,
            None => record.launch.as_ref().map_or(0, |launch| dearest(launch, prices)),
        };
        living.fold(Self::default(), |fleet, record| fleet.with(cost(record)))
    }

    const fn with(self, micro_usd_per_hour: i64) -> Self {
        Self {
            nodes: self.nodes + 1,
            micro_usd_per_hour: self.micro_usd_per_hour.saturating_add(micro_usd_per_hour),
        }
    }
}

/// What instances cost, in millionths of a dollar an hour, by their ids.
#[derive(Clone, Debug, Default)]
pub struct Running(BTreeMap<String, i64>);

impl Running {
    /// Those of a cluster.
    #[must_use]
    pub fn of(inventory: &Inventory, cluster: &str, prices: &Prices) -> Self {
        let own = inventory.iter().filter(|instance| instance.tag(TAG_CLUSTER) == cluster);
        let cost = |instance: &Instance| {
            price(prices, &instance.instance_type, &instance.zone, instance.capacity_type)
        };
        Self(own.map(|instance| (instance.instance_id.clone(), cost(instance))).collect())
    }
}

/// What a launch costs an hour at the most.
fn dearest(launch: &Launch, prices: &Prices) -> i64 {
    let each = launch.candidates.iter().map(|candidate| {
        price(prices, &candidate.instance_type, &candidate.zone, candidate.capacity_type())
    });
    each.max().unwrap_or(0)
}

/// A price by our own list, never by what a plan says; nothing where the list has none, since
/// nothing is bought then either.
fn price(prices: &Prices, instance_type: &str, zone: &str, kind: CapacityType) -> i64 {
    prices.micro_usd_per_hour(instance_type, zone, kind).unwrap_or(0)
}

impl Limits {
    /// Checks a launch, and adds it to what the cluster has.
    ///
    /// # Errors
    /// When the cluster may not have it.
    pub fn launch(
        &self,
        cluster: &str,
        launch: &Launch,
        has: &mut Fleet,
        prices: &Prices,
    ) -> Result<(), Denied> {
        for candidate in &launch.candidates {
            let family = candidate.instance_type.split('.').next().unwrap_or_default();
            among(self.families.as_ref(), ("instance family", family), cluster)?;
        }
        let would = has.with(dearest(launch, prices));
        let much = |what, would: String, most: String| {
            Err(Denied::Much { what, cluster: cluster.to_owned(), would, most })
        };
        if let Some(most) = self.nodes.filter(|most| would.nodes > *most) {
            return much("nodes", would.nodes.to_string(), most.to_string());
        }
        let cost = Dollars { micro: would.micro_usd_per_hour };
        if let Some(most) = self.dollars_per_hour.filter(|most| cost > *most) {
            return much("of nodes an hour", cost.to_string(), most.to_string());
        }
        *has = would;
        Ok(())
    }
}

/// When launches and terminations of each cluster were let through, of late. A new leader begins
/// anew: rates are against haste, not against amounts.
#[derive(Debug, Default)]
pub struct Rates {
    launches: BTreeMap<String, VecDeque<i64>>,
    terminations: BTreeMap<String, VecDeque<i64>>,
}

impl Rates {
    /// Lets a launch of a cluster through.
    ///
    /// # Errors
    /// When there were too many within a minute.
    pub fn launch(&mut self, limits: &Limits, cluster: &str, now_ms: i64) -> Result<(), Denied> {
        let what = "launches within a minute";
        pass(&mut self.launches, limits.launches_per_minute, (what, cluster), now_ms)
    }

    /// Lets a termination of a cluster through.
    ///
    /// # Errors
    /// When there were too many within a minute.
    pub fn terminate(&mut self, limits: &Limits, cluster: &str, now_ms: i64) -> Result<(), Denied> {
        let what = "terminations within a minute";
        pass(&mut self.terminations, limits.terminations_per_minute, (what, cluster), now_ms)
    }
}

fn pass(
    passed: &mut BTreeMap<String, VecDeque<i64>>,
    most: Option<usize>,
    (what, cluster): (&'static str, &str),
    now_ms: i64,
) -> Result<(), Denied> {
    let Some(most) = most else { return Ok(()) };
    let times = passed.entry(cluster.to_owned()).or_default();
    while times.front().is_some_and(|time| time.saturating_add(MINUTE_MS) <= now_ms) {
        times.pop_front();
    }
    if times.len() >= most {
        let (would, most) = ((times.len() + 1).to_string(), most.to_string());
        return Err(Denied::Much { what, cluster: cluster.to_owned(), would, most });
    }
    times.push_back(now_ms);
    Ok(())
}
