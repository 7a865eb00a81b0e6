//! ApplyPlan: what is checked before a plan is recorded, and what its parts become.
//!
//! Invariant: a malformed plan is refused whole; a part that cannot be is refused alone; what was
//! recorded before is left as it is.

mod end;

use std::sync::{Arc, Mutex};

use longshore_proto::capacity::v1::{ApplyPlanRequest, ApplyPlanResponse, Refusal};
use longshore_proto::launch_id;
use longshore_proto::limits::{CANDIDATES_MAX, LAUNCH_ID_BYTES_MAX, LAUNCHES_PER_APPLY_MAX};
use longshore_proto::reason::Reason;
use longshore_proto::time::time_ms;
use longshore_proto::types::v1::{CapacityType, Launch, Termination};
use longshore_runtime::planted;
use prost::Message;
use tonic::Status;

use super::cluster::SEEN_STEP_MS;
use super::{audit, claimant, malformed, refusal};
use crate::audit::Refused;
use crate::catalogue::MarketView;
use crate::cloud::{Found, Instance};
use crate::leader::{Leader, lock};
use crate::ledger::{
    Author, Book, ClusterRecord, Draft, Failure, Key, LaunchRecord, Move, Phase, RECORD_BYTES_MAX,
};
use crate::policy::{Denied, Fleet, Limits, Rates, Running};
use crate::reconcile::SKEW_MAX_MS;

/// Launches of a cluster that may be under way: several times the nodes of the largest plan.
const PENDING_PER_CLUSTER_MAX: usize = 5000;

/// What the request amounts to, once it is checked.
struct Plan {
    /// Who sent it, and its id.
    author: Author,
    cluster_id: String,
    expire_ms: i64,
    now_ms: i64,
    /// Launches that there is room for.
    room: usize,
    /// First session whose launches nobody has asked for yet, where the ledger is lost with its
    /// process.
    fresh_from: Option<u64>,
    launches: Vec<Launch>,
    /// Terminations with the instance, when the inventory has it.
    terminations: Vec<(Termination, Option<Instance>)>,
    /// What EC2 says by id of instances that neither inventory nor ledger knows.
    found: Found,
    /// What the cluster may have.
    limits: Limits,
    /// What is sold, and for how much.
    market: Arc<MarketView>,
    /// What its instances cost.
    running: Running,
    /// What the cluster has.
    has: Fleet,
    /// How fast it has got that.
    rates: Arc<Mutex<Rates>>,
}

pub async fn apply(
    leader: &Leader,
    request: ApplyPlanRequest,
    caller: String,
) -> Result<ApplyPlanResponse, Status> {
    let claimant = claimant(request.fence.clone(), leader.now_ms()).map_err(|status| *status)?;
    check(&request).map_err(|problem| malformed(format!("plan {}: {problem}", request.plan_id)))?;
    let now_ms = leader.now_ms();
    let expire_ms = in_time(&request, now_ms)?;
    let author = Author { caller, plan_id: request.plan_id };
    let limits = match leader.context.policies.now().of(&claimant.cluster_id) {
        Ok(limits) => limits.clone(),
        Err(denied) => {
            return Err(audit::forbid(leader, &claimant.cluster_id, author, &denied).await);
        }
    };
    let market = leader.market.borrow().clone();
    let terminations = end::with_instances(leader, request.terminations);
    let found = end::look_up(leader, &terminations).await;
    let refused = Arc::clone(&leader.refused);
    let plan = Plan {
        author,
        cluster_id: claimant.cluster_id.clone(),
        expire_ms,
        now_ms,
        room: 0,
        fresh_from: leader.fresh_from(&claimant),
        launches: request.launches,
        terminations,
        found,
        limits,
        running: Running::of(&leader.inventory.borrow(), &claimant.cluster_id, &market.prices),
        market,
        has: Fleet::default(),
        rates: Arc::clone(&leader.rates),
    };
    let edit = move |book: &Book, draft: &mut Draft| {
        plan.touch(book, draft);
        plan.on_record(book, draft, &refused)
    };
    let (refusals, revision) = leader.ledger.edit(Some(claimant), edit).await.map_err(refusal)?;
    Ok(ApplyPlanResponse { revision, refusals })
}

/// When a plan expires, which it has not yet.
fn in_time(request: &ApplyPlanRequest, now_ms: i64) -> Result<i64, Status> {
    let expire_ms = request.expire_time.as_ref().map_or(i64::MAX, time_ms);
    let late = now_ms.saturating_sub(expire_ms);
    if late >= 0 {
        tracing::warn!(
            plan_id = request.plan_id,
            late,
            "plan expired by our clock; which is wrong?"
        );
    }
    // The fence keeps old plans out; another host's clock only those that are old beyond all doubt.
    let bound = if planted::is("S23") { 0 } else { SKEW_MAX_MS };
    if late < bound {
        return Ok(expire_ms);
    }
    let message = format!("plan {} expired {late} ms ago; plan again", request.plan_id);
    Err(Reason::PlanExpired.status(message))
}

fn check(request: &ApplyPlanRequest) -> Result<(), String> {
    if request.plan_id.is_empty() {
        return Err("plan_id is empty".to_owned());
    }
    if request.expire_time.is_none() {
        return Err("expire_time is missing".to_owned());
    }
    let count = request.launches.len();
    if count > LAUNCHES_PER_APPLY_MAX {
        return Err(format!("{count} launches; send at most {LAUNCHES_PER_APPLY_MAX} at a time"));
    }
    request.launches.iter().try_for_each(check_launch)?;
    let nameless = |t: &Termination| t.launch_id.is_empty() && t.instance_id.is_empty();
    if request.terminations.iter().any(nameless) {
        return Err("a termination has neither launch_id nor instance_id".to_owned());
    }
    Ok(())
}

fn check_launch(launch: &Launch) -> Result<(), String> {
    let id = &launch.launch_id;
    let plain = id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
    if id.is_empty() || id.len() > LAUNCH_ID_BYTES_MAX || !plain {
        return Err(format!(
            "launch id {id:?} must be 1 to {LAUNCH_ID_BYTES_MAX} messages, digits, dots or dashes"
        ));
    }
    let count = launch.candidates.len();
    if count == 0 || count > CANDIDATES_MAX {
        return Err(format!(
            "launch {id} has {count} candidates; 1 to {CANDIDATES_MAX} are allowed"
        ));
    }
    let bad = launch.candidates.iter().find(|candidate| {
        let sold = match candidate.capacity_type() {
            CapacityType::Unspecified => false,
            CapacityType::Spot | CapacityType::OnDemand => candidate.reservation_id.is_empty(),
            CapacityType::Reserved => !candidate.reservation_id.is_empty(),
        };
        !sold || candidate.instance_type.is_empty() || candidate.zone.is_empty()
    });
    match bad {
        Some(candidate) => Err(format!(
            "launch {id} has a candidate that is not in any catalogue: type {:?}, zone {:?}, {}",
            candidate.instance_type,
            candidate.zone,
            candidate.capacity_type().as_str_name()
        )),
        None => Ok(()),
    }
}

impl Plan {
    /// Records, by day, that somebody writes for the cluster.
    fn touch(&self, book: &Book, draft: &mut Draft) {
        let Some(known) = book.clusters.get(&self.cluster_id) else { return };
        if self.now_ms.saturating_sub(known.seen_ms) >= SEEN_STEP_MS {
            let seen = ClusterRecord { seen_ms: self.now_ms, ..(**known).clone() };
            draft.clusters.insert(self.cluster_id.clone(), Arc::new(seen));
        }
    }

    /// Drafts it, with what is refused on record, and says who asks for what is done.
    fn on_record(self, book: &Book, draft: &mut Draft, refused: &Mutex<Refused>) -> Vec<Refusal> {
        let (cluster_id, author) = (self.cluster_id.clone(), self.author.clone());
        let now_ms = self.now_ms;
        let refusals = self.draft(book, draft);
        draft.audit.extend(lock(refused).told(&refusals, (&cluster_id, &author), now_ms));
        draft.author = Some(author);
        refusals
    }

    fn draft(mut self, book: &Book, draft: &mut Draft) -> Vec<Refusal> {
        let pending = book.in_phase(Phase::Pending).filter(|r| r.cluster_id == self.cluster_id);
        self.room = PENDING_PER_CLUSTER_MAX.saturating_sub(pending.count());
        self.has = Fleet::of(book, &self.cluster_id, &self.market.prices, &self.running);
        let launches = std::mem::take(&mut self.launches);
        let terminations = std::mem::take(&mut self.terminations);
        let launches: Vec<_> =
            launches.into_iter().filter_map(|launch| self.launch(book, draft, launch)).collect();
        let terminations = terminations.into_iter().filter_map(|(termination, instance)| {
            self.terminate(book, draft, termination, instance.as_ref())
        });
        launches.into_iter().chain(terminations).collect()
    }

    fn launch(&mut self, book: &Book, draft: &mut Draft, launch: Launch) -> Option<Refusal> {
        if draft.launch(book, &launch.launch_id).is_some() {
            return None;
        }
        if let Some(frozen) = frozen(book, &launch.launch_id) {
            return Some(frozen);
        }
        if self.room == 0 {
            let message = format!(
                "cluster {} has {PENDING_PER_CLUSTER_MAX} launches under way; ask again later",
                self.cluster_id
            );
            return Some(refuse(launch.launch_id, Reason::Overloaded, message));
        }
        if let Err(message) = self.known_class(book, &launch) {
            return Some(refuse(launch.launch_id, Reason::UnknownNodeClass, message));
        }
        let denied = self.permit(&launch).err();
        let mut record = LaunchRecord::new(launch, &self.cluster_id, self.expire_ms, self.now_ms);
        record.plan_id.clone_from(&self.author.plan_id);
        record.caller.clone_from(&self.author.caller);
        let epoch = launch_id::session_epoch(record.launch_id());
        record.alone = self.fresh_from.is_some_and(|from| epoch.is_none_or(|epoch| epoch < from));
        let bytes = record.encoded_len();
        // What is asked of EC2 is recorded beside it later, and is about as large.
        if bytes > RECORD_BYTES_MAX / 2 {
            let message = format!("its record is {bytes} bytes; send fewer labels or candidates");
            return Some(refuse(record.launch_id().to_owned(), Reason::MessageTooLarge, message));
        }
        let id = record.launch_id().to_owned();
        draft.put(record);
        self.room -= 1;
        // Recorded as failed, not refused: so it reaches those who wait for the node.
        let step = denied.map(|denied| Move::Fail(failure(&denied)))?;
        let illegal = draft.step(book, &id, &step, self.now_ms).err()?;
        Some(refuse(id, Reason::LaunchMismatch, illegal.to_string()))
    }

    /// Whether the cluster may have a launch, which is then counted as its own.
    fn permit(&mut self, launch: &Launch) -> Result<(), Denied> {
        let Self { limits, cluster_id, has, market, rates, now_ms, .. } = self;
        limits.launch(cluster_id, launch, has, &market.prices)?;
        lock(rates).launch(limits, cluster_id, *now_ms)
    }

    fn known_class(&self, book: &Book, launch: &Launch) -> Result<(), String> {
        let name = &launch.node_class;
        let cluster = book.clusters.get(&self.cluster_id);
        let class = cluster.and_then(|c| c.node_classes.iter().find(|class| class.name == *name));
        let Some(class) = class else {
            return Err(format!(
                "cluster {} has no node class {name:?} here; send it with PutCluster first",
                self.cluster_id
            ));
        };
        if class.deleting {
            return Err(format!("node class {name} is being deleted; plan again with another"));
        }
        if class.hash == launch.node_class_hash {
            return Ok(());
        }
        Err(format!(
            "node class {name} has changed since the plan was made ({} then, {} now); plan again",
            launch.node_class_hash, class.hash
        ))
    }
}

/// The refusal of anything about a launch whose record cannot be read.
fn frozen(book: &Book, launch_id: &str) -> Option<Refusal> {
    let why = book.unreadable.get(&Key::Launch(launch_id.to_owned()))?;
    let message = format!(
        "the ledger's record of launch {launch_id} cannot be read ({why}); its instance is left \
         alone until a version that can read it leads, or the record is deleted from etcd"
    );
    Some(refuse(launch_id.to_owned(), Reason::Frozen, message))
}

/// A launch that the policy does not let through.
fn failure(denied: &Denied) -> Failure {
    let retryable = matches!(denied, Denied::Not { .. });
    Failure { reason: "DENIED_BY_POLICY".to_owned(), message: denied.to_string(), retryable }
}

fn refuse(id: String, reason: Reason, message: String) -> Refusal {
    Refusal { id, reason: reason.as_str().to_owned(), message }
}

#[cfg(test)]
mod tests;
