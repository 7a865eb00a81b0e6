//! From a deleted claim, or a deleted node, to one that is drained and let go.

use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::Api;
use kube::api::DeleteParams;
use longshore_proto::cluster::v1::directive::Action;
use longshore_proto::cluster::v1::{DeleteClaim, DirectiveStatus, ReleaseClaim};
use longshore_watcher::api::NodeClaim;
use serde_json::{Value, json};

use super::scheduler::Session;
use super::support::{World, create, is_met, patch, patch_status, pod, pool, registered, until};

async fn with_pod(pod: Value) -> (World, Session) {
    let mut world = World::start().await;
    pool(&world).await;
    let (_, mut session) = world.scheduler.session().await;
    registered(&world, &mut session, "c1", "n1").await;
    let name = pod["metadata"]["name"].as_str().unwrap().to_owned();
    create(&world.pods(), pod).await;
    let ready = json!({ "status": {
        "phase": "Running", "conditions": [{ "type": "Ready", "status": "True" }] } });
    patch_status(&world.pods(), &name, ready).await;
    let on_node =
        |view: &super::scheduler::View| view.pod(&name).is_some_and(|pod| pod.node_name == "n1");
    session.until("the pod is on the node", on_node).await;
    (world, session)
}

fn on_n1(name: &str) -> Value {
    let mut pod = pod(name);
    pod["spec"]["nodeName"] = json!("n1");
    pod
}

async fn gone(pods: &Api<Pod>, name: &str) {
    let going = |pod: Option<&Pod>| pod.is_none_or(|p| p.metadata.deletion_timestamp.is_some());
    until(pods, name, "the pod is evicted", going).await;
    // The kubelet's part: without it, the pod would last as long as its grace.
    let now = DeleteParams::default().grace_period(0);
    let _ = pods.delete(name, &now).await;
}

#[tokio::test]
async fn a_deleted_claim_is_drained_and_let_go() {
    let (mut world, mut session) = with_pod(on_n1("p")).await;
    let delete = DeleteClaim {
        claim: "c1".to_owned(),
        reason: "Empty".to_owned(),
        message: "nothing is on it".to_owned(),
        ..DeleteClaim::default()
    };
    let result = session.direct(Action::DeleteClaim(delete)).await;
    assert_eq!(result.status(), DirectiveStatus::Done, "{result:?}");
    gone(&world.pods(), "p").await;
    session.until("the claim is drained", |v| v.claim("c1").is_some_and(|c| c.drained)).await;
    let node = world.all::<Node>().get("n1").await.unwrap();
    assert_eq!(node.spec.unwrap().unschedulable, Some(true));
    let label = "node.kubernetes.io/exclude-from-external-load-balancers";
    assert!(node.metadata.labels.unwrap().contains_key(label));
    let release = Action::ReleaseClaim(ReleaseClaim { claim: "c1".to_owned(), on_absence: true });
    assert_eq!(session.direct(release).await.status(), DirectiveStatus::Done);
    session.until("both are gone", |v| v.claim("c1").is_none() && v.node("n1").is_none()).await;
    drop(session);
    let (hello, _session) = world.scheduler.hello().await;
    let lost: Vec<_> = hello.losses.iter().map(|loss| loss.claim.as_str()).collect();
    assert_eq!(lost, ["c1"], "the next session hears what nobody had said was gone");
    let once = [
        ("karpenter_nodeclaims_created_total", "reason=\"provisioned\""),
        ("karpenter_nodes_created_total", "nodepool=\"default\""),
        ("karpenter_nodeclaims_disrupted_total", "reason=\"empty\""),
        ("karpenter_pods_eviction_requests_total", "code=\"200\""),
        ("karpenter_pods_drained_total", "reason=\"Empty\""),
        ("karpenter_nodes_drained_total", "nodepool=\"default\""),
        ("karpenter_nodes_terminated_total", "nodepool=\"default\""),
        ("karpenter_nodeclaims_terminated_total", "nodepool=\"default\""),
        ("karpenter_nodeclaims_termination_duration_seconds_count", "nodepool=\"default\""),
        ("karpenter_nodes_lifetime_duration_seconds_count", "nodepool=\"default\""),
        ("karpenter_pods_startup_duration_seconds_count", ""),
    ];
    for (name, labels) in once {
        assert_eq!(world.counted(name, labels), 1.0, "{name}: {}", world.metrics.text());
    }
    world.stop().await;
}

#[tokio::test]
async fn a_claim_whose_deletion_has_failed_is_not_let_go() {
    let (mut world, mut session) = with_pod(on_n1("p")).await;
    let release = Action::ReleaseClaim(ReleaseClaim { claim: "c1".to_owned(), on_absence: true });
    let result = session.direct(release).await;
    assert_eq!((result.status(), &*result.reason), (DirectiveStatus::Refused, "NOT_DELETED"));
    let claim = world.all::<NodeClaim>().get("c1").await.unwrap();
    assert_eq!(claim.metadata.deletion_timestamp, None, "nobody has said why it goes");
    assert_eq!(world.all::<Node>().get("n1").await.unwrap().metadata.deletion_timestamp, None);
    drop(session);
    let (hello, _session) = world.scheduler.hello().await;
    assert!(hello.losses.is_empty(), "{:?}", hello.losses);
    world.stop().await;
}

#[tokio::test]
async fn a_deleted_node_takes_its_claim_along() {
    let (world, mut session) = with_pod(on_n1("p")).await;
    world.all::<Node>().delete("n1", &DeleteParams::default()).await.unwrap();
    session.until("the claim goes", |v| v.claim("c1").is_some_and(|c| c.deleting)).await;
    gone(&world.pods(), "p").await;
    session.until("the claim is drained", |v| v.claim("c1").is_some_and(|c| c.drained)).await;
    world.stop().await;
}

#[tokio::test]
async fn a_protected_pod_keeps_its_node_until_it_is_free() {
    let mut protected = on_n1("p");
    protected["metadata"]["annotations"] = json!({ "karpenter.sh/do-not-evict": "true" });
    let (world, mut session) = with_pod(protected).await;
    world.all::<NodeClaim>().delete("c1", &DeleteParams::default()).await.unwrap();
    let cordoned =
        |view: &super::scheduler::View| view.node("n1").is_some_and(|node| node.cordoned);
    session.until("the node is cordoned", cordoned).await;
    let events: Api<k8s_openapi::api::events::v1::Event> =
        Api::namespaced(world.client.clone(), "default");
    super::support::within("the Event says what blocks", async {
        loop {
            let list = events.list(&Default::default()).await.unwrap();
            let note = list.items.iter().find(|e| e.reason.as_deref() == Some("FailedDraining"));
            if note.and_then(|e| e.note.as_deref()).is_some_and(|n| n.contains("default/p")) {
                return;
            }
            tokio::task::yield_now().await;
        }
    })
    .await;
    let pod = world.pods().get("p").await.unwrap();
    assert!(pod.metadata.deletion_timestamp.is_none());
    let free = json!({ "metadata": { "annotations": null } });
    patch(&world.pods(), "p", free).await;
    gone(&world.pods(), "p").await;
    session.until("the claim is drained", |v| v.claim("c1").is_some_and(|c| c.drained)).await;
    world.stop().await;
}

/// A budget that lets none of the pods go, once the scheduler knows of it.
async fn closed_budget(world: &World, session: &mut Session) -> Api<PodDisruptionBudget> {
    let budgets: Api<PodDisruptionBudget> = Api::default_namespaced(world.client.clone());
    create(
        &budgets,
        json!({
            "metadata": { "name": "b" },
            "spec": { "maxUnavailable": 0, "selector": { "matchLabels": { "app": "p" } } },
        }),
    )
    .await;
    session
        .until("the budget", |view| view.objects.keys().any(|(_, key)| key == "default/b"))
        .await;
    budgets
}

#[tokio::test]
async fn a_node_that_goes_at_once_waits_for_no_budget() {
    let (world, mut session) = with_pod(on_n1("p")).await;
    closed_budget(&world, &mut session).await;
    let delete = DeleteClaim {
        claim: "c1".to_owned(),
        reason: "Unhealthy".to_owned(),
        at_once: true,
        ..DeleteClaim::default()
    };
    let result = session.direct(Action::DeleteClaim(delete)).await;
    assert_eq!(result.status(), DirectiveStatus::Done, "{result:?}");
    gone(&world.pods(), "p").await;
    session.until("the claim is drained", |v| v.claim("c1").is_some_and(|c| c.drained)).await;
    world.stop().await;
}

#[tokio::test]
async fn a_budget_is_respected() {
    let (world, mut session) = with_pod(on_n1("p")).await;
    let budgets = closed_budget(&world, &mut session).await;
    world.all::<NodeClaim>().delete("c1", &DeleteParams::default()).await.unwrap();
    let events: Api<k8s_openapi::api::events::v1::Event> =
        Api::namespaced(world.client.clone(), "default");
    super::support::within("the Event says that a budget blocks", async {
        loop {
            let list = events.list(&Default::default()).await.unwrap();
            let note = list.items.iter().find(|e| e.reason.as_deref() == Some("FailedDraining"));
            if note.and_then(|e| e.note.as_deref()).is_some_and(|n| n.contains("Budget")) {
                return;
            }
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert!(!is_met(Some(&world.all::<NodeClaim>().get("c1").await.unwrap()), "Drained"));
    budgets.delete("b", &DeleteParams::default()).await.unwrap();
    gone(&world.pods(), "p").await;
    session.until("the claim is drained", |v| v.claim("c1").is_some_and(|c| c.drained)).await;
    assert!(world.counted("karpenter_pods_eviction_requests_total", "code=\"429\"") >= 1.0);
    assert_eq!(world.counted("karpenter_pods_drained_total", "Forceful Termination"), 1.0);
    world.stop().await;
}

#[tokio::test]
async fn daemons_and_tolerant_pods_stay() {
    let mut tolerant = on_n1("tolerant");
    tolerant["spec"]["tolerations"] = json!([{ "operator": "Exists" }]);
    let (world, mut session) = with_pod(tolerant).await;
    world.all::<NodeClaim>().delete("c1", &DeleteParams::default()).await.unwrap();
    session.until("the claim is drained", |v| v.claim("c1").is_some_and(|c| c.drained)).await;
    let pod = world.pods().get("tolerant").await.unwrap();
    assert!(pod.metadata.deletion_timestamp.is_none());
    world.stop().await;
}
