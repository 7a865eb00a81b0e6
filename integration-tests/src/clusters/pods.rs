//! Pods that wait, in groups of equal ones, each group with constraints of its own.
//!
//! Invariant: pods of a group are alike, as those of a Deployment are.

use longshore_manifests::neutral::ZONES;
use longshore_watcher::api::keys::labels::{ARCH, HOSTNAME, ZONE};
use serde_json::{Value, json};

use super::Dice;
use super::infrastructure::{TAINT, TEAM, TEAMS, container, within};

/// One to six groups of one to twelve pods.
pub(super) fn waiting(dice: &mut Dice) -> Vec<Value> {
    let groups = dice.number(1, 6);
    let mut all = Vec::new();
    for number in 0..groups {
        let app = format!("app-{number}");
        let spec = spec(dice, &app);
        all.extend((0..dice.number(1, 12)).map(|number| pod(&app, number, &spec)));
    }
    all
}

/// Ten to forty pods of one group.
pub(super) fn alike(dice: &mut Dice) -> Vec<Value> {
    let spec = json!({"containers": [some_container(dice)]});
    (0..dice.number(10, 40)).map(|number| pod("app-0", number, &spec)).collect()
}

fn some_container(dice: &mut Dice) -> Value {
    let cpu = dice.one(&[100, 250, 500, 1000, 1500, 3000]);
    let memory = dice.one(&[128, 256, 1024, 2048, 4096, 8192]);
    container(cpu, memory)
}

/// A pod of a group.
pub(super) fn pod(app: &str, number: u32, spec: &Value) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": format!("{app}-{number:02}"),
            "namespace": "default",
            "labels": {"app": app},
        },
        "spec": spec,
    })
}

fn spec(dice: &mut Dice, app: &str) -> Value {
    let mut spec = json!({"containers": [some_container(dice)]});
    nodes(dice, &mut spec);
    if dice.percent(30) {
        spec["tolerations"] = json!([{"key": TAINT, "operator": "Exists"}]);
    }
    if dice.percent(10) {
        spec["containers"][0]["ports"] = json!([{"containerPort": 80, "hostPort": 8080}]);
    }
    if dice.percent(35) {
        spec["topologySpreadConstraints"] = json!([any_spread(dice, app)]);
    }
    match dice.number(0, 9) {
        0 | 1 => affinity(&mut spec, "podAffinity", app, ZONE),
        2 => affinity(&mut spec, "podAntiAffinity", app, HOSTNAME),
        3 => affinity(&mut spec, "podAntiAffinity", app, ZONE),
        4 => {
            let other = format!("app-{}", dice.number(0, 5));
            affinity(&mut spec, "podAntiAffinity", &other, HOSTNAME);
        }
        _ => {}
    }
    spec
}

/// Which nodes will do.
fn nodes(dice: &mut Dice, spec: &mut Value) {
    match dice.number(0, 9) {
        0 => spec["nodeSelector"] = json!({ZONE: dice.one(&ZONES)}),
        1 => spec["nodeSelector"] = json!({ARCH: dice.one(&["amd64", "arm64"])}),
        2 => spec["nodeSelector"] = json!({TEAM: dice.one(&TEAMS)}),
        3 => {
            let without = json!({"key": ZONE, "operator": "NotIn", "values": [dice.one(&ZONES)]});
            required(spec, json!([{"matchExpressions": [without]}]));
        }
        4 => {
            let either = [within(ZONE, &[dice.one(&ZONES)]), within(ARCH, &["arm64"])];
            let terms = either.map(|expression| json!({"matchExpressions": [expression]}));
            required(spec, json!(terms));
        }
        _ => {}
    }
}

fn required(spec: &mut Value, terms: Value) {
    spec["affinity"]["nodeAffinity"] =
        json!({"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}});
}

fn any_spread(dice: &mut Dice, app: &str) -> Value {
    let policy = if dice.percent(80) { "DoNotSchedule" } else { "ScheduleAnyway" };
    let skew = dice.number(1, 3);
    let mut spread = spread(dice.one(&[ZONE, HOSTNAME]), app, skew);
    spread["whenUnsatisfiable"] = policy.into();
    spread
}

/// A condition that pods of a group spread.
pub(super) fn spread(key: &str, app: &str, skew: u32) -> Value {
    json!({
        "maxSkew": skew,
        "topologyKey": key,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": app}},
    })
}

fn affinity(spec: &mut Value, kind: &str, app: &str, key: &str) {
    let term = json!({"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}});
    spec["affinity"][kind] = json!({"requiredDuringSchedulingIgnoredDuringExecution": [term]});
}
