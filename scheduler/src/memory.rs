//! How the scheduler shares its memory: between views of clusters, and questions of clients.
//!
//! Invariant: what a view or a question takes is granted before it is kept, by an estimate that is
//! never below what it comes to. Whoever gets no more is refused, and keeps nobody else from being
//! served.

use longshore_proto::planning::v1::ComputePlanRequest;
use longshore_proto::reason::Reason;
use longshore_proto::types::v1::ObjectChange;
use longshore_proto::types::v1::object_change::Change;
use longshore_runtime::budget::{Budget, Grant, Spent};
use prost::Message as _;
use tonic::Status;

/// Memory that a scheduler keeps within unless it is told otherwise, in MiB.
pub const MIB_DEFAULT: u32 = 512;
/// Bytes of a MiB.
const MIB: usize = 1 << 20;
/// Of the memory, the share of views, in eighths.
const VIEW_EIGHTHS: usize = 5;
/// Of the memory, the share of questions, in eighths. The rest is for everything else.
const QUESTION_EIGHTHS: usize = 2;

/// Bytes of a session without objects: its tasks and channels.
const SESSION_BYTES: usize = 256 * 1024;
/// Bytes of an object of a view: a node with its claim takes two thousand, a pod four hundred.
const OBJECT_BYTES: usize = 1024;
/// An object that takes no more than so many bytes on the wire is an ordinary one.
const ORDINARY_BYTES: usize = 4 * 1024;
/// Bytes that a byte on the wire becomes in memory, for objects that are not ordinary.
const GROWTH: usize = 2;
/// Bytes of a pod or another object of a question, with its part of the plan and of the answer.
const ASKED_BYTES: usize = 1024;
/// Bytes that a byte of a question on the wire becomes on its way to an answer.
const ASKED_GROWTH: usize = 8;

const _: () = assert!(VIEW_EIGHTHS + QUESTION_EIGHTHS < 8);

/// The memory of a scheduler.
#[derive(Clone)]
pub struct Memory {
    views: Budget,
    questions: Budget,
}

impl Memory {
    /// So much, in MiB.
    #[must_use]
    pub fn of_mib(mib: u32) -> Self {
        let eighth = usize::try_from(mib).unwrap_or(usize::MAX).saturating_mul(MIB / 8);
        let share = |eighths: usize| Budget::new(eighth.saturating_mul(eighths));
        Self { views: share(VIEW_EIGHTHS), questions: share(QUESTION_EIGHTHS) }
    }

    /// Room for a session of a watcher that comes from there.
    ///
    /// # Errors
    /// OVERLOADED when there is none.
    pub fn session(&self, tenant: &str) -> Result<ViewMemory, Status> {
        let mut memory = ViewMemory { grant: self.views.open(tenant), large: 0 };
        memory.hold(0, (0, 0))?;
        Ok(memory)
    }

    /// Room for a question of that caller.
    #[must_use]
    pub fn question(&self, tenant: &str) -> QuestionMemory {
        QuestionMemory(self.questions.open(tenant))
    }
}

/// Memory of one session's view.
pub struct ViewMemory {
    grant: Grant,
    /// Bytes of objects beyond what is ordinary.
    large: usize,
}

impl ViewMemory {
    /// A new view takes the place of the one before.
    pub const fn begin(&mut self) {
        self.large = 0;
    }

    /// Takes note of what comes into the view.
    pub fn note(&mut self, changes: &[ObjectChange]) {
        let upserts =
            changes.iter().filter(|change| matches!(change.change, Some(Change::Upsert(_))));
        let beyond = upserts.map(|change| change.encoded_len().saturating_sub(ORDINARY_BYTES));
        self.large = self.large.saturating_add(beyond.sum());
    }

    /// Holds a view of so many objects, and a snapshot of so many objects and bytes that is on its
    /// way.
    ///
    /// # Errors
    /// OVERLOADED when there is no room for it.
    pub fn hold(&mut self, objects: usize, coming: (usize, usize)) -> Result<(), Status> {
        let count = objects.saturating_add(coming.0).saturating_mul(OBJECT_BYTES);
        let bytes = self.large.saturating_add(coming.1).saturating_mul(GROWTH);
        let all = SESSION_BYTES.saturating_add(count).saturating_add(bytes);
        self.grant.resize(all).map_err(|spent| {
            Reason::Overloaded.status(format!(
                "the scheduler has no memory for {objects} objects and {} on their way, with those of \
                 other clusters behind the same address: {}; give it more with --memory-mib, or share the \
                 clusters among more schedulers",
                coming.0,
                bytes_of(spent)
            ))
        })
    }
}

/// Memory of one question, until it is answered.
pub struct QuestionMemory(Grant);

impl QuestionMemory {
    /// Takes a part of the question, which counts as so many objects.
    ///
    /// # Errors
    /// OVERLOADED when there is no room for it.
    pub fn take(&mut self, part: &ComputePlanRequest, weight: usize) -> Result<(), Status> {
        let wire = part.encoded_len().saturating_mul(ASKED_GROWTH);
        let more = wire.saturating_add(weight.saturating_mul(ASKED_BYTES));
        self.0.grow(more).map_err(|spent| {
            Reason::Overloaded.status(format!(
                "the question, with others from the same address, takes too much memory: {}; ask about a \
                 part of the cluster, ask later, or give the scheduler more with --memory-mib",
                bytes_of(spent)
            ))
        })
    }
}

/// Why there is no room, in MiB.
fn bytes_of(spent: Spent) -> String {
    let Spent { wanted, held, free, total } = spent;
    let [wanted, held, free, total] = [wanted, held, free, total].map(|bytes| bytes.div_ceil(MIB));
    format!("{wanted} MiB more, where {held} are held and {free} of {total} are free")
}

#[cfg(test)]
mod tests {
    use longshore_proto::reason::of_status;
    use longshore_proto::types::v1::object::Kind;
    use longshore_proto::types::v1::{Namespace, Object, Pod};

    use super::*;

    fn name<T>(outcome: Result<T, Status>) -> String {
        outcome
            .err()
            .and_then(|status| of_status(&status))
            .map(|(name, _)| name)
            .unwrap_or_default()
    }

    #[test]
    fn a_flood_of_sessions_leaves_room_for_others() {
        let memory = Memory::of_mib(512);
        let sessions: Vec<_> = std::iter::from_fn(|| memory.session("flood").ok()).collect();
        assert!((100..2_000).contains(&sessions.len()), "{}", sessions.len());
        assert_eq!(name(memory.session("flood")), "OVERLOADED");
        let mut other = memory.session("other").unwrap();
        other.hold(50_000, (0, 0)).unwrap();
    }

    #[test]
    fn a_hundred_clusters_of_a_hundred_nodes_fit_even_behind_one_address() {
        let memory = Memory::of_mib(MIB_DEFAULT);
        let mut held = Vec::new();
        for _ in 0..100 {
            let mut session = memory.session("proxy").unwrap();
            session.hold(1_210, (0, 0)).unwrap();
            held.push(session);
        }
    }

    #[test]
    fn what_large_objects_take_counts_until_the_next_snapshot() {
        let memory = Memory::of_mib(64);
        let labels = [("key".to_owned(), "x".repeat(1 << 20))].into();
        let large = Kind::Namespace(Namespace { name: "n".to_owned(), labels });
        let upsert =
            |kind| ObjectChange { change: Some(Change::Upsert(Object { kind: Some(kind) })) };
        let mut session = memory.session("a").unwrap();
        session.note(&[upsert(Kind::Pod(Pod::default()))]);
        session.hold(1, (0, 0)).unwrap();
        let large = upsert(large);
        let refused = (0..100).find_map(|count| {
            session.note(std::slice::from_ref(&large));
            session.hold(count, (0, 0)).err()
        });
        assert_eq!(name::<()>(Err(refused.expect("a hundred megabytes are kept"))), "OVERLOADED");
        session.begin();
        session.hold(1, (0, 0)).unwrap();
        assert_eq!(
            name(session.hold(1, (0, 20 << 20))),
            "OVERLOADED",
            "a snapshot that does not end"
        );
    }

    #[test]
    fn a_question_holds_its_memory_until_it_is_gone() {
        let memory = Memory::of_mib(64);
        let part = ComputePlanRequest::default();
        let mut first = memory.question("a");
        first.take(&part, 8_000).unwrap();
        assert_eq!(name(memory.question("a").take(&part, 4_000)), "OVERLOADED");
        memory.question("b").take(&part, 3_000).unwrap();
        drop(first);
        memory.question("a").take(&part, 8_000).unwrap();
    }
}
