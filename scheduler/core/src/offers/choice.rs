//! Which of many acceptable offers a launch may choose from.
//!
//! Invariant: never more than one fleet request takes; as many values of each label are among them
//! as `minValues` asks for, where that many are to be had.

use std::collections::BTreeSet;

/// Most candidates of a launch; what one fleet request takes.
pub const CANDIDATES_MAX: usize = 60;

/// What there is to choose from.
pub(crate) struct Choices<'c, L> {
    /// Offers, least cost first.
    pub(crate) all: &'c [usize],
    /// The value of a label of an offer.
    pub(crate) label: L,
    /// Labels, and how many values of each are to stay open.
    pub(crate) demands: &'c [(&'c str, usize)],
}

impl<'c, 'l, L: Fn(usize, &str) -> Option<&'l str>> Choices<'c, L> {
    /// `first`, then offers of further values until each demand is met, then those of least cost
    /// that are `fine`; and whether all demands are met.
    pub(crate) fn choose(
        &self,
        first: usize,
        fine: impl Fn(&usize) -> bool,
    ) -> (BTreeSet<usize>, bool) {
        let mut chosen = BTreeSet::from([first]);
        let mut met = true;
        for demand in self.demands {
            met &= self.meet(*demand, &mut chosen);
        }
        for at in self.all.iter().filter(|at| fine(at)) {
            if chosen.len() >= CANDIDATES_MAX {
                break;
            }
            chosen.insert(*at);
        }
        (chosen, met)
    }

    /// Chooses, in order, until there are enough values of one label. False when there are not.
    fn meet(&self, (key, least): (&str, usize), chosen: &mut BTreeSet<usize>) -> bool {
        let known = chosen.iter().filter_map(|at| (self.label)(*at, key));
        let mut values: BTreeSet<&str> = known.collect();
        for at in self.all {
            if values.len() >= least || chosen.len() >= CANDIDATES_MAX {
                break;
            }
            if (self.label)(*at, key).is_some_and(|value| values.insert(value)) {
                chosen.insert(*at);
            }
        }
        values.len() >= least
    }
}
