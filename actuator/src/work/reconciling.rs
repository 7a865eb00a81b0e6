//! Reconciliation as a task: looks at ledger and inventory, and hands out what is to be done.
//!
//! Invariant: what is handed out is busy until its worker is done with it; what a full queue does
//! not take is found again at the next look.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;

use crate::leader::Leader;
use crate::ledger::{Book, Draft, IllegalMove};
use crate::reconcile::{Action, Situation, reconcile};

/// Launches that may wait for a worker; more than the largest plan.
const QUEUE_LAUNCHES: usize = 2048;
/// Terminations that may wait.
const QUEUE_TERMINATIONS: usize = 2048;
/// Longest time between two looks.
const TICK: Duration = Duration::from_secs(1);

type Queue<T> = (mpsc::Sender<T>, mpsc::Receiver<T>);

/// Where work is put.
pub type Senders = (mpsc::Sender<String>, mpsc::Sender<Doomed>);

/// An instance to terminate.
#[derive(Clone, Debug)]
pub struct Doomed {
    /// Instance.
    pub instance_id: String,
    /// Its launch.
    pub launch_id: String,
}

/// Queues of launch ids and of instances to terminate.
pub fn queues() -> (Queue<String>, Queue<Doomed>) {
    (mpsc::channel(QUEUE_LAUNCHES), mpsc::channel(QUEUE_TERMINATIONS))
}

pub async fn run(leader: Arc<Leader>, senders: Senders) -> anyhow::Result<()> {
    let mut ledger = leader.ledger.version();
    let mut inventory = leader.inventory.subscribe();
    loop {
        ledger.mark_unchanged();
        inventory.mark_unchanged();
        let actions = look(&leader);
        carry_out(&leader, &senders, actions).await?;
        tokio::select! {
            changed = ledger.changed() => changed?,
            changed = inventory.changed() => changed?,
            () = tokio::time::sleep(TICK) => {}
        }
    }
}

fn look(leader: &Leader) -> Vec<Action> {
    let busy = leader.busy().clone();
    let situation =
        Situation { now_ms: leader.now_ms(), leading_since_ms: leader.since_ms, busy: &busy };
    let inventory = leader.inventory.borrow();
    reconcile(&leader.ledger.book(), &inventory, &situation)
}

async fn carry_out(
    leader: &Leader,
    (launches, terminations): &Senders,
    actions: Vec<Action>,
) -> anyhow::Result<()> {
    let mut bookkeeping = Vec::new();
    for action in actions {
        match action {
            Action::Launch(id) => {
                leader.busy().insert(id.clone());
                if let Err(full) = launches.try_send(id) {
                    leader.busy().remove(&full.into_inner());
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
