//! The lower bound that comes with every plan, and the prices that prove it.
//!
//! Invariant: a bound is only reported after the integer check in `certificate` has accepted it.

pub mod certificate;
pub(crate) mod price_sets;
pub(crate) mod proof;
pub(crate) mod total;

use std::collections::BTreeMap;

use crate::bound::certificate::{PodClass, PricedRoom, SharedRoom, whole_nodes};
use crate::vocabulary::ids::ShapeId;
use crate::vocabulary::resources::Resources;

/// How a lower bound was proved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum BoundKind {
    /// No bound: nothing was launched.
    #[default]
    None,
    /// LB1: a price for each unit of each resource, such that no offering sells its allocatable
    /// resources for less than those prices say.
    ResourcePrices,
    /// LB2: several sets of resource prices. For each offering one of them says no more of it than
    /// it costs, and of each pod that may be there no less than its value. Says more than LB1 where
    /// some pods may not use what is cheapest.
    PriceSets,
    /// LB3: a value for one pod of each class, such that no pods that share a node are worth more
    /// than any offering that holds them costs (the dual of the configuration programme).
    ClassValues,
    /// LB4: any value for one pod of each class. Whole nodes that hold pods worth as much as all
    /// are cost no less. Says more than the others where few nodes do.
    WholeNodes,
}

/// Price in nano-dollars per hour of [`units`] of each resource by name, rounded down.
pub type ResourcePrices = BTreeMap<String, i64>;

/// No set of nodes that carries the launched pods costs less than this.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LowerBound {
    /// How it was proved.
    pub kind: BoundKind,
    /// The bound by the objective, rounded down.
    pub cost_micro_usd_per_hour: i64,
    /// The prices of LB1.
    pub prices_nano_usd_per_hour: ResourcePrices,
    /// The sets of prices of LB2.
    pub price_sets: Vec<ResourcePrices>,
    /// Value in nano-dollars per hour of one pod of each class, rounded down.
    pub values_nano_usd_per_hour: BTreeMap<ShapeId, i64>,
    /// What one more pod of each class costs at the least where there are many, in nano-dollars per
    /// hour, rounded down. Proves nothing of the pods that are launched.
    pub marginal_nano_usd_per_hour: BTreeMap<ShapeId, i64>,
    /// True when the independent integer check has accepted the prices or values.
    pub checked: bool,
}

impl LowerBound {
    /// True when it is larger than another.
    fn says_more(&self, other: &Self) -> bool {
        self.cost_micro_usd_per_hour > other.cost_micro_usd_per_hour
    }

    /// The value that it gives to a pod, in nano-dollars per hour; 0 where it says nothing of it.
    /// `names` are the resources in the order of the request.
    fn value_of(&self, shape: &ShapeId, names: &[String], request: &[i64]) -> i64 {
        match self.kind {
            BoundKind::None => 0,
            BoundKind::ResourcePrices => worth_of(&self.prices_nano_usd_per_hour, names, request),
            BoundKind::PriceSets | BoundKind::ClassValues | BoundKind::WholeNodes => {
                self.values_nano_usd_per_hour.get(shape).copied().unwrap_or(0)
            }
        }
    }
}

/// By how much prices of resources are lowered, one after the other, while the integer check
/// refuses them.
const PRICE_LOWERINGS: [f64; 3] = [1.0, 1.0 - 1e-9, 1.0 - 1e-6];

/// Amount of a resource that one dual price buys: a MiB of what is counted in bytes, one of all
/// else.
#[must_use]
pub fn units(resource: &str) -> i64 {
    let bytes = matches!(resource, "memory" | "ephemeral-storage");
    if bytes || resource.starts_with("hugepages-") { 1 << 20 } else { 1 }
}

/// The bound that resource prices prove for a demand, given what can be bought. The prices come
/// from a solver in floating point, in micro-dollars per hour of one unit as counted in
/// [`Resources`]; they are rounded down, lowered further if the integer check still refuses them,
/// and given up if that does not help.
pub(crate) fn from_prices(
    prices: &[(String, f64)],
    demand: &Resources,
    offers: &[PricedRoom],
) -> LowerBound {
    for lowering in PRICE_LOWERINGS {
        let prices = prices.iter().map(|(name, price)| (name, price));
        let mut bound = LowerBound {
            kind: BoundKind::ResourcePrices,
            cost_micro_usd_per_hour: 0,
            prices_nano_usd_per_hour: in_nano(prices, lowering),
            checked: true,
            ..LowerBound::default()
        };
        bound.cost_micro_usd_per_hour = value(&bound, demand);
        if certificate::verify(&bound, demand, offers.iter().cloned()).is_ok() {
            return bound;
        }
    }
    LowerBound::default()
}

/// The bound that values of pods prove, in micro-dollars per hour of one pod, in the order of the
/// classes. They come from a solver in floating point; they are rounded down, lowered further if
/// the integer check still refuses them, and given up if that does not help.
pub(crate) fn from_values(
    values: &[f64],
    classes: &[PodClass],
    rooms: &[SharedRoom],
) -> Option<LowerBound> {
    const LOWERINGS: [f64; 4] = [1.0 + 1e-9, 1.0 - 1e-9, 1.0 - 1e-4, 1.0 - 2e-3];
    LOWERINGS.into_iter().find_map(|lowering| {
        let nano = |(class, value): (&PodClass, &f64)| {
            (class.shape.clone(), whole_nano(value * lowering * 1_000.0))
        };
        let values: BTreeMap<ShapeId, i64> = classes.iter().zip(values).map(nano).collect();
        let bound = LowerBound {
            kind: BoundKind::ClassValues,
            cost_micro_usd_per_hour: worth_of_all(&values, classes),
            values_nano_usd_per_hour: values,
            checked: true,
            ..LowerBound::default()
        };
        certificate::verify_classes(&bound, classes, rooms).is_ok().then_some(bound)
    })
}

/// The bound that sets of resource prices prove, in micro-dollars per hour of one unit as counted
/// in [`Resources`] and in the order of `names`. `open` says of each class which sets are of nodes
/// that it may be on. Rounded and lowered like those of [`from_prices`].
pub(crate) fn from_sets(
    sets: &[Vec<f64>],
    names: &[String],
    classes: &[PodClass],
    open: &[Vec<bool>],
    rooms: &[SharedRoom],
) -> Option<LowerBound> {
    PRICE_LOWERINGS.into_iter().find_map(|lowering| {
        let set = |prices: &Vec<f64>| in_nano(names.iter().zip(prices), lowering);
        let price_sets: Vec<ResourcePrices> = sets.iter().map(set).collect();
        let value = |(class, open): (&PodClass, &Vec<bool>)| {
            let sets = price_sets.iter().zip(open).filter(|(_, open)| **open);
            let least = sets.map(|(set, _)| worth_of(set, names, &class.request)).min();
            (class.shape.clone(), least.unwrap_or(0))
        };
        let values: BTreeMap<ShapeId, i64> = classes.iter().zip(open).map(value).collect();
        let bound = LowerBound {
            kind: BoundKind::PriceSets,
            cost_micro_usd_per_hour: worth_of_all(&values, classes),
            values_nano_usd_per_hour: values,
            price_sets,
            checked: true,
            ..LowerBound::default()
        };
        certificate::verify_sets(&bound, names, classes, rooms).is_ok().then_some(bound)
    })
}

/// The bound that whole nodes prove, at the values that another bound gives to pods; `names` are
/// the resources in the order of requests.
pub(crate) fn from_whole_nodes(
    other: &LowerBound,
    names: &[String],
    classes: &[PodClass],
    rooms: &[SharedRoom],
) -> LowerBound {
    let value = |class: &PodClass| other.value_of(&class.shape, names, &class.request);
    let each: Vec<i64> = classes.iter().map(value).collect();
    let values: Vec<i128> = each.iter().map(|value| i128::from(*value)).collect();
    LowerBound {
        kind: BoundKind::WholeNodes,
        cost_micro_usd_per_hour: whole_nodes::least_cost(&values, classes, rooms),
        values_nano_usd_per_hour: classes.iter().map(|c| c.shape.clone()).zip(each).collect(),
        checked: true,
        ..LowerBound::default()
    }
}

/// What a request is worth at a set of prices, in nano-dollars per hour, rounded down.
fn worth_of(set: &ResourcePrices, names: &[String], request: &[i64]) -> i64 {
    let amounts = names.iter().zip(request.iter().copied());
    let each =
        amounts.map(|(name, amount)| worth(name, set.get(name).copied().unwrap_or(0), amount));
    i64::try_from(each.sum::<i128>()).unwrap_or(i64::MAX)
}

/// What an amount of a resource is worth at a price, in nano-dollars per hour, rounded down.
fn worth(name: &str, price: i64, amount: i64) -> i128 {
    i128::from(price) * i128::from(amount.max(0)) / i128::from(units(name))
}

/// What all pods are worth, in micro-dollars per hour, rounded down.
fn worth_of_all(values: &BTreeMap<ShapeId, i64>, classes: &[PodClass]) -> i64 {
    let worth = |class: &PodClass| {
        values.get(&class.shape).map_or(0, |value| i128::from(*value) * i128::from(class.count))
    };
    i64::try_from(classes.iter().map(worth).sum::<i128>() / 1_000).unwrap_or(0)
}

/// What a demand is worth at the bound's prices, rounded down.
fn value(bound: &LowerBound, demand: &Resources) -> i64 {
    let prices = bound.prices_nano_usd_per_hour.iter();
    let each = prices.map(|(name, price)| worth(name, *price, demand.get(name)));
    i64::try_from(each.sum::<i128>() / 1_000).unwrap_or(0)
}

/// Prices in micro-dollars per hour of one unit, lowered and rounded down.
fn in_nano<'p>(
    prices: impl Iterator<Item = (&'p String, &'p f64)>,
    lowering: f64,
) -> ResourcePrices {
    prices.map(|(name, price)| (name.clone(), to_nano(name, price * lowering))).collect()
}

/// Price of `units` of a resource in whole nano-dollars, rounded down.
#[expect(clippy::cast_precision_loss, reason = "units are small powers of two")]
fn to_nano(name: &str, micro_usd_per_unit: f64) -> i64 {
    whole_nano(micro_usd_per_unit * units(name) as f64 * 1_000.0)
}

/// Rounds down; saturates.
#[expect(
    clippy::cast_possible_truncation,
    reason = "a price too large to represent saturates and is then refused by the check"
)]
fn whole_nano(nano: f64) -> i64 {
    nano.floor().max(0.0) as i64
}
