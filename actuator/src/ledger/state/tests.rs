//! Laws of the launch states, checked over every sequence of moves up to a length.

use longshore_proto::types::v1::Launch;

use prost::Message;

use super::*;
use crate::cloud::{FleetOffer, Order, TemplateOffers};

fn moves() -> Vec<Move> {
    let failure = Failure { reason: "X".to_owned(), message: "x".to_owned(), retryable: true };
    vec![
        Move::Ask(CapacityType::Spot, Box::default()),
        Move::Ask(CapacityType::OnDemand, Box::default()),
        Move::Refused { exhausted: true },
        Move::Refused { exhausted: false },
        Move::Launched { instance_id: "i-1".to_owned(), ec2_request_id: "r".to_owned() },
        Move::Launched { instance_id: "i-2".to_owned(), ec2_request_id: "r".to_owned() },
        Move::Fail(failure),
        Move::Cancel,
        Move::Terminate { traceparent: String::new() },
        Move::Gone { vanished: false },
        Move::Gone { vanished: true },
        Move::Found { instance_id: "i-1".to_owned() },
        Move::Found { instance_id: "i-2".to_owned() },
        Move::Interrupted { kind: InterruptionKind::Spot, time_ms: 7 },
    ]
}

fn pending() -> LaunchRecord {
    let launch = Launch { launch_id: "l".to_owned(), ..Launch::default() };
    LaunchRecord::new(launch, "c", 1_000, 0)
}

/// Every record reachable in `depth` moves, with the step that led there.
fn walk(depth: usize, visit: &mut impl FnMut(&LaunchRecord, &Move, &LaunchRecord)) {
    fn go(
        from: &LaunchRecord,
        depth: usize,
        visit: &mut impl FnMut(&LaunchRecord, &Move, &LaunchRecord),
    ) {
        if depth == 0 {
            return;
        }
        for step in moves() {
            if let Ok(to) = from.after(&step, from.changed_ms + 1) {
                visit(from, &step, &to);
                go(&to, depth - 1, visit);
            }
        }
    }
    go(&pending(), depth, visit);
}

fn rank(phase: Phase) -> u8 {
    match phase {
        Phase::Pending => 0,
        Phase::Launched => 1,
        Phase::Terminating => 2,
        Phase::Terminated | Phase::Failed => 3,
    }
}

#[test]
fn phases_run_backwards_and_finished_launches_move_only_when_the_instance_is_found() {
    walk(5, &mut |from, step, to| {
        if matches!(step, Move::Found { .. }) {
            return;
        }
        assert!(rank(from.phase()) <= rank(to.phase()), "{from:?} {step:?}");
        if from.finished() {
            assert_eq!(from, to, "{step:?}");
        }
    });
}

#[test]
fn an_instance_never_changes_once_it_is_known() {
    walk(5, &mut |from, _, to| {
        let unborn = matches!(to.phase(), Phase::Pending | Phase::Failed);
        assert!(from.instance_id.is_empty() || from.instance_id == to.instance_id);
        assert_eq!(to.instance_id.is_empty(), unborn);
    });
}

#[test]
fn a_token_is_used_for_one_capacity_type_only() {
    walk(5, &mut |from, step, to| {
        if from.outcome_unknown() && to.outcome_unknown() {
            assert_eq!(
                (from.asked, from.client_token()),
                (to.asked, to.client_token()),
                "{step:?}"
            );
        }
        if !from.outcome_unknown() && to.outcome_unknown() {
            assert_ne!(from.client_token(), to.client_token());
        }
    });
}

#[test]
fn moves_that_settle_something_are_idempotent() {
    walk(4, &mut |_, step, to| {
        let repeats = !matches!(step, Move::Ask(..) | Move::Refused { .. } | Move::Fail(_));
        if repeats {
            assert_eq!(to.after(step, to.changed_ms + 1).as_ref(), Ok(to), "{step:?}");
        }
    });
}

#[test]
fn a_cancelled_launch_is_not_asked_for_and_ends_in_termination_when_it_was() {
    let cancelled = pending().after(&Move::Cancel, 1).unwrap();
    assert!(cancelled.after(&Move::Ask(CapacityType::Spot, Box::default()), 2).is_err());
    let asked = pending().after(&Move::Ask(CapacityType::Spot, Box::default()), 1).unwrap();
    let asked = asked.after(&Move::Cancel, 2).unwrap();
    let launched = Move::Launched { instance_id: "i".to_owned(), ec2_request_id: String::new() };
    assert_eq!(asked.after(&launched, 3).unwrap().phase(), Phase::Terminating);
}

#[test]
fn an_illegal_move_names_launch_phase_and_move() {
    let error = pending().after(&Move::Gone { vanished: false }, 1).unwrap_err();
    assert_eq!(
        error.to_string(),
        "launch l is Pending and cannot make the move Gone { vanished: false }"
    );
}

#[test]
fn an_instance_that_is_found_brings_its_launch_back_to_what_was_wanted_of_it() {
    let launched = Move::Launched { instance_id: "i".to_owned(), ec2_request_id: String::new() };
    let found = Move::Found { instance_id: "i".to_owned() };
    let launched = pending().after(&launched, 1).unwrap();
    let gone = launched.after(&Move::Gone { vanished: true }, 2).unwrap();
    let back = gone.after(&found, 3).unwrap();
    assert_eq!((back.phase(), back.vanished), (Phase::Launched, false));
    let ended = launched.after(&Move::Terminate { traceparent: String::new() }, 2).unwrap();
    let gone = ended.after(&Move::Gone { vanished: true }, 3).unwrap();
    assert_eq!(gone.after(&found, 4).unwrap().phase(), Phase::Terminating);
    let failure = Failure { reason: "X".to_owned(), message: "x".to_owned(), retryable: true };
    let failed = pending().after(&Move::Fail(failure), 1).unwrap();
    let unwanted = failed.after(&found, 2).unwrap();
    assert_eq!((unwanted.phase(), unwanted.instance_id.as_str()), (Phase::Terminating, "i"));
}

#[test]
fn a_call_without_an_answer_is_repeated_as_it_was_made() {
    let order = Order {
        client_token: "l-1".to_owned(),
        capacity_type: CapacityType::Spot,
        offers: vec![TemplateOffers {
            template: "t".to_owned(),
            reservation_id: "cr-1".to_owned(),
            offers: vec![FleetOffer {
                instance_type: "m5.large".to_owned(),
                zone: "a".to_owned(),
                subnet_id: "s-1".to_owned(),
                rank: 3,
            }],
        }],
        count: 1,
        tags: [("k".to_owned(), "v".to_owned())].into(),
    };
    let ask = Move::Ask(CapacityType::Spot, Box::new(OrderRecord::from(&order)));
    let asked = pending().after(&ask, 1).unwrap();
    let read = LaunchRecord::decode(asked.encode_to_vec().as_slice()).unwrap();
    assert_eq!(read.unanswered(), Some(order));
    let answered = asked.after(&Move::Refused { exhausted: false }, 2).unwrap();
    assert_eq!((answered.unanswered(), answered.order), (None, None));
}
