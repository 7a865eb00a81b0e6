//! A second look at a node that is marked to go, once no new pods come to it.
//!
//! Invariant: a node goes by choice only when the newest plan, made after its taint was seen, has
//! another place for every pod that runs there now, and neither the pods nor their budgets object
//! any more.

use std::collections::{BTreeMap, BTreeSet};

use longshore_core::answer::{Plan, Target};
use longshore_core::ids::{ClaimName, NodeName, PodUid};
use longshore_core::vocabulary::pool::DisruptionReason;
use longshore_core::world::claim::NodeClaim;
use longshore_core::world::pod::Pod;
use longshore_core::world::view::World;

/// What becomes of a node that is marked to go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is too soon to say.
    Wait,
    /// It goes while it holds none but these pods that a drain moves, and none that objects;
    /// whatever it holds where its owner wants that.
    Go(Option<Vec<String>>),
    /// It stays.
    Cancel,
}

/// What a verdict is made from.
#[derive(Clone, Copy)]
pub struct Bench<'a> {
    /// The cluster as it is now.
    pub world: &'a World,
    /// The newest plan.
    pub plan: &'a Plan,
    /// Where that plan wants each pod.
    pub places: &'a BTreeMap<&'a PodUid, &'a Target>,
    /// Claims whose nodes that plan knew to be tainted.
    pub tainted: &'a BTreeSet<ClaimName>,
    /// Time of day, in milliseconds since 1970.
    pub now_ms: i64,
}

/// Pods of a node that a drain moves.
pub fn moved<'a>(world: &'a World, node: &NodeName) -> impl Iterator<Item = &'a Pod> {
    let moves = |pod: &&Pod| {
        let shape = world.shape_of(pod);
        !pod.deleting && shape.is_none_or(|s| !s.stays_with_node())
    };
    world.pods_on(node).map(AsRef::as_ref).filter(moves)
}

/// True when a pod of the node, the node or its claim asks not to be disrupted.
#[must_use]
pub fn objects(world: &World, claim: &NodeClaim, node: &NodeName, now_ms: i64) -> bool {
    let asks =
        claim.do_not_disrupt || world.nodes.get(node).is_some_and(|node| node.do_not_disrupt);
    let mut pods = world.pods_on(node).filter(|pod| !pod.deleting);
    // A pod of unknown shape cannot be moved knowingly.
    let held = pods.any(|pod| pod.do_not_disrupt.in_force(now_ms) || world.shape_of(pod).is_none());
    asks || held
}

/// True where the owner has bounded the time of the pods, so that none of them can hold the node.
#[must_use]
pub fn overrides(claim: &NodeClaim, reason: Option<DisruptionReason>) -> bool {
    is_forced(reason) && claim.termination_grace_ms.is_some()
}

/// True where the owner wants the node to go whatever it costs.
fn is_forced(reason: Option<DisruptionReason>) -> bool {
    matches!(reason, Some(DisruptionReason::Expired | DisruptionReason::Drifted))
}

impl Bench<'_> {
    /// What becomes of the node of a claim.
    #[must_use]
    pub fn verdict(&self, claim: &NodeClaim, node: &NodeName) -> Verdict {
        if !self.tainted.contains(&claim.name) {
            return Verdict::Wait;
        }
        // Somebody has put back what it had drifted from.
        if claim.disrupted == Some(DisruptionReason::Drifted) && !claim.drifted {
            return Verdict::Cancel;
        }
        let objects = objects(self.world, claim, node, self.now_ms);
        if objects && !overrides(claim, claim.disrupted) {
            return Verdict::Cancel;
        }
        let pods: Vec<&Pod> = moved(self.world, node).collect();
        if claim.disrupted == Some(DisruptionReason::Empty) && !pods.is_empty() {
            return Verdict::Cancel;
        }
        let forced = is_forced(claim.disrupted);
        for pod in &pods {
            match self.places.get(&pod.uid) {
                Some(Target::Node(_)) => {}
                // It is newer than the plan, or its place is not in service yet.
                None if !self.is_unplaced(&pod.uid) => return Verdict::Wait,
                Some(Target::Claim(_)) => return Verdict::Wait,
                Some(Target::New(_)) if forced => return Verdict::Wait,
                // To move it would cost what the plan did not reckon with.
                None | Some(Target::New(_)) => return Verdict::Cancel,
            }
        }
        if self.budgets_allow(&pods) || overrides(claim, claim.disrupted) {
            Verdict::Go((!objects).then(|| pods.iter().map(|pod| pod.uid.to_string()).collect()))
        } else {
            Verdict::Wait
        }
    }

    fn is_unplaced(&self, pod: &PodUid) -> bool {
        self.plan.unplaced.iter().any(|unplaced| unplaced.pods.contains(pod))
    }

    /// True when every budget that covers a pod lets at least one go: the rest follows pod by pod.
    fn budgets_allow(&self, pods: &[&Pod]) -> bool {
        self.world.budgets.values().all(|budget| {
            let minds = |pod: &&Pod| {
                let covers = self.world.shape_of(pod).is_some_and(|shape| budget.covers(shape));
                covers && budget.minds(pod)
            };
            budget.disruptions_allowed > 0 || !pods.iter().any(minds)
        })
    }
}

#[cfg(test)]
mod tests {
    use longshore_core::answer::Unplaced;
    use longshore_core::ids::ObjectKey;
    use longshore_core::reason::{Obstacle, Reason};
    use longshore_core::selector::LabelSelector;
    use longshore_core::world::budget::DisruptionBudget;
    use longshore_core::world::pod::DoNotDisrupt;
    use longshore_core::world::shape::PodShape;
    use longshore_core::world::view::{Change, ClusterView};

    use super::*;

    fn pod(uid: &str) -> Pod {
        let (shape, node) = ("web".into(), Some("n".into()));
        Pod { uid: uid.into(), shape, node, ..Pod::default() }
    }

    fn claim(disrupted: DisruptionReason) -> NodeClaim {
        let drifted = disrupted == DisruptionReason::Drifted;
        let disrupted = Some(disrupted);
        NodeClaim { name: "c".into(), disrupted, drifted, ..NodeClaim::default() }
    }

    fn view(pods: &[Pod]) -> ClusterView {
        let mut view = ClusterView::new();
        view.apply(Change::Shape(PodShape { id: "web".into(), ..PodShape::default() }));
        for pod in pods {
            view.apply(Change::Pod(pod.clone()));
        }
        view
    }

    fn verdict(view: &ClusterView, targets: &[(&str, Target)], claim: &NodeClaim) -> Verdict {
        let uids: Vec<PodUid> = targets.iter().map(|(uid, _)| PodUid::new(uid)).collect();
        let places = uids.iter().zip(targets.iter().map(|(_, target)| target)).collect();
        let lost = Unplaced {
            shape: "web".into(),
            pods: vec!["lost".into()],
            reason: Reason::leaf(String::new(), Obstacle::NoPool),
        };
        let plan = Plan { unplaced: vec![lost], ..Plan::default() };
        let tainted = BTreeSet::from(["c".into()]);
        let bench = Bench {
            world: view.world(),
            plan: &plan,
            places: &places,
            tainted: &tainted,
            now_ms: 0,
        };
        bench.verdict(claim, &"n".into())
    }

    #[test]
    fn a_node_goes_when_the_newest_plan_has_another_place_for_all_its_pods() {
        let node = || Target::Node("m".into());
        let saving = claim(DisruptionReason::Underutilized);
        let of = |uids: &[&str], targets: &[(&str, Target)], claim: &NodeClaim| {
            let pods: Vec<Pod> = uids.iter().map(|uid| pod(uid)).collect();
            verdict(&view(&pods), targets, claim)
        };
        let go = |uids: &[&str]| Verdict::Go(Some(uids.iter().map(ToString::to_string).collect()));
        assert_eq!(of(&["a"], &[("a", node())], &saving), go(&["a"]));
        assert_eq!(of(&["a", "b"], &[("a", node())], &saving), Verdict::Wait, "b is new");
        assert_eq!(of(&["a"], &[("a", Target::Claim("d".into()))], &saving), Verdict::Wait);
        assert_eq!(of(&["a"], &[("a", Target::New(0))], &saving), Verdict::Cancel);
        assert_eq!(of(&["lost"], &[], &saving), Verdict::Cancel);
        let drifted = claim(DisruptionReason::Drifted);
        assert_eq!(of(&["a"], &[("a", Target::New(0))], &drifted), Verdict::Wait);
        let mended = NodeClaim { drifted: false, ..drifted };
        assert_eq!(of(&["a"], &[("a", node())], &mended), Verdict::Cancel, "it is as asked for");
        let empty = claim(DisruptionReason::Empty);
        assert_eq!(of(&[], &[], &empty), go(&[]));
        assert_eq!(of(&["a"], &[("a", node())], &empty), Verdict::Cancel, "a pod has come");
        let unseen = NodeClaim { name: "d".into(), ..saving };
        assert_eq!(of(&[], &[], &unseen), Verdict::Wait, "no plan has seen the taint");
    }

    #[test]
    fn pods_and_budgets_may_object_until_the_last() {
        let places = [("a", Target::Node("m".into()))];
        let saving = claim(DisruptionReason::Underutilized);
        let held = Pod { do_not_disrupt: DoNotDisrupt::Always, ..pod("a") };
        assert_eq!(verdict(&view(std::slice::from_ref(&held)), &places, &saving), Verdict::Cancel);
        let ended = Pod { do_not_disrupt: DoNotDisrupt::UntilMs(0), ..pod("a") };
        assert!(matches!(verdict(&view(&[ended]), &places, &saving), Verdict::Go(_)));
        let bounded =
            NodeClaim { termination_grace_ms: Some(1), ..claim(DisruptionReason::Expired) };
        assert_eq!(verdict(&view(&[held]), &places, &bounded), Verdict::Go(None));
        let strange = Pod { shape: "other".into(), ..pod("a") };
        assert_eq!(verdict(&view(&[strange]), &places, &saving), Verdict::Cancel);
        let mut budgeted = view(&[pod("a")]);
        let mut allow = |disruptions_allowed| {
            budgeted.apply(Change::Budget(DisruptionBudget {
                key: ObjectKey::new("", "b"),
                selector: Some(LabelSelector::default()),
                disruptions_allowed,
                ..DisruptionBudget::default()
            }));
            verdict(&budgeted, &places, &saving)
        };
        assert_eq!(allow(0), Verdict::Wait);
        assert!(matches!(allow(1), Verdict::Go(_)));
    }
}
