//! Hashes by which drift is told: of what a node is given once, when it is made.
//!
//! Invariant: what a node may be without having been made anew is in no hash: requirements are
//! compared with what the node is, and of selectors that counts which they find.

use longshore_proto::content;
use longshore_proto::types::v1 as wire;
use prost::Message;

/// Version of what the hashes are of, and how. A node that counts as made from a hash of another
/// version is taken as made from what there is now.
const VERSION: &str = "1";

/// Hash of the parts of a pool that its nodes are given: labels, annotations, taints, node class
/// and lifetime.
#[must_use]
pub fn of_pool(pool: &wire::NodePool) -> String {
    versioned(&wire::NodePool {
        labels: pool.labels.clone(),
        annotations: pool.annotations.clone(),
        taints: in_order(&pool.taints),
        startup_taints: in_order(&pool.startup_taints),
        node_class: pool.node_class.clone(),
        expire_after: pool.expire_after,
        termination_grace_period: pool.termination_grace_period,
        ..wire::NodePool::default()
    })
}

/// Hash of the parts of a node class that its nodes are given: of its content, without names, all
/// but selectors.
#[must_use]
pub fn of_class(content: wire::NodeClass) -> String {
    let mut given = wire::NodeClass {
        ami_terms: Vec::new(),
        subnet_terms: Vec::new(),
        security_group_terms: Vec::new(),
        capacity_reservation_terms: Vec::new(),
        ..content
    };
    given.block_devices.sort_by(|a, b| a.device_name.cmp(&b.device_name));
    versioned(&given)
}

fn versioned(content: &impl Message) -> String {
    format!("{VERSION}-{}", content::hash::<8>(content))
}

fn in_order(taints: &[wire::Taint]) -> Vec<wire::Taint> {
    let mut taints = taints.to_vec();
    taints.sort_by(|a, b| (&a.key, &a.value, a.effect).cmp(&(&b.key, &b.value, b.effect)));
    taints
}

#[cfg(test)]
mod tests {
    use super::super::node_class::named;
    use super::*;

    fn taint(key: &str) -> wire::Taint {
        wire::Taint { key: key.to_owned(), ..wire::Taint::default() }
    }

    #[test]
    fn the_hash_of_a_pool_changes_with_what_its_nodes_are_given_and_with_nothing_else() {
        let pool = wire::NodePool {
            name: "a".to_owned(),
            taints: vec![taint("x"), taint("y")],
            ..wire::NodePool::default()
        };
        let labels = [("team".to_owned(), "web".to_owned())];
        let same = [
            wire::NodePool { name: "b".to_owned(), weight: 7, ..pool.clone() },
            wire::NodePool { taints: vec![taint("y"), taint("x")], ..pool.clone() },
            wire::NodePool { requirements: vec![wire::Requirement::default()], ..pool.clone() },
            wire::NodePool { replicas: Some(3), generation: 9, ..pool.clone() },
        ];
        let other = [
            wire::NodePool { taints: vec![taint("x")], ..pool.clone() },
            wire::NodePool { startup_taints: vec![taint("x")], ..pool.clone() },
            wire::NodePool { labels: labels.clone().into(), ..pool.clone() },
            wire::NodePool { annotations: labels.into(), ..pool.clone() },
            wire::NodePool { node_class: "EC2NodeClass/b".to_owned(), ..pool.clone() },
            wire::NodePool { expire_after: Some(prost_types::Duration::default()), ..pool.clone() },
        ];
        let hash = of_pool(&pool);
        assert!(hash.starts_with("1-") && hash.len() == 18, "{hash}");
        assert!(same.iter().all(|pool| of_pool(pool) == hash));
        assert!(other.iter().all(|pool| of_pool(pool) != hash));
    }

    #[test]
    fn the_hash_of_a_class_leaves_out_what_is_selected() {
        let device =
            |name: &str| wire::BlockDevice { device_name: name.to_owned(), ..Default::default() };
        let class = wire::NodeClass {
            name: "EC2NodeClass/a".to_owned(),
            block_devices: vec![device("/dev/xvda"), device("/dev/xvdb")],
            ..wire::NodeClass::default()
        };
        let terms = vec![wire::SelectorTerm { id: "1".to_owned(), ..Default::default() }];
        let same = [
            wire::NodeClass { name: "b".to_owned(), uid: "u".to_owned(), ..class.clone() },
            wire::NodeClass { ami_terms: terms.clone(), deleting: true, ..class.clone() },
            wire::NodeClass { subnet_terms: terms.clone(), generation: 2, ..class.clone() },
            wire::NodeClass { security_group_terms: terms.clone(), ..class.clone() },
            wire::NodeClass { capacity_reservation_terms: terms, ..class.clone() },
            wire::NodeClass {
                block_devices: vec![device("/dev/xvdb"), device("/dev/xvda")],
                ..class.clone()
            },
        ];
        let other = [
            wire::NodeClass { user_data: "#!".to_owned(), ..class.clone() },
            wire::NodeClass { ami_family: "AL2".to_owned(), ..class.clone() },
            wire::NodeClass { kubelet: Some(wire::Kubelet::default()), ..class.clone() },
            wire::NodeClass { block_devices: vec![device("/dev/xvda")], ..class.clone() },
        ];
        let of = |class: wire::NodeClass| named(class).drift_hash;
        let hash = of(class);
        assert!(same.into_iter().all(|class| of(class) == hash));
        assert!(other.into_iter().all(|class| of(class) != hash));
    }
}
