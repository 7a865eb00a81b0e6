//! PutCluster and ForgetCluster: how clusters enter the ledger, and leave it.
//!
//! Invariant: one name is one cluster for as long as instances of it run; a cluster is forgotten
//! only when none does, by a call or by age.

use std::sync::Arc;

use longshore_proto::capacity::v1::{ForgetClusterResponse, PutClusterRequest, PutClusterResponse};
use longshore_proto::reason::Reason;
use longshore_proto::types::v1::ClusterFacts;
use longshore_runtime::planted;
use prost::Message;
use tonic::Status;

use super::{audit, claimant, malformed, refusal};
use crate::cloud::TAG_CLUSTER;
use crate::inventory::Inventory;
use crate::leader::Leader;
use crate::ledger::{Author, Book, ClusterRecord, Draft, RECORD_BYTES_MAX};

/// How exactly it is recorded when a cluster was seen last, in milliseconds: a day.
pub const SEEN_STEP_MS: i64 = 86_400_000;

/// Most clusters of a region: ten times those that one scheduler is made for.
const CLUSTERS_MAX: usize = 1_000;
/// Most bytes of what is recorded of them: userData of the largest size for each of a hundred.
const CLUSTERS_BYTES_MAX: usize = 64 * 1024 * 1024;
/// What a node class counts for beside its bytes: its fields in memory, most of them empty, and
/// what is found and shown of it. Sixteen thousand classes of a region, where a cluster has a
/// dozen.
const CLASS_BYTES: usize = 4 * 1024;

/// Records what is known of a cluster.
pub async fn put(
    leader: &Leader,
    request: PutClusterRequest,
    caller: String,
) -> Result<PutClusterResponse, Status> {
    let claimant = claimant(request.fence, leader.now_ms()).map_err(|status| *status)?;
    let facts = request.cluster.ok_or_else(|| malformed("cluster is missing"))?;
    if facts.name.is_empty() {
        return Err(malformed("cluster.name is empty"));
    }
    let account_id = &leader.context.caller.account_id;
    if !facts.account_id.is_empty() && !account_id.is_empty() && facts.account_id != *account_id {
        let message = format!(
            "cluster {} says that its nodes are in account {}, and this actuator serves \
             {account_id}; correct the watcher's account, or point its scheduler at that account's \
             actuator",
            facts.name, facts.account_id
        );
        return Err(Reason::ClusterMismatch.status(message));
    }
    let cluster_id = claimant.cluster_id.clone();
    if let Err(denied) = leader.context.policies.now().of(&cluster_id) {
        let author = Author { caller, plan_id: String::new() };
        return Err(audit::forbid(leader, &cluster_id, author, &denied).await);
    }
    let seen_ms = leader.now_ms();
    let record = ClusterRecord { facts: Some(facts), node_classes: request.node_classes, seen_ms };
    check_size(&cluster_id, &record).map_err(|status| *status)?;
    let running = running(&leader.inventory.borrow(), &cluster_id);
    let edit = move |book: &Book, draft: &mut Draft| {
        let known = book.clusters.get(&cluster_id);
        room(book, &cluster_id, &record)?;
        if let Some(known) = known {
            mismatch(&cluster_id, known, &record, running + living(book, &cluster_id))
                .map_err(|message| Box::new(Reason::ClusterMismatch.status(message)))?;
        }
        if known.is_none_or(|known| differs(known, &record)) {
            draft.clusters.insert(cluster_id, Arc::new(record));
        }
        Ok(())
    };
    let (put, revision) = leader.ledger.edit(Some(claimant), edit).await.map_err(refusal)?;
    put.map_err(|status: Box<Status>| *status)?;
    // It may have instances that another autoscaler launched: known as its own only now.
    leader.look.notify_one();
    Ok(PutClusterResponse { revision })
}

/// Whether what is recorded of all clusters together stays within bounds.
fn room(book: &Book, cluster_id: &str, record: &ClusterRecord) -> Result<(), Box<Status>> {
    let others = book.clusters.iter().filter(|(id, _)| *id != cluster_id);
    let (count, bytes) =
        others.fold((0, 0), |(count, bytes), (_, known)| (count + 1, bytes + weight(known)));
    let more = weight(record);
    if count < CLUSTERS_MAX && bytes + more <= CLUSTERS_BYTES_MAX {
        return Ok(());
    }
    Err(Box::new(Reason::Overloaded.status(format!(
        "{count} clusters of {bytes} bytes are recorded here, and {CLUSTERS_MAX} of \
         {CLUSTERS_BYTES_MAX} bytes may be; cluster {cluster_id} with {} node classes takes {more} \
         more. Forget clusters that are gone with ForgetCluster, delete node classes that no pool \
         uses, or shorten userData",
        record.node_classes.len()
    ))))
}

/// Bytes that a cluster counts for.
fn weight(record: &ClusterRecord) -> usize {
    record.encoded_len() + record.node_classes.len() * CLASS_BYTES
}

/// Forgets a cluster of which nothing runs. One that is not known is forgotten already.
pub async fn forget(leader: &Leader, cluster_id: String) -> Result<ForgetClusterResponse, Status> {
    if cluster_id.is_empty() {
        return Err(malformed("cluster_id is empty"));
    }
    let running = running(&leader.inventory.borrow(), &cluster_id);
    let id = cluster_id.clone();
    let edit = move |book: &Book, draft: &mut Draft| {
        let left = running + living(book, &id);
        if left == 0 { drop_cluster(book, draft, &id) } else { Err(left) }
    };
    let (forgotten, revision) = leader.ledger.edit(None, edit).await.map_err(refusal)?;
    match forgotten {
        Ok(launches) => {
            leader.board.forget(launches, Vec::new());
            leader.board.forget_cluster(&cluster_id);
            Ok(ForgetClusterResponse { revision })
        }
        Err(left) => Err(Reason::InUse.status(format!(
            "cluster {cluster_id} has {left} instances or launches; delete its NodeClaims, or \
             terminate what carries the tag {TAG_CLUSTER}={cluster_id}, and ask again"
        ))),
    }
}

/// Drafts that nothing is recorded of a cluster; returns its launches, all of them finished.
///
/// # Errors
/// Never; it has the type of a refusal for its callers.
pub fn drop_cluster(
    book: &Book,
    draft: &mut Draft,
    cluster_id: &str,
) -> Result<Vec<String>, usize> {
    let launches = book.launches.values().filter(|record| record.cluster_id == cluster_id);
    let ids: Vec<_> = launches.map(|record| record.launch_id().to_owned()).collect();
    draft.launches.extend(ids.iter().map(|id| (id.clone(), None)));
    draft.dropped.insert(cluster_id.to_owned());
    Ok(ids)
}

/// Instances of a cluster that EC2 shows.
#[must_use]
pub fn running(inventory: &Inventory, cluster_id: &str) -> usize {
    let of_it = |tag: &str| tag == cluster_id;
    inventory.iter().filter(|found| found.alive() && of_it(found.tag(TAG_CLUSTER))).count()
}

/// Launches of a cluster that are not finished, or cannot be read: those may be anybody's.
#[must_use]
pub fn living(book: &Book, cluster_id: &str) -> usize {
    let launches = book.launches.values();
    launches.filter(|record| record.cluster_id == cluster_id && !record.finished()).count()
}

fn check_size(cluster_id: &str, record: &ClusterRecord) -> Result<(), Box<Status>> {
    let bytes = record.encoded_len();
    if bytes <= RECORD_BYTES_MAX || planted::is("S21a") {
        return Ok(());
    }
    let largest = record.node_classes.iter().max_by_key(|class| class.encoded_len());
    let message = format!(
        "cluster {cluster_id} with its node classes is {bytes} bytes, and {RECORD_BYTES_MAX} can \
         be recorded; shorten userData or tags, of {} first",
        largest.map_or("its node classes", |class| &class.name)
    );
    Err(Box::new(Reason::MessageTooLarge.status(message)))
}

/// True when a record says more than that the cluster was seen a moment later.
fn differs(known: &ClusterRecord, new: &ClusterRecord) -> bool {
    let later = new.seen_ms.saturating_sub(known.seen_ms) >= SEEN_STEP_MS;
    later || known.facts != new.facts || known.node_classes != new.node_classes
}

/// Refuses another cluster of the same name while the known one has instances.
fn mismatch(
    cluster_id: &str,
    known: &ClusterRecord,
    new: &ClusterRecord,
    instances: usize,
) -> Result<(), String> {
    let uid = |record: &ClusterRecord| {
        record.facts.as_ref().map_or(String::new(), |facts: &ClusterFacts| facts.uid.clone())
    };
    let (old, new) = (uid(known), uid(new));
    if old.is_empty() || new.is_empty() || old == new || instances == 0 || planted::is("S5") {
        return Ok(());
    }
    Err(format!(
        "cluster {cluster_id} is known with UID {old}, of which {instances} instances or launches \
         are left; this one has UID {new}. Give one of them another name; or, if the first is gone, \
         terminate what carries the tag {TAG_CLUSTER}={cluster_id}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::launch;

    fn record(uid: &str, seen_ms: i64) -> ClusterRecord {
        let facts = ClusterFacts { uid: uid.to_owned(), ..ClusterFacts::default() };
        ClusterRecord { facts: Some(facts), seen_ms, ..ClusterRecord::default() }
    }

    #[test]
    fn another_cluster_of_a_name_is_refused_while_the_first_has_instances() {
        let table = [
            ("a", "b", 1, false),
            ("a", "b", 0, true),
            ("a", "a", 1, true),
            ("", "b", 1, true),
            ("a", "", 1, true),
        ];
        for (old, new, instances, allowed) in table {
            let put = mismatch("c", &record(old, 0), &record(new, 0), instances);
            assert_eq!(put.is_ok(), allowed, "{old:?} {new:?} {instances}");
        }
    }

    #[test]
    fn a_record_over_the_stores_size_is_refused_with_what_to_shorten() {
        use longshore_proto::types::v1::NodeClass;
        let class = |name: &str, bytes: usize| NodeClass {
            name: name.to_owned(),
            user_data: "x".repeat(bytes),
            ..NodeClass::default()
        };
        let mut record = record("a", 0);
        record.node_classes = vec![class("small", 10), class("large", 100)];
        assert!(check_size("c", &record).is_ok());
        record.node_classes.push(class("huge", RECORD_BYTES_MAX));
        let status = check_size("c", &record).unwrap_err();
        assert_eq!(status.code(), tonic::Code::OutOfRange);
        assert!(status.message().contains("huge"), "{}", status.message());
    }

    #[test]
    fn a_flood_of_empty_classes_finds_no_room_and_an_ordinary_fleet_does() {
        use longshore_proto::types::v1::NodeClass;
        let with = |classes: usize| ClusterRecord {
            node_classes: vec![NodeClass::default(); classes],
            ..record("a", 0)
        };
        let mut book = Book::default();
        for number in 0..CLUSTERS_MAX - 1 {
            book.clusters.insert(format!("c-{number}"), Arc::new(with(12)));
        }
        assert!(room(&book, "c", &with(12)).is_ok());
        let status = room(&book, "c", &with(8_000)).unwrap_err();
        assert_eq!(status.code(), tonic::Code::ResourceExhausted);
        assert!(status.message().contains("8000 node classes"), "{}", status.message());
    }

    #[test]
    fn being_seen_is_recorded_by_day() {
        assert!(!differs(&record("a", 1), &record("a", SEEN_STEP_MS)));
        assert!(differs(&record("a", 0), &record("a", SEEN_STEP_MS)));
        assert!(differs(&record("a", 0), &record("b", 0)));
    }

    #[test]
    fn a_forgotten_cluster_leaves_nothing_behind() {
        use crate::ledger::{FenceRecord, LaunchRecord};
        let mut book = Book::default();
        book.clusters.insert("c".to_owned(), Arc::new(record("a", 0)));
        book.fences.insert("c".to_owned(), FenceRecord { session_epoch: 1, plan_seq: 1 });
        let mut draft = Draft::default();
        draft.put(LaunchRecord::new(launch(vec![]), "c", 0, 0));
        book.absorb(draft);
        assert_eq!(living(&book, "c"), 1);
        let mut draft = Draft::default();
        assert_eq!(drop_cluster(&book, &mut draft, "c"), Ok(vec!["l-1".to_owned()]));
        assert_eq!(draft.to_batch().entries.len(), 3);
        for part in draft.into_parts() {
            book.absorb(part);
        }
        assert!(book.clusters.is_empty() && book.fences.is_empty() && book.launches.is_empty());
    }
}
