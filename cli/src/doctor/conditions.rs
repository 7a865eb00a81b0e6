//! Node classes, pools and claims that say themselves that something is missing.
//!
//! Invariant: the message is the actuator's or watcher's own, repeated as it stands, unless AWS has
//! just been asked the same and another check tells it.

use std::collections::BTreeSet;

use serde_json::Value;

use super::facts::{Facts, Kind, list, name};
use super::{Finding, Severity};

const KINDS: [(Kind, &str); 3] = [
    (Kind::EC2NodeClass, "EC2NodeClass"),
    (Kind::NodePool, "NodePool"),
    (Kind::NodeClaim, "NodeClaim"),
];
/// Conditions that sum up others, and are only told when no other says why.
const SUMMARY: &str = "Ready";

/// Conditions that are false, with their messages.
pub fn check(facts: &Facts) -> Vec<Finding> {
    let all = KINDS.into_iter().flat_map(|(kind, text)| facts.of(kind).map(move |o| (text, o)));
    let told: BTreeSet<&str> = facts.account().map_or_else(BTreeSet::new, |account| {
        let messages = account.problems().map(|(_, problem)| problem.message.as_str());
        messages.map(|text| text.rsplit_once("; ").map_or(text, |(fault, _)| fault)).collect()
    });
    let known = |text: &str| told.iter().any(|told| text.contains(told));
    all.flat_map(|(kind, object)| of_object(kind, object))
        .filter(|finding| !known(&finding.message))
        .collect()
}

fn of_object(kind: &str, object: &Value) -> Vec<Finding> {
    let bad: Vec<&Value> = list(&object["status"]["conditions"])
        .filter(|it| it["status"] == "False" && tells(kind, &it["type"]))
        .collect();
    let particular = bad.iter().filter(|it| it["type"] != SUMMARY).count();
    let told = bad.into_iter().filter(|it| particular == 0 || it["type"] != SUMMARY);
    let full = name(kind, object);
    let found = told.map(|it| {
        let text = |field: &str| it[field].as_str().unwrap_or_default();
        let plain = object["metadata"]["name"].as_str().unwrap_or_default();
        Finding {
            severity: Severity::Problem,
            object: full.clone(),
            message: format!("{} is false: {}", text("type"), text("message")),
            evidence: format!("reason {} since {}", text("reason"), text("lastTransitionTime")),
            remedy: format!(
                "kubectl describe {} {plain}   # the message says the way out",
                kind.to_lowercase()
            ),
        }
    });
    found.collect()
}

/// Conditions that are false in the ordinary course of a claim's life say nothing.
fn tells(kind: &str, condition: &Value) -> bool {
    let failing = ["Launched", "Registered", "ConsistentStateFound"];
    kind != "NodeClaim" || failing.iter().any(|name| *condition == **name)
}
