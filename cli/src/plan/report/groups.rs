//! Equal nodes put together.
//!
//! Invariant: nodes of a group differ in nothing that is printed.

use std::collections::BTreeMap;

use longshore_proto::types::v1 as wire;

use super::{Amounts, Context, NodeGroup};

impl Context<'_> {
    /// Nodes to launch, equal ones together, dearest groups first.
    pub(super) fn groups(&self) -> Vec<NodeGroup> {
        let mut groups: Vec<(&wire::PlannedNode, u32)> = Vec::new();
        let mut seen: BTreeMap<GroupKey<'_>, usize> = BTreeMap::new();
        for node in &self.answer.nodes {
            let at = *seen.entry(group_key(node)).or_insert_with(|| {
                groups.push((node, 0));
                groups.len() - 1
            });
            groups[at].1 += node.count.max(1);
        }
        let mut groups: Vec<_> = groups.into_iter().map(|(node, n)| self.group(node, n)).collect();
        groups.sort_by_key(|group| std::cmp::Reverse(group.price()));
        groups
    }

    fn group(&self, node: &wire::PlannedNode, count: u32) -> NodeGroup {
        let cheapest = node.candidates.first().and_then(|c| self.kind(&node.pool, c));
        NodeGroup {
            count,
            standing: node.standing,
            pool: node.pool.clone(),
            offerings: node.candidates.iter().map(|c| self.offering(&node.pool, c)).collect(),
            pods_each: node.pods_each,
            requests: node.requests.as_ref().map(amounts).unwrap_or_default(),
            allocatable: cheapest.map(allocatable).unwrap_or_default(),
        }
    }
}

impl NodeGroup {
    /// Price of the whole group.
    #[must_use]
    pub fn price(&self) -> i64 {
        let each = self.offerings.first().map_or(0, |o| o.price_micro_usd_per_hour);
        each.saturating_mul(i64::from(self.count))
    }
}

/// What equal nodes have in common: pool, offerings, CPU and memory of the requests, pods.
type GroupKey<'a> = (&'a str, Vec<(&'a str, &'a str, i32)>, i64, i64, u32, bool);

fn group_key(node: &wire::PlannedNode) -> GroupKey<'_> {
    let offers = node.candidates.iter();
    let offers = offers.map(|c| (c.instance_type.as_str(), c.zone.as_str(), c.capacity_type));
    let amounts = node.requests.as_ref().map(amounts).unwrap_or_default();
    let Amounts { cpu_millis, memory_bytes } = amounts;
    (&node.pool, offers.collect(), cpu_millis, memory_bytes, node.pods_each, node.standing)
}

fn amounts(from: &wire::Resources) -> Amounts {
    Amounts { cpu_millis: from.cpu_millis, memory_bytes: from.memory_bytes }
}

fn allocatable(kind: &wire::InstanceType) -> Amounts {
    let all = kind.capacity.as_ref().map(amounts).unwrap_or_default();
    let kept = kind.overhead.as_ref().map(amounts).unwrap_or_default();
    Amounts {
        cpu_millis: (all.cpu_millis - kept.cpu_millis).max(0),
        memory_bytes: (all.memory_bytes - kept.memory_bytes).max(0),
    }
}
