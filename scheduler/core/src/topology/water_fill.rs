//! Water-filling: pods run to where they are wanted most, and fill places as they become equal. For
//! places with level base[d] + slope[d] * n[d], the n of which the highest level is least.
//!
//! Time: a few sorts of the places, whatever the number of pods.
//!
//! Invariant: the result is that of putting pods one by one where the level is lowest, ties by
//! rank; the work is that of a few passes over the basins.

/// A place that pods run to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Basin {
    /// Level before any pod.
    pub(crate) base: i64,
    /// How much each pod raises it; zero for a place that stays as good as it is.
    pub(crate) slope: i64,
    /// Order among equals; different for each basin.
    pub(crate) rank: usize,
    /// Most pods it takes.
    pub(crate) limit: i64,
}

impl Basin {
    /// Pods that find a level of at most `level` there.
    fn below(&self, level: i64) -> i64 {
        if level < self.base {
            return 0;
        }
        let above = level.saturating_sub(self.base);
        let pods = above.checked_div(self.slope).map_or(i64::MAX, |pods| pods.saturating_add(1));
        pods.min(self.limit)
    }
}

/// Pods for each basin, `count` in all unless limits leave no more.
pub(crate) fn fill(basins: &[Basin], count: i64) -> Vec<i64> {
    let all =
        |level: i64| basins.iter().fold(0_i64, |sum, basin| sum.saturating_add(basin.below(level)));
    let lowest = basins.iter().filter(|b| b.limit > 0).map(|basin| basin.base).min();
    let Some(mut low) = lowest.filter(|_| count > 0) else { return vec![0; basins.len()] };
    let steep = basins.iter().map(|basin| basin.slope).max().unwrap_or(0);
    let top = basins.iter().map(|basin| basin.base).max().unwrap_or(low);
    let mut high = top.saturating_add(steep.saturating_mul(count));
    // The lowest level at which all pods have a place, or the highest that is of use.
    while low < high {
        let middle = low + high.saturating_sub(low) / 2;
        if all(middle) >= count { high = middle } else { low = middle + 1 }
    }
    let mut assigned: Vec<i64> =
        basins.iter().map(|basin| basin.below(low.saturating_sub(1))).collect();
    let mut left = count - assigned.iter().sum::<i64>();
    let mut order: Vec<usize> = (0..basins.len()).collect();
    order.sort_by_key(|at| basins[*at].rank);
    for at in order {
        let more = (basins[at].below(low) - assigned[at]).min(left);
        assigned[at] += more;
        left -= more;
    }
    assigned
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The definition, pod by pod.
    fn pour(basins: &[Basin], count: i64) -> Vec<i64> {
        let mut assigned = vec![0; basins.len()];
        for _ in 0..count {
            let open = (0..basins.len()).filter(|at| assigned[*at] < basins[*at].limit);
            let level = |at: &usize| basins[*at].base + basins[*at].slope * assigned[*at];
            let Some(at) = open.min_by_key(|at| (level(at), basins[*at].rank)) else { break };
            assigned[at] += 1;
        }
        assigned
    }

    #[test]
    fn filling_at_once_equals_pouring_one_by_one() {
        let mut seed = 1_u64;
        let mut random = |below: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            i64::try_from((seed >> 33) % below).unwrap()
        };
        for _ in 0..2_000 {
            let basin =
                |rank| Basin { base: random(7) - 3, slope: random(3), rank, limit: random(6) };
            let basins: Vec<Basin> = (0..4).map(basin).collect();
            let count = random(25);
            assert_eq!(fill(&basins, count), pour(&basins, count), "{basins:?} {count}");
        }
    }

    #[test]
    fn no_number_of_pods_is_too_large() {
        let basin = Basin { base: 0, slope: 1, rank: 0, limit: i64::MAX };
        let assigned = fill(&[basin, Basin { rank: 1, ..basin }], 2_000_000_001);
        assert_eq!(assigned, [1_000_000_001, 1_000_000_000]);
        assert_eq!(fill(&[Basin { slope: 0, ..basin }], 5), [5]);
        assert_eq!(fill(&[Basin { limit: 0, ..basin }], 5), [0]);
        assert_eq!(fill(&[], 5), Vec::<i64>::new());
    }
}
