//! The leader's tasks: each looks at state, acts, and looks again on a signal or a timer.
//!
//! Invariant: every task has a name and a policy; a task that fails starts over with back-off and
//! finds what it needs in the ledger, in EC2 or in its own next look. One that panics ends the
//! term.

mod audit;
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
mod tags;
mod templates;
mod terminate;

use std::sync::Arc;

use longshore_runtime::backoff::BackoffPolicy;
use longshore_runtime::tasks::{OnError, Supervisor};

use crate::leader::Leader;

/// Every task that talks to AWS starts over when it fails. A panic ends the term: it would come
/// again, and the region would be led by a process that does half of its work.
const AGAIN: OnError = OnError::RestartUnlessPanicked(BackoffPolicy::NETWORK);

/// Starts all tasks of a leader.
pub fn start(leader: &Arc<Leader>, supervisor: &Supervisor) {
    let (queues, [terminating, untagged]) = reconciling::queues();
    launch::start(leader, Arc::clone(&queues.launches), supervisor);
    terminate::start(leader, terminating, supervisor);
    tags::start(leader, untagged, supervisor);
    spawn(supervisor, "reconcile", leader, move |l| reconciling::run(l, queues.clone()));
    spawn(supervisor, "instances", leader, instances::run);
    spawn(supervisor, "node-classes", leader, classes::run);
    spawn(supervisor, "catalogues", leader, catalogues::run);
    spawn(supervisor, "instance-types", leader, market::listing);
    spawn(supervisor, "spot-prices", leader, market::spot);
    spawn(supervisor, "on-demand-prices", leader, market::on_demand);
    spawn(supervisor, "offerings", leader, offerings::run);
    spawn(supervisor, "clusters", leader, clusters::run);
    spawn(supervisor, "audit", leader, audit::run);
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use longshore_runtime::platform::Platform;
    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::ledger::{Book, Draft, MemoryStore};
    use crate::testing::{Scripted, ask_for, leader, leader_on};

    #[tokio::test(start_paused = true)]
    async fn a_panic_ends_the_term() {
        let leader = leader(Arc::new(Scripted::default())).await;
        let supervisor = Supervisor::new(CancellationToken::new(), Platform::system());
        spawn(&supervisor, "reconcile", &leader, |_| async { panic!("no such launch") });
        let ending = supervisor.join(Duration::from_secs(5));
        let ended = tokio::time::timeout(Duration::from_secs(60), ending).await;
        let error = ended.expect("the term goes on").unwrap_err();
        assert_eq!(format!("{error:#}"), "task reconcile: panicked: no such launch");
    }

    #[tokio::test]
    async fn a_panic_in_the_ledger_ends_the_term_and_the_next_one_has_what_was_recorded() {
        let (cloud, store) = (Arc::new(Scripted::default()), MemoryStore::default());
        let supervisor = || Supervisor::new(CancellationToken::new(), Platform::system());
        let owner = supervisor();
        let leader = leader_on(Arc::clone(&cloud), (store.clone(), 1), &owner).await;
        ask_for(&leader).await;
        let odd = |_: &Book, _: &mut Draft| panic!("no such book");
        leader.ledger.edit(None, odd).await.unwrap_err();
        assert!(leader.record("l-1").is_some(), "readers go on until the term is over");
        drop(leader);
        let error = owner.join(Duration::from_secs(5)).await.unwrap_err();
        assert_eq!(format!("{error:#}"), "task ledger: panicked: no such book");
        let leader = leader_on(cloud, (store, 2), &supervisor()).await;
        assert!(leader.record("l-1").is_some());
        leader.ledger.edit(None, |_: &Book, _: &mut Draft| ()).await.unwrap();
    }
}
