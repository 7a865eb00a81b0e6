//! How trials ended, and what that says of plans.
//!
//! Invariant: a pod counts once. A pod that is where a pod of its shape was planned counts as bound
//! elsewhere all the same; how many of those there are is said apart.

use std::collections::BTreeMap;

/// What a plan says of a pod.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Planned {
    /// Its shape.
    pub shape: String,
    /// Its node; none when the plan calls it impossible.
    pub node: Option<String>,
    /// Why it is impossible.
    pub why: String,
}

/// Where a pod went.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ended {
    /// Name.
    pub name: String,
    /// What the plan says of it.
    pub planned: Planned,
    /// Where it is.
    pub node: Option<String>,
    /// What kube-scheduler says of it when it is nowhere.
    pub said: String,
}

/// Where all pods of a trial went.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Pods that waited.
    pub pods: Vec<Ended>,
    /// Pods of DaemonSets that have no node, and what kube-scheduler says of them.
    pub daemons_waiting: Vec<(String, String)>,
}

/// Numbers of one trial or of many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Trials.
    pub trials: usize,
    /// Pods that waited.
    pub pods: usize,
    /// Pods that the plan places.
    pub planned: usize,
    /// Those that were bound where they are planned.
    pub as_planned: usize,
    /// Places that a pod of the planned shape has.
    pub by_shape: usize,
    /// Planned pods that were bound anywhere.
    pub bound: usize,
    /// Pods that the plan calls impossible.
    pub impossible: usize,
    /// Those that were bound.
    pub impossible_bound: usize,
    /// Pods of DaemonSets without a node.
    pub daemons_waiting: usize,
}

impl Outcome {
    /// Its numbers.
    #[must_use]
    pub fn tally(&self) -> Tally {
        let planned = || self.pods.iter().filter(|pod| pod.planned.node.is_some());
        let impossible = || self.pods.iter().filter(|pod| pod.planned.node.is_none());
        Tally {
            trials: 1,
            pods: self.pods.len(),
            planned: planned().count(),
            as_planned: planned().filter(|pod| pod.node == pod.planned.node).count(),
            by_shape: self.by_shape(),
            bound: planned().filter(|pod| pod.node.is_some()).count(),
            impossible: impossible().count(),
            impossible_bound: impossible().filter(|pod| pod.node.is_some()).count(),
            daemons_waiting: self.daemons_waiting.len(),
        }
    }

    fn by_shape(&self) -> usize {
        let mut free: BTreeMap<(&str, &str), usize> = BTreeMap::new();
        for pod in &self.pods {
            if let Some(node) = &pod.planned.node {
                *free.entry((&pod.planned.shape, node)).or_default() += 1;
            }
        }
        let mut taken = 0;
        for pod in &self.pods {
            let place =
                pod.node.as_deref().and_then(|node| free.get_mut(&(&*pod.planned.shape, node)));
            if let Some(left) = place.filter(|left| **left > 0) {
                *left -= 1;
                taken += 1;
            }
        }
        taken
    }

    /// Every pod that is not as the plan says, a line each.
    #[must_use]
    pub fn misses(&self) -> Vec<String> {
        let missed = self.pods.iter().filter(|pod| pod.node != pod.planned.node);
        let pods = missed.map(Ended::told);
        let daemons = self.daemons_waiting.iter();
        let daemons = daemons.map(|(name, said)| format!("{name} of a DaemonSet waits: {said}"));
        pods.chain(daemons).collect()
    }
}

impl Ended {
    fn told(&self) -> String {
        let name = &self.name;
        match (&self.planned.node, &self.node) {
            (None, Some(node)) => {
                format!("{name} is on {node}, and impossible by the plan: {}", self.planned.why)
            }
            (Some(planned), Some(node)) => format!("{name} is on {node}, planned on {planned}"),
            (Some(planned), None) => format!("{name} waits, planned on {planned}: {}", self.said),
            (None, None) => format!("{name} is impossible"),
        }
    }
}

impl Tally {
    /// The sum of both.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self {
            trials: self.trials + other.trials,
            pods: self.pods + other.pods,
            planned: self.planned + other.planned,
            as_planned: self.as_planned + other.as_planned,
            by_shape: self.by_shape + other.by_shape,
            bound: self.bound + other.bound,
            impossible: self.impossible + other.impossible,
            impossible_bound: self.impossible_bound + other.impossible_bound,
            daemons_waiting: self.daemons_waiting + other.daemons_waiting,
        }
    }

    /// Planned pods bound where they are planned, in thousandths of a percent; all of none.
    #[must_use]
    pub fn as_planned_ppm(&self) -> usize {
        (self.as_planned * 1_000_000).checked_div(self.planned).unwrap_or(1_000_000)
    }
}
