//! An entry of a max-heap over a list whose ranks change one at a time.
//!
//! Invariant: ties go to the lowest index, so that the heap gives what a scan of the list would.

use std::cmp::Ordering;

/// One of a list.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HeapEntry {
    /// The higher, the sooner.
    pub(crate) rank: f64,
    /// Its index.
    pub(crate) at: usize,
}

impl Ord for HeapEntry {
    fn cmp(&self, other: &Self) -> Ordering {
        self.rank.total_cmp(&other.rank).then(other.at.cmp(&self.at))
    }
}

impl PartialOrd for HeapEntry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for HeapEntry {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for HeapEntry {}

#[cfg(test)]
mod tests {
    use std::collections::BinaryHeap;

    use super::*;

    #[test]
    fn the_highest_comes_first_and_of_equals_the_first() {
        let ranks = [1.0, 3.0, 2.0, 3.0];
        let all = ranks.iter().enumerate().map(|(at, rank)| HeapEntry { rank: *rank, at });
        let mut heap: BinaryHeap<HeapEntry> = all.collect();
        let order: Vec<usize> = std::iter::from_fn(|| heap.pop()).map(|next| next.at).collect();
        assert_eq!(order, [1, 3, 2, 0]);
    }
}
