//! What keeps nodes, as Events: at once where a node has to go, after a while where it merely
//! could.
//!
//! Invariant: the same is said of a node once, however often plans find it, and of a large fleet a
//! few nodes at a time.

use std::collections::BTreeMap;

use longshore_core::explain::{Fate, Hold, HoldRule, NodeAnswer};
use longshore_core::vocabulary::ids::{ClaimName, NodeName};
use longshore_proto::cluster::v1::PublishEvent;
use longshore_proto::cluster::v1::directive::Action;
use longshore_proto::types::v1::{ObjectKind, ObjectRef};

/// What has kept a node that need not go for this long is said, in milliseconds of the session.
const LASTS_MS: i64 = 5 * 60_000;
/// Most nodes of which something is said at once.
const TOLD_AT_ONCE: usize = 20;
/// Most things that are named.
const NAMED_MAX: usize = 3;

/// What keeps the nodes of a cluster.
#[derive(Debug, Default)]
pub struct Holds {
    kept: BTreeMap<ClaimName, Kept>,
}

#[derive(Debug)]
struct Kept {
    node: NodeName,
    reason: &'static str,
    message: String,
    /// What it is about, whatever the time of day.
    content: String,
    due_ms: i64,
    told: bool,
}

/// Something that is to be said of a node.
pub struct Due {
    /// Its claim.
    pub claim: ClaimName,
    /// The Event.
    pub action: Action,
}

impl Holds {
    /// Takes what a plan has found, at a time of the session.
    pub fn take(&mut self, found: Vec<NodeAnswer>, now_ms: i64) {
        let mut before = std::mem::take(&mut self.kept);
        for answer in found {
            let Some(now) = Kept::of(&answer, now_ms) else { continue };
            let known = before.remove(&answer.claim).filter(|known| known.content == now.content);
            let kept = match known {
                Some(known) => Kept { due_ms: known.due_ms, told: known.told, ..now },
                None => now,
            };
            self.kept.insert(answer.claim, kept);
        }
    }

    /// What is to be said now, as Events.
    #[must_use]
    pub fn due(&self, now_ms: i64) -> Vec<Due> {
        let due = self.kept.iter().filter(|(_, kept)| !kept.told && kept.due_ms <= now_ms);
        due.take(TOLD_AT_ONCE)
            .map(|(claim, kept)| Due { claim: claim.clone(), action: kept.event() })
            .collect()
    }

    /// It has been said of a node.
    pub fn told(&mut self, claim: &ClaimName) {
        if let Some(kept) = self.kept.get_mut(claim) {
            kept.told = true;
        }
    }
}

impl Kept {
    fn of(answer: &NodeAnswer, now_ms: i64) -> Option<Self> {
        let worth: Vec<&Hold> = answer.holds.iter().filter(|hold| is_worth(&hold.rule)).collect();
        let better = |hold: &&Hold| matches!(hold.rule, HoldRule::NothingBetter { .. });
        let (must_go, prefix) = match answer.fate {
            Fate::MustGo(reason) => (true, format!("{}, and kept by ", reason.name())),
            Fate::Stays => (false, String::new()),
            Fate::Leaving(_) | Fate::Goes(_) => return None,
        };
        let reason = match worth.first()? {
            hold if better(hold) => "Unconsolidatable",
            _ => "DisruptionBlocked",
        };
        let name = |hold: &&Hold| format!("{}/{}", hold.subject, hold.rule.code());
        let content: Vec<String> = worth.iter().map(name).collect();
        let text = |hold: &&Hold| format!("{}: {}", hold.subject, hold.rule);
        let mut texts: Vec<String> = worth.iter().take(NAMED_MAX).map(text).collect();
        if worth.len() > NAMED_MAX {
            texts.push(format!("and {} more", worth.len() - NAMED_MAX));
        }
        Some(Self {
            node: answer.node.clone(),
            reason,
            message: prefix + &texts.join("; "),
            content: content.join(" "),
            due_ms: if must_go { now_ms } else { now_ms + LASTS_MS },
            told: false,
        })
    }

    fn event(&self) -> Action {
        Action::PublishEvent(PublishEvent {
            about: Some(ObjectRef { kind: ObjectKind::Node.into(), key: self.node.to_string() }),
            warning: false,
            reason: self.reason.to_owned(),
            message: self.message.clone(),
        })
    }
}

/// True for what somebody can do something about, or asks about; not for what passes by itself and
/// for what the pool says of all its nodes.
const fn is_worth(rule: &HoldRule) -> bool {
    match rule {
        HoldRule::DoNotDisrupt { .. }
        | HoldRule::NotPlaceable
        | HoldRule::Budget { .. }
        | HoldRule::TwoBudgets { .. }
        | HoldRule::Unreadable
        | HoldRule::NothingBetter { .. } => true,
        HoldRule::NotInitialized
        | HoldRule::Awaited
        | HoldRule::CalledOff { .. }
        | HoldRule::PoolBudget { .. }
        | HoldRule::Canary
        | HoldRule::Evictions { .. }
        | HoldRule::WhenEmpty { .. }
        | HoldRule::Never
        | HoldRule::Replicas
        | HoldRule::NotQuiet { .. }
        | HoldRule::Receives
        | HoldRule::NotInThisPlan => false,
    }
}

#[cfg(test)]
mod tests {
    use longshore_core::pool::DisruptionReason;

    use super::*;

    fn answer(claim: &str, fate: Fate, rule: HoldRule) -> NodeAnswer {
        let holds = vec![Hold { subject: "Pod/default/web".to_owned(), rule }];
        NodeAnswer { claim: claim.into(), node: "n".into(), fate, holds }
    }

    fn due(holds: &Holds, now_ms: i64) -> Vec<(String, String)> {
        let said = holds.due(now_ms).into_iter().map(|due| {
            let Action::PublishEvent(event) = due.action else { panic!("no Event") };
            (event.reason, event.message)
        });
        said.collect()
    }

    #[test]
    fn what_keeps_a_node_that_has_to_go_is_said_at_once_and_once() {
        let mut holds = Holds::default();
        let drifted = Fate::MustGo(DisruptionReason::Drifted);
        let forever = || HoldRule::DoNotDisrupt { for_ms: None };
        holds.take(vec![answer("a", drifted, forever())], 0);
        let (reason, message) = due(&holds, 0).remove(0);
        assert_eq!(reason, "DisruptionBlocked");
        assert!(message.starts_with("Drifted, and kept by Pod/default/web: "), "{message}");
        holds.told(&"a".into());
        holds.take(vec![answer("a", drifted, forever())], 60_000);
        assert!(due(&holds, 60_000).is_empty(), "that has been said");
        holds.take(vec![answer("a", drifted, HoldRule::NotPlaceable)], 120_000);
        assert_eq!(due(&holds, 120_000).len(), 1, "it is something else");
    }

    #[test]
    fn a_node_that_need_not_go_is_spoken_of_when_it_has_lasted() {
        let mut holds = Holds::default();
        let better = |left| HoldRule::NothingBetter { pods: 3, less_after_ms: Some(left) };
        holds.take(vec![answer("a", Fate::Stays, better(10))], 0);
        holds.take(vec![answer("a", Fate::Stays, better(5))], LASTS_MS - 1);
        assert!(due(&holds, LASTS_MS - 1).is_empty());
        assert_eq!(due(&holds, LASTS_MS)[0].0, "Unconsolidatable");
        let replicas = answer("a", Fate::Stays, HoldRule::Replicas);
        holds.take(vec![replicas], LASTS_MS);
        assert!(due(&holds, LASTS_MS).is_empty(), "its pool says so");
    }

    #[test]
    fn of_many_nodes_a_few_are_spoken_of_at_once() {
        let mut holds = Holds::default();
        let all = (0..50).map(|at| {
            let expired = Fate::MustGo(DisruptionReason::Expired);
            answer(&format!("c{at}"), expired, HoldRule::NotPlaceable)
        });
        holds.take(all.collect(), 0);
        let first = holds.due(0);
        assert_eq!(first.len(), TOLD_AT_ONCE);
        first.iter().for_each(|due| holds.told(&due.claim));
        assert!(holds.due(0).iter().all(|due| first.iter().all(|it| it.claim != due.claim)));
    }
}
