//! `longshore doctor`: what in a cluster keeps nodes from coming up, joining or going away.
//!
//! Invariant: checks are pure functions over fetched objects; only [`fetch`] talks to the cluster,
//! and only to read. Each finding names the object, shows the evidence and says what mends it.

mod autoscaling;
mod conditions;
mod definitions;
mod facts;
mod fetch;
mod identity;
mod legacy;
mod placement;
mod slips;

use std::fmt::Write as _;

use clap::builder::styling::AnsiColor;
use serde::Serialize;

use crate::args::{DoctorArgs, Output};
use crate::terminal::{Answer, Ending, Style};
use facts::Facts;

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Nodes or pods fail because of it.
    Problem,
    /// It works, though probably not as meant.
    Advice,
}

/// Something that needs attention.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// The object, as `Kind/name` or `Kind/namespace/name`.
    pub object: String,
    /// What is wrong with it.
    pub message: String,
    /// What shows it.
    pub evidence: String,
    /// Command, or manifest, that mends it.
    pub remedy: String,
}

/// A check: its name, and what it finds.
type Check = (&'static str, fn(&Facts) -> Vec<Finding>);

/// All checks, in the order of the way from an object to a running pod.
const CHECKS: [Check; 11] = [
    ("custom resource definitions", definitions::check),
    ("objects of the first API", legacy::check),
    ("fields that nobody reads", slips::unknown_fields),
    ("pools without limits", slips::no_limits),
    ("node classes and pools ready", conditions::check),
    ("node role may join", identity::node_roles),
    ("service accounts", identity::service_accounts),
    ("own pods apart from managed nodes", placement::own_pods),
    ("CoreDNS can run", placement::core_dns),
    ("autoscalers against pool limits", autoscaling::check),
    ("budgets that block every drain", placement::blocking_budgets),
];

/// What a check came to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Outcome {
    check: &'static str,
    findings: Vec<Finding>,
}

#[derive(Debug, Serialize)]
struct Report {
    checks: Vec<Outcome>,
    /// Kinds that could not be read; checks that need them saw nothing.
    unread: Vec<String>,
}

/// Answers `longshore doctor`.
pub async fn run(args: &DoctorArgs, style: Style) -> Answer {
    match fetch::fetch(args).await {
        Ok(facts) => answer(&facts, args.output, style),
        Err(error) => Answer::error(Ending::Failed, &format!("{error:#}")),
    }
}

fn answer(facts: &Facts, output: Output, style: Style) -> Answer {
    let checks = CHECKS.iter().map(|(check, find)| Outcome { check, findings: find(facts) });
    let report = Report { checks: checks.collect(), unread: facts.unread() };
    let sick = report.checks.iter().any(|outcome| !outcome.findings.is_empty());
    let remarks = report.unread.iter().map(|unread| format!("warning: {unread}")).collect();
    let text = match output {
        Output::Table => text(&report, style),
        Output::Json => match serde_json::to_string_pretty(&report) {
            Ok(json) => json + "\n",
            Err(error) => return Answer::error(Ending::Failed, &error),
        },
    };
    let ending = if sick { Ending::Attention } else { Ending::Well };
    Answer { text, remarks, ending }
}

fn text(report: &Report, style: Style) -> String {
    let mut text = String::new();
    for Outcome { check, findings } in &report.checks {
        let worst = findings.iter().map(|finding| finding.severity).min();
        let mark = match worst {
            None => style.marked("ok     ", AnsiColor::Green),
            Some(Severity::Advice) => style.marked("advice ", AnsiColor::Yellow),
            Some(Severity::Problem) => style.marked("PROBLEM", AnsiColor::Red),
        };
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{mark}  {check}");
        for finding in findings {
            let _ = writeln!(text, "         {}: {}", finding.object, finding.message);
            let _ = writeln!(text, "           seen: {}", finding.evidence);
            let remedy = finding.remedy.trim_end().replace('\n', "\n             ");
            let _ = writeln!(text, "           mend: {remedy}");
        }
    }
    text
}

#[cfg(test)]
mod tests;
