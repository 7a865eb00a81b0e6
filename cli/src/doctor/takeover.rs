//! `longshore doctor --takeover`: what of Karpenter's would be taken over, what not, and why.
//!
//! Invariant: pure functions over what was read; a row for each object that Karpenter made or was
//! told, judged by the code that judges it after the takeover: the watcher's reading, the
//! actuator's tags.

mod claims;
mod nodes;
mod report;

use longshore_watcher::api::{self, AWSNodeTemplate, EC2NodeClass, Provisioner, crd};
use longshore_watcher::project::{legacy, node_class, node_template, pool};
use serde::Serialize;
use serde_json::Value;

use super::facts::{Facts, Kind, name};
use super::karpenter;
use crate::args::Output;
use crate::terminal::{Answer, Style};

/// What becomes of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// It is taken over; no pod is touched.
    Adopted,
    /// It is taken over, and something about it should be known.
    AdoptedWithNote,
    /// It stays as it is, and is never ended by Longshore.
    LeftAlone,
}

/// An object and what becomes of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Row {
    /// The object, as `Kind/name`.
    pub object: String,
    /// Its node; empty when it has none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub node: String,
    /// Its instance; empty when it has none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub instance: String,
    /// What becomes of it.
    pub verdict: Verdict,
    /// Why; empty for what is simply taken over.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub why: String,
    /// What to do about it; empty for nothing.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub remedy: String,
}

impl Row {
    fn adopted(object: String) -> Self {
        let (node, instance, why) = (String::new(), String::new(), String::new());
        Self { object, node, instance, verdict: Verdict::Adopted, why, remedy: String::new() }
    }

    /// The same with a verdict that has a reason and a way out.
    fn but(self, verdict: Verdict, why: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { verdict, why: why.into(), remedy: remedy.into(), ..self }
    }
}

/// Everything.
#[derive(Debug, Serialize)]
struct Report {
    /// Leases of a Karpenter that runs, with their holders.
    karpenter: Vec<String>,
    rows: Vec<Row>,
    /// What could not be read; rows that need it say less.
    unread: Vec<String>,
}

/// Answers `longshore doctor --takeover`.
pub fn answer(facts: &Facts, unasked: Option<String>, output: Output, style: Style) -> Answer {
    let alive = karpenter::held(facts).into_iter().filter(|held| held.alive);
    let karpenter = alive.map(|held| format!("{}: {}", held.lease, karpenter::evidence(&held)));
    let refused = facts.account().map(super::Account::refused).unwrap_or_default();
    let unread = facts.unread().into_iter().chain(refused).chain(unasked).collect();
    let report = Report { karpenter: karpenter.collect(), rows: rows(facts), unread };
    report::print(&report, output, style)
}

fn rows(facts: &Facts) -> Vec<Row> {
    let pools = facts.of(Kind::NodePool).map(|it| node_pool(facts, it));
    let legacy = facts.of(Kind::Provisioner).map(|it| provisioner(facts, it));
    let classes = facts.of(Kind::EC2NodeClass).map(class);
    let templates = facts.of(Kind::AWSNodeTemplate).map(template);
    let policy = pools.chain(legacy).chain(classes).chain(templates);
    policy.chain(claims::rows(facts)).chain(nodes::rows(facts)).collect()
}

const UNREADABLE: &str = "it cannot be read";

fn unreadable(row: Row, error: impl std::fmt::Display) -> Row {
    let why =
        format!("{UNREADABLE}: {error}; while that is so, nothing that it may concern is ended");
    row.but(Verdict::LeftAlone, why, "mend the field that is named")
}

fn node_pool(facts: &Facts, object: &Value) -> Row {
    let row = Row::adopted(name("NodePool", object));
    let read = crd::decode::<api::NodePool>(object.clone()).map_err(|error| error.to_string());
    let read = read.and_then(|read| pool::pool(&read).map_err(|fault| fault.to_string()));
    match read {
        Err(error) => unreadable(row, error),
        Ok(read) if !has_class(facts, &read.node_class) => without_class(row, &read.node_class),
        Ok(_) => row,
    }
}

fn provisioner(facts: &Facts, object: &Value) -> Row {
    let row = Row::adopted(name("Provisioner", object));
    let read = crd::decode::<Provisioner>(object.clone());
    let templates = facts.of(Kind::AWSNodeTemplate).filter_map(|it| crd::decode(it.clone()).ok());
    let templates: Vec<AWSNodeTemplate> = templates.collect();
    let read = read.map_err(|error| error.to_string()).and_then(|read| {
        let named = legacy::template_name(&read.spec);
        let template = templates.iter().find(|it| it.metadata.name.as_deref() == named);
        legacy::provisioner(&read, template).map_err(|fault| fault.to_string())
    });
    match read {
        Err(error) => unreadable(row, error),
        Ok(read) if read.class.is_none() && !has_class(facts, &read.pool.node_class) => {
            without_class(row, &read.pool.node_class)
        }
        Ok(_) => row,
    }
}

fn without_class(row: Row, class: &str) -> Row {
    let why = format!("it names {class}, which is not there: nothing is launched for it");
    row.but(Verdict::AdoptedWithNote, why, format!("create {class}, or name another"))
}

/// Whether a node class of this name, as Kind/name, is there.
fn has_class(facts: &Facts, class: &str) -> bool {
    let of = |kind, text| facts.of(kind).any(|it| name(text, it) == class);
    of(Kind::EC2NodeClass, "EC2NodeClass") || of(Kind::AWSNodeTemplate, "AWSNodeTemplate")
}

fn class(object: &Value) -> Row {
    let row = Row::adopted(name("EC2NodeClass", object));
    let read = crd::decode::<EC2NodeClass>(object.clone()).map_err(|error| error.to_string());
    let read =
        read.and_then(|read| node_class::ec2_node_class(&read).map_err(|fault| fault.to_string()));
    read.err().map_or_else(|| row.clone(), |error| unreadable(row.clone(), error))
}

fn template(object: &Value) -> Row {
    let row = Row::adopted(name("AWSNodeTemplate", object));
    let read = crd::decode::<AWSNodeTemplate>(object.clone()).map_err(|error| error.to_string());
    let read = read
        .and_then(|read| node_template::node_template(&read).map_err(|fault| fault.to_string()));
    read.err().map_or_else(|| row.clone(), |error| unreadable(row.clone(), error))
}
