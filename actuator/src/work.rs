//! The leader's tasks: each looks at state, acts, and looks again on a signal or a timer.
//!
//! Invariant: every task has a name and a policy; a task that fails starts over with back-off and
//! finds what it needs in the ledger, in EC2 or in its own next look.

mod catalogues;
mod classes;
mod clusters;
mod explain;
pub mod instances;
mod launch;
mod market;
mod offerings;
mod queues;
mod reconciling;
mod templates;
mod terminate;

use std::sync::Arc;

use longshore_runtime::backoff::BackoffPolicy;
use longshore_runtime::tasks::{OnError, Supervisor};

use crate::leader::Leader;

/// Every task that talks to AWS starts over when it fails.
const AGAIN: OnError = OnError::Restart(BackoffPolicy::NETWORK);

/// Starts all tasks of a leader.
pub fn start(leader: &Arc<Leader>, supervisor: &Supervisor) {
    let (queues, doomed) = reconciling::queues();
    launch::start(leader, Arc::clone(&queues.0), supervisor);
    terminate::start(leader, doomed, supervisor);
    spawn(supervisor, "reconcile", leader, move |l| reconciling::run(l, queues.clone()));
    spawn(supervisor, "instances", leader, instances::run);
    spawn(supervisor, "node-classes", leader, classes::run);
    spawn(supervisor, "catalogues", leader, catalogues::run);
    spawn(supervisor, "instance-types", leader, market::listing);
    spawn(supervisor, "spot-prices", leader, market::spot);
    spawn(supervisor, "on-demand-prices", leader, market::on_demand);
    spawn(supervisor, "offerings", leader, offerings::run);
    spawn(supervisor, "clusters", leader, clusters::run);
    spawn(supervisor, "launch-templates", leader, templates::run);
    queues::start(leader, supervisor);
}

fn spawn<F, Fut>(supervisor: &Supervisor, name: &'static str, leader: &Arc<Leader>, task: F)
where
    F: Fn(Arc<Leader>) -> Fut + Send + 'static,
    Fut: Future<Output = anyhow::Result<()>> + Send,
{
    let leader = Arc::clone(leader);
    supervisor.spawn(name, AGAIN, move || task(Arc::clone(&leader)));
}
