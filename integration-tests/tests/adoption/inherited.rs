//! What Karpenter has left, out of a recording: one object of each kind and an instance's tags and
//! user data, made into as many nodes as are wanted.
//!
//! Invariant: nothing of the recording is changed but names, ids and times.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::core::v1::Node;
use kube::api::{Api, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams};
use kube::{Client, ResourceExt as _, discovery};
use longshore_it::parts::poll;
use longshore_it::stage::{eyes, hands};
use longshore_lab::region::{CLUSTER, Foreign, Offer};
use serde_json::{Value, json};

use super::estate::{self, Estate, NODES};

/// The recording, made by the test that runs the published controller.
const RECORDING: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/tests/adoption/karpenter-v1.14.1.json");

/// Tags that Karpenter writes once the node has joined.
const LATE: [&str; 2] = ["Name", "karpenter.sh/nodeclaim"];

/// What was recorded.
pub struct Recording {
    value: Value,
}

impl Recording {
    /// Reads the recording.
    pub fn read() -> Result<Self> {
        Self::of(Path::new(RECORDING))
    }

    /// Reads one from a file.
    pub fn of(file: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(file).with_context(|| file.display().to_string())?;
        Ok(Self { value: serde_json::from_str(&text)? })
    }

    /// The object of a kind.
    pub fn object(&self, kind: &str) -> Result<Value> {
        let mut objects = self.value["objects"].as_array().into_iter().flatten();
        let found = objects.find(|object| object["kind"] == kind);
        found.cloned().with_context(|| format!("no {kind} was recorded"))
    }

    /// Paths of all fields of all objects, and keys of all tags.
    pub fn shape(&self) -> std::collections::BTreeSet<String> {
        let mut paths = std::collections::BTreeSet::new();
        for object in self.value["objects"].as_array().into_iter().flatten() {
            let kind = object["kind"].as_str().unwrap_or_default();
            walk(object, kind, &mut paths);
        }
        walk(&self.value["tags"], "tags", &mut paths);
        paths
    }

    /// Builds what was recorded, with [`NODES`] nodes.
    pub async fn furnish(&self, estate: &Estate) -> Result<()> {
        let class = self.object("EC2NodeClass")?;
        create(&estate.client, bare(class.clone())).await?;
        let pool = create(&estate.client, bare(self.object("NodePool")?)).await?;
        for index in 0..NODES {
            self.launch(estate, index, &pool.uid().unwrap_or_default()).await?;
        }
        Ok(())
    }

    async fn launch(&self, estate: &Estate, index: usize, pool: &str) -> Result<()> {
        let recorded = self.object("NodeClaim")?;
        let old = recorded["metadata"]["name"].as_str().context("a claim without a name")?;
        let name = format!("general-{index:05x}");
        let id = self.instance(estate, (index, old, &name), &recorded)?;
        let record = estate.region.record(&id).context("no instance")?;
        let (zone, node) = (record.seen.zone.clone(), record.seen.private_dns_name.clone());
        let mut claim = bare(recorded.clone());
        claim["metadata"]["name"] = json!(name);
        claim["metadata"]["ownerReferences"][0]["uid"] = json!(pool);
        claim["status"]["providerID"] = json!(format!("aws:///{zone}/{id}"));
        claim["status"]["nodeName"] = json!(node);
        let claim = create(&estate.client, claim).await?;
        self.label(estate, &node, &claim).await
    }

    /// Launches an instance as Karpenter did.
    fn instance(
        &self,
        estate: &Estate,
        (index, old, name): (usize, &str, &str),
        claim: &Value,
    ) -> Result<String> {
        let label = |key: &str| claim["metadata"]["labels"][key].as_str().unwrap_or_default();
        let tags: BTreeMap<String, String> = serde_json::from_value(self.value["tags"].clone())?;
        let renamed = |value: String| if value == old { name.to_owned() } else { value };
        let zone = label("topology.kubernetes.io/zone");
        let class = self.object("EC2NodeClass")?;
        let mut subnets = class["status"]["subnets"].as_array().into_iter().flatten();
        let subnet = subnets.find(|subnet| subnet["zone"] == zone).context("no subnet")?;
        let groups = class["status"]["securityGroups"].as_array().into_iter().flatten();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let foreign = Foreign {
            offer: Offer::new(label("node.kubernetes.io/instance-type"), zone, true),
            subnet_id: text(&subnet["id"]),
            group_ids: groups.map(|group| text(&group["id"])).collect(),
            image_id: text(&claim["status"]["imageID"]),
            user_data: text(&self.value["userData"]).into_bytes(),
            // Karpenter writes some tags a second apart, so that it may have left some unwritten.
            tags: tags
                .into_iter()
                .filter(|(key, _)| index % 2 == 0 || !LATE.contains(&key.as_str()))
                .map(|(key, value)| (key, renamed(value)))
                .collect(),
        };
        estate.region.launch_foreign(foreign).context("no address is left")
    }

    /// Gives a node that has joined what registration and initialisation give it.
    async fn label(&self, estate: &Estate, node: &str, claim: &DynamicObject) -> Result<()> {
        let recorded = self.object("Node")?;
        let nodes: Api<Node> = Api::all(estate.client.clone());
        let joined = || async { Ok(nodes.get(node).await.map(drop)?) };
        poll::until::<_, anyhow::Error, _, _>("the node joins", estate::LIMIT, joined).await?;
        let mut meta = recorded["metadata"].clone();
        meta["labels"]["kubernetes.io/hostname"] = json!(node);
        meta["ownerReferences"][0]["name"] = json!(claim.name_any());
        meta["ownerReferences"][0]["uid"] = json!(claim.uid());
        let patch = json!({
            "metadata": {
                "labels": meta["labels"], "annotations": meta["annotations"],
                "finalizers": meta["finalizers"], "ownerReferences": meta["ownerReferences"],
            },
            "spec": { "taints": recorded["spec"]["taints"] },
        });
        nodes.patch(node, &PatchParams::default(), &Patch::Merge(&patch)).await?;
        Ok(())
    }
}

/// A node of the first API with three pods: no claim stands for it, and its pool is gone.
pub async fn legacy(estate: &Estate) -> Result<()> {
    let user_data = format!(
        "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec:\n  cluster:\n    name: {CLUSTER}\n    \
         apiServerEndpoint: https://lab\n    certificateAuthority: LS0=\n    cidr: 10.96.0.0/16\n  \
         kubelet:\n    flags: [\"--node-labels=karpenter.sh/provisioner-name=old\"]\n"
    );
    let tags = [
        ("karpenter.sh/provisioner-name", "old"),
        ("karpenter.sh/managed-by", CLUSTER),
        ("kubernetes.io/cluster/lab", "owned"),
    ];
    let foreign = Foreign {
        offer: Offer::new("m5.large", "us-east-1a", false),
        subnet_id: "subnet-000000000000000a0".to_owned(),
        group_ids: vec!["sg-00000000000000001".to_owned()],
        image_id: "ami-legacy".to_owned(),
        user_data: user_data.into_bytes(),
        tags: tags.map(|(key, value)| (key.to_owned(), value.to_owned())).into(),
    };
    estate.region.launch_foreign(foreign).context("no address is left")?;
    let mut old = estate::workload("old", 3);
    let pod = &mut old["spec"]["template"]["spec"];
    pod["nodeSelector"] = json!({ "karpenter.sh/provisioner-name": "old" });
    hands::apply(&estate.client, &[old]).await?;
    let client = estate.client.clone();
    poll::until("the old node's pods run", estate::LIMIT, || async {
        let sight = eyes::look(&client, "default", "app=old").await?;
        ensure!(sight.running == 3, "{sight:?}");
        anyhow::Ok(())
    })
    .await
}

/// The object as somebody may create it.
fn bare(mut object: Value) -> Value {
    if let Some(meta) = object["metadata"].as_object_mut() {
        for field in ["uid", "resourceVersion", "generation", "creationTimestamp", "managedFields"]
        {
            meta.remove(field);
        }
        meta.remove("generateName");
    }
    object
}

/// Creates an object, and then gives it its status.
async fn create(client: &Client, value: Value) -> Result<DynamicObject> {
    let object: DynamicObject = serde_json::from_value(value.clone())?;
    let types = object.types.clone().context("an object without a kind")?;
    let kind = GroupVersionKind::try_from(&types)?;
    let (resource, _) = discovery::pinned_kind(client, &kind).await?;
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
    let created = api.create(&PostParams::default(), &object).await;
    let created = created.with_context(|| format!("cannot create {}", object.name_any()))?;
    let status = json!({ "status": value["status"] });
    let name = created.name_any();
    api.patch_status(&name, &PatchParams::default(), &Patch::Merge(&status)).await?;
    Ok(created)
}

/// Paths of everything in a value; entries of a list share one.
fn walk(value: &Value, path: &str, paths: &mut std::collections::BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            // When a pod last came or went is only there once one has.
            for (key, field) in fields.iter().filter(|(key, _)| *key != "lastPodEventTime") {
                walk(field, &format!("{path}.{key}"), paths);
            }
        }
        Value::Array(items) => {
            items.iter().for_each(|item| walk(item, &format!("{path}[]"), paths))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            paths.insert(path.to_owned());
        }
    }
}
