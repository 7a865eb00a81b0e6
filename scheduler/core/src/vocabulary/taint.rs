//! Taints and tolerations.
//!
//! Invariant: `tolerates` is kube-scheduler's rule; PreferNoSchedule never forbids.

use std::fmt;

/// Taint written at boot, removed once the node is registered and its pods are nominated.
pub const UNREGISTERED: &str = "karpenter.sh/unregistered";
/// Taint of a node that is being disrupted.
pub const DISRUPTED: &str = "karpenter.sh/disrupted";

/// What a taint does to pods that do not tolerate it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TaintEffect {
    /// New pods are not scheduled.
    NoSchedule,
    /// New pods are scheduled elsewhere when possible.
    PreferNoSchedule,
    /// New pods are not scheduled and running ones are evicted.
    NoExecute,
}

/// A taint of a node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Taint {
    /// Key.
    pub key: String,
    /// Value, may be empty.
    pub value: String,
    /// Effect.
    pub effect: TaintEffect,
}

/// A toleration of a pod.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Toleration {
    /// Key; empty together with `exists` tolerates every taint.
    pub key: String,
    /// True for operator Exists: any value.
    pub exists: bool,
    /// Value compared when `exists` is false.
    pub value: String,
    /// Effect tolerated; none means every effect.
    pub effect: Option<TaintEffect>,
}

impl Toleration {
    /// True when this toleration covers the taint.
    #[must_use]
    pub fn covers(&self, taint: &Taint) -> bool {
        let effect = self.effect.is_none_or(|effect| effect == taint.effect);
        let key = self.key == taint.key || (self.key.is_empty() && self.exists);
        effect && key && (self.exists || self.value == taint.value)
    }
}

impl Taint {
    /// True when the taint keeps a pod off the node unless tolerated.
    #[must_use]
    pub fn repels(&self) -> bool {
        self.effect != TaintEffect::PreferNoSchedule
    }

    /// True for taints that kubelet and cloud controllers put on a node until it has settled.
    #[must_use]
    pub fn is_ephemeral(&self) -> bool {
        Self::is_ephemeral_key(&self.key)
    }

    /// True for the keys of such taints.
    #[must_use]
    pub fn is_ephemeral_key(key: &str) -> bool {
        key == UNREGISTERED || Self::is_passing_key(key)
    }

    /// True for the keys of those among them that somebody else takes off, at a time of its
    /// choosing.
    #[must_use]
    pub fn is_passing_key(key: &str) -> bool {
        matches!(
            key,
            "node.kubernetes.io/not-ready"
                | "node.kubernetes.io/unreachable"
                | "node.cloudprovider.kubernetes.io/uninitialized"
        )
    }

    /// True when both are the same taint; the value does not count.
    #[must_use]
    pub fn same_as(&self, other: &Self) -> bool {
        self.key == other.key && self.effect == other.effect
    }
}

/// The first repelling taint that no toleration covers.
#[must_use]
pub fn untolerated<'a>(taints: &'a [Taint], tolerations: &[Toleration]) -> Option<&'a Taint> {
    let covered = |taint: &Taint| tolerations.iter().any(|toleration| toleration.covers(taint));
    taints.iter().find(|taint| taint.repels() && !covered(taint))
}

impl fmt::Display for Taint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, value, effect } = self;
        let equals = if value.is_empty() { "" } else { "=" };
        write!(f, "{key}{equals}{value}:{effect:?}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taint(key: &str, value: &str, effect: TaintEffect) -> Taint {
        Taint { key: key.to_owned(), value: value.to_owned(), effect }
    }

    fn toleration(key: &str, value: Option<&str>, effect: Option<TaintEffect>) -> Toleration {
        let exists = value.is_none();
        let value = value.unwrap_or_default().to_owned();
        Toleration { key: key.to_owned(), exists, value, effect }
    }

    #[test]
    fn tolerations_match_by_key_value_and_effect() {
        let dev = taint("team", "dev", TaintEffect::NoSchedule);
        assert!(toleration("team", Some("dev"), None).covers(&dev));
        assert!(toleration("team", None, Some(TaintEffect::NoSchedule)).covers(&dev));
        assert!(toleration("", None, None).covers(&dev));
        assert!(!toleration("team", Some("ops"), None).covers(&dev));
        assert!(!toleration("team", None, Some(TaintEffect::NoExecute)).covers(&dev));
        assert!(!toleration("", Some("dev"), None).covers(&dev));
    }

    #[test]
    fn prefer_no_schedule_does_not_repel() {
        let soft = [taint("team", "dev", TaintEffect::PreferNoSchedule)];
        assert_eq!(untolerated(&soft, &[]), None);
        let hard = [taint("team", "dev", TaintEffect::NoExecute)];
        assert_eq!(untolerated(&hard, &[]), Some(&hard[0]));
    }
}
