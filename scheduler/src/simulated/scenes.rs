//! What the scheduler does over minutes of trouble.
//!
//! Invariant: each scene is one mistake that must cost little.

use super::*;

pub(super) fn deletion(action: &Action) -> Option<cluster::DeleteClaim> {
    let Action::DeleteClaim(delete) = action else { return None };
    Some(delete.clone())
}

pub(super) fn disruption(action: &Action) -> Option<cluster::DisruptClaim> {
    let Action::DisruptClaim(disrupt) = action else { return None };
    Some(disrupt.clone())
}

/// The node and the claim of a disruption, as the watcher shows them once it is carried out.
pub(super) fn marked(number: u64, reason: &str) -> Vec<Kind> {
    let (mut node, mut claim) = in_service(number);
    let effect = v1::TaintEffect::NoSchedule.into();
    node.taints.push(v1::Taint {
        key: "karpenter.sh/disrupted".to_owned(),
        effect,
        ..Default::default()
    });
    claim.disruption_reason = reason.to_owned();
    if reason == "Drifted" {
        claim.drift_hash = "1-before/1-before".to_owned();
    }
    vec![Kind::Node(node), Kind::NodeClaim(claim)]
}

#[tokio::test(start_paused = true)]
async fn an_empty_node_goes_in_two_steps() {
    let mut scene = Scene::new(&[0], vec![pool(true)]).await;
    let disrupt = scene.next(PATIENCE, disruption).await.unwrap();
    assert_eq!((disrupt.claim.as_str(), disrupt.reason.as_str()), ("claim-0", "Empty"));
    assert_eq!(disrupt.assumes, Some(cluster::Assumption::default()), "nothing runs there");
    let early = scene.next(Duration::from_secs(20), deletion).await;
    assert_eq!(early, None, "its taint has not been seen");
    scene.delta(marked(0, "Empty"));
    let delete = scene.next(Duration::from_secs(5), deletion).await.unwrap();
    assert_eq!(delete.assumes, Some(cluster::Assumption::default()));
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_comes_before_the_taint_saves_its_node() {
    let mut scene = Scene::new(&[0], vec![pool(true)]).await;
    scene.next(PATIENCE, disruption).await.unwrap();
    let pod = bound("n-0");
    scene.delta(marked(0, "Empty").into_iter().chain([pod]).collect());
    let cancel = scene.next(Duration::from_secs(30), disruption).await.unwrap();
    assert!(cancel.cancel);
    assert!(!scene.seen.iter().any(|action| deletion(action).is_some()));
    let (node, claim) = in_service(0);
    scene.delta(vec![Kind::Node(node), Kind::NodeClaim(claim)]);
    let again = scene.next(Duration::from_secs(60), disruption).await;
    assert_eq!(again, None, "it is left alone for a while");
}

#[tokio::test(start_paused = true)]
async fn a_listing_that_lacks_all_instances_costs_two_nodes_in_ten_minutes_at_most() {
    let numbers: Vec<u64> = (0..8).collect();
    let pods = numbers.iter().map(|number| bound(&format!("n-{number}")));
    let objects = [pool(false)].into_iter().chain(pods).collect();
    let mut scene = Scene::new(&numbers, objects).await;
    assert_eq!(scene.next(Duration::from_secs(60), deletion).await, None);
    for number in &numbers {
        let mut gone = instance(*number);
        gone.phase = capacity::InstancePhase::Terminated.into();
        gone.vanished = true;
        scene.actuator.tell(Change::Instance(gone));
    }
    let believed = scene.next(Duration::from_secs(120), deletion).await;
    assert_eq!(believed, None, "the nodes are well");
    let unwell = numbers.iter().map(|number| {
        let (mut node, _) = in_service(*number);
        node.ready = false;
        Kind::Node(node)
    });
    let unwell = unwell.collect();
    scene.delta(unwell);
    scene.next(Duration::from_secs(500), |_| None::<()>).await;
    let deleted: std::collections::BTreeSet<String> =
        scene.seen.iter().filter_map(deletion).map(|delete| delete.claim).collect();
    assert_eq!(deleted.len(), 2, "{deleted:?}");
    let frozen =
        |action: &Action| matches!(action, Action::PublishEvent(event) if event.reason == "Frozen");
    assert!(scene.seen.iter().any(frozen), "it is said");
    assert_eq!(*scene.actuator.terminations.lock().unwrap(), Vec::<String>::new());
}

/// Eight nodes whose instances vanish once the session has heard of these losses; the claims that
/// go.
async fn lost_after(losses: Vec<cluster::Loss>) -> Vec<cluster::DeleteClaim> {
    let numbers: Vec<u64> = (0..8).collect();
    let unwell = || {
        let unwell = (0..8).map(in_service).flat_map(|(mut node, claim)| {
            node.ready = false;
            [Kind::Node(node), Kind::NodeClaim(claim)]
        });
        [pool(false)].into_iter().chain(unwell).collect::<Vec<_>>()
    };
    let mut scene = Scene::new(&numbers, unwell()).await;
    scene.reconnect_saying(cluster::Hello { losses, ..hello(2, "", "") }).await;
    scene.snapshot(unwell());
    for number in &numbers {
        let phase = capacity::InstancePhase::Terminated.into();
        let gone = capacity::InstanceState { phase, vanished: true, ..instance(*number) };
        scene.actuator.tell(Change::Instance(gone));
    }
    scene.next(Duration::from_secs(300), |_| None::<()>).await;
    scene.seen.iter().filter_map(deletion).collect()
}

#[tokio::test(start_paused = true)]
async fn what_another_scheduler_let_go_counts_in_this_one() {
    let lost = |claim: &str| cluster::Loss {
        claim: claim.to_owned(),
        age: Some(prost_types::Duration { seconds: 30, nanos: 0 }),
    };
    let gone = lost_after(Vec::new()).await;
    assert!(!gone.is_empty() && gone.iter().all(|delete| delete.on_absence), "{gone:?}");
    assert_eq!(lost_after(vec![lost("x"), lost("y")]).await, []);
    let gone = lost_after(vec![lost("x")]).await;
    let names: std::collections::BTreeSet<_> = gone.into_iter().map(|it| it.claim).collect();
    assert_eq!(names.len(), 1, "{names:?}");
}

#[tokio::test(start_paused = true)]
async fn instances_without_claims_are_ended_late_and_few_at_a_time() {
    let mut scene = Scene::new(&[], vec![pool(false)]).await;
    (0..5).for_each(|number| scene.actuator.tell(Change::Instance(instance(number))));
    scene.next(Duration::from_secs(55), |_| None::<()>).await;
    assert!(scene.actuator.terminations.lock().unwrap().is_empty(), "their claims may still come");
    scene.next(Duration::from_secs(300), |_| None::<()>).await;
    let ended: std::collections::BTreeSet<String> =
        scene.actuator.terminations.lock().unwrap().iter().cloned().collect();
    assert_eq!(ended.len(), 2, "{ended:?}");
}

#[tokio::test(start_paused = true)]
async fn nothing_is_ended_while_claims_cannot_be_read() {
    let about = v1::ObjectRef { kind: v1::ObjectKind::NodeClaim.into(), key: String::new() };
    let key = format!("{}/", about.kind);
    let (about, message) = (Some(about), "404".to_owned());
    let stone = v1::UnreadableObject { key, about, message, ..Default::default() };
    let mut scene = Scene::new(&[], vec![pool(true), Kind::Unreadable(stone)]).await;
    (0..5).for_each(|number| scene.actuator.tell(Change::Instance(instance(number))));
    scene.next(Duration::from_secs(900), |_| None::<()>).await;
    assert!(scene.actuator.terminations.lock().unwrap().is_empty());
    let said = |action: &Action| {
        matches!(action, Action::SetNodePoolStatus(status)
            if status.conditions.iter().any(|condition| condition.reason == "Unreadable"))
    };
    assert!(scene.seen.iter().any(said), "the pool says so");
}

#[tokio::test(start_paused = true)]
async fn an_old_session_is_asked_to_move() {
    let mut scene = Scene::new(&[], vec![pool(false)]).await;
    let mut sign = Instant::now();
    let began = Instant::now();
    let away = loop {
        if Instant::now() >= sign {
            let bookmark = Up::Bookmark(cluster::Bookmark::default());
            scene.up.send(cluster::SyncRequest { message: Some(bookmark) }).unwrap();
            sign = Instant::now() + Duration::from_secs(10);
        }
        let Ok(response) = timeout(sign - Instant::now(), scene.down.message()).await else {
            assert!(began.elapsed() < PATIENCE, "it stays for ever");
            continue;
        };
        if let Some(Down::GoAway(away)) = response.unwrap().unwrap().message {
            break away;
        }
    };
    assert!(began.elapsed() >= Duration::from_secs(1_800), "{away:?}");
}

#[tokio::test(start_paused = true)]
async fn an_interruption_is_acted_on_at_once_whatever_else_is_frozen() {
    let about = v1::ObjectRef { kind: v1::ObjectKind::Pod.into(), key: "strange".to_owned() };
    let key = format!("{}/strange", about.kind);
    let stone = v1::UnreadableObject { key, about: Some(about), ..Default::default() };
    let objects = vec![pool(true), Kind::Unreadable(stone)];
    let mut scene = Scene::new(&[0, 1], objects).await;
    let chosen = scene.next(Duration::from_secs(120), disruption).await;
    assert_eq!(chosen, None, "the pod may be on any node");
    scene.actuator.tell(Change::Interruption(capacity::Interruption {
        instance_id: "i-1".to_owned(),
        cluster_id: "c".to_owned(),
        claim: "claim-1".to_owned(),
        kind: capacity::InterruptionKind::Spot.into(),
        ..Default::default()
    }));
    let delete = scene.next(Duration::from_secs(1), deletion).await.unwrap();
    assert_eq!((delete.claim.as_str(), delete.reason.as_str()), ("claim-1", "Interrupted"));
    assert_eq!(delete.assumes, None);
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_read_keeps_no_node_that_it_is_not_about() {
    let stone = |kind: v1::ObjectKind, key: &str, node_name: &str| {
        let about = v1::ObjectRef { kind: kind.into(), key: key.to_owned() };
        let (key, node_name) = (format!("{}/{key}", about.kind), node_name.to_owned());
        let about = Some(about);
        Kind::Unreadable(v1::UnreadableObject { key, about, node_name, ..Default::default() })
    };
    // One node at a time: the turn of one that must stay is another's.
    let Kind::NodePool(mut one_by_one) = pool(true) else { panic!("a pool") };
    let budget = v1::NodeBudget { nodes: "1".to_owned(), ..Default::default() };
    one_by_one.disruption.as_mut().unwrap().budgets = vec![budget];
    let one_by_one = Kind::NodePool(one_by_one);
    let chosen = async |extra: Vec<Kind>| {
        let objects = [pool(true)].into_iter().chain(extra).collect();
        let mut scene = Scene::new(&[0, 1], objects).await;
        scene.next(Duration::from_secs(120), |_| None::<()>).await;
        let found = scene.seen.iter().filter_map(disruption).map(|disrupt| disrupt.claim);
        found.collect::<std::collections::BTreeSet<_>>()
    };
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let pod = stone(v1::ObjectKind::Pod, "strange", "n-0");
    assert_eq!(chosen(vec![pod.clone()]).await, names(&["claim-1"]));
    assert_eq!(chosen(vec![pod, one_by_one.clone()]).await, names(&["claim-1"]));
    let Kind::Pod(mut moved) = bound("n-0") else { panic!("a pod") };
    moved.namespace = "shop".to_owned();
    let moved = || Kind::Pod(moved.clone());
    let budget = |namespace: &str| {
        stone(v1::ObjectKind::DisruptionBudget, &format!("{namespace}/strange"), "")
    };
    let both = names(&["claim-0", "claim-1"]);
    assert_eq!(chosen(vec![moved()]).await, both);
    assert_eq!(chosen(vec![moved(), budget("bank")]).await, both);
    let only = names(&["claim-1"]);
    assert_eq!(chosen(vec![moved(), budget("shop")]).await, only);
    assert_eq!(chosen(vec![moved(), budget("shop"), one_by_one]).await, only);
}

#[tokio::test(start_paused = true)]
async fn a_session_that_follows_another_waits_for_what_that_one_asked() {
    let waiting = || {
        let Kind::Pod(pod) = bound("") else { panic!("a pod") };
        Kind::Pod(v1::Pod { phase: v1::PodPhase::Pending.into(), unschedulable: true, ..pod })
    };
    let creation = |action: &Action| {
        let Action::CreateClaim(create) = action else { return None };
        create.claim.clone()
    };
    let mut scene = Scene::new(&[], vec![pool(false), waiting()]).await;
    scene.next(Duration::from_secs(2), creation).await.unwrap();
    let first = std::mem::take(&mut scene.ids);
    scene.reconnect(2).await;
    scene.snapshot(vec![pool(false), waiting()]);
    let doubled = scene.next(Duration::from_millis(2_900), creation).await;
    assert_eq!(doubled, None, "its claim may be on its way into the view");
    scene.next(Duration::from_secs(2), creation).await.unwrap();
    assert!(!scene.ids.iter().any(|id| first.contains(id)), "{first:?} {:?}", scene.ids);
    let idle = Some(prost_types::Duration { seconds: 5, nanos: 0 });
    scene.reconnect_saying(cluster::Hello { idle, ..hello(3, "", "") }).await;
    scene.snapshot(vec![pool(false), waiting()]);
    let at_once = scene.next(Duration::from_millis(500), creation).await;
    assert!(at_once.is_some(), "nothing has been under way for five seconds");
}

#[tokio::test(start_paused = true)]
async fn clusters_of_one_name_live_side_by_side_or_are_told_why_not() {
    let scene = Scene::new(&[], Vec::new()).await;
    let platform = scene.supervisor.platform();
    let _east = connect(platform, hello(5, "us-east-1", "x")).await.unwrap();
    let _west = connect(platform, hello(4, "us-west-2", "y")).await.unwrap();
    let refused = connect(platform, hello(9, "us-east-1", "z")).await.err().unwrap();
    let reason = longshore_proto::reason::of_status(&refused).unwrap().0;
    assert_eq!(reason, "CLUSTER_MISMATCH");
    assert!(refused.message().contains("--region"), "{}", refused.message());
}

#[tokio::test(start_paused = true)]
async fn a_session_waits_while_its_region_is_out_of_reach() {
    let mut scene = Scene::new(&[], vec![pool(false)]).await;
    let facts = v1::ClusterFacts { region: "elsewhere".to_owned(), ..Default::default() };
    scene.delta(vec![Kind::Cluster(facts)]);
    // On a clock that moves only when everything waits, a loop that turns at once would never end.
    scene.next(Duration::from_secs(120), |_| None::<()>).await;
    let said = |action: &Action| {
        matches!(action, Action::SetNodePoolStatus(status)
            if status.conditions.iter().any(|condition| condition.reason == "NoActuator"))
    };
    assert!(scene.seen.iter().any(said));
}

/// A pod of shape `s-0` that kube-scheduler has given up on.
fn waiting(uid: &str) -> Kind {
    let Kind::Pod(pod) = bound("n-0") else { panic!("a pod") };
    let phase = v1::PodPhase::Pending.into();
    let (uid, node_name) = (uid.to_owned(), String::new());
    Kind::Pod(v1::Pod { name: uid.clone(), uid, node_name, phase, unschedulable: true, ..pod })
}

/// The node that a pod is told to go to.
fn told<'a>(uid: &'a str) -> impl Fn(&Action) -> Option<String> + 'a {
    move |action| {
        let Action::NominatePods(nominate) = action else { return None };
        nominate.pods.iter().any(|pod| pod == uid).then(|| nominate.node.clone())
    }
}

#[tokio::test(start_paused = true)]
async fn a_pod_is_told_its_node_although_another_was_told_the_same_just_before() {
    let mut scene = Scene::new(&[0, 1], vec![pool(false)]).await;
    for uid in ["first", "second", "third"] {
        scene.delta(vec![waiting(uid)]);
        let told = scene.next(Duration::from_secs(2), told(uid)).await;
        assert!(told.is_some(), "nobody says where {uid} goes");
    }
}

#[tokio::test(start_paused = true)]
async fn nobody_is_told_while_pods_are_bound_to_nodes_that_have_just_opened() {
    let mut scene = Scene::new(&[0], vec![pool(false)]).await;
    let (node, claim) = in_service(1);
    let starting = v1::NodeClaim { initialize_time: None, ..claim.clone() };
    scene.delta(vec![Kind::Node(node), Kind::NodeClaim(starting)]);
    scene.delta((0..4).map(|number| waiting(&format!("p-{number}"))).collect());
    scene.delta(vec![Kind::NodeClaim(claim)]);
    for number in 0..3 {
        let early = scene.next(Duration::from_millis(4_900), told("p-3")).await;
        assert_eq!(early, None, "kube-scheduler has not come to it yet");
        let uid = format!("p-{number}");
        let Kind::Pod(pod) = bound("n-1") else { panic!("a pod") };
        scene.delta(vec![Kind::Pod(v1::Pod { name: uid.clone(), uid, ..pod })]);
    }
    let told = scene.next(Duration::from_secs(7), told("p-3")).await;
    assert!(told.is_some(), "it is not being tried");
}
