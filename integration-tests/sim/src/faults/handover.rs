//! Faults that befall many instances of a site at once: darkness, and another autoscaler's
//! heritage.
//!
//! Invariant: instances go on running; what is taken is what is known of them.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DeleteParams};
use longshore_actuator::cloud::{TAG_BATCH, TAG_CLAIM};
use longshore_proto::capacity::v1::InstancePhase;
use longshore_standalone::journal::NAME as JOURNAL;
use serde_json::{Map, Value, json};

use super::act::Turn;
use crate::cluster::Cluster;
use crate::random::Random;
use crate::users::{WORKLOADS, deployment};
use crate::verdict::{NAMESPACE, is_ready};
use crate::world::World;

/// Share of the claims that users delete when instances are protected.
const DELETED_PERCENT: u64 = 40;
/// What a fault says that has made it dark.
const DARK: &str = "dark";

impl World {
    /// EC2 denies a share of the instances and their nodes stop reporting, or all come back. While
    /// it is dark already nothing more happens; says whether this fault made it so.
    pub(super) async fn darken(
        &self,
        site: usize,
        percent: u64,
        turn: Turn<'_>,
        random: &mut Random,
    ) -> String {
        let region = &self.sites[site].region;
        let joined = self.joined(site);
        let dark: BTreeSet<String> = region.with(|model, _| {
            if !turn.on && turn.subject == DARK {
                return std::mem::take(&mut model.denied);
            }
            if !turn.on || !model.denied.is_empty() {
                return BTreeSet::new();
            }
            let running = model.instances.values();
            let running = running.filter(|found| found.seen.phase == InstancePhase::Running);
            let ids = running.map(|found| found.seen.instance_id.clone());
            let ids = ids.filter(|id| joined.contains(id));
            model.denied = ids.filter(|_| random.chance(percent)).collect();
            model.denied.clone()
        });
        let clusters = self.clusters.iter().enumerate().filter(|(_, found)| found.site == site);
        for (index, cluster) in clusters {
            let mut nodes = Vec::new();
            cluster.handle.visit("nodes", |node| {
                let provider_id = node["spec"]["providerID"].as_str().unwrap_or_default();
                let id = provider_id.rsplit('/').next().unwrap_or_default();
                if dark.contains(id) {
                    nodes.extend(node["metadata"]["name"].as_str().map(ToOwned::to_owned));
                }
            });
            for node in nodes {
                self.set_ready(index, &node, !turn.on).await;
            }
        }
        dark.iter().for_each(|id| self.judge.denies(id));
        if dark.is_empty() { String::new() } else { DARK.to_owned() }
    }

    /// Sets termination protection on a share of the instances, while users delete some claims.
    pub(super) async fn protect(&self, site: usize, percent: u64, random: &mut Random) {
        self.sites[site].region.with(|model, _| {
            let ids = model.instances.keys().filter(|_| random.chance(percent));
            model.protected = ids.cloned().collect();
        });
        let clusters = self.clusters.iter().enumerate().filter(|(_, found)| found.site == site);
        for (index, cluster) in clusters {
            let mut names = Vec::new();
            cluster.handle.visit("nodeclaims.karpenter.sh", |claim| {
                names.extend(claim["metadata"]["name"].as_str().map(ToOwned::to_owned));
            });
            for name in names.iter().filter(|_| random.chance(DELETED_PERCENT)) {
                self.judge.user_deletes(&cluster.label, name);
                self.delete_claim(index, name).await;
            }
        }
    }

    /// Scales workloads down, and up again when their empty nodes are about to go.
    pub(super) fn frenzy(&self, cluster: usize, after_ms: u64, random: &mut Random) {
        let cluster = Arc::clone(&self.clusters[cluster]);
        let apps: Vec<usize> = (0..WORKLOADS).filter(|_| random.chance(60)).collect();
        let replicas = random.between(2, 8);
        crate::process::start(async move {
            // What users do at the same time may win; then nothing comes of it.
            for app in &apps {
                let _ = cluster.apply(deployment(*app, 0)).await;
            }
            tokio::time::sleep(Duration::from_millis(after_ms)).await;
            for app in &apps {
                let _ = cluster.apply(deployment(*app, replicas)).await;
            }
        });
    }

    async fn delete_claim(&self, cluster: usize, name: &str) {
        let api = self.clusters[cluster].karpenter("NodeClaim");
        if let Err(error) = api.delete(name, &DeleteParams::default()).await {
            self.journal.note(&format!("claim {name:?} cannot be deleted: {error}"));
        }
    }

    /// Instances of a site on which a ready node runs.
    fn joined(&self, site: usize) -> BTreeSet<String> {
        let mut joined = BTreeSet::new();
        for cluster in self.clusters.iter().filter(|cluster| cluster.site == site) {
            cluster.handle.visit("nodes", |node| {
                let provider_id = node["spec"]["providerID"].as_str().unwrap_or_default();
                let id = provider_id.rsplit('/').next().filter(|_| is_ready(node));
                joined.extend(id.map(ToOwned::to_owned));
            });
        }
        joined
    }

    /// Instances of a site that claims name, or that a claim which names none yet was made for.
    fn named(&self, site: usize) -> BTreeSet<String> {
        let mut named = BTreeSet::new();
        for cluster in self.clusters.iter().filter(|cluster| cluster.site == site) {
            let mut launching = BTreeSet::new();
            cluster.handle.visit("nodeclaims.karpenter.sh", |claim| {
                match claim["status"]["providerID"].as_str() {
                    Some(provider_id) => {
                        named.extend(provider_id.rsplit('/').next().map(ToOwned::to_owned));
                    }
                    None => {
                        launching.extend(claim["metadata"]["name"].as_str().map(ToOwned::to_owned));
                    }
                }
            });
            self.sites[site].region.with(|model, _| {
                // Karpenter knows of no instance that is tagged with a call alone.
                let told = model.instances.iter().filter(|(_, found)| {
                    let tags = &found.seen.tags;
                    tags.contains_key(TAG_CLAIM) || !tags.contains_key(TAG_BATCH)
                });
                let ids = told.map(|(id, _)| id).filter(|id| {
                    let (owner, claim) = self.judge.owner(id);
                    owner == cluster.name && launching.contains(&claim)
                });
                named.extend(ids.cloned());
            });
        }
        named
    }

    /// Takes away all that only Longshore knows, so that what is left looks as Karpenter leaves it,
    /// which ends what no claim names; the services are away for as long.
    pub(super) async fn hand_over(&mut self, site: usize, on: bool) {
        let all = 0..self.services.len();
        if !on {
            all.for_each(|index| self.boot(index));
            return;
        }
        all.for_each(|index| self.kill(index));
        let here = &self.sites[site];
        let named = self.named(site);
        here.region.with(|model, now_ms| {
            let all = model.instances.values().map(|found| &found.seen.instance_id);
            let astray = all.filter(|id| !named.contains(*id) && !model.protected.contains(*id));
            let astray: Vec<String> = astray.cloned().collect();
            astray.iter().for_each(|id| model.terminate(id, true, now_ms));
            for found in model.instances.values_mut() {
                found.seen.tags.retain(|key, _| !key.starts_with("longshore.dev/"));
            }
        });
        here.etcd.forget("/launch/");
        here.etcd.forget("/batch/");
        let clusters = self.clusters.iter().enumerate().filter(|(_, found)| found.site == site);
        for (index, cluster) in clusters {
            if self.standalone {
                self.forget_journal(cluster).await;
            }
            let mut claims = Vec::new();
            cluster.handle.visit("nodeclaims.karpenter.sh", |claim| {
                let notes = claim["metadata"]["annotations"].as_object().into_iter().flatten();
                let ours = notes.filter(|(key, _)| key.starts_with("longshore.dev/"));
                let none: Map<_, _> = ours.map(|(key, _)| (key.clone(), Value::Null)).collect();
                let name = claim["metadata"]["name"].as_str().unwrap_or_default();
                claims.push((name.to_owned(), none));
            });
            for (name, none) in claims {
                self.patch_claim(index, &name, json!({ "metadata": { "annotations": none } }))
                    .await;
            }
        }
    }

    /// Takes the journal of a process that does all away, as somebody who cleans up after Longshore
    /// does.
    async fn forget_journal(&self, cluster: &Cluster) {
        let api: Api<ConfigMap> = Api::namespaced(cluster.client.clone(), NAMESPACE);
        if let Err(error) = api.delete(JOURNAL, &DeleteParams::default()).await {
            self.journal.note(&format!("{}: no journal is deleted: {error}", cluster.label));
        }
    }
}
