//! The check of values of pods: for each room, no pods that may share it are worth more than it
//! costs. And, for `whole_nodes`, what those are worth at the most that may share a room.
//!
//! Invariant: integers decide; floating point only chooses the order of the search and the weights
//! of the resources, and no choice can make a wrong bound pass.

use indexmap::IndexMap;

use crate::bound::LowerBound;
use crate::bound::certificate::{CertificateError, NANO_PER_MICRO, covers};
use crate::pack::knapsack::fraction;
use crate::pack::problem::item_table::{SHARES_MAX, Shares};
use crate::pack::problem::vector::float;
use crate::vocabulary::ids::ShapeId;

/// Equal pods, for the purpose of a bound.
#[derive(Clone, Debug)]
pub struct PodClass {
    /// Their shape.
    pub shape: ShapeId,
    /// What one of them requests of each resource, in an order that all classes and rooms share.
    pub request: Vec<i64>,
    /// How many there are.
    pub count: i64,
}

/// What can be bought and which classes may use it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SharedRoom {
    /// What it costs, in micro-dollars per hour.
    pub price_micro_usd_per_hour: i64,
    /// What one node leaves for pods of each resource.
    pub room: Vec<i64>,
    /// For each class, whether its pods may run there.
    pub admits: Vec<bool>,
}

/// Steps of the search allowed for one room, to find whether it may hold too much.
const STEPS_MAX: usize = 20_000;
/// Steps of the search allowed for one room, to find how much it may hold.
const MOST_STEPS_MAX: usize = 1_000;
/// Size of a full room, as the sum of weighted shares.
const FULL: i128 = 1 << 60;
/// Sum of the weights of all resources.
const WEIGHTS: i64 = 1 << 40;

/// Checks that `bound` holds for the classes when only `rooms` can be bought.
///
/// # Errors
/// The first room that could hold pods worth more than it costs, or for which that was not decided.
pub fn verify_classes(
    bound: &LowerBound,
    classes: &[PodClass],
    rooms: &[SharedRoom],
) -> Result<(), CertificateError> {
    let values = values(bound, classes)?;
    for room in best(rooms) {
        let price = room.price_micro_usd_per_hour;
        let limit = i128::from(price) * NANO_PER_MICRO;
        let search = Search { steps: STEPS_MAX, ..Search::new(classes, &values, room, limit) };
        search.decide().map_err(|stop| match stop {
            Stop::Exceeded => CertificateError::PatternTooCheap { price },
            Stop::Undecided => CertificateError::Undecided { price },
        })?;
    }
    covers(bound, worth(classes, &values))
}

/// The rooms but for those in place of which one before them will do.
pub(super) fn best(rooms: &[SharedRoom]) -> impl Iterator<Item = &SharedRoom> {
    let each = rooms.iter().enumerate();
    let needed = |(at, room): &(usize, &SharedRoom)| {
        !rooms[..*at].iter().any(|other| other.stands_for(room))
    };
    each.filter(needed).map(|(_, room)| room)
}

/// What pods that share a room are worth at the most, or more than that where it is not found
/// within the steps allowed.
pub(super) fn most(classes: &[PodClass], values: &[i128], room: &SharedRoom) -> i128 {
    let search = Search { raises: true, ..Search::new(classes, values, room, 0) };
    let divided = search.potential(0, FULL);
    search.decide().map_or(divided, |found| found)
}

/// The value of one pod of each class, in nano-dollars per hour.
pub(super) fn values(
    bound: &LowerBound,
    classes: &[PodClass],
) -> Result<Vec<i128>, CertificateError> {
    let value = |class: &PodClass| match bound.values_nano_usd_per_hour.get(&class.shape) {
        Some(value) if *value >= 0 => Ok(i128::from(*value)),
        _ => Err(CertificateError::ValueMissing { shape: class.shape.to_string() }),
    };
    classes.iter().map(value).collect()
}

/// What all pods are worth.
pub(super) fn worth(classes: &[PodClass], values: &[i128]) -> i128 {
    classes.iter().zip(values).map(|(class, value)| i128::from(class.count) * value).sum()
}

impl SharedRoom {
    /// True when whatever fits `other` fits here for no more money.
    fn stands_for(&self, other: &Self) -> bool {
        self.price_micro_usd_per_hour <= other.price_micro_usd_per_hour
            && self.room.iter().zip(&other.room).all(|(here, there)| here >= there)
            && self.admits.iter().zip(&other.admits).all(|(here, there)| here >= there)
    }
}

/// Pods of a class that may be in the room.
#[derive(Clone, Copy)]
struct Arrival<'a> {
    request: &'a [i64],
    most: i64,
    value: i128,
    /// Weighted share of the room, rounded down.
    size: i128,
}

/// Depth-first search for pods worth more than a limit.
struct Search<'a> {
    limit: i128,
    /// True when what is worth more is the new limit, not the end.
    raises: bool,
    room: Vec<i64>,
    guests: Vec<Arrival<'a>>,
    steps: usize,
}

/// Why a search ends before it has looked at everything.
enum Stop {
    /// Some pods are worth more than the limit.
    Exceeded,
    /// All steps are taken.
    Undecided,
}

impl<'a> Search<'a> {
    fn new(classes: &'a [PodClass], values: &[i128], room: &SharedRoom, limit: i128) -> Self {
        let each = classes.iter().zip(values).zip(&room.admits).filter(|(_, admits)| **admits);
        let guests = each.filter_map(|((class, value), _)| {
            let most = copies(&class.request, &room.room).min(class.count);
            (most > 0 && *value > 0).then_some(Arrival {
                request: &class.request,
                most,
                value: *value,
                size: 0,
            })
        });
        let mut search = Self {
            limit,
            raises: false,
            room: room.room.clone(),
            guests: joined(guests),
            steps: MOST_STEPS_MAX,
        };
        search.weigh();
        search
    }

    /// The limit, as far as it was raised.
    fn decide(mut self) -> Result<i128, Stop> {
        self.visit(0, 0, FULL).map(|()| self.limit)
    }

    /// Chooses weights under which the room holds little enough, or else least.
    fn weigh(&mut self) {
        self.sort(&vec![1; self.room.len()]);
        if self.potential(0, FULL) > self.limit {
            let weights = self.least_weights();
            self.sort(&weights);
        }
    }

    /// What each resource weighs when pods may be divided, in parts of [`WEIGHTS`]: nothing, but
    /// for the few of which the room has least for all who may come.
    fn least_weights(&self) -> Vec<i128> {
        let share = |arrival: &Arrival<'_>, dim: usize| {
            float(arrival.request[dim]) / float(self.room[dim].max(1))
        };
        let asked = |dim: usize| -> f64 {
            self.guests.iter().map(|arrival| share(arrival, dim) * float(arrival.most)).sum()
        };
        let mut dims: Vec<usize> = (0..self.room.len()).collect();
        dims.sort_by(|a, b| asked(*b).total_cmp(&asked(*a)));
        dims.truncate(SHARES_MAX);
        let item = |arrival: &Arrival<'_>| {
            let mut shares = Shares::default();
            shares.iter_mut().zip(&dims).for_each(|(of, dim)| *of = share(arrival, *dim));
            fraction::Item { value: rough(arrival.value), most: float(arrival.most), shares }
        };
        let items: Vec<fraction::Item> = self.guests.iter().map(item).collect();
        let found = fraction::best(&items, dims.len()).weights;
        let mut weights = vec![0; self.room.len()];
        dims.iter().zip(found).for_each(|(dim, weight)| weights[*dim] = whole(weight));
        weights
    }

    /// Sizes under weights, and the order by value for size.
    fn sort(&mut self, weights: &[i128]) {
        let sum: i128 = weights.iter().sum::<i128>().max(1);
        for arrival in &mut self.guests {
            let shares = arrival.request.iter().zip(&self.room).zip(weights);
            let sizes = shares.map(|((need, have), weight)| {
                i128::from((*need).max(0)) * (FULL * weight / sum) / i128::from((*have).max(1))
            });
            arrival.size = sizes.sum();
        }
        self.guests.sort_by(|a, b| (b.value * a.size.max(1)).cmp(&(a.value * b.size.max(1))));
    }

    fn visit(&mut self, at: usize, value: i128, free: i128) -> Result<(), Stop> {
        if value > self.limit {
            if !self.raises {
                return Err(Stop::Exceeded);
            }
            self.limit = value;
        }
        if value + self.potential(at, free) <= self.limit {
            return Ok(());
        }
        self.steps = self.steps.checked_sub(1).ok_or(Stop::Undecided)?;
        let arrival = self.guests[at];
        for count in (0..=copies(arrival.request, &self.room).min(arrival.most)).rev() {
            take(&mut self.room, arrival.request, count);
            let (many, free) = (i128::from(count), free);
            let visited =
                self.visit(at + 1, value + arrival.value * many, free - arrival.size * many);
            take(&mut self.room, arrival.request, -count);
            visited?;
        }
        Ok(())
    }

    /// The most that guests from `at` on can be worth: a fractional filling, rounded up.
    fn potential(&self, at: usize, mut free: i128) -> i128 {
        let mut value = 0;
        for arrival in &self.guests[at..] {
            let most = i128::from(arrival.most);
            if arrival.size * most <= free {
                value += arrival.value * most;
                free -= arrival.size * most;
                continue;
            }
            return value + arrival.value * free.max(0) / arrival.size + 1;
        }
        value
    }
}

/// One for all that are worth the same and request the same.
fn joined<'a>(arrivals: impl Iterator<Item = Arrival<'a>>) -> Vec<Arrival<'a>> {
    let mut kinds = IndexMap::new();
    for arrival in arrivals {
        let kind = kinds.entry((arrival.value, arrival.request));
        kind.and_modify(|kind: &mut Arrival<'a>| kind.most += arrival.most).or_insert(arrival);
    }
    kinds.into_values().collect()
}

/// A value for the choice of weights.
#[expect(clippy::cast_precision_loss, reason = "nothing depends on the last digits")]
const fn rough(value: i128) -> f64 {
    value as f64
}

/// A weight of up to 1 in whole parts.
#[expect(clippy::cast_possible_truncation, reason = "between 0 and the sum of all")]
fn whole(weight: f64) -> i128 {
    i128::from((weight * float(WEIGHTS)) as i64)
}

/// How often a request fits.
fn copies(request: &[i64], room: &[i64]) -> i64 {
    let needed = request.iter().zip(room).filter(|(need, _)| **need > 0);
    needed.map(|(need, have)| have.max(&0) / need).min().unwrap_or(i64::MAX)
}

fn take(room: &mut [i64], request: &[i64], count: i64) {
    for (have, need) in room.iter_mut().zip(request) {
        *have = have.saturating_sub(need.saturating_mul(count));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bound::BoundKind;

    fn class(shape: &str, request: [i64; 2], count: i64) -> PodClass {
        PodClass { shape: shape.into(), request: request.to_vec(), count }
    }

    fn bound(values: &[(&str, i64)], price: i64) -> LowerBound {
        LowerBound {
            kind: BoundKind::ClassValues,
            cost_micro_usd_per_hour: price,
            values_nano_usd_per_hour: values.iter().map(|(s, v)| ((*s).into(), *v)).collect(),
            ..LowerBound::default()
        }
    }

    fn room(price: i64, room: [i64; 2], admits: [bool; 2]) -> SharedRoom {
        SharedRoom { price_micro_usd_per_hour: price, room: room.to_vec(), admits: admits.to_vec() }
    }

    #[test]
    fn a_pod_that_fills_half_a_node_is_worth_half_of_it_whatever_is_left_over() {
        // Two pods of 4 fit a node of 11 for 100: 50 each, although three quarters of it suffice.
        let classes = [class("a", [4, 1], 10), class("b", [1, 4], 2)];
        let rooms = [room(100, [11, 11], [true, true])];
        let honest = bound(&[("a", 50_000), ("b", 0)], 500);
        assert_eq!(verify_classes(&honest, &classes, &rooms), Ok(()));
        let greedy = bound(&[("a", 50_001), ("b", 0)], 500);
        let error = verify_classes(&greedy, &classes, &rooms);
        assert_eq!(error, Err(CertificateError::PatternTooCheap { price: 100 }));
        let large = bound(&[("a", 50_000), ("b", 0)], 501);
        assert!(matches!(
            verify_classes(&large, &classes, &rooms),
            Err(CertificateError::BoundTooLarge { .. })
        ));
    }

    #[test]
    fn who_may_not_use_a_room_is_not_counted_there() {
        let classes = [class("a", [4, 1], 10), class("b", [1, 4], 2)];
        let rooms = [room(10, [4, 8], [false, true]), room(100, [8, 2], [true, false])];
        let honest = bound(&[("a", 50_000), ("b", 5_000)], 510);
        assert_eq!(verify_classes(&honest, &classes, &rooms), Ok(()));
        let missing = bound(&[("a", 50_000)], 500);
        assert!(matches!(
            verify_classes(&missing, &classes, &rooms),
            Err(CertificateError::ValueMissing { .. })
        ));
    }
}
