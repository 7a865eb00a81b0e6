//! Events `Nominated`, gathered: a burst is announced once for each workload and not once for each
//! of its nodes.
//!
//! Invariant: whatever is announced is said within [`GATHERED_FOR`], and counted in exactly one
//! Event. What no room is left for is said at once, by itself.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::core::v1::ObjectReference;
use tokio::time::Instant;

use super::Happening;

/// How long NodeClaims for one workload are gathered, from the first: as long as a burst takes to
/// be bought for the most part, and not so long that whoever looks at a pending pod misses it.
pub const GATHERED_FOR: Duration = Duration::from_millis(500);
/// Workloads that are gathered for at once.
const WORKLOADS_MAX: usize = 1024;
/// NodeClaims that an Event names; of the others it says how many there are.
const NAMED_MAX: usize = 3;

/// A workload: what controls its pods.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Workload {
    /// Its namespace.
    pub namespace: String,
    /// Kind/name.
    pub controller: String,
}

/// A node is coming for some pods of one kind.
#[derive(Clone, Debug, PartialEq)]
pub struct Nominated {
    /// One of the pods.
    pub about: ObjectReference,
    /// What they belong to; nothing for pods of nobody, which are announced at once.
    pub workload: Option<Workload>,
    /// How many they are, 1 or more.
    pub pods: usize,
    /// Name of the NodeClaim.
    pub claim: String,
}

/// What has been announced and not been said.
#[derive(Debug, Default)]
pub(super) struct Nominations(BTreeMap<Workload, Gathered>);

#[derive(Debug)]
struct Gathered {
    about: ObjectReference,
    pods: usize,
    claims: usize,
    /// The first of them.
    names: Vec<String>,
    due: Instant,
}

impl Nominations {
    /// Takes an announcement in, or gives what is to be said at once.
    pub(super) fn add(&mut self, nominated: Nominated, now: Instant) -> Option<Happening> {
        let Nominated { about, workload, pods, claim } = nominated;
        let is_full = self.0.len() >= WORKLOADS_MAX;
        let first =
            || Gathered { about, pods: 0, claims: 0, names: Vec::new(), due: now + GATHERED_FOR };
        let Some(workload) = workload.filter(|it| !is_full || self.0.contains_key(it)) else {
            let mut alone = first();
            alone.count(pods, claim);
            return Some(alone.happening());
        };
        self.0.entry(workload).or_insert_with(first).count(pods, claim);
        None
    }

    /// When something is to be said next.
    pub(super) fn due(&self) -> Option<Instant> {
        self.0.values().map(|gathered| gathered.due).min()
    }

    /// What is to be said by now.
    pub(super) fn take_due(&mut self, now: Instant) -> Vec<Happening> {
        let due = self.0.extract_if(.., |_, gathered| gathered.due <= now);
        due.map(|(_, gathered)| gathered.happening()).collect()
    }

    /// All of it.
    pub(super) fn take_all(&mut self) -> Vec<Happening> {
        std::mem::take(&mut self.0).into_values().map(Gathered::happening).collect()
    }
}

impl Gathered {
    fn count(&mut self, pods: usize, claim: String) {
        self.pods += pods;
        self.claims += 1;
        if self.names.len() < NAMED_MAX {
            self.names.push(claim);
        }
    }

    fn happening(self) -> Happening {
        let others = match self.pods.saturating_sub(1) {
            0 => String::new(),
            others => format!(" and {others} more of its workload"),
        };
        let (claims, named) = (self.claims, self.names.join(", "));
        let unnamed = match claims - self.names.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let note = match claims {
            1 => format!("a node for this pod{others} is being launched: NodeClaim {named}"),
            _ => format!(
                "{claims} nodes for this pod{others} are being launched: NodeClaims {named}{unnamed}"
            ),
        };
        Happening { about: self.about, warning: false, reason: "Nominated".to_owned(), note }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nominated(pod: &str, controller: &str, (pods, claim): (usize, &str)) -> Nominated {
        let about = ObjectReference { name: Some(pod.to_owned()), ..ObjectReference::default() };
        let controller = Some(controller).filter(|it| !it.is_empty()).map(str::to_owned);
        let namespace = "default".to_owned();
        let workload = controller.map(|controller| Workload { namespace, controller });
        Nominated { about, workload, pods, claim: claim.to_owned() }
    }

    fn said(happenings: Vec<Happening>) -> Vec<(String, String)> {
        let said = happenings.into_iter();
        said.map(|it| (it.about.name.unwrap_or_default(), it.note)).collect()
    }

    fn line(pod: &str, note: &str) -> (String, String) {
        (pod.to_owned(), note.to_owned())
    }

    #[test]
    fn a_workload_is_said_once_with_what_is_counted() {
        let (mut gathered, now) = (Nominations::default(), Instant::now());
        for (claim, pods) in [("c1", 15), ("c2", 15), ("c3", 15), ("c4", 4), ("c5", 1)] {
            let pod = format!("first-of-{claim}");
            assert_eq!(gathered.add(nominated(&pod, "Deployment/web", (pods, claim)), now), None);
        }
        gathered.add(nominated("db-0", "StatefulSet/db", (1, "c6")), now);
        gathered.add(nominated("a-1", "Job/a", (3, "c7")), now);
        gathered.add(nominated("b-1", "Job/b", (1, "c8")), now);
        gathered.add(nominated("b-2", "Job/b", (1, "c9")), now);
        let wanted = [
            line(
                "first-of-c1",
                "5 nodes for this pod and 49 more of its workload are being launched: \
                 NodeClaims c1, c2, c3 and 2 more",
            ),
            line(
                "a-1",
                "a node for this pod and 2 more of its workload is being launched: NodeClaim c7",
            ),
            line(
                "b-1",
                "2 nodes for this pod and 1 more of its workload are being launched: \
                 NodeClaims c8, c9",
            ),
            line("db-0", "a node for this pod is being launched: NodeClaim c6"),
        ];
        assert_eq!(said(gathered.take_all()), wanted);
        assert_eq!(gathered.due(), None);
    }

    #[test]
    fn it_is_said_half_a_second_after_its_first() {
        let (mut gathered, begun) = (Nominations::default(), Instant::now());
        gathered.add(nominated("web", "Deployment/web", (1, "c1")), begun);
        let later = begun + GATHERED_FOR / 2;
        gathered.add(nominated("web", "Deployment/web", (1, "c2")), later);
        gathered.add(nominated("db", "StatefulSet/db", (1, "c3")), later);
        assert_eq!(gathered.due(), Some(begun + GATHERED_FOR));
        assert_eq!(gathered.take_due(begun + GATHERED_FOR - Duration::from_millis(1)), []);
        assert_eq!(gathered.take_due(begun + GATHERED_FOR).len(), 1);
        assert_eq!(gathered.due(), Some(later + GATHERED_FOR), "the other has its own window");
    }

    #[test]
    fn pods_of_nobody_and_what_there_is_no_room_for_are_said_at_once() {
        let (mut gathered, now) = (Nominations::default(), Instant::now());
        let note = "a node for this pod is being launched: NodeClaim c1";
        let bare = gathered.add(nominated("bare", "", (1, "c1")), now);
        assert_eq!(said(bare.into_iter().collect()), [line("bare", note)]);
        for number in 0..WORKLOADS_MAX {
            gathered.add(nominated("pod", &format!("Job/{number}"), (1, "c")), now);
        }
        let beyond = gathered.add(nominated("beyond", "Job/beyond", (1, "c1")), now);
        assert_eq!(said(beyond.into_iter().collect()), [line("beyond", note)]);
        let known = gathered.add(nominated("pod", "Job/0", (1, "c1")), now);
        assert_eq!(known, None, "those that are gathered for go on");
        assert_eq!(gathered.take_all().len(), WORKLOADS_MAX);
    }
}
