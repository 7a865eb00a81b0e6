//! How faults begin and end in the world.
//!
//! Invariant: ending a fault gives back all that it took, but for what cannot be given back (a
//! killed instance, a template that is gone).

use std::net::IpAddr;
use std::time::Duration;

use kube::api::{Api, Patch, PatchParams};
use serde_json::{Value, json};

use super::{
    CloudFault, ClusterFault, EdgeFault, EtcdFault, Fault, ProcessFault, TROUBLED_PERCENT, What,
};
use crate::etcd::MEMBERS;
use crate::random::Random;
use crate::site::Site;
use crate::world::World;

/// How long etcd takes to find another leader.
const ELECTION: Duration = Duration::from_millis(1_800);

/// A fault that has begun.
pub struct Begun {
    /// The fault.
    pub fault: Fault,
    /// What it was done to, where that was found only then.
    subject: String,
}

/// Beginning or end of a fault, and what it was done to.
#[derive(Clone, Copy)]
pub(super) struct Turn<'a> {
    pub(super) on: bool,
    pub(super) subject: &'a str,
}

impl World {
    /// Lets a fault begin.
    pub async fn begin(&mut self, fault: Fault, random: &mut Random) -> Begun {
        self.journal.note(&format!("fault {} begins: {:?}", fault.number, fault.what));
        let subject = self.turn(&fault.what.clone(), Turn { on: true, subject: "" }, random).await;
        Begun { fault, subject }
    }

    /// Ends a fault.
    pub async fn end(&mut self, begun: Begun, random: &mut Random) {
        let Begun { fault, subject } = begun;
        self.journal.note(&format!("fault {} ends", fault.number));
        self.turn(&fault.what, Turn { on: false, subject: &subject }, random).await;
    }

    /// Ends what would last longer than a fault does: kubelets that never joined join now. A
    /// registration may otherwise take a quarter of an hour to be given up, as users know it.
    pub fn cure(&self) {
        for site in &self.sites {
            site.region.cure();
        }
    }

    /// Lets a fault begin or end; what it was done to, where that was found only now.
    async fn turn(&mut self, what: &What, turn: Turn<'_>, random: &mut Random) -> String {
        match what {
            What::Process { service, fault } => self.turn_process(*service, fault, turn.on),
            What::Edge { from, to, fault } => self.turn_edge((*from, *to), fault, turn.on),
            What::Etcd { site, fault } => self.turn_etcd(*site, fault, turn.on),
            What::Cloud { site, fault: CloudFault::Dark(percent) } => {
                return self.darken(*site, *percent, turn, random).await;
            }
            What::Cloud { site, fault: CloudFault::Protected(percent) } if turn.on => {
                self.protect(*site, *percent, random).await;
            }
            What::Cloud { site, fault: CloudFault::KarpenterBefore } => {
                self.hand_over(*site, turn.on).await;
            }
            What::Cloud { site, fault: CloudFault::Upgraded } if turn.on => self.upgrade(*site),
            What::Cloud { site, fault } => self.turn_cloud(*site, fault, turn.on, random),
            What::Cluster { cluster, fault } => {
                return self.turn_cluster(*cluster, fault, turn, random).await;
            }
        }
        String::new()
    }

    fn turn_process(&mut self, service: usize, fault: &ProcessFault, on: bool) {
        let host = self.services[service].machine.host;
        match fault {
            ProcessFault::Kill if on => self.kill(service),
            ProcessFault::Kill => self.boot(service),
            ProcessFault::Stop => self.stop(service, on),
            // It stays wrong until another fault sets it.
            ProcessFault::Skew(skew_ms) if on => {
                self.services[service].machine.clock.set_skew_ms(*skew_ms);
            }
            ProcessFault::Skew(_) => {}
            ProcessFault::Panic(place) if on => self.services[service].machine.trap.set(place),
            ProcessFault::Panic(_) => self.services[service].machine.trap.disarm(),
            ProcessFault::TaskPanics(number) if on => {
                self.services[service].machine.tripwire.trip_one(*number);
            }
            ProcessFault::TaskPanics(_) => {}
            ProcessFault::Cutoff => {
                let outside = self.clusters.iter().map(|cluster| cluster.address);
                let outside = outside.chain(self.sites.iter().map(|site| site.address));
                self.part(host, outside, on);
            }
            ProcessFault::EtcdUnreachable => {
                let members = self.sites.iter().flat_map(|site| {
                    (0..MEMBERS).map(|member| site.etcd.host(member)).collect::<Vec<_>>()
                });
                self.part(host, members, on);
            }
        }
    }

    /// Blocks or opens both directions between a host and others.
    fn part(&self, host: IpAddr, others: impl Iterator<Item = IpAddr>, blocked: bool) {
        for other in others {
            self.net.block(host, other, blocked);
            self.net.block(other, host, blocked);
        }
    }

    fn turn_etcd(&self, site: usize, fault: &EtcdFault, on: bool) {
        let etcd = &self.sites[site].etcd;
        let percent = if on { TROUBLED_PERCENT } else { 0 };
        match fault {
            EtcdFault::NoQuorum => etcd.set(|now| now.no_quorum = on),
            EtcdFault::MemberCut(member) => etcd.set(|now| now.cut_member = on.then_some(*member)),
            EtcdFault::EtcdErrors => etcd.set(|now| now.refused = percent),
            EtcdFault::EtcdRepliesLost => etcd.set(|now| now.reply_lost = percent),
            EtcdFault::LeaderChange | EtcdFault::LeasesEnd | EtcdFault::Overtaken if !on => {}
            EtcdFault::LeaderChange => {
                etcd.set(|now| now.no_quorum = true);
                let etcd = etcd.clone();
                crate::process::start(async move {
                    tokio::time::sleep(ELECTION).await;
                    etcd.set(|now| now.no_quorum = false);
                });
            }
            EtcdFault::LeasesEnd => etcd.revoke_leases(),
            EtcdFault::Overtaken => etcd.cut_observers(),
        }
    }

    fn turn_edge(&self, (from, to): (usize, usize), fault: &EdgeFault, on: bool) {
        let host = |index: usize| self.services[index].machine.host;
        match fault {
            EdgeFault::OneWay => self.net.block(host(from), host(to), on),
            EdgeFault::Partition => {
                self.net.block(host(from), host(to), on);
                self.net.block(host(to), host(from), on);
            }
            EdgeFault::Cut if on => self.net.cut(host(from), host(to)),
            EdgeFault::Cut => {}
        }
    }

    fn turn_cloud(&self, index: usize, fault: &CloudFault, on: bool, random: &mut Random) {
        let percent = if on { TROUBLED_PERCENT } else { 0 };
        let site = &self.sites[index];
        match fault {
            CloudFault::Throttled => site.weather.set(|now| now.throttled = percent),
            CloudFault::CloudErrors => {
                site.weather.set(|now| now.internal = percent);
                site.region.with(|model, _| model.failing_percent = 2 * percent);
            }
            CloudFault::Denied => site.weather.set(|now| now.denied = percent),
            CloudFault::CloudRepliesLost => site.weather.set(|now| now.reply_lost = percent),
            CloudFault::ShortListings => site.weather.set(|now| now.short_listings = percent),
            CloudFault::EmptyListings => site.weather.set(|now| now.empty_listings = percent),
            CloudFault::Duds => site.region.with(|model, _| model.dud_percent = percent),
            CloudFault::SoldOut(percent) => self.sell_out(index, (on, *percent), random),
            CloudFault::TemplatesDeleted => site.region.with(|model, _| {
                model.templates.clear();
                model.templates_missing = on;
            }),
            CloudFault::SpotStorm(_)
            | CloudFault::KilledByHand
            | CloudFault::TagsStripped
            | CloudFault::Copied
                if !on => {}
            CloudFault::Dark(_)
            | CloudFault::Protected(_)
            | CloudFault::KarpenterBefore
            | CloudFault::Upgraded => {}
            CloudFault::Copied => self.copy(index, random),
            CloudFault::LookupsFail
            | CloudFault::LaunchesFail
            | CloudFault::SlowToShow
            | CloudFault::Revoked => turn_launches(site, fault, on),
            CloudFault::SpotStorm(percent) => self.storm(index, *percent, random),
            CloudFault::KilledByHand => self.kill_by_hand(index, random),
            CloudFault::TagsStripped => self.strip_tags(index, random),
        }
    }

    async fn turn_cluster(
        &self,
        index: usize,
        fault: &ClusterFault,
        turn: Turn<'_>,
        random: &mut Random,
    ) -> String {
        let percent = if turn.on { TROUBLED_PERCENT } else { 0 };
        let cluster = &self.clusters[index];
        match fault {
            ClusterFault::ApiErrors => cluster.weather.set(|troubles| {
                troubles.overloaded = percent / 2;
                troubles.internal = percent / 2;
                troubles.conflicts = percent;
                troubles.watches_cut = percent;
            }),
            ClusterFault::ApiRepliesLost => cluster.weather.set(|now| now.reply_lost = percent),
            ClusterFault::KindAbsent(plural) => cluster.weather.set(|troubles| {
                troubles.absent = if turn.on { vec![plural.clone()] } else { Vec::new() };
            }),
            ClusterFault::Compacted if turn.on => cluster.handle.compact(),
            ClusterFault::Compacted => {}
            ClusterFault::Undecodable if turn.on => return self.spoil_a_claim(index, random).await,
            ClusterFault::Undecodable => self.mend_a_claim(index, turn.subject).await,
            ClusterFault::Frenzy(after_ms) if turn.on => self.frenzy(index, *after_ms, random),
            ClusterFault::Frenzy(_) => {}
            ClusterFault::NodeFlaps if turn.on => return self.flap_a_node(index, random).await,
            ClusterFault::NodeFlaps => self.set_ready(index, turn.subject, true).await,
            ClusterFault::Silent => cluster.weather.set(|now| now.silent = percent),
            ClusterFault::PoolGoes => self.end_a_pool(index, turn.on).await,
            ClusterFault::TemplateChanges => self.change_template(index, turn.on, random).await,
            ClusterFault::NodesAil { many, .. } => {
                return self.turn_ailing(index, *many, turn, random).await;
            }
        }
        String::new()
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

    pub(super) async fn patch_claim(&self, cluster: usize, name: &str, fields: Value) {
        let api = self.clusters[cluster].karpenter("NodeClaim");
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

    pub(super) async fn set_ready(&self, cluster: usize, name: &str, ready: bool) {
        let condition = json!({
            "type": "Ready",
            "status": if ready { "True" } else { "Unknown" },
            "reason": if ready { "KubeletReady" } else { "NodeStatusUnknown" },
        });
        self.set_condition(cluster, name, condition).await;
    }

    pub(super) async fn set_condition(&self, cluster: usize, name: &str, condition: Value) {
        let client = self.clusters[cluster].client.clone();
        let api: Api<k8s_openapi::api::core::v1::Node> = Api::all(client);
        let status = json!({ "status": { "conditions": [condition] } });
        let patched =
            api.patch_status(name, &PatchParams::default(), &Patch::Strategic(&status)).await;
        if let Err(error) = patched {
            self.journal.note(&format!("node {name:?} cannot be changed: {error}"));
        }
    }
}

/// Faults of launches and of what they need.
fn turn_launches(site: &Site, fault: &CloudFault, on: bool) {
    let share = |percent: u64| if on { percent } else { 0 };
    if *fault == CloudFault::LookupsFail {
        site.weather.set(|now| now.lookups = share(100));
        if on {
            site.etcd.revoke_leases();
        }
    } else if *fault == CloudFault::LaunchesFail {
        site.region.with(|model, _| model.failing_percent = share(100));
    } else {
        site.region.with(|model, _| model.slow = on);
        if *fault == CloudFault::Revoked {
            site.weather.set(|now| now.revoked = share(80));
        }
    }
}
