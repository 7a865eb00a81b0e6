//! What a contender tells its users of what it does and cannot do: Events and conditions.
//!
//! Invariant: read from the cluster, in the contender's own words; names of objects give way to
//! their kinds, so that what is said of many is one line with their number.

use std::collections::BTreeMap;

use anyhow::Result;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Event, Node, Pod};
use kube::api::{Api, DynamicObject, ListParams};
use kube::{Client, ResourceExt as _};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::stage::eyes;

/// Who may speak: everything else is the cluster's own.
const SPEAKERS: [&str; 2] = ["longshore", "karpenter"];
/// Conditions that say nothing while they are true.
const EXPECTED: [&str; 6] =
    ["ConsistentStateFound", "Initialized", "Launched", "NodeClassReady", "Ready", "Registered"];
/// Lines that are kept of a phase, the most frequent first.
const LINES_MAX: usize = 16;
/// Most letters of a line.
const LETTERS_MAX: usize = 240;

/// What was told in a phase.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct Told {
    /// The phase.
    pub phase: String,
    /// What was said, and of how many objects or how often.
    pub lines: Vec<(String, usize)>,
}

/// What the contender has told since a phase began, and what conditions say at its end.
///
/// # Errors
/// When the API server cannot be asked.
pub async fn told(
    client: &Client,
    phase: &str,
    is_since: impl Fn(Timestamp) -> bool,
) -> Result<Told> {
    let claims = eyes::claims(client).await?;
    let pools = eyes::list(client, "karpenter.sh", "v1", "NodePool").await?;
    let events: Api<Event> = Api::all(client.clone());
    let events = events.list(&ListParams::default()).await?.items;
    let mut names = names(client, &claims).await?;
    // What has gone meanwhile has been spoken of.
    names.extend(events.iter().filter_map(spoken_of));
    let is_new = |event: &&Event| {
        event.metadata.creation_timestamp.as_ref().is_some_and(|at| is_since(at.0))
    };
    let mut said: Vec<String> = events.iter().filter(is_new).filter_map(event).collect();
    said.extend(claims.iter().flat_map(|claim| conditions("NodeClaim", claim)));
    said.extend(pools.iter().flat_map(|pool| conditions("NodePool", pool)));
    let lines = counted(said.iter().map(|text| plain(text, &names)));
    Ok(Told { phase: phase.to_owned(), lines })
}

/// Names that differ from run to run, with what stands for each.
async fn names(client: &Client, claims: &[DynamicObject]) -> Result<Vec<(String, &'static str)>> {
    let nodes: Api<Node> = Api::all(client.clone());
    let pods: Api<Pod> = Api::all(client.clone());
    let nodes = nodes.list_metadata(&ListParams::default()).await?.items;
    let pods = pods.list_metadata(&ListParams::default()).await?.items;
    let mut names: Vec<(String, &str)> = Vec::new();
    names.extend(claims.iter().map(|claim| (claim.name_any(), "CLAIM")));
    names.extend(nodes.iter().map(|node| (node.name_any(), "NODE")));
    names.extend(pods.iter().map(|pod| (pod.name_any(), "POD")));
    let instance = |claim: &DynamicObject| {
        let id = claim.data.pointer("/status/providerID").and_then(Value::as_str)?;
        Some((id.rsplit('/').next()?.to_owned(), "INSTANCE"))
    };
    names.extend(claims.iter().filter_map(instance));
    Ok(names)
}

/// The name of what an Event is about, with what stands for it.
fn spoken_of(event: &Event) -> Option<(String, &'static str)> {
    let kind = match event.involved_object.kind.as_deref()? {
        "NodeClaim" => "CLAIM",
        "Node" => "NODE",
        "Pod" => "POD",
        _ => return None,
    };
    Some((event.involved_object.name.clone()?, kind))
}

/// An Event of a contender.
fn event(event: &Event) -> Option<String> {
    let speaker = event.source.as_ref().and_then(|source| source.component.as_deref());
    let speaker = speaker.filter(|name| !name.is_empty());
    let speaker = speaker.or(event.reporting_component.as_deref()).unwrap_or_default();
    if !SPEAKERS.iter().any(|name| speaker.contains(name)) {
        return None;
    }
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let (kind, reason) = (text(&event.involved_object.kind), text(&event.reason));
    Some(format!("{kind}, Event {reason}: {}", text(&event.message)))
}

/// Conditions of an object that say something.
fn conditions(kind: &str, object: &DynamicObject) -> Vec<String> {
    let all = object.data.pointer("/status/conditions").and_then(Value::as_array);
    let said = all.into_iter().flatten().filter_map(|condition| {
        let text = |field: &str| condition[field].as_str().unwrap_or_default();
        let (name, status) = (text("type"), text("status"));
        if status == "True" && (EXPECTED.contains(&name) || name.ends_with("Ready")) {
            return None;
        }
        let (reason, message) = (text("reason"), text("message"));
        Some(format!("{kind}, condition {name} {status}, {reason}: {message}"))
    });
    said.collect()
}

/// The same without names, on one line.
fn plain(text: &str, names: &[(String, &'static str)]) -> String {
    let mut longest: Vec<&(String, &str)> = names.iter().collect();
    longest.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
    let mut plain = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for (name, kind) in longest {
        plain = plain.replace(name, kind);
    }
    let mut short: String = plain.chars().take(LETTERS_MAX).collect();
    if short.len() < plain.len() {
        short.push('…');
    }
    short
}

/// Each text once, the most frequent first.
fn counted(texts: impl Iterator<Item = String>) -> Vec<(String, usize)> {
    let mut found: BTreeMap<String, usize> = BTreeMap::new();
    for text in texts {
        *found.entry(text).or_default() += 1;
    }
    let mut lines: Vec<(String, usize)> = found.into_iter().collect();
    lines.sort_by_key(|(_, times)| std::cmp::Reverse(*times));
    lines.truncate(LINES_MAX);
    lines
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_said_of_many_is_one_line() {
        let names = vec![("web-1".to_owned(), "POD"), ("web-12".to_owned(), "POD")];
        let texts = ["web-1 is kept", "web-12  is\nkept", "done"];
        let lines = counted(texts.iter().map(|text| plain(text, &names)));
        assert_eq!(lines, [("POD is kept".to_owned(), 2), ("done".to_owned(), 1)]);
        assert!(plain(&"x".repeat(300), &[]).ends_with("x…"));
    }

    #[test]
    fn only_contenders_speak() {
        let of = |component: &str| {
            let said = serde_json::from_value::<Event>(json!({
                "metadata": {}, "involvedObject": { "kind": "Node" }, "reason": "Kept",
                "message": "by a pod", "reportingComponent": component,
            }));
            event(&said.unwrap())
        };
        assert_eq!(of("longshore").as_deref(), Some("Node, Event Kept: by a pod"));
        assert_eq!(of("kubelet"), None);
    }

    #[test]
    fn conditions_that_are_as_expected_say_nothing() {
        let claim: DynamicObject = serde_json::from_value(json!({
            "metadata": { "name": "c" },
            "status": { "conditions": [
                { "type": "Launched", "status": "True", "reason": "Launched", "message": "" },
                { "type": "Drained", "status": "False", "reason": "Draining", "message": "2 pods" },
            ]},
        }))
        .unwrap();
        let said = conditions("NodeClaim", &claim);
        assert_eq!(said, ["NodeClaim, condition Drained False, Draining: 2 pods"]);
    }
}
