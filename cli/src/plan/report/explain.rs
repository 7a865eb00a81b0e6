//! What a plan does with one pod or the pods of one workload.
//!
//! Invariant: every pod that was given has an answer: where it is, where it goes, or why it cannot.

use std::collections::BTreeMap;
use std::fmt;

use longshore_proto::types::v1::{Placement, PodShape, placement::Target};
use serde::Serialize;

use super::units::{counted, usd};
use super::{Context, Reason, text};

/// Names at least this similar (0 to 1, by Jaro and Winkler) are offered instead of an unknown one.
const SIMILARITY_MIN: f64 = 0.7;

/// What becomes of a pod or workload.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Explanation {
    /// What was asked about.
    pub subject: String,
    /// Where its pods go, one line each.
    pub places: Vec<String>,
    /// Why pods of it cannot be placed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<Reason>,
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.subject)?;
        for place in &self.places {
            writeln!(f, "  {place}")?;
        }
        let mut tree = String::new();
        self.reasons.iter().for_each(|reason| text::tree(&mut tree, reason, 1));
        f.write_str(&tree)
    }
}

/// A name that nothing has.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("--explain {name}: no pod or workload of that name is in the input{suggestion}")]
pub struct Unknown {
    name: String,
    suggestion: String,
}

/// Explains the pods whose name, or whose workload's, ends in `name`: `web`, `shop/web`,
/// `Deployment/web` or `shop/Deployment/web`.
///
/// # Errors
/// When there are none.
pub fn explain(context: &Context<'_>, name: &str) -> Result<Explanation, Unknown> {
    let subjects = subjects(context);
    let meant = |full: &&String| {
        let without_kind = full.replacen("/Pod/", "/", 1);
        let short = full.split('/').filter(|part| !KINDS.contains(part)).collect::<Vec<_>>();
        [full.as_str(), &without_kind, &short.join("/")].iter().any(|spelling| {
            *spelling == name || spelling.strip_suffix(name).is_some_and(|rest| rest.ends_with('/'))
        })
    };
    let found: Vec<&String> = subjects.keys().filter(meant).collect();
    let Some(first) = found.first() else { return Err(unknown(name, subjects.keys())) };
    let pods: Vec<&Asked<'_>> = found.iter().flat_map(|full| &subjects[*full]).collect();
    let mut places = BTreeMap::new();
    for pod in &pods {
        for (line, count) in pod.places(context) {
            *places.entry(line).or_default() += count;
        }
    }
    let shapes: Vec<&str> = pods.iter().map(|pod| pod.shape.shape_id.as_str()).collect();
    let left = context.answer.unplaced.iter();
    let left = left.filter(|left| {
        let named = left.pods.is_empty() || pods.iter().any(|pod| left.pods.contains(&pod.pod));
        named && shapes.contains(&left.shape_id.as_str())
    });
    let lines = places
        .into_iter()
        .map(|(line, count): (String, u32)| format!("{} {line}", counted(count, "pod")));
    Ok(Explanation {
        subject: (*first).clone(),
        places: lines.collect(),
        reasons: left.filter_map(|left| left.reason.as_ref()).map(Reason::from).collect(),
    })
}

const KINDS: [&str; 5] = ["Pod", "Deployment", "StatefulSet", "ReplicaSet", "Job"];

/// One pod, or the counted pods of a shape.
struct Asked<'a> {
    /// UID, or the shape's id for counted pods.
    pod: String,
    shape: &'a PodShape,
    /// Node it is bound to.
    bound: Option<&'a str>,
}

impl Asked<'_> {
    fn places(&self, context: &Context<'_>) -> Vec<(String, u32)> {
        if let Some(node) = self.bound {
            return vec![(format!("bound to node {node}"), 1)];
        }
        let own = context.answer.placements.iter().filter(|p| p.pod == self.pod);
        own.map(|placement| (line(context, placement), placement.count.max(1))).collect()
    }
}

fn line(context: &Context<'_>, placement: &Placement) -> String {
    match &placement.target {
        Some(Target::Node(node)) => format!("to node {node}"),
        Some(Target::Claim(claim)) => format!("to the node that NodeClaim {claim} is waiting for"),
        Some(Target::Planned(index)) => {
            let node = usize::try_from(*index).ok().and_then(|at| context.answer.nodes.get(at));
            node.map(|node| new_node(context, node)).unwrap_or_default()
        }
        None => "nowhere".to_owned(),
    }
}

fn new_node(context: &Context<'_>, node: &longshore_proto::types::v1::PlannedNode) -> String {
    let Some(candidate) = node.candidates.first() else { return "to a new node".to_owned() };
    let offering = context.offering(&node.pool, candidate);
    let others = node.candidates.len() - 1;
    let others = match others {
        0 => "the only offering that will do".to_owned(),
        1 => "or 1 other offering".to_owned(),
        n => format!("or one of {n} other offerings"),
    };
    format!(
        "to new nodes of NodePool {}: {} {} in {} at ${}/hour, {others}",
        node.pool,
        offering.instance_type,
        offering.capacity_type,
        offering.zone,
        usd(offering.price_micro_usd_per_hour)
    )
}

/// Everything that can be asked about, as `namespace/Kind/name`.
fn subjects<'a>(context: &Context<'a>) -> BTreeMap<String, Vec<Asked<'a>>> {
    let mut subjects: BTreeMap<String, Vec<Asked<'a>>> = BTreeMap::new();
    for pod in context.pods.values() {
        let Some(shape) = context.shapes.get(pod.shape_id.as_str()).copied() else { continue };
        let bound = Some(pod.node_name.as_str()).filter(|node| !node.is_empty());
        let asked = || Asked { pod: pod.uid.clone(), shape, bound };
        let (namespace, name) = (&pod.namespace, &pod.name);
        subjects.entry(format!("{namespace}/Pod/{name}")).or_default().push(asked());
        if !shape.owner.is_empty() {
            subjects.entry(format!("{namespace}/{}", shape.owner)).or_default().push(asked());
        }
    }
    for counted in &context.question.pods {
        let Some(shape) = context.shapes.get(counted.shape_id.as_str()).copied() else { continue };
        let asked = Asked { pod: counted.shape_id.clone(), shape, bound: None };
        let subject = format!("{}/{}", shape.namespace, shape.owner);
        subjects.entry(subject).or_default().push(asked);
    }
    subjects
}

fn unknown<'a>(name: &str, known: impl Iterator<Item = &'a String>) -> Unknown {
    let last = |full: &str| full.rsplit('/').next().unwrap_or_default().to_owned();
    let score = |full: &String| strsim::jaro_winkler(&last(name), &last(full));
    let best = known.max_by(|a, b| score(a).total_cmp(&score(b)));
    let close = best.filter(|full| score(full) >= SIMILARITY_MIN);
    let suggestion = close.map(|full| format!("; did you mean {full}?")).unwrap_or_default();
    Unknown { name: name.to_owned(), suggestion }
}
