//! What somebody can do in AWS who has taken an actuator over, by the policy that `longshore iam`
//! prints: the lab's evaluation of deeds, one by one.

use anyhow::{Result, ensure};
use longshore_it::stage::iam;
use longshore_lab::region::Tags;
use longshore_lab::region::iam::{Ask, Context, Policy, Verdict, evaluate};

const HERE: &str = "eu-central-1";
const THERE: &str = "us-east-1";
const ACCOUNT: &str = "111122223333";

/// A deed: the action, the resource, and what conditions know of it.
type Deed = (&'static str, String, Context);

fn ec2(region: &str, kind: &str) -> String {
    format!("arn:aws:ec2:{region}:{ACCOUNT}:{kind}/x-1")
}

fn in_iam(what: &str) -> String {
    format!("arn:aws:iam::{ACCOUNT}:{what}")
}

fn queue(name: &str) -> String {
    format!("arn:aws:sqs:{HERE}:{ACCOUNT}:{name}")
}

fn tags(pairs: &[(&str, &str)]) -> Tags {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

/// Tags of what is made for a cluster.
fn of(cluster: &str) -> Tags {
    tags(&[("eks:eks-cluster-name", cluster), ("karpenter.sh/nodepool", "default")])
}

/// Tags of a profile that is made for a cluster.
fn profile_of(cluster: &str) -> Tags {
    tags(&[
        ("eks:eks-cluster-name", cluster),
        ("topology.kubernetes.io/region", HERE),
        ("karpenter.k8s.aws/ec2nodeclass", "default"),
    ])
}

fn is(tags: &Tags) -> Context {
    Context::default().with_resource_tags(tags)
}

fn with(tags: &Tags) -> Context {
    Context::default().with_request_tags(tags)
}

fn bare() -> Context {
    Context::default()
}

fn region(name: &str) -> Context {
    bare().with("aws:RequestedRegion", name)
}

/// Writes a tag on something.
fn tagging(resource: &Tags, key: &str, value: &str) -> Context {
    is(resource).with_all(with(&tags(&[(key, value)])))
}

/// What an actuator does every day.
fn daily() -> Vec<Deed> {
    let made = with(&of("prod"));
    let created = made.clone().with("ec2:CreateAction", "CreateFleet");
    let passed = bare().with("iam:PassedToService", "ec2.amazonaws.com");
    let profile = in_iam("instance-profile/p");
    vec![
        ("ec2:RunInstances", format!("arn:aws:ec2:{HERE}::image/ami-1"), bare()),
        ("ec2:RunInstances", ec2(HERE, "subnet"), bare()),
        ("ec2:RunInstances", ec2(HERE, "launch-template"), is(&of("prod"))),
        ("ec2:RunInstances", ec2(HERE, "instance"), made.clone()),
        ("ec2:CreateFleet", ec2(HERE, "fleet"), made.clone()),
        ("ec2:CreateLaunchTemplate", ec2(HERE, "launch-template"), made),
        ("ec2:CreateTags", ec2(HERE, "instance"), created),
        ("ec2:CreateTags", ec2(HERE, "instance"), tagging(&of("prod"), "Name", "node-1")),
        ("ec2:TerminateInstances", ec2(HERE, "instance"), is(&of("prod"))),
        ("ec2:DeleteLaunchTemplate", ec2(HERE, "launch-template"), is(&of("prod"))),
        ("ec2:DescribeInstances", "*".to_owned(), region(HERE)),
        ("sqs:ReceiveMessage", queue("Karpenter-prod-SpotInterruptionQueue"), bare()),
        ("sqs:ReceiveMessage", queue("prod"), bare()),
        ("iam:PassRole", in_iam("role/KarpenterNodeRole-prod"), passed),
        ("iam:CreateInstanceProfile", profile.clone(), with(&profile_of("prod"))),
        ("iam:AddRoleToInstanceProfile", profile, is(&profile_of("prod"))),
        ("eks:DescribeCluster", format!("arn:aws:eks:{HERE}:{ACCOUNT}:cluster/prod"), bare()),
    ]
}

/// Deeds on machines of others, or on our own that are nobody's business.
fn on_machines() -> Vec<Deed> {
    let nameless = tags(&[("eks:eks-cluster-name", "prod")]);
    let (instance, volume) = (ec2(HERE, "instance"), ec2(HERE, "volume"));
    vec![
        ("ec2:TerminateInstances", instance.clone(), bare()),
        ("ec2:TerminateInstances", instance.clone(), is(&of("other"))),
        ("ec2:TerminateInstances", instance.clone(), is(&nameless)),
        ("ec2:TerminateInstances", ec2(THERE, "instance"), is(&of("prod"))),
        ("ec2:StopInstances", instance.clone(), is(&of("prod"))),
        ("ec2:RebootInstances", instance.clone(), is(&of("prod"))),
        ("ec2:ModifyInstanceAttribute", instance.clone(), is(&of("prod"))),
        ("ec2:GetPasswordData", instance.clone(), is(&of("prod"))),
        ("ec2:DeleteTags", instance.clone(), is(&of("prod"))),
        ("ec2:CreateTags", instance.clone(), with(&of("prod"))),
        ("ec2:CreateTags", instance.clone(), tagging(&of("other"), "Name", "x")),
        ("ec2:CreateTags", instance.clone(), tagging(&of("prod"), "eks:eks-cluster-name", "dev")),
        ("ec2:CreateTags", instance, tagging(&of("prod"), "karpenter.sh/nodepool", "x")),
        ("ec2:CreateTags", volume.clone(), tagging(&of("prod"), "Name", "x")),
        ("ec2:CreateTags", ec2(HERE, "subnet"), with(&of("prod"))),
        ("ec2:DeleteVolume", volume.clone(), is(&of("prod"))),
        ("ec2:CreateSnapshot", volume, bare()),
        ("ec2:AuthorizeSecurityGroupIngress", ec2(HERE, "security-group"), bare()),
    ]
}

/// Purchases that no cluster of ours makes.
fn purchases() -> Vec<Deed> {
    let (instance, template) = (ec2(HERE, "instance"), ec2(HERE, "launch-template"));
    let other = with(&of("other"));
    vec![
        ("ec2:RunInstances", template.clone(), bare()),
        ("ec2:RunInstances", template.clone(), is(&of("other"))),
        ("ec2:RunInstances", instance.clone(), bare()),
        ("ec2:RunInstances", instance, other.clone()),
        ("ec2:RunInstances", ec2(HERE, "volume"), bare()),
        ("ec2:RunInstances", ec2(THERE, "instance"), with(&of("prod"))),
        ("ec2:CreateFleet", ec2(HERE, "fleet"), bare()),
        ("ec2:CreateFleet", ec2(HERE, "fleet"), other.clone()),
        ("ec2:RequestSpotFleet", "*".to_owned(), bare()),
        ("ec2:CreateLaunchTemplate", template.clone(), bare()),
        ("ec2:CreateLaunchTemplate", template.clone(), other),
        ("ec2:CreateLaunchTemplateVersion", template.clone(), is(&of("prod"))),
        ("ec2:DeleteLaunchTemplate", template.clone(), bare()),
        ("ec2:DeleteLaunchTemplate", template, is(&of("other"))),
        ("ec2:PurchaseReservedInstancesOffering", "*".to_owned(), bare()),
    ]
}

/// Ways to more rights.
fn rights() -> Vec<Deed> {
    let (profile, role) = (in_iam("instance-profile/p"), in_iam("role/r"));
    let passed = |to: &str| bare().with("iam:PassedToService", to);
    vec![
        ("iam:PassRole", in_iam("role/Administrator"), passed("ec2.amazonaws.com")),
        ("iam:PassRole", in_iam("role/KarpenterNodeRole-prod"), passed("lambda.amazonaws.com")),
        ("iam:CreateInstanceProfile", profile.clone(), bare()),
        ("iam:CreateInstanceProfile", profile.clone(), with(&profile_of("other"))),
        ("iam:TagInstanceProfile", profile.clone(), with(&profile_of("prod"))),
        ("iam:AddRoleToInstanceProfile", profile.clone(), bare()),
        ("iam:AddRoleToInstanceProfile", profile.clone(), is(&profile_of("other"))),
        ("iam:DeleteInstanceProfile", profile, is(&profile_of("other"))),
        ("iam:CreateRole", role.clone(), bare()),
        ("iam:AttachRolePolicy", role.clone(), bare()),
        ("iam:PutRolePolicy", role.clone(), bare()),
        ("iam:UpdateAssumeRolePolicy", role.clone(), bare()),
        ("iam:CreateAccessKey", in_iam("user/u"), bare()),
        ("sts:AssumeRole", role, bare()),
    ]
}

/// What belongs to other services.
fn elsewhere() -> Vec<Deed> {
    let eks = |cluster: &str| format!("arn:aws:eks:{HERE}:{ACCOUNT}:cluster/{cluster}");
    let ssm = format!("arn:aws:ssm:{HERE}:{ACCOUNT}:parameter/secret");
    vec![
        ("ec2:DescribeInstances", "*".to_owned(), region(THERE)),
        ("sqs:ReceiveMessage", queue("payments"), bare()),
        ("sqs:SendMessage", queue("prod"), bare()),
        ("sqs:SetQueueAttributes", queue("prod"), bare()),
        ("sqs:DeleteQueue", queue("prod"), bare()),
        ("ssm:GetParameter", ssm, bare()),
        ("ssm:SendCommand", ec2(HERE, "instance"), is(&of("prod"))),
        ("eks:DescribeCluster", eks("other"), bare()),
        ("eks:UpdateClusterConfig", eks("prod"), bare()),
        ("eks:CreateAccessEntry", eks("prod"), bare()),
        ("secretsmanager:GetSecretValue", "*".to_owned(), bare()),
        ("s3:GetObject", "*".to_owned(), bare()),
        ("kms:Decrypt", "*".to_owned(), bare()),
    ]
}

#[test]
fn a_stolen_actuator_can_launch_and_end_what_is_ours_and_nothing_else() -> Result<()> {
    let policy = iam::policy("prod,dev", &["--region", HERE])?;
    let policies = [Policy::parse(&policy)?];
    let allowed = |(action, resource, context): &Deed| {
        let ask = Ask { action, resource, context };
        matches!(evaluate(&policies, ask), Verdict::Allowed)
    };
    for deed in daily() {
        ensure!(allowed(&deed), "denied, and needed every day: {} on {}", deed.0, deed.1);
    }
    let forbidden = [on_machines(), purchases(), rights(), elsewhere()].concat();
    for deed in &forbidden {
        ensure!(!allowed(deed), "allowed: {deed:?}");
    }
    println!("{} forbidden deeds were denied", forbidden.len());
    ensure!(forbidden.len() >= 40, "only {} deeds are tried", forbidden.len());
    Ok(())
}
