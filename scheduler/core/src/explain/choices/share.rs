//! What a pod takes of its node, and its part of the price.
//!
//! Invariant: the parts of all pods on a node add up to its price, but for what rounding loses.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use crate::answer::Target;
use crate::explain::choices::{Neighbour, ResourceShare, Teller};
use crate::vocabulary::ids::PodUid;
use crate::vocabulary::resources::Resources;

/// What is on a node once the plan has been carried out.
pub(super) struct There {
    /// Pods by UID; those that belong to the node are left out.
    pub(super) pods: Vec<PodUid>,
    /// What the node has for pods; nothing when it is not known.
    pub(super) allocatable: Resources,
    /// Its price, when that is known.
    pub(super) price: Option<i64>,
}

/// Shares in what is requested, the largest first.
pub(super) fn of_resources(requests: &Resources, allocatable: &Resources) -> Vec<ResourceShare> {
    let share = |name: &str| ResourceShare {
        resource: name.to_owned(),
        requested: requests.get(name),
        allocatable: allocatable.get(name),
    };
    let known = requests.names().filter(|name| allocatable.get(name) > 0);
    let mut shares: Vec<ResourceShare> = known.map(share).collect();
    shares.sort_by_key(|share| Reverse(share.ppm()));
    shares
}

impl ResourceShare {
    /// The share in millionths.
    #[must_use]
    pub fn ppm(&self) -> i64 {
        let ppm = i128::from(self.requested) * 1_000_000 / i128::from(self.allocatable.max(1));
        i64::try_from(ppm).unwrap_or(i64::MAX)
    }
}

impl Teller<'_, '_, '_> {
    /// What is on a node once the plan has been carried out.
    pub(super) fn there(&self, target: &Target) -> There {
        let world = &self.input().world;
        if let Target::New(at) = target {
            let node = &self.plan.launches[*at];
            let cheapest = node.candidates.first();
            let catalogue = world.pools.get(&node.pool).and_then(|p| self.input().catalogue_of(p));
            let kind = catalogue
                .zip(cheapest)
                .and_then(|(catalogue, cheapest)| catalogue.types.get(&cheapest.instance_type));
            return There {
                pods: node.pods.clone(),
                allocatable: kind.map(|kind| kind.allocatable()).unwrap_or_default(),
                price: cheapest.map(|_| node.price()),
            };
        }
        let moved: BTreeSet<&PodUid> = self.plan.places().map(|placement| &placement.pod).collect();
        let come = self.plan.places().filter(|placement| placement.target == *target);
        let mut pods: BTreeSet<PodUid> = come.map(|placement| placement.pod.clone()).collect();
        if let Target::Node(name) = target {
            let stay = world.pods_on(name).filter(|pod| !moved.contains(&pod.uid));
            pods.extend(stay.map(|pod| pod.uid.clone()));
        }
        let existing = self.model.existing_nodes.iter().find(|existing| existing.target == *target);
        let of_claim =
            existing.and_then(|existing| existing.claim.as_ref()).map(|c| c.allocatable.clone());
        let of_node =
            existing.and_then(|existing| existing.node).map(|node| node.allocatable.clone());
        let allocatable = of_node.or(of_claim).unwrap_or_default();
        let pods = pods.into_iter().collect();
        There { pods, allocatable, price: existing.and_then(|existing| existing.price) }
    }

    /// Shapes of pods on a node, DaemonSet and mirror pods left out.
    fn shapes<'p>(&self, pods: &'p [PodUid]) -> impl Iterator<Item = (&'p PodUid, usize)> {
        let of = |uid| self.input().world.pods.get(uid).and_then(|pod| self.model.shape_of(pod));
        let known = pods.iter().filter_map(move |uid| Some((uid, of(uid)?)));
        known.filter(|(_, shape)| !self.model.stays_with_node(*shape))
    }

    /// Pods on a node that were not asked about.
    pub(super) fn company(&self, there: &There) -> Vec<Neighbour> {
        let mut owners: BTreeMap<(&str, &str), i64> = BTreeMap::new();
        for (uid, shape) in self.shapes(&there.pods) {
            let kind = self.model.shapes[shape];
            if !self.asked.means(uid, self.input()) {
                *owners.entry((&kind.namespace, kind.workload())).or_default() += 1;
            }
        }
        let company = |((namespace, owner), pods): ((&str, &str), i64)| Neighbour {
            namespace: namespace.to_owned(),
            owner: owner.to_owned(),
            pods,
        };
        owners.into_iter().map(company).collect()
    }

    /// One pod's part of the price of a node: its largest share among the largest shares of all.
    pub(super) fn part(&self, price: i64, there: &There) -> i64 {
        let weight = |shape: usize| {
            let requests = &self.model.shapes[shape].requests;
            let largest = of_resources(requests, &there.allocatable);
            largest.first().map_or(0, |share| i128::from(share.ppm()))
        };
        let all: i128 = self.shapes(&there.pods).map(|(_, shape)| weight(shape)).sum();
        let part = (i128::from(price) * weight(self.shape)).checked_div(all).unwrap_or(0);
        i64::try_from(part).unwrap_or(price)
    }
}
