//! A node that is no simulation: containerd with runc, kubelet, kube-proxy and a name service, on a
//! machine of its own (`integration-tests/own-machine.sh`), whose end takes its containers along.
//!
//! Invariant: nothing is fetched: images are those that were imported, and names that are not of
//! the cluster are not found.

mod files;

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Node as NodeObject;
use kube::Api;

use self::files::Files;
use super::binary::part_program;
use super::{ControlPlane, Process, poll};
use crate::stage::eyes;
use crate::stage::world::ROOT;

/// Name of the node.
pub const NAME: &str = "real";
/// The image of what holds a pod's namespaces, and does nothing else.
pub const PAUSE: &str = "images.test/pause:1";
/// Within this containerd answers and kubelet's node is Ready (10 s on a quiet machine).
const READY_LIMIT: Duration = Duration::from_secs(180);

/// The machine that this process runs on, where it is one of its own.
#[derive(Clone, Debug)]
pub struct Machine {
    /// Its address, which containers reach too.
    pub address: Ipv4Addr,
    /// Folder in its memory.
    pub dir: PathBuf,
}

impl Machine {
    /// The machine of this process.
    ///
    /// # Errors
    /// When it is not one of its own.
    #[expect(clippy::disallowed_methods, reason = "a machine says in its environment what it is")]
    pub fn own() -> Result<Self> {
        let way_out = "start this by integration-tests/own-machine.sh, as `make install-test` does";
        let address = std::env::var("LONGSHORE_MACHINE_ADDRESS").context(way_out)?;
        let dir = std::env::var("LONGSHORE_MACHINE_DIR").context(way_out)?;
        Ok(Self { address: address.parse()?, dir: dir.into() })
    }
}

/// A running node. Fields are in the order in which they have to end.
pub struct Node {
    _proxy: Process,
    kubelet: Process,
    _names: Process,
    _containerd: Process,
    files: Files,
}

impl Node {
    /// Starts a node with these labels (`KEY=VALUE,…`) and waits until it is Ready. It takes pods
    /// that tolerate `CriticalAddonsOnly`; they can have the images that are imported.
    ///
    /// # Errors
    /// When a part is not installed, ends, or is not ready in time.
    pub async fn start(machine: &Machine, plane: &ControlPlane, labels: &str) -> Result<Self> {
        let files = Files::write(machine, &plane.kubeconfig_path())?;
        let dir = files.logs();
        let containerd = Process::start("containerd", files.containerd()?, dir)?;
        let names = Process::start("coredns", files.coredns()?, dir)?;
        let pause = pack(&part_program("pause", "pause")?, "pause", "1", &machine.dir)?;
        let import = || async { import(&files, &pause) };
        poll::until("containerd takes images", READY_LIMIT, import).await?;
        let kubelet = Process::start("kubelet", files.kubelet(labels)?, dir)?;
        let proxy = Process::start("kube-proxy", files.kube_proxy()?, dir)?;
        let mut node =
            Self { _proxy: proxy, kubelet, _names: names, _containerd: containerd, files };
        node.ready(plane).await?;
        Ok(node)
    }

    /// The start of a command that takes an image in from an OCI archive, whose path comes last;
    /// `--base-name` says what it is called before its version.
    ///
    /// # Errors
    /// When containerd is not installed.
    pub fn import_command(&self) -> Result<String> {
        Ok(self.files.import()?.join(" "))
    }

    /// Folder of the logs of its programs, and of its pods under `pods`.
    #[must_use]
    pub fn logs(&self) -> &Path {
        self.files.logs()
    }

    async fn ready(&mut self, plane: &ControlPlane) -> Result<()> {
        let nodes: Api<NodeObject> = Api::all(plane.client());
        poll::until("the node is Ready", READY_LIMIT, || {
            let alive = self.kubelet.ensure_running();
            let nodes = nodes.clone();
            async move {
                if alive.is_err() {
                    return Ok(alive);
                }
                ensure!(eyes::is_ready(&nodes.get(NAME).await?), "it is not");
                Ok(Ok(()))
            }
        })
        .await?
    }
}

/// Packs a program of this machine's platform as the releases' images are, without authorities and
/// bill of materials; returns the archive, in `out`.
///
/// # Errors
/// When the packer refuses.
pub fn pack(program: &Path, name: &str, version: &str, out: &Path) -> Result<PathBuf> {
    let arch = if cfg!(target_arch = "aarch64") { "arm64" } else { "amd64" };
    let nothing = out.join("nothing");
    std::fs::create_dir_all(out)?;
    std::fs::write(&nothing, "")?;
    let mut command = Command::new(Path::new(ROOT).join("deploy/images/oci.py"));
    command.args(["--name", name, "--version", version, "--revision", "none", "--epoch", "1"]);
    command.arg("--binary").arg(format!("{arch}={}", program.display()));
    command.arg("--roots").arg(&nothing).arg("--sbom").arg(&nothing).arg("--out").arg(out);
    let output = command.output().context("python3 packs images")?;
    ensure!(output.status.success(), "oci.py: {}", String::from_utf8_lossy(&output.stderr));
    Ok(out.join(format!("{name}.oci.tar")))
}

fn import(files: &Files, pause: &Path) -> Result<()> {
    let words = files.import()?;
    let (program, args) = words.split_first().context("no command")?;
    let mut command = Command::new(program);
    command.args(args).args(["--base-name", PAUSE.trim_end_matches(":1")]).arg(pause);
    let output = command.output()?;
    let error = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{}: {}", words.join(" "), error.trim());
    Ok(())
}
