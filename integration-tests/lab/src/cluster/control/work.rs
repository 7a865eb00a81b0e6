//! What has to be looked at, now or later, and the tools a reconciliation has.
//!
//! Invariant: each object is queued at most once; marking it again while it waits changes nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::world::{Observed, World};
use crate::cluster::error::ApiError;
use crate::cluster::object;
use crate::cluster::schedule::pod::PodView;
use crate::cluster::server::{DeleteOptions, Part, Server, WriteOptions};
use crate::cluster::store::{Key, Stored};

/// One object to be reconciled by one controller.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Task {
    /// A namespace, perhaps on its way out.
    Namespace(String),
    /// A node's taints, and the pods on it.
    Node(String),
    /// Dependents of an owner that is gone or going; its uid.
    Garbage(String),
    /// A pod whose grace may be over.
    Pod(Key),
    /// A Deployment.
    Deployment(Key),
    /// A ReplicaSet.
    ReplicaSet(Key),
    /// A StatefulSet.
    StatefulSet(Key),
    /// A DaemonSet.
    DaemonSet(Key),
    /// A Job.
    Job(Key),
    /// A PodDisruptionBudget.
    Budget(Key),
}

/// The queue.
#[derive(Debug, Default)]
pub struct Work {
    queue: BTreeSet<Task>,
    later: BTreeMap<Timestamp, BTreeSet<Task>>,
    daemon_sets: BTreeSet<Key>,
    budgets: BTreeSet<Key>,
    terminating: BTreeSet<String>,
}

impl Work {
    /// The next task.
    pub fn next(&mut self) -> Option<Task> {
        self.queue.pop_first()
    }

    /// True when nothing is to be done now.
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Queues a task.
    pub fn add(&mut self, task: Task) {
        self.queue.insert(task);
    }

    /// Queues a task for a later moment.
    pub fn add_at(&mut self, at: Timestamp, task: Task) {
        self.later.entry(at).or_default().insert(task);
    }

    /// When the next delayed task is due.
    pub fn next_due(&self) -> Option<Timestamp> {
        self.later.keys().next().copied()
    }

    /// Moves delayed tasks that are due into the queue.
    pub fn take_due(&mut self, now: Timestamp) {
        while let Some(entry) = self.later.first_entry()
            && *entry.key() <= now
        {
            self.queue.append(&mut entry.remove());
        }
    }

    /// Marks everything a change bears upon.
    pub fn mark(&mut self, observed: &Observed, world: &World) {
        let key = &observed.key;
        let value = &observed.change.after.value;
        match observed.resource.as_str() {
            "deployments.apps" => self.add(Task::Deployment(key.clone())),
            "replicasets.apps" => self.add(Task::ReplicaSet(key.clone())),
            "statefulsets.apps" => self.add(Task::StatefulSet(key.clone())),
            "jobs.batch" => self.add(Task::Job(key.clone())),
            "daemonsets.apps" => {
                track(&mut self.daemon_sets, key, observed.change.deleted);
                self.add(Task::DaemonSet(key.clone()));
            }
            "poddisruptionbudgets.policy" => {
                track(&mut self.budgets, key, observed.change.deleted);
                self.add(Task::Budget(key.clone()));
            }
            "namespaces" => {
                let gone = observed.change.deleted || !object::is_deleting(value);
                track(&mut self.terminating, &key.name, gone);
                self.add(Task::Namespace(key.name.clone()));
            }
            "nodes" => self.mark_node(observed),
            "pods" => self.mark_pod(observed),
            _ => {}
        }
        self.mark_owner(value);
        if self.terminating.contains(&key.namespace) {
            self.add(Task::Namespace(key.namespace.clone()));
        }
        self.mark_garbage(observed, world);
    }

    fn mark_node(&mut self, observed: &Observed) {
        self.add(Task::Node(observed.key.name.clone()));
        let matters =
            |value: &Value| [&value["metadata"]["labels"], &value["spec"]].map(Value::clone);
        let before = observed.change.before.as_ref().map(|stored| matters(&stored.value));
        if observed.change.deleted || before != Some(matters(&observed.change.after.value)) {
            self.queue.extend(self.daemon_sets.iter().cloned().map(Task::DaemonSet));
        }
    }

    fn mark_pod(&mut self, observed: &Observed) {
        let Some(pod) = &observed.pod else { return };
        if pod.is_deleting && !observed.change.deleted {
            self.add(Task::Pod(pod.key.clone()));
        }
        if !pod.node.is_empty()
            && observed.change.before.as_ref().is_none_or(|b| b.value["spec"]["nodeName"].is_null())
        {
            self.add(Task::Node(pod.node.clone()));
        }
        let here = self.budgets.iter().filter(|budget| budget.namespace == pod.key.namespace);
        self.queue.extend(here.cloned().map(Task::Budget));
    }

    fn mark_owner(&mut self, value: &Value) {
        let Some(owner) = object::controller_of(value) else { return };
        let name = owner["name"].as_str().unwrap_or_default();
        let key = Key::new(object::namespace(value), name);
        match owner["kind"].as_str().unwrap_or_default() {
            "Deployment" => self.add(Task::Deployment(key)),
            "ReplicaSet" => self.add(Task::ReplicaSet(key)),
            "StatefulSet" => self.add(Task::StatefulSet(key)),
            "DaemonSet" => self.add(Task::DaemonSet(key)),
            "Job" => self.add(Task::Job(key)),
            _ => {}
        }
    }

    fn mark_garbage(&mut self, observed: &Observed, world: &World) {
        let value = &observed.change.after.value;
        let uid = object::uid(value);
        let is_going = observed.change.deleted || object::is_deleting(value);
        if is_going
            && (world.dependents_of(uid).next().is_some()
                || object::finalizers(value).next().is_some())
        {
            self.add(Task::Garbage(uid.to_owned()));
        }
        if object::items(&value["metadata"]["ownerReferences"]).is_empty() {
            return;
        }
        // A dependent that comes too late, or whose going lets a foreground deletion finish.
        if observed.change.before.is_none() || observed.change.deleted {
            for owner in object::items(&value["metadata"]["ownerReferences"]) {
                self.add(Task::Garbage(owner["uid"].as_str().unwrap_or_default().to_owned()));
            }
        }
    }
}

fn track<T: Ord + Clone>(set: &mut BTreeSet<T>, member: &T, is_gone: bool) {
    if is_gone {
        set.remove(member);
    } else {
        set.insert(member.clone());
    }
}

/// What a reconciliation works with.
pub struct Context<'a> {
    /// The API server.
    pub server: &'a Server,
    /// The indexes.
    pub world: &'a World,
    /// The queue, for what is to be done later.
    pub work: &'a mut Work,
    /// True to remove pods whose grace is over though no kubelet said so.
    pub reaps_pods_after_grace: bool,
}

/// Outcome of a reconciliation.
pub type Outcome = Result<(), ApiError>;

impl Context<'_> {
    /// Reads an object; none when it is not there.
    pub fn get(&self, resource: &str, key: &Key) -> Option<Arc<Stored>> {
        let target = self.server.target(resource, key.clone()).ok()?;
        self.server.get(&target).ok()
    }

    /// Objects of a resource in one namespace, or in all when it is empty.
    pub fn list(&self, resource: &str, namespace: &str) -> Vec<Arc<Stored>> {
        let state = self.server.lock();
        let rows = state.store.list(resource, namespace, None);
        rows.map(|(_, stored)| Arc::clone(stored)).collect()
    }

    /// Creates an object.
    pub fn create(&self, resource: &str, body: Value) -> Outcome {
        let key = Key::new(object::namespace(&body), "");
        let target = self.server.target(resource, key)?;
        self.server.create(&target, body, &WriteOptions::default()).map(drop)
    }

    /// Deletes an object; one that is not there is no error.
    pub fn delete(&self, resource: &str, key: &Key, options: &DeleteOptions) -> Outcome {
        let target = self.server.target(resource, key.clone())?;
        match self.server.delete(&target, options) {
            Ok(_) | Err(ApiError::NotFound { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Changes an object's own part or its status.
    pub fn modify(
        &self,
        resource: &str,
        key: &Key,
        part: Part,
        change: impl FnOnce(&mut Value),
    ) -> Outcome {
        let target = self.server.target(resource, key.clone())?;
        self.server.modify(&target, part, change).map(drop)
    }

    /// Merges fields into an object's status.
    pub fn set_status(&self, resource: &str, key: &Key, fields: &Value) -> Outcome {
        self.modify(resource, key, Part::Status, |object| {
            for (field, value) in fields.as_object().into_iter().flatten() {
                object["status"][field.as_str()] = value.clone();
            }
        })
    }

    /// Ends a pod, marked with why it was disturbed.
    pub fn disrupt(
        &self,
        pod: &PodView,
        reason: &str,
        message: &str,
        options: &DeleteOptions,
    ) -> Outcome {
        let stamp = self.server.clock().stamp();
        let condition = json!({
            "type": "DisruptionTarget",
            "status": "True",
            "reason": reason,
            "message": message,
        });
        self.modify("pods", &pod.key, Part::Status, |pod| {
            object::set_condition(pod, condition, &stamp);
        })?;
        self.delete("pods", &pod.key, options)
    }
}

/// A pod made from a workload's template and owned by it.
pub fn pod_from_template(owner: &Value, template: &Value) -> Value {
    let mut pod = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": template["metadata"],
        "spec": template["spec"],
    });
    let metadata = &mut pod["metadata"];
    if metadata.is_null() {
        *metadata = json!({});
    }
    object::remove(metadata, "creationTimestamp");
    object::remove(metadata, "name");
    metadata["namespace"] = owner["metadata"]["namespace"].clone();
    metadata["generateName"] = json!(format!("{}-", object::name(owner)));
    metadata["ownerReferences"] = json!([owner_reference(owner)]);
    pod
}

/// The reference by which a dependent names its managing owner.
pub fn owner_reference(owner: &Value) -> Value {
    json!({
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": true,
        "blockOwnerDeletion": true,
    })
}

/// A count as JSON.
pub fn count<T>(items: impl Iterator<Item = T>) -> i64 {
    i64::try_from(items.count()).unwrap_or(i64::MAX)
}
