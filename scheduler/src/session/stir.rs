//! What a change of the view calls for.
//!
//! Invariant: pure, and never too little where a pod waits: whatever may leave one without a place,
//! or give one to a pod that has none, is more than an echo.

use longshore_core::vocabulary::taint::Taint;
use longshore_core::world::claim::NodeClaim;
use longshore_core::world::node::Node;
use longshore_core::world::pod::Pod;
use longshore_core::world::view::{Change, ObjectRef, World};

use super::cadence::Stir;

/// More than an echo, when it makes a difference.
#[must_use]
pub const fn demand(differs: bool) -> Stir {
    if differs { Stir::Demand } else { Stir::Nothing }
}

/// What a change calls for that makes a difference to this world.
#[must_use]
pub fn of(change: &Change, world: &World) -> Stir {
    match change {
        Change::Pod(pod) => of_pod(pod, world),
        Change::Node(node) => of_node(node, world.nodes.get(&node.name).map(AsRef::as_ref)),
        Change::Claim(claim) => of_claim(claim, world.claims.get(&claim.name).map(AsRef::as_ref)),
        // It says nothing before a pod has it.
        Change::Shape(_) => Stir::Echo,
        Change::Pool(_)
        | Change::DaemonSet(_)
        | Change::Budget(_)
        | Change::Overlay(_)
        | Change::Buffer(_) => Stir::Demand,
        Change::Remove(ObjectRef::Pod(_) | ObjectRef::Shape(_)) => Stir::Echo,
        Change::Remove(
            ObjectRef::Node(_)
            | ObjectRef::Claim(_)
            | ObjectRef::Pool(_)
            | ObjectRef::DaemonSet(_)
            | ObjectRef::Budget(_)
            | ObjectRef::Overlay(_)
            | ObjectRef::Buffer(_),
        ) => Stir::Demand,
    }
}

fn of_pod(pod: &Pod, world: &World) -> Stir {
    let stays = world.shapes.get(&pod.shape).is_some_and(|shape| shape.stays_with_node());
    if pod.node.is_some() || pod.deleting || stays {
        return Stir::Echo;
    }
    let Some(before) = world.pods.get(&pod.uid) else { return Stir::Arrival };
    let failed = pod.unschedulable && !before.unschedulable;
    if failed && !is_foreseen(pod, world) {
        return Stir::Arrival;
    }
    let unpinned = before.nominated_node.is_some() && pod.nominated_node.is_none();
    let returned = before.preempting && !pod.preempting;
    if unpinned || returned || pod.shape != before.shape { Stir::Demand } else { Stir::Echo }
}

/// True when plans count on a pod of this shape before kube-scheduler has tried it: it has failed
/// another.
fn is_foreseen(pod: &Pod, world: &World) -> bool {
    let of_shape = world.pending().find(|(shape, _)| **shape == pod.shape);
    of_shape.is_some_and(|(_, pods)| pods.values().any(|other| other.unschedulable))
}

fn of_node(node: &Node, before: Option<&Node>) -> Stir {
    let opens = |node: &Node| {
        let passing = node.taints.iter().any(|taint| Taint::is_passing_key(&taint.key));
        node.ready && !passing && !node.cordoned && !node.deleting
    };
    if opens(node) == before.is_some_and(opens) { Stir::Echo } else { Stir::Demand }
}

fn of_claim(claim: &NodeClaim, before: Option<&NodeClaim>) -> Stir {
    let leaves = before.is_some_and(NodeClaim::is_leaving);
    // One that is drained lets the next of its pool go.
    let drained = before.is_some_and(|before| before.drained);
    let is_echo = claim.is_leaving() == leaves && claim.drained == drained;
    if is_echo { Stir::Echo } else { Stir::Demand }
}

#[cfg(test)]
mod tests {
    use longshore_core::vocabulary::ids::NodeName;
    use longshore_core::world::shape::PodShape;
    use longshore_core::world::view::ClusterView;

    use super::*;

    fn pod(uid: &str) -> Pod {
        Pod { uid: uid.into(), shape: "s".into(), ..Pod::default() }
    }

    fn failed(uid: &str) -> Pod {
        Pod { unschedulable: true, ..pod(uid) }
    }

    fn stir(view: &mut ClusterView, change: Change) -> Stir {
        let stir = of(&change, view.world());
        assert!(view.apply(change));
        stir
    }

    #[test]
    fn a_pod_arrives_once_and_the_rest_of_its_life_is_an_echo() {
        let mut view = ClusterView::new();
        assert_eq!(stir(&mut view, Change::Pod(pod("a"))), Stir::Arrival);
        assert_eq!(stir(&mut view, Change::Pod(pod("b"))), Stir::Arrival);
        assert_eq!(
            stir(&mut view, Change::Pod(failed("a"))),
            Stir::Arrival,
            "the first of its shape"
        );
        assert_eq!(stir(&mut view, Change::Pod(failed("b"))), Stir::Echo, "it was counted on");
        let nominated = Pod { nominated_node: Some("n".into()), ..failed("a") };
        assert_eq!(stir(&mut view, Change::Pod(nominated)), Stir::Echo);
        assert_eq!(stir(&mut view, Change::Pod(failed("a"))), Stir::Demand, "its place is lost");
        let bound = Pod { node: Some("n".into()), ..pod("a") };
        assert_eq!(stir(&mut view, Change::Pod(bound)), Stir::Echo);
        assert_eq!(stir(&mut view, Change::Remove(ObjectRef::Pod("a".into()))), Stir::Echo);
    }

    #[test]
    fn pods_that_belong_to_nodes_do_not_arrive() {
        let mut view = ClusterView::new();
        let shape = PodShape { id: "s".into(), is_daemon: true, ..PodShape::default() };
        view.apply(Change::Shape(shape));
        assert_eq!(stir(&mut view, Change::Pod(pod("a"))), Stir::Echo);
    }

    #[test]
    fn a_node_that_opens_or_closes_is_more_than_an_echo() {
        let mut view = ClusterView::new();
        let node = |ready| Node { name: "n".into(), ready, ..Node::default() };
        assert_eq!(stir(&mut view, Change::Node(node(false))), Stir::Echo);
        assert_eq!(stir(&mut view, Change::Node(node(true))), Stir::Demand);
        let labelled = Node { labels: [("a".to_owned(), "b".to_owned())].into(), ..node(true) };
        assert_eq!(stir(&mut view, Change::Node(labelled)), Stir::Echo);
        assert_eq!(stir(&mut view, Change::Node(node(false))), Stir::Demand);
        let name: NodeName = "n".into();
        assert_eq!(stir(&mut view, Change::Remove(ObjectRef::Node(name))), Stir::Demand);
    }

    #[test]
    fn a_claim_that_goes_leaves_pods_without_a_place_and_then_lets_the_next_go() {
        let mut view = ClusterView::new();
        let claim = |deleting| NodeClaim { name: "c".into(), deleting, ..NodeClaim::default() };
        assert_eq!(stir(&mut view, Change::Claim(claim(false))), Stir::Echo);
        assert_eq!(stir(&mut view, Change::Claim(claim(true))), Stir::Demand);
        let drained = NodeClaim { drained: true, ..claim(true) };
        assert_eq!(stir(&mut view, Change::Claim(drained.clone())), Stir::Demand);
        let ending = NodeClaim { last_pod_event_ms: Some(1), ..drained };
        assert_eq!(stir(&mut view, Change::Claim(ending)), Stir::Echo);
    }
}
