//! What `deploy/` holds is accepted by a real API server: definitions, examples, and the chart with the
//! values of the walkthroughs.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use longshore_it::parts::control_plane::Controllers;
use longshore_it::parts::{ControlPlane, ControlPlaneOptions, binary};
use longshore_it::stage::hands;
use longshore_it::stage::world::ROOT;

/// Values of the walkthroughs, and both modes of installation.
const VALUES: [&str; 4] = ["w0-values", "w1-values", "w3-values", "split-values"];
/// Examples, most of them as the walkthroughs apply them.
const EXAMPLES: [&str; 7] = ["w0", "w1", "w1-fixed", "w2", "w2-v1", "w3", "objects"];

fn deploy() -> PathBuf {
    Path::new(ROOT).join("deploy")
}

#[tokio::test(flavor = "multi_thread")]
async fn the_api_server_accepts_definitions_examples_and_charts() -> Result<()> {
    let options = ControlPlaneOptions { scheduler: false, controllers: Controllers::None };
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
