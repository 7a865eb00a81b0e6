//! What a violation is about: the part of a plan that would have to go.
//!
//! Invariant: without these parts the rule holds, as far as the rule alone can tell. What is not
//! named is not to blame.

use crate::answer::Target;
use crate::vocabulary::ids::{PodUid, ShapeId};

/// A part of a plan.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// The lower bound, and the totals that are only told.
    Bound,
    /// Wherever a pod is to go.
    Pod(PodUid),
    /// All that the plan brings to a place.
    Place(Target),
    /// Pods of one shape that the plan brings to a place.
    Arrivals {
        /// The place.
        target: Target,
        /// Their shape.
        shape: ShapeId,
        /// How many of them, the last in order of UID.
        count: i64,
    },
    /// A node to launch, by index.
    Launch(usize),
    /// A disruption, by index.
    Disruption(usize),
}
