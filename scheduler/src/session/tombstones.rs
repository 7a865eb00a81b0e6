//! Objects that are there and cannot be read, and what must stay because of them.
//!
//! Invariant: what cannot be read is never taken for absent. A stone for one object holds what it
//! may be about, and no more: a pod's the node that it is on, a disruption budget's the nodes with
//! pods of its namespace. One for a whole kind that nodes are judged by, or a pod of which no node
//! is known, holds the cluster.

use std::collections::BTreeMap;

use longshore_proto::types::v1::object::Kind;
use longshore_proto::types::v1::{NodeClaim, ObjectKind, ObjectRef, UnreadableObject};

/// Kinds without which nothing is known to be unwanted.
const ESSENTIAL: [ObjectKind; 5] = [
    ObjectKind::NodeClaim,
    ObjectKind::Node,
    ObjectKind::Pod,
    ObjectKind::DisruptionBudget,
    ObjectKind::NodePool,
];

/// Everything that cannot be read at present.
#[derive(Debug, Default)]
pub struct Tombstones {
    /// What the watcher cannot read, by its key.
    told: BTreeMap<String, UnreadableObject>,
    /// What it has read and sent and that is malformed to us, by kind and key, with the node it is
    /// on.
    own: BTreeMap<(i32, String), Option<String>>,
}

impl Tombstones {
    /// The watcher cannot read an object. True when that is news.
    pub fn put(&mut self, object: UnreadableObject) -> bool {
        self.told.insert(object.key.clone(), object.clone()).as_ref() != Some(&object)
    }

    /// The watcher can read it again, or it is gone.
    pub fn lift(&mut self, key: &str) -> bool {
        self.told.remove(key).is_some()
    }

    /// An object that was sent is malformed; `node` is the one it is on, when it is on one.
    pub fn refuse(&mut self, about: &ObjectRef, node: Option<String>) {
        self.own.insert((about.kind, about.key.clone()), node);
    }

    /// The object was sent anew, or is gone.
    pub fn renew(&mut self, about: &ObjectRef) {
        if !self.own.is_empty() {
            self.own.remove(&(about.kind, about.key.clone()));
        }
    }

    /// True when everything can be read.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.told.is_empty() && self.own.is_empty()
    }

    /// Why nothing in the cluster may be ended by choice or on absence; none when something may.
    #[must_use]
    pub fn whole(&self) -> Option<String> {
        let whole = |object: &&UnreadableObject| {
            let about = object.about.clone().unwrap_or_default();
            let known = ObjectKind::try_from(about.kind);
            // A kind that this build does not know may be any.
            let essential = known.map_or(true, |kind| ESSENTIAL.contains(&kind));
            essential && about.key.is_empty()
        };
        self.told.values().find(whole).map(describe)
    }

    /// Why no node may be ended by choice: what cannot be read may be about any of them.
    #[must_use]
    pub fn choice(&self) -> Option<String> {
        let anywhere = |object: &&UnreadableObject| {
            kind_of(object) == ObjectKind::Pod && object.node_name.is_empty()
        };
        self.whole().or_else(|| self.told.values().find(anywhere).map(describe))
    }

    /// True when a disruption budget of the namespace cannot be read: its pods are not to be moved
    /// by choice.
    #[must_use]
    pub fn guards(&self, namespace: &str) -> bool {
        let of_it = |key: &str| key.split_once('/').is_some_and(|(found, _)| found == namespace);
        let about =
            |object: &UnreadableObject| object.about.as_ref().map(|about| about.key.clone());
        let budget = |object: &UnreadableObject| kind_of(object) == ObjectKind::DisruptionBudget;
        let told = |object: &UnreadableObject| {
            budget(object) && about(object).is_some_and(|key| of_it(&key))
        };
        let number = i32::from(ObjectKind::DisruptionBudget);
        self.told.values().any(told)
            || self.own.keys().any(|(kind, key)| *kind == number && of_it(key))
    }

    /// True when the claim of this name, or its instance, must stay: it is there and cannot be
    /// read.
    #[must_use]
    pub fn hides_claim(&self, name: &str) -> bool {
        self.names(ObjectKind::NodeClaim, name)
    }

    /// True when there is a claim that cannot be read: it may name any instance.
    #[must_use]
    pub fn hides_claims(&self) -> bool {
        self.told.values().any(|object| kind_of(object) == ObjectKind::NodeClaim)
    }

    /// True when a claim must not be ended by choice or on absence.
    #[must_use]
    pub fn holds(&self, claim: &NodeClaim, node: Option<&str>) -> bool {
        let on_node = |node: &str| {
            self.names(ObjectKind::Node, node)
                || self.told.values().any(|object| object.node_name == node)
                || self.own.values().any(|on| on.as_deref() == Some(node))
        };
        self.hides_claim(&claim.name)
            || self.names(ObjectKind::NodePool, &claim.pool)
            || node.is_some_and(on_node)
    }

    fn names(&self, kind: ObjectKind, key: &str) -> bool {
        let told = |object: &UnreadableObject| {
            kind_of(object) == kind && object.about.as_ref().is_some_and(|about| about.key == key)
        };
        self.told.values().any(told)
    }
}

fn kind_of(object: &UnreadableObject) -> ObjectKind {
    object.about.as_ref().map_or(ObjectKind::Unspecified, ObjectRef::kind)
}

/// What cannot be read, for people.
#[must_use]
pub fn describe(object: &UnreadableObject) -> String {
    let about = object.about.clone().unwrap_or_default();
    let kind = about.kind().as_str_name().trim_start_matches("OBJECT_KIND_");
    match about.key.as_str() {
        "" => format!("objects of kind {kind} cannot be read: {}", object.message),
        key => format!("{kind} {key} cannot be read: {}", object.message),
    }
}

/// The node that an object is, or is on.
#[must_use]
pub fn node_of(kind: &Kind) -> Option<String> {
    let name = match kind {
        Kind::Node(node) => &node.name,
        Kind::Pod(pod) => &pod.node_name,
        Kind::PodShape(_)
        | Kind::NodeClaim(_)
        | Kind::NodePool(_)
        | Kind::NodeClass(_)
        | Kind::DaemonSet(_)
        | Kind::DisruptionBudget(_)
        | Kind::Namespace(_)
        | Kind::Cluster(_)
        | Kind::NodeOverlay(_)
        | Kind::CapacityBuffer(_)
        | Kind::Unreadable(_) => return None,
    };
    (!name.is_empty()).then(|| name.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stone(kind: ObjectKind, key: &str) -> UnreadableObject {
        let about = ObjectRef { kind: kind.into(), key: key.to_owned() };
        let number = about.kind;
        UnreadableObject {
            key: format!("{number}/{key}"),
            about: Some(about),
            message: "unknown field".to_owned(),
            ..UnreadableObject::default()
        }
    }

    fn claim(name: &str, pool: &str) -> NodeClaim {
        NodeClaim { name: name.to_owned(), pool: pool.to_owned(), ..Default::default() }
    }

    #[test]
    fn a_stone_holds_what_it_may_be_about() {
        let mut stones = Tombstones::default();
        assert!(stones.whole().is_none() && stones.choice().is_none());
        stones.put(stone(ObjectKind::NodeClaim, "a"));
        stones.put(stone(ObjectKind::NodePool, "p"));
        stones.put(stone(ObjectKind::Node, "n"));
        assert!(stones.holds(&claim("a", "q"), None) && stones.hides_claim("a"));
        assert!(stones.holds(&claim("b", "p"), None));
        assert!(stones.holds(&claim("b", "q"), Some("n")));
        assert!(!stones.holds(&claim("b", "q"), Some("m")));
        assert!(stones.whole().is_none() && stones.choice().is_none());
    }

    #[test]
    fn a_whole_kind_holds_the_cluster_and_a_pod_of_no_known_node_every_choice() {
        for (kind, key, whole, choice) in [
            (ObjectKind::NodeClaim, "", true, true),
            (ObjectKind::Node, "", true, true),
            (ObjectKind::Namespace, "", false, false),
            (ObjectKind::Pod, "uid", false, true),
            (ObjectKind::DisruptionBudget, "a/b", false, false),
            (ObjectKind::DisruptionBudget, "", true, true),
        ] {
            let mut stones = Tombstones::default();
            stones.put(stone(kind, key));
            assert_eq!(stones.whole().is_some(), whole, "{kind:?} {key}");
            assert_eq!(stones.choice().is_some(), choice, "{kind:?} {key}");
            let number = i32::from(kind);
            assert!(stones.lift(&format!("{number}/{key}")));
            assert!(stones.choice().is_none());
        }
    }

    #[test]
    fn an_unreadable_pod_holds_its_node_alone_and_a_budget_its_namespace() {
        let mut stones = Tombstones::default();
        let on = |node: &str| UnreadableObject {
            node_name: node.to_owned(),
            ..stone(ObjectKind::Pod, "uid")
        };
        stones.put(on("n"));
        assert!(stones.choice().is_none() && stones.holds(&claim("a", "p"), Some("n")));
        assert!(
            !stones.holds(&claim("b", "p"), Some("m")) && !stones.holds(&claim("c", "p"), None)
        );
        // It was bound only after it could last be read.
        stones.put(on(""));
        assert!(stones.choice().is_some());
        stones.put(on("n"));
        stones.put(stone(ObjectKind::DisruptionBudget, "shop/cart"));
        assert!(stones.choice().is_none());
        assert!(stones.guards("shop") && !stones.guards("sho") && !stones.guards("n"));
        let malformed =
            ObjectRef { kind: ObjectKind::DisruptionBudget.into(), key: "bank/ledger".to_owned() };
        stones.refuse(&malformed, None);
        assert!(stones.guards("bank") && stones.choice().is_none());
        stones.renew(&malformed);
        assert!(!stones.guards("bank"));
    }

    #[test]
    fn a_malformed_pod_holds_the_node_that_it_is_on() {
        let mut stones = Tombstones::default();
        let pod = ObjectRef { kind: ObjectKind::Pod.into(), key: "uid".to_owned() };
        stones.refuse(&pod, Some("n".to_owned()));
        assert!(stones.holds(&claim("a", "p"), Some("n")));
        stones.renew(&pod);
        assert!(!stones.holds(&claim("a", "p"), Some("n")));
    }
}
