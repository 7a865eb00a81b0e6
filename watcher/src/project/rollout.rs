//! What a pool says of its rollouts: by annotations how careful they are to be, by a condition
//! which one has been stopped.
//!
//! Invariant: a rollout that was stopped is known by the name of what nodes were to become, so that
//! it stays stopped over restarts, and no longer than until something else is asked for.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, ObjectMeta};
use longshore_proto::types::v1::Rollout;
use prost_types::Duration;

use super::annotation;
use super::fault::FieldResult;
use crate::api::PlainDuration;
use crate::api::keys::conditions;
use crate::names;

/// What an annotation may say, for people.
const COUNT: &str = "a count such as 1 or a percentage such as 10%";
const PERIOD: &str = "a duration such as 30s or 10m";

/// How careful rollouts of a pool are to be.
///
/// # Errors
/// A value of an annotation that has no meaning.
pub fn rules(metadata: &ObjectMeta) -> FieldResult<Rollout> {
    Ok(Rollout {
        canary: canary(metadata)?.unwrap_or_default(),
        wait: period(metadata, names::CANARY_WAIT)?,
        patience: period(metadata, names::CANARY_PATIENCE)?,
        ..Rollout::default()
    })
}

/// The rules, with the rollout that has been stopped, unless it is to be tried again.
#[must_use]
pub fn said(metadata: &ObjectMeta, conditions: &[Condition], rules: Rollout) -> Rollout {
    let failed = conditions.iter().find(|it| it.type_ == conditions::ROLLOUT_HEALTHY);
    let failed = failed.filter(|condition| condition.status == "False");
    let stopped = failed.and_then(|condition| {
        let (_, target) = condition.reason.split_once(':')?;
        Some((target.to_owned(), condition.message.clone()))
    });
    let again = annotation::text(metadata, names::RETRY_ROLLOUT);
    match stopped.filter(|(target, _)| Some(target.as_str()) != again) {
        Some((stopped, stopped_because)) => Rollout { stopped, stopped_because, ..rules },
        None => rules,
    }
}

fn canary(metadata: &ObjectMeta) -> FieldResult<Option<String>> {
    let Some(text) = annotation::text(metadata, names::CANARY) else { return Ok(None) };
    let digits = text.strip_suffix('%').unwrap_or(text);
    if digits.parse::<u32>().is_err() {
        return Err(annotation::wrong(names::CANARY, text, COUNT));
    }
    Ok(Some(text.to_owned()))
}

fn period(metadata: &ObjectMeta, key: &str) -> FieldResult<Option<Duration>> {
    let Some(text) = annotation::text(metadata, key) else { return Ok(None) };
    let read = PlainDuration::try_from(text.to_owned());
    let read = read.ok().and_then(|plain| Duration::try_from(plain.duration()).ok());
    read.map(Some).ok_or_else(|| annotation::wrong(key, text, PERIOD))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noted(pairs: &[(&str, &str)]) -> ObjectMeta {
        let pairs = pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        ObjectMeta { annotations: Some(pairs.collect()), ..ObjectMeta::default() }
    }

    #[test]
    fn annotations_say_how_careful_a_rollout_is() {
        let read = rules(&noted(&[
            (names::CANARY, "10%"),
            (names::CANARY_WAIT, "1m30s"),
            (names::CANARY_PATIENCE, "5m"),
        ]));
        let read = read.unwrap();
        let seconds = |it: Option<Duration>| it.map(|it| it.seconds);
        assert_eq!(read.canary, "10%");
        assert_eq!((seconds(read.wait), seconds(read.patience)), (Some(90), Some(300)));
        assert_eq!(rules(&ObjectMeta::default()), Ok(Rollout::default()));
        for (key, value) in [
            (names::CANARY, "few"),
            (names::CANARY, "-1"),
            (names::CANARY_WAIT, "30"),
            (names::CANARY_PATIENCE, "soon"),
        ] {
            let fault = rules(&noted(&[(key, value)])).unwrap_err().to_string();
            assert!(fault.contains(key) && fault.contains(value), "{fault}");
        }
    }

    #[test]
    fn a_stopped_rollout_is_remembered_by_its_condition_until_it_is_to_be_tried_again() {
        let condition = |status: &str| Condition {
            type_: conditions::ROLLOUT_HEALTHY.to_owned(),
            status: status.to_owned(),
            reason: "CanaryFailed:1a2b".to_owned(),
            message: "n-1 is not ready".to_owned(),
            last_transition_time: crate::patch::time(0),
            observed_generation: None,
        };
        let read = |notes: &[(&str, &str)], status| {
            let rollout = said(&noted(notes), &[condition(status)], Rollout::default());
            (rollout.stopped, rollout.stopped_because)
        };
        let stopped = ("1a2b".to_owned(), "n-1 is not ready".to_owned());
        assert_eq!(read(&[], "False"), stopped);
        assert_eq!(read(&[(names::RETRY_ROLLOUT, "3c4d")], "False"), stopped);
        assert_eq!(read(&[(names::RETRY_ROLLOUT, "1a2b")], "False"), Default::default());
        assert_eq!(read(&[], "True"), Default::default());
    }
}
