//! The rights that the chart gives the watcher, each made use of, and none missing, on a cluster
//! that has an object of every kind.

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{DeleteParams, DynamicObject, ListParams};
use kube::{Api, ResourceExt as _};
use longshore_it::parts::poll;
use longshore_it::stage::rights::Asked;
use longshore_it::stage::world::WorldConfig;
use longshore_it::stage::{eyes, hands};
use serde_json::{Value, json};

use super::scene::{self, LIMIT, Scene};

const CLUSTER: &str = "objects";
const REGION: &str = "us-east-1";
/// Pods of the example's workload in the end.
const MORE: u32 = 40;
/// Used when somebody else has changed an object in between, which this test does not bring about
/// (`watcher/src/patch.rs` has tests of it).
const IN_RESERVE: [&str; 3] = [
    "get karpenter.k8s.aws/awsnodetemplates",
    "get karpenter.sh/nodepools",
    "get karpenter.sh/provisioners",
];
/// Most lists of what is watched: at the start, and where a watch had to begin anew.
const LISTS_MAX: usize = 8;
/// Writes to a claim and its node, from its creation on.
const WRITES_OF_A_NODE: [&str; 4] = [
    "create karpenter.sh/nodeclaims",
    "patch core/nodes",
    "patch karpenter.sh/nodeclaims",
    "patch karpenter.sh/nodeclaims/status",
];
/// Most of these for each node: about eight have been seen.
const WRITES_MAX: usize = 12;
/// Karpenter's finalizer of node classes.
const FINALIZER: &str = "karpenter.k8s.aws/termination";

#[tokio::test]
async fn each_right_of_the_chart_is_used_and_none_is_missing() -> Result<()> {
    let mut config = scene::region(REGION, CLUSTER)?;
    scene::rename_node_role(&mut config, "KarpenterNodeRole-objects");
    let surge = |world: &mut WorldConfig| world.watcher_flags.push("--surge".to_owned());
    let mut scene = Scene::start(config, CLUSTER, surge).await?;
    let example = scene.example("objects")?;
    scene.apply(&example).await?;
    scene.apply(&everything()).await?;
    // The Job's pod may have run its course before somebody looks.
    let running = |sight: &eyes::Sight| {
        sight.running + sight.succeeded == 4 && sight.running >= 3 && sight.pending == 0
    };
    scene.until("pods of all owners run", "rights=owners", running).await?;
    end_of_a_class(&scene).await?;
    end_of_a_node(&scene).await?;
    move_pods(&scene, "replica-set").await?;
    move_pods(&scene, "deployment").await?;
    nominated(&mut scene).await?;
    let rights = scene.world.rights.clone().context("the control plane is not real")?;
    let used = poll::until("each right is used", LIMIT, || async {
        let asked = rights.asked()?;
        let mut unused = rights.unused(&asked);
        unused.retain(|right| !is_in_reserve(right, &asked));
        ensure!(unused.is_empty(), "not used: {unused:#?}");
        Ok::<_, anyhow::Error>(asked)
    });
    let asked = used.await.map_err(|error| error.context(scene.logs()))?;
    asked.used.iter().for_each(|(right, count)| println!("right: {right} {count}"));
    ensure!(asked.denied.is_empty(), "denied: {:#?}", asked.denied);
    println!("load: {}", load(&asked)?);
    Ok(())
}

/// True for what is not made use of here. Lists come in pages only where they are not streamed,
/// which `watcher/src/observe/feed.rs` has tests of.
fn is_in_reserve(right: &str, asked: &Asked) -> bool {
    let listed = right.strip_prefix("list ");
    IN_RESERVE.contains(&right) || listed.is_some_and(|it| asked.streamed.contains_key(it))
}

/// What is watched is not listed again and again, and a node takes a few writes over its life.
fn load(asked: &Asked) -> Result<String> {
    let count = |right: &str| {
        let found = asked.used.iter().find(|(used, _)| used.to_string() == right);
        found.map_or(0, |(_, count)| *count)
    };
    for right in asked.used.keys().map(ToString::to_string) {
        let Some(watched) = right.strip_prefix("watch ") else { continue };
        let streamed = asked.streamed.get(watched).copied().unwrap_or_default();
        let lists = streamed + count(&format!("list {watched}"));
        ensure!(lists <= LISTS_MAX, "{watched} are watched, and were listed {lists} times");
    }
    let claims = count("create karpenter.sh/nodeclaims");
    let writes: usize = WRITES_OF_A_NODE.iter().map(|right| count(right)).sum();
    let text = format!("{writes} writes to {claims} claims and their nodes");
    ensure!(writes <= claims * WRITES_MAX, "{text}");
    Ok(text)
}

/// What the example does not have: owners of all kinds, buffers that refer to each, legacy objects,
/// a class that is to end.
fn everything() -> Vec<Value> {
    let selector = json!([{ "tags": { "karpenter.sh/discovery": CLUSTER } }]);
    let class = json!({
        "apiVersion": "karpenter.k8s.aws/v1",
        "kind": "EC2NodeClass",
        "metadata": { "name": "ends", "finalizers": [FINALIZER] },
        "spec": {
            "amiSelectorTerms": [{ "alias": "al2023@latest" }],
            "subnetSelectorTerms": selector,
            "securityGroupSelectorTerms": selector,
            "role": "KarpenterNodeRole-objects",
        },
    });
    let template = json!({
        "apiVersion": "karpenter.k8s.aws/v1alpha1",
        "kind": "AWSNodeTemplate",
        "metadata": { "name": "legacy" },
        "spec": {
            "subnetSelector": { "karpenter.sh/discovery": CLUSTER },
            "securityGroupSelector": { "karpenter.sh/discovery": CLUSTER },
        },
    });
    let provisioner = json!({
        "apiVersion": "karpenter.sh/v1alpha5",
        "kind": "Provisioner",
        "metadata": { "name": "legacy" },
        "spec": {
            "providerRef": { "name": "legacy" },
            "taints": [{ "key": "example.com/legacy", "effect": "NoSchedule" }],
        },
    });
    [
        vec![class, template, provisioner, short()],
        surroundings(),
        owners(),
        buffers(),
        vec![stuck()],
    ]
    .concat()
}

/// A pool whose nodes end within five seconds.
fn short() -> Value {
    json!({
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": { "name": "short" },
        "spec": { "template": {
            "metadata": { "labels": { "example.com/pool": "short" } },
            "spec": {
                "nodeClassRef": { "group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default" },
                "terminationGracePeriod": "5s",
                "taints": [{ "key": "example.com/short", "effect": "NoSchedule" }],
                "requirements": [{
                    "key": "karpenter.k8s.aws/instance-category", "operator": "In", "values": ["c", "m"],
                }],
            },
        }},
    })
}

/// What workloads are created within, and a template of pods.
fn surroundings() -> Vec<Value> {
    let quota = json!({
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": { "name": "plenty", "namespace": "default" },
        "spec": { "hard": { "pods": "1000" } },
    });
    let pod_template = json!({
        "apiVersion": "v1",
        "kind": "PodTemplate",
        "metadata": { "name": "spare", "namespace": "default" },
        "template": template_of("spare", "250m"),
    });
    vec![quota, pod_template]
}

fn template_of(app: &str, cpu: &str) -> Value {
    json!({
        "metadata": { "labels": { "app": app, "rights": "owners" } },
        "spec": { "containers": [{
            "name": "pause",
            "image": "registry.k8s.io/pause:3.10",
            "resources": { "requests": { "cpu": cpu } },
        }]},
    })
}

/// A workload of each kind, whose pods differ: which node is whose matters.
fn owners() -> Vec<Value> {
    let workload = |kind: &str, name: &str, cpu: &str| {
        let mut template = template_of(name, cpu);
        if kind == "Job" {
            template["spec"]["restartPolicy"] = json!("Never");
        }
        if kind == "Deployment" {
            template["metadata"]["annotations"] = json!({ "longshore.dev/surge": "true" });
        }
        let (group, spec) = match kind {
            "Job" => ("batch/v1", json!({ "template": template })),
            _ => (
                "apps/v1",
                json!({
                    "replicas": 1,
                    "serviceName": (kind == "StatefulSet").then_some(name),
                    "selector": { "matchLabels": { "app": name } },
                    "template": template,
                }),
            ),
        };
        json!({
            "apiVersion": group,
            "kind": kind,
            "metadata": { "name": name, "namespace": "default" },
            "spec": spec,
        })
    };
    vec![
        workload("Deployment", "deployment", "3"),
        workload("StatefulSet", "stateful-set", "1500m"),
        workload("ReplicaSet", "replica-set", "700m"),
        workload("Job", "job", "300m"),
    ]
}

/// Room for one pod more of each kind of workload, and of a template.
fn buffers() -> Vec<Value> {
    let buffer = |name: &str, spec: Value| {
        json!({
            "apiVersion": "autoscaling.x-k8s.io/v1beta1",
            "kind": "CapacityBuffer",
            "metadata": { "name": name, "namespace": "default" },
            "spec": spec,
        })
    };
    let of = |kind: &str, name: &str| {
        let scalable = json!({ "apiGroup": "apps", "kind": kind, "name": name });
        buffer(name, json!({ "scalableRef": scalable, "percentage": 100 }))
    };
    let spare = json!({ "podTemplateRef": { "name": "spare" }, "replicas": 1 });
    vec![of("StatefulSet", "stateful-set"), of("ReplicaSet", "replica-set"), buffer("spare", spare)]
}

/// A pod that its budget keeps, on a node whose end has a limit.
fn stuck() -> Value {
    let mut pod = template_of("stuck", "500m");
    pod["metadata"]["name"] = json!("stuck");
    pod["metadata"]["labels"] = json!({ "app": "stuck" });
    pod["spec"]["tolerations"] = json!([{ "key": "example.com/short", "operator": "Exists" }]);
    pod["spec"]["nodeSelector"] = json!({ "example.com/pool": "short" });
    pod["apiVersion"] = json!("v1");
    pod["kind"] = json!("Pod");
    pod
}

/// A class without claims ends.
async fn end_of_a_class(scene: &Scene) -> Result<()> {
    let client = scene.world.client.clone();
    let delete = || async {
        let classes = eyes::list(&client, "karpenter.k8s.aws", "v1", "EC2NodeClass").await?;
        let found = classes.into_iter().find(|class| class.name_any() == "ends");
        let Some(found) = found else { return Ok(()) };
        if found.metadata.deletion_timestamp.is_none() {
            remove(scene, "karpenter.k8s.aws/v1", "EC2NodeClass", "ends").await?;
        }
        anyhow::bail!("it is there: {:?}", found.metadata.finalizers)
    };
    let gone = poll::until("the class is gone", LIMIT, delete).await;
    gone.map_err(|error| error.context(scene.logs()))
}

/// A node ends whose pod nobody may evict: within the grace of its pool.
async fn end_of_a_node(scene: &Scene) -> Result<()> {
    let client = scene.world.client.clone();
    let budget = json!({
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": { "name": "stuck", "namespace": "default" },
        "spec": { "maxUnavailable": 0, "selector": { "matchLabels": { "app": "stuck" } } },
    });
    scene.apply(&[budget]).await?;
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    let node = poll::until("the pod runs", LIMIT, || async {
        let pod = pods.get("stuck").await?;
        let phase = pod.status.and_then(|status| status.phase).unwrap_or_default();
        ensure!(phase == "Running", "it is {phase}");
        pod.spec.and_then(|spec| spec.node_name).context("no node")
    });
    let node = node.await.map_err(|error| error.context(scene.logs()))?;
    end(scene, &node).await
}

/// A node ends whose pods may be evicted.
async fn move_pods(scene: &Scene, app: &str) -> Result<()> {
    let pods: Api<Pod> = Api::default_namespaced(scene.world.client.clone());
    let all = pods.list(&ListParams::default().labels(&format!("app={app}"))).await?;
    let node = all.items.into_iter().find_map(|pod| pod.spec?.node_name);
    end(scene, &node.context("it runs nowhere")?).await
}

/// Deletes the claim of a node, and waits until the node is gone.
async fn end(scene: &Scene, node: &str) -> Result<()> {
    let client = scene.world.client.clone();
    let claims = eyes::claims(&client).await?;
    let nodes: Api<Node> = Api::all(client);
    let provider = nodes.get(node).await?.spec.and_then(|spec| spec.provider_id);
    let claim = claims
        .iter()
        .find(|claim| claim.data["status"]["providerID"].as_str().map(str::to_owned) == provider);
    let claim = claim.context("the node has no claim")?.name_any();
    remove(scene, "karpenter.sh/v1", "NodeClaim", &claim).await?;
    let gone = poll::until("the node is gone", LIMIT, || async {
        ensure!(nodes.get_opt(node).await?.is_none(), "it is there");
        Ok::<_, anyhow::Error>(())
    });
    gone.await.map_err(|error| error.context(scene.logs()))
}

/// Another watcher takes over, which nominates pods in place of pinning them.
async fn nominated(scene: &mut Scene) -> Result<()> {
    let world = &mut scene.world;
    world.watcher.kill()?;
    world.surroundings.watcher_flags.extend(["--placement", "nominate"].map(str::to_owned));
    let scheduler = world.scheduler.url();
    world.watcher = world.surroundings.start_watcher("watcher-nominates", &scheduler)?;
    // Of two shapes, so that it matters who goes where.
    hands::scale(&world.client, "default", "deployment", 4).await?;
    hands::scale(&world.client, "default", "inflate", MORE).await?;
    let wanted = usize::try_from(MORE)?;
    let running = |sight: &eyes::Sight| sight.running == wanted && sight.pending == 0;
    scene.until("more pods run", "app=inflate", running).await?;
    // Their nodes are of no more use, and their claims are deleted.
    hands::scale(&scene.world.client, "default", "inflate", 0).await
}

/// Deletes an object of the cluster.
async fn remove(scene: &Scene, version: &str, kind: &str, name: &str) -> Result<()> {
    let (group, version) = version.split_once('/').context("no group")?;
    let kind = kube::api::GroupVersionKind::gvk(group, version, kind);
    let client = scene.world.client.clone();
    let (resource, _) = kube::discovery::pinned_kind(&client, &kind).await?;
    let api: Api<DynamicObject> = Api::all_with(client, &resource);
    api.delete(name, &DeleteParams::default()).await?;
    Ok(())
}
