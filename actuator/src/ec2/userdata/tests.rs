//! Golden user data of each family.

use expect_test::expect;
use longshore_proto::types::v1::NodeClass;

use super::*;

fn cluster() -> ClusterFacts {
    ClusterFacts {
        name: "dev".to_owned(),
        endpoint: "https://dev.eks.amazonaws.com".to_owned(),
        ca_bundle: "Q0E=".to_owned(),
        dns_ip: "10.100.0.10".to_owned(),
        service_cidr: "10.100.0.0/16".to_owned(),
        ..ClusterFacts::default()
    }
}

fn launch() -> Launch {
    let labels = [
        ("karpenter.sh/nodepool", "default"),
        ("team", "a"),
        ("kubernetes.io/arch", "arm64"),
        ("topology.k8s.aws/zone-id", "use1-az1"),
        ("x.node-restriction.kubernetes.io/y", "z"),
    ];
    let taint = |key: &str, value: &str, effect: TaintEffect| Taint {
        key: key.to_owned(),
        value: value.to_owned(),
        effect: effect.into(),
    };
    Launch {
        labels: labels.map(|(key, value)| (key.to_owned(), value.to_owned())).into(),
        taints: vec![taint("dedicated", "a", TaintEffect::NoSchedule)],
        startup_taints: vec![taint("cni", "", TaintEffect::NoExecute)],
        ..Launch::default()
    }
}

fn render(family: AmiFamily, class: &NodeClass) -> Result<String, UserDataError> {
    Boot::new(family, &cluster(), class, &launch()).render()
}

fn class(user_data: &str, kubelet: Kubelet) -> NodeClass {
    NodeClass { user_data: user_data.to_owned(), kubelet: Some(kubelet), ..NodeClass::default() }
}

fn tuned() -> Kubelet {
    Kubelet {
        max_pods: Some(100),
        kube_reserved: [("memory".to_owned(), "300Mi".to_owned())].into(),
        eviction_hard: [("memory.available".to_owned(), "5%".to_owned())].into(),
        ..Kubelet::default()
    }
}

#[test]
fn al2023() {
    let class = class("#!/bin/bash\r\necho hello\r\n", tuned());
    expect![[r#"
        MIME-Version: 1.0
        Content-Type: multipart/mixed; boundary="//"

        --//
        Content-Type: text/x-shellscript; charset="us-ascii"

        #!/bin/bash
        echo hello
        --//
        Content-Type: application/node.eks.aws

        apiVersion: node.eks.aws/v1alpha1
        kind: NodeConfig
        spec:
          cluster:
            name: dev
            apiServerEndpoint: https://dev.eks.amazonaws.com
            certificateAuthority: Q0E=
            cidr: 10.100.0.0/16
          kubelet:
            config:
              clusterDNS:
              - "10.100.0.10"
              evictionHard:
                memory.available: 5%
              kubeReserved:
                memory: 300Mi
              maxPods: 100
              registerWithTaints:
              - effect: NoSchedule
                key: dedicated
                value: a
              - effect: NoExecute
                key: cni
              - effect: NoExecute
                key: karpenter.sh/unregistered
            flags:
            - >-
              --node-labels=karpenter.sh/do-not-sync-taints=true,karpenter.sh/nodepool=default,team=a,topology.k8s.aws/zone-id=use1-az1
        --//--
    "#]]
    .assert_eq(render(AmiFamily::Al2023, &class).unwrap().as_str());
}

#[test]
fn al2023_keeps_the_parts_of_a_document() {
    let custom = "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"B\"\n\n--B\n\
                  Content-Type: text/x-shellscript\n\necho one\n\n--B\n\
                  Content-Type: application/node.eks.aws\n\nkind: NodeConfig\n--B--\n";
    let text = render(AmiFamily::Al2023, &class(custom, Kubelet::default())).unwrap();
    let positions = ["echo one", "kind: NodeConfig\n--//", "registerWithTaints"]
        .map(|part| text.find(part).unwrap_or_else(|| panic!("{part} in {text}")));
    assert!(positions.is_sorted());
    let yaml = render(AmiFamily::Al2023, &class("kind: NodeConfig\n", Kubelet::default()));
    assert_eq!(yaml.unwrap().matches("application/node.eks.aws").count(), 2);
}

#[test]
fn al2() {
    expect![[r#"
        MIME-Version: 1.0
        Content-Type: multipart/mixed; boundary="//"

        --//
        Content-Type: text/x-shellscript; charset="us-ascii"

        #!/bin/bash -xe
        exec > >(tee /var/log/user-data.log|logger -t user-data -s 2>/dev/console) 2>&1
        /etc/eks/bootstrap.sh 'dev' \
        --apiserver-endpoint 'https://dev.eks.amazonaws.com' \
        --b64-cluster-ca 'Q0E=' \
        --dns-cluster-ip '10.100.0.10' \
        --use-max-pods false \
        --kubelet-extra-args '--node-labels="karpenter.sh/do-not-sync-taints=true,karpenter.sh/nodepool=default,team=a,topology.k8s.aws/zone-id=use1-az1" --register-with-taints="dedicated=a:NoSchedule,cni:NoExecute,karpenter.sh/unregistered:NoExecute" --max-pods=100 --kube-reserved="memory=300Mi" --eviction-hard="memory.available<5%"'
        --//--
    "#]].assert_eq(&render(AmiFamily::Al2, &class("", tuned())).unwrap());
}

#[test]
fn bottlerocket() {
    let custom = "[settings.kubernetes]\nallowed-unsafe-sysctls = [\"net.core.somaxconn\"]\n\
                  cluster-name = \"wrong\"\n[settings.host-containers.admin]\nenabled = true\n";
    let class = NodeClass { instance_store_policy: "RAID0".to_owned(), ..class(custom, tuned()) };
    expect![[r#"
        [settings.bootstrap-commands.000-mount-instance-storage]
        commands = [["apiclient", "ephemeral-storage", "init"], ["apiclient", "ephemeral-storage", "bind"]]
        essential = true
        mode = "always"

        [settings.host-containers.admin]
        enabled = true

        [settings.kubernetes]
        allowed-unsafe-sysctls = ["net.core.somaxconn"]
        api-server = "https://dev.eks.amazonaws.com"
        cluster-certificate = "Q0E="
        cluster-dns-ip = "10.100.0.10"
        cluster-name = "dev"
        max-pods = 100

        [settings.kubernetes.eviction-hard]
        "memory.available" = "5%"

        [settings.kubernetes.kube-reserved]
        memory = "300Mi"

        [settings.kubernetes.node-labels]
        "karpenter.sh/do-not-sync-taints" = "true"
        "karpenter.sh/nodepool" = "default"
        team = "a"
        "topology.k8s.aws/zone-id" = "use1-az1"

        [settings.kubernetes.node-taints]
        cni = [":NoExecute"]
        dedicated = ["a:NoSchedule"]
        "karpenter.sh/unregistered" = [":NoExecute"]
    "#]].assert_eq(&render(AmiFamily::Bottlerocket, &class).unwrap());
}

#[test]
fn unreadable_and_oversized_data_is_refused() {
    let broken = render(AmiFamily::Bottlerocket, &class("a = ", Kubelet::default())).unwrap_err();
    assert!(broken.to_string().starts_with("spec.userData is not TOML"), "{broken}");
    let long = class(&"x".repeat(USER_DATA_BYTES_MAX), Kubelet::default());
    let facts = cluster();
    let error = Boot::new(AmiFamily::Al2, &facts, &long, &launch()).encode().unwrap_err();
    assert!(matches!(error, UserDataError::TooLarge { .. }));
}

#[test]
fn an_image_of_the_users_own_gets_its_own_data() {
    let text = render(AmiFamily::Custom, &class("as is", Kubelet::default())).unwrap();
    assert_eq!(text, "as is");
}
