//! A small dense linear programme by the primal simplex method (Dantzig, 1951), with Bland's rule
//! (1977) once it takes long.
//!
//! ```text
//! maximise c * x  subject to  A * x <= b,  x >= 0,  with b >= 0
//! ```
//!
//! Time: constraints * variables for each pivot.
//!
//! Invariant: deterministic; the number of pivots is bounded, and every intermediate point is
//! feasible, so stopping early costs quality and never correctness. Results guide; proofs are made
//! of integers elsewhere.

/// Below this a coefficient counts as zero.
const EPSILON: f64 = 1e-9;

/// The dictionary of a basis: each basic variable as a combination of the others.
struct Dictionary {
    /// One row a constraint: right side first, then coefficients.
    rows: Vec<Vec<f64>>,
    objective: Vec<f64>,
    /// Variable that is basic in each row; x are 0.., slacks follow.
    basic: Vec<usize>,
    /// Variable of each column.
    free: Vec<usize>,
}

/// The optimum of the programme, or the best point that the primal simplex method reaches within
/// the bound on pivots. A variable that no constraint bounds stays at zero: what nothing on offer
/// provides has no price.
pub(crate) fn maximise(c: &[f64], rows: &[(f64, Vec<f64>)], pivots_max: usize) -> Vec<f64> {
    let variables = c.len();
    let bounded = |variable: usize| rows.iter().any(|(_, row)| row[variable] > EPSILON);
    let gain = |(variable, c): (usize, &f64)| if bounded(variable) { *c } else { 0.0 };
    let mut dictionary = Dictionary {
        rows: rows
            .iter()
            .map(|(b, a)| std::iter::once(*b).chain(a.iter().copied()).collect())
            .collect(),
        objective: std::iter::once(0.0).chain(c.iter().enumerate().map(gain)).collect(),
        basic: (variables..variables + rows.len()).collect(),
        free: (0..variables).collect(),
    };
    for pivot in 0..pivots_max {
        // Largest coefficient first; Bland's rule, which cannot cycle, when that takes long.
        let Some(column) = dictionary.entering(pivot > pivots_max / 2) else { break };
        let Some(row) = dictionary.leaving(column) else { break };
        dictionary.pivot(row, column);
    }
    dictionary.point(variables)
}

impl Dictionary {
    fn entering(&self, bland: bool) -> Option<usize> {
        let gains = self.objective.iter().enumerate().skip(1).filter(|(_, gain)| **gain > EPSILON);
        if bland {
            gains.min_by_key(|(column, _)| self.free[column - 1]).map(|(column, _)| column)
        } else {
            gains.max_by(|a, b| a.1.total_cmp(b.1).then(b.0.cmp(&a.0))).map(|(column, _)| column)
        }
    }

    fn leaving(&self, column: usize) -> Option<usize> {
        let bounding = self.rows.iter().enumerate().filter(|(_, row)| row[column] > EPSILON);
        let ratio = |row: &[f64]| row[0] / row[column];
        bounding
            .min_by(|a, b| {
                ratio(a.1).total_cmp(&ratio(b.1)).then(self.basic[a.0].cmp(&self.basic[b.0]))
            })
            .map(|(row, _)| row)
    }

    fn pivot(&mut self, row: usize, column: usize) {
        let mut leader = std::mem::take(&mut self.rows[row]);
        let pivot = leader[column];
        leader.iter_mut().for_each(|value| *value /= pivot);
        leader[column] = 1.0 / pivot;
        for other in self.rows.iter_mut().filter(|other| !other.is_empty()) {
            eliminate(other, &leader, column, 1.0);
            other[0] = other[0].max(0.0);
        }
        eliminate(&mut self.objective, &leader, column, -1.0);
        self.rows[row] = leader;
        std::mem::swap(&mut self.basic[row], &mut self.free[column - 1]);
    }

    fn point(&self, variables: usize) -> Vec<f64> {
        let mut point = vec![0.0; variables];
        for (row, variable) in self.rows.iter().zip(&self.basic) {
            if *variable < variables {
                point[*variable] = row[0].max(0.0);
            }
        }
        point
    }
}

/// Replaces the entering variable in `target` by the leader's expression for it. The constant of
/// the objective grows where that of a constraint shrinks, hence the sign.
fn eliminate(target: &mut [f64], leader: &[f64], column: usize, constant_sign: f64) {
    let factor = target[column];
    if factor == 0.0 {
        return;
    }
    target[0] -= constant_sign * factor * leader[0];
    target[column] = 0.0;
    for (value, lead) in target.iter_mut().zip(leader).skip(1) {
        *value -= factor * lead;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_textbook_optimum() {
        // max 3x + 5y; x <= 4, 2y <= 12, 3x + 2y <= 18: x = 2, y = 6.
        let rows = [(4.0, vec![1.0, 0.0]), (12.0, vec![0.0, 2.0]), (18.0, vec![3.0, 2.0])];
        let optimum = maximise(&[3.0, 5.0], &rows, 100);
        let near = |a: &[f64], b: &[f64]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-9);
        assert!(near(&optimum, &[2.0, 6.0]), "{optimum:?}");
    }

    #[test]
    fn what_nothing_bounds_has_no_price_and_disturbs_nothing() {
        let optimum = maximise(&[5.0, 1.0], &[(3.0, vec![0.0, 1.0])], 50);
        assert!(optimum[0] == 0.0 && (optimum[1] - 3.0).abs() < 1e-9, "{optimum:?}");
    }

    #[test]
    fn degenerate_programmes_end() {
        let rows = [(0.0, vec![1.0, -1.0]), (0.0, vec![-1.0, 1.0]), (1.0, vec![1.0, 1.0])];
        let optimum = maximise(&[1.0, 1.0], &rows, 50);
        assert!((optimum.iter().sum::<f64>() - 1.0).abs() < 1e-9, "{optimum:?}");
    }
}
