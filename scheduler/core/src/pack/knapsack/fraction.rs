//! The pricing problem in fractions of pods: what a bin holds at most when pods may be divided.
//!
//! ```text
//! maximise   sum of value[i] * a[i]
//! subject to sum of shares[i][r] * a[i] <= 1  for each resource r that guides
//!            0 <= a[i] <= most[i]
//! ```
//!
//! Solved by the simplex method for bounded variables (Dantzig, 1955), with a row for each resource
//! and none for the bounds. Unlike the filling of one weighted size, whose surplus of one resource
//! pays for the lack of another, what it returns fits the bin: as a column of a programme it says
//! no more than is so.
//!
//! Time: pivots * rows * items; mostly as many pivots as there are resources, or classes that fit
//! whole.
//!
//! Invariant: the value is that of the weights, which no filling exceeds whatever they are, so
//! neither rounding nor an early end makes it too low.

use crate::pack::problem::item_table::Shares;

/// Most pivots for each item.
const PIVOTS_EACH: usize = 4;
/// What counts as nothing.
const TINY: f64 = 1e-9;

/// Pods that may be divided.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Item {
    /// Value of one of them; at least 0.
    pub(crate) value: f64,
    /// How many there are.
    pub(crate) most: f64,
    /// What share of each resource of the bin one of them takes.
    pub(crate) shares: Shares,
}

/// The best filling.
#[derive(Clone, Debug)]
pub(crate) struct Filling {
    /// No filling is worth more.
    pub(crate) value: f64,
    /// How much it holds of each item.
    pub(crate) amounts: Vec<f64>,
    /// What each resource weighs for that to show: one altogether, or nothing where all that there
    /// is fits.
    pub(crate) weights: Shares,
}

/// The best filling of a bin with this many resources that guide.
pub(crate) fn best(items: &[Item], guides: usize) -> Filling {
    let mut tableau = Tableau::new(items, guides);
    for _ in 0..PIVOTS_EACH * (items.len() + guides) {
        let Some(entering) = tableau.entering() else { break };
        tableau.enter(entering);
    }
    tableau.answer(items)
}

/// Items first, then the slack of each resource.
struct Tableau {
    /// Coefficients of all variables, by resource.
    rows: Vec<Vec<f64>>,
    /// What one more of each variable gains.
    gains: Vec<f64>,
    /// Most of each variable.
    most: Vec<f64>,
    /// Variables outside the basis that are at their most; others there are 0.
    full: Vec<bool>,
    /// The variable of each row, and how much there is of it.
    basis: Vec<(usize, f64)>,
    /// What counts as no gain.
    no_gain: f64,
}

/// What ends the growth of a variable.
#[derive(Clone, Copy)]
enum Stop {
    /// It is at its other bound itself.
    Own,
    /// The variable of a row is at its most, or at nothing.
    Row { row: usize, full: bool },
}

impl Tableau {
    fn new(items: &[Item], guides: usize) -> Self {
        let row = |resource: usize| {
            let slack = (0..guides).map(|other| f64::from(u8::from(other == resource)));
            items.iter().map(|item| item.shares[resource]).chain(slack).collect()
        };
        let slacks = std::iter::repeat_n(f64::INFINITY, guides);
        Self {
            rows: (0..guides).map(row).collect(),
            gains: items.iter().map(|item| item.value).chain(vec![0.0; guides]).collect(),
            most: items.iter().map(|item| item.most).chain(slacks).collect(),
            full: vec![false; items.len() + guides],
            no_gain: items.iter().map(|item| item.value).fold(0.0, f64::max) * TINY,
            basis: (0..guides).map(|resource| (items.len() + resource, 1.0)).collect(),
        }
    }

    /// The variable outside the basis whose change gains most, for each unit; none at the optimum.
    fn entering(&self) -> Option<usize> {
        let gain = |variable: usize| match self.full[variable] {
            true => -self.gains[variable],
            false => self.gains[variable],
        };
        let gaining = (0..self.gains.len()).filter(|variable| gain(*variable) > self.no_gain);
        let outside = gaining.filter(|variable| self.basis.iter().all(|(own, _)| own != variable));
        outside.max_by(|a, b| gain(*a).total_cmp(&gain(*b)).then(b.cmp(a)))
    }

    /// Moves a variable from one bound towards the other until something stops it.
    fn enter(&mut self, variable: usize) {
        let sign = if self.full[variable] { -1.0 } else { 1.0 };
        let (mut step, mut stop) = (self.most[variable], Stop::Own);
        for (row, (own, amount)) in self.basis.iter().enumerate() {
            let rate = sign * self.rows[row][variable];
            let full = rate < 0.0;
            let left = if full { self.most[*own] - amount } else { *amount };
            let within = left.max(0.0) / rate.abs();
            if rate.abs() > TINY && within < step {
                (step, stop) = (within, Stop::Row { row, full });
            }
        }
        for (row, (_, amount)) in self.basis.iter_mut().enumerate() {
            *amount -= sign * self.rows[row][variable] * step;
        }
        match stop {
            Stop::Own => self.full[variable] = !self.full[variable],
            Stop::Row { row, full } => {
                let amount = if self.full[variable] { self.most[variable] - step } else { step };
                let (leaving, _) = std::mem::replace(&mut self.basis[row], (variable, amount));
                self.full[leaving] = full;
                self.full[variable] = false;
                self.pivot(row, variable);
            }
        }
    }

    fn pivot(&mut self, row: usize, variable: usize) {
        let mut own = std::mem::take(&mut self.rows[row]);
        let by = own[variable];
        own.iter_mut().for_each(|value| *value /= by);
        for other in self.rows.iter_mut().chain([&mut self.gains]).filter(|row| !row.is_empty()) {
            let factor = other[variable];
            other.iter_mut().zip(&own).for_each(|(value, own)| *value -= factor * own);
        }
        self.rows[row] = own;
    }

    fn answer(&self, items: &[Item]) -> Filling {
        let mut prices = Shares::default();
        for (price, gain) in prices.iter_mut().zip(&self.gains[items.len()..]) {
            *price = (-gain).max(0.0);
        }
        let cost = |shares: &Shares| -> f64 {
            prices.iter().zip(shares).map(|(price, of)| price * of).sum()
        };
        let over = |item: &Item| item.most * (item.value - cost(&item.shares)).max(0.0);
        let sum: f64 = prices.iter().sum();
        let weights = if sum > 0.0 { prices.map(|price| price / sum) } else { prices };
        let value = sum + items.iter().map(over).sum::<f64>();
        Filling { value, amounts: self.amounts(items.len()), weights }
    }

    /// How much there is of each item.
    fn amounts(&self, items: usize) -> Vec<f64> {
        let outside = self.full.iter().zip(&self.most).take(items);
        let mut amounts: Vec<f64> =
            outside.map(|(full, most)| if *full { *most } else { 0.0 }).collect();
        for (variable, amount) in self.basis.iter().filter(|(variable, _)| *variable < items) {
            amounts[*variable] = amount.clamp(0.0, self.most[*variable]);
        }
        amounts
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn item((value, most, cpu, memory): (f64, f64, f64, f64)) -> Item {
        Item { value, most, shares: [cpu, memory, 0.0, 0.0] }
    }

    #[test]
    fn what_one_resource_has_to_spare_does_not_pay_for_another() {
        // Weighed into one, a bin seems to hold 1.5 of the first and none of the second.
        let items = [(1.0, 9.0, 0.2, 0.4), (1.6, 9.0, 0.5, 0.25)].map(item);
        let filling = best(&items, 2);
        // 0.2 a + 0.5 b = 1 and 0.4 a + 0.25 b = 1.
        assert!((filling.amounts[0] - 5.0 / 3.0).abs() < 1e-9, "{filling:?}");
        assert!((filling.amounts[1] - 4.0 / 3.0).abs() < 1e-9, "{filling:?}");
        assert!((filling.value - (5.0 + 1.6 * 4.0) / 3.0).abs() < 1e-9, "{filling:?}");
    }

    #[test]
    fn where_all_fits_nothing_weighs_anything() {
        let filling = best(&[(1.0, 2.0, 0.2, 0.1)].map(item), 2);
        assert_eq!(filling.amounts, [2.0]);
        assert_eq!(filling.weights, Shares::default());
    }

    proptest! {
        #[test]
        fn the_filling_fits_and_is_worth_what_the_weights_allow(
            items in prop::collection::vec((0.1..9.0, 1.0..20.0, 0.01..0.9, 0.01..0.9), 1..12),
        ) {
            let items: Vec<Item> = items.into_iter().map(item).collect();
            let filling = best(&items, 2);
            let sum = |each: &dyn Fn(&Item) -> f64| -> f64 {
                items.iter().zip(&filling.amounts).map(|(item, amount)| each(item) * amount).sum()
            };
            for (item, amount) in items.iter().zip(&filling.amounts) {
                prop_assert!((0.0..=item.most).contains(amount));
            }
            prop_assert!(sum(&|item| item.shares[0]) <= 1.0 + 1e-6);
            prop_assert!(sum(&|item| item.shares[1]) <= 1.0 + 1e-6);
            let held = sum(&|item| item.value);
            prop_assert!((held - filling.value).abs() <= 1e-6 * filling.value, "{held} {filling:?}");
        }
    }
}
