//! What has come of it: pods, nodes, instances, certificates, and how long they took.
//!
//! Invariant: read from the cluster and the region, never from a release's own words, but for the
//! times in logs.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt as _;
use kube::api::{Api, DeleteParams};
use longshore_it::demo::audit;
use longshore_it::parts::node::PAUSE;
use longshore_it::parts::poll;
use longshore_it::stage::{agreement, eyes, hands};
use longshore_lab::instance::InstanceSource as _;
use serde_json::json;

use super::site::{LIMIT, Site};

/// What a process logs that has taken over a certificate.
const CHANGED: &str = "certificate changed";

/// Waits for a Ready node of a pool; returns the time since `begun`.
pub async fn first_node(site: &Site, begun: Instant) -> Result<Duration> {
    poll::until("the first node is Ready", LIMIT, || async {
        let nodes = eyes::pool_nodes(&site.plane.client()).await?;
        ensure!(nodes.iter().any(eyes::is_ready), "{} nodes, none Ready", nodes.len());
        Ok::<_, anyhow::Error>(begun.elapsed())
    })
    .await
}

/// Waits until so many pods of a workload run, and no other is there.
pub async fn workload_runs(site: &Site, name: &str, pods: usize) -> Result<()> {
    let (begun, selector) = (Instant::now(), format!("app={name}"));
    poll::until(&format!("{pods} pods of {name} run"), LIMIT, || async {
        let sight = eyes::look(&site.plane.client(), "default", &selector).await?;
        ensure!(sight.running == pods && sight.pending == 0, "{} run", sight.running);
        Ok::<_, anyhow::Error>(())
    })
    .await?;
    site.note(&format!("{pods} pods of {name} run, {:.1} s later", begun.elapsed().as_secs_f64()))
}

/// Gives a workload another size.
pub fn scale(site: &Site, name: &str, pods: u32) -> Result<()> {
    site.shell.run(&format!("kubectl scale deployment {name} --replicas {pods}"))?;
    Ok(())
}

/// The same, and waits until it has it.
pub async fn scaled(site: &Site, name: &str, pods: u32) -> Result<()> {
    scale(site, name, pods)?;
    workload_runs(site, name, pods as usize).await
}

/// A workload, not there yet, of which each pod takes a node of its own.
pub async fn crowd(site: &Site) -> Result<()> {
    let labels = json!({ "app": "crowd" });
    let apart = json!({
        "topologyKey": "kubernetes.io/hostname",
        "labelSelector": { "matchLabels": labels },
    });
    let pool = json!({
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": { "name": "crowd" },
        "spec": { "template": { "spec": {
            "nodeClassRef": {
                "group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default",
            },
            "requirements": [
                { "key": "karpenter.k8s.aws/instance-cpu", "operator": "In", "values": ["2"] },
            ],
        } } },
    });
    let workload = json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": { "name": "crowd", "namespace": "default" },
        "spec": {
            "replicas": 0,
            "selector": { "matchLabels": labels },
            "template": {
                "metadata": { "labels": labels },
                "spec": {
                    "nodeSelector": { eyes::NODE_POOL: "crowd" },
                    "affinity": { "podAntiAffinity": {
                        "requiredDuringSchedulingIgnoredDuringExecution": [apart],
                    } },
                    "containers": [{
                        "name": "pause",
                        "image": PAUSE,
                        "resources": { "requests": { "cpu": "250m", "memory": "512Mi" } },
                    }],
                },
            },
        },
    });
    hands::apply(&site.plane.client(), &[pool, workload]).await
}

/// Waits until so many instances of the crowd have been launched.
pub async fn launching(site: &Site, instances: usize) -> Result<()> {
    poll::until(&format!("{instances} instances of the crowd"), LIMIT, || async {
        let all = site.region.instances();
        let launched = all.iter().filter(|instance| is_of("crowd", &instance.tags)).count();
        ensure!(launched >= instances, "{launched}");
        Ok::<_, anyhow::Error>(())
    })
    .await
}

/// Instances, launches and claims agree: nothing twice, nothing left over.
pub async fn balanced(site: &Site) -> Result<()> {
    let claims = eyes::claims(&site.plane.client()).await?;
    let claimed: BTreeSet<String> = agreement::provider_ids(&claims).collect();
    let books = audit::books(&site.region.instances(), &claimed);
    site.note(&format!("{} claims; {books:?}", claims.len()))?;
    ensure!(books.duplicates == 0 && books.leaks == 0, "{books:?}");
    Ok(())
}

/// Names of the pools' nodes.
pub async fn nodes(site: &Site) -> Result<BTreeSet<String>> {
    let nodes = eyes::pool_nodes(&site.plane.client()).await?;
    Ok(nodes.iter().map(|node| node.name_any()).collect())
}

/// True for the labels of an object, or the tags of an instance, of a pool.
fn is_of(pool: &str, labels: &BTreeMap<String, String>) -> bool {
    labels.get(eyes::NODE_POOL).is_some_and(|name| name == pool)
}

/// Waits until a pool has neither claims nor nodes.
pub async fn gone(site: &Site, pool: &str) -> Result<()> {
    poll::until(&format!("what pool {pool} had is gone"), LIMIT, || async {
        let client = site.plane.client();
        let claims = eyes::claims(&client).await?;
        let claims = claims.iter().filter(|claim| is_of(pool, claim.labels())).count();
        let nodes = eyes::pool_nodes(&client).await?;
        let nodes = nodes.iter().filter(|node| is_of(pool, node.labels())).count();
        ensure!(claims + nodes == 0, "{claims} claims and {nodes} nodes");
        Ok::<_, anyhow::Error>(())
    })
    .await
}

/// Has every certificate made anew, and waits until all processes have theirs.
pub async fn rotated(site: &Site) -> Result<()> {
    let secrets: Api<Secret> = Api::namespaced(site.plane.client(), "kube-system");
    for component in ["watcher", "scheduler", "actuator"] {
        let secret = format!("longshore-{component}-tls");
        secrets.delete(&secret, &DeleteParams::default()).await?;
    }
    let renewal = "kubectl create job renewal --from cronjob/longshore-certificates";
    site.shell.run(&format!("{renewal} --namespace kube-system"))?;
    let wait = "kubectl wait job/renewal --for condition=Complete --timeout 120s";
    site.shell.run(&format!("{wait} --namespace kube-system"))?;
    poll::until("all processes have another certificate", LIMIT, || async {
        for component in ["watcher", "scheduler", "actuator"] {
            let logs = logs(site, "kube-system", component)?;
            let changed = logs.iter().filter(|log| log.contains(CHANGED)).count();
            ensure!(changed == logs.len(), "{component}: {changed} of {}", logs.len());
        }
        Ok::<_, anyhow::Error>(())
    })
    .await?;
    site.note("every process has taken over its new certificate")
}

/// The logs of a component's pods.
fn logs(site: &Site, namespace: &str, component: &str) -> Result<Vec<String>> {
    let pods = format!(
        "kubectl get pods --namespace {namespace} --output name --selector \
         app.kubernetes.io/component={component}"
    );
    let pods = site.shell.quiet(&pods)?;
    let log = |pod: &str| site.shell.quiet(&format!("kubectl logs --namespace {namespace} {pod}"));
    pods.lines().map(log).collect()
}
