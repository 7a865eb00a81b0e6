//! Who answers for the region: this process while it leads, somebody else, or nobody.
//!
//! Invariant: the tasks of a term end with it, before another one begins here. A task that fails or
//! panics ends the term, and the leadership with it.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use longshore_proto::reason::Reason;
use longshore_runtime::backoff::{Backoff, BackoffPolicy};
use longshore_runtime::planted;
use longshore_runtime::tasks::Supervisor;
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::election::{Standing, Term};
use crate::inventory::Inventory;
use crate::leader::{Leader, RegionContext};
use crate::ledger::Store;
use crate::work;

/// How long the tasks of a term may take to end.
const GRACE: Duration = Duration::from_secs(2);
/// How long a leader may take to look round; then another one tries.
const LOOK_ROUND_MAX: Duration = Duration::from_secs(300);

/// Who answers for the region.
#[derive(Clone)]
pub enum Leadership {
    /// This process.
    Held(Arc<Leader>),
    /// Another process, at this address; empty while unknown.
    Elsewhere {
        /// `http://host:port`.
        leader: String,
    },
    /// Nobody that this process knows of.
    Closed {
        /// Why, machine-readable.
        reason: Reason,
        /// Why, for people.
        why: String,
    },
}

/// What the election says, and what it is told.
pub struct Seat {
    /// Who leads.
    pub standing: watch::Receiver<Standing>,
    /// Revision of the latest term that this process gives up of itself.
    pub resigned: watch::Sender<i64>,
}

/// Follows the election: begins a term when it is won, and ends it when it is lost.
pub async fn run(
    context: RegionContext,
    store: Store,
    mut seat: Seat,
    leadership: watch::Sender<Leadership>,
    supervisor: &Supervisor,
) {
    let token = supervisor.token().clone();
    let mut backoff = Backoff::new(BackoffPolicy::NETWORK, supervisor.platform().entropy.clone());
    while !token.is_cancelled() {
        let now = seat.standing.borrow_and_update().clone();
        let ended = match now {
            Standing::Leading(term) => {
                let revision = term.revision;
                let held =
                    Tenure { context: &context, store: &store, leadership: &leadership, term };
                let ended = held.hold(&mut seat.standing, supervisor).await;
                if ended.is_err() {
                    // Somebody else may do better, and is kept from it while we hold the lease.
                    seat.resigned.send_replace(revision);
                }
                ended
            }
            Standing::Following { leader } => {
                leadership.send_replace(Leadership::Elsewhere { leader });
                wait(&mut seat.standing, &token).await;
                Ok(())
            }
            Standing::Cut { why } => {
                leadership
                    .send_replace(Leadership::Closed { reason: Reason::StoreUnavailable, why });
                wait(&mut seat.standing, &token).await;
                Ok(())
            }
        };
        match ended {
            Ok(()) => backoff.reset(),
            Err(error) => {
                let why = format!("{error:#}");
                tracing::error!(%why, "no longer leading; campaigning again");
                leadership
                    .send_replace(Leadership::Closed { reason: Reason::StoreUnavailable, why });
                tokio::select! {
                    () = backoff.wait() => {}
                    () = token.cancelled() => {}
                }
            }
        }
    }
}

async fn wait(standing: &mut watch::Receiver<Standing>, token: &CancellationToken) {
    tokio::select! {
        changed = standing.changed() => {
            if changed.is_err() {
                token.cancelled().await;
            }
        }
        () = token.cancelled() => {}
    }
}

/// Waits until EC2 has listed the region's instances. Whoever watches takes what is shown for all
/// there is: a node whose instance is not among it would be given up as gone.
async fn look_round(leader: &Leader, leadership: &watch::Sender<Leadership>) {
    let why = "leading, but EC2 has not listed the region's instances yet; if this lasts, the log \
               says why"
        .to_owned();
    leadership.send_replace(Leadership::Closed { reason: Reason::NotLeader, why });
    let mut inventory = leader.inventory.subscribe();
    // Fails only when the leader is gone, and it is held here.
    let _ = inventory.wait_for(Inventory::complete).await;
}

struct Tenure<'a> {
    context: &'a RegionContext,
    store: &'a Store,
    leadership: &'a watch::Sender<Leadership>,
    term: Term,
}

impl Tenure<'_> {
    /// Leads until the election says otherwise, a task gives up, or the process ends.
    async fn hold(
        self,
        standing: &mut watch::Receiver<Standing>,
        owner: &Supervisor,
    ) -> anyhow::Result<()> {
        let supervisor = owner.child();
        let context = self.context.clone();
        let leader = Leader::begin(context, self.term, self.store.clone(), &supervisor).await?;
        work::start(&leader, &supervisor);
        let given_up = supervisor.token().clone();
        let over = async {
            tokio::select! {
                () = wait(standing, owner.token()) => {}
                () = given_up.cancelled(), if !planted::is("S20") => {}
            }
        };
        tokio::pin!(over);
        let mut blind = false;
        tokio::select! {
            () = &mut over => {}
            looked = timeout(LOOK_ROUND_MAX, look_round(&leader, self.leadership)) => {
                blind = looked.is_err();
                if !blind {
                    leader.events().leading(true);
                    tracing::info!(term = leader.term.revision, "leading; the region is served");
                    self.leadership.send_replace(Leadership::Held(Arc::clone(&leader)));
                    over.await;
                }
            }
        }
        leader.events().leading(false);
        self.leadership.send_replace(Leadership::Elsewhere { leader: String::new() });
        leader.board.close();
        supervisor.token().cancel();
        // The ledger's task ends with the last one who could ask it for something.
        drop(leader);
        supervisor.join(GRACE).await.context("the term is over")?;
        anyhow::ensure!(!blind, "EC2 did not list the region's instances in {LOOK_ROUND_MAX:?}");
        Ok(())
    }
}
