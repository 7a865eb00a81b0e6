//! What must be true once faults have ended and users are quiet.
//!
//! Invariant: a list of what is not yet as it must be; empty means at rest.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use longshore_proto::provider_id::instance_id;
use serde_json::Value;

use super::{CLAIMS, Judge, POOLS, Seen, is_ready};
use crate::faults::ROLLED_OUT;

/// Key of disruption budgets in the API server's store.
const BUDGETS: &str = "poddisruptionbudgets.policy";
/// What is said of pools whose nodes are to be replaced.
const BEHIND: &str = "are not what it asks for";
/// How long anything may be other than it must be after the last fault.
const REST: Duration = Duration::from_secs(5 * 60);
/// How long nodes may be behind: as long as their first new ones may take before a rollout says
/// that it has stopped, and then some.
const ROLLOUT_REST: Duration = Duration::from_secs(11 * 60);
/// Taints that must not stay.
const OURS: [&str; 2] = ["karpenter.sh/unregistered", "karpenter.sh/disrupted"];

/// What the scheduler says when its own check takes something out of a plan.
const REFUSED: &str = "part of a plan refused by the independent check";

impl Judge {
    /// Plans that broke a rule of the planner's own: none may, even though the rest was carried
    /// out.
    pub fn plans(&self) {
        let lines = self.journal.lines();
        if let Some(first) = lines.iter().find(|line| line.contains(REFUSED)) {
            self.violate("a plan was refused", first.clone());
        }
    }

    /// What is not at rest, one line each.
    #[must_use]
    pub fn unrest(&self) -> Vec<String> {
        self.clusters.iter().flat_map(|cluster| self.unrest_of(cluster)).collect()
    }

    /// How long a matter may last after the last fault.
    #[must_use]
    pub fn patience(matter: &str) -> Duration {
        if matter.ends_with(BEHIND) { ROLLOUT_REST } else { REST }
    }

    /// Connections of watchers to schedulers that are older than a session may be.
    pub fn sessions(&self, aged: &[String]) {
        aged.iter().for_each(|text| self.violate("a session stayed where it landed", text.clone()));
    }

    /// Says that a fleet with which nobody did anything was not left alone.
    pub fn unsettled(&self, text: String) {
        self.violate("a fleet does not settle", text);
    }

    /// Says that the world did not come to rest in time.
    pub fn restless(&self, unrest: &[String]) {
        for cluster in &self.clusters {
            let behind = self.behind(cluster);
            cluster.handle.visit(CLAIMS, |claim| {
                let is_behind = behind.values().flatten().any(|name| *name == name_of(claim));
                self.tell(unrest, is_behind, (&cluster.label, claim));
            });
            if unrest.iter().any(|matter| matter.starts_with(&format!("{}: node ", cluster.label)))
            {
                self.tell_holders(cluster);
            }
        }
        let shown: Vec<&str> = unrest.iter().take(5).map(String::as_str).collect();
        self.violate("not at rest", format!("{} matters: {}", unrest.len(), shown.join("; ")));
    }

    /// Writes down what may hold nodes: budgets, and pods that are not ready.
    fn tell_holders(&self, cluster: &Seen) {
        let label = &cluster.label;
        cluster.handle.visit(BUDGETS, |budget| {
            let (name, status) = (name_of(budget), &budget["status"]);
            self.journal.note(&format!("{label}: budget {name} says {status}"));
        });
        cluster.handle.visit("pods", |pod| {
            if !is_ready(pod) {
                let (name, node) = (name_of(pod), text(&pod["spec"]["nodeName"]));
                let text = format!("{label}: pod {name} on {node} says {}", pod["status"]);
                self.journal.note(&text);
            }
        });
    }

    /// Writes down what a claim says of itself that is not at rest, whose node is not, or that is
    /// behind its pool.
    fn tell(&self, unrest: &[String], is_behind: bool, (label, claim): (&str, &Value)) {
        let name = name_of(claim);
        let about = format!("{label}: claim {name} ");
        let node = format!("{label}: node {} ", text(&claim["status"]["nodeName"]));
        let is_of_it = |matter: &String| matter.starts_with(&about) || matter.starts_with(&node);
        if is_behind || unrest.iter().any(is_of_it) {
            let (metadata, status) = (&claim["metadata"], &claim["status"]);
            self.journal.note(&format!("{about}says {metadata} {status}"));
        }
    }

    fn unrest_of(&self, cluster: &Seen) -> Vec<String> {
        let mut unrest = pods(cluster);
        unrest.extend(self.rollouts(cluster));
        let claims = claims(cluster);
        let alive = self.alive_of(cluster);
        let protected = self.protected_of(cluster);
        let mut instances = BTreeMap::<&str, Vec<&String>>::new();
        for (id, owner) in &alive {
            instances.entry(owner).or_default().push(id);
        }
        let label = &cluster.label;
        for (name, deleting) in &claims {
            let own = instances.get(name.as_str()).map_or(&[][..], Vec::as_slice);
            if own.iter().any(|id| protected.contains(*id)) {
                continue;
            }
            if *deleting {
                unrest.push(format!("{label}: claim {name} is still going"));
            }
            match own.len() {
                0 => unrest.push(format!("{label}: claim {name} has no instance")),
                1 => {}
                count => unrest.push(format!("{label}: claim {name} has {count} instances")),
            }
        }
        for (id, owner) in alive.iter().filter(|(_, owner)| !claims.contains_key(*owner)) {
            if !self.lock().denied.contains(id) && !protected.contains(id) {
                unrest.push(format!("{label}: instance {id} of claim {owner} leaks"));
            }
        }
        for (name, (provider_id, taints)) in &nodes(cluster) {
            let id = instance_id(provider_id);
            if protected.contains(id) {
                continue;
            }
            if !alive.contains_key(id) {
                unrest.push(format!("{label}: node {name} has no instance"));
            }
            for taint in taints.iter().filter(|taint| OURS.contains(&taint.as_str())) {
                unrest.push(format!("{label}: node {name} is still tainted {taint}"));
            }
        }
        unrest
    }

    /// Pools with nodes that are not what their template asks for.
    fn rollouts(&self, cluster: &Seen) -> Vec<String> {
        let matters = self.behind(cluster).into_iter().map(|(pool, claims)| {
            let (label, count) = (&cluster.label, claims.len());
            format!("{label}: {count} nodes of pool {pool} {BEHIND}")
        });
        matters.collect()
    }

    /// Claims by pool that are not what its template asks for, unless it says that it has stopped
    /// replacing these, or EC2 lets nobody end them.
    fn behind(&self, cluster: &Seen) -> BTreeMap<String, Vec<String>> {
        let (wanted, protected) = (wanted(cluster), self.protected_of(cluster));
        let mut behind: BTreeMap<String, Vec<String>> = BTreeMap::new();
        cluster.handle.visit(CLAIMS, |claim| {
            let (labels, status) = (&claim["metadata"]["labels"], &claim["status"]);
            let pool = text(&labels["karpenter.sh/nodepool"]);
            let Some(label) = wanted.get(&pool) else { return };
            let mut said = status["conditions"].as_array().into_iter().flatten();
            let drifted = said.any(|one| one["type"] == "Drifted" && one["status"] == "True");
            let stays = protected.contains(instance_id(&text(&status["providerID"])));
            if !stays && (drifted || text(&labels[ROLLED_OUT]) != *label) {
                behind.entry(pool).or_default().push(name_of(claim));
            }
        });
        behind
    }

    /// Instances that EC2 lets nobody end: they are not at rest, and cannot be.
    fn protected_of(&self, cluster: &Seen) -> BTreeSet<String> {
        let region = self.regions.get(cluster.site);
        region.map_or_else(BTreeSet::new, |region| region.with(|model, _| model.protected.clone()))
    }

    fn alive_of(&self, cluster: &Seen) -> BTreeMap<String, String> {
        let Some(region) = self.regions.get(cluster.site) else { return BTreeMap::new() };
        region.with(|model, _| {
            let alive = model.instances.values().filter(|record| record.alive());
            let owned = alive.filter_map(|record| {
                let id = record.seen.instance_id.clone();
                let (name, claim) = self.owner(&id);
                (name == cluster.name).then_some((id, claim))
            });
            owned.collect()
        })
    }
}

fn pods(cluster: &Seen) -> Vec<String> {
    let mut waiting = Vec::new();
    cluster.handle.visit("pods", |pod| {
        let over = ["Succeeded", "Failed"].contains(&pod["status"]["phase"].as_str().unwrap_or(""));
        let bound = pod["spec"]["nodeName"].is_string();
        let deleting = !pod["metadata"]["deletionTimestamp"].is_null();
        if !over && !bound && !deleting {
            waiting.push(format!("{}: pod {} waits", cluster.label, name_of(pod)));
        }
    });
    waiting
}

/// The label that each pool's nodes are to have, of pools that have not stopped replacing them.
fn wanted(cluster: &Seen) -> BTreeMap<String, String> {
    let mut wanted = BTreeMap::new();
    cluster.handle.visit(POOLS, |pool| {
        let conditions = pool["status"]["conditions"].as_array().into_iter().flatten();
        let mut said = conditions.filter(|one| one["type"] == "RolloutHealthy");
        if said.all(|one| one["status"] == "True") {
            let labels = &pool["spec"]["template"]["metadata"]["labels"];
            wanted.insert(name_of(pool), text(&labels[ROLLED_OUT]));
        }
    });
    wanted
}

/// Claims by name, and whether each is going.
fn claims(cluster: &Seen) -> BTreeMap<String, bool> {
    let mut all = BTreeMap::new();
    cluster.handle.visit(CLAIMS, |claim| {
        let deleting = !claim["metadata"]["deletionTimestamp"].is_null();
        all.insert(name_of(claim), deleting);
    });
    all
}

fn nodes(cluster: &Seen) -> BTreeMap<String, (String, BTreeSet<String>)> {
    let mut all = BTreeMap::new();
    cluster.handle.visit("nodes", |node| {
        let taints = node["spec"]["taints"].as_array().into_iter().flatten();
        let keys = taints.map(|taint| text(&taint["key"])).collect();
        all.insert(name_of(node), (text(&node["spec"]["providerID"]), keys));
    });
    all
}

fn name_of(object: &Value) -> String {
    text(&object["metadata"]["name"])
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
