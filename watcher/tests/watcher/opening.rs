//! When a node that has joined opens, and to whom.

use k8s_openapi::api::core::v1::{Node, Pod, Toleration};
use longshore_proto::cluster::v1::directive::Action;
use longshore_proto::cluster::v1::{DirectiveStatus, RegisterNode};
use serde_json::json;

use super::scheduler::Session;
use super::support::{
    World, create, create_claim, node, pod, pool, provider_id, record_launch, until,
};

/// Asserts that a directive was carried out.
async fn done(session: &mut Session, action: Action) {
    let result = session.direct(action).await;
    assert_eq!(result.status(), DirectiveStatus::Done, "{result:?}");
}

/// A claim for these pods whose instance runs; its node has yet to join.
async fn coming(session: &mut Session, name: &str, pods: &[String]) {
    done(session, create_claim(name, pods)).await;
    done(session, Action::RecordLaunch(record_launch(name))).await;
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
    for (number, uid) in uids.iter().enumerate() {
        coming(&mut session, &format!("c{}", number + 1), std::slice::from_ref(uid)).await;
    }
    for (number, uid) in uids.into_iter().enumerate() {
        let (claim, name) = (format!("c{}", number + 1), format!("n{}", number + 1));
        create(&world.all::<Node>(), node(&name, &provider_id(&claim))).await;
        session.until("the node", |view| view.node(&name).is_some()).await;
        let register =
            RegisterNode { claim, node: name.clone(), pods: vec![uid], ..Default::default() };
        session.begin(&name, Action::RegisterNode(register)).await;
        let planned = format!("p{}", number + 1);
        until(&world.pods(), &planned, "the pod is where it was planned", |pod: Option<&Pod>| {
            let place = pod.and_then(|p| p.spec.as_ref()?.node_name.as_deref());
            assert!(place.is_none_or(|place| place == name), "{planned} went to {place:?}");
            place.is_some()
        })
        .await;
    }
    session.until("both nodes are open", |view| view.results.len() == 6).await;
    world.stop().await;
}

/// A pod larger than the others: its UID.
async fn large(world: &World, name: &str) -> String {
    let mut large = pod(name);
    large["spec"]["containers"][0]["resources"]["requests"]["cpu"] = json!("300m");
    create(&world.pods(), large).await.metadata.uid.unwrap()
}

/// The node of a claim joins, and is to be opened to these pods.
async fn joins(world: &World, session: &mut Session, claim: &str, pods: &[&str], free: &[&str]) {
    let name = claim.replace('c', "n");
    create(&world.all::<Node>(), node(&name, &provider_id(claim))).await;
    session.until("the node", |view| view.node(&name).is_some()).await;
    let register = RegisterNode {
        claim: claim.to_owned(),
        node: name.clone(),
        pods: pods.iter().map(|pod| (*pod).to_owned()).collect(),
        free_pods: free.iter().map(|pod| (*pod).to_owned()).collect(),
        any_order: false,
    };
    session.begin(&name, Action::RegisterNode(register)).await;
}

/// What a pod tolerates of closed nodes once it is on `node`.
async fn passes_on(world: &World, name: &str, node: &str) -> Vec<Toleration> {
    until(&world.pods(), name, "the pod is bound", |pod: Option<&Pod>| {
        pod.and_then(|pod| pod.spec.as_ref()?.node_name.as_deref()) == Some(node)
    })
    .await;
    let pod = world.pods().get(name).await.unwrap();
    let tolerations = pod.spec.and_then(|spec| spec.tolerations).into_iter().flatten();
    tolerations.filter(|it| it.key.as_deref() == Some("karpenter.sh/unregistered")).collect()
}

#[tokio::test]
async fn who_need_not_be_told_comes_when_all_others_have_their_places() {
    let mut world = World::start().await;
    pool(&world).await;
    let told = create(&world.pods(), pod("told")).await.metadata.uid.unwrap();
    let free = large(&world, "free").await;
    let (_, mut session) = world.scheduler.session().await;
    session.until("the pods", |view| view.pods().count() == 2).await;
    coming(&mut session, "c1", &[told.clone(), free.clone()]).await;
    joins(&world, &mut session, "c1", &[&told, &free], &[&free]).await;
    assert_eq!(passes_on(&world, "told", "n1").await.len(), 1);
    assert_eq!(passes_on(&world, "free", "n1").await, [], "it was not written to");
    world.stop().await;
}

#[tokio::test]
async fn who_need_not_be_told_waits_for_nobody_in_vain() {
    let mut world = World::start().await;
    pool(&world).await;
    let other = create(&world.pods(), pod("other")).await.metadata.uid.unwrap();
    let free = large(&world, "free").await;
    let (_, mut session) = world.scheduler.session().await;
    session.until("the pods", |view| view.pods().count() == 2).await;
    coming(&mut session, "c1", std::slice::from_ref(&free)).await;
    coming(&mut session, "c2", std::slice::from_ref(&other)).await;
    // Were it open, the other pod would come here, whose own node takes long.
    joins(&world, &mut session, "c1", &[&free], &[&free]).await;
    assert_eq!(passes_on(&world, "free", "n1").await.len(), 1);
    joins(&world, &mut session, "c2", &[&other], &[]).await;
    passes_on(&world, "other", "n2").await;
    world.stop().await;
}
