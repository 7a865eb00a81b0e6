//! What is said of a node.
//!
//! Invariant: the state of the node in the first line, what keeps it below, one line each.

use std::fmt::Write as _;

use jiff::Timestamp;
use longshore_proto::planning::v1::{ExplainNodeResponse, NodeFate};
use longshore_proto::time::time_ms;
use longshore_proto::types::v1::Blocker;
use serde::Serialize;

use crate::args::Output;
use crate::plan::report::{Reason, text};
use crate::terminal::{Answer, Ending};

/// One thing that keeps a node from being drained.
#[derive(Serialize)]
struct Kept {
    object: String,
    rule: String,
    owner: String,
    since: String,
    message: String,
}

impl From<&Blocker> for Kept {
    fn from(from: &Blocker) -> Self {
        let rule = from.rule().as_str_name();
        let since = from.since.as_ref().map(time_ms).map(Timestamp::from_millisecond);
        let since = since.and_then(Result::ok).map(|at| at.strftime("%H:%M:%SZ").to_string());
        Self {
            object: from.object.clone(),
            rule: rule.strip_prefix("BLOCKING_RULE_").unwrap_or(rule).to_owned(),
            owner: from.owner.clone(),
            since: since.unwrap_or_default(),
            message: from.message.clone(),
        }
    }
}

/// The answer about a node.
pub fn told(answer: &ExplainNodeResponse, output: Output) -> serde_json::Result<Answer> {
    let holds: Vec<Reason> = answer.holds.iter().map(Reason::from).collect();
    let blockers: Vec<Kept> = answer.blockers.iter().map(Kept::from).collect();
    let fate = answer.fate();
    let text = match output {
        Output::Json => {
            let fate = fate.as_str_name();
            let json = serde_json::json!({
                "node": answer.node, "claim": answer.claim, "pods": answer.pods,
                "fate": fate.strip_prefix("NODE_FATE_").unwrap_or(fate),
                "reason": answer.disruption_reason, "holds": holds, "blockers": blockers,
            });
            serde_json::to_string_pretty(&json)? + "\n"
        }
        Output::Table => {
            let mut told = format!("{} {}\n", name(answer), state(answer));
            holds.iter().for_each(|hold| text::tree(&mut told, hold, 1));
            blockers.iter().for_each(|kept| line(&mut told, kept));
            told
        }
    };
    let kept = fate == NodeFate::MustGo || !blockers.is_empty();
    let ending = if kept { Ending::Attention } else { Ending::Well };
    Ok(Answer { text, remarks: Vec::new(), ending })
}

fn name(answer: &ExplainNodeResponse) -> String {
    match answer.node.as_str() {
        "" => format!("NodeClaim {}, which has no node,", answer.claim),
        node => format!("Node {node} (NodeClaim {})", answer.claim),
    }
}

fn state(answer: &ExplainNodeResponse) -> String {
    let reason = &answer.disruption_reason;
    let pods = match answer.pods {
        1 => "1 pod is on it".to_owned(),
        pods => format!("{pods} pods are on it"),
    };
    match answer.fate() {
        NodeFate::Stays | NodeFate::Unspecified => "stays".to_owned(),
        NodeFate::MustGo => format!("has to go ({reason}), and is kept by"),
        NodeFate::Goes => format!("goes by a plan made now ({reason})"),
        NodeFate::Marked => format!(
            "is marked to go ({reason}), and waits until its pods have their places elsewhere"
        ),
        NodeFate::Draining if answer.blockers.is_empty() => format!("is being drained; {pods}"),
        NodeFate::Draining => format!("is being drained; {pods}, and it is kept by"),
        NodeFate::Ending => "is drained, and its instance ends".to_owned(),
    }
}

fn line(told: &mut String, kept: &Kept) {
    let owner = if kept.owner.is_empty() { String::new() } else { format!(" of {}", kept.owner) };
    let Kept { object, since, message, .. } = kept;
    // Writing to a string cannot fail.
    let _ = writeln!(told, "  {object}{owner}, since {since}: {message}");
}

#[cfg(test)]
mod tests {
    use longshore_proto::time::timestamp;
    use longshore_proto::types::v1::{self as wire, BlockingRule};

    use super::*;

    fn answer(fate: NodeFate) -> ExplainNodeResponse {
        let (node, claim) = ("ip-10-0-0-7".to_owned(), "default-x2x7q".to_owned());
        ExplainNodeResponse { node, claim, fate: fate.into(), pods: 3, ..Default::default() }
    }

    #[test]
    fn what_keeps_a_node_is_said_one_thing_a_line() {
        let hold = wire::Reason {
            subject: "NodePool/default".to_owned(),
            message: "consolidateAfter Never".to_owned(),
            ..wire::Reason::default()
        };
        let stays = ExplainNodeResponse { holds: vec![hold], ..answer(NodeFate::Stays) };
        let told = told(&stays, Output::Table).unwrap();
        let expected = "Node ip-10-0-0-7 (NodeClaim default-x2x7q) stays\n  NodePool/default: \
                        consolidateAfter Never\n";
        assert_eq!((told.text.as_str(), told.ending), (expected, Ending::Well));
    }

    #[test]
    fn what_keeps_a_drain_is_said_with_its_owner_and_since_when() {
        let blocker = Blocker {
            object: "Pod/shop/web-1".to_owned(),
            rule: BlockingRule::Budget.into(),
            owner: "Deployment/web".to_owned(),
            message: "no".to_owned(),
            since: Some(timestamp(1_790_000_000_000)),
        };
        let kept = ExplainNodeResponse { blockers: vec![blocker], ..answer(NodeFate::Draining) };
        let told = told(&kept, Output::Table).unwrap();
        let expected = "Node ip-10-0-0-7 (NodeClaim default-x2x7q) is being drained; 3 pods are on it, \
                        and it is kept by\n  Pod/shop/web-1 of Deployment/web, since 14:13:20Z: no\n";
        assert_eq!((told.text.as_str(), told.ending), (expected, Ending::Attention));
        let json = super::told(&kept, Output::Json).unwrap().text;
        assert!(json.contains(r#""rule": "BUDGET""#) && json.contains(r#""fate": "DRAINING""#));
    }
}
