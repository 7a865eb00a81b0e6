//! What a plan does with one pod or the pods of one workload.
//!
//! Invariant: every pod that was given has an answer: where it is, where it goes, or why it cannot.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use longshore_proto::types::v1::PodShape;
use serde::Serialize;

use super::why::Why;
use super::{Context, Reason, text};

/// Names at least this similar (0 to 1, by Jaro and Winkler) are offered instead of an unknown one.
const SIMILARITY_MIN: f64 = 0.7;

/// What becomes of a pod or workload.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Explanation {
    /// What was asked about.
    pub subject: String,
    /// Where its pods go, why there, and what one more costs; an entry for each kind of pod.
    pub why: Vec<Why>,
    /// Why pods of it cannot be placed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<Reason>,
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.subject)?;
        self.why.iter().try_for_each(|why| why.fmt(f))?;
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
    let (subject, pods) = find(context, name)?;
    let shapes: Vec<&str> = pods.iter().map(|pod| pod.shape.shape_id.as_str()).collect();
    let left = context.answer.unplaced.iter();
    let left = left.filter(|left| {
        let named = left.pods.is_empty() || pods.iter().any(|pod| left.pods.contains(&pod.pod));
        named && shapes.contains(&left.shape_id.as_str())
    });
    let why = context.answer.explanations.iter().map(|told| Why::of(told, context));
    Ok(Explanation {
        subject,
        why: why.collect(),
        reasons: left.filter_map(|left| left.reason.as_ref()).map(Reason::from).collect(),
    })
}

/// What is asked of the planner about a name: the one pod, or the shapes of its pods.
///
/// # Errors
/// When there are none.
pub fn asks(context: &Context<'_>, name: &str) -> Result<Vec<String>, Unknown> {
    let (_, pods) = find(context, name)?;
    if let [one] = &pods[..] {
        return Ok(vec![one.pod.clone()]);
    }
    let shapes: BTreeSet<String> = pods.iter().map(|pod| pod.shape.shape_id.clone()).collect();
    Ok(shapes.into_iter().collect())
}

/// The full name of what a name means, and its pods.
fn find<'a>(context: &Context<'a>, name: &str) -> Result<(String, Vec<Asked<'a>>), Unknown> {
    let mut subjects = subjects(context);
    let meant = |full: &&String| {
        let without_kind = full.replacen("/Pod/", "/", 1);
        let short = full.split('/').filter(|part| !KINDS.contains(part)).collect::<Vec<_>>();
        [full.as_str(), &without_kind, &short.join("/")].iter().any(|spelling| {
            *spelling == name || spelling.strip_suffix(name).is_some_and(|rest| rest.ends_with('/'))
        })
    };
    let found: Vec<String> = subjects.keys().filter(meant).cloned().collect();
    let Some(first) = found.first() else { return Err(unknown(name, subjects.keys())) };
    let pods = found.iter().filter_map(|full| subjects.remove(full)).flatten();
    Ok((first.clone(), pods.collect()))
}

const KINDS: [&str; 5] = ["Pod", "Deployment", "StatefulSet", "ReplicaSet", "Job"];

/// One pod, or the counted pods of a shape.
struct Asked<'a> {
    /// UID, or the shape's id for counted pods.
    pod: String,
    shape: &'a PodShape,
}

/// Everything that can be asked about, as `namespace/Kind/name`.
fn subjects<'a>(context: &Context<'a>) -> BTreeMap<String, Vec<Asked<'a>>> {
    let mut subjects: BTreeMap<String, Vec<Asked<'a>>> = BTreeMap::new();
    for pod in context.pods.values() {
        let Some(shape) = context.shapes.get(pod.shape_id.as_str()).copied() else { continue };
        let asked = || Asked { pod: pod.uid.clone(), shape };
        let (namespace, name) = (&pod.namespace, &pod.name);
        subjects.entry(format!("{namespace}/Pod/{name}")).or_default().push(asked());
        if !shape.owner.is_empty() {
            subjects.entry(format!("{namespace}/{}", shape.owner)).or_default().push(asked());
        }
    }
    for counted in &context.question.pods {
        let Some(shape) = context.shapes.get(counted.shape_id.as_str()).copied() else { continue };
        let asked = Asked { pod: counted.shape_id.clone(), shape };
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
