//! A round of pricing, which every restricted master goes through: its dual values, drawn towards
//! the best proved ones, say which fillings of bins to look for, and those that are worth more than
//! they cost at the master's own values become columns.
//!
//! Time: two looks at every bin at the most.
//!
//! Invariant: a column is added only while its reduced cost at the master's own dual values is
//! below zero.

use crate::pack::column_generation::stability_centre::Centre;
use crate::pack::problem::Problem;
use crate::pack::problem::item_table::ItemTable;
use crate::pack::problem::vector::float;

/// Columns added in one round.
const COLUMNS_EACH_ROUND: usize = 40;

/// A restricted master and its pricing problems.
pub(crate) trait Pricing {
    /// A filling of one bin.
    type Filling;
    /// How much the best proved values count beside the master's own: a share of one.
    const CENTRE_WEIGHT: f64;
    /// A filling must be worth more than this many times its price to be a column.
    const WORTH_MIN: f64;

    /// The best proved values.
    fn centre(&self) -> &Centre;
    /// Good fillings at these values. What the values prove is offered to the centre.
    fn sweep(&mut self, values: &[f64]) -> Vec<Self::Filling>;
    /// What a filling is worth at these values for its price.
    fn worth(&self, filling: &Self::Filling, values: &[f64]) -> f64;
    /// Makes a filling a column; false when it is one.
    fn add(&mut self, filling: Self::Filling) -> bool;
}

/// Looks for columns at values between the master's `own` and the best proved ones, and, when that
/// finds none, at its own; says how many were added.
pub(crate) fn round<P: Pricing>(master: &mut P, own: &[f64]) -> usize {
    for weight in [P::CENTRE_WEIGHT, 0.0] {
        let values = master.centre().between(own, weight);
        let found = master.sweep(&values).into_iter();
        let mut found: Vec<(f64, P::Filling)> = found
            .map(|filling| (master.worth(&filling, own), filling))
            .filter(|(worth, _)| *worth > P::WORTH_MIN)
            .collect();
        found.sort_by(|a, b| b.0.total_cmp(&a.0));
        found.truncate(COLUMNS_EACH_ROUND);
        let added = found.into_iter().filter_map(|(_, filling)| master.add(filling).then_some(()));
        let added = added.count();
        if added > 0 {
            return added;
        }
    }
    0
}

/// A bin that holds pods of one class only.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Alone {
    /// Bin.
    pub(crate) bin: usize,
    /// How many it holds of those that there are.
    pub(crate) most: i64,
    /// Its price for each of them.
    pub(crate) each: f64,
}

/// For each class the bin on which pods of it alone are cheapest; none where it fits nowhere.
pub(crate) fn alone<'t>(
    problem: &Problem,
    tables: impl IntoIterator<Item = &'t ItemTable>,
) -> Vec<Option<Alone>> {
    let mut best: Vec<Option<Alone>> = vec![None; problem.classes.len()];
    for table in tables {
        let price = float(problem.bins[table.bin].price);
        for item in &table.items {
            let most = item.most.min(problem.classes[item.class].count.max(1));
            let each = price / float(most);
            if best[item.class].is_none_or(|known| each < known.each) {
                best[item.class] = Some(Alone { bin: table.bin, most, each });
            }
        }
    }
    best
}
