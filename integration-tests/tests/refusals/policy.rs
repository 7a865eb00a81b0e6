//! The actuator's policy: what a cluster may not have it does not get, whoever asks for it, and all
//! of it is on record.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, ensure};
use longshore_it::parts::{binary, poll};
use longshore_it::stage::world::World;
use longshore_it::stage::{eyes, hands};
use longshore_lab::instance::InstanceSource as _;
use longshore_lab::region::{Foreign, Offer, RegionConfig};
use longshore_proto::capacity::v1::capacity_service_client::CapacityServiceClient;
use longshore_proto::capacity::v1::{ApplyPlanRequest, Fence, Refusal};
use longshore_proto::types::v1::Termination;
use longshore_runtime::client::channel_to;
use longshore_runtime::identity::Identity;
use longshore_runtime::tls::Server;

use super::stage::{
    LIMIT, REGION, condition_says, dir, event, good_pod_runs, pod, runs, says, world,
};

/// Enough for a small node, and not for a large one.
const SMALL: &str = "clusters: { lab: { families: [c5], dollarsPerHour: 1 } }";
/// None of the region's subnets.
const ELSEWHERE: &str = "clusters: { lab: { subnets: [subnet-of-others] } }";
/// One end in a minute.
const SLOW: &str = "clusters: { lab: { terminationsPerMinute: 1 } }";

/// A world whose actuator has a policy.
async fn guarded(name: &str, text: &str) -> Result<(World, PathBuf)> {
    let file = dir(&format!("{name}-file"))?.join("policy.yaml");
    std::fs::write(&file, text)?;
    let flags = vec!["--policy".to_owned(), file.display().to_string()];
    Ok((world(name, |config| config.actuator_flags = flags).await?, file))
}

/// What `longshore audit` prints, asked by the client of tests.
fn audit(world: &World, flags: &[&str]) -> Result<String> {
    let mut command = Command::new(binary::workspace_program("longshore")?);
    let who: Identity = "longshore://client/test".parse()?;
    command.args(["audit", "--actuator", &world.actuator.url()]).args(flags);
    let output = command.args(world.keys.flags(&who)?).env("NO_COLOR", "1").output()?;
    let written = String::from_utf8([output.stdout, output.stderr].concat())?;
    ensure!(output.status.success(), "{written}");
    Ok(written)
}

#[expect(clippy::print_stdout, reason = "the record is a result of the test")]
fn show(record: &str) {
    println!("{record}");
}

/// Waits until the audit record has a line with all of `parts`.
async fn on_record(world: &World, flags: &[&str], parts: &[&str]) -> Result<String> {
    poll::until(&format!("a line of the record has {parts:?}"), LIMIT, || async {
        let text = audit(world, flags)?;
        let line = text.lines().find(|line| parts.iter().all(|part| line.contains(part)));
        line.map(str::to_owned).with_context(|| text.clone())
    })
    .await
}

#[tokio::test]
async fn what_a_cluster_may_not_have_it_does_not_get_and_is_told_why() -> Result<()> {
    let (world, file) = guarded("policy", SMALL).await?;
    let client = &world.client;
    good_pod_runs(client, "small").await?;
    hands::apply(client, &[pod("large", "good", "60")]).await?;
    let allowed = "and its policy allows $1.0000";
    event(client, "large", &[allowed]).await?;
    let failed = on_record(&world, &["--refused"], &["failed", "DENIED_BY_POLICY"]).await?;
    says(&failed, &["lab", "longshore://scheduler at 127.0.0.1", allowed])?;
    let bought = on_record(&world, &["--cluster", "lab"], &["launched", "c5."]).await?;
    says(&bought, &["longshore://scheduler at 127.0.0.1", "us-east-1"])?;
    ensure!(world.region.instances().len() == 1, "{:?}", world.region.instances());
    write(&file, ELSEWHERE)?;
    let denied = ("False", "DeniedByPolicy");
    let parts = ["is not for cluster lab, whose policy allows subnet-of-others"];
    condition_says(client, ("EC2NodeClass", "good"), "SubnetsReady", denied, &parts).await?;
    show(&audit(&world, &[])?);
    Ok(())
}

/// Replaces a file at once, as a mounted ConfigMap is.
fn write(file: &Path, text: &str) -> Result<()> {
    let other = file.with_extension("new");
    std::fs::write(&other, text)?;
    Ok(std::fs::rename(other, file)?)
}

/// An instance of another cluster's.
fn of_others() -> Result<Foreign> {
    let subnet = RegionConfig::simple(REGION)?.subnets.swap_remove(0);
    let tags = [("eks:eks-cluster-name", "others"), ("karpenter.sh/nodepool", "default")];
    Ok(Foreign {
        offer: Offer::new("c5.large", &subnet.zone, false),
        subnet_id: subnet.id,
        group_ids: Vec::new(),
        image_id: "ami-0123456789abcdef0".to_owned(),
        user_data: Vec::new(),
        tags: tags.map(|(key, value)| (key.to_owned(), value.to_owned())).into(),
    })
}

/// A plan of somebody who has taken a scheduler over, a little ahead of the real one.
async fn hostile(
    world: &World,
    cluster: &str,
    plan_seq: u64,
    ends: &[(&str, &str)],
) -> Result<Vec<Refusal>> {
    let platform = world.keys.platform(&Identity::Scheduler)?;
    let channel = channel_to(Server::Actuator, &world.actuator.url(), &platform)?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis();
    let session_epoch = u64::try_from(now)? + 600_000;
    let termination = |(instance_id, claim): &(&str, &str)| Termination {
        instance_id: (*instance_id).to_owned(),
        claim: (*claim).to_owned(),
        ..Termination::default()
    };
    let plan = ApplyPlanRequest {
        plan_id: "hostile".to_owned(),
        fence: Some(Fence { cluster_id: cluster.to_owned(), session_epoch, plan_seq }),
        expire_time: Some(prost_types::Timestamp { seconds: i64::MAX / 2000, nanos: 0 }),
        launches: Vec::new(),
        terminations: ends.iter().map(termination).collect(),
    };
    Ok(CapacityServiceClient::new(channel).apply_plan(plan).await?.into_inner().refusals)
}

#[tokio::test]
async fn a_scheduler_that_is_taken_over_ends_nothing_of_others_and_its_own_slowly() -> Result<()> {
    let (world, _) = guarded("hostile", SLOW).await?;
    good_pod_runs(&world.client, "one").await?;
    hands::apply(&world.client, &[pod("two", "good", "60")]).await?;
    runs(&world.client, "two").await?;
    let claims = eyes::list(&world.client, "karpenter.sh", "v1", "NodeClaim");
    let named = |claim: &kube::api::DynamicObject| {
        let provider = claim.data["status"]["providerID"].as_str().unwrap_or_default();
        let instance = provider.rsplit('/').next().unwrap_or_default().to_owned();
        (instance, claim.metadata.name.clone().unwrap_or_default())
    };
    let own: Vec<(String, String)> = claims.await?.iter().map(named).collect();
    ensure!(own.len() == 2, "{own:?}");
    let ends: Vec<(&str, &str)> = own.iter().map(|(id, name)| (&**id, &**name)).collect();
    let others = world.region.launch_foreign(of_others()?).context("no address is left")?;
    let foreign = hostile(&world, "lab", 1, &[(&others, "of-others")]).await?;
    ensure!(foreign.len() == 1 && foreign[0].id == others, "{foreign:?}");
    let fast = hostile(&world, "lab", 2, &ends).await?;
    ensure!(fast.len() == 1 && fast[0].reason == "FORBIDDEN", "{fast:?}");
    says(&fast[0].message, &["would have 2 terminations within a minute", "its policy allows 1"])?;
    let parts = ["refused", "FORBIDDEN", "longshore://scheduler at 127.0.0.1, plan hostile"];
    on_record(&world, &["--refused"], &parts).await?;
    on_record(&world, &[], &["ended", "plan hostile", "c5."]).await?;
    let unbound = hostile(&world, "unbound", 1, &[]).await.err().context("it was carried out")?;
    says(&format!("{unbound:#}"), &["unbound"])?;
    let parts = ["refused", "FORBIDDEN", "unbound", "plan hostile"];
    on_record(&world, &["--refused", "--cluster", "unbound"], &parts).await?;
    show(&audit(&world, &[])?);
    Ok(())
}
