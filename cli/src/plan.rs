//! `longshore plan`: what would be launched for the pods of some manifests, at which price, and why
//! not for the rest. No cluster and no cloud account is asked.
//!
//! Invariant: one straight line, the same as in production: documents, the watcher's projection,
//! the actuator's catalogue over facts compiled in, the scheduler's `compute`, a report.

mod catalogue;
mod region;
pub mod report;

use std::collections::BTreeMap;
use std::path::Path;

use longshore_ec2_data::Dataset;
use longshore_manifests::{inventory, manifest, neutral};
use longshore_proto::planning::v1::ComputePlanResponse;
use longshore_proto::types::v1::object::Kind;
use longshore_proto::types::v1::{Catalogue, NodeClass, Object};
use longshore_scheduler::compute::{Question, compute};

use crate::args::{Output, PlanArgs};
use crate::terminal::{Answer, Ending, Style};
use report::Context;
use report::units::duration_micros;

/// Why no plan can be made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file cannot be read.
    #[error(transparent)]
    Manifest(#[from] manifest::Error),
    /// Objects cannot be used.
    #[error(transparent)]
    Objects(#[from] inventory::Faults),
    /// A catalogue or workload of numbers cannot be used.
    #[error(transparent)]
    Neutral(#[from] neutral::Error),
    /// The region is not clear.
    #[error(transparent)]
    Region(#[from] region::Ambiguous),
    /// There are no facts about the region.
    #[error("--region: {0}")]
    Data(#[from] longshore_ec2_data::DataError),
    /// There is no pool.
    #[error(
        "{0}: no NodePool (karpenter.sh/v1) or Provisioner among the objects; add one, or no node \
         may be launched"
    )]
    NoPool(String),
    /// The planner refuses an object.
    #[error("{0}; mend the object and try again")]
    Refused(#[from] longshore_scheduler::wire::WireError),
    /// The pod to explain is unknown.
    #[error(transparent)]
    Unknown(#[from] report::explain::Unknown),
    /// The report cannot be written as JSON.
    #[error("the plan cannot be written as JSON: {0}")]
    Json(#[from] serde_json::Error),
}

/// A question, and what is to be said beside its answer.
#[derive(Default)]
struct Asked {
    question: Question,
    region: String,
    warnings: Vec<String>,
    remarks: Vec<String>,
}

/// Answers `longshore plan`.
#[must_use]
pub fn run(args: &PlanArgs, style: Style) -> Answer {
    answer(args, style).unwrap_or_else(|error| Answer::error(Ending::BadInput, &error))
}

fn answer(args: &PlanArgs, style: Style) -> Result<Answer, Error> {
    let mut asked = match (&args.catalogue, &args.workload) {
        (Some(catalogue), Some(workload)) => from_numbers(catalogue, workload)?,
        (Some(catalogue), None) => from_both(args, catalogue)?,
        (None, _) => from_manifests(args)?,
    };
    asked.question.settings = args.settings.settings();
    if let Some(name) = &args.explain {
        let nothing = ComputePlanResponse::default();
        let explain = report::explain::asks(&Context::new(&asked.question, &nothing), name)?;
        asked.question.explain = explain;
    }
    let response = compute(&asked.question)?;
    let context = Context::new(&asked.question, &response);
    let mut report = context.report();
    report.region = asked.region;
    report.warnings = asked.warnings;
    if args.steps {
        report.steps = response.steps.iter().map(report::Step::from).collect();
    }
    report.explanation =
        args.explain.as_deref().map(|name| report::explain::explain(&context, name)).transpose()?;
    let crowded = report.buffers.iter().any(|buffer| buffer.unplaced > 0);
    let attention = report.pods.unplaced > 0 || crowded || !report.violations.is_empty();
    let warnings = report.warnings.iter().map(|warning| format!("warning: {warning}"));
    let took = duration_micros(report.plan_micros);
    let remarks = asked.remarks.into_iter().chain([format!("planned in {took}")]);
    let remarks = warnings.chain(remarks.map(|remark| format!("note: {remark}"))).collect();
    let text = match args.output {
        Output::Table => report::text::text(&report, style),
        Output::Json => serde_json::to_string_pretty(&report)? + "\n",
    };
    let ending = if attention { Ending::Attention } else { Ending::Well };
    Ok(Answer { text, remarks, ending })
}

fn from_numbers(catalogue: &Path, workload: &Path) -> Result<Asked, Error> {
    let (objects, pods) = neutral::objects(&neutral::demand(workload)?);
    let catalogue = neutral::catalogue(catalogue)?;
    let question = Question { objects, pods, catalogue, ..Question::default() };
    Ok(Asked { question, ..Asked::default() })
}

/// Every pool buys from the given catalogue, whatever its node class.
fn from_both(args: &PlanArgs, catalogue: &Path) -> Result<Asked, Error> {
    let inventory = inventory::take(manifest::read(&args.files)?)?;
    let catalogue = neutral::catalogue(catalogue)?;
    let is_pool = |object: &Object| matches!(object.kind, Some(Kind::NodePool(_)));
    if !inventory.objects.iter().any(is_pool) {
        return Err(no_pool(args));
    }
    let (objects, pods) = (inventory.objects, inventory.pods);
    let question = Question { objects, pods, catalogue, ..Question::default() };
    Ok(Asked { question, warnings: inventory.warnings, ..Asked::default() })
}

fn no_pool(args: &PlanArgs) -> Error {
    let files = args.files.iter().map(|file| file.display().to_string());
    Error::NoPool(files.collect::<Vec<_>>().join(", "))
}

fn from_manifests(args: &PlanArgs) -> Result<Asked, Error> {
    let inventory = inventory::take(manifest::read(&args.files)?)?;
    let facts = Dataset::embedded()?;
    let known: Vec<&str> = facts.regions().collect();
    let choice = region::choose(args.region.as_deref(), &inventory.objects, &known)?;
    let mut warnings = inventory.warnings;
    let classes = classes(&inventory.objects, &mut warnings);
    if classes.is_empty() {
        return Err(no_pool(args));
    }
    let mut remarks: Vec<String> = choice.remark.into_iter().collect();
    remarks.extend(classes.values().filter_map(beyond_files));
    let market = catalogue::market(&choice.region)?;
    let catalogues = classes.into_iter().map(|(name, class)| {
        let built = catalogue::of_class(&class, &choice.region, &market);
        built.map(|catalogue| (name, catalogue))
    });
    let catalogues: BTreeMap<String, Catalogue> = catalogues.collect::<Result<_, _>>()?;
    if facts.region(&choice.region)?.offerings_estimated() {
        remarks.push(format!(
            "no source says which zone of {} sells what: all are taken to sell all",
            choice.region
        ));
    }
    let objects = inventory.objects;
    let question = Question { objects, pods: inventory.pods, catalogues, ..Question::default() };
    Ok(Asked { question, region: choice.region, warnings, remarks })
}

/// What of a class no file tells.
fn beyond_files(class: &NodeClass) -> Option<String> {
    let selects = !class.capacity_reservation_terms.is_empty();
    selects.then(|| {
        format!(
            "{}: planned without its capacity reservations; only EC2 knows what is left in them",
            class.name
        )
    })
}

/// Node classes that pools name; one that is missing is taken to be AL2023 as it comes.
fn classes(objects: &[Object], warnings: &mut Vec<String>) -> BTreeMap<String, NodeClass> {
    let kinds = || objects.iter().filter_map(|object| object.kind.as_ref());
    let given: BTreeMap<&str, &NodeClass> = kinds()
        .filter_map(|kind| if let Kind::NodeClass(class) = kind { Some(class) } else { None })
        .map(|class| (class.name.as_str(), class))
        .collect();
    let mut classes = BTreeMap::new();
    for kind in kinds() {
        let Kind::NodePool(pool) = kind else { continue };
        let class = given.get(pool.node_class.as_str()).map(|class| (*class).clone());
        let class = class.unwrap_or_else(|| {
            warnings.push(format!(
                "NodePool/{}: {} is not among the objects: it counts as AL2023 with default \
                 settings; add it to the files",
                pool.name, pool.node_class
            ));
            let ami_family = "AL2023".to_owned();
            NodeClass { name: pool.node_class.clone(), ami_family, ..NodeClass::default() }
        });
        classes.insert(pool.node_class.clone(), class);
    }
    classes
}

#[cfg(test)]
mod tests;
