//! User data as the three images get it.

use super::*;

const NODEADM: &str = r#"MIME-Version: 1.0
Content-Type: multipart/mixed; boundary="//"

--//
Content-Type: text/x-shellscript; charset="us-ascii"

#!/bin/bash
echo /etc/eks/bootstrap.sh is not called here
--//
Content-Type: application/node.eks.aws

apiVersion: node.eks.aws/v1alpha1
kind: NodeConfig
spec:
  kubelet:
    config:
      maxPods: 42
    flags: ["--node-labels=team=a"]
--//
Content-Type: application/node.eks.aws

# Longshore's own part
apiVersion: node.eks.aws/v1alpha1
kind: NodeConfig
spec:
  cluster:
    name: lab
    apiServerEndpoint: https://lab.example
    certificateAuthority: Y2E=
    cidr: 10.100.0.0/16
  kubelet:
    config:
      maxPods: 58
      clusterDNS: [10.100.0.10]
      kubeReserved: { cpu: 100m }
      registerWithTaints:
        - { key: karpenter.sh/unregistered, effect: NoExecute }
        - { key: team, value: a, effect: NoSchedule }
    flags:
      - --node-labels="karpenter.sh/nodepool=default,karpenter.sh/capacity-type=spot"
--//--
"#;

fn taint(key: &str, value: &str, effect: &str) -> Taint {
    Taint { key: key.into(), value: value.into(), effect: effect.into() }
}

#[test]
fn nodeadm_parts_merge_and_the_last_wins() {
    let bootstrap = parse(NODEADM.as_bytes()).unwrap();
    assert_eq!(bootstrap.system, OperatingSystem::AmazonLinux2023);
    assert_eq!(bootstrap.cluster_name, "lab");
    assert_eq!(bootstrap.endpoint, "https://lab.example");
    assert_eq!(bootstrap.max_pods, Some(58));
    assert_eq!(bootstrap.labels["team"], "a");
    assert_eq!(bootstrap.labels["karpenter.sh/nodepool"], "default");
    assert_eq!(bootstrap.labels["karpenter.sh/capacity-type"], "spot");
    assert_eq!(bootstrap.kube_reserved["cpu"], "100m");
    let unregistered = taint("karpenter.sh/unregistered", "", "NoExecute");
    assert_eq!(bootstrap.taints, [unregistered, taint("team", "a", "NoSchedule")]);
}

#[test]
fn nodeadm_demands_what_a_node_cannot_join_without() {
    let without = NODEADM.replace("    cidr: 10.100.0.0/16\n", "");
    assert_eq!(parse(without.as_bytes()), Err(UserDataError::Missing("spec.cluster.cidr")));
    let bare = NODEADM.split("--//\n").nth(3).unwrap().split("\n\n").nth(1).unwrap();
    let bare = bare.trim_end_matches("--//--\n");
    assert_eq!(parse(bare.as_bytes()).unwrap().cluster_name, "lab");
}

#[test]
fn bottlerocket_settings_are_read() {
    let text = r#"
[settings.kubernetes]
api-server = "https://lab.example"
cluster-certificate = "Y2E="
cluster-name = "lab"
max-pods = 29
[settings.kubernetes.node-labels]
"karpenter.sh/nodepool" = "default"
[settings.kubernetes.node-taints]
"karpenter.sh/unregistered" = [":NoExecute"]
team = ["a:NoSchedule", "b:NoExecute"]
[settings.kubernetes.eviction-hard]
"memory.available" = "5%"
"#;
    let bootstrap = parse(text.as_bytes()).unwrap();
    assert_eq!(bootstrap.system, OperatingSystem::Bottlerocket);
    assert_eq!((bootstrap.cluster_name.as_str(), bootstrap.max_pods), ("lab", Some(29)));
    assert_eq!(bootstrap.labels["karpenter.sh/nodepool"], "default");
    assert_eq!(bootstrap.eviction_hard["memory.available"], "5%");
    let expected = [
        taint("karpenter.sh/unregistered", "", "NoExecute"),
        taint("team", "a", "NoSchedule"),
        taint("team", "b", "NoExecute"),
    ];
    assert_eq!(bootstrap.taints, expected);
}

#[test]
fn bootstrap_script_arguments_are_read() {
    let text = r#"MIME-Version: 1.0
Content-Type: multipart/mixed; boundary="//"

--//
Content-Type: text/x-shellscript; charset="us-ascii"

#!/bin/bash -xe
exec > >(tee /var/log/user-data.log) 2>&1
/etc/eks/bootstrap.sh 'lab' \
--apiserver-endpoint 'https://lab.example' \
--b64-cluster-ca 'Y2E=' \
--use-max-pods false \
--kubelet-extra-args '--node-labels="team=a,tier=web" \
  --register-with-taints="team=a:NoSchedule,karpenter.sh/unregistered:NoExecute" \
  --max-pods=17 --eviction-hard="memory.available<200Mi"'
--//--
"#;
    let bootstrap = parse(text.as_bytes()).unwrap();
    assert_eq!(bootstrap.system, OperatingSystem::AmazonLinux2);
    assert_eq!((bootstrap.cluster_name.as_str(), bootstrap.max_pods), ("lab", Some(17)));
    assert_eq!(bootstrap.endpoint, "https://lab.example");
    assert_eq!(
        (bootstrap.labels["team"].as_str(), bootstrap.labels["tier"].as_str()),
        ("a", "web")
    );
    assert_eq!(bootstrap.eviction_hard["memory.available"], "200Mi");
    let expected =
        [taint("team", "a", "NoSchedule"), taint("karpenter.sh/unregistered", "", "NoExecute")];
    assert_eq!(bootstrap.taints, expected);
}

#[test]
fn what_configures_no_node_is_refused() {
    assert_eq!(parse(b""), Err(UserDataError::NoConfiguration));
    assert_eq!(parse(b"#!/bin/sh\necho hello"), Err(UserDataError::NoConfiguration));
    let broken = parse(b"[settings.kubernetes\n").unwrap_err();
    assert!(matches!(broken, UserDataError::Malformed { format: "TOML", .. }), "{broken}");
}
