//! How faults begin and end in the world.
//!
//! Invariant: ending a fault gives back all that it took, but for what cannot be given back (a killed
//! instance, a template that is gone).

use kube::api::{Api, DynamicObject, Patch, PatchParams};
use kube::core::{ApiResource, GroupVersionKind};
use longshore_proto::capacity::v1::InstancePhase;
use serde_json::{Value, json};

use super::{Fault, TROUBLED_PERCENT, What};
use crate::random::Random;
use crate::world::World;

/// Instances that somebody ends by hand at a time.
const BY_HAND: usize = 2;

/// A fault that has begun.
pub struct Begun {
    /// The fault.
    pub fault: Fault,
    /// What it was done to, where that was found only then.
    subject: String,
}

impl World {
    /// Lets a fault begin.
    pub async fn begin(&mut self, fault: Fault, random: &mut Random) -> Begun {
        self.journal.note(&format!("fault {} begins: {:?}", fault.number, fault.what));
        let subject = match fault.what.clone() {
            What::Kill { service } => {
                self.kill(service);
                String::new()
            }
            What::Undecodable { cluster } => self.spoil_a_claim(cluster, random).await,
            What::NodeFlaps { cluster } => self.flap_a_node(cluster, random).await,
            what => {
                self.turn(&what, true, random);
                String::new()
            }
        };
        Begun { fault, subject }
    }

    /// Ends a fault.
    pub async fn end(&mut self, begun: Begun, random: &mut Random) {
        let Begun { fault, subject } = begun;
        self.journal.note(&format!("fault {} ends", fault.number));
        match fault.what {
            What::Kill { service } => self.boot(service),
            What::Undecodable { cluster } => self.mend_a_claim(cluster, &subject).await,
            What::NodeFlaps { cluster } => self.set_ready(cluster, &subject, true).await,
            what => self.turn(&what, false, random),
        }
    }

    fn turn(&mut self, what: &What, on: bool, random: &mut Random) {
        let percent = if on { TROUBLED_PERCENT } else { 0 };
        match what {
            What::Stop { service } => self.stop(*service, on),
            What::Skew { service, skew_ms } => {
                let clock = &self.services[*service].machine.clock;
                clock.set_skew_ms(if on { *skew_ms } else { 0 });
            }
            What::Partition { .. } | What::Cutoff { .. } | What::Cut { .. } => {
                self.net_fault(what, on)
            }
            What::ApiErrors { cluster } => self.clusters[*cluster].weather.set(|troubles| {
                troubles.overloaded = percent / 2;
                troubles.internal = percent / 2;
                troubles.conflicts = percent;
                troubles.watches_cut = percent;
            }),
            What::ApiRepliesLost { cluster } => {
                self.clusters[*cluster].weather.set(|troubles| troubles.reply_lost = percent);
            }
            What::KindAbsent { cluster, plural } => {
                self.clusters[*cluster].weather.set(|troubles| {
                    troubles.absent = if on { vec![plural.clone()] } else { Vec::new() };
                })
            }
            What::Compacted { cluster } if on => self.clusters[*cluster].handle.compact(),
            What::Compacted { .. } => {}
            What::Kill { .. } | What::Undecodable { .. } | What::NodeFlaps { .. } => {}
            _ => self.cloud_fault(what, (on, percent), random),
        }
    }

    fn net_fault(&self, what: &What, on: bool) {
        let host = |index: &usize| self.services[*index].machine.host;
        match what {
            What::Partition { from, to, both } => {
                self.net.block(host(from), host(to), on);
                if *both {
                    self.net.block(host(to), host(from), on);
                }
            }
            What::Cut { from, to } if on => self.net.cut(host(from), host(to)),
            What::Cutoff { service } => {
                let outside = self.clusters.iter().map(|cluster| cluster.address);
                for address in outside.chain(self.sites.iter().map(|site| site.address)) {
                    self.net.block(host(service), address, on);
                    self.net.block(address, host(service), on);
                }
            }
            _ => {}
        }
    }

    fn cloud_fault(&self, what: &What, (on, percent): (bool, u64), random: &mut Random) {
        let weather = |site: &usize| self.sites[*site].weather.clone();
        match what {
            What::Throttled { site } => weather(site).set(|now| now.throttled = percent),
            What::CloudErrors { site } => weather(site).set(|now| now.internal = percent),
            What::CloudDenied { site } => weather(site).set(|now| now.denied = percent),
            What::CloudRepliesLost { site } => weather(site).set(|now| now.reply_lost = percent),
            What::ShortListings { site } => weather(site).set(|now| now.short_listings = percent),
            What::EmptyListings { site } => weather(site).set(|now| now.empty_listings = percent),
            What::Duds { site } => {
                self.sites[*site].region.with(|model, _| model.dud_percent = percent);
            }
            What::SoldOut { site, percent } => self.sell_out(*site, (on, *percent), random),
            What::SpotStorm { site, percent } if on => self.storm(*site, *percent, random),
            What::KilledByHand { site } if on => self.kill_by_hand(*site, random),
            What::TagsStripped { site } if on => self.strip_tags(*site, random),
            What::TemplatesDeleted { site } if on => {
                self.sites[*site].region.with(|model, _| model.templates.clear());
            }
            _ => {}
        }
    }

    fn sell_out(&self, site: usize, (on, percent): (bool, u64), random: &mut Random) {
        self.sites[site].region.with(|model, _| {
            model.sold_out.clear();
            let zones: Vec<_> = model.config.zones.iter().map(|zone| zone.name.clone()).collect();
            let kinds: Vec<_> = model.types.keys().cloned().collect();
            for (kind, zone) in kinds.iter().flat_map(|kind| zones.iter().map(move |z| (kind, z))) {
                if on && random.chance(percent) {
                    model.sold_out.insert((kind.clone(), zone.clone()));
                }
            }
        });
    }

    fn storm(&self, site: usize, percent: u64, random: &mut Random) {
        self.sites[site].region.with(|model, now_ms| {
            let ids: Vec<String> = model.instances.keys().cloned().collect();
            for id in ids.into_iter().filter(|_| random.chance(percent)) {
                model.interrupt(&id, now_ms);
            }
        });
    }

    fn kill_by_hand(&self, site: usize, random: &mut Random) {
        for _ in 0..BY_HAND {
            let victim = self.running_instance(site, random);
            self.sites[site].region.with(|model, now_ms| model.terminate(&victim, true, now_ms));
        }
    }

    fn strip_tags(&self, site: usize, random: &mut Random) {
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

    async fn spoil_a_claim(&self, cluster: usize, random: &mut Random) -> String {
        let mut names = Vec::new();
        self.clusters[cluster].handle.visit("nodeclaims.karpenter.sh", |claim| {
            names.extend(claim["metadata"]["name"].as_str().map(ToOwned::to_owned));
        });
        let name = random.one(&names).cloned().unwrap_or_default();
        // A build that does not know a field's newer form cannot decode the object.
        let spoilt = json!({ "spec": { "expireAfter": "a fortnight" } });
        self.patch_claim(cluster, &name, spoilt).await;
        name
    }

    async fn mend_a_claim(&self, cluster: usize, name: &str) {
        self.patch_claim(cluster, name, json!({ "spec": { "expireAfter": "720h" } })).await;
    }

    async fn patch_claim(&self, cluster: usize, name: &str, fields: Value) {
        let kind = GroupVersionKind::gvk("karpenter.sh", "v1", "NodeClaim");
        let client = self.clusters[cluster].client.clone();
        let api: Api<DynamicObject> = Api::all_with(client, &ApiResource::from_gvk(&kind));
        let patched = api.patch(name, &PatchParams::default(), &Patch::Merge(&fields)).await;
        if let Err(error) = patched {
            self.journal.note(&format!("claim {name:?} cannot be changed: {error}"));
        }
    }

    async fn flap_a_node(&self, cluster: usize, random: &mut Random) -> String {
        let mut names = Vec::new();
        self.clusters[cluster].handle.visit("nodes", |node| {
            names.extend(node["metadata"]["name"].as_str().map(ToOwned::to_owned));
        });
        let name = random.one(&names).cloned().unwrap_or_default();
        self.set_ready(cluster, &name, false).await;
        name
    }

    async fn set_ready(&self, cluster: usize, name: &str, ready: bool) {
        let client = self.clusters[cluster].client.clone();
        let api: Api<k8s_openapi::api::core::v1::Node> = Api::all(client);
        let status = json!({ "status": { "conditions": [{
            "type": "Ready",
            "status": if ready { "True" } else { "Unknown" },
            "reason": if ready { "KubeletReady" } else { "NodeStatusUnknown" },
        }] } });
        let patched =
            api.patch_status(name, &PatchParams::default(), &Patch::Strategic(&status)).await;
        if let Err(error) = patched {
            self.journal.note(&format!("node {name:?} cannot be changed: {error}"));
        }
    }
}
