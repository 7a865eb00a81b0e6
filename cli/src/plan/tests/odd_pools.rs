//! Pools that ask for labels that few types have, for zones by their ids, and under DaemonSets that
//! are larger than small types: what is planned for them stands the independent check.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{folder, of};
use crate::plan::{Output, PlanArgs, run};
use crate::terminal::{Ending, Style};

/// Label of each pool, which its pods and DaemonSets select.
const POOL: &str = "example.com/pool";
const ZONE_ID: &str = "topology.k8s.aws/zone-id";

/// Requirements over numbers, most of them on labels that few types have.
fn numbers() -> Vec<Value> {
    let table = [
        ("karpenter.k8s.aws/instance-gpu-count", "Gt", "0"),
        ("karpenter.k8s.aws/instance-gpu-memory", "Lt", "20000"),
        ("karpenter.k8s.aws/instance-accelerator-count", "Gt", "1"),
        ("karpenter.k8s.aws/instance-local-nvme", "Gt", "100"),
        ("karpenter.k8s.aws/instance-local-nvme", "Lt", "500"),
        ("karpenter.k8s.aws/instance-ebs-bandwidth", "Gt", "9999"),
        ("karpenter.k8s.aws/instance-network-bandwidth", "Lt", "5000"),
        ("karpenter.k8s.aws/instance-generation", "Gt", "6"),
        ("karpenter.k8s.aws/instance-cpu", "Lt", "3"),
        ("karpenter.k8s.aws/instance-memory", "Gt", "131071"),
    ];
    let each = table.iter();
    each.map(
        |(key, operator, value)| json!({ "key": key, "operator": operator, "values": [value] }),
    )
    .collect()
}

/// Zones that pools allow, and one in which their pods ask to run.
const ZONES: [(&str, &[&str], Option<&str>); 3] = [
    ("In", &["use1-az1", "use1-az2", "use1-az4"], None),
    ("NotIn", &["use1-az3"], Some("use1-az2")),
    ("Exists", &[], Some("use1-az6")),
];

/// What a DaemonSet requests.
const DAEMONS: [Option<(&str, &str)>; 4] =
    [None, Some(("100m", "128Mi")), Some(("1900m", "3Gi")), Some(("3", "12Gi"))];

fn pod(name: &str, cpu: &str, memory: &str, select: Value) -> Value {
    let requests = json!({ "cpu": cpu, "memory": memory });
    json!({
        "metadata": { "labels": { "app": name } },
        "spec": {
            "nodeSelector": select,
            "containers": [{ "name": "main", "image": "app", "resources": { "requests": requests } }],
        },
    })
}

fn workload(kind: &str, name: &str, replicas: Option<u64>, template: Value) -> Value {
    let selector = json!({ "matchLabels": { "app": name } });
    json!({
        "apiVersion": "apps/v1", "kind": kind,
        "metadata": { "name": name, "namespace": "default" },
        "spec": { "replicas": replicas, "selector": selector, "template": template },
    })
}

/// A pool, its pods, and the DaemonSet on its nodes.
fn objects(
    number: &Value,
    (operator, ids, zone): (&str, &[&str], Option<&str>),
    daemon: Option<(&str, &str)>,
    index: usize,
) -> Vec<Value> {
    let name = format!("odd-{index}");
    let zones = json!({ "key": ZONE_ID, "operator": operator, "values": ids });
    let pool = json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodePool",
        "metadata": { "name": name },
        "spec": { "template": {
            "metadata": { "labels": { POOL: name } },
            "spec": {
                "nodeClassRef": { "group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default" },
                "requirements": [number, zones],
            },
        } },
    });
    let mut select = json!({ POOL: name });
    if let Some(zone) = zone {
        select[ZONE_ID] = zone.into();
    }
    let own = json!({ POOL: name });
    let web = pod(&format!("web-{index}"), "700m", "1Gi", select);
    let web = workload("Deployment", &format!("web-{index}"), Some(7), web);
    let agent = daemon.map(|(cpu, memory)| {
        let agent = format!("agent-{index}");
        workload("DaemonSet", &agent, None, pod(&agent, cpu, memory, own))
    });
    [Some(pool), Some(web), agent].into_iter().flatten().collect()
}

#[test]
fn a_hundred_and_twenty_odd_pools_stand_the_check() {
    let mut launching = 0;
    for (zones, daemon) in ZONES.iter().flat_map(|zones| DAEMONS.map(|daemon| (*zones, daemon))) {
        let numbers = numbers();
        let each = numbers.iter().enumerate();
        let items: Vec<Value> =
            each.flat_map(|(index, number)| objects(number, zones, daemon, index)).collect();
        let list = json!({ "apiVersion": "v1", "kind": "List", "items": items }).to_string();
        let dir = folder(&[("odd.json", &list)]);
        let region = Some("us-east-1".to_owned());
        let args = PlanArgs { output: Output::Json, region, ..of(dir.path()) };
        let answer = run(&args, Style::default());
        assert!(matches!(answer.ending, Ending::Well | Ending::Attention), "{answer:?}");
        let told: Value = serde_json::from_str(&answer.text).unwrap();
        assert_eq!(told["violations"], json!([]), "{zones:?} {daemon:?}");
        let nodes = told["nodes"].as_array().unwrap().iter();
        let pools: BTreeSet<&str> = nodes.filter_map(|node| node["pool"].as_str()).collect();
        launching += pools.len();
    }
    assert!(launching > 60, "{launching} of 120 pools launch");
}
