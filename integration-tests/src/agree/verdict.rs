//! How trials ended, and what that says of plans.
//!
//! Invariant: pods of one shape are the same to planner and kube-scheduler, so what counts is
//! whether each place that was planned has a pod of its shape. How many pods went exactly where the
//! plan names them is said apart. Where the plan says that any place is as good as another, each
//! pod that runs has its place.

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
    /// Whether that is a node which the plan has made.
    pub on_new: bool,
    /// Whether we have written to it.
    pub written: bool,
    /// What kube-scheduler says of it when it is nowhere.
    pub said: String,
}

/// Where all pods of a trial went.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Pods that waited.
    pub pods: Vec<Ended>,
    /// Whether any place was as good as another.
    pub is_free: bool,
    /// Pods of DaemonSets that have no node, and what kube-scheduler says of them.
    pub daemons_waiting: Vec<(String, String)>,
    /// What the independent check says against the plan.
    pub violations: Vec<String>,
}

/// A place or a pod that is not as planned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Miss {
    /// A pod of the shape is on another node.
    Moved {
        /// The pod.
        pod: String,
        /// Where its place was.
        planned: String,
        /// Where it is.
        node: String,
    },
    /// A pod of the shape waits.
    Waits {
        /// The pod.
        pod: String,
        /// Where its place is.
        planned: String,
        /// What kube-scheduler says.
        said: String,
    },
    /// More pods of the shape were bound than the plan thinks possible.
    Bound {
        /// The pod.
        pod: String,
        /// Where it is.
        node: String,
        /// Whether the plan has made that node.
        on_new: bool,
        /// Why the plan calls it impossible.
        why: String,
    },
    /// The independent check refuses the plan.
    Refused(String),
    /// A pod of a DaemonSet waits.
    Daemon {
        /// The pod.
        pod: String,
        /// What kube-scheduler says.
        said: String,
    },
}

/// Numbers of one trial or of many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Trials.
    pub trials: usize,
    /// Plans that the independent check refuses.
    pub refused: usize,
    /// Pods that waited.
    pub pods: usize,
    /// Pods that the plan places.
    pub planned: usize,
    /// Those for which any place is as good as another.
    pub free: usize,
    /// Pods that we have written to.
    pub written: usize,
    /// Places whose pod is exactly where the plan names it.
    pub by_name: usize,
    /// Places that a pod of the planned shape has.
    pub realised: usize,
    /// Places whose pod has another place.
    pub moved: usize,
    /// Places whose pod has none.
    pub waiting: usize,
    /// Pods that the plan calls impossible.
    pub impossible: usize,
    /// Pods bound on new nodes beyond what the plan thinks possible of their shape.
    pub impossible_on_new: usize,
    /// The same on nodes that were there.
    pub impossible_on_old: usize,
    /// Pods of DaemonSets without a node.
    pub daemons_waiting: usize,
}

impl Outcome {
    /// Its numbers.
    #[must_use]
    pub fn tally(&self) -> Tally {
        let misses = self.misses();
        let count = |wanted: fn(&Miss) -> bool| misses.iter().filter(|miss| wanted(miss)).count();
        let planned = self.pods.iter().filter(|pod| pod.planned.node.is_some());
        let planned: Vec<&Ended> = planned.collect();
        let moved = count(|miss| matches!(miss, Miss::Moved { .. }));
        let waiting = count(|miss| matches!(miss, Miss::Waits { .. }));
        Tally {
            trials: 1,
            refused: usize::from(!self.violations.is_empty()),
            pods: self.pods.len(),
            planned: planned.len(),
            free: if self.is_free { planned.len() } else { 0 },
            written: self.pods.iter().filter(|pod| pod.written).count(),
            by_name: planned.iter().filter(|pod| pod.node == pod.planned.node).count(),
            realised: planned.len() - moved - waiting,
            moved,
            waiting,
            impossible: self.pods.len() - planned.len(),
            impossible_on_new: count(|miss| matches!(miss, Miss::Bound { on_new: true, .. })),
            impossible_on_old: count(|miss| matches!(miss, Miss::Bound { on_new: false, .. })),
            daemons_waiting: self.daemons_waiting.len(),
        }
    }

    /// Everything that is not as the plan says.
    #[must_use]
    pub fn misses(&self) -> Vec<Miss> {
        let mut shapes: BTreeMap<&str, Vec<&Ended>> = BTreeMap::new();
        for pod in &self.pods {
            shapes.entry(&pod.planned.shape).or_default().push(pod);
        }
        let daemons = self.daemons_waiting.iter();
        let daemons =
            daemons.map(|(pod, said)| Miss::Daemon { pod: pod.clone(), said: said.clone() });
        let violations = self.violations.iter().cloned().map(Miss::Refused);
        let matters = |miss: &Miss| !(self.is_free && matches!(miss, Miss::Moved { .. }));
        let misses = shapes.values().flat_map(|pods| of_shape(pods)).filter(matters);
        violations.chain(misses).chain(daemons).collect()
    }
}

/// What is not as planned of the pods of one shape.
fn of_shape(pods: &[&Ended]) -> Vec<Miss> {
    let mut places: Vec<&str> = pods.iter().filter_map(|pod| pod.planned.node.as_deref()).collect();
    let mut others = Vec::new();
    for pod in pods {
        let taken = places.iter().position(|place| Some(*place) == pod.node.as_deref());
        match taken {
            Some(at) => drop(places.swap_remove(at)),
            None => others.push(*pod),
        }
    }
    // Those that are bound take the places that are left; the places of the others stay empty.
    others.sort_by_key(|pod| (pod.node.is_none(), pod.planned.node.is_none()));
    places.sort_unstable();
    let mut places = places.into_iter();
    others.into_iter().filter_map(|pod| miss(pod, places.next())).collect()
}

fn miss(pod: &Ended, place: Option<&str>) -> Option<Miss> {
    let name = pod.name.clone();
    match (place.map(ToOwned::to_owned), pod.node.clone()) {
        (Some(planned), Some(node)) => Some(Miss::Moved { pod: name, planned, node }),
        (Some(planned), None) => Some(Miss::Waits { pod: name, planned, said: pod.said.clone() }),
        (None, Some(node)) => {
            let why = pod.planned.why.clone();
            Some(Miss::Bound { pod: name, node, on_new: pod.on_new, why })
        }
        (None, None) => None,
    }
}

impl std::fmt::Display for Miss {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Moved { pod, planned, node } => {
                write!(f, "{pod} is on {node}; its shape was planned on {planned}")
            }
            Self::Waits { pod, planned, said } => {
                write!(f, "{pod} waits; its shape was planned on {planned}: {said}")
            }
            Self::Bound { pod, node, why, .. } => {
                write!(
                    f,
                    "{pod} is on {node}, one more of its shape than the plan holds possible: {why}"
                )
            }
            Self::Refused(why) => write!(f, "the check refuses the plan: {why}"),
            Self::Daemon { pod, said } => write!(f, "{pod} of a DaemonSet waits: {said}"),
        }
    }
}

impl Tally {
    /// The sum of both.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self {
            trials: self.trials + other.trials,
            refused: self.refused + other.refused,
            pods: self.pods + other.pods,
            planned: self.planned + other.planned,
            free: self.free + other.free,
            written: self.written + other.written,
            by_name: self.by_name + other.by_name,
            realised: self.realised + other.realised,
            moved: self.moved + other.moved,
            waiting: self.waiting + other.waiting,
            impossible: self.impossible + other.impossible,
            impossible_on_new: self.impossible_on_new + other.impossible_on_new,
            impossible_on_old: self.impossible_on_old + other.impossible_on_old,
            daemons_waiting: self.daemons_waiting + other.daemons_waiting,
        }
    }

    /// Share of planned places that a pod of the shape has, in hundredths of a percent, rounded
    /// down.
    #[must_use]
    pub fn realised_basis_points(&self) -> usize {
        (self.realised * 10_000).checked_div(self.planned).unwrap_or(10_000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(name: &str, planned: Option<&str>, node: Option<&str>) -> Ended {
        let shape = "s".to_owned();
        let planned = Planned { shape, node: planned.map(Into::into), ..Planned::default() };
        let (name, node) = (name.to_owned(), node.map(Into::into));
        Ended { name, planned, node, on_new: true, ..Ended::default() }
    }

    fn tally(pods: Vec<Ended>) -> Tally {
        Outcome { pods, ..Outcome::default() }.tally()
    }

    #[test]
    fn twins_may_change_places() {
        let pods = vec![
            pod("a", Some("x"), Some("y")),
            pod("b", Some("y"), None),
            pod("c", None, Some("x")),
        ];
        let found = tally(pods);
        assert_eq!((found.planned, found.by_name, found.realised), (2, 0, 2));
        assert_eq!((found.impossible, found.impossible_on_new, found.waiting), (1, 0, 0));
    }

    #[test]
    fn each_place_and_each_pod_is_missed_once() {
        let pods = vec![
            pod("a", Some("x"), Some("z")),
            pod("b", Some("y"), None),
            pod("c", None, None),
            pod("d", Some("w"), Some("w")),
        ];
        let found = tally(pods);
        assert_eq!((found.realised, found.moved, found.waiting), (1, 1, 1));
        let surplus = tally(vec![pod("a", Some("x"), Some("x")), pod("b", None, Some("x"))]);
        assert_eq!((surplus.realised, surplus.impossible_on_new), (1, 1));
    }

    #[test]
    fn where_any_place_is_as_good_only_those_that_wait_are_missed() {
        let pods = vec![pod("a", Some("x"), Some("z")), pod("b", Some("y"), None)];
        let outcome = Outcome { pods, is_free: true, ..Outcome::default() };
        let found = outcome.tally();
        assert_eq!((found.realised, found.moved, found.waiting, found.free), (1, 0, 1, 2));
    }
}
