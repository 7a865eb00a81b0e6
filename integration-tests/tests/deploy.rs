//! What `deploy/` holds is accepted by a real API server: definitions, examples, and the chart with
//! the values of the walkthroughs.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use longshore_it::parts::control_plane::Controllers;
use longshore_it::parts::{ControlPlane, ControlPlaneOptions, binary, poll};
use longshore_it::stage::hands;
use longshore_it::stage::world::ROOT;

/// How long a policy may take to come into force.
const POLICY_WITHIN: Duration = Duration::from_secs(30);
/// Values of the walkthroughs, and both modes of installation.
const VALUES: [&str; 4] = ["w0-values", "w1-values", "w3-values", "split-values"];
/// Examples, most of them as the walkthroughs apply them.
const EXAMPLES: [&str; 8] = ["w0", "w1", "w1-fixed", "w2", "w2-v1", "w3", "objects", "devices"];

fn deploy() -> PathBuf {
    Path::new(ROOT).join("deploy")
}

#[tokio::test(flavor = "multi_thread")]
async fn the_api_server_accepts_definitions_examples_and_charts() -> Result<()> {
    let options = ControlPlaneOptions {
        scheduler: false,
        controllers: Controllers::None,
        ..ControlPlaneOptions::default()
    };
    let plane = ControlPlane::start(options).await?;
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
    let options = ControlPlaneOptions {
        scheduler: false,
        controllers: Controllers::None,
        ..ControlPlaneOptions::default()
    };
    let plane = ControlPlane::start(options).await?;
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
