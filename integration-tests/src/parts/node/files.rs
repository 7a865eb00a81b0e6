//! The configuration of a node's programs, and their command lines.
//!
//! Invariant: everything that a program writes goes into the machine's folder, and ends with it.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;
use serde_json::json;

use super::{Machine, NAME, PAUSE};
use crate::parts::binary::part_program;

/// It copies: what is mounted over others may be refused where the machine is a container itself.
const SNAPSHOTTER: &str = "native";
/// Addresses that pods get, within the network of the machine's bridge.
const POD_ADDRESSES: [u8; 2] = [16, 250];

/// The files, in a folder.
pub(super) struct Files {
    address: Ipv4Addr,
    dir: PathBuf,
    kubeconfig: PathBuf,
}

impl Files {
    /// Writes all of them.
    pub(super) fn write(machine: &Machine, kubeconfig: &Path) -> Result<Self> {
        let Machine { address, dir } = machine.clone();
        let files = Self { address, dir, kubeconfig: kubeconfig.to_owned() };
        for folder in ["network", "pods"] {
            std::fs::create_dir_all(files.dir.join(folder))?;
        }
        let put = |name: &str, content: String| std::fs::write(files.dir.join(name), content);
        put("containerd.toml", files.containerd_config()?)?;
        put("network/pods.conflist", files.network().to_string())?;
        put("kubelet.json", files.kubelet_config().to_string())?;
        put("kube-proxy.json", files.kube_proxy_config().to_string())?;
        put("Corefile", files.names())?;
        Ok(files)
    }

    pub(super) fn logs(&self) -> &Path {
        &self.dir
    }

    /// The start of a command that takes an image in, whose archive comes last.
    pub(super) fn import(&self) -> Result<Vec<String>> {
        let (ctr, socket) = (part_program("containerd", "ctr")?, self.socket());
        let [ctr, socket] = [&ctr, &socket].map(|path| path.display().to_string());
        // The namespace of the images that kubelet sees.
        let rest = ["--namespace", "k8s.io", "images", "import", "--snapshotter", SNAPSHOTTER];
        let rest = rest.map(str::to_owned);
        Ok([&[ctr, "--address".to_owned(), socket][..], &rest].concat())
    }

    fn socket(&self) -> PathBuf {
        self.dir.join("containerd.sock")
    }

    pub(super) fn containerd(&self) -> Result<Command> {
        let mut command = Command::new(part_program("containerd", "containerd")?);
        command.arg("--config").arg(self.dir.join("containerd.toml"));
        Ok(command)
    }

    pub(super) fn kubelet(&self, labels: &str) -> Result<Command> {
        let mut command = Command::new(part_program("kubelet", "kubelet")?);
        command.arg("--config").arg(self.dir.join("kubelet.json"));
        command.arg("--kubeconfig").arg(&self.kubeconfig);
        command.arg("--root-dir").arg(self.dir.join("kubelet"));
        command.arg("--cert-dir").arg(self.dir.join("kubelet-keys"));
        command.arg(format!("--hostname-override={NAME}"));
        command.arg(format!("--node-ip={}", self.address));
        command.arg(format!("--node-labels={labels}"));
        Ok(command)
    }

    pub(super) fn kube_proxy(&self) -> Result<Command> {
        let mut command = Command::new(part_program("kubelet", "kube-proxy")?);
        command.arg("--config").arg(self.dir.join("kube-proxy.json"));
        command.arg(format!("--hostname-override={NAME}"));
        Ok(command)
    }

    pub(super) fn coredns(&self) -> Result<Command> {
        let mut command = Command::new(part_program("coredns", "coredns")?);
        command.arg("-conf").arg(self.dir.join("Corefile"));
        Ok(command)
    }

    fn containerd_config(&self) -> Result<String> {
        let dir = self.dir.display();
        let socket = self.socket();
        let cni = part_program("containerd", "cni")?;
        let runc = part_program("containerd", "runc")?;
        Ok(format!(
            r#"version = 2
root = "{dir}/containerd"
state = "{dir}/containerd-state"
[grpc]
address = "{socket}"
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "{PAUSE}"
# runc cannot lower the score where root is not that of the whole machine.
restrict_oom_score_adj = true
[plugins."io.containerd.grpc.v1.cri".containerd]
snapshotter = "{SNAPSHOTTER}"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
BinaryName = "{runc}"
[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "{cni}"
conf_dir = "{dir}/network"
"#,
            socket = socket.display(),
            cni = cni.display(),
            runc = runc.display(),
        ))
    }

    fn network(&self) -> serde_json::Value {
        let [a, b, c, _] = self.address.octets();
        let [first, last] = POD_ADDRESSES.map(|host| Ipv4Addr::new(a, b, c, host));
        let range = json!({
            "subnet": format!("{a}.{b}.{c}.0/24"),
            "rangeStart": first,
            "rangeEnd": last,
            "gateway": self.address,
        });
        json!({
            "cniVersion": "0.4.0",
            "name": "pods",
            "plugins": [{
                "type": "bridge",
                "bridge": "pods",
                "isGateway": true,
                "hairpinMode": true,
                "ipam": {
                    "type": "host-local",
                    "dataDir": self.dir.join("addresses"),
                    "ranges": [[range]],
                    "routes": [{ "dst": "0.0.0.0/0" }],
                },
            }],
        })
    }

    fn kubelet_config(&self) -> serde_json::Value {
        json!({
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "address": self.address,
            "authentication": { "anonymous": { "enabled": true }, "webhook": { "enabled": false } },
            "authorization": { "mode": "AlwaysAllow" },
            "cgroupDriver": "cgroupfs",
            "clusterDNS": [self.address],
            "clusterDomain": "cluster.local",
            "containerRuntimeEndpoint": format!("unix://{}", self.socket().display()),
            "enforceNodeAllocatable": [],
            "evictionHard": {},
            // Build machines have both versions mounted.
            "failCgroupV1": false,
            "failSwapOn": false,
            "imageGCHighThresholdPercent": 100,
            "podLogsDir": self.dir.join("pods"),
            // As on nodes of a group that is for what a cluster itself needs.
            "registerWithTaints": [
                { "key": "CriticalAddonsOnly", "value": "true", "effect": "NoSchedule" },
            ],
            "resolvConf": "",
        })
    }

    fn kube_proxy_config(&self) -> serde_json::Value {
        json!({
            "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
            "kind": "KubeProxyConfiguration",
            "clientConnection": { "kubeconfig": self.kubeconfig },
            "conntrack": { "maxPerCore": 0, "min": 0 },
            "healthzBindAddress": "",
            "metricsBindAddress": "",
            "mode": "nftables",
        })
    }

    fn names(&self) -> String {
        let kubeconfig = self.kubeconfig.display();
        format!(
            ".:53 {{\n    bind {}\n    errors\n    kubernetes cluster.local in-addr.arpa {{\n        \
             kubeconfig {kubeconfig}\n    }}\n}}\n",
            self.address
        )
    }
}
