//! The restricted master as a covering programme: buy columns so that every row is covered, no
//! limit is exceeded, and the price is least. The revised simplex method with an explicit inverse
//! (Dantzig and Orchard-Hays, 1954), and the dual simplex method (Lemke, 1954) when demands fall.
//!
//! Time: m * m + entries of all columns for each pivot, of m rows.
//!
//! Invariant: deterministic, and feasible from the first step: what no column covers is covered by
//! a penalty. Columns may be added and demands lowered at any time; the basis is kept. Results
//! guide; proofs are made of integers elsewhere.

/// Below this a number counts as zero.
const EPSILON: f64 = 1e-9;
/// Pivots after which errors in the inverse are removed by a fresh start from the basis.
const PIVOTS_EACH_REFRESH: usize = 400;

/// Something to buy: what it costs and what it adds to each row.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    cost: f64,
    entries: Vec<(usize, f64)>,
}

/// The programme with its current basis.
#[derive(Clone, Debug)]
pub(crate) struct Cover {
    /// Rows to cover; limits follow.
    cover: usize,
    /// Penalties, slacks of limits and surpluses first, then what was added.
    columns: Vec<Column>,
    /// Demands, then limits.
    right: Vec<f64>,
    /// Column that is basic in each row.
    basis: Vec<usize>,
    is_basic: Vec<bool>,
    /// Inverse of the basis, row by row.
    inverse: Vec<f64>,
    /// How much of each basic column is bought.
    level: Vec<f64>,
    /// Value of one more unit of each row.
    duals: Vec<f64>,
    pivots: usize,
    /// Numbers in all known columns.
    entries: usize,
    work: u64,
}

impl Cover {
    /// A programme without columns: `penalties` are what leaving one unit of each row uncovered
    /// costs.
    pub(crate) fn new(demands: &[f64], penalties: &[f64], limits: &[f64]) -> Self {
        let size = demands.len() + limits.len();
        let unit = |row: usize, cost: f64, by: f64| Column { cost, entries: vec![(row, by)] };
        let mut columns: Vec<Column> =
            penalties.iter().enumerate().map(|(row, cost)| unit(row, *cost, 1.0)).collect();
        columns.extend((demands.len()..size).map(|row| unit(row, 0.0, 1.0)));
        columns.extend((0..demands.len()).map(|row| unit(row, 0.0, -1.0)));
        let mut cover = Self {
            cover: demands.len(),
            is_basic: (0..columns.len()).map(|column| column < size).collect(),
            right: demands.iter().chain(limits).copied().collect(),
            basis: (0..size).collect(),
            inverse: identity(size),
            level: vec![0.0; size],
            duals: vec![0.0; size],
            columns,
            pivots: 0,
            entries: 0,
            work: 0,
        };
        cover.settle();
        cover
    }

    /// Adds a column and gives its index.
    pub(crate) fn add(&mut self, cost: f64, entries: Vec<(usize, f64)>) -> usize {
        self.entries += entries.len();
        self.columns.push(Column { cost, entries });
        self.is_basic.push(false);
        self.columns.len() - 1 - self.fixed()
    }

    /// Multiplications so far, about.
    pub(crate) fn work(&self) -> u64 {
        self.work
    }

    /// Value of one more unit of each row, then of each limit (at most zero).
    pub(crate) fn duals(&self) -> &[f64] {
        &self.duals
    }

    /// Price of the optimum over the known columns.
    pub(crate) fn price(&self) -> f64 {
        self.basis.iter().zip(&self.level).map(|(at, level)| self.columns[*at].cost * level).sum()
    }

    /// Added columns that are bought, by index, with how much; in order of index.
    pub(crate) fn bought(&self) -> Vec<(usize, f64)> {
        let fixed = self.fixed();
        let all = self.basis.iter().zip(&self.level);
        let mut bought: Vec<(usize, f64)> = all
            .filter(|(at, level)| **at >= fixed && **level > EPSILON)
            .map(|(at, level)| (at - fixed, *level))
            .collect();
        bought.sort_unstable_by_key(|(at, _)| *at);
        bought
    }

    /// Lowers the price as far as the known columns allow, in at most `steps` pivots.
    pub(crate) fn improve(&mut self, steps: usize) {
        for _ in 0..steps {
            let gain = |at: &usize| self.reduced(*at);
            let known = (0..self.columns.len()).filter(|at| !self.is_basic[*at]);
            let best = known.map(|at| (gain(&at), at)).min_by(|a, b| a.0.total_cmp(&b.0));
            let Some((gain, entering)) = best else { return };
            if gain > -EPSILON * (1.0 + self.columns[entering].cost) || !self.enter(entering) {
                return;
            }
        }
    }

    /// Sets the demands anew and repairs the basis by the dual simplex method, in at most `steps`
    /// pivots; the basis was optimal, so it stays the cheapest among those that are feasible.
    pub(crate) fn demand(&mut self, demands: &[f64], limits: &[f64], steps: usize) {
        self.right = demands.iter().chain(limits).copied().collect();
        self.settle();
        for _ in 0..steps {
            let lowest = self.level.iter().enumerate().min_by(|a, b| a.1.total_cmp(b.1));
            let Some((row, _)) = lowest.filter(|(_, level)| **level < -1e-7) else { return };
            let Some(entering) = self.dual_entering(row) else { return };
            let direction = self.direction(entering);
            self.pivot(row, entering, &direction);
        }
    }

    fn size(&self) -> usize {
        self.right.len()
    }

    /// Number of columns that are there from the start.
    fn fixed(&self) -> usize {
        self.size() + self.cover
    }

    fn reduced(&self, at: usize) -> f64 {
        let column = &self.columns[at];
        column.cost - column.entries.iter().map(|(row, by)| self.duals[*row] * by).sum::<f64>()
    }

    /// The entering column in terms of the basis.
    fn direction(&self, entering: usize) -> Vec<f64> {
        let size = self.size();
        let entries = &self.columns[entering].entries;
        let dot = |row: &[f64]| entries.iter().map(|(at, by)| row[*at] * by).sum();
        self.inverse.chunks_exact(size).map(dot).collect()
    }

    /// Brings a column into the basis; false when nothing bounds it.
    fn enter(&mut self, entering: usize) -> bool {
        let direction = self.direction(entering);
        let mut leaving: Option<(f64, f64, usize)> = None;
        for (row, by) in direction.iter().enumerate().filter(|(_, by)| **by > 1e-7) {
            let ratio = self.level[row].max(0.0) / by;
            // Of equal ratios the largest pivot: the inverse stays accurate.
            let better = leaving.is_none_or(|(least, pivot, _)| {
                ratio < least - EPSILON || (ratio < least + EPSILON && *by > pivot)
            });
            if better {
                leaving = Some((ratio, *by, row));
            }
        }
        let Some((_, _, row)) = leaving else { return false };
        self.pivot(row, entering, &direction);
        true
    }

    /// Of the columns that can raise a row, the one whose reduced cost is least for it.
    fn dual_entering(&self, row: usize) -> Option<usize> {
        let size = self.size();
        let line = &self.inverse[row * size..(row + 1) * size];
        let mut best: Option<(f64, usize)> = None;
        for (at, column) in self.columns.iter().enumerate() {
            if self.is_basic[at] {
                continue;
            }
            let by: f64 = column.entries.iter().map(|(row, by)| line[*row] * by).sum();
            if by < -1e-7 {
                let ratio = self.reduced(at).max(0.0) / -by;
                if best.is_none_or(|(least, _)| ratio < least) {
                    best = Some((ratio, at));
                }
            }
        }
        best.map(|(_, at)| at)
    }

    fn pivot(&mut self, row: usize, entering: usize, direction: &[f64]) {
        let size = self.size();
        let reduced = self.reduced(entering);
        let pivot = direction[row];
        let (above, rest) = self.inverse.split_at_mut(row * size);
        let (line, below) = rest.split_at_mut(size);
        line.iter_mut().for_each(|value| *value /= pivot);
        let others = above.chunks_exact_mut(size).zip(direction);
        let others = others.chain(below.chunks_exact_mut(size).zip(&direction[row + 1..]));
        for (other, by) in others.filter(|(_, by)| **by != 0.0) {
            other.iter_mut().zip(line.iter()).for_each(|(value, lead)| *value -= by * lead);
        }
        for (dual, lead) in self.duals.iter_mut().zip(line.iter()) {
            *dual += reduced * lead;
        }
        let step = self.level[row] / pivot;
        for (level, by) in self.level.iter_mut().zip(direction) {
            *level -= step * by;
        }
        self.level[row] = step;
        self.is_basic[self.basis[row]] = false;
        self.is_basic[entering] = true;
        self.basis[row] = entering;
        self.pivots += 1;
        self.work += (2 * size * size + self.entries + self.columns.len()) as u64;
        if self.pivots.is_multiple_of(PIVOTS_EACH_REFRESH) {
            self.refresh();
        }
    }

    /// Inverts the basis anew by elimination with the largest pivots.
    fn refresh(&mut self) {
        let size = self.size();
        let mut matrix = vec![0.0; size * size];
        for (at, column) in self.basis.iter().enumerate() {
            for (row, by) in &self.columns[*column].entries {
                matrix[row * size + at] += by;
            }
        }
        if let Some(inverse) = invert(matrix, size) {
            self.inverse = inverse;
        }
        self.settle();
    }

    /// Computes levels and duals from the inverse.
    fn settle(&mut self) {
        let size = self.size();
        let dot = |row: &[f64]| row.iter().zip(&self.right).map(|(a, b)| a * b).sum();
        self.level = self.inverse.chunks_exact(size).map(dot).collect();
        self.duals = vec![0.0; size];
        for (at, row) in self.basis.iter().zip(self.inverse.chunks_exact(size)) {
            let cost = self.columns[*at].cost;
            if cost != 0.0 {
                self.duals.iter_mut().zip(row).for_each(|(dual, by)| *dual += cost * by);
            }
        }
    }
}

fn identity(size: usize) -> Vec<f64> {
    let mut matrix = vec![0.0; size * size];
    (0..size).for_each(|at| matrix[at * size + at] = 1.0);
    matrix
}

/// The inverse of a square matrix; none when it has none.
fn invert(mut matrix: Vec<f64>, size: usize) -> Option<Vec<f64>> {
    let mut inverse = identity(size);
    for column in 0..size {
        let candidates = (column..size).map(|row| (matrix[row * size + column].abs(), row));
        let (pivot, row) = candidates.max_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1)))?;
        if pivot < EPSILON {
            return None;
        }
        for at in 0..size {
            matrix.swap(row * size + at, column * size + at);
            inverse.swap(row * size + at, column * size + at);
        }
        let pivot = matrix[column * size + column];
        let scaled = |line: &[f64]| line.iter().map(|value| value / pivot).collect::<Vec<f64>>();
        let lead = scaled(&matrix[column * size..(column + 1) * size]);
        let lead_inverse = scaled(&inverse[column * size..(column + 1) * size]);
        for row in 0..size {
            let factor = matrix[row * size + column];
            let (line, lead_line) = (&mut matrix[row * size..(row + 1) * size], &lead);
            let inverse_line = &mut inverse[row * size..(row + 1) * size];
            if row == column {
                line.copy_from_slice(lead_line);
                inverse_line.copy_from_slice(&lead_inverse);
            } else if factor != 0.0 {
                line.iter_mut().zip(lead_line).for_each(|(value, by)| *value -= factor * by);
                let pairs = inverse_line.iter_mut().zip(&lead_inverse);
                pairs.for_each(|(value, by)| *value -= factor * by);
            }
        }
    }
    Some(inverse)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-6
    }

    #[test]
    fn finds_the_fractional_optimum_with_its_values() {
        // Two rows; one column covers each twice for 3, one both for 2: 10 and 4 units.
        let mut cover = Cover::new(&[10.0, 4.0], &[100.0, 100.0], &[]);
        cover.add(3.0, vec![(0, 2.0)]);
        cover.add(3.0, vec![(1, 2.0)]);
        cover.add(2.0, vec![(0, 1.0), (1, 1.0)]);
        cover.improve(50);
        assert!(near(cover.price(), 4.0 * 2.0 + 3.0 * 3.0), "{}", cover.price());
        assert!(near(cover.duals()[0], 1.5) && near(cover.duals()[1], 0.5), "{:?}", cover.duals());
        assert_eq!(cover.bought().iter().map(|(at, _)| *at).collect::<Vec<_>>(), [0, 2]);
    }

    #[test]
    fn a_limit_has_a_value_and_what_it_leaves_uncovered_costs_the_penalty() {
        let mut cover = Cover::new(&[10.0], &[50.0], &[3.0]);
        cover.add(1.0, vec![(0, 2.0), (1, 1.0)]);
        cover.improve(50);
        assert!(near(cover.price(), 3.0 + 4.0 * 50.0), "{}", cover.price());
        assert!(cover.duals()[1] < 0.0);
    }

    #[test]
    fn lowered_demands_are_repaired_to_the_new_optimum() {
        let mut cover = Cover::new(&[10.0, 4.0], &[100.0, 100.0], &[]);
        cover.add(3.0, vec![(0, 2.0)]);
        cover.add(3.0, vec![(1, 2.0)]);
        cover.add(2.0, vec![(0, 1.0), (1, 1.0)]);
        cover.improve(50);
        cover.demand(&[1.0, 4.0], &[], 50);
        assert!(near(cover.price(), 2.0 + 4.5), "{}", cover.price());
    }
}
