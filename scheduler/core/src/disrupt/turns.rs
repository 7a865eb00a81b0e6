//! Which nodes a plan tries to do without where there are more than it may try.
//!
//! Invariant: a function of the order of the nodes and of the time that the plan is made for. While
//! the order stays, every node is tried within as many turns as that takes.

/// How long the same nodes are tried, in milliseconds: a fleet of a thousand is through in twenty
/// minutes, at a plan for each turn where nothing else asks for one.
const TURN_MS: i64 = 30_000;

/// Whose turn it is.
pub(super) struct Turns {
    number: usize,
    ends_ms: i64,
    left_out: bool,
}

impl Turns {
    /// The turn of a time, in milliseconds since 1970.
    pub(super) fn at(now_ms: i64) -> Self {
        let number = now_ms.div_euclid(TURN_MS);
        let ends_ms = number.saturating_add(1).saturating_mul(TURN_MS);
        Self { number: usize::try_from(number).unwrap_or(0), ends_ms, left_out: false }
    }

    /// At most so many: all where these are enough, else a half from the beginning of the order,
    /// which promise most, and a half of the others, whose turn it is.
    pub(super) fn some<T: Copy>(&mut self, order: &[T], most: usize) -> Vec<T> {
        if order.len() <= most {
            return order.to_vec();
        }
        let first = most / 2;
        let others = self.others(order, first, most - first);
        order[..first].iter().copied().chain(others).collect()
    }

    /// At most so many of what comes after the first ones, whose turn it is.
    pub(super) fn others<T: Copy>(&mut self, order: &[T], first: usize, most: usize) -> Vec<T> {
        let others = order.get(first..).unwrap_or_default();
        let begin = self.number.wrapping_mul(most).checked_rem(others.len()).unwrap_or(0);
        self.left_out |= others.len() > most;
        others.iter().copied().cycle().skip(begin).take(most.min(others.len())).collect()
    }

    /// When others will be tried, in milliseconds since 1970; none where none was left out.
    pub(super) fn ends_ms(&self) -> Option<i64> {
        self.left_out.then_some(self.ends_ms)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn few_are_tried_always_and_of_many_all_by_turns() {
        let mut turns = Turns::at(59_999);
        assert_eq!(turns.some(&[3, 1, 2], 3), [3, 1, 2]);
        assert_eq!((turns.others(&[3, 1, 2], 4, 2), turns.ends_ms()), (vec![], None));
        let order: Vec<u32> = (0..10).collect();
        let tried = |at: i64| Turns::at(at * TURN_MS).some(&order, 4);
        assert_eq!([tried(0), tried(1)], [[0, 1, 2, 3], [0, 1, 4, 5]]);
        assert_eq!(tried(4), [0, 1, 2, 3], "those of the first turn again");
        let all: BTreeSet<u32> = (7..11).flat_map(tried).collect();
        assert_eq!(all.len(), order.len());
        turns.some(&order, 4);
        assert_eq!(turns.ends_ms(), Some(60_000));
    }
}
