//! How the two plans of one cluster compare.
//!
//! Invariant: worse is a plan that the check refuses, fewer pods placed, or a higher price for as
//! many. A plan of the peer that the check refuses is no measure, as kube-scheduler would not bind
//! its pods.

use std::cmp::Ordering;

use super::super::outcome::Outcome;

/// How one cluster ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Verdict {
    /// Ours places more, or costs less.
    Better,
    /// Both do the same.
    Same,
    /// Ours is not better, and the peer's plan cannot be carried out.
    PeerRefused,
    /// Ours costs more.
    Dearer,
    /// Ours places fewer pods.
    Fewer,
    /// Ours cannot be carried out.
    Refused,
}

impl Verdict {
    /// All of them, the best first.
    pub(super) const ALL: [Self; 6] =
        [Self::Better, Self::Same, Self::PeerRefused, Self::Dearer, Self::Fewer, Self::Refused];

    /// Compares two plans.
    pub(super) fn of(ours: &Outcome, theirs: &Outcome) -> Self {
        let wrong = |outcome: &Outcome| outcome.violations.is_some_and(|found| found > 0);
        let dearer = ours.price_usd_per_hour - theirs.price_usd_per_hour;
        match ours.placed.cmp(&theirs.placed) {
            _ if wrong(ours) => Self::Refused,
            Ordering::Greater => Self::Better,
            Ordering::Equal if dearer < -1e-7 => Self::Better,
            _ if wrong(theirs) => Self::PeerRefused,
            Ordering::Less => Self::Fewer,
            Ordering::Equal if dearer > 1e-7 => Self::Dearer,
            Ordering::Equal => Self::Same,
        }
    }

    /// True when ours does worse.
    pub(super) fn is_worse(self) -> bool {
        self > Self::PeerRefused
    }

    /// True when ours does no worse than a plan of the peer's that can be carried out.
    pub(super) fn is_no_worse(self) -> bool {
        self <= Self::Same
    }

    /// In a few words.
    pub(super) fn says(self) -> &'static str {
        match self {
            Self::Better => "more pods, or the same for less",
            Self::Same => "as many pods for the same price",
            Self::PeerRefused => "no better, but kube-scheduler would not bind the peer's plan",
            Self::Dearer => "dearer",
            Self::Fewer => "fewer pods",
            Self::Refused => "kube-scheduler would not bind ours",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(placed: u64, price_usd_per_hour: f64, violations: u64) -> Outcome {
        let violations = Some(violations);
        Outcome { placed, price_usd_per_hour, violations, ..Outcome::default() }
    }

    #[test]
    fn worse_is_what_is_worse_against_a_plan_that_can_be_carried_out() {
        let peer = outcome(5, 1.0, 0);
        let table = [
            (outcome(5, 1.0, 0), Verdict::Same),
            (outcome(5, 0.9, 0), Verdict::Better),
            (outcome(6, 2.0, 0), Verdict::Better),
            (outcome(5, 1.1, 0), Verdict::Dearer),
            (outcome(4, 0.5, 0), Verdict::Fewer),
            (outcome(6, 0.5, 1), Verdict::Refused),
        ];
        for (ours, verdict) in table {
            assert_eq!(Verdict::of(&ours, &peer), verdict, "{ours:?}");
        }
        let refused = outcome(6, 0.5, 1);
        assert_eq!(Verdict::of(&outcome(5, 1.0, 0), &refused), Verdict::PeerRefused);
        assert_eq!(Verdict::of(&outcome(6, 0.4, 0), &refused), Verdict::Better);
    }
}
