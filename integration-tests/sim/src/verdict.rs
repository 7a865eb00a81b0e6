//! What must never happen, judged at the moment at which it would; and what must be true at rest.
//!
//! Invariant: judges by the truth of regions and API servers, never by what a service believes.

mod ailing;
mod batches;
mod budgets;
mod claims;
mod classes;
mod facts;
mod going;
mod journals;
mod lately;
mod launches;
mod ledger;
mod pods;
mod requests;
mod rest;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use longshore_actuator::cloud::{TAG_BATCH, TAG_CLAIM, TAG_CLUSTER};
use longshore_lab::cluster::ClusterHandle;
use serde::Serialize;
use serde_json::Value;
use tokio::time::Instant;

use self::ailing::Ailing;
use self::journals::Journals;
use self::lately::Lately;
use crate::etcd::Etcd;
use crate::journal::Journal;
use crate::region::{Happening, Record, Region};
use crate::site::Site;

/// Resource id of NodeClaims.
const CLAIMS: &str = "nodeclaims.karpenter.sh";
const POOLS: &str = "nodepools.karpenter.sh";
const NODES: &str = "nodes";
const CLASSES: &str = "ec2nodeclasses.karpenter.k8s.aws";
/// Where Leases and journals are.
pub const NAMESPACE: &str = "kube-system";

/// One thing that must not happen and did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Violation {
    /// Which rule.
    pub rule: &'static str,
    /// When, in milliseconds since the beginning.
    pub at_ms: i64,
    /// What happened.
    pub text: String,
}

/// A cluster as the judge sees it.
#[derive(Clone)]
pub struct Seen {
    /// Name, which need not be its own.
    pub name: String,
    /// Name that is its own, for people.
    pub label: String,
    /// Index of its site.
    pub site: usize,
    /// Its objects.
    pub handle: Arc<ClusterHandle>,
}

#[derive(Default)]
struct State {
    violations: Vec<Violation>,
    /// Cluster and claim of each instance, as its tags said when it was launched, or as the ledger
    /// said first.
    owners: BTreeMap<String, (String, String)>,
    /// Living instances by cluster and claim.
    alive: BTreeMap<(String, String), BTreeSet<String>>,
    /// Living instances of which only the call is known, and the claims that it was made for.
    unclaimed: BTreeMap<String, Arc<Vec<String>>>,
    /// Claims that calls for several launches were made for, by site and token.
    joint: BTreeMap<(usize, String), Arc<Vec<String>>>,
    /// Claims that users have deleted, by cluster label.
    deleted_by_users: BTreeSet<(String, String)>,
    /// Claims seen, by cluster label and name: whether they were being deleted.
    claims: BTreeMap<String, BTreeMap<String, bool>>,
    /// Revisions of claims, pools and classes at the last look, by cluster label.
    revisions: BTreeMap<String, [u64; 3]>,
    /// Campaigns that stand, by site and the revision that they began at.
    campaigns: BTreeSet<(usize, i64)>,
    /// Calls for each launch, of late.
    calls: BTreeMap<String, Vec<Instant>>,
    /// Calls with each token after its answer was heard in a term, and that term.
    repeated: BTreeMap<String, (i64, usize)>,
    /// Claims that have been, by cluster label.
    ever: BTreeSet<(String, String)>,
    /// What pools allow, by cluster label and name.
    limits: BTreeMap<(String, String), Lately<launches::Limit>>,
    /// Cluster label, pool and thousandths of a CPU of each instance.
    bought: BTreeMap<String, (String, String, i64)>,
    /// Claims of pools of late, by cluster label and name.
    sizes: BTreeMap<(String, String), Lately<u64>>,
    /// When claims went on absence alone, by cluster label.
    absent: BTreeMap<String, Vec<Instant>>,
    /// Instances that EC2 has denied.
    denied: BTreeSet<String>,
    /// Instances that people have copied from others.
    copies: BTreeSet<String>,
    /// What the paths of parameters contain since a site's clusters were upgraded.
    upgrades: BTreeMap<usize, (Instant, String)>,
    /// When the present leader of a site was elected, and its revision.
    terms: BTreeMap<usize, (Instant, i64)>,
    /// First call of each launch, and the term it was made in.
    begun: BTreeMap<String, (Instant, i64)>,
    /// Classes that were ready, by cluster label and name, and the term they were in.
    ready: BTreeMap<(String, String), i64>,
    /// Which nodes ail.
    ailing: Ailing,
    /// What processes that do all have noted.
    journals: Journals,
}

/// Watches over a run. Clones share what they have seen.
#[derive(Clone)]
pub struct Judge {
    state: Arc<Mutex<State>>,
    journal: Journal,
    clusters: Vec<Seen>,
    regions: Vec<Region>,
    /// Of each site; none where each cluster has a journal instead.
    etcds: Vec<Etcd>,
}

impl Judge {
    /// A judge who has seen nothing.
    #[must_use]
    pub fn new(journal: Journal) -> Self {
        Self {
            state: Arc::default(),
            journal,
            clusters: Vec::new(),
            regions: Vec::new(),
            etcds: Vec::new(),
        }
    }

    /// Begins to watch. Ledgers are in etcd, or `standalone` in journals.
    pub fn watch(&mut self, sites: &[Site], clusters: Vec<Seen>, standalone: bool) {
        self.clusters = clusters;
        self.regions = sites.iter().map(|site| site.region.clone()).collect();
        if !standalone {
            self.etcds = sites.iter().map(|site| site.etcd.clone()).collect();
        }
        for (index, site) in sites.iter().enumerate() {
            let judge = self.clone();
            site.region.observe(Box::new(move |happening| judge.happens(index, happening)));
            let judge = self.clone();
            site.etcd.observe(Box::new(move |change| judge.written(index, change)));
        }
    }

    /// Violations so far.
    #[must_use]
    pub fn violations(&self) -> Vec<Violation> {
        self.lock().violations.clone()
    }

    /// A user deletes a claim: nobody else has to name a reason.
    pub fn user_deletes(&self, label: &str, claim: &str) {
        self.lock().deleted_by_users.insert((label.to_owned(), claim.to_owned()));
    }

    /// EC2 denies an instance from now on: taking it for gone is no mistake then.
    pub fn denies(&self, instance_id: &str) {
        self.lock().denied.insert(instance_id.to_owned());
    }

    /// A person has launched more like an instance.
    pub fn copied(&self, original: &str, copy: &str) {
        self.journal.note(&format!("EC2: {copy} is launched by hand, a copy of {original}"));
        let owner = self.owner(original);
        let mut state = self.lock();
        state.copies.insert(copy.to_owned());
        state.owners.insert(copy.to_owned(), owner);
    }

    fn happens(&self, site: usize, happening: &Happening) {
        self.read_journal(site);
        match happening {
            Happening::Heard(instance_id) => self.heard(site, instance_id),
            Happening::Read(parameter) => self.read(site, parameter),
            Happening::Asked(token) => self.asked(site, token),
            Happening::Answered { token, said, definite } => {
                self.answered(site, token, (said, *definite));
            }
            Happening::Launched(record) => self.launched(site, record),
            Happening::Ending { record, outside } => self.ending(site, record, *outside),
        }
    }

    fn launched(&self, site: usize, record: &Record) {
        let claim = record.seen.tag(TAG_CLAIM).to_owned();
        if claim.is_empty() && !record.seen.tag(TAG_BATCH).is_empty() {
            return self.launched_together(site, record);
        }
        let owner = (record.seen.tag(TAG_CLUSTER).to_owned(), claim.clone());
        self.lock().owners.insert(record.seen.instance_id.clone(), owner);
        let key = (self.cluster_key(site, record), claim.clone());
        self.journal.note(&format!(
            "EC2: {} launched for claim {claim} of {}: {} {}",
            record.seen.instance_id, key.0, record.seen.instance_type, record.seen.zone
        ));
        let mut state = self.lock();
        let alive = state.alive.entry(key.clone()).or_default();
        alive.insert(record.seen.instance_id.clone());
        let count = alive.len();
        drop(state);
        if let Some(cluster) = self.cluster_of(site, record) {
            self.has_a_claim(cluster, record, &claim);
            self.within_limits(cluster, record, record.cpu_millis);
        }
        if count > 1 {
            let text = format!("claim {claim} of {} has {count} living instances", key.0);
            self.violate("launched twice", text);
        }
    }

    fn ending(&self, site: usize, record: &Record, outside: bool) {
        let id = &record.seen.instance_id;
        let (_, claim) = self.owner(id);
        let claim = claim.as_str();
        let key = (self.cluster_key(site, record), claim.to_owned());
        let whose = if outside { "by EC2 or a person" } else { "by Longshore" };
        self.journal.note(&format!("EC2: {id} of claim {claim} of {} is ended {whose}", key.0));
        let unclaimed = {
            let mut state = self.lock();
            state.alive.entry(key.clone()).or_default().remove(id);
            state.unclaimed.remove(id).is_some()
        };
        if outside || self.lock().copies.contains(id) {
            return;
        }
        let Some(cluster) = self.cluster_of(site, record) else {
            return self.violate("foreign instance ended", format!("{id} belongs to no cluster"));
        };
        if unclaimed {
            self.nobody_waits(site, record);
        }
        self.is_drained(cluster, id);
        match cluster.claim(claim) {
            Some(found) if found["metadata"]["deletionTimestamp"].is_null() => {
                let text = format!("{id} of {} is ended while claim {claim} lives", cluster.label);
                self.violate("ended under a living claim", text);
            }
            Some(_) => {}
            None if cluster.serves(id) => {
                let text =
                    format!("{id} of {} is ended while its node is in service", cluster.label);
                self.violate("ended in service without a claim", text);
            }
            None => {}
        }
    }

    /// Cluster and claim that an instance was launched for, whatever has become of its tags.
    pub fn owner(&self, instance_id: &str) -> (String, String) {
        self.lock().owners.get(instance_id).cloned().unwrap_or_default()
    }

    fn cluster_of(&self, site: usize, record: &Record) -> Option<&Seen> {
        let (name, _) = self.owner(&record.seen.instance_id);
        self.clusters.iter().find(|cluster| cluster.site == site && cluster.name == name)
    }

    fn cluster_key(&self, site: usize, record: &Record) -> String {
        let found = self.cluster_of(site, record);
        found.map_or_else(|| "nobody".to_owned(), |cluster| cluster.label.clone())
    }

    fn violate(&self, rule: &'static str, text: String) {
        self.journal.note(&format!("VIOLATION {rule}: {text}"));
        let at_ms = self.journal.elapsed_ms();
        self.lock().violations.push(Violation { rule, at_ms, text });
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Seen {
    fn claim(&self, name: &str) -> Option<Value> {
        let mut found = None;
        self.handle.visit(CLAIMS, |claim| {
            if claim["metadata"]["name"] == name {
                found = Some(claim.clone());
            }
        });
        found
    }

    /// True when the node of an instance is ready and open to pods.
    fn serves(&self, instance_id: &str) -> bool {
        let mut serves = false;
        self.handle.visit("nodes", |node| {
            let provider_id = node["spec"]["providerID"].as_str().unwrap_or_default();
            let taints = node["spec"]["taints"].as_array();
            let closed = taints.is_some_and(|taints| !taints.is_empty());
            serves |= provider_id.ends_with(instance_id) && is_ready(node) && !closed;
        });
        serves
    }
}

/// True for a node whose Ready condition is true.
#[must_use]
pub fn is_ready(node: &Value) -> bool {
    let conditions = node["status"]["conditions"].as_array();
    conditions
        .is_some_and(|all| all.iter().any(|one| one["type"] == "Ready" && one["status"] == "True"))
}
