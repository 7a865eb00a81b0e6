//! What each step of a plan came to, for people and traces.
//!
//! Invariant: says nothing that the plan depends on; equal questions have equal steps.

use std::fmt;

use crate::answer::Plan;
use crate::bound::BoundKind;

/// A plan and how it came about.
#[derive(Clone, Debug)]
pub struct Planned {
    /// The plan.
    pub plan: Plan,
    /// What each step came to.
    pub steps: Steps,
}

/// What each step of a plan came to, in their order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Steps {
    /// Names became numbers.
    pub resolved: Resolved,
    /// Everything on offer got a cost and the room that it leaves for pods.
    pub priced: Priced,
    /// Pods were packed, all at once.
    pub placed: Counts,
    /// Pods without a place were tried once more, one after the other.
    pub retried: Counts,
    /// Nodes to launch, room of capacity buffers and replacements included.
    pub launches: usize,
    /// Decisions to take nodes out of service.
    pub disruptions: usize,
    /// How the lower bound was proved, and how far the plan's cost lies above it, in millionths.
    pub proved: (BoundKind, i64),
}

/// What a question is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Resolved {
    /// Shapes of pods.
    pub shapes: usize,
    /// Pods that wait.
    pub pods: usize,
    /// Nodes that exist or are in flight.
    pub nodes: usize,
}

/// What is on offer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Priced {
    /// Pools that can buy.
    pub pools: usize,
    /// Offers: a type in a zone, bought in one way, from one pool.
    pub offers: usize,
}

/// Where pods are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Pods on nodes that exist or are in flight.
    pub on_existing: i64,
    /// Pods on new nodes.
    pub on_new: i64,
    /// New nodes.
    pub new_nodes: i64,
    /// Pods without a place.
    pub unplaced: i64,
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { on_existing, on_new, new_nodes, unplaced } = self;
        let pods = counted(*on_existing, "pod", "pods");
        let new = counted(*new_nodes, "new one", "new ones");
        write!(f, "{pods} on existing nodes, {on_new} on {new}, {unplaced} without a place")
    }
}

impl Steps {
    /// The steps' names, and what each came to.
    #[must_use]
    pub fn told(&self) -> [(&'static str, String); 7] {
        let Self { resolved, priced, placed, retried, launches, disruptions, proved } = self;
        let Resolved { shapes, pods, nodes } = resolved;
        let (kind, gap_ppm) = proved;
        [
            (
                "resolve",
                format!(
                    "{} of {}, {}",
                    counted(*pods, "pod", "pods"),
                    counted(*shapes, "shape", "shapes"),
                    counted(*nodes, "existing node", "existing nodes")
                ),
            ),
            (
                "price",
                format!(
                    "{} of {}",
                    counted(priced.offers, "offer", "offers"),
                    counted(priced.pools, "pool", "pools")
                ),
            ),
            ("place", placed.to_string()),
            ("retry", retried.to_string()),
            ("compose", counted(*launches, "launch", "launches")),
            ("disrupt", counted(*disruptions, "decision", "decisions")),
            ("prove", format!("{kind:?}, {gap_ppm} ppm above the bound")),
        ]
    }
}

fn counted<N: fmt::Display + PartialEq + From<u8>>(count: N, one: &str, many: &str) -> String {
    let noun = if count == N::from(1) { one } else { many };
    format!("{count} {noun}")
}
