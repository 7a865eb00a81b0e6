//! Checks the values of pods by sets of resource prices (LB2): for each room some set `y` has
//! `y * room <= price`, and `y * request >= value` for every class that the room admits. The pods
//! in a room are then worth no more than the room costs.
//!
//! Invariant: whole numbers throughout; what is too large for them is refused.

use std::collections::BTreeMap;

use crate::bound::certificate::classes::{values, worth};
use crate::bound::certificate::{CertificateError, NANO_PER_MICRO, PodClass, SharedRoom, covers};
use crate::bound::{LowerBound, units};

/// Prices are compared as multiples of this part of a nano-dollar: the largest unit divides it.
const PARTS: i128 = 1 << 20;

/// Checks that `bound` holds for the classes when only `rooms` can be bought; `names` are the
/// resources in the order of requests and rooms.
///
/// # Errors
/// The first room of which every set says more than it costs, or less of some pod than its value.
pub fn verify_sets(
    bound: &LowerBound,
    names: &[String],
    classes: &[PodClass],
    rooms: &[SharedRoom],
) -> Result<(), CertificateError> {
    let values = values(bound, classes)?;
    let sets: Vec<Vec<i128>> = (0..bound.price_sets.len())
        .map(|set| names.iter().map(|name| price_of_one(bound, set, name)).collect())
        .collect::<Result<_, _>>()?;
    // Which sets value no pod of those admitted too low: the same for all rooms that admit the
    // same.
    let mut honest: BTreeMap<&[bool], Vec<bool>> = BTreeMap::new();
    for room in rooms {
        let honest = honest.entry(&room.admits).or_insert_with(|| {
            sets.iter().map(|set| is_honest(set, classes, &values, &room.admits)).collect()
        });
        let price = i128::from(room.price_micro_usd_per_hour) * NANO_PER_MICRO * PARTS;
        let mut sets = sets.iter().zip(honest.iter());
        if !sets.any(|(set, honest)| *honest && amounts_worth(set, &room.room) <= price) {
            let price = room.price_micro_usd_per_hour;
            return Err(CertificateError::OfferTooCheap { price });
        }
    }
    covers(bound, worth(classes, &values))
}

/// Price of a single unit of a resource, as counted in requests, in parts of a nano-dollar.
fn price_of_one(bound: &LowerBound, set: usize, name: &String) -> Result<i128, CertificateError> {
    let price = bound.price_sets[set].get(name).copied().unwrap_or(0);
    if price < 0 {
        return Err(CertificateError::NegativePrice { resource: name.clone() });
    }
    Ok(i128::from(price) * (PARTS / i128::from(units(name))))
}

fn is_honest(set: &[i128], classes: &[PodClass], values: &[i128], admits: &[bool]) -> bool {
    let mut admitted = classes.iter().zip(values).zip(admits).filter(|(_, admits)| **admits);
    admitted.all(|((class, value), _)| {
        value.saturating_mul(PARTS) <= amounts_worth(set, &class.request)
    })
}

/// What amounts are worth, in parts of a nano-dollar.
fn amounts_worth(set: &[i128], amounts: &[i64]) -> i128 {
    let each = set.iter().zip(amounts);
    each.fold(0, |sum: i128, (price, amount)| {
        sum.saturating_add(price.saturating_mul(i128::from((*amount).max(0))))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bound::BoundKind;

    /// Two kinds of pods of one core; only the first may use the cheap node.
    fn stage() -> (Vec<String>, Vec<PodClass>, Vec<SharedRoom>) {
        let class =
            |shape: &str, count| PodClass { shape: shape.into(), request: vec![1_000], count };
        let room = |price_micro_usd_per_hour, admits: [bool; 2]| SharedRoom {
            price_micro_usd_per_hour,
            room: vec![4_000],
            admits: admits.to_vec(),
        };
        let rooms = vec![room(100, [true, false]), room(200, [true, true])];
        (vec!["cpu".to_owned()], vec![class("any", 10), class("picky", 10)], rooms)
    }

    fn bound(prices: [i64; 2], values: [i64; 2], cost: i64) -> LowerBound {
        LowerBound {
            kind: BoundKind::PriceSets,
            cost_micro_usd_per_hour: cost,
            price_sets: prices.map(|price| BTreeMap::from([("cpu".to_owned(), price)])).to_vec(),
            values_nano_usd_per_hour: [("any".into(), values[0]), ("picky".into(), values[1])]
                .into(),
            ..LowerBound::default()
        }
    }

    #[test]
    fn pods_that_may_not_use_the_cheap_node_are_worth_more() {
        let (names, classes, rooms) = stage();
        let verify = |bound| verify_sets(&bound, &names, &classes, &rooms);
        assert_eq!(verify(bound([25, 50], [25_000, 50_000], 750)), Ok(()));
        let dear = verify(bound([25, 50], [25_000, 50_000], 751));
        assert!(matches!(dear, Err(CertificateError::BoundTooLarge { .. })), "{dear:?}");
        // A core of the cheap node for more than it costs, a pod for more than its core, one set
        // for all.
        for wrong in [
            bound([26, 50], [26_000, 50_000], 1),
            bound([25, 50], [25_001, 50_000], 1),
            bound([25, 50], [25_000, 50_001], 1),
            bound([25, 25], [25_000, 50_000], 1),
            bound([50, 50], [25_000, 50_000], 1),
        ] {
            let refused = verify(wrong);
            assert!(matches!(refused, Err(CertificateError::OfferTooCheap { .. })), "{refused:?}");
        }
        let negative = verify(bound([-1, 50], [0, 0], 0));
        assert!(matches!(negative, Err(CertificateError::NegativePrice { .. })), "{negative:?}");
    }
}
