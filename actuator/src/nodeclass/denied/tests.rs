//! Denials as users met them.

use longshore_proto::types::v1::SelectorTerm;
use serde_json::json;

use super::*;
use crate::testing::Scripted;

const CONTROLLER: &str = "arn:aws:sts::111122223333:assumed-role/Controller/longshore";

fn class() -> NodeClass {
    let term = SelectorTerm {
        tags: [("karpenter.sh/discovery".to_owned(), "dev".to_owned())].into(),
        ..SelectorTerm::default()
    };
    NodeClass {
        name: "EC2NodeClass/default".to_owned(),
        subnet_terms: vec![term],
        ..NodeClass::default()
    }
}

fn denied(message: &str) -> CloudError {
    CloudError {
        class: Class::Unauthorized,
        action: "ec2:CreateFleet",
        code: "UnauthorizedOperation".to_owned(),
        message: message.to_owned(),
        request_id: String::new(),
    }
}

fn document(principal: &str, explicit: bool) -> String {
    let condition =
        |key: &str, value: &str| json!({"key": key, "values": {"items": [{"value": value}]}});
    json!({
        "allowed": false,
        "explicitDeny": explicit,
        "context": {
            "principal": {"arn": principal},
            "action": "ec2:RunInstances",
            "resource": "arn:aws:ec2:us-east-1:111122223333:launch-template/lt-1",
            "conditions": {"items": [
                condition("ec2:ResourceTag/karpenter.sh/nodepool", "default"),
                condition("ec2:ResourceTag/karpenter.k8s.aws/ec2nodeclass", "default"),
                condition("ec2:ResourceTag/eks:eks-cluster-name", "dev"),
                condition("ec2:Region", "us-east-1"),
            ]},
        },
    })
    .to_string()
}

fn explained(error: &CloudError, document: Option<&str>, node_role: Option<&str>) -> String {
    let place = Place { region: "us-east-1".to_owned(), caller_arn: CONTROLLER.to_owned() };
    let class = class();
    let explainer = Explainer { cloud: &Scripted::default(), place: &place, class: &class };
    explain_denial(error, document, &explainer, node_role)
}

#[test]
fn a_decoded_denial_names_action_resource_caller_conditions_and_missing_tag() {
    let text = explained(&denied("no"), Some(&document(CONTROLLER, false)), None);
    assert_eq!(
        text,
        "ec2:RunInstances on arn:aws:ec2:us-east-1:111122223333:launch-template/lt-1 is denied to \
         arn:aws:sts::111122223333:assumed-role/Controller/longshore; condition keys present: \
         ec2:ResourceTag/karpenter.sh/nodepool=default, \
         ec2:ResourceTag/karpenter.k8s.aws/ec2nodeclass=default, \
         ec2:ResourceTag/eks:eks-cluster-name=dev, ec2:Region=us-east-1; missing tag: \
         karpenter.sh/discovery; if the policy's condition asks for it, add it to \
         EC2NodeClass/default spec.tags"
    );
}

#[test]
fn the_nodes_role_is_recognised_by_its_name_or_its_session() {
    let instance = "arn:aws:sts::111122223333:assumed-role/Any/i-0123456789abcdef0";
    let role = "arn:aws:sts::111122223333:assumed-role/Nodes/session";
    for (principal, node_role) in [(instance, None), (role, Some("Nodes"))] {
        let text = explained(&denied("no"), Some(&document(principal, false)), node_role);
        assert!(text.contains("runs as the node's role: IRSA is not in effect"), "{text}");
    }
}

#[test]
fn what_cannot_be_decoded_still_says_who_and_how_to_learn_more() {
    let error = denied("You are not authorized. Encoded authorization failure message: abc");
    let text = explained(&error, None, None);
    assert!(text.starts_with("ec2:CreateFleet is denied to arn:aws:sts::"), "{text}");
    assert!(
        text.ends_with("allow sts:DecodeAuthorizationMessage to be told which conditions failed")
    );
    assert!(!text.contains("abc"));
}

#[test]
fn an_explicit_denial_is_not_blamed_on_tags() {
    let text = explained(&denied("no"), Some(&document(CONTROLLER, true)), None);
    assert!(text.ends_with("a statement denies it explicitly"), "{text}");
}
