//! `longshore doctor` on a real control plane and a region: healthy, and broken in each way that it
//! claims to see.
//!
//! Invariant: run as a user runs it, as a process; what is asserted is its exit code and findings.

mod clinic;

use anyhow::{Result, ensure};
use longshore_it::parts::poll;
use longshore_lab::region::{CONTROLLER_ROLE, NODE_ROLE, RoleConfig, SPOT_ROLE};
use serde_json::json;

use clinic::{Clinic, LIMIT};

/// Exit codes, as docs/cli.md has them.
const WELL: i32 = 0;
const ATTENTION: i32 = 3;

/// Object, part of the message, part of what mends it.
type Expected = (&'static str, &'static str, &'static str);

/// What is wrong in the broken cluster.
const BROKEN: [Expected; 11] = [
    (
        "EC2NodeClass/untagged",
        "spec.subnetSelectorTerms: no subnet in us-east-1 has karpenter.sh/discovery=elsewhere",
        "aws ec2 create-tags --region us-east-1 --resources subnet-",
    ),
    (
        "EC2NodeClass/untagged",
        "spec.securityGroupSelectorTerms: no security group in us-east-1 has",
        "aws ec2 create-tags --region us-east-1 --resources sg-",
    ),
    ("EC2NodeClass/untagged", "spec.role: there is no role \"no-such-role\"", "name the role"),
    ("Subnet/subnet-000000000000000a0", "nearly full", "free addresses"),
    ("Subnet/subnet-000000000000000a1", "internal-elb is probably meant", "delete-tags"),
    ("NodePool/orphan", "nodeClassRef names EC2NodeClass/gone", "kubectl edit nodepool/orphan"),
    ("NodePool/faraway", "names us-east-1z, where EC2NodeClass/default has no", "select a subnet"),
    ("Role/Stranger", "not let into the cluster", "create-access-entry --cluster-name lab"),
    ("ServiceAccount/kube-system/longshore", "role-arn is not there", "kubectl annotate"),
    (
        "Queue/no-such-queue",
        "settings.interruptionQueue",
        "aws sqs create-queue --region us-east-1",
    ),
    ("Role/AWSServiceRoleForEC2Spot", "launches on spot fail", "create-service-linked-role"),
];

/// What is found once a queue that nothing fills is named, and the first API is in use.
const LEGACY: [Expected; 4] = [
    ("Queue/unfilled", "EventBridge may not send to it", "interruption-queue-policy.json"),
    ("Queue/unfilled", "longer than they mean anything", "MessageRetentionPeriod=300"),
    ("Provisioner/dev", "is of the first API", "kind: NodePool"),
    ("AWSNodeTemplate/dev", "is of the first API", "kind: EC2NodeClass"),
];

#[tokio::test(flavor = "multi_thread")]
async fn doctor_finds_nothing_in_a_healthy_cluster_until_it_is_not() -> Result<()> {
    let clinic = Clinic::open("healthy", |_| {}).await?;
    clinic.pods(CONTROLLER_ROLE, "lab").await?;
    clinic
        .apply(&[clinic::class("default", "lab", NODE_ROLE), clinic::pool("default", "default")])
        .await?;
    clinic.until_ready().await?;
    let seen = poll::until("the doctor is content", LIMIT, || async {
        let seen = clinic.examine(&[]).await?;
        ensure!(seen.code == WELL, "exit code {}: {:#}", seen.code, seen.report);
        Ok::<_, anyhow::Error>(seen)
    })
    .await?;
    ensure!(seen.skipped() == 0, "AWS was not asked: {:#}", seen.report);
    ensure!(seen.report["unread"] == json!([]), "not all was read: {:#}", seen.report);

    let alone = clinic.examine(&["--no-aws"]).await?;
    ensure!(alone.skipped() > 0, "AWS was asked all the same: {:#}", alone.report);
    let text = clinic.examine_as_text().await?;
    ensure!(text.contains("19 checks, all well"), "{text}");
    println!("{text}");

    // The same cluster with another queue, and with objects of the first API alongside.
    clinic.apply(&clinic::first_api()).await?;
    let seen = clinic.examine(&["--interruption-queue", clinic::UNFILLED]).await?;
    ensure!(seen.code == ATTENTION, "exit code {}", seen.code);
    LEGACY.iter().try_for_each(|expected| seen.finds(*expected))
}

#[tokio::test(flavor = "multi_thread")]
async fn doctor_names_what_is_broken_and_the_way_out() -> Result<()> {
    let clinic = Clinic::open("broken", |region| {
        let role = |name: &str| RoleConfig {
            name: name.to_owned(),
            path: "/".to_owned(),
            policies: Vec::new(),
        };
        region.roles.retain(|role| role.name != SPOT_ROLE);
        region.roles.push(role("Stranger"));
        region.subnets[0].free_addresses = 5;
        region.subnets[1].tags.insert("kubernetes.io/role/interna-elb".to_owned(), "1".to_owned());
    })
    .await?;
    clinic.pods("no-such-controller", "no-such-queue").await?;
    let mut spot = clinic::pool("orphan", "gone");
    spot["spec"]["template"]["spec"]["requirements"] = json!([
        { "key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot"] },
    ]);
    let mut faraway = clinic::pool("faraway", "default");
    faraway["spec"]["template"]["spec"]["requirements"] = json!([
        { "key": "topology.kubernetes.io/zone", "operator": "In", "values": ["us-east-1z"] },
    ]);
    let untagged = clinic::class("untagged", "elsewhere", "no-such-role");
    clinic.apply(&[clinic::class("default", "lab", "Stranger"), untagged, spot, faraway]).await?;
    poll::until("the doctor finds what is broken", LIMIT, || async {
        let seen = clinic.examine(&[]).await?;
        ensure!(seen.code == ATTENTION, "exit code {}: {:#}", seen.code, seen.report);
        BROKEN.iter().try_for_each(|expected| seen.finds(*expected))
    })
    .await?;
    println!("{}", clinic.examine_as_text().await?);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn doctor_says_that_the_controller_runs_as_a_node() -> Result<()> {
    let clinic = Clinic::open_as_node("irsa").await?;
    clinic.pods(NODE_ROLE, "lab").await?;
    clinic
        .apply(&[clinic::class("default", "lab", NODE_ROLE), clinic::pool("default", "default")])
        .await?;
    let expected: [Expected; 2] = [
        ("EC2NodeClass/default", "IRSA is not in effect", "kubectl describe ec2nodeclass default"),
        ("ServiceAccount/kube-system/longshore", "is the nodes' own", "kubectl annotate"),
    ];
    poll::until("the doctor names the cause", LIMIT, || async {
        let seen = clinic.examine(&[]).await?;
        expected.iter().try_for_each(|expected| seen.finds(*expected))
    })
    .await
}
