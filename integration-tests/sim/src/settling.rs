//! Users who deploy and then only look on: does a fleet that may consolidate at once come to rest?
//!
//! Invariant: nobody but Longshore moves anything here, so whatever moves is its doing: a pod that
//! leaves its node was evicted, and an instance that begins or ends was its choice.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use kube::api::DeleteParams;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::time::Instant;

use crate::cluster::Cluster;
use crate::random::Random;
use crate::region::Region;
use crate::users::{WORKLOADS, deployment};
use crate::verdict::Judge;
use crate::world::World;

/// Pods that are deployed in all, fewest and most.
const PODS: (u64, u64) = (200, 1_000);
/// All are deployed within this time, in seconds.
const DEPLOYED_WITHIN_S: u64 = 60;

/// What was moved, and when last.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settled {
    /// Pods that are wanted.
    pub pods: u64,
    /// Pods that have left their nodes.
    pub evictions: u64,
    /// Instances that have been launched.
    pub launches: u64,
    /// Instances at the end.
    pub nodes: u64,
    /// What these cost, in micro-dollars per hour.
    pub micro_usd_per_hour: u64,
    /// What instances cost at the dearest moment, in micro-dollars per hour.
    pub dearest_micro_usd_per_hour: u64,
    /// When a pod last left its node, or an instance began or ended; in seconds since the
    /// beginning.
    pub last_move_seconds: u64,
}

/// Watches one cluster.
pub struct Settling {
    cluster: Arc<Cluster>,
    region: Region,
    began: Instant,
    wanted: Vec<u64>,
    bound: BTreeSet<String>,
    instances: BTreeSet<String>,
    ever: BTreeSet<String>,
    found: Settled,
}

impl Settling {
    /// Makes the first cluster's pool one that consolidates at once, and deploys what the seed
    /// says.
    ///
    /// # Errors
    /// When the API server refuses it, which is a bug.
    pub async fn begin(world: &World, seed: u64) -> Result<Self> {
        let cluster = Arc::clone(&world.clusters[0]);
        furnish(&cluster).await?;
        let mut random = Random::stream(seed, "settling");
        let wanted = shares(&mut random);
        let settling = Self {
            region: world.sites[cluster.site].region.clone(),
            began: Instant::now(),
            bound: BTreeSet::new(),
            instances: BTreeSet::new(),
            ever: BTreeSet::new(),
            found: Settled { pods: wanted.iter().sum(), ..Settled::default() },
            cluster: Arc::clone(&cluster),
            wanted: wanted.clone(),
        };
        for (index, replicas) in wanted.into_iter().enumerate() {
            let after = Duration::from_secs(random.between(0, DEPLOYED_WITHIN_S));
            let cluster = Arc::clone(&cluster);
            crate::process::start(async move {
                tokio::time::sleep(after).await;
                let _ = cluster.apply(deployment(index, replicas)).await;
            });
        }
        Ok(settling)
    }

    /// Looks at what has moved since the last look.
    pub fn look(&mut self) {
        let mut bound = BTreeSet::new();
        self.cluster.handle.visit("pods", |pod| {
            let there = pod["spec"]["nodeName"].is_string();
            if there && pod["metadata"]["deletionTimestamp"].is_null() {
                bound.extend(pod["metadata"]["uid"].as_str().map(ToOwned::to_owned));
            }
        });
        let instances: BTreeSet<String> = self.region.with(|model, _| {
            let alive = model.instances.iter().filter(|(_, record)| record.alive());
            alive.map(|(id, _)| id.clone()).collect()
        });
        let left = self.bound.difference(&bound).count();
        let changed = instances != self.instances;
        if left > 0 || changed {
            self.found.last_move_seconds = self.began.elapsed().as_secs();
        }
        if changed {
            let spending = self.region.with(|model, _| model.spending());
            self.found.micro_usd_per_hour = spending;
            let dearest = &mut self.found.dearest_micro_usd_per_hour;
            *dearest = spending.max(*dearest);
        }
        self.found.evictions += count(left);
        self.found.nodes = count(instances.len());
        self.ever.extend(instances.iter().cloned());
        self.found.launches = count(self.ever.len());
        (self.bound, self.instances) = (bound, instances);
    }

    /// What was found by now; tells the judge when pods wait, or more was moved than may be.
    pub fn verdict(&self, judge: &Judge) -> Settled {
        let (found, bound) = (&self.found, count(self.bound.len()));
        if bound != found.pods {
            judge.unsettled(format!("{bound} of {} pods run ({:?})", found.pods, self.wanted));
        }
        if found.evictions > found.pods {
            let text = format!("{} evictions of {} pods: {:?}", found.evictions, found.pods, found);
            judge.unsettled(text);
        }
        if 2 * found.last_move_seconds > self.began.elapsed().as_secs() {
            judge.unsettled(format!("something moved in the second half: {found:?}"));
        }
        found.clone()
    }
}

/// The only pool left consolidates at once, all of it, and has no limit.
async fn furnish(cluster: &Cluster) -> Result<()> {
    cluster.karpenter("NodePool").delete("small", &DeleteParams::default()).await?;
    let at_once = json!({ "consolidateAfter": "0s", "budgets": [{ "nodes": "100%" }] });
    cluster.merge_pool(json!({ "spec": { "limits": null, "disruption": at_once } })).await
}

/// Pods of each workload.
fn shares(random: &mut Random) -> Vec<u64> {
    let pods = random.between(PODS.0, PODS.1);
    let weights: Vec<u64> = (0..WORKLOADS).map(|_| random.between(0, 10)).collect();
    let all: u64 = weights.iter().sum::<u64>().max(1);
    let mut shares: Vec<u64> = weights.iter().map(|weight| pods * weight / all).collect();
    // What rounding has left over goes to the first, so that all pods are there.
    shares[0] += pods - shares.iter().sum::<u64>();
    shares
}

fn count(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_pods_are_deployed_as_were_drawn() {
        for seed in 0..200 {
            let shares = shares(&mut Random::stream(seed, "settling"));
            let pods: u64 = shares.iter().sum();
            assert!((PODS.0..=PODS.1).contains(&pods), "{shares:?}");
        }
    }
}
