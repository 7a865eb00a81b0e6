//! The closed list of offerings for one node, at planning time and again after a restart.
//!
//! Invariant: least cost first, ties by name; every entry carries the requests and meets the
//! requirements.

use std::collections::BTreeSet;

use crate::answer::Candidate;
use crate::offers::choice::Choices;
use crate::offers::market::{node_labels, offering_admits};
use crate::offers::objective::Objective;
use crate::offers::priced::min_values;
use crate::vocabulary::catalogue::sold;
use crate::vocabulary::catalogue::{Catalogue, InstanceType, Offering};
use crate::vocabulary::ids::Zone;
use crate::vocabulary::labels::is_well_known;
use crate::vocabulary::requirements::Requirements;
use crate::vocabulary::resources::Resources;

/// What a node is wanted for.
#[derive(Clone, Copy, Debug)]
pub struct LaunchQuery<'a> {
    /// What the instance must satisfy.
    pub requirements: &'a Requirements,
    /// What it must carry, DaemonSets included.
    pub requests: &'a Resources,
    /// Zones allowed; none means all.
    pub zones: Option<&'a BTreeSet<Zone>>,
    /// Highest price of a candidate; none means no ceiling.
    pub max_price_micro_usd_per_hour: Option<i64>,
    /// What costs decide the order.
    pub objective: &'a Objective,
}

/// The acceptable offerings for a claim that exists already, least cost first, at most
/// [`CANDIDATES_MAX`](crate::offers::CANDIDATES_MAX). Empty when nothing on offer is acceptable any
/// more.
#[must_use]
pub fn launch_candidates(query: LaunchQuery<'_>, catalogue: &Catalogue) -> Vec<Candidate> {
    let mut found = Vec::new();
    for instance in catalogue.types.values().filter(|i| query.requests.fits_in(&i.allocatable())) {
        let offerings = instance.offerings.iter().filter(|o| query.accepts(instance, o));
        found.extend(offerings.map(|offering| candidate(query.objective, instance, offering)));
    }
    found.sort_unstable();
    query.cut(&mut found, catalogue);
    found
}

impl LaunchQuery<'_> {
    fn accepts(&self, instance: &InstanceType, offering: &Offering) -> bool {
        offering.available
            && offering_admits(offering, self.requirements)
            && self.zones.is_none_or(|zones| zones.contains(&offering.zone))
            && self
                .max_price_micro_usd_per_hour
                .is_none_or(|max| offering.price_micro_usd_per_hour <= max)
            && self.describes(instance, offering)
    }

    /// Keeps those of least cost, but as many values of each label as `minValues` asks for.
    fn cut(&self, found: &mut Vec<Candidate>, catalogue: &Catalogue) {
        let value = |at: usize, key: &str| {
            let (instance, offering) = found[at].found(catalogue)?;
            sold::label(instance, offering, key)
        };
        let all: Vec<usize> = (0..found.len()).collect();
        let Some(first) = all.first() else { return };
        let demands: Vec<_> = min_values::demands(self.requirements).collect();
        let choices = Choices { all: &all, label: value, demands: &demands };
        let (chosen, _) = choices.choose(*first, |_| true);
        *found = chosen.into_iter().map(|at| found[at].clone()).collect();
    }

    /// Keys that nothing on offer decides are the claim's own labels and hold by themselves.
    fn describes(&self, instance: &InstanceType, offering: &Offering) -> bool {
        let labels = node_labels(instance, offering);
        self.requirements.iter().all(|(key, wanted)| match labels.get(key) {
            Some(value) => wanted.allows(Some(value)),
            None => wanted.allows_absent() || !is_well_known(key) || is_claims_own(key),
        })
    }
}

/// Well-known keys that are written on the claim rather than found on the instance.
fn is_claims_own(key: &str) -> bool {
    use crate::vocabulary::labels::NODE_POOL;
    use crate::vocabulary::labels::OS;
    use crate::vocabulary::labels::REGION;
    use crate::vocabulary::labels::WINDOWS_BUILD;
    [NODE_POOL, OS, REGION, WINDOWS_BUILD].contains(&key)
}

/// An offering as a candidate.
pub(crate) fn candidate(
    objective: &Objective,
    instance: &InstanceType,
    offering: &Offering,
) -> Candidate {
    Candidate {
        cost_micro_usd_per_hour: objective.cost(instance, offering),
        price_micro_usd_per_hour: offering.price_micro_usd_per_hour,
        instance_type: instance.name.clone(),
        zone: offering.zone.clone(),
        zone_id: offering.zone_id.clone(),
        capacity_type: offering.capacity_type,
        reservation: offering.reservation_id().cloned(),
    }
}
