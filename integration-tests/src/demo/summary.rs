//! The demo's results, for machines and for people.

use std::fmt;

use serde::Serialize;

/// Results of a run.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Summary {
    /// Steps in order.
    pub steps: Vec<StepResult>,
    /// The spot interruption.
    pub interruption: InterruptionResult,
    /// Instances ever launched.
    pub launches: usize,
    /// Instances beyond the first of one launch.
    pub duplicate_launches: usize,
    /// Instances alive at the end without a NodeClaim.
    pub leaked_instances: usize,
    /// Boot time of the simulated instances, a setting of the demo.
    pub boot_seconds: f64,
    /// The fullest trace.
    pub trace_id: String,
    /// Its spans.
    pub trace_spans: usize,
    /// Services in it.
    pub trace_services: Vec<String>,
    /// Longshore's own share of the time to capacity.
    pub longshore_share: Share,
}

/// One step.
#[derive(Clone, Debug, Default, Serialize)]
pub struct StepResult {
    /// What was done.
    pub name: String,
    /// Replicas asked for.
    pub pods: u32,
    /// Pods running at the end of the step.
    pub pods_running: usize,
    /// Nodes at the end of the step.
    pub nodes: usize,
    /// Time the step took.
    pub seconds: f64,
    /// Price of all instances at the end of the step.
    pub price_usd_per_hour: f64,
    /// The same with what each node costs besides.
    pub cost_usd_per_hour: f64,
    /// No nodes that carry these pods cost less, at the region's live prices.
    pub lower_bound_usd_per_hour: f64,
}

/// What the interruption cost.
#[derive(Clone, Debug, Default, Serialize)]
pub struct InterruptionResult {
    /// From the announcement until every pod ran again and the replacement was ready.
    pub noticed_to_replacement_ready_seconds: f64,
    /// Pods that had to move.
    pub pods_moved: usize,
}

/// From pod pending to CreateFleet sent, over all launches.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Share {
    /// Launches measured.
    pub launches: usize,
    /// Median in milliseconds.
    pub p50_ms: u64,
    /// 99th percentile in milliseconds.
    pub p99_ms: u64,
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{:<14} {:>5} {:>8} {:>6} {:>8} {:>9} {:>9} {:>9}",
            "step", "pods", "running", "nodes", "seconds", "$/h", "cost", "bound"
        )?;
        for step in &self.steps {
            writeln!(
                f,
                "{:<14} {:>5} {:>8} {:>6} {:>8.1} {:>9.4} {:>9.4} {:>9.4}",
                step.name,
                step.pods,
                step.pods_running,
                step.nodes,
                step.seconds,
                step.price_usd_per_hour,
                step.cost_usd_per_hour,
                step.lower_bound_usd_per_hour
            )?;
        }
        writeln!(
            f,
            "\nInterruption: {} pods moved, replacement ready {:.1} s after the notice \
             (boot time {:.1} s is a setting).",
            self.interruption.pods_moved,
            self.interruption.noticed_to_replacement_ready_seconds,
            self.boot_seconds
        )?;
        writeln!(
            f,
            "Launches {}, duplicates {}, leaks {}. Longshore's own share, pod pending to \
             CreateFleet sent: p50 {} ms, p99 {} ms over {} launches.",
            self.launches,
            self.duplicate_launches,
            self.leaked_instances,
            self.longshore_share.p50_ms,
            self.longshore_share.p99_ms,
            self.longshore_share.launches
        )
    }
}
