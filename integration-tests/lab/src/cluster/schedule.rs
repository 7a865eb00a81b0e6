//! kube-scheduler's stand-in: default predicates, least-allocated scoring, nominations first.
//!
//! Invariant: a pod is only bound where every predicate holds at that moment, with room nominated
//! to pods of equal or higher priority left alone.

pub mod filter;
mod nodes;
pub mod pod;
pub mod quantity;
mod score;
pub mod shape;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use serde_json::json;

use super::object;
use super::server::{Part, Server};
use super::store::{Key, Stored};
use filter::Judgement;
use nodes::Nodes;
use pod::PodView;

/// Name of the scheduler whose pods these are.
const NAME: &str = "default-scheduler";
/// Most pods tried before other work gets its turn.
const PODS_PER_STEP: usize = 100;

/// Order in the queue: highest priority, then oldest, then name.
type Turn = (Reverse<i64>, String, Key);

/// The scheduler's state.
#[derive(Debug, Default)]
pub struct Scheduler {
    nodes: Nodes,
    active: BTreeSet<Turn>,
    parked: BTreeSet<Turn>,
    turns: HashMap<Key, (Turn, Arc<PodView>)>,
    /// Messages of shapes that fit nowhere, valid until something gives way.
    hopeless: HashMap<(u64, i64), String>,
}

impl Scheduler {
    /// Takes note of a node.
    pub fn apply_node(&mut self, name: &str, stored: &Arc<Stored>) {
        if self.nodes.apply_node(name, stored) {
            self.retry_all();
        }
    }

    /// Takes note of a node's end.
    pub fn delete_node(&mut self, name: &str) {
        self.nodes.delete_node(name);
        self.retry_all();
    }

    /// Takes note of a pod.
    pub fn apply_pod(&mut self, pod: &Arc<PodView>) {
        let gave_way = self.nodes.apply_pod(pod);
        let known = self.turns.get(&pod.key).map(|(_, known)| Arc::clone(known));
        let waits = pod.node.is_empty() && pod.is_active() && pod.shape.scheduler_name == NAME;
        if waits {
            let is_same =
                known.is_some_and(|known| known.shape.fingerprint == pod.shape.fingerprint);
            self.enqueue(pod, is_same);
        } else {
            self.dequeue(&pod.key);
            if !pod.node.is_empty() {
                self.retry_where(|waiting| waiting.shape.minds_other_pods());
            }
        }
        if gave_way {
            self.retry_all();
        }
    }

    /// Takes note of a pod's end.
    pub fn delete_pod(&mut self, key: &Key) {
        self.dequeue(key);
        if self.nodes.delete_pod(key) {
            self.retry_all();
        }
    }

    /// Tries some of the waiting pods. True when there is more to do.
    pub fn step(&mut self, server: &Server) -> bool {
        for _ in 0..PODS_PER_STEP {
            let Some(turn) = self.active.pop_first() else { return false };
            let Some((_, pod)) = self.turns.get(&turn.2).cloned() else { continue };
            if pod.shape.is_gated {
                self.parked.insert(turn);
                report(
                    server,
                    &pod,
                    "SchedulingGated",
                    "Scheduling is blocked due to non-empty scheduling gates",
                );
                continue;
            }
            match self.choose(&pod) {
                Ok(node) => self.bind(server, &pod, &node),
                Err(message) => {
                    self.parked.insert(turn);
                    report(server, &pod, "Unschedulable", &message);
                }
            }
        }
        !self.active.is_empty()
    }

    fn choose(&mut self, pod: &PodView) -> Result<String, String> {
        let judgement = Judgement::prepare(pod, &self.nodes);
        if let Some((node, value)) = self.nodes.get(&pod.nominated)
            && judgement.reasons(node, value).is_empty()
        {
            return Ok(pod.nominated.clone());
        }
        let shape = (pod.shape.fingerprint, pod.priority);
        let is_simple = !pod.shape.minds_other_pods() && pod.nominated.is_empty();
        if is_simple && let Some(message) = self.hopeless.get(&shape) {
            return Err(message.clone());
        }
        let mut fitting = Vec::new();
        let mut reasons: BTreeMap<String, usize> = BTreeMap::new();
        let mut total = 0;
        for (name, node, value) in self.nodes.existing() {
            total += 1;
            let against = judgement.reasons(node, value);
            if against.is_empty() {
                fitting.push((name, node, value));
            }
            for reason in against {
                *reasons.entry(reason).or_insert(0) += 1;
            }
        }
        if let Some(name) = score::best(pod, &fitting, &self.nodes) {
            return Ok(name.to_owned());
        }
        let message = filter::message(&reasons, total);
        if is_simple {
            self.hopeless.insert(shape, message.clone());
        }
        Err(message)
    }

    fn bind(&mut self, server: &Server, pod: &Arc<PodView>, node: &str) {
        self.dequeue(&pod.key);
        let bound = server.target("pods", pod.key.clone()).and_then(|target| {
            server.bind(&target, node)?;
            server.get(&target)
        });
        match bound {
            Ok(stored) => {
                self.nodes.apply_pod(&Arc::new(PodView::of(&stored, Some(pod))));
                self.retry_where(|waiting| waiting.shape.minds_other_pods());
            }
            // The pod changed or went meanwhile; its change is on the way.
            Err(error) => tracing::debug!(pod = %pod.key.name, %error, "binding was refused"),
        }
    }

    fn enqueue(&mut self, pod: &Arc<PodView>, is_same: bool) {
        let parked = self.turns.get(&pod.key).is_some_and(|(turn, _)| self.parked.contains(turn));
        self.dequeue(&pod.key);
        let created = pod.value()["metadata"]["creationTimestamp"].as_str().unwrap_or_default();
        let turn = (Reverse(pod.priority), created.to_owned(), pod.key.clone());
        // A status update of a pod that fits nowhere is no reason to try it again.
        let queue = if parked && is_same { &mut self.parked } else { &mut self.active };
        queue.insert(turn.clone());
        self.turns.insert(pod.key.clone(), (turn, Arc::clone(pod)));
    }

    fn dequeue(&mut self, key: &Key) {
        if let Some((turn, _)) = self.turns.remove(key) {
            self.active.remove(&turn);
            self.parked.remove(&turn);
        }
    }

    fn retry_all(&mut self) {
        self.hopeless.clear();
        self.active.append(&mut self.parked);
    }

    fn retry_where(&mut self, wanted: impl Fn(&PodView) -> bool) {
        let turns = &self.turns;
        let is_wanted = |turn: &Turn| turns.get(&turn.2).is_some_and(|(_, pod)| wanted(pod));
        let chosen: Vec<Turn> =
            self.parked.iter().filter(|turn| is_wanted(turn)).cloned().collect();
        for turn in chosen {
            self.parked.remove(&turn);
            self.active.insert(turn);
        }
    }
}

/// Writes why a pod is not scheduled. Like kube-scheduler, a failed attempt withdraws a nomination,
/// and one that ends as the last did writes nothing.
fn report(server: &Server, pod: &PodView, reason: &str, message: &str) {
    let conditions = object::items(&pod.value()["status"]["conditions"]);
    let says = |one: &serde_json::Value| {
        one["type"] == "PodScheduled" && one["reason"] == reason && one["message"] == message
    };
    if pod.nominated.is_empty() && conditions.iter().any(says) {
        return;
    }
    let stamp = server.clock().stamp();
    let nominated = pod.nominated.clone();
    let condition = json!({
        "type": "PodScheduled",
        "status": "False",
        "reason": reason,
        "message": message,
    });
    let written = server.target("pods", pod.key.clone()).and_then(|target| {
        server.modify(&target, Part::Status, |pod| {
            // A nomination written since this attempt began stays.
            if reason == "Unschedulable" && pod["status"]["nominatedNodeName"] == nominated.as_str()
            {
                object::remove(&mut pod["status"], "nominatedNodeName");
            }
            object::set_condition(pod, condition, &stamp);
        })
    });
    if let Err(error) = written {
        tracing::debug!(pod = %pod.key.name, %error, "the pod is gone: no condition written");
    }
}
