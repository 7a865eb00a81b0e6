//! Status of pools and node classes, and objects that cannot be used.

use longshore_proto::cluster::v1::directive::Action;
use longshore_proto::cluster::v1::{
    Condition, DirectiveStatus, PublishEvent, ResolvedGroup, ResolvedImage, ResolvedSubnet,
    SetConditions, SetNodeClassStatus, SetNodePoolStatus,
};
use longshore_proto::types::v1::object::Kind;
use longshore_proto::types::v1::{ObjectKind, ObjectRef, Resources};
use longshore_watcher::api::{EC2NodeClass, NodeOverlay, NodePool};
use serde_json::json;

use super::support::{World, class, create, node_pool, patch, pool, until};

fn ready() -> Condition {
    Condition {
        r#type: "Ready".to_owned(),
        status: Some(true),
        reason: String::new(),
        message: String::new(),
    }
}

#[tokio::test]
async fn status_is_written_once() {
    let mut world = World::start().await;
    pool(&world).await;
    class(&world).await;
    let (_, mut session) = world.scheduler.session().await;
    session.until("the pool", |view| view.pool("default").is_some()).await;
    let of_class = Action::SetNodeClassStatus(SetNodeClassStatus {
        node_class: "EC2NodeClass/default".to_owned(),
        conditions: vec![ready()],
        subnets: vec![ResolvedSubnet { id: "subnet-1".to_owned(), ..Default::default() }],
        security_groups: vec![ResolvedGroup { id: "sg-1".to_owned(), ..Default::default() }],
        images: vec![ResolvedImage { id: "ami-1".to_owned(), ..Default::default() }],
        instance_profile: "profile".to_owned(),
        ..SetNodeClassStatus::default()
    });
    let of_pool = Action::SetNodePoolStatus(SetNodePoolStatus {
        pool: "default".to_owned(),
        resources: Some(Resources { cpu_millis: 4000, ..Resources::default() }),
        nodes: 1,
        conditions: vec![ready()],
    });
    for action in [of_class.clone(), of_pool.clone()] {
        let result = session.direct(action).await;
        assert_eq!(result.status(), DirectiveStatus::Done, "{result:?}");
    }
    let classes = world.all::<EC2NodeClass>();
    let status = classes.get("default").await.unwrap().status.unwrap();
    assert_eq!(status.subnets[0].id, "subnet-1");
    assert_eq!(status.conditions[0].reason, "Ready");
    let pools = world.all::<NodePool>();
    let pool = until(&pools, "default", "the pool's status", |pool: Option<&NodePool>| {
        pool.and_then(|p| p.status.as_ref()).is_some_and(|s| s.nodes == 1)
    });
    let version = pool.await.unwrap().metadata.resource_version;
    session.direct(of_pool).await;
    assert_eq!(pools.get("default").await.unwrap().metadata.resource_version, version);
    world.stop().await;
}

#[tokio::test]
async fn a_pool_that_cannot_be_used_says_so_and_harms_no_other() {
    let mut world = World::start().await;
    pool(&world).await;
    let mut bad = node_pool("bad");
    bad["spec"]["template"]["spec"]["requirements"] = json!([{ "key": "example.com/size", "operator": "Gt", "values": ["99999999999999999999"] }]);
    create(&world.all::<NodePool>(), bad).await;
    let (_, mut session) = world.scheduler.session().await;
    session.until("the good pool", |view| view.pool("default").is_some()).await;
    assert!(session.view.pool("bad").is_none());
    let pools = world.all::<NodePool>();
    let invalid = |wanted: &'static str| {
        move |pool: Option<&NodePool>| {
            let status = pool.and_then(|pool| pool.status.as_ref());
            status.is_some_and(|status| {
                status.conditions.iter().any(|c| {
                    c.type_ == "ValidationSucceeded"
                        && c.status == wanted
                        && (wanted == "True" || c.message.contains("example.com/size"))
                })
            })
        }
    };
    until(&pools, "bad", "the condition", invalid("False")).await;
    let mended = json!({ "spec": { "template": { "spec": { "requirements": [] } } } });
    patch(&pools, "bad", mended).await;
    session.until("the mended pool", |view| view.pool("bad").is_some()).await;
    until(&pools, "bad", "the condition is gone", invalid("True")).await;
    world.stop().await;
}

#[tokio::test]
async fn events_are_about_what_exists() {
    let mut world = World::start().await;
    pool(&world).await;
    let (_, mut session) = world.scheduler.session().await;
    session.until("the pool", |view| view.pool("default").is_some()).await;
    let publish = |key: &str| {
        Action::PublishEvent(PublishEvent {
            about: Some(ObjectRef { kind: ObjectKind::NodePool.into(), key: key.to_owned() }),
            warning: true,
            reason: "LimitReached".to_owned(),
            message: "raise limits.cpu".to_owned(),
        })
    };
    assert_eq!(session.direct(publish("default")).await.status(), DirectiveStatus::Done);
    assert_eq!(session.direct(publish("none")).await.status(), DirectiveStatus::Refused);
    world.stop().await;
}

#[tokio::test]
async fn an_overlay_is_in_the_view_or_says_why_not() {
    let mut world = World::start().await;
    let overlays = world.all::<NodeOverlay>();
    let overlay = |name: &str, capacity: &str| {
        json!({
            "apiVersion": "karpenter.sh/v1alpha1", "kind": "NodeOverlay", "metadata": { "name": name },
            "spec": { "requirements": [], "price": "0.05", "capacity": { "example.com/fuse": capacity } },
        })
    };
    create(&overlays, overlay("good", "4")).await;
    create(&overlays, overlay("bad", "-4")).await;
    let (_, mut session) = world.scheduler.session().await;
    let seen = |view: &super::scheduler::View, name: &str| {
        view.objects
            .values()
            .any(|kind| matches!(kind, Kind::NodeOverlay(overlay) if overlay.name == name))
    };
    session.until("the good overlay", |view| seen(view, "good")).await;
    assert!(!seen(&session.view, "bad"));
    until(&overlays, "bad", "what is wrong with it", |overlay: Option<&NodeOverlay>| {
        let status = overlay.and_then(|overlay| overlay.status.as_ref());
        status.is_some_and(|status| {
            let mut conditions = status.conditions.iter();
            conditions.any(|c| c.type_ == "Ready" && c.message.contains("example.com/fuse"))
        })
    })
    .await;
    let about = ObjectRef { kind: ObjectKind::NodeOverlay.into(), key: "good".to_owned() };
    let action = Action::SetConditions(SetConditions {
        about: Some(about.clone()),
        conditions: vec![ready()],
    });
    let result = session.direct(action).await;
    assert_eq!(result.status(), DirectiveStatus::Done, "{result:?}");
    let status = overlays.get("good").await.unwrap().status.unwrap();
    assert_eq!((status.conditions[0].type_.as_str(), status.conditions.len()), ("Ready", 1));
    world.stop().await;
}
