//! Resource prices: what a unit of each resource is worth to the item classes that wait (LB1).
//!
//! ```text
//! maximise   sum of demand[r] * y[r]
//! subject to sum of room[b][r] * y[r] <= price[b]   for each bin b,  y >= 0
//! ```
//!
//! The dual of buying fractions of rooms: no set of nodes that holds the demand costs less.
//!
//! Invariant: guidance only. The bound that is reported is rounded down from these prices and
//! checked in integers by `certificate`.

use crate::pack::lp::simplex;
use crate::pack::problem::Problem;
use crate::pack::problem::vector::{self, float};

/// Most pivots; a programme of eight variables needs a dozen.
const PIVOTS_MAX: usize = 400;

/// Price of one unit of each resource in micro-dollars per hour for the classes that are left.
pub(crate) fn resource_prices(problem: &Problem, left: &[i64], bins: &[usize]) -> Vec<f64> {
    let dims = problem.bins.first().map_or(0, |bin| bin.room.len());
    let mut demand = vec![0; dims];
    for (class, count) in problem.classes.iter().zip(left) {
        vector::add(&mut demand, &class.request, *count);
    }
    let rooms = bins.iter().map(|index| &problem.bins[*index]);
    of(&demand, rooms.map(|bin| (bin.price, bin.room.as_slice())))
}

/// The prices at which a demand is worth most such that no room is worth more than it costs (LB1,
/// the dual of buying fractions of rooms).
pub(crate) fn of<'r>(demand: &[i64], rooms: impl Iterator<Item = (i64, &'r [i64])>) -> Vec<f64> {
    // Scaled by demand, so that all variables are of one order of magnitude.
    let scale: Vec<f64> = demand.iter().map(|amount| float((*amount).max(1))).collect();
    let gains: Vec<f64> = demand.iter().map(|amount| f64::from(u8::from(*amount > 0))).collect();
    let rows: Vec<(f64, Vec<f64>)> = rooms
        .map(|(price, room)| {
            let scaled = room.iter().zip(&scale).map(|(have, by)| float((*have).max(0)) / by);
            (float(price), scaled.collect())
        })
        .collect();
    let optimum = simplex::maximise(&gains, &rows, PIVOTS_MAX);
    optimum.iter().zip(&scale).map(|(price, by)| price / by).collect()
}

/// Value of one pod of each class at the given resource prices. No class is worthless: what no
/// resource makes scarce still has to be placed.
pub(crate) fn row_values(problem: &Problem, prices: &[f64]) -> Vec<f64> {
    let value = |request: &[i64]| -> f64 {
        request.iter().zip(prices).map(|(amount, price)| float(*amount) * price).sum()
    };
    problem.classes.iter().map(|class| value(&class.request).max(1e-3)).collect()
}
