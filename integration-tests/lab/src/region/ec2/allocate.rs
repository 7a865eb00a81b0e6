//! Allocation strategies: in which order pools are tried, and how units are dealt out.
//!
//! Invariant: pure. Whether a pool yields an instance is asked of the caller, once per instance;
//! a pool that refused is not asked again.

use std::cmp::Ordering;
use std::collections::VecDeque;

use super::super::wire::{AwsError, Params, Result};

/// How a fleet chooses among its overrides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    /// Cheapest first, dealt over this many pools.
    LowestPrice(usize),
    /// By priority, then price.
    Prioritized,
    /// Over all pools in turn.
    Diversified,
    /// Deepest pools first.
    CapacityOptimized,
    /// Deepest pools first, by priority among equally deep ones.
    CapacityOptimizedPrioritized,
    /// Cheapest among the deepest pools.
    PriceCapacityOptimized,
}

/// What a strategy knows of a pool.
#[derive(Clone, Debug, PartialEq)]
pub struct Pool {
    /// Current price.
    pub price_micro_usd: u64,
    /// Lower is tried first; pools without one come last.
    pub priority: Option<f64>,
    /// Units that one instance counts for.
    pub weight: f64,
    /// Instances the pool could still yield.
    pub depth: u32,
}

/// What was dealt out.
#[derive(Debug, Default)]
pub struct Allocation {
    /// Pool of each instance taken.
    pub taken: Vec<usize>,
    /// Pools that refused, with the reason.
    pub refused: Vec<(usize, AwsError)>,
    /// Units fulfilled.
    pub units: f64,
}

impl Strategy {
    /// Reads `SpotOptions` or `OnDemandOptions`; lowest price when nothing was said.
    ///
    /// # Errors
    /// For a name EC2 does not know.
    pub fn read(options: &Params) -> Result<Strategy> {
        let pools = options.number("InstancePoolsToUseCount")?.unwrap_or(1).max(1);
        Ok(match options.text("AllocationStrategy").unwrap_or("lowest-price") {
            "lowest-price" | "lowestPrice" => {
                Strategy::LowestPrice(usize::try_from(pools).unwrap_or(usize::MAX))
            }
            "prioritized" => Strategy::Prioritized,
            "diversified" => Strategy::Diversified,
            "capacity-optimized" => Strategy::CapacityOptimized,
            "capacity-optimized-prioritized" => Strategy::CapacityOptimizedPrioritized,
            "price-capacity-optimized" => Strategy::PriceCapacityOptimized,
            other => {
                let message = format!("Invalid value '{other}' for AllocationStrategy");
                return Err(AwsError::invalid_parameter(message));
            }
        })
    }

    /// Indices of `pools` in the order in which they are tried; ties keep the request's order.
    pub fn order(self, pools: &[Pool]) -> Vec<usize> {
        let mut order: Vec<usize> = (0..pools.len()).collect();
        order.sort_by(|&a, &b| self.compare(&pools[a], &pools[b]));
        order
    }

    fn compare(self, a: &Pool, b: &Pool) -> Ordering {
        let price = a.price_micro_usd.cmp(&b.price_micro_usd);
        let tier = tier(a.depth).cmp(&tier(b.depth));
        match self {
            Strategy::LowestPrice(_) | Strategy::Diversified => price,
            Strategy::Prioritized => priority(a, b).then(price),
            Strategy::CapacityOptimized => b.depth.cmp(&a.depth).then(price),
            Strategy::CapacityOptimizedPrioritized => tier.then(priority(a, b)).then(price),
            Strategy::PriceCapacityOptimized => tier.then(price),
        }
    }

    /// Pools that are dealt from in turn.
    fn spread(self) -> usize {
        match self {
            Strategy::LowestPrice(pools) => pools,
            Strategy::Diversified => usize::MAX,
            Strategy::Prioritized
            | Strategy::CapacityOptimized
            | Strategy::CapacityOptimizedPrioritized
            | Strategy::PriceCapacityOptimized => 1,
        }
    }
}

/// EC2 does not publish how it weighs depth against price; pools of twenty and more count as
/// equally deep here, then five and more, then any.
fn tier(depth: u32) -> u8 {
    match depth {
        0 => 3,
        1..5 => 2,
        5..20 => 1,
        20.. => 0,
    }
}

fn priority(a: &Pool, b: &Pool) -> Ordering {
    let value = |pool: &Pool| pool.priority.unwrap_or(f64::INFINITY);
    value(a).total_cmp(&value(b))
}

/// Deals `want` units out of `pools` in the order of `strategy`. `attempt` takes one instance out
/// of a pool or says why not.
pub fn allocate(
    strategy: Strategy,
    pools: &[Pool],
    want: u32,
    attempt: &mut dyn FnMut(usize) -> Result<()>,
) -> Allocation {
    let mut waiting: VecDeque<usize> = strategy.order(pools).into();
    let mut turn: VecDeque<usize> = VecDeque::new();
    let mut allocation = Allocation::default();
    while allocation.units < f64::from(want) {
        while turn.len() < strategy.spread() {
            let Some(next) = waiting.pop_front() else { break };
            turn.push_back(next);
        }
        let Some(pool) = turn.pop_front() else { break };
        match attempt(pool) {
            Ok(()) => {
                allocation.taken.push(pool);
                allocation.units += pools[pool].weight;
                turn.push_back(pool);
            }
            Err(error) => allocation.refused.push((pool, error)),
        }
    }
    allocation
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool(price: u64, priority: f64, depth: u32) -> Pool {
        Pool { price_micro_usd: price, priority: Some(priority), weight: 1.0, depth }
    }

    /// Three pools: cheap and shallow, middling, dear and preferred.
    fn pools() -> Vec<Pool> {
        vec![pool(10, 2.0, 2), pool(20, 1.0, 100), pool(30, 0.0, 50)]
    }

    fn deal(strategy: Strategy, want: u32) -> (Vec<usize>, Vec<usize>) {
        let pools = pools();
        let mut left: Vec<u32> = pools.iter().map(|pool| pool.depth).collect();
        let done = allocate(strategy, &pools, want, &mut |index| {
            left[index] = left[index]
                .checked_sub(1)
                .ok_or_else(|| AwsError::client("InsufficientInstanceCapacity", "none left"))?;
            Ok(())
        });
        (done.taken, done.refused.into_iter().map(|(index, _)| index).collect())
    }

    #[test]
    fn strategies_choose_as_documented() {
        assert_eq!(deal(Strategy::LowestPrice(1), 1), (vec![0], vec![]));
        assert_eq!(deal(Strategy::LowestPrice(2), 4), (vec![0, 1, 0, 1], vec![]));
        assert_eq!(deal(Strategy::Prioritized, 1), (vec![2], vec![]));
        assert_eq!(deal(Strategy::Diversified, 3), (vec![0, 1, 2], vec![]));
        assert_eq!(deal(Strategy::CapacityOptimized, 1), (vec![1], vec![]));
        assert_eq!(deal(Strategy::CapacityOptimizedPrioritized, 1), (vec![2], vec![]));
        assert_eq!(deal(Strategy::PriceCapacityOptimized, 1), (vec![1], vec![]));
    }

    #[test]
    fn an_exhausted_pool_is_reported_and_the_next_one_serves() {
        assert_eq!(deal(Strategy::LowestPrice(1), 4), (vec![0, 0, 1, 1], vec![0]));
    }

    #[test]
    fn weights_count_units() {
        let mut pools = pools();
        pools[0].weight = 4.0;
        let done = allocate(Strategy::LowestPrice(1), &pools, 6, &mut |_| Ok(()));
        assert_eq!((done.taken.len(), done.units), (2, 8.0));
    }
}
