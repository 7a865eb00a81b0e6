//! Reconciliation as a task: looks at ledger and inventory, and hands out what is to be done.
//!
//! Invariant: what is handed out is busy until its worker is done with it; what a full queue does
//! not take is found again at the next look.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;

use crate::fair::Fair;
use crate::leader::Leader;
use crate::ledger::{Book, Draft, IllegalMove, Move, Phase};
use crate::reconcile::{Action, Situation, reconcile, tag_key, tagged_instance};

/// Terminations that may wait.
const QUEUE_TERMINATIONS: usize = 2048;
/// Instances that may wait for the tags of their launch.
const QUEUE_TAGS: usize = 2048;
/// Longest time between two looks.
const TICK: Duration = Duration::from_secs(1);
/// A look and what it asks of the ledger have stalled after this: etcd answers or is given up
/// within seconds.
const ROUND_MAX: Duration = Duration::from_secs(120);

/// Where work is put.
#[derive(Clone)]
pub struct Queues {
    /// Launch ids by cluster.
    pub launches: Arc<Fair<String>>,
    terminations: mpsc::Sender<Subject>,
    tags: mpsc::Sender<Subject>,
}

/// An instance to terminate, or to tag.
#[derive(Clone, Debug)]
pub struct Subject {
    /// Instance.
    pub instance_id: String,
    /// Its launch.
    pub launch_id: String,
}

/// The queues, and where instances to terminate and instances to tag come out.
pub fn queues() -> (Queues, [mpsc::Receiver<Subject>; 2]) {
    let (terminations, terminating) = mpsc::channel(QUEUE_TERMINATIONS);
    let (tags, untagged) = mpsc::channel(QUEUE_TAGS);
    (Queues { launches: Arc::new(Fair::new()), terminations, tags }, [terminating, untagged])
}

pub async fn run(leader: Arc<Leader>, queues: Queues) -> anyhow::Result<()> {
    let mut ledger = leader.ledger.version();
    let mut inventory = leader.inventory.subscribe();
    let pulse = leader.context.platform.pulses.begin("reconcile", ROUND_MAX);
    loop {
        pulse.beat();
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
    leader.paces().retain(|id| pending(id) || there(tagged_instance(id).unwrap_or(id)));
}

async fn carry_out(leader: &Leader, queues: &Queues, actions: Vec<Action>) -> anyhow::Result<()> {
    let mut bookkeeping = Vec::new();
    let mut launches = BTreeMap::<String, Vec<String>>::new();
    for action in actions {
        match action {
            Action::Launch(id) => {
                let cluster_id = leader.record(&id).map(|record| record.cluster_id.clone());
                launches.entry(cluster_id.unwrap_or_default()).or_default().push(id);
            }
            Action::Terminate { instance_id, launch_id } => {
                let key = instance_id.clone();
                hand_out(leader, &queues.terminations, key, Subject { instance_id, launch_id });
            }
            Action::Tag { instance_id, launch_id } => {
                let key = tag_key(&instance_id);
                hand_out(leader, &queues.tags, key, Subject { instance_id, launch_id });
            }
            Action::Record(..)
            | Action::Import(_)
            | Action::Unasked(_)
            | Action::Forget(_)
            | Action::ForgetBatch(_) => bookkeeping.push(action),
        }
    }
    for (cluster_id, ids) in launches {
        leader.busy().extend(ids.iter().cloned());
        for full in queues.launches.push_all(&cluster_id, ids) {
            leader.busy().remove(&full);
        }
    }
    if bookkeeping.is_empty() { Ok(()) } else { keep_books(leader, bookkeeping).await }
}

fn hand_out(leader: &Leader, queue: &mpsc::Sender<Subject>, key: String, subject: Subject) {
    leader.busy().insert(key.clone());
    if queue.try_send(subject).is_err() {
        leader.busy().remove(&key);
    }
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
                Action::Unasked(id) => illegal.extend(take_back(book, draft, &id, now_ms)),
                Action::ForgetBatch(id) => drop(draft.batches.insert(id, None)),
                Action::Forget(id) => {
                    let instance = book.launches.get(&id).map(|l| l.instance_id.clone());
                    forgotten.1.extend(instance.filter(|id| !id.is_empty()));
                    draft.launches.insert(id.clone(), None);
                    forgotten.0.push(id);
                }
                Action::Launch(_) | Action::Terminate { .. } | Action::Tag { .. } => {}
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

/// Ends a call that was never made, unless it turns out to be recorded after all.
fn take_back(book: &Book, draft: &mut Draft, id: &str, now_ms: i64) -> Option<IllegalMove> {
    let batch_id = draft.launch(book, id).map(|record| record.batch_id.clone())?;
    if book.batches.contains_key(&batch_id) {
        return None;
    }
    draft.step(book, id, &Move::Refused { exhausted: false }, now_ms).err()
}
