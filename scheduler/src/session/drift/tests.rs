//! What counts as drift, and what does not.

use longshore_proto::cluster::v1::{
    ResolvedGroup, ResolvedImage, ResolvedReservation, ResolvedSubnet,
};
use longshore_proto::types::v1::{Operator, Requirement, SelectorTerm};

use super::*;

const TEAM: &str = "example.com/team";

/// A pool, its class, what the region found for that, a claim and its instance, all in order.
struct Case {
    pool: NodePool,
    class: NodeClass,
    has_class: bool,
    found: NodeClassResolution,
    claim: NodeClaim,
    instance: InstanceState,
}

/// What the region found, all of it looked up.
fn found() -> SetNodeClassStatus {
    let image = |id: &str| ResolvedImage { id: id.to_owned(), ..Default::default() };
    let group = |id: &str| ResolvedGroup { id: id.to_owned(), ..Default::default() };
    let subnet = |id: &str| ResolvedSubnet { id: id.to_owned(), ..Default::default() };
    let reservation = |id: &str| ResolvedReservation { id: id.to_owned(), ..Default::default() };
    let looked_up = Condition {
        r#type: RESERVATIONS_READY.to_owned(),
        status: Some(true),
        ..Default::default()
    };
    SetNodeClassStatus {
        node_class: "EC2NodeClass/c".to_owned(),
        images: vec![image("ami-1"), image("ami-2")],
        security_groups: vec![group("sg-1"), group("sg-2")],
        subnets: vec![subnet("subnet-1"), subnet("subnet-2")],
        capacity_reservations: vec![reservation("cr-1"), reservation("cr-2")],
        conditions: vec![looked_up],
        ..Default::default()
    }
}

fn case() -> Case {
    let text = str::to_owned;
    Case {
        pool: NodePool {
            name: text("p"),
            drift_hash: text("1-p"),
            requirements: vec![requirement(TEAM, &["web", "db"])],
            ..Default::default()
        },
        class: NodeClass {
            name: text("EC2NodeClass/c"),
            hash: text("h"),
            drift_hash: text("1-c"),
            capacity_reservation_terms: vec![SelectorTerm::default()],
            ..Default::default()
        },
        has_class: true,
        found: NodeClassResolution { status: Some(found()), hash: text("h"), ..Default::default() },
        claim: NodeClaim {
            name: text("n"),
            pool: text("p"),
            node_class: text("EC2NodeClass/c"),
            provider_id: text("aws:///a/i-1"),
            labels: [(TEAM, "web"), (labels::RESERVATION_ID, "cr-2")]
                .map(|(key, value)| (text(key), text(value)))
                .into(),
            drift_hash: text("1-p/1-c"),
            image_id: text("ami-2"),
            ..Default::default()
        },
        instance: InstanceState {
            instance_id: text("i-1"),
            image_id: text("ami-2"),
            subnet_id: text("subnet-2"),
            security_group_ids: vec![text("sg-2"), text("sg-1")],
            capacity_type: CapacityType::Reserved.into(),
            reservation_id: text("cr-2"),
            ..Default::default()
        },
    }
}

fn requirement(key: &str, values: &[&str]) -> Requirement {
    Requirement {
        key: key.to_owned(),
        operator: Operator::In.into(),
        values: values.iter().map(|value| (*value).to_owned()).collect(),
        min_values: None,
    }
}

impl Case {
    fn drift(&self) -> Option<Drift> {
        self.wanted().drift_of(&self.claim, Some(&self.instance))
    }

    fn wanted(&self) -> Wanted<'_> {
        let class = self.has_class.then_some(&self.class);
        Wanted { pool: &self.pool, class, found: Some(&self.found) }
    }

    fn status(&mut self) -> &mut SetNodeClassStatus {
        self.found.status.as_mut().unwrap()
    }
}

/// Changes a case into one that has drifted.
type Change = fn(&mut Case);

#[test]
fn each_kind_of_drift_is_told_by_karpenters_name_and_in_its_order() {
    let changes: [(&str, &str, Change); 8] = [
        (RESERVATION, "cr-2, which EC2NodeClass/c does not select", |it| {
            it.status().capacity_reservations.pop();
        }),
        (SUBNET, "subnet-1; the node has subnet-2", |it| {
            it.status().subnets.pop();
        }),
        (GROUPS, "sg-1; the node has sg-1, sg-2", |it| {
            it.status().security_groups.pop();
        }),
        (IMAGE, "ami-1; the node has ami-2", |it| {
            it.status().images.pop();
        }),
        (CLASS, "EC2NodeClass/c has changed", |it| "1-d".clone_into(&mut it.class.drift_hash)),
        (REQUIREMENTS, "example.com/team In [db], and the node has In [web]", |it| {
            it.pool.requirements = vec![requirement(TEAM, &["db"])];
        }),
        (REQUIREMENTS, "asks for example.com/cell", |it| {
            it.pool.requirements = vec![requirement("example.com/cell", &["a"])];
        }),
        (POOL, "template of pool p", |it| "1-q".clone_into(&mut it.pool.drift_hash)),
    ];
    let mut all = case();
    assert_eq!(all.drift(), None);
    for (reason, message, change) in changes {
        let mut one = case();
        change(&mut one);
        // What comes later in Karpenter's order is told first, however much else has changed.
        change(&mut all);
        for found in [one.drift(), all.drift()].map(Option::unwrap) {
            assert_eq!(found.reason, reason);
            assert!(found.message.contains(message), "{}", found.message);
        }
    }
}

#[test]
fn what_is_not_known_is_no_drift() {
    let changes: [Change; 12] = [
        |it| it.claim.drift_hash.clear(),
        |it| "0-other/0-other".clone_into(&mut it.claim.drift_hash),
        |it| it.claim.image_id.clear(),
        |it| it.status().images.clear(),
        |it| it.status().security_groups.clear(),
        |it| it.status().subnets.clear(),
        |it| it.instance.subnet_id.clear(),
        |it| it.instance.security_group_ids.clear(),
        // What was found is of the class before.
        |it| {
            "g".clone_into(&mut it.found.hash);
            it.status().images.pop();
        },
        // Reservations have not been looked up, or cannot be.
        |it| {
            it.status().conditions.clear();
            it.status().capacity_reservations.clear();
        },
        |it| {
            it.status().conditions[0].status = Some(false);
            it.status().capacity_reservations.clear();
        },
        |it| {
            it.status().conditions[0].status = None;
            it.status().capacity_reservations.clear();
        },
    ];
    for (at, change) in changes.into_iter().enumerate() {
        let mut one = case();
        change(&mut one);
        assert_eq!(one.drift(), None, "change {at}");
    }
    // Of a launch template of one's own, the image is not known; of a well-known label that an
    // adopted claim lacks, its value.
    let mut own = case();
    own.status().images = vec![ResolvedImage::default()];
    own.pool.requirements.push(requirement("topology.kubernetes.io/zone", &["a"]));
    assert_eq!(own.drift(), None);
}

#[test]
fn what_was_said_last_stands_while_it_cannot_be_told() {
    for (reason, change) in [
        (IMAGE, (|it| it.found.status = None) as Change),
        (SUBNET, |it| it.instance.subnet_id.clear()),
        (GROUPS, |it| it.instance.subnet_id.clear()),
        (RESERVATION, |it| it.found.status = None),
        (RESERVATION, |it| it.instance.subnet_id.clear()),
        (RESERVATION, |it| it.status().conditions.clear()),
        // As Karpenter left it: taken over as it was found.
        (POOL, |it| it.claim.drift_hash.clear()),
        (CLASS, |it| it.claim.drift_hash.clear()),
        // The node class is away for a moment, or its watcher sends no hashes.
        (CLASS, |it| it.has_class = false),
        (CLASS, |it| it.class.drift_hash.clear()),
        (POOL, |it| (it.has_class, it.claim.drift_hash) = (false, String::new())),
    ] {
        let mut one = case();
        reason.clone_into(&mut one.claim.drift_reason);
        assert_eq!(one.drift(), None, "{reason}: it has been mended");
        change(&mut one);
        assert_eq!(one.drift().map(|drift| drift.reason).as_deref(), Some(reason));
    }
    // Without its instance, the image is still known by the claim.
    let mut one = case();
    one.status().images.pop();
    let found = one.wanted().drift_of(&one.claim, None);
    assert_eq!(found.map(|drift| drift.reason).as_deref(), Some(IMAGE));
}

#[test]
fn which_reservation_a_node_runs_in_its_instance_says_first() {
    let ended: Change = |it| it.status().capacity_reservations.clear();
    let unselected: Change = |it| {
        it.class.capacity_reservation_terms.clear();
        it.status().conditions.clear();
    };
    let table: [(Option<&str>, &[Change]); 6] = [
        (Some("cr-2"), &[ended]),
        // Nothing is looked up for a class that selects none.
        (Some("cr-2"), &[ended, unselected]),
        (Some("cr-3"), &[|it| "cr-3".clone_into(&mut it.instance.reservation_id)]),
        // An actuator of the version before does not say which.
        (Some("cr-2"), &[ended, |it| it.instance.reservation_id.clear()]),
        (None, &[ended, |it| it.instance.reservation_id.clear(), |it| it.claim.labels.clear()]),
        // EC2 lets an instance run on when its reservation is cancelled.
        (None, &[ended, |it| it.instance.capacity_type = CapacityType::OnDemand.into()]),
    ];
    for (named, changes) in table {
        let mut one = case();
        one.pool.requirements.clear();
        changes.iter().for_each(|change| change(&mut one));
        let found = one.drift();
        let expected = named.map(|_| RESERVATION);
        assert_eq!(found.as_ref().map(|drift| drift.reason.as_str()), expected, "{found:?}");
        let message = found.map(|drift| drift.message).unwrap_or_default();
        assert!(named.is_none_or(|id| message.contains(id)), "{message}");
    }
}
