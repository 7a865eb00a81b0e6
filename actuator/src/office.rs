//! Who answers for the region: this process while it leads, somebody else, or nobody.
//!
//! Invariant: the tasks of a term end with it, before another one begins here.

use std::sync::Arc;
use std::time::Duration;

use longshore_proto::reason::Reason;
use longshore_runtime::backoff::{Backoff, BackoffPolicy};
use longshore_runtime::tasks::Supervisor;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::election::{Standing, Term};
use crate::inventory::Inventory;
use crate::leader::{Leader, Premises};
use crate::ledger::{Store, StoreError};
use crate::work;

/// How long the tasks of a term may take to end.
const GRACE: Duration = Duration::from_secs(2);

/// Who answers for the region.
#[derive(Clone)]
pub enum Office {
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

/// Follows the election: begins a term when it is won, and ends it when it is lost.
pub async fn run(
    premises: Premises,
    store: Store,
    mut standing: watch::Receiver<Standing>,
    office: watch::Sender<Office>,
    supervisor: &Supervisor,
) {
    let token = supervisor.token().clone();
    let mut backoff = Backoff::new(BackoffPolicy::NETWORK, supervisor.platform().entropy.clone());
    while !token.is_cancelled() {
        let now = standing.borrow_and_update().clone();
        let ended = match now {
            Standing::Leading(term) => {
                let held = Tenure { premises: &premises, store: &store, office: &office, term };
                held.hold(&mut standing, supervisor).await
            }
            Standing::Following { leader } => {
                office.send_replace(Office::Elsewhere { leader });
                wait(&mut standing, &token).await;
                Ok(())
            }
            Standing::Cut { why } => {
                office.send_replace(Office::Closed { reason: Reason::StoreUnavailable, why });
                wait(&mut standing, &token).await;
                Ok(())
            }
        };
        match ended {
            Ok(()) => backoff.reset(),
            Err(error) => {
                let why = error.to_string();
                tracing::warn!(%why, "cannot take office; trying again");
                office.send_replace(Office::Closed { reason: Reason::StoreUnavailable, why });
                backoff.wait().await;
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

/// Waits until EC2 has listed the region's instances. Whoever watches takes what is shown for all there
/// is: a node whose instance is not among it would be given up as gone.
async fn look_round(leader: &Leader, office: &watch::Sender<Office>) {
    let why = "leading, but EC2 has not listed the region's instances yet; if this lasts, the log \
               says why"
        .to_owned();
    office.send_replace(Office::Closed { reason: Reason::NotLeader, why });
    let mut inventory = leader.inventory.subscribe();
    // Fails only when the leader is gone, and it is held here.
    let _ = inventory.wait_for(Inventory::complete).await;
}

struct Tenure<'a> {
    premises: &'a Premises,
    store: &'a Store,
    office: &'a watch::Sender<Office>,
    term: Term,
}

impl Tenure<'_> {
    /// Leads until the election says otherwise, a task gives up, or the process ends.
    async fn hold(
        self,
        standing: &mut watch::Receiver<Standing>,
        owner: &Supervisor,
    ) -> Result<(), StoreError> {
        let supervisor = owner.child();
        let premises = self.premises.clone();
        let leader = Leader::begin(premises, self.term, self.store.clone(), &supervisor).await?;
        work::start(&leader, &supervisor);
        let given_up = supervisor.token().clone();
        let over = async {
            tokio::select! {
                () = wait(standing, owner.token()) => {}
                () = given_up.cancelled() => {}
            }
        };
        tokio::pin!(over);
        tokio::select! {
            () = &mut over => {}
            () = look_round(&leader, self.office) => {
                leader.events().leading(true);
                tracing::info!(term = leader.term.revision, "in office");
                self.office.send_replace(Office::Held(Arc::clone(&leader)));
                over.await;
            }
        }
        leader.events().leading(false);
        self.office.send_replace(Office::Elsewhere { leader: String::new() });
        leader.board.close();
        supervisor.token().cancel();
        // The ledger's task ends with the last one who could ask it for something.
        drop(leader);
        if let Err(error) = supervisor.join(GRACE).await {
            tracing::warn!(error = format!("{error:#}"), "term ended");
        }
        Ok(())
    }
}
