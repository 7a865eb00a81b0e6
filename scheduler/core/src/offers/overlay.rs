//! What overlays make of the catalogues, pool by pool.
//!
//! Invariant: depends on pools, overlays and catalogues alone, so that a caller may keep the answer
//! for as long as these are the same. A pool that no overlay touches has no entry and shares its
//! catalogue.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::offers::market::{OFFERING_KEYS, offering_label, type_label};
use crate::vocabulary::catalogue::{Catalogue, InstanceType};
use crate::vocabulary::ids::{CatalogueId, OverlayName, PoolName};
use crate::vocabulary::labels;
use crate::vocabulary::overlay::NodeOverlay;
use crate::vocabulary::pool::NodePool;
use crate::world::view::World;

/// Memory that these take is no longer there for pods.
const HUGE_PAGES_PREFIX: &str = "hugepages-";

/// Catalogues with overlays in effect.
#[derive(Clone, Debug, Default)]
pub struct Overlaid {
    /// Catalogues of the pools that some overlay touches.
    pub catalogues: BTreeMap<PoolName, Arc<Catalogue>>,
    /// Overlays without effect, each with the one of equal weight that it contradicts.
    pub conflicts: BTreeMap<OverlayName, OverlayName>,
}

/// One pool with what is on offer to it.
struct ItemTable<'w> {
    pool: &'w NodePool,
    catalogue: &'w Catalogue,
}

/// What an overlay matches: for each pool, which offerings of its types, in order.
type Hits = Vec<Vec<bool>>;

/// An overlay with what it matches.
struct Reach<'w> {
    overlay: &'w NodeOverlay,
    hits: Hits,
}

/// Works out what the overlays of a world make of its pools' catalogues.
#[must_use]
pub fn overlaid(world: &World, catalogues: &BTreeMap<CatalogueId, Arc<Catalogue>>) -> Overlaid {
    let mut overlaid = Overlaid::default();
    if world.overlays.is_empty() {
        return overlaid;
    }
    let pools = world.pools.values();
    let tables: Vec<ItemTable<'_>> = pools
        .filter_map(|pool| Some(ItemTable { pool, catalogue: catalogues.get(&pool.catalogue)? }))
        .collect();
    let mut overlays: Vec<&NodeOverlay> = world.overlays.values().collect();
    overlays.sort_by_key(|overlay| overlay.rank());
    let mut effective: Vec<Reach<'_>> = Vec::new();
    for overlay in overlays {
        let hits = tables.iter().map(|table| table.hits(overlay)).collect();
        let reach = Reach { overlay, hits };
        match effective.iter().find(|other| reach.contradicts(other)) {
            Some(other) => {
                overlaid.conflicts.insert(overlay.name.clone(), other.overlay.name.clone());
            }
            None => effective.push(reach),
        }
    }
    overlaid.catalogues = changed(&tables, &effective);
    overlaid
}

/// The catalogues of the pools that overlays touch. Pools that they touch alike share one.
fn changed(
    tables: &[ItemTable<'_>],
    effective: &[Reach<'_>],
) -> BTreeMap<PoolName, Arc<Catalogue>> {
    let mut known: BTreeMap<_, Arc<Catalogue>> = BTreeMap::new();
    let mut changed = BTreeMap::new();
    for (at, table) in tables.iter().enumerate() {
        let touching: Vec<&Vec<bool>> = effective.iter().map(|reach| &reach.hits[at]).collect();
        if touching.iter().any(|hits| hits.contains(&true)) {
            let alike = known.entry((&table.pool.catalogue, touching));
            let catalogue = alike.or_insert_with(|| Arc::new(table.changed(at, effective)));
            changed.insert(table.pool.name.clone(), Arc::clone(catalogue));
        }
    }
    changed
}

impl Reach<'_> {
    /// True when both claim the same price or the same resource with the same right.
    fn contradicts(&self, other: &Self) -> bool {
        let (a, b) = (self.overlay, other.overlay);
        let prices = a.price.is_some() && b.price.is_some();
        let resources = a.capacity.keys().any(|name| b.capacity.contains_key(name));
        a.weight == b.weight && (prices || resources) && self.meets(other)
    }

    fn meets(&self, other: &Self) -> bool {
        let mut tables = self.hits.iter().zip(&other.hits);
        tables.any(|(a, b)| a.iter().zip(b).any(|(a, b)| *a && *b))
    }
}

impl ItemTable<'_> {
    /// Which offerings an overlay matches. What a type decides is looked at once for all of its
    /// own.
    fn hits(&self, overlay: &NodeOverlay) -> Vec<bool> {
        let (by_offering, by_type): (Vec<_>, Vec<_>) =
            overlay.requirements.iter().partition(|(key, _)| OFFERING_KEYS.contains(key));
        let mut hits = Vec::new();
        for kind in self.catalogue.types.values() {
            let mut asked = by_type.iter();
            let suits = asked.all(|(key, wanted)| wanted.allows(self.label(kind, key)));
            hits.extend(kind.offerings.iter().map(|offering| {
                let mut asked = by_offering.iter();
                suits && asked.all(|(key, wanted)| wanted.allows(offering_label(offering, key)))
            }));
        }
        hits
    }

    /// The label of a node of this pool and type, as far as these decide it.
    fn label<'l>(&'l self, kind: &'l InstanceType, key: &str) -> Option<&'l str> {
        type_label(kind, key).or_else(|| match key {
            labels::NODE_POOL => Some(self.pool.name.as_str()),
            _ => self.pool.labels.get(key).map(String::as_str),
        })
    }

    /// The catalogue of this pool, the `at`th, with every overlay having had its say.
    fn changed(&self, at: usize, effective: &[Reach<'_>]) -> Catalogue {
        let mut changed = self.catalogue.clone();
        let mut item = 0;
        for kind in changed.types.values_mut() {
            let items = item..item + kind.offerings.len();
            item = items.end;
            for (offering, item) in kind.offerings.iter_mut().zip(items.clone()) {
                let deciding = effective.iter().filter(|reach| reach.hits[at][item]);
                let change = deciding.filter_map(|reach| reach.overlay.price).next();
                if let Some(change) = change {
                    offering.price_micro_usd_per_hour =
                        change.of(offering.price_micro_usd_per_hour);
                }
            }
            // The least say first, so that the strongest is heard last.
            let touching = effective.iter().rev();
            for reach in touching.filter(|reach| reach.hits[at][items.clone()].contains(&true)) {
                reach.overlay.capacity.iter().for_each(|(name, amount)| add(kind, name, *amount));
            }
        }
        changed
    }
}

/// Gives a type an extended resource. Pages set aside are no memory for others.
fn add(kind: &mut InstanceType, name: &str, amount: i64) {
    if name.starts_with(HUGE_PAGES_PREFIX) {
        let more = amount.saturating_sub(kind.capacity.get(name));
        kind.overhead.memory_bytes = kind.overhead.memory_bytes.saturating_add(more);
    }
    kind.capacity.set(name, amount);
}
