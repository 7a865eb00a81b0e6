//! What is there before the pods that wait: pools, DaemonSets, nodes and what runs on them.
//!
//! Invariant: what runs on a node fits it.

use longshore_manifests::neutral::ZONES;
use longshore_watcher::api::keys::labels::{ARCH, HOSTNAME, INSTANCE_TYPE, OS, ZONE};
use serde_json::{Value, json};

use super::Dice;

/// Label of pools that pods may ask for.
pub(super) const TEAM: &str = "example.com/team";
pub(super) const TEAMS: [&str; 2] = ["red", "blue"];
/// Key of the taint that some pools have.
pub(super) const TAINT: &str = "example.com/dedicated";

/// One to three pools; the first takes any pod that asks for nothing special.
pub(super) fn pools(dice: &mut Dice) -> Vec<Value> {
    let more = dice.number(0, 2);
    let mut all = vec![new_pool("main", json!([]), json!({}))];
    for number in 0..more {
        let name = format!("pool-{number}");
        let mut requirements = Vec::new();
        if dice.percent(50) {
            requirements.push(within(ARCH, &[dice.one(&["amd64", "arm64"])]));
        }
        if dice.percent(50) {
            let first = dice.number(0, 2) as usize;
            requirements.push(within(ZONE, &[ZONES[first], ZONES[(first + 1) % 3]]));
        }
        if dice.percent(50) {
            requirements.push(within(TEAM, &TEAMS));
        }
        let mut found = new_pool(&name, json!(requirements), json!({}));
        if dice.percent(30) {
            found["spec"]["template"]["spec"]["taints"] =
                json!([{"key": TAINT, "value": "yes", "effect": "NoSchedule"}]);
        }
        if dice.percent(40) {
            found["spec"]["weight"] = dice.number(1, 50).into();
        }
        if dice.percent(25) {
            found["spec"]["limits"] = json!({"cpu": dice.number(8, 64).to_string()});
        }
        all.push(found);
    }
    all
}

pub(super) fn new_pool(name: &str, requirements: Value, labels: Value) -> Value {
    json!({
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": name},
        "spec": {"template": {"metadata": {"labels": labels}, "spec": {
            "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "any"},
            "requirements": requirements,
        }}},
    })
}

pub(super) fn within(key: &str, values: &[&str]) -> Value {
    json!({"key": key, "operator": "In", "values": values})
}

/// None to two; the second runs on amd64 only.
pub(super) fn daemon_sets(dice: &mut Dice) -> Vec<Value> {
    let count = dice.number(0, 2);
    let set = |number: u32| {
        let cpu = dice.number(1, 4) * 50;
        let mut spec = json!({
            "tolerations": [{"operator": "Exists"}],
            "containers": [container(cpu, 128)],
        });
        if number == 1 {
            spec["nodeSelector"] = json!({ARCH: "amd64"});
        }
        let labels = json!({"daemon": number.to_string()});
        json!({
            "apiVersion": "apps/v1",
            "kind": "DaemonSet",
            "metadata": {"name": format!("daemon-{number}"), "namespace": "default"},
            "spec": {
                "selector": {"matchLabels": labels.clone()},
                "template": {"metadata": {"labels": labels}, "spec": spec},
            },
        })
    };
    (0..count).map(set).collect()
}

/// None to five nodes of four cores, which no pool owns, with up to three pods each.
pub(super) fn nodes(dice: &mut Dice) -> Vec<Value> {
    let count = if dice.percent(50) { dice.number(1, 5) } else { 0 };
    let mut all = Vec::new();
    for number in 0..count {
        let name = format!("node-{number}");
        all.push(node(&name, dice.one(&ZONES), dice.one(&["amd64", "arm64"])));
        for place in 0..dice.number(0, 3) {
            let labels = json!({"app": format!("app-{}", dice.number(0, 5))});
            all.push(json!({
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": format!("{name}-{place}"), "namespace": "default", "labels": labels},
                "spec": {"nodeName": name, "containers": [container(dice.number(1, 4) * 250, 512)]},
                "status": {"phase": "Running"},
            }));
        }
    }
    all
}

fn node(name: &str, zone: &str, arch: &str) -> Value {
    let room = json!({"cpu": "3920m", "memory": "15Gi", "pods": "58"});
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {
            HOSTNAME: name, ZONE: zone, ARCH: arch, OS: "linux", INSTANCE_TYPE: "given",
        }},
        "spec": {"providerID": format!("given:///{name}")},
        "status": {
            "allocatable": room.clone(),
            "capacity": room,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    })
}

pub(super) fn container(cpu_millis: u32, memory_mib: u32) -> Value {
    let requests = json!({"cpu": format!("{cpu_millis}m"), "memory": format!("{memory_mib}Mi")});
    json!({"name": "a", "image": "a", "resources": {"requests": requests}})
}
