//! What overlays make of a region's catalogues, and what is left of them for pools that avoid
//! something, kept until something of it changes; and the overlays' status.
//!
//! Invariant: what is kept always equals what would be worked out anew. Conditions are false
//! exactly for an overlay without effect because another one contradicts it.

use std::collections::BTreeMap;
use std::sync::Arc;

use longshore_core::catalogue::Catalogue;
use longshore_core::ids::{CatalogueId, OverlayName, PoolName};
use longshore_core::offers::{Overlaid, overlaid};
use longshore_core::overlay::NodeOverlay;
use longshore_core::pool::NodePool;
use longshore_core::world::view::World;
use longshore_proto::cluster::v1::directive::Action;
use longshore_proto::cluster::v1::{Condition, SetConditions};
use longshore_proto::types::v1::{ObjectKind, ObjectRef};

use super::duds::{self, Avoided};
use super::state::ClusterState;
use super::status::Written;

/// The overlaid catalogues with what they were made from.
#[derive(Default)]
pub struct Kept {
    overlays: BTreeMap<OverlayName, NodeOverlay>,
    pools: BTreeMap<PoolName, Arc<NodePool>>,
    catalogues: BTreeMap<CatalogueId, Arc<Catalogue>>,
    avoided: Avoided,
    overlaid: Overlaid,
}

impl Kept {
    /// What was worked out last.
    #[must_use]
    pub const fn overlaid(&self) -> &Overlaid {
        &self.overlaid
    }

    /// Works it out anew when anything has changed.
    pub fn refresh(
        &mut self,
        world: &World,
        catalogues: &BTreeMap<CatalogueId, Arc<Catalogue>>,
        avoided: Avoided,
    ) {
        if self.is_from(world, catalogues, &avoided) {
            return;
        }
        self.overlays.clone_from(&world.overlays);
        self.pools.clone_from(&world.pools);
        self.catalogues.clone_from(catalogues);
        self.avoided = avoided;
        self.overlaid = overlaid(world, catalogues);
        let changed = &mut self.overlaid.catalogues;
        for (name, avoided) in &self.avoided {
            let whole = || catalogues.get(&world.pools.get(name)?.catalogue);
            let left = changed.get(name).or_else(whole).map(|from| duds::without(from, avoided));
            changed.extend(left.map(|left| (name.clone(), left)));
        }
    }

    /// Catalogues that are not the same one may still be equal, but to see that takes long.
    fn is_from(
        &self,
        world: &World,
        catalogues: &BTreeMap<CatalogueId, Arc<Catalogue>>,
        avoided: &Avoided,
    ) -> bool {
        let mut pairs = self.catalogues.iter().zip(catalogues);
        let same = |((a, x), (b, y)): ((&CatalogueId, &Arc<_>), (&CatalogueId, &Arc<_>))| {
            a == b && Arc::ptr_eq(x, y)
        };
        self.overlays == world.overlays
            && self.avoided == *avoided
            && (self.overlays.is_empty() && avoided.is_empty()
                || self.pools == world.pools
                    && self.catalogues.len() == catalogues.len()
                    && pairs.all(same))
    }
}

/// Directives that write the conditions of all overlays.
#[must_use]
pub fn written(
    state: &ClusterState,
    conflicts: &BTreeMap<OverlayName, OverlayName>,
) -> Vec<Written> {
    let overlays = state.view().world().overlays.values();
    let of_overlay = |overlay: &NodeOverlay| {
        let other = conflicts.get(&overlay.name);
        let message = other.map(|other| {
            format!(
                "NodeOverlay {other} of equal weight changes the same price or resource, so this one \
                 has no effect; give one of them another weight or narrower requirements"
            )
        });
        let message = message.unwrap_or_default();
        let condition = |kind: &str| Condition {
            r#type: kind.to_owned(),
            status: Some(other.is_none()),
            reason: if other.is_some() { "Conflict" } else { kind }.to_owned(),
            message: message.clone(),
        };
        let about =
            ObjectRef { kind: ObjectKind::NodeOverlay.into(), key: overlay.name.to_string() };
        Written {
            key: format!("conditions/{}/{}", about.kind, about.key),
            // The overlay counts: one that was mended has a status that is not ours.
            content: format!("{overlay:?} {message}"),
            action: Action::SetConditions(SetConditions {
                about: Some(about),
                conditions: vec![condition("ValidationSucceeded"), condition("Ready")],
            }),
        }
    };
    overlays.map(of_overlay).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use longshore_core::capacity_group::CapacityGroup;
    use longshore_core::catalogue::{CapacityType, InstanceType, Offering};
    use longshore_core::overlay::PriceChange;
    use longshore_core::world::view::{Change, ClusterView, ObjectRef};

    use super::*;

    /// One type, which all pools may buy.
    fn catalogues(cpu_millis: i64) -> BTreeMap<CatalogueId, Arc<Catalogue>> {
        let mut kind = InstanceType { name: "m".into(), ..Default::default() };
        kind.capacity.cpu_millis = cpu_millis;
        kind.offerings.push(Offering {
            zone: "a".into(),
            zone_id: "".into(),
            capacity_type: CapacityType::Spot,
            price_micro_usd_per_hour: 100,
            available: true,
            reservation: None,
            group: CapacityGroup::default(),
            interruptions_per_million_hours: None,
        });
        let mut catalogue = Catalogue::default();
        catalogue.put(kind);
        BTreeMap::from([(CatalogueId::new("all"), Arc::new(catalogue))])
    }

    fn pool(name: &str) -> Change {
        let (name, catalogue) = (name.into(), "all".into());
        Change::Pool(NodePool { name, catalogue, ..NodePool::default() })
    }

    fn overlay(price: i64) -> Change {
        let price = Some(PriceChange::Fixed(price));
        Change::Overlay(NodeOverlay { name: "o".into(), price, ..NodeOverlay::default() })
    }

    /// Size, price, and whether it is to be had.
    fn seen(kept: &Kept, pool: &str) -> (i64, i64, bool) {
        let kind = &kept.overlaid().catalogues[pool].types["m"];
        let Offering { price_micro_usd_per_hour: price, available, .. } = kind.offerings[0];
        (kind.capacity.cpu_millis, price, available)
    }

    #[test]
    fn what_is_kept_follows_overlays_pools_and_catalogues() {
        let (mut view, mut kept, none) = (ClusterView::new(), Kept::default(), Avoided::new);
        view.apply(pool("p"));
        let first = catalogues(1);
        kept.refresh(view.world(), &first, none());
        assert!(kept.overlaid().catalogues.is_empty());
        view.apply(overlay(7));
        kept.refresh(view.world(), &first, none());
        assert_eq!(seen(&kept, "p"), (1, 7, true));
        view.apply(overlay(8));
        kept.refresh(view.world(), &first, none());
        assert_eq!(seen(&kept, "p"), (1, 8, true));
        kept.refresh(view.world(), &catalogues(2), none());
        assert_eq!(seen(&kept, "p"), (2, 8, true));
        view.apply(pool("q"));
        kept.refresh(view.world(), &catalogues(2), none());
        assert_eq!(kept.overlaid().catalogues.len(), 2);
    }

    #[test]
    fn what_a_pool_avoids_is_not_to_be_had_for_it_alone() {
        let (mut view, mut kept) = (ClusterView::new(), Kept::default());
        for change in [pool("p"), pool("q"), overlay(8)] {
            view.apply(change);
        }
        let first = catalogues(1);
        let sold = ("m".into(), "a".into(), CapacityType::Spot);
        let avoided = Avoided::from([("q".into(), BTreeSet::from([sold]))]);
        kept.refresh(view.world(), &first, avoided.clone());
        assert_eq!((seen(&kept, "p"), seen(&kept, "q")), ((1, 8, true), (1, 8, false)));
        view.remove(ObjectRef::Overlay("o".into()));
        kept.refresh(view.world(), &first, avoided);
        assert_eq!(seen(&kept, "q"), (1, 100, false));
        assert_eq!(kept.overlaid().catalogues.len(), 1);
        kept.refresh(view.world(), &first, Avoided::new());
        assert!(kept.overlaid().catalogues.is_empty(), "it is bought again");
    }
}
