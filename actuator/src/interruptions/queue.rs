//! The reader of one queue.
//!
//! Invariant: reads from the first listing of a term until told to end; an absent queue or a
//! refused read is a condition on node classes, and is tried again with back-off.

use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt, stream};
use longshore_proto::capacity::v1::{InterruptionKind, OfferingUpdates};
use longshore_proto::types::v1::CapacityType;
use longshore_runtime::backoff::{Backoff, BackoffPolicy};
use longshore_runtime::planted;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::parse::{Announcement, parse};
use crate::catalogue::OfferingKey;
use crate::cloud::{Class, CloudError, Instance, QueueMessage};
use crate::leader::{Leader, lock};
use crate::ledger::{Book, Draft, LedgerError, Move};
use crate::nodeclass::Problem;
use crate::reconcile::{imported, undecided};
use crate::work::instances::take_found;

/// Letters handled at the same time: as many as come at a time.
const LETTERS_AT_ONCE: usize = 10;
/// Longest time for a long poll, which takes twenty seconds, with the client library's repetitions.
const RECEIVED_WITHIN: Duration = Duration::from_secs(120);
/// Delays after a queue could not be read.
const AGAIN: BackoffPolicy =
    BackoffPolicy { minimum: Duration::from_secs(1), maximum: Duration::from_secs(30) };

/// Reads a queue until the token is cancelled.
///
/// # Errors
/// Never; failures are shown and tried again.
pub async fn read(
    leader: Arc<Leader>,
    queue: String,
    token: CancellationToken,
) -> anyhow::Result<()> {
    // Before that, an announcement about our instance looks like one about somebody else's.
    let mut inventory = leader.inventory.subscribe();
    let listed = inventory.wait_for(|inventory| inventory.complete() || planted::is("S10"));
    if token.run_until_cancelled(listed).await.is_none() {
        return Ok(());
    }
    drop(inventory);
    let mut backoff = Backoff::new(AGAIN, leader.context.platform.entropy.clone());
    loop {
        let error = tokio::select! {
            () = token.cancelled() => break,
            error = read_while_it_works(&leader, &queue, &mut backoff) => error,
        };
        show(&leader, &queue, Some(problem(&queue, &leader.context.region, &error)));
        tokio::select! {
            () = token.cancelled() => break,
            () = backoff.wait() => {}
        }
    }
    lock(&leader.queues).remove(&queue);
    Ok(())
}

async fn read_while_it_works(leader: &Leader, queue: &str, backoff: &mut Backoff) -> CloudError {
    let url = match leader.cloud().queue_url(queue).await {
        Ok(url) => url,
        Err(error) => return error,
    };
    loop {
        let messages = match timeout(RECEIVED_WITHIN, leader.cloud().receive(&url)).await {
            Ok(Ok(messages)) => messages,
            Ok(Err(error)) => return error,
            Err(_) => return CloudError::silent("sqs:ReceiveMessage"),
        };
        backoff.reset();
        show(leader, queue, None);
        let handled = stream::iter(messages).map(|message| handle(leader, &url, message));
        handled.buffer_unordered(LETTERS_AT_ONCE).collect::<Vec<()>>().await;
    }
}

/// Handles a message and deletes it; one that could not be recorded comes back.
async fn handle(leader: &Leader, url: &str, message: QueueMessage) {
    let (parsed, now_ms) = (parse(&message.body, leader.now_ms()), leader.now_ms());
    let found = parsed.as_ref().ok().and_then(Option::as_ref);
    leader.events().letters.received(found.map(|it| (it.kind, now_ms - it.time_ms)));
    match parsed {
        Ok(Some(announcement)) if ours(leader, &announcement) => {
            match announce(leader, &announcement).await {
                Ok(true) => {}
                Ok(false) => return,
                Err(error) => {
                    tracing::warn!(%error, "announcement kept in its queue");
                    return;
                }
            }
        }
        Ok(_) => {}
        Err(error) => tracing::warn!(%error, "message deleted"),
    }
    match leader.cloud().discard(url, &message.receipt).await {
        Ok(()) => leader.events().letters.deleted(),
        Err(error) => tracing::warn!(%error, "message will come again"),
    }
}

fn ours(leader: &Leader, announcement: &Announcement) -> bool {
    let context = &leader.context;
    let either = |said: &str, own: &str| said.is_empty() || said == own;
    either(&announcement.region, &context.region)
        && either(&announcement.account_id, &context.caller.account_id)
}

/// Records an announcement. Returns whether that is done; if not, it is to come again.
async fn announce(leader: &Leader, announcement: &Announcement) -> Result<bool, LedgerError> {
    if announcement.kind == InterruptionKind::StateChange {
        leader.look.notify_one();
    }
    let (instances, strangers) = known(leader, announcement);
    let mut decided = true;
    for instance in instances {
        if announcement.kind == InterruptionKind::Spot {
            close(leader, &instance);
        }
        match record(leader, announcement, instance.clone()).await? {
            Heard::News => leader.events().interrupted(&instance, announcement.kind),
            Heard::Expected => {}
            Heard::Undecided => decided = false,
        }
    }
    if !decided {
        return Ok(false);
    }
    // A change of state is shown by the next listing; other announcements are told only here.
    if strangers.is_empty() || announcement.kind == InterruptionKind::StateChange {
        return Ok(true);
    }
    Ok(none_of_ours(leader, &strangers).await)
}

/// Instances of an announcement that are known, and the ids of the others.
fn known(leader: &Leader, announcement: &Announcement) -> (Vec<Instance>, Vec<String>) {
    let inventory = leader.inventory.borrow();
    let (mut known, mut strangers) = (Vec::new(), Vec::new());
    for id in &announcement.instance_ids {
        match inventory.get(id) {
            Some(instance) => known.push(instance.clone()),
            None => strangers.push(id.clone()),
        }
    }
    (known, strangers)
}

/// Looks up instances that are not known: a call that launched one may not have been answered. True
/// when none is ours; what is ours is known from now on.
async fn none_of_ours(leader: &Leader, instance_ids: &[String]) -> bool {
    match leader.cloud().instances_by_id(instance_ids).await {
        Ok(found) => take_found(leader, &found.instances).is_empty(),
        Err(error) => {
            tracing::warn!(%error, "whose instances were announced is looked up again");
            false
        }
    }
}

/// A pool that EC2 takes instances back from has none to give.
fn close(leader: &Leader, instance: &Instance) {
    if instance.capacity_type == CapacityType::Spot {
        let key = OfferingKey::new(&instance.instance_type, &instance.zone, CapacityType::Spot);
        let updates = leader.closed().close(key, leader.now_ms()).into_iter().collect();
        leader.board.post_offerings(OfferingUpdates { updates, ..OfferingUpdates::default() });
    }
}

/// What an announcement says that was not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Heard {
    /// Something befalls the instance.
    News,
    /// It ends as we have asked, or has ended.
    Expected,
    /// It is not decided yet which launch the instance is for.
    Undecided,
}

/// Records what was announced of an instance, which enters the ledger with it unless it is there.
async fn record(
    leader: &Leader,
    announcement: &Announcement,
    instance: Instance,
) -> Result<Heard, LedgerError> {
    let (kind, time_ms) = (announcement.kind, announcement.time_ms);
    let now_ms = leader.now_ms();
    let edit = move |book: &Book, draft: &mut Draft| {
        let id = match book.of_instance(&instance.instance_id) {
            // A termination that we asked for is announced as well.
            Some(record) if ends_as_wanted(record.phase(), kind) => return Ok(Heard::Expected),
            Some(record) => record.launch_id().to_owned(),
            None if undecided(book, &instance) => return Ok(Heard::Undecided),
            None => {
                let record = imported(&instance, now_ms);
                let id = record.launch_id().to_owned();
                if draft.launch(book, &id).is_some() || !instance.alive() {
                    return Ok(Heard::Expected);
                }
                draft.put(record);
                id
            }
        };
        let step = Move::Interrupted { kind, time_ms };
        draft.step(book, &id, &step, now_ms).map(|()| Heard::News)
    };
    let (recorded, _) = leader.ledger.edit(None, edit).await?;
    Ok(recorded.unwrap_or_else(|step| {
        tracing::debug!(%step, "announcement came too late");
        Heard::Expected
    }))
}

fn ends_as_wanted(phase: crate::ledger::Phase, kind: InterruptionKind) -> bool {
    use crate::ledger::Phase::{Terminated, Terminating};
    matches!(phase, Terminating | Terminated) && kind == InterruptionKind::StateChange
}

fn show(leader: &Leader, queue: &str, problem: Option<Problem>) {
    let mut queues = lock(&leader.queues);
    let before = match &problem {
        Some(problem) => queues.insert(queue.to_owned(), problem.clone()),
        None => queues.remove(queue),
    };
    if before != problem {
        match &problem {
            Some(problem) => tracing::warn!(queue, why = problem.message, "no interruptions read"),
            None => tracing::info!(queue, "interruption queue is read again"),
        }
        leader.show.notify_one();
    }
}

fn problem(queue: &str, region: &str, error: &CloudError) -> Problem {
    if error.class == Class::NotFound {
        let message = format!(
            "there is no queue {queue:?} in {region}; create it with its EventBridge rules, or \
             clear settings.interruptionQueue. Until then spot interruptions are noticed only when \
             instances end"
        );
        return Problem::new("QueueNotFound", message);
    }
    Problem::new("QueueUnreadable", format!("queue {queue:?}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cloud::TAG_BATCH;
    use crate::ledger::BatchRecord;
    use crate::testing::{Scripted, ask_for, instance, leader};

    fn warning(instance_id: &str) -> Announcement {
        Announcement {
            kind: InterruptionKind::Spot,
            instance_ids: vec![instance_id.to_owned()],
            time_ms: 7,
            account_id: String::new(),
            region: String::new(),
        }
    }

    #[tokio::test]
    async fn an_announcement_about_an_instance_not_recorded_yet_is_recorded_with_it() {
        let leader = leader(Arc::new(Scripted::default())).await;
        let shown = instance("i-1", "l-9");
        leader.inventory.send_modify(|inventory| inventory.bought(shown));
        assert!(announce(&leader, &warning("i-1")).await.unwrap());
        let record = leader.record("l-9").unwrap();
        assert_eq!((record.instance_id.as_str(), record.interruptions.len()), ("i-1", 1));
    }

    #[tokio::test]
    async fn an_announcement_about_an_unknown_instance_is_kept_until_it_is_known_whose_that_is() {
        let cloud = Arc::new(Scripted::default());
        let leader = leader(Arc::clone(&cloud)).await;
        ask_for(&leader).await;
        // Nobody answers whose it is.
        assert!(!announce(&leader, &warning("i-1")).await.unwrap());
        // A call got through whose answer was lost: it is ours, and comes again.
        lock(&cloud.shown).push(instance("i-1", "l-1"));
        assert!(!announce(&leader, &warning("i-1")).await.unwrap());
        assert!(leader.inventory.borrow().get("i-1").is_some());
        // Somebody else's.
        lock(&cloud.shown).push(instance("i-2", ""));
        assert!(announce(&leader, &warning("i-2")).await.unwrap());
    }

    #[tokio::test]
    async fn an_announcement_is_kept_until_it_is_decided_which_launch_the_instance_is_for() {
        let leader = leader(Arc::new(Scripted::default())).await;
        ask_for(&leader).await;
        let ask = Move::AskTogether(CapacityType::OnDemand, "b-1".to_owned());
        let edit = move |book: &Book, draft: &mut Draft| {
            let launch_ids = vec!["l-1".to_owned()];
            let batch =
                BatchRecord { batch_id: "b-1".to_owned(), launch_ids, ..BatchRecord::default() };
            draft.batches.insert("b-1".to_owned(), Some(Arc::new(batch)));
            draft.step(book, "l-1", &ask, 1)
        };
        leader.ledger.edit(None, edit).await.unwrap().0.unwrap();
        let tags = [(TAG_BATCH.to_owned(), "b-1".to_owned())].into();
        let shown = Instance { tags, ..instance("i-1", "") };
        leader.inventory.send_modify(|inventory| inventory.bought(shown));
        assert!(!announce(&leader, &warning("i-1")).await.unwrap());
        let step = Move::Launched { instance_id: "i-1".to_owned(), ec2_request_id: String::new() };
        leader.ledger.record(vec![("l-1".to_owned(), step)], 1).await.unwrap();
        assert!(announce(&leader, &warning("i-1")).await.unwrap());
        assert_eq!(leader.record("l-1").unwrap().interruptions.len(), 1);
    }

    #[tokio::test]
    async fn an_end_that_was_asked_for_is_no_news() {
        let leader = leader(Arc::new(Scripted::default())).await;
        leader.inventory.send_modify(|inventory| inventory.bought(instance("i-1", "l-1")));
        let shuts_down = Announcement { kind: InterruptionKind::StateChange, ..warning("i-1") };
        let heard = || record(&leader, &shuts_down, instance("i-1", "l-1"));
        assert_eq!(heard().await.unwrap(), Heard::News);
        let step = |step| leader.ledger.record(vec![("l-1".to_owned(), step)], 1);
        step(Move::Terminate { traceparent: String::new() }).await.unwrap();
        assert_eq!(heard().await.unwrap(), Heard::Expected);
        step(Move::Gone { vanished: false }).await.unwrap();
        assert_eq!(heard().await.unwrap(), Heard::Expected);
    }

    #[tokio::test]
    async fn nothing_is_read_from_a_queue_before_the_first_listing() {
        let leader = leader(Arc::new(Scripted::default())).await;
        let token = CancellationToken::new();
        let mut reading = std::pin::pin!(read(Arc::clone(&leader), "q".to_owned(), token.clone()));
        assert!(futures::poll!(&mut reading).is_pending());
        assert!(lock(&leader.queues).is_empty(), "the queue was not even asked for");
        let book = Book::default();
        leader.inventory.send_modify(|i| drop(i.settle(&book, &std::collections::BTreeSet::new())));
        assert!(futures::poll!(&mut reading).is_pending());
        assert!(!lock(&leader.queues).is_empty());
        token.cancel();
        reading.await.unwrap();
    }
}
