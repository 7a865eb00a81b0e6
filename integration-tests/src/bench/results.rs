//! What a whole run of the benchmarks has measured.
//!
//! Invariant: rows are found by workload and pool, cases by their names; what failed is not there.

use super::catalogues::Pool;
use super::latency::{Case, Measured};
use super::runs::Row;

/// Everything that was measured.
#[derive(Clone, Debug, Default)]
pub struct Results {
    /// Rows of the tables.
    pub rows: Vec<Row>,
    /// Cases with a world of their own.
    pub cases: Vec<(Case, Measured)>,
    /// Whether it was a quick run.
    pub quick: bool,
    /// What was measured: the commit, as it was before the documents were written.
    pub commit: String,
}

impl Results {
    /// The row of a workload on a pool.
    #[must_use]
    pub fn row(&self, workload: &str, pool: Pool) -> Option<&Row> {
        self.rows.iter().find(|row| row.case.workload == workload && row.case.pool == pool)
    }

    /// What a case gave; none when it gave nothing to measure.
    #[must_use]
    pub fn case(&self, case: Case) -> Option<&Measured> {
        let mut measured = self.cases.iter().filter(|(_, found)| found.runs > 0);
        measured.find(|(known, _)| *known == case).map(|(_, found)| found)
    }
}
