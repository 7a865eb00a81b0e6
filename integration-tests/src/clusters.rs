//! Small clusters with many constraints, from a seed: what two planners are compared on one by one.
//!
//! Invariant: a seed is one cluster. Everything is written as a user writes it: NodePools, nodes,
//! running pods, DaemonSets and waiting pods, without anything that only one side reads.

mod infrastructure;
mod mixture;
mod pods;

use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use rand::{Rng as _, SeedableRng as _};
use serde_json::{Value, json};

/// The cluster of a seed, as a list of objects.
#[must_use]
pub fn cluster(seed: u64) -> Value {
    with(seed, pods::waiting)
}

/// A cluster in which these pods wait.
fn with(seed: u64, waiting: fn(&mut Dice) -> Vec<Value>) -> Value {
    let mut dice = Dice(StdRng::seed_from_u64(seed));
    let mut items = infrastructure::pools(&mut dice);
    items.extend(infrastructure::daemon_sets(&mut dice));
    items.extend(infrastructure::nodes(&mut dice));
    items.extend(waiting(&mut dice));
    json!({"apiVersion": "v1", "kind": "List", "items": items})
}

/// Sets the chances of what is mixed in apart from those of the cluster.
const MIXED_IN: u64 = 0x006D_6978_6564;

/// The cluster of a seed with more kinds of constraint mixed in: what the real kube-scheduler
/// judges plans on.
#[must_use]
pub fn mixed(seed: u64) -> Value {
    let mut list = cluster(seed);
    let mut dice = Dice(StdRng::seed_from_u64(seed ^ MIXED_IN));
    if let Some(items) = list["items"].as_array_mut() {
        mixture::mix(&mut dice, items);
    }
    list
}

/// Sets the chances of a cluster whose pods are all alike apart from those of the others.
const ALIKE: u64 = 0x61_6C69_6B65;

/// The cluster of a seed in which all pods that wait are of one Deployment and mind no others.
#[must_use]
pub fn alike(seed: u64) -> Value {
    with(seed ^ ALIKE, pods::alike)
}

/// Chance.
struct Dice(StdRng);

impl Dice {
    /// True that often in a hundred.
    fn percent(&mut self, chance: u32) -> bool {
        self.0.random_range(0..100) < chance
    }

    /// From `low` to `high`, both included.
    fn number(&mut self, low: u32, high: u32) -> u32 {
        self.0.random_range(low..=high)
    }

    /// One of them; the default of none.
    fn one<T: Copy + Default>(&mut self, of: &[T]) -> T {
        of.choose(&mut self.0).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_is_one_cluster_and_clusters_differ() {
        assert_eq!(cluster(7), cluster(7));
        assert_ne!(cluster(7), cluster(8));
        assert_eq!(mixed(7), mixed(7));
        assert_eq!(alike(7), alike(7));
        assert_ne!(alike(7), alike(8));
        let kinds = |seed| {
            let list = cluster(seed);
            let items = list["items"].as_array().unwrap().iter();
            items.map(|item| item["kind"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        let all: Vec<String> = (0..50).flat_map(kinds).collect();
        for kind in ["NodePool", "DaemonSet", "Node", "Pod"] {
            assert!(all.iter().any(|it| it == kind), "no {kind}");
        }
    }

    #[test]
    fn what_is_mixed_in_is_found() {
        let all: String = (0..50).map(|seed| mixed(seed).to_string()).collect();
        let words = [
            "minDomains",
            "nodeTaintsPolicy",
            "nodeAffinityPolicy",
            "preferredDuringSchedulingIgnoredDuringExecution",
            "karpenter.sh/capacity-type",
            "priorityClassName",
            "hostPort",
            "namespaceSelector",
        ];
        for word in words {
            assert!(all.contains(word), "no {word}");
        }
    }
}
