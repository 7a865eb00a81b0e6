//! The controllers of the cluster: what kube-controller-manager and kube-scheduler would do.
//!
//! Invariant: level, not edge. Changes only mark what has to be looked at; each reconciliation
//! reads the present state, which always includes all its own earlier writes.

mod budget;
mod daemonset;
mod deployment;
mod garbage;
mod job;
mod namespace;
mod node;
mod pods;
mod replicaset;
mod statefulset;
mod work;
mod world;

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::schedule::Scheduler;
use super::server::Server;
use work::{Context, Task, Work};
use world::World;

/// Which parts of the control plane run.
#[derive(Clone, Debug)]
pub struct ControlConfig {
    /// True to run the scheduler.
    pub scheduler: bool,
    /// True to run the controllers.
    pub controllers: bool,
    /// True to remove pods whose grace is over though no kubelet said so.
    pub reaps_pods_after_grace: bool,
}

/// Most reconciliations done before other tasks of the runtime get their turn.
const RECONCILIATIONS_PER_STEP: usize = 64;

/// Runs the control plane until it is stopped.
pub async fn run(server: Arc<Server>, config: ControlConfig, stop: CancellationToken) {
    let mut changed = server.lock().store.changes();
    let mut manager = Manager::new(server, config);
    while !stop.is_cancelled() {
        changed.mark_unchanged();
        if manager.step() {
            tokio::task::yield_now().await;
            continue;
        }
        let due = manager.work.next_due().map(|at| manager.server.clock().instant_of(at));
        let far = tokio::time::Instant::now() + std::time::Duration::from_secs(3600);
        tokio::select! {
            () = stop.cancelled() => return,
            outcome = changed.changed() => if outcome.is_err() { return },
            () = tokio::time::sleep_until(due.unwrap_or(far)) => {}
        }
    }
}

struct Manager {
    server: Arc<Server>,
    config: ControlConfig,
    world: World,
    work: Work,
    scheduler: Scheduler,
}

impl Manager {
    fn new(server: Arc<Server>, config: ControlConfig) -> Self {
        let (world, work, scheduler) = Default::default();
        Self { server, config, world, work, scheduler }
    }

    /// Does some of what is to be done. True when there is more.
    fn step(&mut self) -> bool {
        self.observe();
        if self.config.controllers {
            self.work.take_due(self.server.clock().now());
            for _ in 0..RECONCILIATIONS_PER_STEP {
                let Some(task) = self.work.next() else { break };
                self.reconcile(&task);
                self.observe();
            }
        }
        let waits = self.config.scheduler && self.scheduler.step(&self.server);
        waits || !self.work.is_empty()
    }

    fn reconcile(&mut self, task: &Task) {
        let mut context = Context {
            server: &self.server,
            world: &self.world,
            work: &mut self.work,
            reaps_pods_after_grace: self.config.reaps_pods_after_grace,
        };
        let outcome = match task {
            Task::Deployment(key) => deployment::reconcile(&mut context, key),
            Task::ReplicaSet(key) => replicaset::reconcile(&mut context, key),
            Task::StatefulSet(key) => statefulset::reconcile(&mut context, key),
            Task::DaemonSet(key) => daemonset::reconcile(&mut context, key),
            Task::Job(key) => job::reconcile(&mut context, key),
            Task::Budget(key) => budget::reconcile(&mut context, key),
            Task::Namespace(name) => namespace::reconcile(&mut context, name),
            Task::Node(name) => node::reconcile(&mut context, name),
            Task::Pod(key) => pods::reconcile(&mut context, key),
            Task::Garbage(owner) => garbage::reconcile(&mut context, owner),
        };
        if let Err(error) = outcome {
            // Whatever moved the object meanwhile marks it again.
            tracing::debug!(?task, %error, "reconciliation gave up");
        }
    }

    /// Takes in all changes since the last time.
    fn observe(&mut self) {
        let news = self.world.observe(&self.server);
        // What nobody is there to do would never be done.
        for change in news.changes.iter().filter(|_| self.config.controllers) {
            self.work.mark(change, &self.world);
        }
        if !self.config.scheduler {
            return;
        }
        if news.is_fresh_start {
            self.scheduler = Scheduler::default();
        }
        for change in &news.changes {
            self.feed_scheduler(change);
        }
    }

    fn feed_scheduler(&mut self, observed: &world::Observed) {
        let stored = &observed.change.after;
        match observed.resource.as_str() {
            "nodes" if observed.change.deleted => self.scheduler.delete_node(&observed.key.name),
            "nodes" => self.scheduler.apply_node(&observed.key.name, stored),
            "pods" if observed.change.deleted => self.scheduler.delete_pod(&observed.key),
            "pods" => {
                if let Some(pod) = &observed.pod {
                    self.scheduler.apply_pod(pod);
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::cluster::ClusterConfig;
    use crate::cluster::clock::Clock;
    use crate::cluster::server::WriteOptions;
    use crate::cluster::store::Key;

    #[test]
    fn without_controllers_and_scheduler_there_is_nothing_to_do() {
        let clock = Clock::starting_at(ClusterConfig::default().start_time);
        let server = Arc::new(Server::new(clock, 0, 100));
        let key = Key { namespace: String::new(), name: "n".to_owned() };
        let node = json!({ "metadata": { "name": "n" } });
        let target = server.target("nodes", key).unwrap();
        server.create(&target, node, &WriteOptions::default()).unwrap();
        let rests = |controllers| {
            let config =
                ControlConfig { scheduler: false, controllers, reaps_pods_after_grace: false };
            let mut manager = Manager::new(Arc::clone(&server), config);
            (0..100).any(|_| !manager.step())
        };
        assert!(rests(false), "a step after the other, for ever");
        assert!(rests(true), "it is done");
    }
}
