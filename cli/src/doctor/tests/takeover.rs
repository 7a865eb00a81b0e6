//! What would be taken over, a row at a time.

use longshore_actuator::cloud::Instance;
use longshore_proto::capacity::v1::InstancePhase;
use longshore_proto::types::v1::CapacityType;

use super::*;
use crate::doctor::takeover;

fn class() -> Value {
    json!({ "apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass",
        "metadata": { "name": "c", "annotations": {
            "karpenter.k8s.aws/ec2nodeclass-hash": "7",
            "karpenter.k8s.aws/ec2nodeclass-hash-version": "v5" } },
        "spec": { "amiSelectorTerms": [{ "alias": "al2023@latest" }], "role": "r",
            "subnetSelectorTerms": [{ "id": "subnet-1" }],
            "securityGroupSelectorTerms": [{ "id": "sg-1" }] } })
}

fn reference() -> Value {
    json!({ "group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "c" })
}

fn node_pool() -> Value {
    json!({ "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": { "name": "p" },
        "spec": { "template": { "spec": { "nodeClassRef": reference(), "requirements": [] } } } })
}

fn claim() -> Value {
    json!({ "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
        "metadata": { "name": "p-1", "labels": { "karpenter.sh/nodepool": "p" }, "annotations": {
            "karpenter.k8s.aws/ec2nodeclass-hash": "7",
            "karpenter.k8s.aws/ec2nodeclass-hash-version": "v5" } },
        "spec": { "nodeClassRef": reference(), "requirements": [], "expireAfter": "720h" },
        "status": { "providerID": "aws:///us-east-1a/i-1", "nodeName": "n-1" } })
}

fn instance() -> Instance {
    let tags = [("karpenter.sh/nodeclaim", "p-1"), ("eks:eks-cluster-name", "prod")];
    Instance {
        phase: InstancePhase::Running,
        instance_type: "m5.large".to_owned(),
        zone: "us-east-1a".to_owned(),
        zone_id: "use1-az1".to_owned(),
        capacity_type: CapacityType::Spot,
        private_dns_name: "n-1".to_owned(),
        image_id: "ami-1".to_owned(),
        tags: tags.map(|(key, value)| (key.to_owned(), value.to_owned())).into(),
        ..Instance::unseen("i-1")
    }
}

/// Everything that one node of Karpenter's amounts to.
fn estate(claim: &Value) -> Vec<(Kind, Value)> {
    let node = json!({ "metadata": { "name": "n-1", "labels": { "karpenter.sh/nodepool": "p" } },
        "spec": { "providerID": "aws:///us-east-1a/i-1" } });
    vec![
        (Kind::NodePool, json!([node_pool()])),
        (Kind::EC2NodeClass, json!([class()])),
        (Kind::NodeClaim, json!([claim])),
        (Kind::Node, json!([node])),
    ]
}

fn report(kinds: &[(Kind, Value)], instances: Option<Vec<Instance>>) -> (Answer, Value) {
    let mut facts = facts(kinds);
    facts.put_now("2026-01-01T00:01:00Z".parse().unwrap());
    if let Some(instances) = instances {
        let (region, cluster) = ("us-east-1".to_owned(), "prod".to_owned());
        let instances = Some(Ok(instances));
        facts.put_account(Account { region, cluster, instances, ..Account::default() });
    }
    let json = takeover::answer(&facts, None, Output::Json, Style::default());
    let value = serde_json::from_str(&json.text).unwrap();
    (json, value)
}

/// Asserts that one object is not simply taken over, with these parts of reason and way out.
fn told(kinds: &[(Kind, Value)], instances: Option<Vec<Instance>>, row: [&str; 4]) {
    let (answer, report) = report(kinds, instances);
    assert_eq!(answer.ending, Ending::Attention, "{report:#}");
    let rows = report["rows"].as_array().unwrap();
    let [object, verdict, why, remedy] = row;
    let found = rows.iter().find(|it| it["object"] == object);
    let found = found.unwrap_or_else(|| panic!("{object} is not in {report:#}"));
    let has = |field: &str, part: &str| {
        assert!(found[field].as_str().unwrap_or_default().contains(part), "{found:#}: {part}");
    };
    assert_eq!(found["verdict"], verdict, "{found:#}");
    has("why", why);
    has("remedy", remedy);
}

fn with(path: &str, to: Value) -> Value {
    let mut claim = claim();
    let (at, key) = path.rsplit_once('/').unwrap();
    claim.pointer_mut(at).unwrap()[key] = to;
    claim
}

#[test]
fn what_is_whole_is_taken_over() {
    let mut untagged = instance();
    untagged.tags.remove("karpenter.sh/nodeclaim");
    for instances in [None, Some(vec![instance()]), Some(vec![untagged])] {
        let (answer, report) = report(&estate(&claim()), instances);
        assert_eq!(answer.ending, Ending::Well, "{report:#}");
        assert_eq!(report["rows"].as_array().unwrap().len(), 3, "a node goes with its claim");
    }
}

#[test]
fn claims_that_are_not_whole_say_what_happens_to_them() {
    let note = "adopted-with-note";
    let cases: [(Value, [&str; 4]); 5] = [
        (
            with("/status/providerID", Value::Null),
            ["NodeClaim/p-1", note, "no provider id", "kubectl delete nodeclaim p-1"],
        ),
        (
            with("/metadata/deletionTimestamp", json!("2026-01-01T00:00:00Z")),
            ["NodeClaim/p-1", note, "goes on draining", ""],
        ),
        (
            with("/spec/nodeClassRef/name", json!("gone")),
            ["NodeClaim/p-1", note, "EC2NodeClass/gone", "create EC2NodeClass/gone"],
        ),
        (
            with("/spec/expireAfter", json!("soon")),
            ["NodeClaim/p-1", "left-alone", "cannot be read", "mend the field"],
        ),
        (with_hash(json!("8")), ["NodeClaim/p-1", note, "before EC2NodeClass/c was changed", ""]),
    ];
    for (claim, row) in cases {
        told(&estate(&claim), Some(vec![instance()]), row);
    }
    // Hashes of different algorithms say nothing.
    let mut newer = with_hash(json!("8"));
    newer["metadata"]["annotations"]["karpenter.k8s.aws/ec2nodeclass-hash-version"] = json!("v6");
    assert_eq!(report(&estate(&newer), None).0.ending, Ending::Well);
}

fn with_hash(hash: Value) -> Value {
    let mut claim = claim();
    claim["metadata"]["annotations"]["karpenter.k8s.aws/ec2nodeclass-hash"] = hash;
    claim
}

#[test]
fn instances_have_to_be_there_and_be_the_claims() {
    let row =
        |why: &'static str, remedy: &'static str| ["NodeClaim/p-1", "left-alone", why, remedy];
    let kinds = estate(&claim());
    told(&kinds, Some(Vec::new()), row("shows no instance i-1", "describe-instances"));
    let mut other = instance();
    other.tags.insert("karpenter.sh/nodeclaim".to_owned(), "q-1".to_owned());
    told(&kinds, Some(vec![other]), row("nodeclaim=q-1", "Key=karpenter.sh/nodeclaim,Value=p-1"));
    let mut foreign = instance();
    foreign.tags.insert("eks:eks-cluster-name".to_owned(), "dev".to_owned());
    told(&kinds, Some(vec![foreign]), row("not tagged as one of cluster prod", "Value=prod"));
}

#[test]
fn nodes_without_claims_and_machines_are_left_alone() {
    let node = |labels: Value| {
        json!([{ "metadata": { "name": "n-2", "labels": labels },
            "spec": { "providerID": "aws:///us-east-1a/i-2" } }])
    };
    let drain = "kubectl drain n-2";
    let of = |labels| [(Kind::NodeClaim, json!([])), (Kind::Node, node(labels))];
    let legacy = of(json!({ "karpenter.sh/provisioner-name": "dev" }));
    told(&legacy, None, ["Node/n-2", "left-alone", "of the first API", drain]);
    let lost = of(json!({ "karpenter.sh/nodepool": "p" }));
    told(&lost, None, ["Node/n-2", "left-alone", "no NodeClaim stands for it", drain]);
    let machine = json!([{ "metadata": { "name": "m" }, "status": { "nodeName": "n" } }]);
    let way_out = "kubectl delete machine m";
    told(&[(Kind::Machine, machine)], None, ["Machine/m", "left-alone", "are not read", way_out]);
    let bare = Some(vec![Instance { instance_id: "i-3".to_owned(), ..instance() }]);
    let row = ["Instance/i-3", "adopted-with-note", "two minutes", "delete-tags"];
    told(&[(Kind::NodeClaim, json!([]))], bare, row);
    // What was not read is not missing.
    let unread = report(&[(Kind::Node, node(json!({ "karpenter.sh/nodepool": "p" })))], None);
    assert_eq!(unread.1["rows"], json!([]));
}

#[test]
fn policy_that_cannot_be_used_is_told() {
    let mut orphan = node_pool();
    orphan["spec"]["template"]["spec"]["nodeClassRef"]["name"] = json!("gone");
    let row = ["NodePool/p", "adopted-with-note", "EC2NodeClass/gone", "create"];
    told(&[(Kind::NodePool, json!([orphan]))], None, row);
    let mut odd = node_pool();
    odd["spec"]["template"]["spec"]["expireAfter"] = json!("soon");
    let row = ["NodePool/p", "left-alone", "cannot be read", "mend"];
    told(&[(Kind::NodePool, json!([odd]))], None, row);
}

fn lease(holder: &str, renewed: &str) -> (Kind, Value) {
    let spec =
        json!({ "holderIdentity": holder, "leaseDurationSeconds": 15, "renewTime": renewed });
    let name = "karpenter-leader-election";
    (Kind::Lease, json!([{ "metadata": { "name": name, "namespace": "karpenter" }, "spec": spec }]))
}

#[test]
fn karpenter_at_work_is_told_by_both_reports() {
    let table = [
        ("pod-1", "2026-01-01T00:00:58.000000Z", true),
        ("pod-1", "2026-01-01T00:01:20.000000Z", true),
        ("pod-1", "2025-12-31T23:00:00.000000Z", false),
        ("", "2026-01-01T00:00:58.000000Z", false),
    ];
    for (holder, renewed, alive) in table {
        let kinds = [lease(holder, renewed)];
        let (answer, report) = report(&kinds, None);
        assert_eq!(report["karpenter"].as_array().unwrap().len(), usize::from(alive), "{report:#}");
        assert_eq!(answer.ending == Ending::Attention, alive);
        let mut facts = facts(&kinds);
        facts.put_now("2026-01-01T00:01:00Z".parse().unwrap());
        let found = karpenter::check(&facts);
        assert_eq!(found.len(), usize::from(alive), "{found:#?}");
        for finding in found {
            assert_eq!(finding.object, "Lease/karpenter/karpenter-leader-election");
            assert!(finding.remedy.contains("--namespace karpenter"), "{finding:?}");
        }
    }
}

#[test]
fn the_table_names_what_is_not_simply_taken_over() {
    let facts = facts(&estate(&with("/status/providerID", Value::Null)));
    let text = takeover::answer(&facts, None, Output::Table, Style::default()).text;
    for part in ["NodePool/p", "yes, but", "why:  it has no provider id", "3 objects: 2 taken over"]
    {
        assert!(text.contains(part), "{text}\nlacks {part}");
    }
}
