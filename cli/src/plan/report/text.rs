//! A report as text.
//!
//! Invariant: the same report gives the same text; colour and width only change its looks.

use std::fmt::Write as _;

use clap::builder::styling::AnsiColor;
use comfy_table::{Cell, CellAlignment, Table};

use super::units::{counted, percent_of_ppm, share, usd};
use super::{BufferRoom, NodeGroup, Reason, Report, Step, UnplacedGroup};
use crate::terminal::{Style, table_text};

const HEADER: [&str; 10] = [
    "NODES",
    "POOL",
    "TYPE",
    "CAPACITY",
    "ZONE",
    "$/HOUR",
    "PODS",
    "CPU",
    "MEMORY",
    "ALTERNATIVES",
];
/// Columns of numbers, which end in line.
const NUMBERS: [usize; 6] = [0, 5, 6, 7, 8, 9];

/// The report as text, without warnings.
#[must_use]
pub fn text(report: &Report, style: Style) -> String {
    let mut parts = Vec::new();
    if !report.nodes.is_empty() {
        parts.push(table_text(&nodes(report, style)));
    }
    parts.push(summary(report));
    if !report.unplaced.is_empty() {
        parts.push(unplaced(report, style));
    }
    if let Some(explanation) = &report.explanation {
        parts.push(explanation.to_string());
    }
    if !report.steps.is_empty() {
        parts.push(steps(&report.steps));
    }
    parts.join("\n")
}

/// A line for each step.
fn steps(steps: &[Step]) -> String {
    let width = steps.iter().map(|step| step.name.len()).max().unwrap_or_default();
    let line = |Step { name, outcome }: &Step| format!("  {name:width$}  {outcome}\n");
    format!("steps:\n{}", steps.iter().map(line).collect::<String>())
}

fn nodes(report: &Report, style: Style) -> Table {
    let mut table = style.table(&HEADER);
    for group in &report.nodes {
        table.add_row(row(group));
    }
    for column in NUMBERS {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

fn row(group: &NodeGroup) -> Vec<Cell> {
    let cheapest = group.offerings.first().cloned().unwrap_or_default();
    let estimated = if cheapest.price_estimated { "*" } else { "" };
    let (asked, room) = (&group.requests, &group.allocatable);
    let texts = [
        group.count.to_string(),
        group.pool.clone(),
        cheapest.instance_type,
        cheapest.capacity_type.to_owned(),
        cheapest.zone,
        format!("{}{estimated}", usd(cheapest.price_micro_usd_per_hour)),
        if group.standing { "stands".to_owned() } else { group.pods_each.to_string() },
        share(asked.cpu_millis, room.cpu_millis),
        share(asked.memory_bytes, room.memory_bytes),
        group.offerings.len().saturating_sub(1).to_string(),
    ];
    texts.into_iter().map(Cell::new_owned).collect()
}

fn summary(report: &Report) -> String {
    let pods = &report.pods;
    let count = |standing: bool| {
        let groups = report.nodes.iter().filter(|group| group.standing == standing);
        groups.map(|group| group.count).sum()
    };
    let mut lines = vec![format!(
        "{}: {} on {}, {} on nodes that there are, {} not placed",
        counted(pods.asked, "pod"),
        pods.on_new_nodes,
        counted(count(false), "new node"),
        pods.on_existing_nodes,
        pods.unplaced
    )];
    lines.push(format!("price        ${}/hour", usd(report.price_micro_usd_per_hour)));
    let stands = report.standing_price_micro_usd_per_hour;
    if stands > 0 {
        lines.push(format!(
            "             ${}/hour of it for {} that no pod waits for: bound and gap leave them out",
            usd(stands),
            counted(count(true), "node")
        ));
    }
    if let Some(cost) = report.cost_micro_usd_per_hour {
        let weights = match report.node_fee_micro_usd_per_hour {
            0 => "by the weights given".to_owned(),
            fee => format!("with ${}/hour for each node besides (--node-fee)", usd(fee)),
        };
        lines.push(format!("cost         ${}/hour {weights}", usd(cost)));
    }
    if let Some(bound) = &report.lower_bound {
        let checked = if bound.checked { "proof checked" } else { "proof not checked" };
        let floor = usd(bound.price_micro_usd_per_hour);
        let others = if stands > 0 { " for the other nodes" } else { "" };
        let costs = if report.cost_micro_usd_per_hour.is_some() { " of cost" } else { "" };
        lines.push(format!("lower bound  ${floor}/hour{costs}{others}, {checked}"));
        lines.push(format!("gap          {}", percent_of_ppm(bound.gap_ppm)));
    }
    lines.extend(report.buffers.iter().map(buffer));
    lines.push(format!("prices       {}", source(report)));
    lines.extend(report.violations.iter().map(|v| format!("VIOLATION    {v}")));
    lines.join("\n") + "\n"
}

fn buffer(room: &BufferRoom) -> String {
    let BufferRoom { buffer, in_service, coming, unplaced, reason } = room;
    let all = in_service + coming + unplaced;
    let mut line = format!(
        "buffer       {buffer}: room for {} of {all} pods, {in_service} on nodes in service",
        in_service + coming
    );
    if let Some(reason) = reason {
        line.push('\n');
        tree(&mut line, reason, 7);
        line.truncate(line.trim_end().len());
    }
    line
}

fn source(report: &Report) -> String {
    let shown = report.nodes.iter().filter_map(|group| group.offerings.first());
    let estimated = shown.into_iter().any(|offering| offering.price_estimated);
    let legend = if estimated { "; * estimated, as no source lists it" } else { "" };
    let place = if report.region.is_empty() { "" } else { &format!("{}, ", report.region) };
    format!("{place}{}{legend}", report.price_date)
}

fn unplaced(report: &Report, style: Style) -> String {
    let mut text = style.marked("NOT PLACED", AnsiColor::Red) + "\n";
    for group in &report.unplaced {
        let UnplacedGroup { subject, namespace, count, reason } = group;
        let pods = counted(*count, "pod");
        let _ = writeln!(text, "{pods} of {subject} in namespace {namespace}");
        tree(&mut text, reason, 1);
    }
    text
}

/// A tree of reasons, two blanks a level.
pub fn tree(text: &mut String, reason: &Reason, depth: usize) {
    let Reason { subject, message, causes, .. } = reason;
    let separator = if subject.is_empty() { "" } else { ": " };
    // Writing to a string cannot fail.
    let _ = writeln!(text, "{:indent$}{subject}{separator}{message}", "", indent = 2 * depth);
    for cause in causes {
        tree(text, cause, depth + 1);
    }
}
