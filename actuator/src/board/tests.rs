//! What subscribers see.

use longshore_proto::capacity::v1::{LaunchState, RegionInfo};
use longshore_proto::types::v1::{CapacityType, Catalogue, InstanceType, Offering, OfferingUpdate};

use super::*;

fn launch(id: &str, attempts: u32) -> Change {
    let launch_id = id.to_owned();
    Change::Launch(LaunchState { launch_id, attempts, ..LaunchState::default() })
}

fn catalogue() -> Change {
    let offering = Offering {
        zone: "a".to_owned(),
        capacity_type: CapacityType::Spot.into(),
        price_micro_usd_per_hour: 10,
        available: true,
        ..Offering::default()
    };
    let t4g = InstanceType {
        name: "t4g.small".to_owned(),
        offerings: vec![offering],
        ..InstanceType::default()
    };
    let catalogue_id = "c1".to_owned();
    Change::Catalogue(Catalogue { catalogue_id, types: vec![t4g], ..Catalogue::default() })
}

fn update(price_micro_usd_per_hour: i64, available: bool) -> OfferingUpdates {
    let update = OfferingUpdate {
        instance_type: "t4g.small".to_owned(),
        zone: "a".to_owned(),
        capacity_type: CapacityType::Spot.into(),
        price_micro_usd_per_hour,
        available,
        ..OfferingUpdate::default()
    };
    OfferingUpdates { catalogue_id: String::new(), updates: vec![update] }
}

#[test]
fn a_subscriber_sees_the_state_and_then_each_change_once() {
    let board = Board::new();
    board.post(launch("a", 1));
    board.post(launch("a", 2));
    board.post(Change::Region(RegionInfo::default()));
    let mut seen = board.subscribe().unwrap();
    assert_eq!((seen.revision, seen.state.len()), (3, 2));
    board.post(launch("a", 2));
    board.post(launch("b", 1));
    let posted = seen.changes.try_recv().unwrap();
    assert_eq!((posted.revision, posted.change.change.clone()), (4, Some(launch("b", 1))));
    assert!(seen.changes.try_recv().is_err());
}

#[test]
fn a_later_subscriber_gets_offerings_as_updates_left_them() {
    let board = Board::new();
    board.post(catalogue());
    board.post_offerings(update(0, false));
    board.post_offerings(update(12, false));
    board.post_offerings(update(12, false));
    let seen = board.subscribe().unwrap();
    assert_eq!(seen.revision, 3);
    let Some(Change::Catalogue(catalogue)) = &seen.state[0].change else { panic!() };
    let offering = &catalogue.types[0].offerings[0];
    assert_eq!((offering.available, offering.price_micro_usd_per_hour), (false, 12));
}

#[test]
fn what_is_forgotten_is_gone_and_a_closed_board_takes_nobody() {
    let board = Board::new();
    board.post(launch("a", 1));
    board.forget(vec!["a".to_owned()], vec![]);
    let mut seen = board.subscribe().unwrap();
    assert!(seen.state.is_empty());
    board.close();
    assert!(board.subscribe().is_none());
    let closed = tokio::sync::broadcast::error::TryRecvError::Closed;
    assert_eq!(seen.changes.try_recv().unwrap_err(), closed);
}
