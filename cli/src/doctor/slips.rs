//! Fields that the API server dropped in silence or on which nothing acts, and pools that may grow
//! without bound.
//!
//! Invariant: what was dropped is read from what `kubectl apply` recorded, for the live object no
//! longer has it.

use longshore_watcher::api::{self, Warning};
use serde_json::{Value, json};

use super::facts::{Facts, Kind, annotation, name};
use super::{Finding, Severity};

const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

const KINDS: [(Kind, api::Kind); 4] = [
    (Kind::NodePool, api::Kind::NodePool),
    (Kind::EC2NodeClass, api::Kind::EC2NodeClass),
    (Kind::Provisioner, api::Kind::Provisioner),
    (Kind::AWSNodeTemplate, api::Kind::AWSNodeTemplate),
];

fn objects(facts: &Facts) -> impl Iterator<Item = (api::Kind, &Value)> {
    KINDS.into_iter().flat_map(|(kind, ours)| facts.of(kind).map(move |object| (ours, object)))
}

/// Fields that no schema knows.
pub fn unknown_fields(facts: &Facts) -> Vec<Finding> {
    let found = objects(facts).flat_map(|(kind, object)| {
        let applied = annotation(object, LAST_APPLIED);
        let applied = applied.and_then(|text| serde_json::from_str::<Value>(text).ok());
        let unknown = applied.map(|applied| api::unknown_fields(kind, &applied));
        unknown.unwrap_or_default().into_iter().map(move |field| Finding {
            severity: Severity::Problem,
            object: name(kind.name(), object),
            message: field.to_string(),
            evidence: format!("{} was applied, and is not in the live object", field.path),
            remedy: match &field.suggestion {
                Some(meant) => format!("write {meant} for {} and apply again", field.path),
                None => format!("remove {} and apply again", field.path),
            },
        })
    });
    found.collect()
}

/// Fields that are accepted, and on which nothing acts yet.
pub fn unread_fields(facts: &Facts) -> Vec<Finding> {
    let found = objects(facts).flat_map(|(kind, object)| {
        api::unread_fields(kind, object).into_iter().map(move |field| Finding {
            severity: Severity::Advice,
            object: name(kind.name(), object),
            message: field.to_string(),
            evidence: format!("{} is set", field.path),
            remedy: format!(
                "remove {} if its nodes can do without, or give its pools another class",
                field.path
            ),
        })
    });
    found.collect()
}

/// Pools that may grow without bound.
pub fn no_limits(facts: &Facts) -> Vec<Finding> {
    let pools = objects(facts).filter(|(kind, object)| api::advice::lacks_limit(*kind, object));
    let found = pools.map(|(kind, object)| {
        let legacy = kind == api::Kind::Provisioner;
        let field = if legacy { "limits.resources" } else { "limits" };
        let amounts = json!({ "cpu": "100", "memory": "400Gi" });
        let limits = if legacy { json!({ "resources": amounts }) } else { amounts };
        let patch = json!({ "spec": { "limits": limits } });
        let plain = object["metadata"]["name"].as_str().unwrap_or_default();
        let plural = if legacy { "provisioners.karpenter.sh" } else { "nodepools.karpenter.sh" };
        Finding {
            severity: Severity::Advice,
            object: name(kind.name(), object),
            message: Warning::NoLimit(kind).to_string(),
            evidence: format!("spec.{field} is empty"),
            remedy: format!("kubectl patch {plural} {plain} --type merge -p '{patch}'"),
        }
    });
    found.collect()
}
