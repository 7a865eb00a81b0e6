//! A claim's way from its creation to a node that takes pods.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::events::v1::Event;
use kube::Api;
use longshore_proto::cluster::v1::directive::Action;
use longshore_proto::cluster::v1::{
    Assumption, DeleteClaim, Directive, DirectiveStatus, DisruptClaim, PinPods, RecordLaunch,
    RecordLaunchFailure, RegisterNode, ReleaseClaim,
};
use longshore_proto::types::v1::CapacityType;
use longshore_watcher::api::NodeClaim;

use super::scheduler::Session;
use super::support::{
    PROVIDER_ID, TRACE, World, class, condition, create, create_claim, is_met, node, pod, pool,
    provider_id, record_launch, registered, until,
};

/// Asserts that a directive was carried out.
pub async fn done(session: &mut Session, action: Action) {
    let result = session.direct(action).await;
    assert_eq!(result.status(), DirectiveStatus::Done, "{result:?}");
}

/// Creates a claim for a pod and checks the object.
async fn created(world: &World, session: &mut Session, uid: &str) {
    done(session, create_claim("c1", &[uid.to_owned()])).await;
    let meta = world.all::<NodeClaim>().get("c1").await.unwrap().metadata;
    assert_eq!(meta.finalizers.unwrap(), ["karpenter.sh/termination"]);
    assert_eq!(meta.labels.unwrap()["karpenter.sh/nodepool"], "default");
    let annotations = meta.annotations.unwrap();
    assert_eq!(annotations["longshore.dev/launch-id"], "launch-c1");
    assert_eq!(annotations["longshore.dev/traceparent"], TRACE);
    assert_eq!(annotations["longshore.dev/max-price-micro-usd-per-hour"], "12000");
    assert_eq!(annotations["team"], "a");
    assert_eq!(meta.owner_references.unwrap()[0].kind, "NodePool");
}

/// Records its launch and checks the view.
async fn launched(session: &mut Session) {
    let record = RecordLaunch {
        claim: "c1".to_owned(),
        provider_id: PROVIDER_ID.to_owned(),
        instance_type: "m7g.large".to_owned(),
        zone: "us-east-1a".to_owned(),
        zone_id: "use1-az1".to_owned(),
        capacity_type: CapacityType::Spot.into(),
        image_id: "ami-1".to_owned(),
        ..RecordLaunch::default()
    };
    done(session, Action::RecordLaunch(record)).await;
    session
        .until("the launch is in the view", |view| {
            view.claim("c1").is_some_and(|claim| {
                claim.provider_id == PROVIDER_ID
                    && claim.instance_type == "m7g.large"
                    && claim.capacity_type() == CapacityType::Spot
            })
        })
        .await;
}

/// Checks a node that is in service.
async fn in_service(world: &World) {
    let node = world.all::<Node>().get("n1").await.unwrap();
    let labels = node.metadata.labels.unwrap();
    assert_eq!(labels["karpenter.sh/registered"], "true");
    assert_eq!(labels["karpenter.sh/initialized"], "true");
    assert_eq!(labels["karpenter.sh/capacity-type"], "spot");
    assert_eq!(labels["karpenter.k8s.aws/ec2nodeclass"], "default");
    assert_eq!(node.metadata.finalizers.unwrap(), ["karpenter.sh/termination"]);
}

#[tokio::test]
async fn the_whole_way_to_a_running_pod() {
    let mut world = World::start().await;
    pool(&world).await;
    class(&world).await;
    let uid = create(&world.pods(), pod("waits")).await.metadata.uid.unwrap();
    let (_, mut session) = world.scheduler.session().await;
    session
        .until("pod and pool", |v| v.pod("waits").is_some() && v.pool("default").is_some())
        .await;
    created(&world, &mut session, &uid).await;
    launched(&mut session).await;
    create(&world.all::<Node>(), node("n1", PROVIDER_ID)).await;
    session.until("the node", |view| view.node("n1").is_some()).await;
    let (claim, node) = ("c1".to_owned(), "n1".to_owned());
    let register = RegisterNode { claim, node, pods: vec![uid], any_order: false };
    done(&mut session, Action::RegisterNode(register)).await;
    let claims = world.all::<NodeClaim>();
    let claim = claims.get("c1").await.unwrap();
    assert!(is_met(Some(&claim), "Registered") && is_met(Some(&claim), "Initialized"));
    until(&world.pods(), "waits", "the pod is bound", |pod: Option<&Pod>| {
        pod.and_then(|p| p.spec.as_ref()?.node_name.as_deref()) == Some("n1")
    })
    .await;
    assert!(is_met(Some(&claim), "Ready"));
    in_service(&world).await;
    until(&claims, "c1", "the pod event is written down", |claim| {
        claim.and_then(|c| c.status.as_ref()?.last_pod_event_time.as_ref()).is_some()
    })
    .await;
    session
        .until("the scheduler knows", |view| {
            let claim = view.claim("c1");
            claim.is_some_and(|c| c.initialize_time.is_some() && c.node_name == "n1")
        })
        .await;
    world.stop().await;
}

#[tokio::test]
async fn a_nomination_is_ours_and_comes_before_the_taint_goes() {
    let mut world = World::start().await;
    pool(&world).await;
    let mut gated = pod("gated");
    gated["spec"]["schedulingGates"] = serde_json::json!([{ "name": "test.dev/wait" }]);
    let uid = create(&world.pods(), gated).await.metadata.uid.unwrap();
    let (_, mut session) = world.scheduler.session().await;
    registered(&world, &mut session, "c1", "n1").await;
    let (claim, node) = ("c1".to_owned(), "n1".to_owned());
    let register = RegisterNode { claim, node, pods: vec![uid], any_order: false };
    session.direct(Action::RegisterNode(register)).await;
    session
        .until("the nomination", |view| {
            view.pod("gated").is_some_and(|pod| pod.nominated_node == "n1" && pod.nominated_by_us)
        })
        .await;
    world.stop().await;
}

/// A claim for these pods whose instance runs; its node has yet to join.
async fn coming(session: &mut Session, name: &str, pods: &[String]) {
    done(session, create_claim(name, pods)).await;
    done(session, Action::RecordLaunch(record_launch(name))).await;
}

/// Whether a node takes in only pods that were told of it.
async fn is_closed(world: &World, name: &str) -> bool {
    let spec = world.all::<Node>().get(name).await.unwrap().spec;
    let mut taints = spec.unwrap_or_default().taints.into_iter().flatten();
    taints.any(|taint| taint.key == "karpenter.sh/unregistered")
}

/// The node of a claim joins, and is to open to these pods.
async fn joins(world: &World, session: &mut Session, number: usize, pods: Vec<String>) {
    let (claim, name) = (format!("c{number}"), format!("n{number}"));
    let mut node = node(&name, &provider_id(&claim));
    if pods.is_empty() {
        node["status"]["allocatable"]["pods"] = "0".into();
    }
    create(&world.all::<Node>(), node).await;
    session.until("the node", |view| view.node(&name).is_some()).await;
    let register = RegisterNode { claim, node: name.clone(), pods, any_order: false };
    session.begin(&name, Action::RegisterNode(register)).await;
}

/// A pod is bound, and to no other node.
async fn is_bound(world: &World, name: &str, node: &str) {
    until(&world.pods(), name, "the pod is where it was planned", |pod: Option<&Pod>| {
        let place = pod.and_then(|p| p.spec.as_ref()?.node_name.as_deref());
        assert!(place.is_none_or(|place| place == node), "{name} went to {place:?}");
        place.is_some()
    })
    .await;
}

#[tokio::test]
async fn a_node_with_room_stays_closed_while_others_come_for_pods_that_wait() {
    let mut world = World::start().await;
    pool(&world).await;
    let mut uids = Vec::new();
    for name in ["p1", "p2"] {
        uids.push(create(&world.pods(), pod(name)).await.metadata.uid.unwrap());
    }
    let (_, mut session) = world.scheduler.session().await;
    session.until("the pods", |view| view.pods().count() == 2).await;
    coming(&mut session, "c1", &uids[..1]).await;
    // Bought for a pod that had yet to come.
    coming(&mut session, "c2", &[]).await;
    let pin = PinPods { claim: "c2".to_owned(), pods: uids[1..].to_vec() };
    done(&mut session, Action::PinPods(pin)).await;
    coming(&mut session, "c3", &[]).await;
    joins(&world, &mut session, 1, uids[..1].to_vec()).await;
    is_bound(&world, "p1", "n1").await;
    // It is full, so that it is opened as soon as any may be.
    joins(&world, &mut session, 3, Vec::new()).await;
    session.until("the full node is open", |view| view.results.len() == 8).await;
    assert!(!is_closed(&world, "n3").await);
    assert!(is_closed(&world, "n1").await, "it would draw the other pod");
    joins(&world, &mut session, 2, uids[1..].to_vec()).await;
    is_bound(&world, "p2", "n2").await;
    session.until("all nodes are open", |view| view.results.len() == 10).await;
    assert!(!is_closed(&world, "n1").await);
    world.stop().await;
}

#[tokio::test]
async fn directives_are_idempotent_whatever_the_scheduler_takes_for_now() {
    let mut world = World::start().await;
    pool(&world).await;
    let (_, mut session) = world.scheduler.session().await;
    for id in ["a", "a", "b"] {
        let result = session.direct_as(id, create_claim("c1", &[])).await;
        assert_eq!(result.status(), DirectiveStatus::Done, "{result:?}");
    }
    let mut other = create_claim("c1", &[]);
    if let Action::CreateClaim(create) = &mut other {
        create.claim.as_mut().unwrap().launch_id = "another".to_owned();
    }
    let result = session.direct(other).await;
    assert_eq!(result.status(), DirectiveStatus::Refused);
    assert_eq!(result.reason, "CLAIM_EXISTS");
    // Its time is over by the scheduler's clock, which may be wrong: it has not waited here.
    let skewed = Directive {
        directive_id: "skewed".to_owned(),
        expire_time: Some(prost_types::Timestamp { seconds: 1, nanos: 0 }),
        action: Some(create_claim("c2", &[])),
        ..Directive::default()
    };
    assert_eq!(session.send_directive(skewed).await.status(), DirectiveStatus::Done);
    world.stop().await;
}

#[tokio::test]
async fn each_step_of_a_claim_into_service_is_told() {
    let mut world = World::start().await;
    pool(&world).await;
    let (_, mut session) = world.scheduler.session().await;
    registered(&world, &mut session, "c1", "n1").await;
    let events: Api<Event> = Api::default_namespaced(world.client.clone());
    super::support::within("Events of the claim", async {
        loop {
            let all = events.list(&Default::default()).await.unwrap().items;
            let of_claim = all.into_iter().filter(|event| {
                let about = event.regarding.as_ref();
                about.is_some_and(|it| it.kind.as_deref() == Some("NodeClaim"))
            });
            let told: BTreeSet<String> = of_claim.filter_map(|event| event.reason).collect();
            if ["Launched", "Registered", "Ready"].iter().all(|reason| told.contains(*reason)) {
                return;
            }
            tokio::task::yield_now().await;
        }
    })
    .await;
    world.stop().await;
}

#[tokio::test]
async fn a_failed_launch_says_why_and_goes_when_told() {
    let mut world = World::start().await;
    pool(&world).await;
    let uid = create(&world.pods(), pod("waits")).await.metadata.uid.unwrap();
    let (_, mut session) = world.scheduler.session().await;
    session.until("the pod", |view| view.pod("waits").is_some()).await;
    session.direct(create_claim("c1", &[uid])).await;
    let failure = |delete| {
        Action::RecordLaunchFailure(RecordLaunchFailure {
            claim: "c1".to_owned(),
            reason: "UnauthorizedOperation".to_owned(),
            message: "ec2:RunInstances was denied; add the tag karpenter.sh/discovery".to_owned(),
            delete,
        })
    };
    session.direct(failure(false)).await;
    let claims = world.all::<NodeClaim>();
    let claim = claims.get("c1").await.unwrap();
    let launched = condition(&claim, "Launched").unwrap();
    assert_eq!(
        (launched.status.as_str(), launched.reason.as_str()),
        ("False", "UnauthorizedOperation")
    );
    let events: Api<Event> = Api::default_namespaced(world.client.clone());
    let said = |list: &[Event]| {
        list.iter().any(|e| {
            e.reason.as_deref() == Some("LaunchFailed")
                && e.regarding.as_ref().and_then(|r| r.kind.as_deref()) == Some("Pod")
        })
    };
    super::support::within("the Event on the pod", async {
        while !said(&events.list(&Default::default()).await.unwrap().items) {
            tokio::task::yield_now().await;
        }
    })
    .await;
    session.direct(failure(true)).await;
    session.until("the claim is going", |v| v.claim("c1").is_some_and(|c| c.deleting)).await;
    let release = Action::ReleaseClaim(ReleaseClaim { claim: "c1".to_owned(), on_absence: false });
    assert_eq!(session.direct(release).await.status(), DirectiveStatus::Done);
    session.until("the claim is gone", |view| view.claim("c1").is_none()).await;
    world.stop().await;
}

#[tokio::test]
async fn a_disruption_is_marked_and_undone() {
    let mut world = World::start().await;
    pool(&world).await;
    let (_, mut session) = world.scheduler.session().await;
    registered(&world, &mut session, "c1", "n1").await;
    let disrupt = |cancel| {
        Action::DisruptClaim(DisruptClaim {
            claim: "c1".to_owned(),
            reason: "Underutilized".to_owned(),
            replaced_by: vec!["c2".to_owned(), "c3".to_owned()],
            cancel,
            assumes: None,
        })
    };
    let tainted = |view: &super::scheduler::View| {
        let taints = view.node("n1").map(|node| node.taints.clone()).unwrap_or_default();
        taints.iter().any(|taint| taint.key == "karpenter.sh/disrupted")
    };
    session.direct(disrupt(false)).await;
    session
        .until("the mark", |view| {
            tainted(view)
                && view.claim("c1").is_some_and(|c| {
                    c.disruption_reason == "Underutilized" && c.replaced_by == ["c2", "c3"]
                })
        })
        .await;
    session.direct(disrupt(true)).await;
    session
        .until("no mark", |view| {
            !tainted(view)
                && view
                    .claim("c1")
                    .is_some_and(|c| c.disruption_reason.is_empty() && c.replaced_by.is_empty())
        })
        .await;
    world.stop().await;
}

#[tokio::test]
async fn what_is_not_there_is_refused_or_done() {
    let mut world = World::start().await;
    let (_, mut session) = world.scheduler.session().await;
    let gone = || "gone".to_owned();
    let record = RecordLaunch { claim: gone(), ..RecordLaunch::default() };
    let result = session.direct(Action::RecordLaunch(record)).await;
    assert_eq!((result.status(), result.reason.as_str()), (DirectiveStatus::Refused, "NOT_FOUND"));
    let release = Action::ReleaseClaim(ReleaseClaim { claim: gone(), on_absence: false });
    assert_eq!(session.direct(release).await.status(), DirectiveStatus::Done);
    let delete = Action::DeleteClaim(DeleteClaim { claim: gone(), ..DeleteClaim::default() });
    assert_eq!(session.direct(delete).await.status(), DirectiveStatus::Done);
    world.stop().await;
}

#[tokio::test]
async fn a_node_that_holds_more_than_the_decision_knew_stays() {
    let mut world = World::start().await;
    pool(&world).await;
    let (_, mut session) = world.scheduler.session().await;
    registered(&world, &mut session, "c1", "n1").await;
    let mut late = pod("late");
    late["spec"]["nodeName"] = serde_json::json!("n1");
    let uid = create(&world.pods(), late).await.metadata.uid.unwrap();
    let delete = |pods: &[&str]| {
        let pods = pods.iter().map(|&pod| pod.to_owned()).collect();
        Action::DeleteClaim(DeleteClaim {
            claim: "c1".to_owned(),
            reason: "Empty".to_owned(),
            message: String::new(),
            assumes: Some(Assumption { pods }),
            ..DeleteClaim::default()
        })
    };
    // The watch may not have shown the pod yet: the API server is asked.
    let result = session.direct(delete(&[])).await;
    assert_eq!(result.reason, "ASSUMPTION_FAILED", "{result:?}");
    assert!(result.message.contains("default/late"), "{result:?}");
    let claims = world.all::<NodeClaim>();
    assert_eq!(claims.get("c1").await.unwrap().metadata.deletion_timestamp, None);
    let node = world.all::<Node>().get("n1").await.unwrap();
    let taints = node.spec.unwrap().taints.unwrap_or_default();
    assert!(taints.iter().all(|taint| taint.key != "karpenter.sh/disrupted"), "{taints:?}");
    let result = session.direct(delete(&[&uid])).await;
    assert_eq!(result.status(), DirectiveStatus::Done, "{result:?}");
    session.until("the claim goes", |v| v.claim("c1").is_some_and(|c| c.deleting)).await;
    world.stop().await;
}
