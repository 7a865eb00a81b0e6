//! What can be bought: every available offering of every pool, with the labels its node would have.
//!
//! Invariant: every offer is concrete. Label keys that a pool leaves open are settled by flavours,
//! one for each combination of values that some shape asks for, so no label is decided by chance.

use std::collections::BTreeSet;

use crate::planted;
use crate::question::PlanInput;
use crate::reason::Obstacle;
pub(crate) use crate::vocabulary::catalogue::sold::{
    OFFERING_KEYS, node_labels, offering_label, owned_labels, type_label,
};
use crate::vocabulary::catalogue::{Catalogue, InstanceType, Offering};
use crate::vocabulary::labels::{self, Labels};
use crate::vocabulary::pool::{NodePool, REPLICAS_MAX};
use crate::vocabulary::requirements::Requirements;
use crate::vocabulary::requirements::requirement::Requirement;
use crate::world::shape::PodShape;

/// Most flavours of one pool; further combinations stay unplaced with their reason.
pub(crate) const FLAVOURS_MAX: usize = 64;

/// All pools with what they can buy, heaviest weight first, then the later in the alphabet.
#[derive(Debug)]
pub(crate) struct Market<'a> {
    /// Pools.
    pub(crate) pools: Vec<PoolOffers<'a>>,
    /// Number of weight tiers.
    pub(crate) tiers: usize,
}

/// One pool in the market.
#[derive(Debug)]
pub(crate) struct PoolOffers<'a> {
    /// The pool.
    pub(crate) pool: &'a NodePool,
    /// Rank of its weight, heaviest first.
    pub(crate) tier: usize,
    /// Why it sells nothing at all, when so.
    pub(crate) closed: Option<Obstacle>,
    /// Labels that its nodes may have apart from those of type and offering; the first is the
    /// default.
    pub(crate) flavours: Vec<Labels>,
    /// Types that its requirements allow, in order of name.
    pub(crate) types: Vec<&'a InstanceType>,
    /// All types of its catalogue, for explanations.
    pub(crate) all_types: Vec<&'a InstanceType>,
    /// Label keys that instance types decide.
    type_keys: BTreeSet<&'a str>,
    /// Requirements and labels of the pool in one.
    pub(crate) requirements: Requirements,
    /// True when shapes ask for more flavours than are kept.
    pub(crate) overflows: bool,
}

/// Something to buy: indexes into its pool's offers, and the offering.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Offer<'a> {
    /// Index of its pool's offers.
    pub(crate) pool_offers: usize,
    /// Index of the flavour.
    pub(crate) flavour: usize,
    /// Index of the type.
    pub(crate) kind: usize,
    /// The offering.
    pub(crate) offering: &'a Offering,
}

impl<'a> Market<'a> {
    /// Opens the market for the shapes that may buy.
    pub(crate) fn open(input: &'a PlanInput, shapes: &[&PodShape]) -> Self {
        let mut pools: Vec<&NodePool> = input.world.pools.values().map(AsRef::as_ref).collect();
        pools.sort_by(|a, b| b.weight.cmp(&a.weight).then(b.name.cmp(&a.name)));
        let weights: BTreeSet<i32> = pools.iter().map(|pool| pool.weight).collect();
        let tier = |pool: &NodePool| weights.iter().rev().take_while(|w| **w > pool.weight).count();
        let pool_offers = |pool: &&'a NodePool| {
            let catalogue = input.catalogue_of(pool);
            PoolOffers::new(pool, tier(pool), catalogue, shapes)
        };
        Self { pools: pools.iter().map(pool_offers).collect(), tiers: weights.len() }
    }

    /// Everything that can be bought now.
    pub(crate) fn offers(&self) -> Vec<Offer<'a>> {
        let mut offers = Vec::new();
        for (pool_offers, shop) in self.pools.iter().enumerate().filter(|(_, s)| s.closed.is_none())
        {
            for flavour in 0..shop.flavours.len() {
                for (kind, instance) in shop.types.iter().enumerate() {
                    let sold = instance.offerings.iter().filter(|o| o.available && shop.sells(o));
                    offers.extend(sold.map(|offering| Offer {
                        pool_offers,
                        flavour,
                        kind,
                        offering,
                    }));
                }
            }
        }
        offers
    }
}

impl<'a> PoolOffers<'a> {
    fn new(
        pool: &'a NodePool,
        tier: usize,
        catalogue: Option<&'a Catalogue>,
        shapes: &[&PodShape],
    ) -> Self {
        let mut requirements = pool.offered();
        // Each of its nodes has these once it may take pods.
        for key in [labels::REGISTERED, labels::INITIALIZED] {
            requirements.add(key, Requirement::equals("true"));
        }
        let mut pool_offers = Self {
            pool,
            tier,
            closed: closed(pool, catalogue, &requirements).or_else(|| pool.replicas.map(kept)),
            flavours: Vec::new(),
            types: Vec::new(),
            all_types: Vec::new(),
            type_keys: BTreeSet::from([labels::INSTANCE_TYPE]),
            requirements,
            overflows: false,
        };
        if let Some(catalogue) = catalogue {
            let types = catalogue.types.values();
            pool_offers.add_type_keys(types.clone());
            pool_offers.all_types = types.clone().collect();
            pool_offers.types =
                types.filter(|t| pool_offers.type_admits(t, &pool_offers.requirements)).collect();
        }
        pool_offers.add_flavours(shapes);
        pool_offers
    }

    /// Adds the keys of the types' labels. Most types have the same: those are looked at once.
    fn add_type_keys(&mut self, types: impl Iterator<Item = &'a InstanceType>) {
        let mut before: Option<&Labels> = None;
        for InstanceType { labels, .. } in types {
            if before.is_none_or(|before| !before.keys().eq(labels.keys())) {
                self.type_keys.extend(labels.keys().map(String::as_str));
            }
            before = Some(labels);
        }
    }

    /// True when the pool may buy this offering now.
    pub(crate) fn sells(&self, offering: &Offering) -> bool {
        self.allows(offering)
            && offering.reservation.as_ref().is_none_or(|reservation| reservation.remaining > 0)
    }

    /// True when the pool may buy this offering while there is any left.
    pub(super) fn allows(&self, offering: &Offering) -> bool {
        let zones = self.pool.zones.as_ref();
        zones.is_none_or(|zones| zones.contains(&offering.zone))
            && offering_admits(offering, &self.requirements)
    }

    /// True when the type's labels meet the requirements that types decide.
    pub(crate) fn type_admits(&self, instance: &InstanceType, wanted: &Requirements) -> bool {
        self.type_conflict(instance, wanted).is_none()
    }

    /// The first requirement that the type does not meet, among those that types decide.
    pub(crate) fn type_conflict<'w>(
        &self,
        instance: &InstanceType,
        wanted: &'w Requirements,
    ) -> Option<(&'w str, &'w Requirement)> {
        wanted
            .iter()
            .filter(|(key, _)| self.type_keys.contains(key))
            .find(|(key, wanted)| !wanted.allows(type_label(instance, key)))
    }

    /// True when a flavour meets the requirements that neither type nor offering decides.
    pub(crate) fn flavour_admits(&self, flavour: usize, wanted: &Requirements) -> bool {
        let labels = &self.flavours[flavour];
        self.open_keys(wanted).all(|(key, wanted)| match labels.get(key) {
            Some(value) => wanted.allows(Some(value)),
            None => wanted.allows_absent(),
        })
    }

    /// True when the requirements that neither type nor offering decides are met by every node of
    /// the pool, whatever is made of the labels that it leaves open.
    pub(crate) fn certainly_admits(&self, wanted: &Requirements) -> bool {
        self.open_keys(wanted).all(|(key, wanted)| match self.requirements.get(key) {
            Some(offered) => wanted.covers(offered),
            None => wanted.allows_absent(),
        })
    }

    /// The first requirement on a label that neither pool nor types nor offerings define.
    pub(crate) fn undefined<'w>(
        &self,
        wanted: &'w Requirements,
    ) -> Option<(&'w str, &'w Requirement)> {
        let missing = |(key, wanted): &(&str, &Requirement)| {
            self.requirements.get(key).is_none() && !wanted.allows_absent()
        };
        self.open_keys(wanted).find(missing)
    }

    /// The label of an offer for a key.
    pub(crate) fn label<'l>(&'l self, offer: &Offer<'l>, key: &str) -> Option<&'l str> {
        if OFFERING_KEYS.contains(&key) {
            return offering_label(offer.offering, key);
        }
        let instance = self.types[offer.kind];
        if self.type_keys.contains(key) {
            return type_label(instance, key);
        }
        self.flavours[offer.flavour].get(key).map(String::as_str)
    }

    fn open_keys<'r>(
        &self,
        requirements: &'r Requirements,
    ) -> impl Iterator<Item = (&'r str, &'r Requirement)> {
        let decided = |key: &str| OFFERING_KEYS.contains(&key) || self.type_keys.contains(key);
        requirements.iter().filter(move |(key, _)| !decided(key))
    }

    /// The default flavour, and one for each combination of open labels that a shape asks for.
    fn add_flavours(&mut self, shapes: &[&PodShape]) {
        self.flavours = vec![self.flavour(&Requirements::new())];
        for shape in shapes {
            for wanted in shape.node_alternatives() {
                if wanted.conflict_with_offer(&self.requirements).is_none() {
                    self.add_flavour(&wanted);
                    self.add_domains(shape, wanted);
                }
            }
        }
    }

    fn add_flavour(&mut self, wanted: &Requirements) {
        let flavour = self.flavour(wanted);
        if self.flavours.contains(&flavour) {
            return;
        }
        if self.flavours.len() < FLAVOURS_MAX {
            self.flavours.push(flavour);
        } else {
            self.overflows = true;
        }
    }

    /// A flavour for each value that the pool lists of the labels by which a shape tells places
    /// apart.
    fn add_domains(&mut self, shape: &PodShape, wanted: Requirements) {
        let mut combinations = vec![wanted];
        for key in shape.topology_keys() {
            let open = self.open_keys(&self.requirements).any(|(open, _)| open == key);
            let Some(listed) = self.requirements.get(key).and_then(Requirement::listed) else {
                continue;
            };
            if !open || listed.len() < 2 {
                continue;
            }
            let with = |wanted: &Requirements, value: &String| {
                let mut wanted = wanted.clone();
                wanted.add(key, Requirement::equals(value));
                wanted
            };
            let each = combinations.iter().flat_map(|w| listed.iter().map(move |v| with(w, v)));
            let each = each.filter(|wanted| !wanted.is_contradictory());
            combinations = each.take(FLAVOURS_MAX + 1).collect();
        }
        combinations.iter().for_each(|wanted| self.add_flavour(wanted));
    }

    /// Labels for nodes whose pods want this of the open keys.
    fn flavour(&self, wanted: &Requirements) -> Labels {
        let mut labels = Labels::new();
        for (key, offered) in self.open_keys(&self.requirements) {
            let asked = wanted.get(key);
            let agreed = asked.map_or_else(|| offered.clone(), |asked| offered.intersect(asked));
            let settle = agreed.listed().is_some() || !agreed.allows_absent();
            if let Some(value) = settle.then(|| agreed.example()).flatten() {
                labels.insert(key.to_owned(), value);
            }
        }
        labels.insert(labels::REGISTERED.to_owned(), "true".to_owned());
        labels.insert(labels::INITIALIZED.to_owned(), "true".to_owned());
        labels
    }
}

/// Labels of a flavour that are written to the node.
pub(crate) fn written_labels(flavour: &Labels) -> Labels {
    let simulated = [labels::REGISTERED, labels::INITIALIZED];
    let kept = flavour.iter().filter(|(key, _)| !simulated.contains(&key.as_str()));
    kept.map(|(key, value)| (key.clone(), value.clone())).collect()
}

/// True when the offering meets the requirements that offerings decide.
pub(crate) fn offering_admits(offering: &Offering, wanted: &Requirements) -> bool {
    OFFERING_KEYS.iter().all(|key| {
        wanted.get(key).is_none_or(|wanted| wanted.allows(offering_label(offering, key)))
    })
}

/// What a pool with replicas says to pods.
fn kept(replicas: i64) -> Obstacle {
    if replicas <= REPLICAS_MAX || planted::is("S27") {
        return Obstacle::FixedReplicas;
    }
    Obstacle::TooManyReplicas { wanted: replicas, most: REPLICAS_MAX }
}

fn closed(
    pool: &NodePool,
    catalogue: Option<&Catalogue>,
    requirements: &Requirements,
) -> Option<Obstacle> {
    match (&pool.not_ready, catalogue) {
        (Some(why), _) => Some(Obstacle::PoolNotReady { why: why.clone() }),
        (None, None) => Some(Obstacle::NoCatalogue),
        (None, Some(_)) => requirements.is_contradictory().then(|| Obstacle::PoolNotReady {
            why: "its own requirements and labels contradict each other; remove one of them"
                .to_owned(),
        }),
    }
}
