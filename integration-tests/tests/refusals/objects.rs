//! The cluster holds objects that its API server lets through and that cannot be used: each says
//! so, and says what mends it.

use anyhow::{Context, Result, ensure};
use longshore_it::stage::hands;
use longshore_lab::region::CLUSTER;
use longshore_watcher::api::{EC2NodeClass, NodePool};
use serde_json::{Value, json};

use super::stage;
use super::stage::{
    condition, condition_says, event, good_pod_runs, mend, pod, pool, runs, says, world,
};

#[tokio::test]
async fn a_pool_that_nothing_satisfies() -> Result<()> {
    let world = world("pool", |_| {}).await?;
    let client = &world.client;
    let bad = [pool("bad", "good", "zz9"), pod("waits", "bad", "1")];
    hands::apply(client, &bad).await?;
    let wanted = ("False", "NoInstanceType");
    let why = condition(client, ("NodePool", "bad"), "Ready", wanted).await?;
    says(&why, &["karpenter.k8s.aws/instance-family In [zz9]", "widen them"])?;
    event(client, "waits", &["NodePool/bad: no instance type has", "widen them"]).await?;
    condition(client, ("NodePool", "good"), "Ready", ("True", "Ready")).await?;
    good_pod_runs(client, "served").await?;
    let mended = pool("bad", "good", "m5");
    mend::<NodePool>(client, "bad", &json!({ "spec": mended["spec"] })).await?;
    runs(client, "waits").await?;
    condition(client, ("NodePool", "bad"), "Ready", ("True", "Ready")).await?;
    Ok(())
}

#[tokio::test]
async fn a_node_class_without_a_subnet() -> Result<()> {
    let world = world("class", |_| {}).await?;
    let client = &world.client;
    let bad = [stage::class("bad", "nowhere"), pool("bad", "bad", "m5"), pod("waits", "bad", "1")];
    hands::apply(client, &bad).await?;
    let wanted = ("False", "SubnetsNotFound");
    let why = condition(client, ("EC2NodeClass", "bad"), "SubnetsReady", wanted).await?;
    let parts = [
        "spec.subnetSelectorTerms: no subnet in us-east-1 has karpenter.sh/discovery=nowhere",
        "karpenter.sh/discovery is lab",
        "aws ec2 create-tags --region us-east-1",
    ];
    says(&why, &parts)?;
    condition(client, ("EC2NodeClass", "bad"), "Ready", wanted).await?;
    for kind in ["NodeClassReady", "Ready"] {
        let wanted = ("False", "NodeClassNotReady");
        condition_says(client, ("NodePool", "bad"), kind, wanted, &["no subnet"]).await?;
    }
    event(client, "waits", &["NodePool/bad: not ready", "no subnet in us-east-1"]).await?;
    good_pod_runs(client, "served").await?;
    let mended = stage::class("bad", CLUSTER);
    mend::<EC2NodeClass>(client, "bad", &json!({ "spec": mended["spec"] })).await?;
    runs(client, "waits").await?;
    condition(client, ("NodePool", "bad"), "NodeClassReady", ("True", "NodeClassReady")).await?;
    Ok(())
}

/// A pool named `name` whose spec has one field more.
fn pool_with(name: &str, field: &str, value: Value) -> Value {
    let mut pool = pool(name, "good", "c5");
    pool["spec"][field] = value;
    pool
}

#[tokio::test]
async fn values_that_the_schema_lets_through() -> Result<()> {
    let world = world("values", |_| {}).await?;
    let client = &world.client;
    let whenever =
        json!({ "budgets": [{ "nodes": "1", "schedule": "a b c d e", "duration": "1h" }] });
    let negative = pool_with("negative", "limits", json!({ "cpu": "-5" }));
    hands::apply(client, &[negative, pool_with("whenever", "disruption", whenever)]).await?;
    let wanted = ("False", "Invalid");
    for kind in ["ValidationSucceeded", "Ready"] {
        let why = condition(client, ("NodePool", "negative"), kind, wanted).await?;
        says(&why, &["NodePool/negative: spec.limits[cpu]: \"-5\" is negative", "zero or more"])?;
    }
    event(client, "negative", &["left out until it is mended", "spec.limits[cpu]"]).await?;
    let why = condition(client, ("NodePool", "whenever"), "Ready", wanted).await?;
    says(&why, &["budgets.schedule", "\"a b c d e\" is not a cron expression", "0 9 * * mon-fri"])?;
    event(client, "whenever", &["budgets.schedule", "0 9 * * mon-fri"]).await?;
    good_pod_runs(client, "served").await?;
    let mended = json!({ "spec": { "limits": { "cpu": "5" } } });
    mend::<NodePool>(client, "negative", &mended).await?;
    condition(client, ("NodePool", "negative"), "Ready", ("True", "Ready")).await?;
    mend::<NodePool>(client, "whenever", &json!({ "spec": { "disruption": null } })).await?;
    condition(client, ("NodePool", "whenever"), "Ready", ("True", "Ready")).await?;
    Ok(())
}

#[tokio::test]
async fn pods_with_odd_requests() -> Result<()> {
    let world = world("pods", |_| {}).await?;
    let client = &world.client;
    let mut strange = pod("strange", "good", "1");
    strange["spec"]["containers"][0]["resources"]["requests"]["example.com/foo"] = "1".into();
    hands::apply(client, &[pod("huge", "good", "1e9"), strange]).await?;
    let parts = ["NodePool/good: requests cpu", "the largest matching type", "request less"];
    event(client, "huge", &parts).await?;
    event(client, "strange", &["requests example.com/foo 1", "has 0 left"]).await?;
    // A fraction of a byte and exponents are odd, and fine.
    let mut fine = pod("fine", "good", "5e-1");
    fine["spec"]["containers"][0]["resources"]["requests"]["memory"] = "100m".into();
    hands::apply(client, &[fine]).await?;
    runs(client, "fine").await?;
    let log = world.watcher.log()?;
    let left = log.lines().find(|line| line.contains("left out"));
    ensure!(left.is_none(), "a pod was left out: {left:?}");
    log.lines().next().context("the watcher says nothing")?;
    Ok(())
}
