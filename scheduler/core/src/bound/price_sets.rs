//! A set of resource prices for each group of rooms that admit the same pods, at which all pods
//! together are worth as much as possible: the dual of buying fractions of rooms when not every pod
//! may use every room (LB2).
//!
//! A pod is worth what it requests at the prices of the group where that is least. The sum over all
//! pods is concave in the prices; it is maximised by cutting planes (Kelley, 1960), each of which
//! is the demand of each group if every pod went where it is worth least. Each new point is tried
//! itself and half way from the best known.
//!
//! Invariant: guidance only. The bound that is reported is rounded down from these prices and
//! checked in integers by `certificate`.

use crate::pack::lp::simplex;
use crate::pack::problem::vector::float;

/// Most rounds; each is a programme of a few hundred rows.
const ROUNDS_MAX: usize = 24;
const PIVOTS_MAX: usize = 600;
/// Ends when no prices can say more than this share above the best known.
const GAIN_MIN: f64 = 1e-3;

/// Rooms that admit the same pods.
#[derive(Debug, Default)]
pub(crate) struct Group<'r> {
    /// Price and size of each.
    pub(crate) rooms: Vec<(i64, &'r [i64])>,
}

/// Pods that request the same.
#[derive(Clone, Debug)]
pub(crate) struct Pods<'r> {
    /// What one requests.
    pub(crate) request: &'r [i64],
    /// How many there are.
    pub(crate) count: i64,
    /// Whether they may use each group; at least one.
    pub(crate) open: &'r [bool],
}

/// Prices of one unit of each resource in each group, in micro-dollars per hour.
pub(crate) fn of(pods: &[Pods<'_>], groups: &[Group<'_>]) -> Vec<Vec<f64>> {
    let search = Search::new(pods, groups);
    let mut best = Point::default();
    let mut cuts: Vec<Vec<f64>> = Vec::new();
    search.visit(&vec![0.0; search.variables()], &mut best, &mut cuts);
    for _ in 0..ROUNDS_MAX {
        let (most, prices) = search.solve(&cuts);
        let between: Vec<f64> =
            prices.iter().zip(&best.prices).map(|(a, b)| (a + b) / 2.0).collect();
        search.visit(&between, &mut best, &mut cuts);
        search.visit(&prices, &mut best, &mut cuts);
        if most <= best.worth * (1.0 + GAIN_MIN) {
            break;
        }
    }
    search.unscaled(&best.prices)
}

/// Prices, those of one group after those of another, and what all pods are worth at them.
#[derive(Default)]
struct Point {
    prices: Vec<f64>,
    worth: f64,
}

/// The programme, with amounts as shares of all that is requested, so that all variables are of one
/// order of magnitude.
struct Search<'r> {
    pods: &'r [Pods<'r>],
    requests: Vec<Vec<f64>>,
    scale: Vec<f64>,
    /// What prices must not exceed.
    rows: Vec<(f64, Vec<f64>)>,
    groups: usize,
}

impl<'r> Search<'r> {
    fn new(pods: &'r [Pods<'r>], groups: &[Group<'_>]) -> Self {
        let dims = pods.first().map_or(0, |pods| pods.request.len());
        let mut scale = vec![0.0; dims];
        for pods in pods {
            for (sum, amount) in scale.iter_mut().zip(pods.request) {
                *sum += float((*amount).max(0)) * float(pods.count);
            }
        }
        scale.iter_mut().for_each(|sum| *sum = sum.max(1.0));
        let scaled = |amounts: &[i64]| -> Vec<f64> {
            amounts.iter().zip(&scale).map(|(amount, by)| float((*amount).max(0)) / by).collect()
        };
        let mut rows = Vec::new();
        for (group, shop) in groups.iter().enumerate() {
            for (price, room) in &shop.rooms {
                let mut row = vec![0.0; groups.len() * dims];
                row[group * dims..][..dims].copy_from_slice(&scaled(room));
                rows.push((float(*price), row));
            }
        }
        let requests = pods.iter().map(|pods| scaled(pods.request)).collect();
        Self { pods, requests, scale, rows, groups: groups.len() }
    }

    fn dims(&self) -> usize {
        self.scale.len()
    }

    fn variables(&self) -> usize {
        self.groups * self.dims()
    }

    /// The prices at which the cuts together say most, and how much that is.
    fn solve(&self, cuts: &[Vec<f64>]) -> (f64, Vec<f64>) {
        let wide = |first: f64, rest: &[f64], sign: f64| -> Vec<f64> {
            std::iter::once(first).chain(rest.iter().map(|value| sign * value)).collect()
        };
        let rooms = self.rows.iter().map(|(price, row)| (*price, wide(0.0, row, 1.0)));
        let cuts = cuts.iter().map(|cut| (0.0, wide(1.0, cut, -1.0)));
        let rows: Vec<(f64, Vec<f64>)> = rooms.chain(cuts).collect();
        let mut gains = vec![0.0; 1 + self.variables()];
        gains[0] = 1.0;
        let mut point = simplex::maximise(&gains, &rows, PIVOTS_MAX);
        let prices = point.split_off(1);
        (point[0], prices)
    }

    /// Looks at some prices: keeps them if they are the best so far, and adds the demand of each
    /// group at them.
    fn visit(&self, prices: &[f64], best: &mut Point, cuts: &mut Vec<Vec<f64>>) {
        let dims = self.dims();
        let mut cut = vec![0.0; self.variables()];
        let mut sum = 0.0;
        for (pods, request) in self.pods.iter().zip(&self.requests) {
            let worth = |group: usize| -> f64 {
                request.iter().zip(&prices[group * dims..]).map(|(need, price)| need * price).sum()
            };
            let open = (0..self.groups).filter(|group| pods.open[*group]);
            let each = open.map(|group| (worth(group), group));
            let Some((worth, group)) = each.min_by(|a, b| a.0.total_cmp(&b.0)) else { continue };
            sum += worth * float(pods.count);
            for (demand, need) in cut[group * dims..].iter_mut().zip(request) {
                *demand += need * float(pods.count);
            }
        }
        cuts.push(cut);
        if best.prices.is_empty() || sum > best.worth {
            *best = Point { prices: prices.to_vec(), worth: sum };
        }
    }

    fn unscaled(&self, prices: &[f64]) -> Vec<Vec<f64>> {
        let group = |group: usize| {
            let prices = prices[group * self.dims()..].iter().zip(&self.scale);
            prices.map(|(price, by)| price / by).collect()
        };
        (0..self.groups).map(group).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pods_are_worth_what_they_must_pay() {
        // A core costs 25 on nodes that only the first may use, and 50 on those that all may use.
        let rooms: [&[i64]; 1] = [&[4_000, 16]];
        let group = |price| Group { rooms: vec![(price, rooms[0])] };
        let pods = |open: &'static [bool]| Pods { request: &[1_000, 1], count: 10, open };
        let sets = of(&[pods(&[true, true]), pods(&[false, true])], &[group(100), group(200)]);
        let worth = |set: &[f64]| set[0] * 1_000.0 + set[1];
        assert!((worth(&sets[0]) - 25.0).abs() < 0.1, "{sets:?}");
        assert!((worth(&sets[1]) - 50.0).abs() < 0.1, "{sets:?}");
    }
}
