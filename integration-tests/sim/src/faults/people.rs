//! What EC2 and people do to instances, pools and clusters, past all services.
//!
//! Invariant: what was done stays done, but for a pool: its owner makes it anew.

use kube::api::{DeleteParams, Patch, PatchParams, PropagationPolicy};
use longshore_proto::capacity::v1::InstancePhase;
use serde_json::json;

use crate::random::Random;
use crate::world::World;

/// Instances that somebody ends by hand at a time.
const BY_HAND: usize = 2;
/// Minor version that clusters get.
const NEW_VERSION: u32 = 36;
/// The pool that goes.
const GOING: &str = "small";
/// Label that nodes of the default pool get with a rollout.
pub const ROLLED_OUT: &str = "example.com/rollout";
/// Somebody's, so that the pool stays visible while it is being deleted.
const FINALIZER: &str = "example.com/audit";

impl World {
    pub(super) fn storm(&self, site: usize, percent: u64, random: &mut Random) {
        self.sites[site].region.with(|model, now_ms| {
            let ids: Vec<String> = model.instances.keys().cloned().collect();
            for id in ids.into_iter().filter(|_| random.chance(percent)) {
                model.interrupt(&id, now_ms);
            }
        });
    }

    pub(super) fn kill_by_hand(&self, site: usize, random: &mut Random) {
        for _ in 0..BY_HAND {
            let victim = self.running_instance(site, random);
            self.sites[site].region.with(|model, now_ms| model.terminate(&victim, true, now_ms));
        }
    }

    pub(super) fn strip_tags(&self, site: usize, random: &mut Random) {
        let victim = self.running_instance(site, random);
        self.sites[site].region.strip(&victim);
    }

    fn running_instance(&self, site: usize, random: &mut Random) -> String {
        self.sites[site].region.with(|model, _| {
            let running = model.instances.iter();
            let running = running.filter(|(_, found)| found.seen.phase == InstancePhase::Running);
            let ids: Vec<&String> = running.map(|(id, _)| id).collect();
            random.one(&ids).map(|id| (*id).clone()).unwrap_or_default()
        })
    }

    /// Somebody launches more like an instance. Nobody has asked for the copy, and no kubelet of it
    /// joins.
    pub(super) fn copy(&self, site: usize, random: &mut Random) {
        let original = self.running_instance(site, random);
        let copy = self.sites[site].region.with(|model, now_ms| model.copy(&original, now_ms));
        if let Some(copy) = copy {
            self.judge.copied(&original, &copy);
        }
    }

    /// The API servers of a site's clusters are upgraded.
    pub(super) fn upgrade(&self, site: usize) {
        for cluster in self.clusters.iter().filter(|cluster| cluster.site == site) {
            cluster.weather.set(|now| now.minor = Some(NEW_VERSION));
        }
        self.judge.upgraded(site, &format!("/1.{NEW_VERSION}/"));
    }

    /// The nodes of the default pool are to have another label; it may be taken back half-way.
    pub(super) async fn change_template(&self, cluster: usize, on: bool, random: &mut Random) {
        let label = on.then(|| format!("r{}", random.between(1, 9)));
        if !on && random.chance(50) {
            return;
        }
        let labels = json!({ ROLLED_OUT: label });
        let template = json!({ "spec": { "template": { "metadata": { "labels": labels } } } });
        if let Err(error) = self.clusters[cluster].merge_pool(template).await {
            self.journal.note(&format!("the pool's template cannot be changed: {error:#}"));
        }
    }

    /// A pool is deleted, and lasts as long as somebody's finalizer; then its owner makes it anew.
    pub(super) async fn end_a_pool(&self, cluster: usize, on: bool) {
        let api = self.clusters[cluster].karpenter("NodePool");
        let held = json!({ "metadata": { "finalizers": on.then_some([FINALIZER]) } });
        let merge = Patch::Merge(&held);
        let mut done = api.patch(GOING, &PatchParams::default(), &merge).await.map(drop);
        if on && done.is_ok() {
            let policy = Some(PropagationPolicy::Background);
            let params = DeleteParams { propagation_policy: policy, ..DeleteParams::default() };
            done = api.delete(GOING, &params).await.map(drop);
        }
        if let Err(error) = done {
            self.journal.note(&format!("pool {GOING} cannot be changed: {error}"));
        }
        if !on && let Err(error) = self.clusters[cluster].make_small_pool().await {
            self.journal.note(&format!("pool {GOING} cannot be made anew: {error:#}"));
        }
    }
}
