//! Pods of DaemonSets: how many there have to be.
//!
//! Invariant: a trial goes on when each node has those that it has to have, or kube-scheduler has
//! refused them; before that, other pods could take their room. Written apart from the planner.

use anyhow::Result;
use longshore_core::labels::Labels;
use longshore_core::requirements::Requirements;
use longshore_core::taint::{Taint, TaintEffect, untolerated};
use longshore_core::world::shape::PodShape;
use longshore_watcher::index::{Index, PodEntry};
use longshore_watcher::names::NOT_READY;

use super::cluster::Cluster;
use super::machines::Machine;
use super::question::Asked;

/// Waits until the nodes that are there, and these machines, have their pods of DaemonSets.
pub(super) async fn settle(
    cluster: &Cluster,
    asked: &Asked,
    machines: &[Machine<'_>],
) -> Result<()> {
    let world = &asked.input.world;
    // The bystander has no labels and never gets ready.
    let not_ready = [Taint {
        key: NOT_READY.to_owned(),
        value: String::new(),
        effect: TaintEffect::NoSchedule,
    }];
    let mut nodes: Vec<(Labels, &[Taint])> = vec![(Labels::default(), &not_ready)];
    nodes.extend(world.nodes.values().map(|node| (node.labels.clone(), node.taints.as_slice())));
    let new =
        machines.iter().map(|it| (it.labels().into_iter().collect(), it.planned.taints.as_slice()));
    nodes.extend(new);
    let sets = world.daemon_sets.values().map(|set| &world.shapes[&set.shape]);
    let expected: usize =
        sets.map(|shape| nodes.iter().filter(|node| runs_on(shape, node)).count()).sum();
    let tried = |pod: &&PodEntry| pod.row.unschedulable || !pod.row.node_name.is_empty();
    let there = |index: &Index| {
        index.pods().filter(|pod| pod.facts.daemon).filter(tried).count() >= expected
    };
    cluster.see("DaemonSets have their pods", there).await
}

fn runs_on(shape: &PodShape, (labels, taints): &(Labels, &[Taint])) -> bool {
    let admits = |terms: &Requirements| terms.allow(labels);
    untolerated(taints, &shape.tolerations).is_none()
        && shape.node_alternatives().iter().any(admits)
}
