//! Metrics keep their word: what is registered is documented, and what the dashboard asks for is
//! registered.
//!
//! Invariant: names come from the programs themselves; the documents are read as they are.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use longshore_actuator::cloud::Calls;
use longshore_actuator::events::Events;
use longshore_runtime::metrics::Metrics;
use serde_json::Value;

/// What Karpenter v1.14 and its provider for AWS publish, and what is in their main branches.
/// Stars stand for kinds of objects, and for what libraries add.
const KARPENTER: [&str; 88] = [
    "karpenter_nodeclaims_created_total",
    "karpenter_nodeclaims_terminated_total",
    "karpenter_nodeclaims_disrupted_total",
    "karpenter_nodeclaims_unhealthy_disrupted_total",
    "karpenter_nodeclaims_termination_duration_seconds",
    "karpenter_nodeclaims_instance_termination_duration_seconds",
    "karpenter_nodes_created_total",
    "karpenter_nodes_terminated_total",
    "karpenter_nodes_drained_total",
    "karpenter_nodes_termination_duration_seconds",
    "karpenter_nodes_lifetime_duration_seconds",
    "karpenter_nodes_allocatable",
    "karpenter_nodes_total_pod_requests",
    "karpenter_nodes_total_pod_limits",
    "karpenter_nodes_total_daemon_requests",
    "karpenter_nodes_total_daemon_limits",
    "karpenter_nodes_system_overhead",
    "karpenter_nodes_current_lifetime_seconds",
    "karpenter_cluster_utilization_percent",
    "karpenter_pods_state",
    "karpenter_pods_startup_duration_seconds",
    "karpenter_pods_bound_duration_seconds",
    "karpenter_pods_provisioning_bound_duration_seconds",
    "karpenter_pods_provisioning_startup_duration_seconds",
    "karpenter_pods_scheduling_decision_duration_seconds",
    "karpenter_pods_unstarted_time_seconds",
    "karpenter_pods_unbound_time_seconds",
    "karpenter_pods_provisioning_unbound_time_seconds",
    "karpenter_pods_provisioning_unstarted_time_seconds",
    "karpenter_pods_provisioning_scheduling_undecided_time_seconds",
    "karpenter_pods_eviction_requests_total",
    "karpenter_pods_drained_total",
    "karpenter_pods_disruption_initiated_total",
    "karpenter_nodepools_limit",
    "karpenter_nodepools_usage",
    "karpenter_nodepools_cost_total",
    "karpenter_nodepools_cost_tracker_errors_total",
    "karpenter_nodepools_allowed_disruptions",
    "karpenter_nodepools_nodes_consuming_budgets",
    "karpenter_voluntary_disruption_decisions_total",
    "karpenter_voluntary_disruption_decisions_by_nodepool_total",
    "karpenter_voluntary_disruption_decision_evaluation_duration_seconds",
    "karpenter_voluntary_disruption_eligible_nodes",
    "karpenter_voluntary_disruption_consolidation_timeouts_total",
    "karpenter_voluntary_disruption_failed_validations_total",
    "karpenter_voluntary_disruption_queue_failures_total",
    "karpenter_consolidation_score",
    "karpenter_consolidation_moves_total",
    "karpenter_scheduler_scheduling_duration_seconds",
    "karpenter_scheduler_queue_depth",
    "karpenter_scheduler_unfinished_work_seconds",
    "karpenter_scheduler_ignored_pods_count",
    "karpenter_scheduler_unschedulable_pods_count",
    "karpenter_scheduler_pending_pods_by_effective_zone_count",
    "karpenter_cluster_state_node_count",
    "karpenter_cluster_state_synced",
    "karpenter_cluster_state_unsynced_time_seconds",
    "karpenter_cloudprovider_duration_seconds",
    "karpenter_cloudprovider_errors_total",
    "karpenter_cloudprovider_instance_type_offering_available",
    "karpenter_cloudprovider_instance_type_offering_price_estimate",
    "karpenter_cloudprovider_instance_type_cpu_cores",
    "karpenter_cloudprovider_instance_type_memory_bytes",
    "karpenter_cloudprovider_instance_launch_failures_total",
    "karpenter_cloudprovider_instance_termination_failures_total",
    "karpenter_cloudprovider_batcher_batch_size",
    "karpenter_cloudprovider_batcher_batch_time_seconds",
    "karpenter_ec2nodeclasses_userdata_bytes",
    "karpenter_interruption_received_messages_total",
    "karpenter_interruption_deleted_messages_total",
    "karpenter_interruption_message_queue_duration_seconds",
    "karpenter_interruption_instance_status_unhealthy_total",
    "karpenter_build_info",
    "operator_*_status_condition_count",
    "operator_*_status_condition_current_status_seconds",
    "operator_*_status_condition_transition_seconds",
    "operator_*_status_condition_transitions_total",
    "operator_*_termination_current_time_seconds",
    "operator_*_termination_duration_seconds",
    "aws_sdk_go_request_total",
    "aws_sdk_go_request_retry_count",
    "aws_sdk_go_request_duration_seconds",
    "aws_sdk_go_request_attempt_total",
    "aws_sdk_go_request_attempt_duration_seconds",
    "controller_runtime_*",
    "workqueue_*",
    "client_go_*",
    "leader_election_*",
];

/// Names of what all programs register.
fn registered() -> BTreeSet<String> {
    let metrics = Metrics::new();
    metrics.register_build("", "");
    drop(longshore_watcher::counters::Counters::registered(&metrics, "prod"));
    drop(longshore_scheduler::counters::Counters::registered(&metrics));
    drop(Events::new(&metrics));
    drop(Calls::registered(&metrics));
    metrics.names()
}

fn read(path: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    std::fs::read_to_string(root.join(path)).unwrap()
}

/// First to second cell of the rows of a section, without backticks.
fn rows(document: &str, heading: &str) -> BTreeMap<String, String> {
    let section = document.split("\n## ").find(|it| it.starts_with(heading)).unwrap();
    let rows = section.lines().filter(|line| line.starts_with("| `"));
    let cells = rows.map(|row| row.split('|').map(|it| it.trim().trim_matches('`').to_owned()));
    let pairs: Vec<(String, String)> =
        cells.map(|mut it| (it.nth(1).unwrap(), it.next().unwrap())).collect();
    let count = pairs.len();
    let rows: BTreeMap<_, _> = pairs.into_iter().collect();
    assert_eq!(rows.len(), count, "a name twice under {heading}");
    rows
}

#[test]
fn every_metric_of_karpenter_has_its_row_and_every_metric_of_ours_has_one() {
    let (document, registered) = (read("docs/metrics.md"), registered());
    let theirs = rows(&document, "What Karpenter has");
    let known: BTreeSet<&str> = KARPENTER.into_iter().collect();
    let told: BTreeSet<&str> = theirs.keys().map(String::as_str).collect();
    assert_eq!(told, known);
    let same = theirs.iter().filter(|(_, here)| *here == "same").map(|(name, _)| name);
    let same: BTreeSet<&String> = same.collect();
    let (ours, named): (BTreeSet<_>, BTreeSet<_>) =
        registered.iter().partition(|name| name.starts_with("longshore_"));
    assert_eq!(same, named, "names of Karpenter's that are registered");
    for (name, here) in theirs.iter().filter(|(_, here)| *here != "same") {
        assert!(here == "left out" || registered.contains(here), "{name}: {here}");
    }
    let listed = rows(&document, "What is only here");
    assert_eq!(listed.keys().collect::<BTreeSet<_>>(), ours);
}

/// What every expression and query of a dashboard says.
fn expressions<'d>(value: &'d Value, found: &mut Vec<&'d str>) {
    match value {
        Value::Object(fields) => fields.iter().for_each(|(key, value)| match value {
            Value::String(text) if matches!(key.as_str(), "expr" | "query" | "definition") => {
                found.push(text);
            }
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_)
            | Value::Object(_) => expressions(value, found),
        }),
        Value::Array(values) => values.iter().for_each(|value| expressions(value, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The metrics that an expression names.
fn named(expression: &str) -> impl Iterator<Item = &str> {
    let words = expression.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.filter(|word| word.starts_with("karpenter_") || word.starts_with("longshore_"))
}

#[test]
fn every_metric_of_the_dashboard_is_registered() {
    let dashboard: Value = serde_json::from_str(&read("deploy/dashboards/longshore.json")).unwrap();
    let registered = registered();
    let mut all = Vec::new();
    expressions(&dashboard, &mut all);
    let histogram = |name: &str| {
        ["_bucket", "_sum", "_count"]
            .iter()
            .find_map(|part| name.strip_suffix(part))
            .is_some_and(|plain| registered.contains(plain) && plain.ends_with("seconds"))
    };
    let mut asked = BTreeSet::new();
    for name in all.iter().flat_map(|expression| named(expression)) {
        assert!(registered.contains(name) || histogram(name), "{name}");
        asked.insert(name);
    }
    assert!(asked.len() > 40, "{asked:?}");
}

#[test]
fn panels_have_ids_of_their_own_and_lie_within_the_grid() {
    let dashboard: Value = serde_json::from_str(&read("deploy/dashboards/longshore.json")).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let ids: BTreeSet<u64> = panels.iter().filter_map(|panel| panel["id"].as_u64()).collect();
    assert_eq!(ids.len(), panels.len());
    for panel in panels {
        let place = |key: &str| panel["gridPos"][key].as_u64().unwrap();
        assert!(place("x") + place("w") <= 24, "{}", panel["title"]);
        let asks = panel["targets"].as_array().is_some_and(|targets| !targets.is_empty());
        assert_eq!(asks, panel["type"] != "row", "{}", panel["title"]);
    }
}
