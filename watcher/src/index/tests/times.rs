//! How long pods wait, as the index sees them.

use longshore_runtime::metrics::Metrics;

use super::*;
use crate::counters::Counters;

fn seen(node: Option<&str>, phase: &str) -> Value {
    let unschedulable =
        json!([{ "type": "PodScheduled", "status": "False", "reason": "Unschedulable" }]);
    let conditions = if node.is_none() { unschedulable } else { json!([]) };
    pod(
        "a",
        "1",
        json!({
            "metadata": { "creationTimestamp": "1970-01-01T00:01:40Z" },
            "spec": { "nodeName": node },
            "status": { "phase": phase, "conditions": conditions },
        }),
    )
}

#[test]
fn a_pod_is_measured_from_its_creation_when_the_watcher_works() {
    let metrics = Metrics::new();
    let counters = Counters::registered(&metrics, "prod");
    let mut index = Index::default();
    index.measure(counters.pods.clone());
    counters.pods.works(true);
    let at = |index: &mut Index, seconds: i64, object: Value| {
        index.set_clock(Now { wall_ms: seconds * 1000, steady_ms: 0 });
        apply::<Pod>(index, object);
    };
    at(&mut index, 101, seen(None, "Pending"));
    at(&mut index, 130, seen(Some("n"), "Pending"));
    at(&mut index, 133, seen(Some("n"), "Running"));
    at(&mut index, 150, seen(Some("n"), "Running"));
    let text = metrics.text();
    for (name, sum) in [("bound", "30.0"), ("provisioning_bound", "30.0"), ("startup", "33.0")] {
        let of = format!("karpenter_pods_{name}_duration_seconds");
        for (part, value) in [("count", "1"), ("sum", sum)] {
            let line = format!("{of}_{part}{{cluster=\"prod\"}} {value}");
            assert!(text.contains(&line), "{line} in {text}");
        }
    }
}
