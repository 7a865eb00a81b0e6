//! The mix of Karpenter's own scheduling benchmark: a fifth of the pods each plain, spread over
//! zones, spread over nodes, together in a zone, and apart on nodes of their own.
//!
//! Invariant: as there, a spreading pod's label and the label that it counts are drawn one by one,
//! so that most pods count others than their own kind.

use longshore_watcher::api::keys::labels::{HOSTNAME, ZONE};
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use serde_json::{Value, json};

use super::plain::{SEED, requests};

/// Values of the labels.
const VALUES: [&str; 7] = ["a", "b", "c", "d", "e", "f", "g"];

/// A list of a NodePool and that many pods.
pub(super) fn list(pods: u32) -> Value {
    let mut random = StdRng::seed_from_u64(SEED);
    let fifth = pods / 5;
    let mut items = vec![pool()];
    let mut add = |count: u32, constrain: fn(&mut StdRng, &mut Value)| {
        for _ in 0..count {
            let mut pod = pod(items.len(), &mut random);
            constrain(&mut random, &mut pod);
            items.push(pod);
        }
    };
    add(fifth, labelled);
    add(fifth, |random, pod| spread(random, pod, ZONE));
    add(fifth, |random, pod| spread(random, pod, HOSTNAME));
    add(fifth, together);
    add(fifth, apart);
    add(pods - 5 * fifth, labelled);
    json!({"apiVersion": "v1", "kind": "List", "items": items})
}

fn pool() -> Value {
    json!({
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": "default"},
        "spec": {
            "limits": {"cpu": "10000000", "memory": "10000000Gi"},
            "template": {"spec": {
                "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "any"},
                "requirements": [],
            }},
        },
    })
}

fn pod(number: usize, random: &mut StdRng) -> Value {
    let (cpu, memory) = requests(random);
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": format!("pod-{number:06}"), "namespace": "default"},
        "spec": {"containers": [{"name": "a", "image": "a", "resources": {"requests": {
            "cpu": format!("{cpu}m"), "memory": format!("{memory}Mi"),
        }}}]},
    })
}

fn value(random: &mut StdRng) -> &'static str {
    VALUES.choose(random).copied().unwrap_or_default()
}

fn labelled(random: &mut StdRng, pod: &mut Value) {
    pod["metadata"]["labels"] = json!({"my-label": value(random)});
}

fn spread(random: &mut StdRng, pod: &mut Value, key: &str) {
    labelled(random, pod);
    pod["spec"]["topologySpreadConstraints"] = json!([{
        "maxSkew": 1,
        "topologyKey": key,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"my-label": value(random)}},
    }]);
}

fn together(random: &mut StdRng, pod: &mut Value) {
    let labels = json!({"my-affinity": value(random)});
    let term = json!([{"topologyKey": ZONE, "labelSelector": {"matchLabels": labels.clone()}}]);
    pod["metadata"]["labels"] = labels;
    pod["spec"]["affinity"]["podAffinity"] =
        json!({"requiredDuringSchedulingIgnoredDuringExecution": term});
}

fn apart(_: &mut StdRng, pod: &mut Value) {
    let labels = json!({"app": "nginx"});
    let term = json!([{"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": labels.clone()}}]);
    pod["metadata"]["labels"] = labels;
    pod["spec"]["affinity"]["podAntiAffinity"] =
        json!({"requiredDuringSchedulingIgnoredDuringExecution": term});
}
