//! What is shown of clusters, and for how long.

use super::*;

fn figures(pools: &[&str]) -> Figures {
    let pool = PoolFigures {
        limits: vec![("cpu".to_owned(), 1000.0)],
        usage: vec![("cpu".to_owned(), 7.5), ("nodes".to_owned(), 2.0)],
        cost_usd_per_hour: 0.25,
        allowed: vec![("Drifted", 1.0)],
    };
    let pools = pools.iter().map(|name| ((*name).to_owned(), pool.clone())).collect();
    let idle = [("budget".to_owned(), 0.125)].into();
    Figures { pools, nodes: 3.0, waiting: 5.0, unplaced: 1.0, idle_usd_per_hour: Some(idle) }
}

fn has(metrics: &Metrics, line: &str) -> bool {
    metrics.text().lines().any(|it| it == line)
}

#[test]
fn gauges_are_those_of_the_newest_plan() {
    let metrics = Metrics::new();
    let cluster = Clusters::registered(&metrics).of("prod", 1);
    cluster.synced(true);
    cluster.planned(&figures(&["web", "batch"]));
    cluster.stands(&Standing {
        draining: [("two_budgets".to_owned(), 2.0)].into(),
        rollouts: [("web".to_owned(), true), ("batch".to_owned(), false)].into(),
    });
    let text = metrics.text();
    for line in [
        "karpenter_nodepools_limit{cluster=\"prod\",nodepool=\"web\",resource_type=\"cpu\"} 1000.0",
        "karpenter_nodepools_usage{cluster=\"prod\",nodepool=\"web\",resource_type=\"cpu\"} 7.5",
        "karpenter_nodepools_usage{cluster=\"prod\",nodepool=\"web\",resource_type=\"nodes\"} 2.0",
        "karpenter_nodepools_cost_total{cluster=\"prod\",nodepool=\"web\"} 0.25",
        "karpenter_nodepools_allowed_disruptions{cluster=\"prod\",nodepool=\"web\",\
         reason=\"Drifted\"} 1.0",
        "karpenter_cluster_state_node_count{cluster=\"prod\"} 3.0",
        "karpenter_cluster_state_synced{cluster=\"prod\"} 1.0",
        "karpenter_scheduler_queue_depth{cluster=\"prod\",controller=\"provisioner\"} 5.0",
        "karpenter_scheduler_unschedulable_pods_count{cluster=\"prod\",\
         controller=\"provisioner\"} 1.0",
        "longshore_idle_usd_per_hour{cluster=\"prod\",held_by=\"budget\"} 0.125",
        "longshore_draining_nodes{cluster=\"prod\",blocker=\"two_budgets\"} 2.0",
        "longshore_nodepools_rollout_stopped{cluster=\"prod\",nodepool=\"web\"} 1.0",
        "longshore_nodepools_rollout_stopped{cluster=\"prod\",nodepool=\"batch\"} 0.0",
    ] {
        assert!(has(&metrics, line), "{line} in {text}");
    }
    cluster.planned(&Figures { idle_usd_per_hour: None, ..figures(&["web"]) });
    assert!(metrics.text().contains("held_by=\"budget\""), "it was not looked at again");
    cluster.stands(&Standing::default());
    let text = metrics.text();
    assert!(text.contains("web") && !text.contains("batch"), "its pool has gone: {text}");
}

#[test]
fn what_is_begun_is_counted() {
    let metrics = Metrics::new();
    let cluster = Clusters::registered(&metrics).of("prod", 1);
    let disruption = Disruption {
        claims: vec!["a".into(), "b".into()],
        nodes: Vec::new(),
        reason: DisruptionReason::Underutilized,
        replacements: vec![0],
        moves: Vec::new(),
        saving_micro_usd_per_hour: 250_000,
    };
    cluster.decided(&disruption);
    let dearer = Disruption {
        claims: vec!["c".into()],
        replacements: Vec::new(),
        saving_micro_usd_per_hour: -1,
        ..disruption
    };
    cluster.decided(&dearer);
    cluster.launched(1_250_000, 1_000_000);
    cluster.launching([Duration::from_millis(1500)].into_iter());
    cluster.scheduled(Duration::from_millis(40));
    let text = metrics.text();
    for line in [
        "karpenter_voluntary_disruption_decisions_total{cluster=\"prod\",decision=\"replace\",\
         reason=\"underutilized\",consolidation_type=\"multi\"} 1",
        "karpenter_voluntary_disruption_decisions_total{cluster=\"prod\",decision=\"delete\",\
         reason=\"underutilized\",consolidation_type=\"single\"} 1",
        "longshore_savings_usd_per_hour_total{cluster=\"prod\",reason=\"underutilized\"} 0.25",
        "longshore_launch_cost_usd_per_hour_total{cluster=\"prod\"} 1.25",
        "longshore_launch_bound_usd_per_hour_total{cluster=\"prod\"} 1.0",
        "longshore_pending_to_launch_seconds_sum{cluster=\"prod\"} 1.5",
        "karpenter_scheduler_scheduling_duration_seconds_count{cluster=\"prod\",\
         controller=\"provisioner\"} 1",
    ] {
        assert!(has(&metrics, line), "{line} in {text}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_session_showed_goes_with_it_unless_another_has_begun() {
    let metrics = Metrics::new();
    let clusters = Clusters::registered(&metrics);
    let (old, other) = (clusters.of("prod", 1), clusters.of("test", 1));
    for cluster in [&old, &other] {
        cluster.planned(&figures(&["web"]));
        cluster.launched(1, 1);
    }
    let new = clusters.of("prod", 2);
    new.planned(&figures(&["web"]));
    drop(old);
    let cost = "karpenter_nodepools_cost_total{cluster=\"prod\",nodepool=\"web\"} 0.25";
    assert!(has(&metrics, cost), "the newer session shows it");
    drop(new);
    assert!(!has(&metrics, cost));
    assert!(!metrics.text().contains("state_synced{cluster=\"prod\"}"));
    assert!(metrics.text().contains("launch_cost_usd_per_hour_total{cluster=\"prod\"}"));
    tokio::time::advance(LEFT_KEPT).await;
    let third = clusters.of("third", 1);
    let text = metrics.text();
    assert!(!text.contains("\"prod\""), "{text}");
    assert!(text.contains("launch_cost_usd_per_hour_total{cluster=\"test\"}"), "{text}");
    assert_eq!(clusters.sessions.lock().unwrap().len(), 2);
    drop((other, third));
}
