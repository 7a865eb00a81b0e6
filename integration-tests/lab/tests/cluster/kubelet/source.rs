//! Instances by script.
//!
//! Invariant: each change is announced once.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use longshore_lab::instance::{Instance, InstanceSource, InstanceState};
use tokio::sync::watch;

pub struct Script {
    instances: Mutex<BTreeMap<String, Instance>>,
    changes: watch::Sender<u64>,
}

impl InstanceSource for Script {
    fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    fn instances(&self) -> Vec<Instance> {
        self.instances.lock().unwrap().values().cloned().collect()
    }
}

impl Script {
    pub fn new() -> Arc<Self> {
        Arc::new(Self { instances: Mutex::default(), changes: watch::Sender::new(0) })
    }

    /// Launches a running m5.large; the index makes its id, name and address.
    pub fn launch(&self, index: u8, user_data: &str) {
        let instance = Instance {
            instance_id: format!("i-{index:017x}"),
            instance_type: "m5.large".into(),
            zone: "us-east-1a".into(),
            zone_id: "use1-az1".into(),
            arch: "amd64".into(),
            spot: true,
            state: InstanceState::Running,
            private_dns_name: format!("ip-10-0-0-{index}.ec2.internal"),
            private_ip: format!("10.0.0.{index}"),
            image_id: "ami-1".into(),
            user_data: user_data.as_bytes().to_vec(),
            instance_profile: None,
            tags: BTreeMap::new(),
            cpu_millis: 2_000,
            memory_bytes: 7_577 << 20,
            eni_max_pods: 29,
        };
        self.instances.lock().unwrap().insert(instance.instance_id.clone(), instance);
        self.changes.send_modify(|count| *count += 1);
    }

    pub fn turn(&self, index: u8, state: InstanceState) {
        let id = format!("i-{index:017x}");
        self.instances.lock().unwrap().get_mut(&id).unwrap().state = state;
        self.changes.send_modify(|count| *count += 1);
    }
}

/// User data of a NodeConfig that joins `cluster`.
pub fn node_config(cluster: &str) -> String {
    format!(
        r#"MIME-Version: 1.0
Content-Type: multipart/mixed; boundary="//"

--//
Content-Type: application/node.eks.aws

apiVersion: node.eks.aws/v1alpha1
kind: NodeConfig
spec:
  cluster:
    name: {cluster}
    apiServerEndpoint: https://lab.example
    certificateAuthority: Y2E=
    cidr: 10.100.0.0/16
  kubelet:
    config:
      registerWithTaints:
        - {{ key: karpenter.sh/unregistered, effect: NoExecute }}
    flags:
      - --node-labels="karpenter.sh/nodepool=default"
--//--
"#
    )
}
