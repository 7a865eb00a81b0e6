//! What kube-scheduler knows besides: capacity types, priorities, wishes, further topology rules,
//! and nodes and running pods that have constraints of their own.
//!
//! Invariant: nothing preempts: no class of priority allows it, and none is below that of pods
//! without a class.

use longshore_core::labels::{CAPACITY_EIGHTH, CAPACITY_HALF, CAPACITY_QUARTER};
use longshore_watcher::api::keys::annotations::SPREAD_DENSITY;
use longshore_watcher::api::keys::labels::{ARCH, CAPACITY_TYPE, HOSTNAME, NODE_POOL, ZONE};
use serde_json::{Value, json};

use super::Dice;
use super::infrastructure::{TAINT, TEAM, TEAMS, container, new_pool, within};
use super::pods::{pod, spread};

const BOUGHT: [&str; 2] = ["spot", "on-demand"];
/// Classes of priority with their values.
const CLASSES: [(&str, i32); 2] = [("high", 1_000), ("low", 100)];

/// Mixes more into the objects of a cluster.
pub(super) fn mix(dice: &mut Dice, items: &mut Vec<Value>) {
    let mut groups = std::collections::BTreeMap::new();
    for item in items.iter_mut() {
        match item["kind"].as_str() {
            Some("NodePool") => pool(dice, item),
            Some("Node") => node(dice, item),
            Some("Pod") if item["spec"]["nodeName"].is_string() => running(dice, item),
            Some("Pod") => {
                let app = item["metadata"]["labels"]["app"].as_str().unwrap_or_default().to_owned();
                let spec = groups.entry(app.clone());
                let spec = spec.or_insert_with(|| waiting(dice, item["spec"].clone(), &app));
                item["spec"] = spec.clone();
            }
            _ => {}
        }
    }
    items.extend(CLASSES.map(|(name, value)| priority_class(name, value)));
    if dice.percent(30) {
        items.push(plain_daemon_set(dice));
    }
    if dice.percent(25) {
        items.extend(dense(dice));
    }
    if dice.percent(25) {
        items.extend(diverse(dice));
    }
}

/// Pods that spread over groups of all pools of capacity.
fn diverse(dice: &mut Dice) -> Vec<Value> {
    let key = dice.one(&[CAPACITY_HALF, CAPACITY_QUARTER, CAPACITY_EIGHTH]);
    let spec = json!({
        "containers": [container(dice.one(&[250, 500, 1000]), dice.one(&[512, 1024]))],
        "topologySpreadConstraints": [spread(key, "diverse", dice.number(1, 2))],
    });
    (0..dice.number(2, 14)).map(|number| pod("diverse", number, &spec)).collect()
}

/// A pool that packs spreads over hosts densely, and the pods it is for.
fn dense(dice: &mut Dice) -> Vec<Value> {
    let mut pool = new_pool("dense", json!([]), json!({}));
    pool["metadata"]["annotations"] = json!({SPREAD_DENSITY: "dense"});
    let app = "dense";
    let mut spec = json!({
        "containers": [container(dice.one(&[250, 500, 1000]), dice.one(&[512, 1024]))],
        "nodeSelector": {NODE_POOL: "dense"},
        "topologySpreadConstraints": [spread(HOSTNAME, app, dice.number(1, 2))],
    });
    if dice.percent(50) {
        push(&mut spec["topologySpreadConstraints"], spread(ZONE, app, 1));
    }
    let mut all = vec![pool];
    all.extend((0..dice.number(2, 14)).map(|number| pod(app, number, &spec)));
    all
}

fn pool(dice: &mut Dice, pool: &mut Value) {
    if dice.percent(40) {
        let requirements = &mut pool["spec"]["template"]["spec"]["requirements"];
        if let Some(all) = requirements.as_array_mut() {
            all.push(within(CAPACITY_TYPE, &[dice.one(&BOUGHT)]));
        }
    }
}

fn node(dice: &mut Dice, node: &mut Value) {
    if dice.percent(50) {
        node["metadata"]["labels"][CAPACITY_TYPE] = dice.one(&BOUGHT).into();
    }
    if dice.percent(25) {
        node["metadata"]["labels"][TEAM] = dice.one(&TEAMS).into();
    }
    if dice.percent(20) {
        node["spec"]["taints"] = json!([{"key": TAINT, "value": "yes", "effect": "NoSchedule"}]);
    }
}

/// Constraints of pods that run bind the others: anti-affinity both ways, ports.
fn running(dice: &mut Dice, pod: &mut Value) {
    if dice.percent(25) {
        let key = dice.one(&[ZONE, HOSTNAME]);
        let term = term(&other(dice), key);
        let kind = "requiredDuringSchedulingIgnoredDuringExecution";
        pod["spec"]["affinity"] = json!({"podAntiAffinity": {kind: [term]}});
    }
    // One pod of a node at most: two of one port could not run there.
    let is_first = pod["metadata"]["name"].as_str().is_some_and(|name| name.ends_with("-0"));
    if dice.percent(10) && is_first {
        pod["spec"]["containers"][0]["ports"] = json!([{"containerPort": 80, "hostPort": 8080}]);
    }
}

fn waiting(dice: &mut Dice, mut spec: Value, app: &str) -> Value {
    if dice.percent(20) {
        let (name, value) = dice.one(&CLASSES);
        spec["priorityClassName"] = name.into();
        spec["priority"] = value.into();
        spec["preemptionPolicy"] = "Never".into();
    }
    if dice.percent(12) {
        spec["nodeSelector"][CAPACITY_TYPE] = dice.one(&BOUGHT).into();
    }
    if dice.percent(20) {
        more_spread(dice, &mut spec, app);
    }
    match dice.number(0, 9) {
        0 => required(&mut spec, "podAffinity", term(&other(dice), ZONE)),
        1 => required(&mut spec, "podAffinity", term(&other(dice), HOSTNAME)),
        2 => required(&mut spec, "podAntiAffinity", term(&other(dice), ZONE)),
        3 => {
            let mut everywhere = term(&other(dice), HOSTNAME);
            everywhere["namespaceSelector"] = json!({});
            required(&mut spec, "podAntiAffinity", everywhere);
        }
        _ => {}
    }
    if dice.percent(30) {
        wish(dice, &mut spec, app);
    }
    spec
}

fn other(dice: &mut Dice) -> String {
    format!("app-{}", dice.number(0, 5))
}

fn term(app: &str, key: &str) -> Value {
    json!({"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}})
}

/// Adds a required term to those that are there.
fn required(spec: &mut Value, kind: &str, term: Value) {
    push(&mut spec["affinity"][kind]["requiredDuringSchedulingIgnoredDuringExecution"], term);
}

fn push(list: &mut Value, value: Value) {
    match list.as_array_mut() {
        Some(all) => all.push(value),
        None => *list = json!([value]),
    }
}

fn more_spread(dice: &mut Dice, spec: &mut Value, app: &str) {
    let key = dice.one(&[ZONE, HOSTNAME, CAPACITY_TYPE, ARCH]);
    let counted = if dice.percent(80) { app.to_owned() } else { other(dice) };
    let mut spread = spread(key, &counted, dice.number(1, 2));
    if dice.percent(30) {
        spread["minDomains"] = dice.number(1, 4).into();
    }
    if dice.percent(30) {
        spread["nodeTaintsPolicy"] = "Honor".into();
    }
    if dice.percent(20) {
        spread["nodeAffinityPolicy"] = "Ignore".into();
    }
    let constraints = &mut spec["topologySpreadConstraints"];
    // kube-apiserver refuses two constraints of one key and one consequence.
    let taken =
        constraints.as_array().is_some_and(|all| all.iter().any(|it| it["topologyKey"] == key));
    if !taken {
        push(constraints, spread);
    }
}

/// Something preferred: a node, pods near by, or other pods far away.
fn wish(dice: &mut Dice, spec: &mut Value, app: &str) {
    const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";
    let weight = dice.number(1, 100);
    match dice.number(0, 2) {
        0 => {
            let wanted = within(ARCH, &[dice.one(&["amd64", "arm64"])]);
            let term = json!({"weight": weight, "preference": {"matchExpressions": [wanted]}});
            push(&mut spec["affinity"]["nodeAffinity"][PREFERRED], term);
        }
        1 => {
            let term = json!({"weight": weight, "podAffinityTerm": term(&other(dice), ZONE)});
            push(&mut spec["affinity"]["podAffinity"][PREFERRED], term);
        }
        _ => {
            let key = dice.one(&[ZONE, HOSTNAME]);
            let term = json!({"weight": weight, "podAffinityTerm": term(app, key)});
            push(&mut spec["affinity"]["podAntiAffinity"][PREFERRED], term);
        }
    }
}

fn priority_class(name: &str, value: i32) -> Value {
    json!({
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
        "preemptionPolicy": "Never",
    })
}

/// A DaemonSet that tolerates nothing.
fn plain_daemon_set(dice: &mut Dice) -> Value {
    let labels = json!({"daemon": "plain"});
    json!({
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "daemon-plain", "namespace": "default"},
        "spec": {
            "selector": {"matchLabels": labels.clone()},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [container(dice.number(1, 4) * 50, 256)]},
            },
        },
    })
}
