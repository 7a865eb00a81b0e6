//! `longshore doctor`: what in a cluster keeps nodes from coming up, joining or going away.
//!
//! Invariant: checks are pure functions over what was read; only [`fetch`] talks to the cluster and
//! only [`ask`] to AWS, and only to read. Each finding names the object, shows the evidence and
//! says what mends it.

mod account;
mod ask;
mod autoscaling;
mod conditions;
mod definitions;
mod facts;
mod fetch;
mod identity;
mod karpenter;
mod legacy;
mod network;
mod placement;
mod pools;
mod queue;
mod rights;
mod slips;
mod takeover;

use std::fmt::Write as _;

use clap::builder::styling::AnsiColor;
use serde::Serialize;

use crate::args::{DoctorArgs, Output};
use crate::terminal::{Answer, Ending, Style};
use account::Account;
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

/// A check: its name, what it finds, and whether it looks at nothing but AWS.
struct Check {
    name: &'static str,
    find: fn(&Facts) -> Vec<Finding>,
    of_aws: bool,
}

const fn of_cluster(name: &'static str, find: fn(&Facts) -> Vec<Finding>) -> Check {
    Check { name, find, of_aws: false }
}

const fn of_aws(name: &'static str, find: fn(&Facts) -> Vec<Finding>) -> Check {
    Check { name, find, of_aws: true }
}

/// All checks, in the order of the way from an object to a running pod.
const CHECKS: [Check; 19] = [
    of_cluster("Karpenter does not run beside Longshore", karpenter::check),
    of_cluster("custom resource definitions", definitions::check),
    of_cluster("objects of the first API", legacy::check),
    of_cluster("fields that nobody reads", slips::unknown_fields),
    of_cluster("fields that are not acted on yet", slips::unread_fields),
    of_cluster("pools without limits", slips::no_limits),
    of_cluster("pools name node classes that exist", pools::missing_classes),
    of_aws("node classes find subnets, groups and role", network::resolved),
    of_aws("subnets have room and tags", network::subnets),
    of_aws("pools have subnets in their zones", network::zones),
    of_cluster("node classes, pools and claims are ready", conditions::check),
    of_cluster("nodes may join", identity::node_roles),
    of_cluster("service accounts", identity::service_accounts),
    of_aws("interruption queue", queue::check),
    of_aws("spot may be used", queue::spot_role),
    of_cluster("own pods stay off managed nodes", placement::own_pods),
    of_cluster("CoreDNS can run", placement::core_dns),
    of_cluster("autoscalers against pool limits", autoscaling::check),
    of_cluster("budgets that block every drain", placement::blocking_budgets),
];

/// What a check came to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Outcome {
    check: &'static str,
    /// Nothing could be looked at.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    skipped: bool,
    findings: Vec<Finding>,
}

#[derive(Debug, Serialize)]
struct Report {
    checks: Vec<Outcome>,
    /// What could not be read; checks that need it saw nothing.
    unread: Vec<String>,
}

/// Answers `longshore doctor`.
pub async fn run(args: &DoctorArgs, style: Style) -> Answer {
    if args.rights {
        return rights::answer(args.output, style);
    }
    let mut facts = match fetch::fetch(args).await {
        Ok(facts) => facts,
        Err(error) => return Answer::error(Ending::Failed, &format!("{error:#}")),
    };
    let unasked = match ask::ask(args, &facts).await {
        Ok(account) => {
            facts.put_account(account);
            None
        }
        Err(why) => Some(format!("AWS was not asked: {why}")),
    };
    if args.takeover {
        return takeover::answer(&facts, unasked, args.output, style);
    }
    answer(&facts, unasked, args.output, style)
}

fn answer(facts: &Facts, unasked: Option<String>, output: Output, style: Style) -> Answer {
    let checks = CHECKS.iter().map(|check| {
        let skipped = check.of_aws && facts.account().is_none();
        Outcome { check: check.name, skipped, findings: (check.find)(facts) }
    });
    let refused = facts.account().map(Account::refused).unwrap_or_default();
    let unread = facts.unread().into_iter().chain(refused).chain(unasked).collect();
    let report = Report { checks: checks.collect(), unread };
    let sick = report.checks.iter().any(|outcome| !outcome.findings.is_empty());
    let remarks = report.unread.iter().map(|unread| format!("note: {unread}")).collect();
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
    for outcome in &report.checks {
        let worst = outcome.findings.iter().map(|finding| finding.severity).min();
        let mark = match worst {
            None if outcome.skipped => "skipped".to_owned(),
            None => style.marked("ok     ", AnsiColor::Green),
            Some(Severity::Advice) => style.marked("advice ", AnsiColor::Yellow),
            Some(Severity::Problem) => style.marked("PROBLEM", AnsiColor::Red),
        };
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{mark}  {}", outcome.check);
        for finding in &outcome.findings {
            let _ = writeln!(text, "         {}: {}", finding.object, finding.message);
            let _ = writeln!(text, "           seen: {}", finding.evidence);
            let remedy = finding.remedy.trim_end().replace('\n', "\n                 ");
            let _ = writeln!(text, "           mend: {remedy}");
        }
    }
    let _ = writeln!(text, "\n{}", summary(report));
    text
}

fn summary(report: &Report) -> String {
    let findings = report.checks.iter().flat_map(|outcome| &outcome.findings);
    let count = |severity| findings.clone().filter(|it| it.severity == severity).count();
    let (problems, advice) = (count(Severity::Problem), count(Severity::Advice));
    let skipped = report.checks.iter().filter(|outcome| outcome.skipped).count();
    let looked = report.checks.len() - skipped;
    let skipped = if skipped > 0 { format!(", {skipped} skipped") } else { String::new() };
    match (problems, advice) {
        (0, 0) => format!("{looked} checks, all well{skipped}"),
        _ => format!("{looked} checks: problems {problems}, advice {advice}{skipped}"),
    }
}

#[cfg(test)]
mod tests;
