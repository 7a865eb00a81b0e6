//! What AWS answered, and what is found in it.

use std::collections::BTreeMap;

use longshore_actuator::cloud::{Class, CloudError, Subnet};
use longshore_actuator::ec2::inspect::{AccessEntry, QueueSettings};
use longshore_actuator::nodeclass::{Problem, Survey};
use longshore_proto::types::v1::NodeClass;

use super::super::account::{Account, Queue, Role};
use super::*;

fn refused() -> CloudError {
    CloudError {
        class: Class::Unauthorized,
        action: "iam:GetRole",
        code: "AccessDenied".to_owned(),
        message: String::new(),
        request_id: String::new(),
    }
}

fn subnet(free_addresses: i32, tags: &[&str]) -> Subnet {
    Subnet {
        id: "subnet-1".to_owned(),
        zone: "r-1a".to_owned(),
        zone_id: String::new(),
        free_addresses,
        tags: tags.iter().map(|tag| ((*tag).to_owned(), "1".to_owned())).collect(),
    }
}

/// An account with one node class whose subnets are these.
fn account(subnets: Result<Vec<Subnet>, Problem>) -> Account {
    let class = NodeClass { name: "EC2NodeClass/c".to_owned(), ..NodeClass::default() };
    let survey = Survey { subnets, security_groups: Ok(Vec::new()), identity: Ok(()) };
    let classes = vec![(class, survey)];
    Account { region: "r".to_owned(), cluster: "dev".to_owned(), classes, ..Account::default() }
}

/// Objects, messages and remedies of what a check finds.
fn found(
    check: fn(&Facts) -> Vec<Finding>,
    kinds: &[(Kind, Value)],
    account: Account,
) -> Vec<(Severity, String)> {
    let mut facts = facts(kinds);
    facts.put_account(account);
    let found = check(&facts).into_iter();
    found
        .map(|it| (it.severity, format!("{}: {} | {}", it.object, it.message, it.remedy)))
        .collect()
}

fn pool(key: &str, value: &str) -> (Kind, Value) {
    let requirements = json!([{"key": key, "operator": "In", "values": [value]}]);
    let class = json!({"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "c"});
    let spec = json!({"nodeClassRef": class, "requirements": requirements});
    (Kind::NodePool, json!([{"metadata": {"name": "p"}, "spec": {"template": {"spec": spec}}}]))
}

#[test]
fn the_actuators_words_are_split_into_finding_and_way_out() {
    let message = "EC2NodeClass/c spec.subnetSelectorTerms: none has a=b; tag them with: aws ec2 x";
    let problem = Problem::new("SubnetsNotFound", message);
    let told = found(network::resolved, &[], account(Err(problem)));
    let text = "EC2NodeClass/c: spec.subnetSelectorTerms: none has a=b | aws ec2 x";
    assert_eq!(told, [(Severity::Problem, text.to_owned())]);

    let looked = account(Err(Problem::new("LookupFailed", "not allowed")));
    assert_eq!(looked.refused(), ["not allowed"]);
    assert_eq!(found(network::resolved, &[], looked), [], "a refusal is no finding");
}

#[test]
fn subnets_need_addresses_and_tags_that_are_looked_for() {
    assert_eq!(found(network::subnets, &[], account(Ok(vec![subnet(500, &[])]))), []);
    let severities = [(0, Severity::Problem), (9, Severity::Advice)];
    for (free, severity) in severities {
        let told = found(network::subnets, &[], account(Ok(vec![subnet(free, &[])])));
        assert_eq!((told.len(), told[0].0), (1, severity));
    }
    let tags = ["kubernetes.io/role/elb", "kubernetes.io/role/interna-elb"];
    let told = found(network::subnets, &[], account(Ok(vec![subnet(500, &tags)])));
    assert!(told[0].1.contains("Key=kubernetes.io/role/internal-elb,Value=1"), "{told:?}");
}

#[test]
fn a_pool_needs_subnets_in_its_zones() {
    let zone = "topology.kubernetes.io/zone";
    let there = || account(Ok(vec![subnet(500, &[])]));
    assert_eq!(found(network::zones, &[pool(zone, "r-1a")], there()), []);
    let told = found(network::zones, &[pool(zone, "r-1b")], there());
    assert_eq!(told[0].0, Severity::Problem);
    assert!(told[0].1.contains("names r-1b, where EC2NodeClass/c has no subnet"), "{told:?}");
}

#[test]
fn a_queue_must_exist_and_be_filled() {
    let with = |url, settings| Account {
        queue: Some(Queue { name: "q".to_owned(), url: Ok(url), settings }),
        ..account(Ok(Vec::new()))
    };
    let told = found(queue::check, &[], with(None, None));
    assert!(told[0].1.contains("create-queue --region r --queue-name q"), "{told:?}");
    let good = QueueSettings {
        retention_seconds: Some(300),
        encrypted_by_sqs: true,
        kms_key: String::new(),
        policy: "{\"Service\": \"events.amazonaws.com\"}".to_owned(),
    };
    let url = || Some("http://q".to_owned());
    assert_eq!(found(queue::check, &[], with(url(), Some(Ok(good)))), []);
    let told = found(queue::check, &[], with(url(), Some(Ok(QueueSettings::default()))));
    assert_eq!(told.len(), 2, "nothing fills it, and it is not encrypted: {told:?}");
    assert_eq!(found(queue::check, &[], with(url(), Some(Err(refused())))), []);
}

#[test]
fn spot_needs_its_role() {
    let with = |role| Account { spot_role: Some(role), ..account(Ok(Vec::new())) };
    let spot = [pool("karpenter.sh/capacity-type", "spot")];
    let told = found(queue::spot_role, &spot, with(Ok(None)));
    assert!(told[0].1.contains("create-service-linked-role"), "{told:?}");
    for role in [Ok(Some("arn".to_owned())), Err(refused())] {
        assert_eq!(found(queue::spot_role, &spot, with(role)), []);
    }
}

#[test]
fn an_access_entry_lets_nodes_in() {
    let with = |entry: Option<AccessEntry>| {
        let arn = Ok(Some("arn:aws:iam::1:role/path/N".to_owned()));
        let role = Role { arn, entry: Some(Ok(entry)) };
        Account { roles: BTreeMap::from([("N".to_owned(), role)]), ..account(Ok(Vec::new())) }
    };
    let class = json!([{"metadata": {"name": "c"}, "spec": {"role": "N"}}]);
    let kinds = [(Kind::EC2NodeClass, class), (Kind::ConfigMap, json!([]))];
    let entry = |kind: &str| Some(AccessEntry { kind: kind.to_owned(), groups: Vec::new() });
    assert_eq!(found(identity::node_roles, &kinds, with(entry("EC2_LINUX"))), []);
    let told = found(identity::node_roles, &kinds, with(entry("STANDARD")));
    assert!(told[0].1.contains("not as a node"), "{told:?}");
    let told = found(identity::node_roles, &kinds, with(None));
    assert_eq!(told[0].0, Severity::Problem);
    assert!(told[0].1.contains("--cluster-name dev"), "{told:?}");
    assert!(told[0].1.contains("--principal-arn arn:aws:iam::1:role/path/N"), "{told:?}");
}

#[test]
fn a_pool_must_name_a_class_that_is_there() {
    let key = "karpenter.sh/capacity-type";
    let none =
        [pool(key, "spot"), (Kind::EC2NodeClass, json!([])), (Kind::AWSNodeTemplate, json!([]))];
    let parts =
        ["names EC2NodeClass/c, which is not there", "no node class is there", "kubectl edit"];
    finds(pools::missing_classes, &none, "NodePool/p", parts);
    is_well(pools::missing_classes, &[pool(key, "spot")]);
}
