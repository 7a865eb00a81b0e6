//! In which order nodes that are fit should open to pods.
//!
//! Invariant: advice only. kube-scheduler puts a pod on any node that takes it, so a node with room to
//! spare draws pods which are wanted on nodes that open after it.

use std::collections::BTreeMap;

use super::model::Model;
use super::scene::Scene;
use crate::pack::vector;
use crate::vocabulary::ids::ClaimName;
use crate::vocabulary::taint::untolerated;

/// How many pods wanted on other nodes to come each fit one would draw.
pub(crate) fn of(model: &Model<'_>, scene: &Scene) -> BTreeMap<ClaimName, i64> {
    let coming = model.hosts.iter().enumerate().filter_map(|(at, host)| {
        let claim = host.claim.as_ref().filter(|claim| claim.initialized_ms.is_none())?;
        Some((at, claim))
    });
    let coming: Vec<_> = coming.filter(|(at, _)| scene.open[*at]).collect();
    let mut wanted: BTreeMap<usize, i64> = BTreeMap::new();
    // Pods of buffers are no pods to be drawn.
    let added = coming.iter().flat_map(|(at, _)| &scene.added[*at]);
    for (shape, count) in added.filter(|(shape, _)| !model.buffered.contains_key(shape)) {
        *wanted.entry(*shape).or_default() += count;
    }
    let draws = |at: usize| {
        let room = wanted.iter().map(|(shape, count)| {
            let elsewhere = count - scene.added[at].get(shape).copied().unwrap_or(0);
            let tolerations = &model.shapes[*shape].tolerations;
            let repelled = untolerated(&model.hosts[at].taints, tolerations).is_some();
            let room = vector::copies(&model.requests[*shape], &scene.rooms[at]);
            if repelled { 0 } else { room.min(elsewhere) }
        });
        room.max().unwrap_or(0)
    };
    let fit = coming.into_iter().filter(|(at, _)| model.hosts[*at].fit);
    fit.map(|(at, claim)| (claim.name.clone(), draws(at))).collect()
}
