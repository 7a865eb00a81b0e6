//! What goes together, by table.

use longshore_proto::types::v1::{CapacityType, Taint};

use super::*;
use crate::ledger::{Move, OrderRecord};
use crate::testing::{candidate, launch};

fn record(change: impl FnOnce(&mut Launch)) -> LaunchRecord {
    let mut launch = launch(vec![candidate("m5.large", "a", CapacityType::Spot)]);
    change(&mut launch);
    LaunchRecord::new(launch, "c-1", 10, 0)
}

fn after(moves: &[Move]) -> LaunchRecord {
    moves.iter().fold(record(|_| ()), |record, step| record.after(step, 1).unwrap())
}

#[test]
fn launches_go_together_that_differ_in_nothing_but_their_claim() {
    let plain = record(|_| ());
    let ask = Move::Ask(CapacityType::Spot, Box::<OrderRecord>::default());
    let refused = |exhausted| Move::Refused { exhausted };
    let launched = Move::Launched { instance_id: "i".to_owned(), ec2_request_id: String::new() };
    let zone_b = || candidate("m5.large", "b", CapacityType::Spot);
    let table = [
        ("another claim", true, record(|l| l.claim = "other".to_owned())),
        ("another launch", true, record(|l| l.launch_id = "l-2".to_owned())),
        ("another trace", true, record(|l| l.traceparent = "00-1".to_owned())),
        ("other pods", true, record(|l| l.requests = Some(Default::default()))),
        ("another pool", false, record(|l| l.pool = "other".to_owned())),
        ("another class", false, record(|l| l.node_class = "other".to_owned())),
        ("a class of before", false, record(|l| l.node_class_hash = "old".to_owned())),
        ("another offering", false, record(|l| l.candidates = vec![zone_b()])),
        ("one offering more", false, record(|l| l.candidates.push(zone_b()))),
        ("a label", false, record(|l| drop(l.labels.insert("k".to_owned(), "v".to_owned())))),
        ("a taint", false, record(|l| l.taints.push(Taint::default()))),
        ("a start-up taint", false, record(|l| l.startup_taints.push(Taint::default()))),
        ("another cluster", false, LaunchRecord { cluster_id: "d".to_owned(), ..plain.clone() }),
        ("a call under way", false, after(std::slice::from_ref(&ask))),
        ("tried before, in vain", true, after(&[ask.clone(), refused(false)])),
        ("no spot left", false, after(&[ask, refused(true)])),
        ("called off", false, after(&[Move::Cancel])),
        ("launched", false, after(&[launched])),
    ];
    for (what, together, other) in table {
        assert_eq!(alike(&plain, &other), together, "{what}");
        assert_eq!(alike(&other, &plain), together, "{what}, the other way round");
    }
    let spent =
        after(&[Move::Ask(CapacityType::Spot, Box::default()), Move::Refused { exhausted: true }]);
    assert!(alike(&spent, &spent.clone()), "both have tried the same");
}
