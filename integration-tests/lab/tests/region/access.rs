//! Who may do what: credentials, instance profiles, service-linked roles.
//!
//! Invariant: a refusal changes nothing.

use longshore_lab::instance::InstanceSource as _;
use longshore_lab::region::{CONTROLLER_ROLE, NODE_ROLE, RoleConfig, SPOT_ROLE};
use serde_json::json;

use crate::support::{fleet, start, subnets, template};

#[tokio::test]
async fn an_unknown_key_is_refused_in_each_service_s_words() {
    let client = start(|_| {}).await.with_key("AKIANOBODY");
    assert_eq!(client.ec2("DescribeSubnets", &[]).await.error().0, "AuthFailure");
    let sts = client.query("sts", "GetCallerIdentity", &[]).await;
    assert_eq!(sts.error().0, "InvalidClientTokenId");
    let ssm = client.json("AmazonSSM.GetParameter", json!({"Name": "/x"})).await;
    assert_eq!(ssm.value()["__type"], "UnrecognizedClientException");
}

#[tokio::test]
async fn a_web_identity_becomes_its_role() {
    let client = start(|_| {}).await;
    let arn = format!("arn:aws:iam::111122223333:role/{NODE_ROLE}");
    let params =
        [("RoleArn", arn.as_str()), ("RoleSessionName", "pod"), ("WebIdentityToken", "eyJ0")];
    let reply = client.query("sts", "AssumeRoleWithWebIdentity", &params).await.ok();
    let pod = client.with_key(&reply.first("AccessKeyId"));
    let identity = pod.query("sts", "GetCallerIdentity", &[]).await.ok();
    let expected = format!("arn:aws:sts::111122223333:assumed-role/{NODE_ROLE}/pod");
    assert_eq!(identity.first("Arn"), expected);
}

#[tokio::test]
async fn profiles_are_made_filled_found_and_removed() {
    let client = start(|_| {}).await;
    let name = ("InstanceProfileName", "p");
    let role = ("RoleName", NODE_ROLE);
    let create = [
        name,
        ("Path", "/karpenter/us-east-1/lab/"),
        ("Tags.member.1.Key", "k"),
        ("Tags.member.1.Value", "v"),
    ];
    client.query("iam", "CreateInstanceProfile", &create).await.ok();
    let twice = client.query("iam", "CreateInstanceProfile", &create).await;
    assert_eq!(twice.error().0, "EntityAlreadyExists");
    client.query("iam", "AddRoleToInstanceProfile", &[name, role]).await.ok();
    let full = client.query("iam", "AddRoleToInstanceProfile", &[name, role]).await;
    assert_eq!(full.error().0, "LimitExceeded");
    let of_role = client.query("iam", "ListInstanceProfilesForRole", &[role]).await.ok();
    assert!(of_role.all("InstanceProfileName").contains(&"p".to_owned()));
    let by_path = [("PathPrefix", "/karpenter/")];
    let listed = client.query("iam", "ListInstanceProfiles", &by_path).await.ok();
    assert_eq!(listed.all("InstanceProfileName"), ["p"]);
    assert_eq!(
        client.query("iam", "DeleteInstanceProfile", &[name]).await.error().0,
        "DeleteConflict"
    );
    client.query("iam", "RemoveRoleFromInstanceProfile", &[name, role]).await.ok();
    client.query("iam", "DeleteInstanceProfile", &[name]).await.ok();
    let gone = client.query("iam", "GetInstanceProfile", &[name]).await;
    assert_eq!((gone.status.as_u16(), gone.error().0.as_str()), (404, "NoSuchEntity"));
}

#[tokio::test]
async fn spot_needs_its_service_linked_role_or_the_right_to_make_it() {
    let client = start(|_| {}).await;
    template(&client, &[]).await.ok();
    let subnets = subnets(&client).await;
    let one = [("m5.large", subnets[0].as_str())];
    client.region.remove_role(SPOT_ROLE);
    let without_iam = |effect: &str| RoleConfig {
        name: CONTROLLER_ROLE.to_owned(),
        path: "/".to_owned(),
        policies: vec![
            json!({"Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}),
            json!({"Statement": {
                "Effect": effect,
                "Action": "iam:CreateServiceLinkedRole",
                "Resource": "*",
            }}),
        ],
    };
    client.region.put_role(&without_iam("Deny")).expect("policy");
    let refused = fleet(&client, (1, "spot"), &one, &[]).await.ok();
    let code = "AuthFailure.ServiceLinkedRoleCreationNotPermitted";
    assert_eq!(refused.all("errorCode"), [code]);
    assert!(client.region.instances().is_empty());
    let role = [("RoleName", SPOT_ROLE)];
    assert_eq!(client.query("iam", "GetRole", &role).await.error().0, "NoSuchEntity");

    client.region.put_role(&without_iam("Allow")).expect("policy");
    let reply = fleet(&client, (1, "spot"), &one, &[]).await.ok();
    assert!(reply.all("errorCode").is_empty(), "{}", reply.body);
    client.query("iam", "GetRole", &role).await.ok();
}

#[tokio::test]
async fn ec2_learns_of_a_new_profile_later_than_iam_and_wants_a_role_in_it() {
    let client = start(|config| config.timing.profile_visible_after_ms = 3_600_000).await;
    let name = ("InstanceProfileName", "late");
    client.query("iam", "CreateInstanceProfile", &[name]).await.ok();
    client.query("iam", "GetInstanceProfile", &[name]).await.ok();
    template(&client, &[("LaunchTemplateData.IamInstanceProfile.Name", "late")]).await.ok();
    let subnets = subnets(&client).await;
    let one = [("m5.large", subnets[0].as_str())];
    let reply = fleet(&client, (1, "on-demand"), &one, &[]).await.ok();
    assert!(reply.first("errorMessage").contains("Invalid IAM Instance Profile name"));

    let client = start(|_| {}).await;
    client.query("iam", "CreateInstanceProfile", &[name]).await.ok();
    template(&client, &[("LaunchTemplateData.IamInstanceProfile.Name", "late")]).await.ok();
    let reply = fleet(&client, (1, "on-demand"), &one, &[]).await.ok();
    assert!(reply.first("errorMessage").contains("has no associated IAM Roles"));
}

#[tokio::test]
async fn assuming_a_role_is_a_permission_on_that_role() {
    let client = start(|_| {}).await;
    let arn = format!("arn:aws:iam::111122223333:role/{NODE_ROLE}");
    let params = [("RoleArn", arn.as_str()), ("RoleSessionName", "other")];
    let reply = client.query("sts", "AssumeRole", &params).await.ok();
    let node = client.with_key(&reply.first("AccessKeyId"));
    assert_eq!(node.query("sts", "AssumeRole", &params).await.error().0, "AccessDenied");
}
