//! Directives that are on their way, as they will show in the cluster.
//!
//! Invariant: planning never sees a claim it has asked for as missing, nor one it has asked to
//! delete as staying. An effect lasts until the watched object shows it, the watcher refuses it, or
//! its time is over; then the watched truth stands alone again.

use std::collections::BTreeMap;

use longshore_proto::limits::DIRECTIVE_TTL_MS;
use longshore_proto::types::v1::NodeClaim;

/// How long an effect may stay unseen before the watched truth wins, in milliseconds. Longer than
/// a directive may wait in the watcher's queue.
pub const EFFECT_TTL_MS: i64 = 30_000;
const _: () = assert!(EFFECT_TTL_MS > DIRECTIVE_TTL_MS as i64);

/// What was asked for one claim.
#[derive(Clone, Debug, Default)]
struct Pending {
    created: Option<NodeClaim>,
    disrupted: Option<(String, Vec<String>)>,
    deleted: bool,
    until_ms: i64,
}

/// All effects under way, by claim.
#[derive(Debug, Default)]
pub struct Effects {
    pending: BTreeMap<String, Pending>,
}

impl Effects {
    /// A claim has been asked for.
    pub fn create(&mut self, claim: NodeClaim, now_ms: i64) {
        let name = claim.name.clone();
        self.entry(&name, now_ms).created = Some(claim);
    }

    /// A claim has been marked for disruption.
    pub fn disrupt(&mut self, claim: &str, reason: &str, replaced_by: &[String], now_ms: i64) {
        let disrupted = Some((reason.to_owned(), replaced_by.to_vec()));
        self.entry(claim, now_ms).disrupted = disrupted;
    }

    /// Deletion of a claim has been asked for.
    pub fn delete(&mut self, claim: &str, now_ms: i64) {
        self.entry(claim, now_ms).deleted = true;
    }

    /// What was asked for the claim will not happen.
    pub fn refuse(&mut self, claim: &str) {
        self.pending.remove(claim);
    }

    /// The claim as it will be: the watched one with the effects under way on top.
    #[must_use]
    pub fn effective(&self, name: &str, watched: Option<&NodeClaim>) -> Option<NodeClaim> {
        let Some(pending) = self.pending.get(name) else { return watched.cloned() };
        let mut claim = watched.or(pending.created.as_ref()).cloned()?;
        if let Some((reason, replaced_by)) = &pending.disrupted {
            claim.disruption_reason.clone_from(reason);
            claim.replaced_by.clone_from(replaced_by);
        }
        claim.deleting |= pending.deleted;
        Some(claim)
    }

    /// Drops what the watched claim now shows. `None` means that it has been removed.
    pub fn seen(&mut self, name: &str, watched: Option<&NodeClaim>) {
        let Some(pending) = self.pending.get_mut(name) else { return };
        let Some(claim) = watched else {
            self.pending.remove(name);
            return;
        };
        pending.created = None;
        if pending.disrupted.as_ref().is_some_and(|(reason, _)| *reason == claim.disruption_reason)
        {
            pending.disrupted = None;
        }
        pending.deleted &= !claim.deleting;
        if pending.disrupted.is_none() && !pending.deleted {
            self.pending.remove(name);
        }
    }

    /// Names of claims that exist only as effects.
    pub fn created(&self) -> impl Iterator<Item = &str> {
        self.pending
            .iter()
            .filter(|(_, pending)| pending.created.is_some())
            .map(|(name, _)| name.as_str())
    }

    /// Drops effects whose time is over and returns the names of their claims.
    pub fn expire(&mut self, now_ms: i64) -> Vec<String> {
        let over = |pending: &Pending| pending.until_ms <= now_ms;
        let names: Vec<_> = self
            .pending
            .iter()
            .filter(|(_, pending)| over(pending))
            .map(|(name, _)| name.clone())
            .collect();
        self.pending.retain(|_, pending| !over(pending));
        names
    }

    fn entry(&mut self, claim: &str, now_ms: i64) -> &mut Pending {
        let pending = self.pending.entry(claim.to_owned()).or_default();
        pending.until_ms = now_ms + EFFECT_TTL_MS;
        pending
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(name: &str) -> NodeClaim {
        NodeClaim { name: name.to_owned(), ..Default::default() }
    }

    #[test]
    fn a_claim_asked_for_exists_until_the_watched_one_takes_over() {
        let mut effects = Effects::default();
        effects.create(claim("a"), 0);
        assert!(effects.effective("a", None).is_some());
        let watched = NodeClaim { provider_id: "x".to_owned(), ..claim("a") };
        effects.seen("a", Some(&watched));
        assert_eq!(effects.effective("a", Some(&watched)), Some(watched));
        assert_eq!(effects.effective("a", None), None);
    }

    #[test]
    fn deletion_and_disruption_show_at_once_and_refusal_takes_them_back() {
        let mut effects = Effects::default();
        let watched = claim("a");
        effects.disrupt("a", "Empty", &[], 0);
        effects.delete("a", 0);
        let effective = effects.effective("a", Some(&watched)).unwrap();
        assert!(effective.deleting);
        assert_eq!(effective.disruption_reason, "Empty");
        effects.refuse("a");
        assert_eq!(effects.effective("a", Some(&watched)), Some(watched));
    }

    #[test]
    fn effects_end_with_their_time() {
        let mut effects = Effects::default();
        effects.create(claim("a"), 0);
        assert!(effects.expire(EFFECT_TTL_MS - 1).is_empty());
        assert_eq!(effects.expire(EFFECT_TTL_MS), vec!["a".to_owned()]);
        assert_eq!(effects.effective("a", None), None);
    }
}
