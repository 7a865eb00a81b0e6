//! The refusals of the written-up uses come out of policy evaluation itself.
//!
//! Invariant: no refusal here is scripted; each follows from a policy document.

use longshore_lab::instance::InstanceSource as _;
use longshore_lab::region::{CONTROLLER_ROLE, NODE_KEY, NODE_PROFILE, RoleConfig};
use serde_json::{Value, json};

use crate::support::{Client, Reply, fleet, start, subnets, template};

const ACCOUNT: &str = "111122223333";

fn controller(statements: Value) -> RoleConfig {
    RoleConfig {
        name: CONTROLLER_ROLE.to_owned(),
        path: "/".to_owned(),
        policies: vec![json!({"Version": "2012-10-17", "Statement": statements})],
    }
}

/// The controller policy of the Terraform module of the v0.30 era, in substance.
fn policy_of_w0() -> RoleConfig {
    controller(json!([
        {
            "Effect": "Allow",
            "Action": [
                "ec2:CreateLaunchTemplate", "ec2:CreateFleet", "ec2:CreateTags", "ec2:Describe*",
                "ssm:GetParameter", "iam:PassRole", "sts:DecodeAuthorizationMessage",
            ],
            "Resource": "*",
        },
        {
            "Effect": "Allow",
            "Action": "ec2:RunInstances",
            "Resource": format!("arn:aws:ec2:*:{ACCOUNT}:launch-template/*"),
            "Condition": {"StringEquals": {"ec2:ResourceTag/karpenter.sh/discovery": "lab"}},
        },
        {
            "Effect": "Allow",
            "Action": "ec2:RunInstances",
            "Resource": [
                "arn:aws:ec2:*::image/*",
                format!("arn:aws:ec2:*:{ACCOUNT}:instance/*"),
                format!("arn:aws:ec2:*:{ACCOUNT}:security-group/*"),
                format!("arn:aws:ec2:*:{ACCOUNT}:volume/*"),
                format!("arn:aws:ec2:*:{ACCOUNT}:network-interface/*"),
                format!("arn:aws:ec2:*:{ACCOUNT}:subnet/*"),
            ],
        },
    ]))
}

async fn decode(client: &Client, message: &str) -> Reply {
    let (_, sealed) =
        message.split_once("Encoded authorization failure message: ").expect("sealed");
    client.query("sts", "DecodeAuthorizationMessage", &[("EncodedMessage", sealed)]).await
}

fn values(document: &Value, key: &str) -> Vec<Value> {
    let items = document["context"]["conditions"]["items"].as_array().expect("conditions");
    let found = items.iter().find(|item| item["key"] == key);
    found.map_or_else(Vec::new, |item| item["values"]["items"].as_array().expect("values").clone())
}

#[tokio::test]
async fn w0_a_template_without_the_discovery_tag_is_refused_and_the_message_says_why() {
    let client = start(|_| {}).await;
    client.region.put_role(&policy_of_w0()).expect("policy");
    let tag = |key| {
        [
            ("TagSpecification.1.ResourceType", "launch-template"),
            ("TagSpecification.1.Tag.1.Key", key),
            ("TagSpecification.1.Tag.1.Value", "lab"),
        ]
    };
    let made = template(&client, &tag("created-by")).await.ok();
    let template_id = made.first("launchTemplateId");
    let subnets = subnets(&client).await;
    let one = [("t3.small", subnets[0].as_str())];
    let refused = fleet(&client, (1, "on-demand"), &one, &[]).await.ok();
    assert_eq!(refused.first("errorCode"), "UnauthorizedOperation");
    assert!(client.region.instances().is_empty());

    let decoded = decode(&client, &refused.first("errorMessage")).await.ok();
    let document: Value = serde_json::from_str(&decoded.first("DecodedMessage")).expect("JSON");
    assert_eq!(document["allowed"], false);
    assert_eq!(document["explicitDeny"], false);
    assert_eq!(document["context"]["action"], "ec2:RunInstances");
    let arn = format!("arn:aws:ec2:us-east-1:{ACCOUNT}:launch-template/{template_id}");
    assert_eq!(document["context"]["resource"], arn);
    assert_eq!(values(&document, "ec2:ResourceTag/created-by"), [json!({"value": "lab"})]);
    assert!(values(&document, "ec2:ResourceTag/karpenter.sh/discovery").is_empty());

    let mend = [
        ("ResourceId.1", template_id.as_str()),
        ("Tag.1.Key", "karpenter.sh/discovery"),
        ("Tag.1.Value", "lab"),
    ];
    client.ec2("CreateTags", &mend).await.ok();
    let allowed = fleet(&client, (1, "on-demand"), &one, &[]).await.ok();
    assert!(allowed.all("errorCode").is_empty(), "{}", allowed.body);
}

#[tokio::test]
async fn w1_everything_needed_is_inside_the_published_policy() {
    let client = start(|_| {}).await;
    let tag_condition = json!({"StringLike": {"ec2:ResourceTag/karpenter.sh/nodepool": "*"}});
    let node_role = format!("arn:aws:iam::{ACCOUNT}:role/KarpenterNodeRole-lab");
    let policy = controller(json!([
        {"Effect": "Allow", "Resource": "*", "Action": [
            "ssm:GetParameter", "ec2:DescribeImages", "ec2:RunInstances", "ec2:DescribeSubnets",
            "ec2:DescribeSecurityGroups", "ec2:DescribeLaunchTemplates", "ec2:DescribeInstances",
            "ec2:DescribeInstanceTypes", "ec2:DescribeInstanceTypeOfferings",
            "ec2:DeleteLaunchTemplate", "ec2:CreateTags", "ec2:CreateLaunchTemplate",
            "ec2:CreateFleet", "ec2:DescribeSpotPriceHistory", "pricing:GetProducts",
        ]},
        {"Effect": "Allow", "Action": "ec2:TerminateInstances", "Resource": "*",
         "Condition": tag_condition},
        {"Effect": "Allow", "Action": "iam:PassRole", "Resource": node_role},
    ]));
    client.region.put_role(&policy).expect("policy");
    template(&client, &[]).await.ok();
    let subnets = subnets(&client).await;
    let one = [("t3.small", subnets[0].as_str())];
    let tags = [
        ("TagSpecification.1.ResourceType", "instance"),
        ("TagSpecification.1.Tag.1.Key", "karpenter.sh/nodepool"),
        ("TagSpecification.1.Tag.1.Value", "default"),
    ];
    fleet(&client, (1, "spot"), &one, &tags).await.ok();
    fleet(&client, (1, "spot"), &one, &[]).await.ok();
    let ids: Vec<String> =
        client.region.instances().into_iter().map(|seen| seen.instance_id).collect();
    assert_eq!(ids.len(), 2);
    client.ec2("TerminateInstances", &[("InstanceId.1", &ids[0])]).await.ok();
    let foreign = client.ec2("TerminateInstances", &[("InstanceId.1", &ids[1])]).await;
    assert_eq!(foreign.error().0, "UnauthorizedOperation");
    let decoded = decode(&client, &foreign.error().1).await;
    assert_eq!(decoded.error().0, "AccessDenied", "decoding is a permission of its own");
}

#[tokio::test]
async fn w3_the_node_role_as_caller_shows_in_the_decoded_message() {
    let client = start(|_| {}).await;
    let node = client.with_key(NODE_KEY);
    let params = [("LaunchTemplateName", "t"), ("LaunchTemplateData.InstanceType", "t3.small")];
    let refused = node.ec2("CreateLaunchTemplate", &params).await;
    let (code, message) = refused.error();
    assert_eq!((refused.status.as_u16(), code.as_str()), (403, "UnauthorizedOperation"));
    assert!(!refused.request_id.is_empty());
    let decoded = decode(&client, &message).await.ok();
    let document: Value = serde_json::from_str(&decoded.first("DecodedMessage")).expect("JSON");
    assert_eq!(document["context"]["action"], "ec2:CreateLaunchTemplate");
    let arn = document["context"]["principal"]["arn"].as_str().expect("arn");
    assert_eq!(
        arn,
        format!("arn:aws:sts::{ACCOUNT}:assumed-role/KarpenterNodeRole-lab/i-0123456789abcdef0")
    );
}

#[tokio::test]
async fn w3_a_role_name_is_not_an_instance_profile() {
    let client = start(|_| {}).await;
    let profile = [("LaunchTemplateData.IamInstanceProfile.Name", "eks-node-role-dev")];
    template(&client, &profile).await.ok();
    let subnets = subnets(&client).await;
    let reply = fleet(&client, (1, "on-demand"), &[("t3.small", &subnets[0])], &[]).await.ok();
    assert_eq!(reply.first("errorCode"), "InvalidParameterValue");
    assert!(
        reply.first("errorMessage").starts_with(
            "Value (eks-node-role-dev) for parameter iamInstanceProfile.name is invalid"
        )
    );
}

#[tokio::test]
async fn passing_a_role_is_checked_on_the_role_inside_the_profile() {
    let client = start(|_| {}).await;
    let policy = controller(json!([
        {"Effect": "Allow", "Action": "*", "Resource": "*"},
        {"Sid": "KeepRole", "Effect": "Deny", "Action": "iam:PassRole", "Resource": "*",
         "Condition": {"StringEquals": {"iam:PassedToService": "ec2.amazonaws.com"}}},
    ]));
    client.region.put_role(&policy).expect("policy");
    template(&client, &[("LaunchTemplateData.IamInstanceProfile.Name", NODE_PROFILE)]).await.ok();
    let subnets = subnets(&client).await;
    let reply = fleet(&client, (1, "on-demand"), &[("t3.small", &subnets[0])], &[]).await.ok();
    let decoded = decode(&client, &reply.first("errorMessage")).await.ok();
    let document: Value = serde_json::from_str(&decoded.first("DecodedMessage")).expect("JSON");
    assert_eq!(document["explicitDeny"], true);
    assert_eq!(document["context"]["action"], "iam:PassRole");
    assert_eq!(document["matchedStatements"]["items"][0]["statementId"], "KeepRole");
}
