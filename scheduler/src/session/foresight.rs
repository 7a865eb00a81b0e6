//! Pods that their owners are still creating: plans count on them before they exist. And those that
//! their owners are about to delete: plans count on their room before they end.
//!
//! Invariant: both are in the input of a plan and nowhere else. What a plan says of them is taken
//! out before anybody sees it, but for the nodes that are bought for them and the places that the
//! next plan keeps there; and no pod that is here goes without a place for one that is not.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use longshore_core::answer::{Placement, Plan, Target};
use longshore_core::question::PlanInput;
use longshore_core::vocabulary::ids::{NodeName, ObjectKey, PodUid, ShapeId};
use longshore_core::world::pod::Pod;
use longshore_core::world::view::{Change, ClusterView, World};
use longshore_proto::types::v1;

use super::cadence::Stir;

/// Most pods to come that a plan counts on, of all shapes together; shapes come in order of id. As
/// many as the largest capacity buffer: more would be more than a plan of some seconds.
const FORESEEN_MAX: u32 = 10_000;

/// Begins the UIDs that such pods have in a plan. Nothing sorts after it that Kubernetes gives, so
/// that pods which are here come first.
const PREFIX: &str = "~coming/";

/// How many pods are to come, by shape; never zero.
pub type Coming = BTreeMap<ShapeId, u32>;

/// How many pods are about to be deleted, by shape; never zero.
pub type Going = BTreeMap<ShapeId, u32>;

/// Places of pods that are to come, by shape.
pub type Kept = BTreeMap<Target, BTreeMap<ShapeId, i64>>;

/// What the watcher tells of pods to come.
#[derive(Clone, Debug, Default)]
pub struct Foresight {
    coming: Coming,
    /// Shapes of which the watcher is about to tell how many are to come.
    counting: BTreeSet<ShapeId>,
    going: Going,
    /// Pods that are expected no more since the step of the view began: they come with it.
    due: Coming,
}

impl Foresight {
    /// A step of the view begins.
    pub fn begin(&mut self) {
        self.due.clear();
    }

    /// What the watcher tells of the pods of a shape. More to come than before have to be planned
    /// for, and more to go before others are bought nodes for.
    pub fn tell(&mut self, shape: &v1::PodShape) -> Stir {
        let id = ShapeId::new(&shape.shape_id);
        self.counting.remove(&id);
        self.counting.extend(shape.counting.then(|| id.clone()));
        let came = put(&mut self.coming, &id, shape.coming);
        if shape.coming < came {
            *self.due.entry(id.clone()).or_default() += came - shape.coming;
        }
        let went = put(&mut self.going, &id, shape.going);
        match (shape.coming.cmp(&came), shape.going.cmp(&went)) {
            (Ordering::Greater, _) | (_, Ordering::Greater) => Stir::Demand,
            (_, Ordering::Less) => Stir::Echo,
            (Ordering::Less | Ordering::Equal, Ordering::Equal) => Stir::Nothing,
        }
    }

    /// No pod has a shape any more.
    pub fn forget(&mut self, shape: &str) {
        let id = ShapeId::new(shape);
        self.coming.remove(&id);
        self.counting.remove(&id);
        self.going.remove(&id);
    }

    /// True when it will be known within moments how many more pods are to come. A pod that waits
    /// alone does not wait for that, too.
    #[must_use]
    pub fn is_counting(&self, world: &World) -> bool {
        let waiting = || world.pending().flat_map(|(_, pods)| pods.keys()).take(2).count();
        !self.counting.is_empty() && waiting() > 1
    }

    /// True for a new pod of a shape that was expected, so that no plan is needed because of it.
    pub fn expected(&mut self, shape: &str) -> bool {
        let due = self.due.get_mut(&ShapeId::new(shape)).filter(|due| **due > 0);
        due.is_some_and(|due| {
            *due -= 1;
            true
        })
    }

    /// True while pods are known to come or to go.
    #[must_use]
    pub fn expects(&self) -> bool {
        !self.coming.is_empty() || !self.going.is_empty()
    }

    /// Pods that are to come.
    #[must_use]
    pub const fn coming(&self) -> &Coming {
        &self.coming
    }

    /// The cluster with those marked as ending that are about to be deleted. Which these are is for
    /// their owner to say: the oldest of the shape stand for them.
    #[must_use]
    pub fn with_ends(&self, world: Arc<World>, now_ms: i64) -> Arc<World> {
        if self.going.is_empty() {
            return world;
        }
        let mut view = ClusterView::of(Arc::clone(&world));
        for (id, count) in &self.going {
            let runs = |pod: &&Arc<Pod>| {
                pod.shape == *id && pod.node.is_some() && !pod.deleting && pod.ends_ms.is_none()
            };
            let mut running: Vec<&Arc<Pod>> = world.pods.values().filter(runs).collect();
            running.sort_by_key(|pod| (pod.created_ms, &pod.uid));
            let count = usize::try_from(*count).unwrap_or(usize::MAX);
            for pod in running.into_iter().take(count) {
                view.apply(Change::Pod(Pod { ends_ms: Some(now_ms), ..Pod::clone(pod) }));
            }
        }
        view.snapshot()
    }
}

/// Sets how many there are of a shape; how many there were.
fn put(counts: &mut BTreeMap<ShapeId, u32>, shape: &ShapeId, count: u32) -> u32 {
    let before = counts.remove(shape).unwrap_or(0);
    if count > 0 {
        counts.insert(shape.clone(), count);
    }
    before
}

/// Nodes of a plan on which pods that wait count on the room of others, which are about to end.
#[must_use]
pub fn awaited(plan: &Plan, input: &PlanInput) -> BTreeSet<NodeName> {
    let ends = |node: &&NodeName| {
        let mut pods = input.world.pods_on(node);
        pods.any(|pod| pod.frees_until_ms(input.now_ms).is_some())
    };
    let targets = plan.placements.iter().filter_map(|placement| match &placement.target {
        Target::Node(node) => Some(node),
        Target::Claim(_) | Target::New(_) => None,
    });
    let targets: BTreeSet<&NodeName> = targets.collect();
    targets.into_iter().filter(ends).cloned().collect()
}

/// A plan that counts on pods to come, with the input that it is a plan of.
#[must_use]
pub fn plan(input: PlanInput, coming: &Coming) -> (PlanInput, Plan) {
    let here = Arc::clone(&input.world);
    let input = PlanInput { world: with(&here, coming, input.now_ms), ..input };
    let plan = longshore_core::plan(&input);
    let unplaced = unplaced(&plan);
    if coming.is_empty() || unplaced == 0 {
        return (input, plan);
    }
    // What a limit leaves is for those that are here.
    let plain = PlanInput { world: here, ..input.clone() };
    let fewer = longshore_core::plan(&plain);
    if self::unplaced(&fewer) < unplaced { (plain, fewer) } else { (input, plan) }
}

/// Pods that are here and have no place in a plan.
fn unplaced(plan: &Plan) -> usize {
    let pods = plan.unplaced.iter().flat_map(|unplaced| &unplaced.pods);
    pods.filter(|pod| !is_coming(pod)).count()
}

/// The cluster with the pods that are to come: new ones, that kube-scheduler has not tried.
fn with(world: &Arc<World>, coming: &Coming, now_ms: i64) -> Arc<World> {
    let mut view = ClusterView::of(Arc::clone(world));
    let mut left = FORESEEN_MAX;
    for (id, count) in coming {
        let Some(shape) = world.shapes.get(id).filter(|shape| !shape.stays_with_node()) else {
            continue;
        };
        let count = (*count).min(left);
        left -= count;
        for number in 0..count {
            view.apply(Change::Pod(Pod {
                key: ObjectKey::new(&shape.namespace, ""),
                uid: PodUid::new(&format!("{PREFIX}{id}/{number:05}")),
                shape: id.clone(),
                created_ms: now_ms,
                ..Pod::default()
            }));
        }
    }
    view.snapshot()
}

fn is_coming(pod: &PodUid) -> bool {
    pod.as_str().starts_with(PREFIX)
}

/// Takes pods that are to come out of a plan, and returns the places that it kept for them.
#[must_use]
pub fn strip(plan: &mut Plan, world: &World) -> Kept {
    let mut kept = Kept::new();
    plan.placements.retain(|Placement { pod, target }| {
        let coming = world.pods.get(pod).filter(|_| is_coming(pod));
        if let Some(pod) = coming {
            *kept.entry(target.clone()).or_default().entry(pod.shape.clone()).or_default() += 1;
        }
        coming.is_none()
    });
    for unplaced in &mut plan.unplaced {
        unplaced.pods.retain(|pod| !is_coming(pod));
    }
    plan.unplaced.retain(|unplaced| !unplaced.pods.is_empty());
    for node in &mut plan.launches {
        node.pods.retain(|pod| !is_coming(pod));
    }
    kept
}

#[cfg(test)]
mod tests {
    use longshore_core::answer::{NewNode, Unplaced};
    use longshore_core::reason::{Obstacle, Reason};
    use longshore_core::world::shape::PodShape;

    use super::*;

    fn told(coming: u32, going: u32) -> v1::PodShape {
        v1::PodShape { shape_id: "s".to_owned(), coming, going, ..v1::PodShape::default() }
    }

    #[test]
    fn more_to_come_stirs_a_plan_and_what_was_expected_does_not() {
        let mut foresight = Foresight::default();
        assert_eq!(foresight.tell(&told(3, 0)), Stir::Demand);
        assert!(!foresight.expected("s"), "three more than there are");
        assert_eq!(foresight.tell(&told(3, 0)), Stir::Nothing);
        foresight.begin();
        assert_eq!(foresight.tell(&told(1, 0)), Stir::Nothing);
        assert!(foresight.expected("s") && foresight.expected("s"));
        assert!(!foresight.expected("s") && !foresight.expected("t"), "two were expected");
        foresight.begin();
        assert_eq!(foresight.tell(&told(0, 0)), Stir::Nothing);
        assert!(foresight.coming().is_empty());
        foresight.begin();
        assert!(!foresight.expected("s"), "they have not come");
    }

    #[test]
    fn more_to_go_stirs_a_plan_and_fewer_are_an_echo() {
        let mut foresight = Foresight::default();
        let stirs = [3, 3, 1, 0].map(|going| foresight.tell(&told(0, going)));
        assert_eq!(stirs, [Stir::Demand, Stir::Nothing, Stir::Echo, Stir::Echo]);
        assert!(!foresight.expects());
    }

    #[test]
    fn the_oldest_that_run_stand_for_those_that_are_about_to_go() {
        let mut view = ClusterView::new();
        view.apply(Change::Shape(PodShape { id: "s".into(), ..PodShape::default() }));
        for (uid, created_ms) in [("d", 1), ("c", 2), ("b", 3), ("a", 4)] {
            let node = Some("n".into()).filter(|_| uid != "d");
            let pod =
                Pod { uid: uid.into(), shape: "s".into(), created_ms, node, ..Pod::default() };
            view.apply(Change::Pod(pod));
        }
        let mut foresight = Foresight::default();
        foresight.tell(&told(0, 2));
        let world = foresight.with_ends(view.snapshot(), 7);
        let ends = world.pods.iter().filter(|(_, pod)| pod.ends_ms == Some(7));
        let ends: Vec<&str> = ends.map(|(uid, _)| uid.as_str()).collect();
        assert_eq!(ends, ["b", "c"], "the oldest waits itself");
        let place = |target: Target| Placement { pod: "d".into(), target };
        let targets = [Target::Node("n".into()), Target::Node("m".into()), Target::New(0)];
        let plan = Plan { placements: targets.map(place).into(), ..Plan::default() };
        let input = PlanInput { world, now_ms: 7, ..PlanInput::default() };
        assert_eq!(awaited(&plan, &input), ["n".into()].into());
    }

    fn world(count: u32) -> Arc<World> {
        let mut view = ClusterView::new();
        let daemon = PodShape { id: "d".into(), is_daemon: true, ..PodShape::default() };
        view.apply(Change::Shape(daemon));
        view.apply(Change::Shape(PodShape { id: "s".into(), ..PodShape::default() }));
        let coming = ["d", "s", "t"].map(|id| (ShapeId::new(id), count));
        with(&view.snapshot(), &coming.into(), 7)
    }

    #[test]
    fn pods_to_come_are_new_pods_of_shapes_that_are_known() {
        let world = world(3);
        assert_eq!(world.pods.len(), 3);
        let like = |pod: &Pod| pod.shape == "s".into() && pod.created_ms == 7 && pod.node.is_none();
        assert!(world.pods.values().all(|pod| like(pod) && !pod.unschedulable));
        assert!(world.pods.keys().all(|uid| *uid > PodUid::new("zz")), "others come first");
    }

    #[test]
    fn no_plan_counts_on_more_pods_than_it_can_bear() {
        assert_eq!(world(FORESEEN_MAX + 1).pods.len(), FORESEEN_MAX as usize);
    }

    #[test]
    fn what_a_plan_says_of_pods_to_come_is_taken_out_but_for_their_nodes() {
        let world = world(3);
        let coming: Vec<PodUid> = world.pods.keys().cloned().collect();
        let place = |pod: &PodUid, at| Placement { pod: pod.clone(), target: Target::New(at) };
        let (here, lost) = (PodUid::new("here"), PodUid::new("lost"));
        let unplaced = |shape: &str, pods: Vec<PodUid>| Unplaced {
            shape: shape.into(),
            pods,
            reason: Reason::leaf(String::new(), Obstacle::NoPool),
        };
        let node = |pods: Vec<PodUid>| NewNode {
            pool: "p".into(),
            node_class: String::new(),
            requirements: Default::default(),
            candidates: Vec::new(),
            requests: Default::default(),
            labels: Default::default(),
            annotations: Default::default(),
            taints: Vec::new(),
            startup_taints: Vec::new(),
            pods,
            standing: false,
            replacement: false,
            max_price_micro_usd_per_hour: 0,
        };
        let mut plan = Plan {
            placements: vec![place(&here, 0), place(&coming[0], 0), place(&coming[1], 1)],
            launches: vec![
                node(vec![here.clone(), coming[0].clone()]),
                node(vec![coming[1].clone()]),
                node(vec![here.clone()]),
            ],
            unplaced: vec![
                unplaced("a", vec![coming[2].clone()]),
                unplaced("b", vec![lost.clone(), coming[2].clone()]),
            ],
            ..Plan::default()
        };
        assert_eq!(super::unplaced(&plan), 1);
        let place_of_one = BTreeMap::from([("s".into(), 1)]);
        let kept = [0, 1].map(|at| (Target::New(at), place_of_one.clone()));
        assert_eq!(strip(&mut plan, &world), kept.into());
        assert_eq!(plan.placements, [place(&here, 0)]);
        let pods: Vec<_> = plan.launches.iter().map(|node| node.pods.len()).collect();
        assert_eq!(pods, [1, 0, 1]);
        let left: Vec<_> = plan.unplaced.iter().map(|u| (&u.shape, &u.pods)).collect();
        assert_eq!(left, [(&"b".into(), &vec![lost])]);
    }
}
