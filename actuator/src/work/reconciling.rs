//! Reconciliation as a task: looks at ledger and inventory, and hands out what is to be done.
//!
//! Invariant: what is handed out is busy until its worker is done with it; what a full queue does
//! not take is found again at the next look.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;

use crate::fair::Fair;
use crate::leader::Leader;
use crate::ledger::{Book, Draft, IllegalMove, Phase};
use crate::reconcile::{Action, Situation, reconcile};

/// Terminations that may wait.
const QUEUE_TERMINATIONS: usize = 2048;
/// Longest time between two looks.
const TICK: Duration = Duration::from_secs(1);

/// Where work is put: launch ids by cluster, and instances to terminate.
pub type Queues = (Arc<Fair<String>>, mpsc::Sender<Doomed>);

/// An instance to terminate.
#[derive(Clone, Debug)]
pub struct Doomed {
    /// Instance.
    pub instance_id: String,
    /// Its launch.
    pub launch_id: String,
}

/// The queues, and where instances to terminate come out.
pub fn queues() -> (Queues, mpsc::Receiver<Doomed>) {
    let (sender, receiver) = mpsc::channel(QUEUE_TERMINATIONS);
    ((Arc::new(Fair::new()), sender), receiver)
}

pub async fn run(leader: Arc<Leader>, queues: Queues) -> anyhow::Result<()> {
    let mut ledger = leader.ledger.version();
    let mut inventory = leader.inventory.subscribe();
    loop {
        ledger.mark_unchanged();
        inventory.mark_unchanged();
        let actions = look(&leader);
        forget_paces(&leader);
        carry_out(&leader, &queues, actions).await?;
        tokio::select! {
            changed = ledger.changed() => changed?,
            changed = inventory.changed() => changed?,
            () = tokio::time::sleep(TICK) => {}
        }
    }
}

fn look(leader: &Leader) -> Vec<Action> {
    let busy = leader.busy().clone();
    let waiting = leader.paces().waiting();
    let situation = Situation { now_ms: leader.now_ms(), busy: &busy, waiting: &waiting };
    let inventory = leader.inventory.borrow();
    reconcile(&leader.ledger.book(), &inventory, &situation)
}

/// What nobody works on any more is not remembered: launches that are settled, instances that are
/// gone.
fn forget_paces(leader: &Leader) {
    let book = leader.ledger.book();
    let inventory = leader.inventory.borrow();
    let pending = |id: &str| book.launches.get(id).is_some_and(|r| r.phase() == Phase::Pending);
    let there =
        |id: &str| inventory.get(id).is_some() || book.of_instance(id).is_some_and(|r| r.living());
    leader.paces().retain(|id| pending(id) || there(id));
}

async fn carry_out(
    leader: &Leader,
    (launches, terminations): &Queues,
    actions: Vec<Action>,
) -> anyhow::Result<()> {
    let mut bookkeeping = Vec::new();
    for action in actions {
        match action {
            Action::Launch(id) => {
                let cluster_id = leader.record(&id).map(|record| record.cluster_id.clone());
                leader.busy().insert(id.clone());
                if let Err(full) = launches.push(&cluster_id.unwrap_or_default(), id) {
                    leader.busy().remove(&full);
                }
            }
            Action::Terminate { instance_id, launch_id } => {
                leader.busy().insert(instance_id.clone());
                let doomed = Doomed { instance_id, launch_id };
                if let Err(full) = terminations.try_send(doomed) {
                    leader.busy().remove(&full.into_inner().instance_id);
                }
            }
            Action::Record(..) | Action::Import(_) | Action::Forget(_) => bookkeeping.push(action),
        }
    }
    if bookkeeping.is_empty() { Ok(()) } else { keep_books(leader, bookkeeping).await }
}

async fn keep_books(leader: &Leader, actions: Vec<Action>) -> anyhow::Result<()> {
    let now_ms = leader.now_ms();
    let edit = move |book: &Book, draft: &mut Draft| {
        let mut forgotten = (Vec::new(), Vec::new());
        let mut illegal = Vec::<IllegalMove>::new();
        for action in actions {
            match action {
                Action::Record(id, step) => {
                    illegal.extend(draft.step(book, &id, &step, now_ms).err());
                }
                Action::Import(record) => draft.put(*record),
                Action::Forget(id) => {
                    let instance = book.launches.get(&id).map(|l| l.instance_id.clone());
                    forgotten.1.extend(instance.filter(|id| !id.is_empty()));
                    draft.launches.insert(id.clone(), None);
                    forgotten.0.push(id);
                }
                Action::Launch(_) | Action::Terminate { .. } => {}
            }
        }
        (forgotten, illegal)
    };
    let (((launches, instances), illegal), _) = leader.ledger.edit(None, edit).await?;
    leader.board.forget(launches, instances);
    for step in illegal {
        tracing::debug!(%step, "overtaken by another move");
    }
    Ok(())
}
