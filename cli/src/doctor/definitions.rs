//! Custom resource definitions: there, and no older than this build.
//!
//! Invariant: what is expected is generated from the types, as the files under deploy/crds are.

use std::collections::BTreeSet;

use longshore_watcher::api;
use serde_json::Value;

use super::facts::{Facts, Kind, list};
use super::{Finding, Severity};

/// Kinds without which nothing works; the others are only needed by who uses them.
const NEEDED: [api::Kind; 3] = [api::Kind::NodePool, api::Kind::NodeClaim, api::Kind::EC2NodeClass];
/// Missing fields that are named, at most.
const NAMED_MAX: usize = 5;

/// Missing and older definitions.
pub fn check(facts: &Facts) -> Vec<Finding> {
    if !facts.read(Kind::CustomResourceDefinition) {
        return Vec::new();
    }
    api::Kind::ALL.into_iter().filter_map(|kind| of_kind(kind, facts)).collect()
}

fn of_kind(kind: api::Kind, facts: &Facts) -> Option<Finding> {
    let ours = serde_json::to_value(kind.definition()).ok()?;
    let name = ours["metadata"]["name"].as_str()?.to_owned();
    let mut all = facts.of(Kind::CustomResourceDefinition);
    let installed = all.find(|crd| crd["metadata"]["name"] == name.as_str());
    let finding = |message: String, evidence: String| Finding {
        severity: Severity::Problem,
        object: format!("CustomResourceDefinition/{name}"),
        message,
        evidence,
        remedy: format!("kubectl apply --server-side -f deploy/crds/{}", kind.file_name()),
    };
    let Some(installed) = installed else {
        let message = format!("is missing: {kind} objects are refused by the API server");
        let evidence = format!("no definition of {} {kind} is installed", kind.api_version());
        return NEEDED.contains(&kind).then(|| finding(message, evidence));
    };
    let version = kind.api_version().rsplit('/').next().unwrap_or_default();
    let serves = |it: &&Value| it["name"] == version && it["served"] == true;
    let Some(served) = list(&installed["spec"]["versions"]).find(serves) else {
        let have = list(&installed["spec"]["versions"]).filter_map(|it| it["name"].as_str());
        let have = have.collect::<Vec<_>>().join(", ");
        let message = format!("does not serve {version}: check the apiVersion and kind of objects");
        return Some(finding(message, format!("versions installed: {have}")));
    };
    let wanted = list(&ours["spec"]["versions"]).find(|it| it["name"] == version)?;
    let fields = |it: &Value| {
        let mut paths = BTreeSet::new();
        walk(&it["schema"]["openAPIV3Schema"], "", &mut paths);
        paths
    };
    let missing: Vec<String> = fields(wanted).difference(&fields(served)).cloned().collect();
    if missing.is_empty() {
        return None;
    }
    let shown = missing.iter().take(NAMED_MAX).cloned().collect::<Vec<_>>().join(", ");
    let more = missing.len().saturating_sub(NAMED_MAX);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let message = "is older than this build: the API server drops fields that it does not know";
    Some(finding(message.to_owned(), format!("fields not known there: {shown}{more}")))
}

/// Paths of all fields that users write.
fn walk(schema: &Value, path: &str, paths: &mut BTreeSet<String>) {
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let here = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        if path.is_empty() && name != "spec" {
            continue;
        }
        walk(field, &here, paths);
        walk(&field["items"], &here, paths);
        paths.insert(here);
    }
}
