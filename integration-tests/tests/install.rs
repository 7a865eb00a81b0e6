//! The chart, as it is released, on a node that is no simulation: from an empty cluster to nodes
//! and back to nothing, as docs/install.md says it.
//!
//! Invariant: what a user types goes through a shell, and into the transcript; tests do with their
//! own hands only what AWS and a cluster's workloads would do.

mod books;
mod clients;
mod guide;
mod shell;
mod site;
mod starts;

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use guide::Guide;
use site::{CLUSTER, NEXT, REGION, Site};

/// What a new user may need from an empty cluster to the first node, where the images are there.
const COMMANDS_MAX: usize = 4;
const FIRST_NODE_LIMIT: Duration = Duration::from_secs(600);
/// Longest from a program's start to serving.
const START_LIMIT: Duration = Duration::from_secs(1);
/// Launches that an upgrade and a rollback happen among.
const LAUNCHES: u32 = 200;
/// Settings of split mode beside those that it has in common with the other.
const SPLIT: &str = "mode=split,actuator.etcd.secret=etcd-client,actuator.etcd.certificate=true";

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs images, and a machine of its own: make install-test"]
async fn one_release_is_installed_upgraded_rolled_back_split_and_removed() -> Result<()> {
    let site = Site::start().await?;
    let begun = Instant::now();
    let mut guide = Guide::read(&site)?;
    guide.follow("1. Images", &site)?;
    guide.commands = 0;
    guide.follow("2. Rights in AWS", &site)?;
    site.give_rights()?;
    guide.follow("3. Longshore", &site)?;
    guide.follow("4. A pool", &site)?;
    let first = books::first_node(&site, begun).await?;
    site.note(&format!(
        "{} commands and {:.0} s from an empty cluster to the first node",
        guide.commands,
        first.as_secs_f64()
    ))?;
    ensure!(guide.commands <= COMMANDS_MAX && first < FIRST_NODE_LIMIT, "that is too much");
    site.ready("kube-system")?;
    books::workload_runs(&site, "inflate", 10).await?;
    site.looks(&["kubectl get pods -A -o wide", "kubectl get nodepools,nodeclaims,nodes"])?;
    site.looks(&[&format!("longshore doctor --cluster-name {CLUSTER} --region {REGION} || true")])?;

    starts::within(&site, "kube-system", "longshore", START_LIMIT)?;

    upgraded_and_rolled_back(&site).await?;
    clients::are_answered(&site).await?;
    guide.follow("Upgrade, rollback, removal: kubectl apply", &site)?;
    books::workload_runs(&site, "inflate", 10).await?;

    site.shell.run(&format!(
        "helm upgrade longshore deploy/chart --namespace kube-system --reuse-values --wait \
         --set {SPLIT},settings.region={REGION} --set-string settings.accountId={} \
         --set 'actuator.etcdEndpoints={{{}}}'",
        longshore_lab::region::ACCOUNT,
        site.etcd()
    ))?;
    site.ready("kube-system")?;
    books::scaled(&site, "inflate", 14).await?;
    books::rotated(&site).await?;
    books::scaled(&site, "inflate", 10).await?;

    let nodes = books::nodes(&site).await?;
    site.shell.run("helm uninstall longshore --namespace kube-system --wait")?;
    books::balanced(&site).await?;
    ensure!(books::nodes(&site).await? == nodes, "nodes went with the release");
    site.shell.run("kubectl delete nodepools --all --wait=false")?;
    split_from_nothing(&site).await
}

/// Another version comes, and goes again, while nodes are being launched.
async fn upgraded_and_rolled_back(site: &Site) -> Result<()> {
    books::crowd(site).await?;
    books::scale(site, "crowd", LAUNCHES)?;
    books::launching(site, 20).await?;
    site.shell.run(&format!(
        "helm upgrade longshore longshore-{NEXT}.tgz --namespace kube-system --reuse-values --wait"
    ))?;
    books::workload_runs(site, "crowd", LAUNCHES as usize).await?;
    books::balanced(site).await?;
    books::scale(site, "crowd", 2 * LAUNCHES)?;
    books::launching(site, LAUNCHES as usize + 20).await?;
    site.shell.run("helm rollback longshore --namespace kube-system --wait")?;
    books::workload_runs(site, "crowd", 2 * LAUNCHES as usize).await?;
    books::balanced(site).await?;
    site.shell.run("helm history longshore --namespace kube-system")?;
    site.shell.run("kubectl delete deployment crowd; kubectl delete nodepool crowd")?;
    books::gone(site, "crowd").await
}

/// What the guide says of split mode, where nothing is left of the other but pools that end.
async fn split_from_nothing(site: &Site) -> Result<()> {
    site.shell.run("kubectl create namespace longshore")?;
    site.etcd_secret("longshore")?;
    let mut guide = Guide::read(site)?;
    guide.follow("Split mode: helm install", site)?;
    site.ready("longshore")?;
    books::gone(site, "default").await?;
    site.shell.run("kubectl delete deployment inflate")?;
    site.shell.run("kubectl apply -f deploy/examples/w1-fixed")?;
    books::workload_runs(site, "inflate", 10).await?;
    site.looks(&["kubectl get pods -n longshore -o wide", "kubectl get nodepools,nodeclaims"])?;
    for program in ["longshore-watcher", "longshore-scheduler", "longshore-actuator"] {
        starts::within(site, "longshore", program, START_LIMIT)?;
    }
    site.shell.run("kubectl delete nodepools --all --wait=false")?;
    books::gone(site, "default").await?;
    books::balanced(site).await?;
    site.shell.run("helm uninstall longshore --namespace longshore --wait")?;
    site.shell.run("kubectl delete -f deploy/crds")?;
    Ok(())
}
