//! `longshore audit`: what was done for clusters, and what was refused.
//!
//! Invariant: entries are printed as the actuator recorded them, oldest first.

use std::time::SystemTime;

use comfy_table::Table;
use jiff::Timestamp;
use longshore_proto::capacity::v1::capacity_service_client::CapacityServiceClient;
use longshore_proto::capacity::v1::{AuditEntry, AuditKind, ReadAuditRequest};
use longshore_proto::time::time_ms;
use longshore_proto::types::v1::CapacityType;
use longshore_runtime::tls::Server;
use serde::Serialize;

use crate::args::{AuditArgs, Output};
use crate::plan::report::units::usd;
use crate::services::channel;
use crate::terminal::{Answer, Ending, Style, table_text};

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("{0:#}")]
    Endpoint(anyhow::Error),
    #[error("{actuator} does not show its audit record: {status}")]
    Refused { actuator: String, status: String },
    #[error("the answer cannot be written as JSON: {0}")]
    Json(#[from] serde_json::Error),
}

/// Answers `longshore audit`.
pub async fn run(args: &AuditArgs, style: Style) -> Answer {
    let answer = match read(args).await {
        Ok(entries) => told(&entries, args, style),
        Err(error) => Err(error),
    };
    answer.unwrap_or_else(|error| {
        let input = matches!(error, Error::Endpoint(_));
        Answer::error(if input { Ending::BadInput } else { Ending::Failed }, &error)
    })
}

async fn read(args: &AuditArgs) -> Result<Vec<AuditEntry>, Error> {
    let channel = channel(Server::Actuator, ("--actuator", &args.actuator), &args.tls)
        .map_err(Error::Endpoint)?;
    let from = SystemTime::now().checked_sub(*args.since).unwrap_or(SystemTime::UNIX_EPOCH);
    let request =
        ReadAuditRequest { cluster_ids: args.clusters.clone(), from_time: Some(from.into()) };
    let refused = |status: tonic::Status| Error::Refused {
        actuator: args.actuator.clone(),
        status: format!("{} ({})", status.message(), status.code()),
    };
    let answer = CapacityServiceClient::new(channel).read_audit(request).await.map_err(refused)?;
    let (mut pages, mut entries) = (answer.into_inner(), Vec::new());
    while let Some(page) = pages.message().await.map_err(refused)? {
        entries.extend(page.entries);
    }
    Ok(entries)
}

/// An entry as it is shown.
#[derive(Serialize)]
struct Row<'a> {
    time: String,
    what: &'static str,
    cluster: &'a str,
    caller: &'a str,
    plan: &'a str,
    launch: &'a str,
    claim: &'a str,
    instance: &'a str,
    instance_type: &'a str,
    zone: &'a str,
    capacity_type: &'static str,
    micro_usd_per_hour: i64,
    reason: &'a str,
    message: &'a str,
    traceparent: &'a str,
}

impl<'a> From<&'a AuditEntry> for Row<'a> {
    fn from(entry: &'a AuditEntry) -> Self {
        let at = entry.time.as_ref().map_or(0, time_ms);
        Self {
            time: Timestamp::from_millisecond(at).map_or_else(
                |_| String::new(),
                |time| time.strftime("%Y-%m-%d %H:%M:%SZ").to_string(),
            ),
            what: match entry.kind() {
                AuditKind::Unspecified => "unknown",
                AuditKind::Launched => "launched",
                AuditKind::Ended => "ended",
                AuditKind::Gone => "gone",
                AuditKind::Failed => "failed",
                AuditKind::Refused => "refused",
            },
            cluster: &entry.cluster_id,
            caller: &entry.caller,
            plan: &entry.plan_id,
            launch: &entry.launch_id,
            claim: &entry.claim,
            instance: &entry.instance_id,
            instance_type: &entry.instance_type,
            zone: &entry.zone,
            capacity_type: match entry.capacity_type() {
                CapacityType::Spot => "spot",
                CapacityType::OnDemand => "on-demand",
                CapacityType::Reserved => "reserved",
                CapacityType::Unspecified => "",
            },
            micro_usd_per_hour: entry.micro_usd_per_hour,
            reason: &entry.reason,
            message: &entry.message,
            traceparent: &entry.traceparent,
        }
    }
}

fn told(entries: &[AuditEntry], args: &AuditArgs, style: Style) -> Result<Answer, Error> {
    let refused = |entry: &&AuditEntry| {
        !args.refused || matches!(entry.kind(), AuditKind::Failed | AuditKind::Refused)
    };
    let rows: Vec<Row<'_>> = entries.iter().filter(refused).map(Row::from).collect();
    let text = match args.output {
        Output::Json => serde_json::to_string_pretty(&rows)? + "\n",
        Output::Table if rows.is_empty() => format!("nothing in the last {}\n", args.since),
        Output::Table => table_text(&table(&rows, style)),
    };
    Ok(Answer { text, ..Answer::default() })
}

fn table(rows: &[Row<'_>], style: Style) -> Table {
    let header = ["TIME", "WHAT", "CLUSTER", "OF", "IS", "$/H", "BY", "WHY"];
    let mut table = style.table(&header);
    for row in rows {
        let of = [row.claim, row.instance, row.launch].into_iter().find(|name| !name.is_empty());
        let is = [row.instance_type, row.zone, row.capacity_type].join(" ");
        let price = (row.micro_usd_per_hour > 0).then(|| usd(row.micro_usd_per_hour));
        let by = [row.caller, row.plan].map(str::to_owned);
        let why = [row.reason, row.message].into_iter().filter(|text| !text.is_empty());
        table.add_row([
            row.time.clone(),
            row.what.to_owned(),
            row.cluster.to_owned(),
            of.unwrap_or_default().to_owned(),
            is.trim().to_owned(),
            price.unwrap_or_default(),
            by.into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join(", plan "),
            why.collect::<Vec<_>>().join(": "),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use longshore_proto::time::timestamp;
    use longshore_runtime::tls::TlsArgs;

    use super::*;

    fn args() -> AuditArgs {
        AuditArgs {
            actuator: String::new(),
            clusters: Vec::new(),
            since: std::time::Duration::from_secs(86_400).into(),
            refused: false,
            output: Output::Table,
            tls: TlsArgs::default(),
        }
    }

    fn entries() -> [AuditEntry; 2] {
        let entry = AuditEntry {
            time: Some(timestamp(1_790_000_000_000)),
            cluster_id: "prod".to_owned(),
            caller: "longshore://scheduler at 10.0.0.1".to_owned(),
            plan_id: "p-1".to_owned(),
            claim: "web-x1".to_owned(),
            ..AuditEntry::default()
        };
        let launched = AuditEntry {
            kind: AuditKind::Launched.into(),
            instance_id: "i-1".to_owned(),
            instance_type: "m5.large".to_owned(),
            zone: "us-east-1a".to_owned(),
            capacity_type: CapacityType::OnDemand.into(),
            micro_usd_per_hour: 96_000,
            ..entry.clone()
        };
        let failed = AuditEntry {
            kind: AuditKind::Failed.into(),
            reason: "DENIED_BY_POLICY".to_owned(),
            message: "cluster prod would have 3 nodes".to_owned(),
            ..entry
        };
        [launched, failed]
    }

    #[test]
    fn who_asked_what_came_of_it_and_what_it_costs_is_one_line() {
        let answer = told(&entries(), &args(), Style::default()).unwrap();
        let lines: Vec<_> = answer.text.lines().skip(1).collect();
        let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(
            lines.into_iter().map(words).collect::<Vec<_>>(),
            [
                "2026-09-21 14:13:20Z launched prod web-x1 m5.large us-east-1a on-demand 0.0960 \
                 longshore://scheduler at 10.0.0.1, plan p-1",
                "2026-09-21 14:13:20Z failed prod web-x1 longshore://scheduler at 10.0.0.1, plan \
                 p-1 DENIED_BY_POLICY: cluster prod would have 3 nodes",
            ]
        );
    }

    #[test]
    fn only_what_was_refused_is_shown_where_that_is_asked_for() {
        let only = AuditArgs { refused: true, output: Output::Json, ..args() };
        let answer = told(&entries(), &only, Style::default()).unwrap();
        let json: serde_json::Value = serde_json::from_str(&answer.text).unwrap();
        assert_eq!((json.as_array().map(Vec::len), &json[0]["what"]), (Some(1), &"failed".into()));
        let none = told(&[], &args(), Style::default()).unwrap();
        assert_eq!(none.text, "nothing in the last 1day\n");
    }
}
