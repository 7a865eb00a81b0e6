//! A cluster with one real node, a region that sells simulated ones, and a user's shell.
//!
//! Invariant: nothing is fetched. Where a user would speak with a registry, with AWS, or with a
//! builder of images, a script of `integration-tests/stand-ins` does what comes of it here.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use longshore_it::parts::binary::part_program;
use longshore_it::parts::node::{self, Machine, Node};
use longshore_it::parts::{ControlPlane, ControlPlaneOptions, Process, ports};
use longshore_it::stage::world::ROOT;
use longshore_lab::kubelet::{KubeletConfig, Kubelets};
use longshore_lab::region::{CONTROLLER_KEY, CONTROLLER_ROLE, Region, RegionHandle, RoleConfig};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};

use super::shell::Shell;
use crate::walkthrough::scene;

/// As in the examples.
pub const CLUSTER: &str = "w1";
pub const REGION: &str = "ap-northeast-2";
const NODE_ROLE: &str = "KarpenterNodeRole-w1";
const QUEUE: &str = "Karpenter-w1-SpotInterruptionQueue";
/// The version that comes after this one: the same programs.
pub const NEXT: &str = "0.2.0";
/// Longest for anything here.
pub const LIMIT: Duration = Duration::from_secs(300);
/// How long instances boot: long enough for something to happen meanwhile.
const BOOT_MS: (u32, u32) = (5_000, 15_000);
const PROGRAMS: [&str; 4] =
    ["longshore", "longshore-watcher", "longshore-scheduler", "longshore-actuator"];

/// Fields are in the order in which they have to end.
pub struct Site {
    /// The user's.
    pub shell: Shell,
    /// The region.
    pub region: Arc<RegionHandle>,
    _kubelets: Kubelets,
    _node: Node,
    /// The cluster.
    pub plane: ControlPlane,
    etcd: String,
    _ledger: Process,
    role: RoleConfig,
}

impl Site {
    /// Starts all of it; nothing of ours is installed.
    pub async fn start() -> Result<Self> {
        let machine = Machine::own()?;
        let dir = target().join("install-test");
        // What an earlier run has left.
        let _ = std::fs::remove_dir_all(&dir);
        std::fs::create_dir_all(&dir)?;
        let options =
            ControlPlaneOptions { address: machine.address, ..ControlPlaneOptions::default() };
        let plane = ControlPlane::start(options).await?;
        let labels =
            format!("topology.kubernetes.io/region={REGION},topology.kubernetes.io/zone={REGION}a");
        let node = Node::start(&machine, &plane, &labels).await?;
        let (region, role) = region(&machine).await?;
        let kubelets = KubeletConfig::new(CLUSTER, REGION);
        let kubelets = Kubelets::start(plane.client(), Arc::clone(&region) as _, kubelets);
        let (etcd, ledger) = ledger(&machine, &dir)?;
        let stand_ins = Path::new(ROOT).join("integration-tests/stand-ins").canonicalize()?;
        let programs = [stand_ins, built(), part_program("kubernetes", "")?];
        let mut shell = Shell::new(&dir, &programs)?;
        shell.set("KUBECONFIG", plane.kubeconfig_path().display());
        shell.set("AWS_ENDPOINT_URL", region.endpoint_url());
        shell.set("AWS_ACCESS_KEY_ID", CONTROLLER_KEY);
        shell.set("AWS_SECRET_ACCESS_KEY", "lab");
        for (name, value) in surroundings(&dir, &node, &region)? {
            shell.set(name, value);
        }
        let site = Self {
            shell,
            region,
            _kubelets: kubelets,
            _node: node,
            plane,
            etcd,
            _ledger: ledger,
            role,
        };
        site.release()?;
        site.etcd_secret("kube-system")?;
        Ok(site)
    }

    /// URL of the etcd that actuators keep their ledger in.
    pub fn etcd(&self) -> &str {
        &self.etcd
    }

    /// Writes something about the run into the transcript.
    pub fn note(&self, text: &str) -> Result<()> {
        self.shell.write(&format!("\n# {text}\n"))
    }

    /// Shows what a user would look at.
    pub fn looks(&self, lines: &[&str]) -> Result<()> {
        lines.iter().try_for_each(|line| self.shell.run(line).map(drop))
    }

    /// Puts the policies in force that the user has created.
    pub fn give_rights(&self) -> Result<()> {
        let policies = std::fs::read_to_string(self.shell.dir().join("policies.json"))?;
        let policies = serde_json::from_str(&policies)?;
        Ok(self.region.put_role(&RoleConfig { policies, ..self.role.clone() })?)
    }

    /// Waits until every pod of the release is Ready.
    pub fn ready(&self, namespace: &str) -> Result<()> {
        self.shell.run(&format!(
            "kubectl rollout status deployments,statefulsets --timeout 180s \
             --selector app.kubernetes.io/name=longshore --namespace {namespace}"
        ))?;
        Ok(())
    }

    /// What actuators know etcd by, for the pods of a namespace.
    pub fn etcd_secret(&self, namespace: &str) -> Result<()> {
        self.shell.run(&format!(
            "kubectl create secret generic etcd-client --namespace {namespace} \
             --from-file ca.crt=etcd/ca.crt --from-file tls.crt=etcd/tls.crt \
             --from-file tls.key=etcd/tls.key"
        ))?;
        Ok(())
    }

    /// The release, unpacked where a user has it, and the one after it.
    fn release(&self) -> Result<()> {
        let root = Path::new(ROOT).canonicalize()?;
        let root = root.display();
        let shell = &self.shell;
        shell.run(&format!("helm package {root}/deploy/chart"))?;
        shell.run(&format!(
            "helm package {root}/deploy/chart --version {NEXT} --app-version {NEXT}"
        ))?;
        shell.run("mkdir deploy && tar -xzf longshore-0.1.0.tgz && mv longshore deploy/chart")?;
        shell.run(&format!("cp -r {root}/deploy/{{crds,examples,iam}} deploy"))?;
        let images = target().join("images-here");
        shell.run(&format!("mkdir target && ln -s {} target/images", images.display()))?;
        for program in PROGRAMS {
            node::pack(&built().join(program), program, NEXT, &shell.dir().join("next"))?;
            shell.run(&format!(
                "skopeo copy --all oci-archive:next/{program}.oci.tar \
                 docker://images.test/{program}:{NEXT}"
            ))?;
            if program != PROGRAMS[0] {
                shell.run(&format!(
                    "skopeo copy --all oci-archive:target/images/{program}.oci.tar \
                     docker://images.test/{program}:0.1.0"
                ))?;
            }
        }
        Ok(())
    }
}

/// Where everything is built.
fn target() -> PathBuf {
    let own = std::env::current_exe().unwrap_or_default();
    own.ancestors().nth(3).unwrap_or(Path::new("target")).to_owned()
}

/// Where the programs are that images have.
fn built() -> PathBuf {
    target().join(format!("{}-unknown-linux-musl/dist", std::env::consts::ARCH))
}

/// The region of the example, whose controller may do nothing yet.
async fn region(machine: &Machine) -> Result<(Arc<RegionHandle>, RoleConfig)> {
    let mut config = scene::region(REGION, CLUSTER)?;
    scene::rename_node_role(&mut config, NODE_ROLE);
    QUEUE.clone_into(&mut config.queues[0].name);
    (config.timing.boot_min_ms, config.timing.boot_max_ms) = BOOT_MS;
    let role = config.roles.iter_mut().find(|role| role.name == CONTROLLER_ROLE);
    let role = role.context("no controller role")?;
    role.policies.clear();
    let role = role.clone();
    let address = SocketAddr::new(IpAddr::V4(machine.address), 0);
    Ok((Arc::new(Region::start_at(config, address).await?), role))
}

/// An etcd that takes nobody without a certificate, and the files that a client needs.
fn ledger(machine: &Machine, dir: &Path) -> Result<(String, Process)> {
    let dir = dir.join("etcd");
    std::fs::create_dir(&dir)?;
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate()?;
    std::fs::write(dir.join("ca.crt"), params.self_signed(&key)?.pem())?;
    let issuer = Issuer::new(params, key);
    for (name, host) in [("server", machine.address.to_string()), ("tls", "client".to_owned())] {
        let key = KeyPair::generate()?;
        let certificate = CertificateParams::new([host])?.signed_by(&key, &issuer)?;
        std::fs::write(dir.join(format!("{name}.crt")), certificate.pem())?;
        std::fs::write(dir.join(format!("{name}.key")), key.serialize_pem())?;
    }
    let url = format!("https://{}:{}", machine.address, ports::free()?);
    let mut command = Command::new(part_program("etcd", "etcd")?);
    command.current_dir(&dir).args(["--data-dir", "data", "--client-cert-auth"]);
    command.args(["--cert-file", "server.crt", "--key-file", "server.key"]);
    command.args(["--trusted-ca-file", "ca.crt", "--unsafe-no-fsync"]);
    command.args(["--listen-client-urls", &url, "--advertise-client-urls", &url]);
    let peer = format!("http://127.0.0.1:{}", ports::free()?);
    command.args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer]);
    command.args(["--initial-cluster", &format!("default={peer}")]);
    Ok((url, Process::start("etcd", command, &dir)?))
}

/// What stand-ins have to know.
fn surroundings(
    dir: &Path,
    node: &Node,
    region: &RegionHandle,
) -> Result<[(&'static str, String); 3]> {
    let value = |name: &str, value: &str| serde_json::json!({ "name": name, "value": value });
    let env = [
        value("AWS_ENDPOINT_URL", &region.endpoint_url()),
        value("AWS_ACCESS_KEY_ID", CONTROLLER_KEY),
        value("AWS_SECRET_ACCESS_KEY", "lab"),
    ];
    let values = dir.join("lab.yaml");
    std::fs::write(&values, serde_json::json!({ "controller": { "env": env } }).to_string())?;
    Ok([
        ("REAL_HELM", part_program("helm", "helm")?.display().to_string()),
        ("LAB_VALUES", values.display().to_string()),
        ("IMPORT_IMAGE", node.import_command()?),
    ])
}
