//! Labels of one type of each sort, whole, and the odd names.

use expect_test::{Expect, expect};

use super::*;
use crate::Dataset;

fn check(instance_type: &str, expected: &Expect) {
    let facts = Dataset::embedded().expect("embedded facts decode");
    let found = facts.instance_type(instance_type).expect(instance_type);
    let lines = of_type(found).into_iter().map(|(key, value)| format!("{key}: {value:?}\n"));
    expected.assert_eq(&lines.collect::<String>());
}

#[test]
fn general_purpose() {
    check(
        "m7i-flex.large",
        &expect![[r#"
        karpenter.k8s.aws/instance-capability-flex: "true"
        karpenter.k8s.aws/instance-category: "m"
        karpenter.k8s.aws/instance-cpu: "2"
        karpenter.k8s.aws/instance-cpu-manufacturer: "intel"
        karpenter.k8s.aws/instance-cpu-sustained-clock-speed-mhz: "3200"
        karpenter.k8s.aws/instance-ebs-bandwidth: "10000"
        karpenter.k8s.aws/instance-encryption-in-transit-supported: "true"
        karpenter.k8s.aws/instance-family: "m7i-flex"
        karpenter.k8s.aws/instance-generation: "7"
        karpenter.k8s.aws/instance-hypervisor: "nitro"
        karpenter.k8s.aws/instance-memory: "8192"
        karpenter.k8s.aws/instance-network-bandwidth: "390"
        karpenter.k8s.aws/instance-size: "large"
        kubernetes.io/arch: "amd64"
        node.kubernetes.io/instance-type: "m7i-flex.large"
    "#]],
    );
}

#[test]
fn gpu_and_local_disks() {
    check(
        "g5.xlarge",
        &expect![[r#"
        karpenter.k8s.aws/instance-capability-flex: "false"
        karpenter.k8s.aws/instance-category: "g"
        karpenter.k8s.aws/instance-cpu: "4"
        karpenter.k8s.aws/instance-cpu-manufacturer: "amd"
        karpenter.k8s.aws/instance-cpu-sustained-clock-speed-mhz: "3300"
        karpenter.k8s.aws/instance-ebs-bandwidth: "3500"
        karpenter.k8s.aws/instance-encryption-in-transit-supported: "true"
        karpenter.k8s.aws/instance-family: "g5"
        karpenter.k8s.aws/instance-generation: "5"
        karpenter.k8s.aws/instance-gpu-count: "1"
        karpenter.k8s.aws/instance-gpu-manufacturer: "nvidia"
        karpenter.k8s.aws/instance-gpu-memory: "22888"
        karpenter.k8s.aws/instance-gpu-name: "a10g"
        karpenter.k8s.aws/instance-hypervisor: "nitro"
        karpenter.k8s.aws/instance-local-nvme: "250"
        karpenter.k8s.aws/instance-memory: "16384"
        karpenter.k8s.aws/instance-network-bandwidth: "2500"
        karpenter.k8s.aws/instance-size: "xlarge"
        kubernetes.io/arch: "amd64"
        node.kubernetes.io/instance-type: "g5.xlarge"
    "#]],
    );
}

#[test]
fn neuron() {
    check(
        "inf2.xlarge",
        &expect![[r#"
        karpenter.k8s.aws/instance-accelerator-count: "1"
        karpenter.k8s.aws/instance-accelerator-manufacturer: "aws"
        karpenter.k8s.aws/instance-accelerator-name: "inferentia2"
        karpenter.k8s.aws/instance-capability-flex: "false"
        karpenter.k8s.aws/instance-category: "inf"
        karpenter.k8s.aws/instance-cpu: "4"
        karpenter.k8s.aws/instance-cpu-manufacturer: "amd"
        karpenter.k8s.aws/instance-cpu-sustained-clock-speed-mhz: "3600"
        karpenter.k8s.aws/instance-ebs-bandwidth: "10000"
        karpenter.k8s.aws/instance-encryption-in-transit-supported: "true"
        karpenter.k8s.aws/instance-family: "inf2"
        karpenter.k8s.aws/instance-generation: "2"
        karpenter.k8s.aws/instance-hypervisor: "nitro"
        karpenter.k8s.aws/instance-memory: "16384"
        karpenter.k8s.aws/instance-network-bandwidth: "2083"
        karpenter.k8s.aws/instance-size: "xlarge"
        kubernetes.io/arch: "amd64"
        node.kubernetes.io/instance-type: "inf2.xlarge"
    "#]],
    );
}

#[test]
fn bare_metal() {
    check(
        "m6g.metal",
        &expect![[r#"
        karpenter.k8s.aws/instance-capability-flex: "false"
        karpenter.k8s.aws/instance-category: "m"
        karpenter.k8s.aws/instance-cpu: "64"
        karpenter.k8s.aws/instance-cpu-manufacturer: "aws"
        karpenter.k8s.aws/instance-cpu-sustained-clock-speed-mhz: "2500"
        karpenter.k8s.aws/instance-ebs-bandwidth: "19000"
        karpenter.k8s.aws/instance-encryption-in-transit-supported: "false"
        karpenter.k8s.aws/instance-family: "m6g"
        karpenter.k8s.aws/instance-generation: "6"
        karpenter.k8s.aws/instance-hypervisor: ""
        karpenter.k8s.aws/instance-memory: "262144"
        karpenter.k8s.aws/instance-network-bandwidth: "25000"
        karpenter.k8s.aws/instance-size: "metal"
        kubernetes.io/arch: "arm64"
        node.kubernetes.io/instance-type: "m6g.metal"
    "#]],
    );
}

#[test]
fn category_and_generation_follow_the_name() {
    let facts = Dataset::embedded().expect("embedded facts decode");
    for (name, category, generation) in [
        ("u-6tb1.112xlarge", "u", 1),
        ("u7i-12tb.224xlarge", "u", 7),
        ("m7i-flex.large", "m", 7),
        ("inf2.xlarge", "inf", 2),
        ("x2iedn.xlarge", "x", 2),
        ("is4gen.large", "is", 4),
        ("hpc7g.4xlarge", "hpc", 7),
    ] {
        let found = facts.instance_type(name).expect(name);
        assert_eq!((found.category(), found.generation()), (category, Some(generation)), "{name}");
    }
}

#[test]
fn zones() {
    let facts = Dataset::embedded().expect("embedded facts decode");
    let region = facts.region("us-west-1").expect("us-west-1");
    let zone = region.zone("us-west-1b").expect("us-west-1b");
    expect![[r#"
        [
            (
                "topology.k8s.aws/zone-id",
                "usw1-az3",
            ),
            (
                "topology.kubernetes.io/region",
                "us-west-1",
            ),
            (
                "topology.kubernetes.io/zone",
                "us-west-1b",
            ),
        ]
    "#]]
    .assert_debug_eq(&of_zone(region.name(), zone));
}
