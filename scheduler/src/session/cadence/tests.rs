//! When plans are due, in paused time.

use tokio::time::advance;

use super::*;

const MS: Duration = Duration::from_millis(1);

fn cadence() -> Cadence {
    Cadence::new(Duration::from_secs(1))
}

/// How long until the next plan, in milliseconds.
fn due_ms(cadence: &Cadence) -> Option<u128> {
    cadence.due_at().map(|at| at.saturating_duration_since(Instant::now()).as_millis())
}

#[tokio::test(start_paused = true)]
async fn a_pod_alone_is_planned_for_after_a_moment_of_quiet_and_waits_for_no_other() {
    let mut cadence = cadence();
    cadence.stir(Stir::Arrival, "t");
    assert_eq!(due_ms(&cadence), Some(50));
    advance(50 * MS).await;
    assert_eq!(cadence.begin(false), (vec!["t".to_owned()], true));
    assert_eq!((due_ms(&cadence), cadence.gathers_until()), (None, None));
}

#[tokio::test(start_paused = true)]
async fn a_burst_is_planned_for_in_time_and_its_tail_is_held_until_it_ends() {
    let mut cadence = cadence();
    for _ in 0..29 {
        cadence.stir(Stir::Arrival, "");
        advance(10 * MS).await;
    }
    assert_eq!(due_ms(&cadence), Some(10), "the first pod waits 300 ms");
    advance(10 * MS).await;
    assert!(!cadence.begin(false).1, "nothing goes by choice while pods come");
    let until = cadence.gathers_until().map(|until| until - Instant::now());
    assert_eq!(until, Some(80 * MS));
    advance(80 * MS).await;
    assert_eq!(cadence.gathers_until(), None);
}

#[tokio::test(start_paused = true)]
async fn pods_that_never_end_to_come_hold_nothing_for_longer_than_a_second() {
    let mut cadence = cadence();
    let mut held_ms = 0;
    for _ in 0..300 {
        cadence.stir(Stir::Arrival, "");
        advance(10 * MS).await;
        held_ms += 10;
        if cadence.gathers_until().is_none() {
            assert!(held_ms <= 1_000, "{held_ms}");
            cadence.served();
            held_ms = 0;
        }
    }
    assert!(held_ms < 1_000);
}

#[tokio::test(start_paused = true)]
async fn while_others_come_first_the_tail_is_held_for_longer_and_over_longer_gaps() {
    for (ahead, every_ms, holds_ms) in
        [(0, 90, 1_000), (200, 90, 1_000), (600, 90, 3_000), (600, 290, 3_000), (9_000, 490, 5_000)]
    {
        let mut cadence = cadence();
        cadence.comes_after(ahead);
        cadence.stir(Stir::Arrival, "");
        let began = Instant::now();
        while began == Instant::now() || cadence.gathers_until().is_some() {
            advance(every_ms * MS).await;
            cadence.stir(Stir::Arrival, "");
        }
        let held = began.elapsed().as_millis();
        assert!((holds_ms..holds_ms + u128::from(every_ms)).contains(&held), "{ahead}: {held}");
    }
}

#[tokio::test(start_paused = true)]
async fn whoever_holds_nothing_holds_nothing_behind_others_either() {
    let mut cadence = Cadence::new(Duration::ZERO);
    cadence.comes_after(9_000);
    cadence.stir(Stir::Arrival, "");
    cadence.stir(Stir::Arrival, "");
    assert_eq!(cadence.gathers_until(), None);
}

#[tokio::test(start_paused = true)]
async fn a_plan_waits_a_moment_for_how_many_more_are_to_come() {
    let mut cadence = cadence();
    cadence.stir(Stir::Arrival, "");
    cadence.count(true);
    assert_eq!(due_ms(&cadence), Some(300));
    advance(120 * MS).await;
    cadence.stir(Stir::Demand, "");
    cadence.count(false);
    assert_eq!(due_ms(&cadence), Some(50));
}

#[tokio::test(start_paused = true)]
async fn echoes_are_planned_for_together_and_never_forgotten() {
    let mut cadence = cadence();
    cadence.begin(false);
    advance(200 * MS).await;
    for _ in 0..50 {
        cadence.stir(Stir::Echo, "");
        advance(10 * MS).await;
    }
    assert_eq!(due_ms(&cadence), Some(300), "a second after the plan before");
    cadence.stir(Stir::Demand, "");
    assert_eq!(due_ms(&cadence), Some(50), "a pod does not wait for that");
}

#[tokio::test(start_paused = true)]
async fn a_plan_for_what_only_may_matter_sees_the_end_of_it() {
    let mut cadence = cadence();
    for due in [Some(40), Some(20)] {
        for _ in 0..14 {
            cadence.stir(Stir::Echo, "");
            advance(10 * MS).await;
        }
        assert_eq!(due_ms(&cadence), due, "quiet, or 300 ms after the first");
    }
}

#[tokio::test(start_paused = true)]
async fn what_only_may_matter_cuts_no_burst_short() {
    let mut cadence = cadence();
    cadence.stir(Stir::Echo, "");
    advance(40 * MS).await;
    cadence.stir(Stir::Arrival, "");
    cadence.wake_after(20 * MS);
    assert_eq!(due_ms(&cadence), Some(50));
    advance(40 * MS).await;
    cadence.stir(Stir::Arrival, "");
    assert_eq!(due_ms(&cadence), Some(50), "the echo was due at once");
}

#[tokio::test(start_paused = true)]
async fn what_a_plan_did_not_look_at_is_looked_at_before_long() {
    let mut cadence = cadence();
    assert!(cadence.begin(false).1);
    advance(300 * MS).await;
    cadence.stir(Stir::Demand, "");
    assert!(!cadence.begin(false).1, "it has been looked at just now");
    assert_eq!(due_ms(&cadence), Some(700), "a second after it was looked at");
    advance(700 * MS).await;
    assert!(cadence.begin(false).1);
    assert_eq!(due_ms(&cadence), None);
}

#[tokio::test(start_paused = true)]
async fn nothing_goes_by_choice_while_pods_are_known_to_come() {
    let mut cadence = cadence();
    assert!(!cadence.begin(true).1);
    assert_eq!(due_ms(&cadence), Some(1_000));
    advance(1_000 * MS).await;
    assert!(cadence.begin(false).1);
}

#[tokio::test(start_paused = true)]
async fn plans_that_take_long_are_made_less_often_for_what_only_may_matter() {
    let mut cadence = cadence();
    cadence.begin(false);
    advance(400 * MS).await;
    cadence.ended();
    cadence.stir(Stir::Echo, "");
    assert_eq!(due_ms(&cadence), Some(3_600), "ten times as long after it began");
    cadence.stir(Stir::Demand, "");
    assert_eq!(due_ms(&cadence), Some(50));
    advance(50 * MS).await;
    assert!(!cadence.begin(false).1);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_planned_while_plans_are_held() {
    let mut cadence = cadence();
    cadence.hold(3_000 * MS);
    cadence.stir(Stir::Demand, "");
    assert_eq!(due_ms(&cadence), Some(3_000));
    cadence.release();
    assert_eq!(due_ms(&cadence), Some(50));
}
