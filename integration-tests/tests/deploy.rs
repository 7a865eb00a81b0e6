//! What `deploy/` holds is accepted by a real API server: definitions, examples, and the chart with
//! the values of the walkthroughs.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Patch, PatchParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use longshore_it::parts::control_plane::Controllers;
use longshore_it::parts::{ControlPlane, ControlPlaneOptions, binary, poll};
use longshore_it::stage::hands;
use longshore_it::stage::world::ROOT;

/// How long a policy may take to come into force.
const POLICY_WITHIN: Duration = Duration::from_secs(30);
/// Values of the walkthroughs, and both modes of installation.
const VALUES: [&str; 6] =
    ["w0-values", "w1-values", "w3-values", "split-values", "planning-values", "remote-values"];
/// Examples, most of them as the walkthroughs apply them.
const EXAMPLES: [&str; 8] = ["w0", "w1", "w1-fixed", "w2", "w2-v1", "w3", "objects", "devices"];

fn deploy() -> PathBuf {
    Path::new(ROOT).join("deploy")
}

/// A control plane that only stores and admits.
async fn bare() -> Result<ControlPlane> {
    let options = ControlPlaneOptions {
        scheduler: false,
        controllers: Controllers::None,
        ..ControlPlaneOptions::default()
    };
    ControlPlane::start(options).await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_api_server_accepts_definitions_examples_and_charts() -> Result<()> {
    let plane = bare().await?;
    let client = plane.client();
    hands::apply(&client, &hands::manifests(&deploy().join("crds"))?).await?;
    hands::established(&client).await?;
    for example in EXAMPLES {
        let dir = deploy().join("examples").join(example);
        hands::apply(&client, &hands::manifests(&dir)?).await.with_context(|| example)?;
        // The next example uses the same names.
        kubectl(&plane.kubeconfig_path(), &["delete", "--wait=false", "-f"], &dir)?;
    }
    for values in VALUES {
        let rendered = template(values)?;
        let file = plane.log_dir().join(format!("{values}.yaml"));
        std::fs::write(&file, rendered)?;
        let dry_run = ["apply", "--dry-run=server", "--namespace", "kube-system", "-f"];
        kubectl(&plane.kubeconfig_path(), &dry_run, &file).with_context(|| values)?;
    }
    Ok(())
}

/// The service account of the watcher under the release's name.
const WATCHER: &str = "--as=system:serviceaccount:kube-system:longshore";

#[tokio::test(flavor = "multi_thread")]
async fn the_watcher_may_pin_pods_and_change_nothing_else_of_them() -> Result<()> {
    let plane = bare().await?;
    let (kubeconfig, dir) = (plane.kubeconfig_path(), plane.log_dir());
    let pod = serde_json::json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "web", "namespace": "default", "labels": {"app": "web"}},
        "spec": {"containers": [{"name": "web", "image": "web:1"}]},
    });
    let (chart, manifest) = (dir.join("chart.yaml"), dir.join("pod.json"));
    std::fs::write(&chart, template("w0-values")?)?;
    std::fs::write(&manifest, pod.to_string())?;
    kubectl(&kubeconfig, &["apply", "--namespace", "kube-system", "-f"], &chart)?;
    kubectl(&kubeconfig, &["create", "-f"], &manifest)?;
    let patch = |who: &str, patch: &str| {
        let json = ["patch", who, "--type=json", "--patch", patch, "-f"];
        kubectl(&kubeconfig, &json, &manifest)
    };
    let toleration = |key: &str, value: &str| {
        let toleration = serde_json::json!({"key": key, "operator": "Equal", "value": value});
        format!(r#"[{{"op": "add", "path": "/spec/tolerations/-", "value": {toleration}}}]"#)
    };
    let image = r#"[{"op": "replace", "path": "/spec/containers/0/image", "value": "web:2"}]"#;
    let label = |team: &str| {
        format!(r#"[{{"op": "add", "path": "/metadata/labels/team", "value": "{team}"}}]"#)
    };
    // Policies come into force some time after they were created; what changes nothing is not
    // refused.
    let mut attempt = 0;
    poll::until("the policy is in force", POLICY_WITHIN, || {
        attempt += 1;
        let changed = patch(WATCHER, &label(&attempt.to_string()));
        async { changed.err().map(drop).context("a label was changed") }
    })
    .await?;
    let label = label("a");
    let everything = toleration("example.com/dedicated", "yes");
    for refused in [image, &label, &everything, &toleration("karpenter.sh/unregistered", "")] {
        let error = patch(WATCHER, refused).err().map(|error| error.to_string());
        let said = error.is_some_and(|error| error.contains("Longshore may"));
        ensure!(said, "not refused by the policy: {refused}");
    }
    patch(WATCHER, &toleration("karpenter.sh/unregistered", "node-1"))?;
    // Nobody else is confined.
    patch("--v=0", image)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_watcher_may_change_and_delete_what_is_its_business_and_nothing_else() -> Result<()> {
    let plane = bare().await?;
    let (kubeconfig, dir) = (plane.kubeconfig_path(), plane.log_dir());
    let client = plane.client();
    hands::apply(&client, &hands::manifests(&deploy().join("crds"))?).await?;
    hands::established(&client).await?;
    let chart = dir.join("chart.yaml");
    std::fs::write(&chart, template("w0-values")?)?;
    kubectl(&kubeconfig, &["apply", "--namespace", "kube-system", "-f"], &chart)?;
    hands::apply(&client, &confined()).await?;
    let ask = |words: &[&str]| kubectl_as(&kubeconfig, words);
    let patch = |what: &str, patch: &str| ask(&["patch", what, "--type=merge", "--patch", patch]);
    let pods: Api<Pod> = Api::default_namespaced(watcher(&kubeconfig).await?);
    let status = async |status: serde_json::Value| {
        let patch = Patch::Merge(serde_json::json!({ "status": status }));
        pods.patch_status("web", &PatchParams::default(), &patch).await?;
        anyhow::Ok(())
    };
    // Policies come into force some time after they were created.
    let mut attempt = 0;
    poll::until("the policies are in force", POLICY_WITHIN, || {
        attempt += 1;
        let changed =
            patch("node/other", &format!(r#"{{"metadata":{{"labels":{{"a":"{attempt}"}}}}}}"#));
        async { changed.err().map(drop).context("a node of others was changed") }
    })
    .await?;
    let label = r#"{"metadata":{"labels":{"team":"a"}}}"#;
    let refused = [
        patch("node/other", label),
        ask(&["delete", "node/other"]),
        ask(&["delete", "pod/web"]),
        status(serde_json::json!({ "phase": "Failed" })).await,
        status(serde_json::json!({ "message": "gone" })).await,
        patch("ec2nodeclass/default", r#"{"spec":{"role":"another"}}"#),
    ];
    for (number, answer) in refused.into_iter().enumerate() {
        let error = answer.err().map(|error| format!("{error:#}")).unwrap_or_default();
        ensure!(error.contains("Longshore "), "{number} is not refused by a policy: {error}");
    }
    patch("node/own", label)?;
    status(serde_json::json!({ "nominatedNodeName": "own" })).await?;
    patch("ec2nodeclass/default", r#"{"metadata":{"finalizers":null}}"#)?;
    ask(&["delete", "node/own"])?;
    Ok(())
}

/// A client with the watcher's rights.
async fn watcher(kubeconfig: &Path) -> Result<Client> {
    let mut known = Kubeconfig::read_from(kubeconfig)?;
    for user in known.auth_infos.iter_mut().filter_map(|user| user.auth_info.as_mut()) {
        user.impersonate = WATCHER.strip_prefix("--as=").map(str::to_owned);
    }
    let config = Config::from_custom_kubeconfig(known, &KubeConfigOptions::default()).await?;
    Ok(Client::try_from(config)?)
}

/// A node of ours, one of others, a pod without a node, a class.
fn confined() -> Vec<serde_json::Value> {
    let selector = serde_json::json!([{ "tags": { "a": "b" } }]);
    let node = |name: &str, labels: serde_json::Value| {
        serde_json::json!({
            "apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels},
        })
    };
    vec![
        node("own", serde_json::json!({"karpenter.sh/nodepool": "default"})),
        node("other", serde_json::json!({"a": "b"})),
        serde_json::json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "web", "namespace": "default"},
            "spec": {"containers": [{"name": "web", "image": "web:1"}]},
        }),
        serde_json::json!({
            "apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass",
            "metadata": {"name": "default", "finalizers": ["karpenter.k8s.aws/termination"]},
            "spec": {
                "role": "role", "amiSelectorTerms": [{"alias": "al2023@latest"}],
                "subnetSelectorTerms": selector, "securityGroupSelectorTerms": selector,
            },
        }),
    ]
}

/// Benchmarks and tests start programs with the word to their allocator that the chart has.
#[test]
fn programs_are_measured_as_the_chart_starts_them() -> Result<()> {
    const WORD: &str = "MIMALLOC_PURGE_DELAY";
    let mut programs = Vec::new();
    for values in ["w0-values", "split-values"] {
        let rendered = String::from_utf8(template(values)?)?;
        let objects: Vec<serde_json::Value> = serde_saphyr::from_multiple(&rendered)?;
        for object in
            objects.iter().filter(|it| it["kind"] == "Deployment" || it["kind"] == "StatefulSet")
        {
            let container = &object["spec"]["template"]["spec"]["containers"][0];
            let program = container["command"][0].as_str().context("no program")?;
            let mut set = container["env"].as_array().into_iter().flatten();
            let word = set.find(|env| env["name"] == WORD).and_then(|env| env["value"].as_str());
            let command = binary::workspace_command(program)?;
            let mut ours = command.get_envs().filter(|(name, _)| *name == WORD);
            let ours = ours.next().and_then(|(_, value)| value?.to_str());
            assert_eq!(ours, word, "{program}");
            programs.push(program.to_owned());
        }
    }
    programs.sort();
    let all = ["longshore", "longshore-actuator", "longshore-scheduler", "longshore-watcher"];
    assert_eq!(programs, all);
    Ok(())
}

/// Runs kubectl as the watcher.
fn kubectl_as(kubeconfig: &Path, arguments: &[&str]) -> Result<()> {
    let (last, words) = arguments.split_last().context("no arguments")?;
    let words = [&[WATCHER], words].concat();
    kubectl(kubeconfig, &words, Path::new(last))
}

/// The chart with a set of values, as `helm template` prints it.
fn template(values: &str) -> Result<Vec<u8>> {
    let file = deploy().join("chart/ci").join(format!("{values}.yaml"));
    let output = Command::new(binary::part_program("helm", "helm")?)
        .args(["template", "longshore", "--namespace", "kube-system", "--values"])
        .arg(file)
        .arg(deploy().join("chart"))
        .output()?;
    let error = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "helm template with {values}: {error}");
    Ok(output.stdout)
}

/// Runs kubectl on a file or folder, as a user would.
fn kubectl(kubeconfig: &Path, arguments: &[&str], target: &Path) -> Result<()> {
    let output = Command::new(binary::part_program("kubernetes", "kubectl")?)
        .args(arguments)
        .arg(target)
        .arg("--kubeconfig")
        .arg(kubeconfig)
        .output()?;
    let error = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "kubectl {arguments:?}: {error}");
    Ok(())
}
