//! The check of a bound by whole nodes (LB4): whatever the values of pods, the nodes of a purchase
//! hold pods that are worth as much as all are together. So it costs no less than the cheapest
//! nodes, in whole numbers, of which each holds what its kind holds at the most.
//!
//! ```text
//! minimise   sum of price[t] * nodes[t]                   nodes[t] = 0, 1, 2, ...
//! subject to sum of most[t] * nodes[t] >= sum of count[i] * value[i]
//! ```
//!
//! Of one kind of pods that is the least cost itself, of others no more than that.
//!
//! Invariant: whole numbers throughout. What nodes hold is rounded up against what they must.

use crate::bound::LowerBound;
use crate::bound::certificate::classes::{best, most, values, worth};
use crate::bound::certificate::{CertificateError, NANO_PER_MICRO, PodClass, SharedRoom, covers};

/// Most parts into which the worth of all pods is divided.
const PARTS_MAX: i128 = 1 << 14;

/// Checks that `bound` holds for the classes when only `rooms` can be bought.
///
/// # Errors
/// A class without a value, or a bound that says more than whole nodes cost.
pub fn verify_whole_nodes(
    bound: &LowerBound,
    classes: &[PodClass],
    rooms: &[SharedRoom],
) -> Result<(), CertificateError> {
    let least = least_cost(&values(bound, classes)?, classes, rooms);
    covers(bound, i128::from(least) * NANO_PER_MICRO)
}

/// What whole nodes cost at the least, in micro-dollars per hour, that hold pods worth as much as
/// all are; 0 where nothing has a value or a place.
pub(in crate::bound) fn least_cost(
    values: &[i128],
    classes: &[PodClass],
    rooms: &[SharedRoom],
) -> i64 {
    let all = worth(classes, values);
    let part = part(values, all);
    let parts = |worth: i128| usize::try_from(divided(worth, part)).unwrap_or(usize::MAX);
    let mut nodes: Vec<(i64, usize)> = best(rooms)
        .map(|room| (room.price_micro_usd_per_hour, parts(most(classes, values, room))))
        .collect();
    nodes.sort_unstable();
    let mut largest = 0;
    nodes.retain(|(_, holds)| {
        let larger = *holds > largest;
        largest = largest.max(*holds);
        larger
    });
    if nodes.is_empty() {
        return 0;
    }
    let mut least: Vec<i64> = vec![0];
    for needed in 1..=parts(all) {
        let with = |(price, holds): &(i64, usize)| {
            price.saturating_add(least[needed.saturating_sub(*holds)])
        };
        let cheapest = nodes.iter().map(with).min().unwrap_or(0);
        least.push(cheapest);
    }
    least.pop().unwrap_or(0)
}

/// The part in which worth is counted: one that divides each value, where there are not too many of
/// it.
fn part(values: &[i128], all: i128) -> i128 {
    let common = values.iter().fold(0, |common, value| gcd(common, *value)).max(1);
    common.max(divided(all, PARTS_MAX))
}

/// Rounded up; neither is negative.
const fn divided(amount: i128, by: i128) -> i128 {
    (amount + by - 1) / by
}

fn gcd(a: i128, b: i128) -> i128 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bound::BoundKind;

    fn room(price: i64, cpu: i64, admits: [bool; 2]) -> SharedRoom {
        SharedRoom { price_micro_usd_per_hour: price, room: vec![cpu], admits: admits.to_vec() }
    }

    fn classes(counts: [i64; 2]) -> Vec<PodClass> {
        let class = |(shape, cpu, count): (&str, i64, i64)| PodClass {
            shape: shape.into(),
            request: vec![cpu],
            count,
        };
        [("small", 1, counts[0]), ("large", 3, counts[1])].map(class).to_vec()
    }

    #[test]
    fn pods_of_one_kind_cost_what_the_nodes_cost_that_hold_them() {
        let rooms = [room(10, 4, [true, true]), room(17, 8, [true, true])];
        // One large pod fits on a node of 4, two on one of 8.
        for (count, cost) in [(1, 10), (2, 17), (3, 27), (4, 34), (5, 44)] {
            assert_eq!(least_cost(&[0, 7], &classes([0, count]), &rooms), cost, "{count}");
        }
        let bound = |cost_micro_usd_per_hour| LowerBound {
            kind: BoundKind::WholeNodes,
            cost_micro_usd_per_hour,
            values_nano_usd_per_hour: [("small".into(), 0), ("large".into(), 7)].into(),
            ..LowerBound::default()
        };
        let verify = |cost| verify_whole_nodes(&bound(cost), &classes([0, 3]), &rooms);
        assert_eq!(verify(27), Ok(()));
        let too_large = CertificateError::BoundTooLarge { claimed: 28, proved: 27 };
        assert_eq!(verify(28), Err(too_large));
    }

    #[test]
    fn a_node_holds_what_may_be_there_and_is_there() {
        // The cheap node is not for large pods, and there are two small ones: worth 2 of 8.
        let rooms = [room(1, 8, [true, false]), room(10, 4, [true, true])];
        assert_eq!(least_cost(&[1, 3], &classes([2, 2]), &rooms), 4);
        assert_eq!(least_cost(&[0, 1], &classes([2, 2]), &rooms), 20);
        assert_eq!(least_cost(&[0, 0], &classes([2, 2]), &rooms), 0);
    }

    #[test]
    fn values_without_a_common_part_lose_little() {
        let rooms = [room(1_000, 4, [true, true])];
        let values = [1_000_000_007, 3_000_000_019];
        // Nodes hold one of each.
        assert_eq!(least_cost(&values, &classes([40, 40]), &rooms), 40_000);
    }
}
