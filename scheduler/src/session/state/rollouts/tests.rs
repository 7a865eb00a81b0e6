//! How a rollout goes on, waits, stops and is tried again.

use longshore_core::vocabulary::pool::Canary;
use longshore_proto::capacity::v1::{NodeClassResolution, RegionChange, region_change};
use longshore_proto::cluster::v1::{ResolvedImage, ResolvedSubnet, SetNodeClassStatus};
use longshore_proto::types::v1;
use longshore_proto::types::v1::object::Kind;
use longshore_proto::types::v1::{ObjectChange, Rollout as Wire, object_change};

use super::*;
use crate::session::rollout::condition;

const NOW_MS: i64 = 3_600_000;
/// Target of the pool as the tests have it.
const DRIFTED: &str = "1-old/1-c";
const FRESH: &str = "1-new/1-c";

fn pool() -> v1::NodePool {
    v1::NodePool {
        name: "p".to_owned(),
        node_class: "EC2NodeClass/c".to_owned(),
        drift_hash: "1-new".to_owned(),
        rollout: Some(Wire::default()),
        ..Default::default()
    }
}

/// A node in service since then, in seconds before now; not at all when there is none.
fn node(name: &str, drift_hash: &str, ready_s: Option<i64>) -> Vec<Kind> {
    let at = |ago_s: i64| Some(prost_types::Timestamp { seconds: NOW_MS / 1000 - ago_s, nanos: 0 });
    let provider_id = format!("aws:///a/i-{name}");
    let claim = v1::NodeClaim {
        name: name.to_owned(),
        pool: "p".to_owned(),
        node_class: "EC2NodeClass/c".to_owned(),
        provider_id: provider_id.clone(),
        node_name: name.to_owned(),
        drift_hash: drift_hash.to_owned(),
        create_time: at(ready_s.unwrap_or(0) + 60),
        initialize_time: ready_s.and_then(at),
        ..Default::default()
    };
    let node = v1::Node {
        name: name.to_owned(),
        provider_id,
        ready: ready_s.is_some(),
        ..Default::default()
    };
    vec![Kind::NodeClaim(claim), Kind::Node(node)]
}

/// A pod on a node that was made then, in seconds before now, and has not started.
fn waiting(node: &str, made_s: i64) -> Kind {
    Kind::Pod(v1::Pod {
        uid: format!("{node}-{made_s}"),
        name: "web".to_owned(),
        shape_id: "s".to_owned(),
        namespace: "default".to_owned(),
        node_name: node.to_owned(),
        phase: v1::PodPhase::Pending.into(),
        create_time: Some(prost_types::Timestamp { seconds: NOW_MS / 1000 - made_s, nanos: 0 }),
        ..Default::default()
    })
}

/// A region that has found these images for the class of this hash.
fn found(images: &[&str], hash: &str) -> RegionState {
    let image = |id: &&str| ResolvedImage { id: (*id).to_owned(), ..Default::default() };
    let status = SetNodeClassStatus {
        node_class: "EC2NodeClass/c".to_owned(),
        images: images.iter().map(image).collect(),
        subnets: vec![ResolvedSubnet { id: "subnet-1".to_owned(), ..Default::default() }],
        ..Default::default()
    };
    let resolution = NodeClassResolution {
        cluster_id: "c".to_owned(),
        status: Some(status),
        hash: hash.to_owned(),
        ..Default::default()
    };
    let mut region = RegionState::default();
    let change = Some(region_change::Change::NodeClass(resolution));
    region.apply(RegionChange { change });
    region
}

fn rollout(pool: v1::NodePool, kinds: Vec<Kind>) -> Option<Rollout> {
    rollout_in(&found(&["ami-1"], "h"), pool, kinds)
}

fn rollout_in(region: &RegionState, pool: v1::NodePool, kinds: Vec<Kind>) -> Option<Rollout> {
    let mut state = ClusterState::new("c".to_owned(), 0);
    let class = v1::NodeClass {
        name: "EC2NodeClass/c".to_owned(),
        hash: "h".to_owned(),
        drift_hash: "1-c".to_owned(),
        ..Default::default()
    };
    let all = [Kind::NodePool(pool), Kind::NodeClass(class)].into_iter().chain(kinds);
    let upsert = |kind| object_change::Change::Upsert(v1::Object { kind: Some(kind) });
    state.apply(all.map(|kind| ObjectChange { change: Some(upsert(kind)) }).collect(), NOW_MS);
    assert_eq!(state.rollout_condition("p"), None, "nobody has looked yet");
    let due_ms = state.refresh(region, NOW_MS);
    let found = state.rollouts().next().map(|(_, rollout)| rollout.clone());
    assert_eq!(state.rollout_condition("p"), Some(condition(found.as_ref())));
    assert_eq!(due_ms, found.as_ref().and_then(|rollout| rollout.due_ms));
    let stopped = found.as_ref().is_some_and(|rollout| rollout.stopped.is_some());
    let goes = state.view().world().claims.values().any(|claim| claim.drifted);
    assert_eq!(goes, found.is_some() && !stopped, "what has been stopped is not planned");
    found
}

/// Three old nodes, and what else there is.
fn among_old(pool: v1::NodePool, kinds: impl IntoIterator<Item = Kind>) -> Rollout {
    rollout(pool, old().chain(kinds).collect()).unwrap()
}

fn old() -> impl Iterator<Item = Kind> {
    ["a", "b", "c"].into_iter().flat_map(|name| node(name, DRIFTED, Some(900)))
}

fn canary(nodes: i64, under_way: i64) -> Option<Canary> {
    Some(Canary { nodes, under_way })
}

#[test]
fn the_first_new_nodes_are_waited_for() {
    assert_eq!(rollout(pool(), node("a", FRESH, Some(900))), None, "nothing has drifted");
    let begun = among_old(pool(), []);
    assert_eq!((begun.drifted, begun.nodes, begun.canary), (3, 3, canary(1, 0)));
    let booting = among_old(pool(), node("n", FRESH, None));
    assert_eq!(booting.canary, canary(1, 1));
    let early = among_old(pool(), node("n", FRESH, Some(29)));
    assert_eq!((early.canary, early.due_ms), (canary(1, 1), Some(NOW_MS + 1_000)));
    let well = among_old(pool(), node("n", FRESH, Some(30)));
    assert_eq!((well.canary, well.stopped, well.due_ms), (None, None, None));

    let said = condition(Some(&early));
    assert_eq!((said.status, said.reason.as_str()), (Some(true), "RollingOut"));
    assert_eq!(
        said.message,
        "3 of 4 nodes are to be replaced; 1 of them first, to see how they turn out"
    );
}

#[test]
fn a_pool_says_how_many_and_for_how_long() {
    let rules = |canary: &str, wait_s| Wire {
        canary: canary.to_owned(),
        wait: Some(prost_types::Duration { seconds: wait_s, nanos: 0 }),
        ..Wire::default()
    };
    let with = |canary: &str, wait_s, kinds| {
        among_old(v1::NodePool { rollout: Some(rules(canary, wait_s)), ..pool() }, kinds).canary
    };
    assert_eq!(with("40%", 0, node("n", FRESH, Some(0))), canary(2, 0), "of four nodes");
    assert_eq!(with("0", 0, Vec::new()), None);
    assert_eq!(with("1", 0, node("n", FRESH, Some(0))), None);
    assert_eq!(with("1", 300, node("n", FRESH, Some(60))), canary(1, 1));
    // A node that is about to be replaced is under way as well.
    let mut going = node("d", DRIFTED, Some(900));
    let Kind::NodeClaim(claim) = &mut going[0] else { panic!("a claim") };
    claim.disruption_reason = "Drifted".to_owned();
    assert_eq!(with("1", 0, going), canary(1, 1));
}

/// A new node that has not come up in time.
fn failing() -> Vec<Kind> {
    let mut late = node("n", FRESH, None);
    let Kind::NodeClaim(claim) = &mut late[0] else { panic!("a claim") };
    claim.create_time = Some(prost_types::Timestamp { seconds: NOW_MS / 1000 - 601, nanos: 0 });
    late
}

#[test]
fn a_new_node_that_does_not_turn_out_well_stops_the_rollout() {
    let mut lost = node("n", FRESH, Some(601));
    let Kind::Node(seen) = &mut lost[1] else { panic!("a node") };
    seen.ready = false;
    let with_pod = |made_s| {
        let mut kinds = node("n", FRESH, Some(700));
        kinds.push(waiting("n", made_s));
        kinds
    };
    assert_eq!(among_old(pool(), with_pod(599)).stopped, None, "it may still start");
    for (kinds, why) in [
        (failing(), "the node of n is not ready,"),
        (lost, "the node of n is not ready any more,"),
        (with_pod(600), "pod default/web does not run on n,"),
    ] {
        let stopped = among_old(pool(), kinds.clone());
        let said = condition(Some(&stopped));
        assert_eq!(said.status, Some(false), "{why}: {stopped:?}");
        assert_eq!(said.reason, format!("CanaryFailed:{}", stopped.target));
        assert!(said.message.starts_with(why), "{}", said.message);
        assert!(said.message.contains(&format!("retry-rollout={}", stopped.target)));
        // Others have turned out well.
        let good = ["x", "y"].into_iter().flat_map(|name| node(name, FRESH, Some(60)));
        assert_eq!(among_old(pool(), kinds.into_iter().chain(good)).stopped, None);
    }
}

#[test]
fn a_rollout_that_was_stopped_stays_so_until_something_else_is_asked_for() {
    let target = among_old(pool(), []).target;
    let with = |stopped: &str, kinds| {
        let rules = Wire {
            stopped: stopped.to_owned(),
            stopped_because: "as it was".to_owned(),
            ..Wire::default()
        };
        among_old(v1::NodePool { rollout: Some(rules), ..pool() }, kinds).stopped
    };
    assert_eq!(with(&target, Vec::new()).as_deref(), Some("as it was"), "the bad node has gone");
    assert_eq!(with(&target, node("n", FRESH, Some(5))).as_deref(), Some("as it was"));
    assert_eq!(with(&target, node("n", FRESH, Some(60))), None, "it works by now");
    assert_eq!(with("0badcafe", Vec::new()), None, "it was another");
}

/// After a start, and after the class has been written, the region has found nothing for it yet.
#[test]
fn what_was_stopped_stays_so_while_it_is_not_known_what_is_asked_for() {
    let target = among_old(pool(), []).target;
    let rules = Wire {
        stopped: target.clone(),
        stopped_because: "as it was".to_owned(),
        ..Wire::default()
    };
    let stopped = v1::NodePool { rollout: Some(rules), ..pool() };
    let unknown = [RegionState::default(), found(&["ami-2"], "g"), found(&[], "h")];
    for region in &unknown {
        let stays = rollout_in(region, stopped.clone(), old().collect()).unwrap();
        assert_eq!((stays.target, stays.stopped.as_deref()), (target.clone(), Some("as it was")));
    }
    let other = rollout_in(&found(&["ami-2"], "h"), stopped, old().collect()).unwrap();
    assert_eq!(other.stopped, None, "another image is found");

    let late = old().chain(failing());
    let nameless = rollout_in(&unknown[0], pool(), late.collect()).unwrap();
    assert_eq!((nameless.stopped, nameless.canary), (None, canary(1, 1)), "nothing follows");
}
