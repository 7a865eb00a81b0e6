//! Everybody dies in the midst of a rollout: whoever starts next goes on with it from what the
//! cluster's objects say.

use anyhow::{Context as _, Result, ensure};
use longshore_it::parts::poll;
use longshore_it::stage::{crowd, eyes, hands};
use longshore_lab::region::RELEASES;
use serde_json::{Value, json};

use super::crowd::{Crowd, LIMIT, supply};

/// Pods, each on a node of its own: enough for a canary and more than one wave after it.
const PODS: u32 = 5;

#[tokio::test]
async fn kill_everybody_in_the_midst_of_a_rollout() -> Result<()> {
    let mut crowd = Crowd::start("rollout", PODS, |_| {}).await?;
    let [old, new] = RELEASES;
    let client = crowd.fleet.client.clone();
    hands::apply(&client, &[crowd::class_of(old.al2023), hasty()]).await?;
    crowd.arrive().await?;
    crowd.settled().await?;
    let claims = eyes::claims(&client).await?;
    let image = claims.first().and_then(eyes::image_of).context("no image")?.to_owned();

    hands::apply(&client, &[crowd::class_of(new.al2023)]).await?;
    for wave in ["canary", "next"] {
        let what = format!("the {wave} nodes are to go");
        let going = poll::until(&what, LIMIT, || async {
            let claims = eyes::claims(&client).await?;
            let left = claims.iter().filter(|it| eyes::image_of(it) == Some(&*image)).count();
            let wanted = wave == "canary" || left < PODS as usize;
            ensure!(wanted && claims.iter().any(eyes::is_going), "{left} are left, none goes");
            Ok::<_, anyhow::Error>(())
        });
        going.await?;
        crowd.fleet.scheduler(0)?.kill()?;
        crowd.fleet.watcher(0)?.kill()?;
        crowd.fleet.actuator(0)?.kill()?;
        crowd.fleet.restart_actuator(0).await?;
        crowd.fleet.restart_scheduler(0).await?;
        crowd.fleet.restart_watcher(0)?;
    }
    let replaced = poll::until("no node has the old image", LIMIT, || async {
        let claims = eyes::claims(&client).await?;
        let left = claims.iter().filter(|it| eyes::image_of(it) == Some(&*image)).count();
        ensure!(left == 0, "{left} have it");
        Ok::<_, anyhow::Error>(())
    });
    replaced.await?;
    crowd.settled_after(2 * PODS as usize).await
}

/// The pool, which looks at its first new node for a moment, and replaces two at a time then.
fn hasty() -> Value {
    let [_, mut pool] = supply();
    pool["metadata"]["annotations"] = json!({ "longshore.dev/canary-wait": "1s" });
    pool["spec"]["disruption"]["budgets"] = json!([{ "nodes": "2" }]);
    pool
}
