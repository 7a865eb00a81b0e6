//! One trial: a cluster is built, its plan carried out, and where pods went is noted.
//!
//! Invariant: the order of events is that of production (docs/design/0002-realisation.md). Pods
//! wait and have been refused before anything is open to them; nodes that are there open first;
//! planned nodes join closed, and open together when they are registered.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context as _, Result};
use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use longshore_core::ids::PodUid;
use longshore_proto::cluster::v1::directive::Action;
use longshore_proto::cluster::v1::{NominatePods, PinPods, RegisterNode};
use longshore_watcher::args::Placement;
use longshore_watcher::index::{Index, PodEntry};
use longshore_watcher::names::{NOT_READY, UNREGISTERED_TAINT};
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};
use serde_json::{Value, json};

use super::cluster::Cluster;
use super::daemons;
use super::machines::Machine;
use super::order::{self, Waiting};
use super::question::{Asked, node_name};
use super::verdict::{Ended, Outcome};
use crate::stage::eyes;

/// When no pod has changed for this long, kube-scheduler is through with what it can do.
const CALM: Duration = Duration::from_millis(1500);
/// The same for pods that are pinned: kube-scheduler leaves one alone for ten seconds at most which
/// it has refused often, as it does those under a spread on a busy machine, and binds it then.
const CALM_PINNED: Duration = Duration::from_millis(11_500);
/// After how long without a change pods are nominated again, as a plan is computed again.
const PLAN_AGAIN: Duration = Duration::from_millis(50);
/// How often that is done without any pod being bound.
const ROUNDS_MAX: usize = 8;

/// How a plan is carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Way {
    /// How planned pods are brought to their nodes, where the plan says that it matters who has
    /// which place; none leaves them to kube-scheduler.
    pub placement: Option<Placement>,
    /// Whether any candidate of a launch may be bought instead of the cheapest.
    pub any_candidate: bool,
}

/// Carries a plan out and says where pods went.
///
/// # Errors
/// When the API server refuses something, or nothing comes of it in time.
pub async fn carry_out(cluster: &mut Cluster, asked: &Asked, way: Way) -> Result<Outcome> {
    cluster.clear().await?;
    let trial = Trial { asked, way, machines: buy(asked, way)? };
    trial.furnish(cluster).await?;
    if way.placement == Some(Placement::Pin) {
        trial.pin_all(cluster).await?;
    } else {
        trial.open_nodes(cluster).await?;
        trial.launch(cluster).await?;
        trial.open_by_turns(cluster).await?;
    }
    daemons::settle(cluster, asked, &trial.machines).await?;
    trial.try_again(cluster).await?;
    trial.ended(cluster).await
}

/// Buys for every planned node.
fn buy(asked: &Asked, way: Way) -> Result<Vec<Machine<'_>>> {
    let mut dice = StdRng::seed_from_u64(asked.seed);
    let nodes = asked.plan.launches.iter().enumerate();
    let bought = nodes.map(|(index, node)| {
        let any = dice.random_range(0..node.candidates.len().max(1));
        let choice = if way.any_candidate { any } else { 0 };
        Machine::buy(node_name(index), node, choice, &asked.catalogue)
    });
    bought.collect()
}

struct Trial<'a> {
    asked: &'a Asked,
    way: Way,
    machines: Vec<Machine<'a>>,
}

impl Trial<'_> {
    fn objects(&self, kind: &str, holds: impl Fn(&Value) -> bool) -> Vec<Value> {
        let all = self.asked.objects.iter();
        all.filter(|object| object["kind"] == kind && holds(object)).cloned().collect()
    }

    /// What is there, its nodes closed when the pods of DaemonSets are on them, and the pods that
    /// wait.
    async fn furnish(&self, cluster: &Cluster) -> Result<()> {
        let runs = |pod: &Value| pod["spec"]["nodeName"].is_string();
        let any = |_: &Value| true;
        let nodes = self.objects("Node", any).into_iter().chain([bystander()]);
        let nodes = nodes.map(serde_json::from_value);
        cluster.create_nodes(nodes.collect::<Result<_, _>>()?).await?;
        cluster.create_priorities(&self.objects("PriorityClass", any)).await?;
        cluster.create::<Pod>(&self.objects("Pod", runs)).await?;
        cluster.create::<DaemonSet>(&self.objects("DaemonSet", any)).await?;
        let old = self.old_nodes();
        cluster.open(&old, &[NOT_READY]).await?;
        daemons::settle(cluster, self.asked, &[]).await?;
        cluster.close(&old).await?;
        cluster.create::<Pod>(&self.objects("Pod", |pod| !runs(pod))).await?;
        let all: Vec<&String> = self.asked.pods.keys().collect();
        cluster
            .see("every pod was refused", |index| all.iter().all(|pod| is_tried(index, pod)))
            .await
    }

    /// Names of the nodes that are there.
    fn old_nodes(&self) -> Vec<String> {
        let nodes = self.objects("Node", |_| true);
        let names = nodes.iter().filter_map(|node| node["metadata"]["name"].as_str());
        names.map(ToOwned::to_owned).collect()
    }

    /// True when the plan says that any place is as good for any of the pods: none is told where to
    /// go.
    fn is_free(&self) -> bool {
        self.asked.plan.any_order && self.way.placement == Some(Placement::Pin)
    }

    /// All nodes are there and closed; each lets its own pods in, then all others.
    async fn pin_all(&self, cluster: &mut Cluster) -> Result<()> {
        let old = self.old_nodes();
        self.launch(cluster).await?;
        if self.is_free() {
            cluster.open(&old, &[UNREGISTERED_TAINT]).await?;
        }
        let new = self.machines.iter().map(|machine| &machine.name);
        let register = new.clone().map(|name| self.register(cluster, name));
        let all = register.chain(self.admit(cluster, &old)).collect();
        cluster.direct(Placement::Pin, all).await?;
        let all: Vec<String> = old.iter().chain(new).cloned().collect();
        self.settle(cluster, &all).await?;
        cluster.open(&old, &[UNREGISTERED_TAINT]).await
    }

    /// Nodes that are there open, and get the pods that are planned for them; those without any
    /// open last, as nominations find all of them open in production.
    async fn open_nodes(&self, cluster: &mut Cluster) -> Result<()> {
        let (wanted, others): (Vec<String>, Vec<String>) =
            self.old_nodes().into_iter().partition(|name| {
                self.asked.pods.values().any(|planned| planned.node.as_ref() == Some(name))
            });
        self.nominate(cluster, &wanted).await?;
        cluster.open(&wanted, &[UNREGISTERED_TAINT]).await?;
        self.settle(cluster, &wanted).await?;
        cluster.open(&others, &[UNREGISTERED_TAINT]).await
    }

    /// Planned nodes are claimed, launched, and join closed.
    async fn launch(&self, cluster: &mut Cluster) -> Result<()> {
        let all = &self.machines;
        let names: Vec<String> = all.iter().map(|machine| machine.name.clone()).collect();
        let claims = all.iter().map(|it| Action::CreateClaim(it.claim())).collect();
        cluster.direct(self.placement(), claims).await?;
        let launches = all.iter().map(|it| Action::RecordLaunch(it.launch())).collect();
        cluster.direct(self.placement(), launches).await?;
        if self.way.placement == Some(Placement::Pin) && !self.is_free() {
            cluster.direct(Placement::Pin, self.pin_early(cluster)).await?;
        }
        cluster.create_nodes(all.iter().map(Machine::node).collect::<Result<_>>()?).await?;
        cluster.open(&names, &[NOT_READY]).await?;
        cluster.see("the nodes have joined", |index| names.iter().all(|it| is_fit(index, it))).await
    }

    /// Lets pods in to nodes that have yet to join: by the cluster to none of them, to about half
    /// or to all. The others let theirs in when they register.
    fn pin_early(&self, cluster: &Cluster) -> Vec<Action> {
        let mut dice = StdRng::seed_from_u64(self.asked.seed);
        let of_two = dice.random_range(0..=2);
        let early = self.machines.iter().filter(|_| dice.random_range(0..2) < of_two);
        let pins = early.map(|machine| {
            let pods = self.uids(cluster, &machine.name);
            Action::PinPods(PinPods { claim: machine.name.clone(), pods })
        });
        pins.collect()
    }

    /// Planned nodes are registered, those together that have room for each other's pods.
    async fn open_by_turns(&self, cluster: &mut Cluster) -> Result<()> {
        let mut closed: Vec<&Machine<'_>> = self.machines.iter().collect();
        let mut open = Vec::new();
        while !closed.is_empty() {
            let waiting = cluster.store.read(|index| self.waiting(index));
            let next = order::next(&closed, &waiting, &self.asked.input);
            let next: Vec<String> = next.iter().map(|machine| machine.name.clone()).collect();
            let register = next.iter().map(|name| self.register(cluster, name)).collect();
            cluster.direct(self.placement(), register).await?;
            closed.retain(|machine| !next.contains(&machine.name));
            open.extend(next);
            self.settle(cluster, &open).await?;
        }
        Ok(())
    }

    /// Pods that wait, as the plan names them.
    fn waiting(&self, index: &Index) -> Waiting {
        let mut waiting = Waiting::default();
        for (name, planned) in &self.asked.pods {
            if known(index, name).is_some_and(PodEntry::waits) {
                let list = match planned.node {
                    Some(_) => &mut waiting.planned,
                    None => &mut waiting.impossible,
                };
                list.push(PodUid::new(&format!("default/{name}")));
            }
        }
        waiting
    }

    fn register(&self, cluster: &Cluster, name: &str) -> Action {
        let pods = self.uids(cluster, name);
        let (claim, node) = (name.to_owned(), name.to_owned());
        Action::RegisterNode(RegisterNode { claim, node, pods, any_order: self.is_free() })
    }

    /// Waits until the pods of these nodes are bound, or nothing moves any more. Those that are
    /// refused meanwhile are nominated again, as every plan does for nodes that are open.
    async fn settle(&self, cluster: &mut Cluster, nodes: &[String]) -> Result<()> {
        let waiting = |index: &Index| {
            let planned = nodes.iter().flat_map(|node| self.planned_for(index, node));
            planned.filter(|pod| pod.waits()).count()
        };
        let mut rounds = 0;
        let mut least = usize::MAX;
        loop {
            let before = cluster.store.read(Index::stirs);
            let left = cluster.store.read(waiting);
            rounds = if left < least { 0 } else { rounds + 1 };
            least = left;
            if left == 0 || rounds > ROUNDS_MAX {
                return Ok(());
            }
            self.nominate(cluster, nodes).await?;
            if !cluster.store.until(self.calm(), |index| index.stirs() != before).await {
                return Ok(());
            }
            cluster.calm(PLAN_AGAIN).await;
        }
    }

    fn calm(&self) -> Duration {
        if self.way.placement == Some(Placement::Pin) { CALM_PINNED } else { CALM }
    }

    /// Nominates the pods that are planned for these nodes.
    async fn nominate(&self, cluster: &mut Cluster, nodes: &[String]) -> Result<()> {
        let admit = self.admit(cluster, nodes);
        cluster.direct(self.placement(), admit).await
    }

    /// What tells the pods that are planned for these nodes where to go; nothing where any place is
    /// as good.
    fn admit(&self, cluster: &Cluster, nodes: &[String]) -> Vec<Action> {
        let told = nodes.iter().filter(|_| !self.is_free());
        let admit = told.map(|node| {
            let pods = self.uids(cluster, node);
            Action::NominatePods(NominatePods { node: node.to_owned(), pods })
        });
        admit.collect()
    }

    fn placement(&self) -> Placement {
        self.way.placement.unwrap_or_default()
    }

    /// Pods planned for a node that wait without a nomination, by UID; none where pods are left
    /// alone.
    fn uids(&self, cluster: &Cluster, node: &str) -> Vec<String> {
        let lost = |pod: &&PodEntry| {
            self.way.placement.is_some() && pod.waits() && pod.row.nominated_node.is_empty()
        };
        let lost = |index: &Index| {
            self.planned_for(index, node).filter(lost).map(|pod| pod.row.uid.to_string()).collect()
        };
        cluster.store.read(lost)
    }

    fn planned_for<'i>(
        &'i self,
        index: &'i Index,
        node: &'i str,
    ) -> impl Iterator<Item = &'i PodEntry> {
        let planned = self.asked.pods.iter();
        let planned = planned.filter(move |(_, it)| it.node.as_deref() == Some(node));
        planned.filter_map(|(name, _)| known(index, name))
    }

    /// Pods that the plan calls impossible, made anew: kube-scheduler tries each at once, when
    /// everything else has its place.
    async fn try_again(&self, cluster: &Cluster) -> Result<()> {
        let waits = |name: &&String| {
            cluster.store.read(|index| known(index, name).is_some_and(PodEntry::waits))
        };
        let impossible = self.asked.pods.iter().filter(|(_, planned)| planned.node.is_none());
        let names: Vec<String> = impossible.map(|(name, _)| name).filter(waits).cloned().collect();
        cluster.delete_pods(&names).await?;
        let is_one = |pod: &Value| {
            let name = pod["metadata"]["name"].as_str().unwrap_or_default();
            names.iter().any(|it| it == name)
        };
        cluster.create::<Pod>(&self.objects("Pod", is_one)).await?;
        cluster.see("they are tried", |index| names.iter().all(|pod| is_tried(index, pod))).await
    }

    async fn ended(&self, cluster: &Cluster) -> Result<Outcome> {
        let violations = self.asked.violations.clone();
        let mut outcome = Outcome { violations, is_free: self.is_free(), ..Outcome::default() };
        let found = cluster.pods().await?;
        let mut by_name: BTreeMap<String, Pod> =
            found.into_iter().map(|pod| (pod.name_any(), pod)).collect();
        for (name, planned) in &self.asked.pods {
            let pod = by_name.remove(name).with_context(|| format!("pod {name} is gone"))?;
            let node = pod.spec.as_ref().and_then(|spec| spec.node_name.clone());
            let machines = self.machines.iter().map(|machine| &machine.name);
            outcome.pods.push(Ended {
                name: name.clone(),
                planned: planned.clone(),
                on_new: machines.into_iter().any(|machine| Some(machine) == node.as_ref()),
                node,
                written: eyes::is_written_to(&pod),
                said: refusal(&pod),
            });
        }
        let homeless = |pod: &Pod| pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_none());
        let daemons = by_name.into_values().filter(homeless);
        outcome.daemons_waiting = daemons.map(|pod| (pod.name_any(), refusal(&pod))).collect();
        Ok(outcome)
    }
}

/// A node that takes only pods of DaemonSets that choose no node and is in no domain.
/// kube-scheduler counts a pod that it refuses for want of any node as an error, and tries it again
/// seconds later, whatever happens meanwhile.
fn bystander() -> Value {
    let room = json!({"cpu": "4", "memory": "16Gi", "pods": "58"});
    json!({
        "metadata": {"name": "bystander"},
        "spec": {"unschedulable": true},
        "status": {"capacity": room, "allocatable": room},
    })
}

fn known<'i>(index: &'i Index, pod: &str) -> Option<&'i PodEntry> {
    index.pod_named(&("default".to_owned(), pod.to_owned()))
}

/// True when kube-scheduler has bound or refused the pod.
fn is_tried(index: &Index, pod: &str) -> bool {
    known(index, pod).is_some_and(|pod| pod.row.unschedulable || !pod.row.node_name.is_empty())
}

/// True when nothing but our own taint, and those of its pool, keep pods off a node.
fn is_fit(index: &Index, node: &str) -> bool {
    let taints = index.node(node).and_then(|node| node.spec.as_ref()?.taints.clone());
    index.node(node).is_some()
        && taints.unwrap_or_default().iter().all(|taint| taint.key != NOT_READY)
}

/// What kube-scheduler last said of a pod that it refused.
fn refusal(pod: &Pod) -> String {
    let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let mut scheduled = conditions.filter(|condition| condition.type_ == "PodScheduled");
    let said = scheduled.next().and_then(|condition| condition.message.clone());
    let nominated = pod.status.as_ref().and_then(|status| status.nominated_node_name.clone());
    let nominated = nominated.map_or(String::new(), |node| format!("nominated to {node}; "));
    nominated + &said.unwrap_or_default()
}
