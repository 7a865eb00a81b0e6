//! Job -> Pods.
//!
//! Invariant: no more pods run than parallelism allows or completions still need.

use std::sync::Arc;

use serde_json::{Value, json};

use super::work::{Context, Outcome, count, pod_from_template};
use crate::cluster::object;
use crate::cluster::schedule::pod::{Phase, PodView};
use crate::cluster::server::{DeleteOptions, Part};
use crate::cluster::store::Key;

const RESOURCE: &str = "jobs.batch";

pub(super) fn reconcile(context: &mut Context<'_>, key: &Key) -> Outcome {
    let Some(job) = context.get(RESOURCE, key) else { return Ok(()) };
    let pods = context.world.pods_of(object::uid(&job));
    let tally = Tally::of(&job, &pods);
    let is_over = ["Complete", "Failed"].iter().any(|kind| object::condition_is_true(&job, kind));
    if !is_over && !object::is_deleting(&job) && job["spec"]["suspend"] != true {
        balance(context, &job, &pods, &tally)?;
    }
    let stamp = context.server.clock().stamp();
    context.modify(RESOURCE, key, Part::Status, |job| {
        let status = &mut job["status"];
        if status["startTime"].is_null() {
            status["startTime"] = json!(stamp);
        }
        status["active"] = json!(tally.active);
        status["ready"] = json!(tally.ready);
        status["succeeded"] = json!(tally.succeeded);
        status["failed"] = json!(tally.failed);
        if let Some(kind) = tally.verdict.filter(|_| !is_over) {
            if kind == "Complete" {
                status["completionTime"] = json!(stamp);
            }
            object::set_condition(job, json!({ "type": kind, "status": "True" }), &stamp);
        }
    })
}

struct Tally {
    active: i64,
    ready: i64,
    succeeded: i64,
    failed: i64,
    needed: i64,
    verdict: Option<&'static str>,
}

impl Tally {
    fn of(job: &Value, pods: &[Arc<PodView>]) -> Self {
        let number = |field: &str| job["spec"][field].as_i64();
        let ended = |phase: Phase| count(pods.iter().filter(|pod| pod.phase == phase));
        let active = count(pods.iter().filter(|pod| pod.is_active()));
        // Counts already recorded survive the deletion of their pods.
        let recorded = |field: &str| job["status"][field].as_i64().unwrap_or(0);
        let succeeded = ended(Phase::Succeeded).max(recorded("succeeded"));
        let failed = ended(Phase::Failed).max(recorded("failed"));
        let parallelism = number("parallelism").unwrap_or(1);
        let left = match number("completions") {
            Some(completions) => completions - succeeded,
            None if succeeded > 0 => active,
            None => parallelism,
        };
        let is_complete = match number("completions") {
            Some(completions) => succeeded >= completions,
            None => succeeded > 0 && active == 0,
        };
        let verdict = if failed > number("backoffLimit").unwrap_or(6) {
            Some("Failed")
        } else {
            is_complete.then_some("Complete")
        };
        Self {
            active,
            ready: count(pods.iter().filter(|pod| pod.is_ready)),
            succeeded,
            failed,
            needed: if verdict.is_some() { 0 } else { left.min(parallelism).max(0) },
            verdict,
        }
    }
}

fn balance(context: &Context<'_>, job: &Value, pods: &[Arc<PodView>], tally: &Tally) -> Outcome {
    for _ in tally.active..tally.needed {
        context.create("pods", pod_from_template(job, &job["spec"]["template"]))?;
    }
    let excess = usize::try_from(tally.active - tally.needed).unwrap_or(0);
    let active = pods.iter().filter(|pod| pod.is_active());
    for pod in active.take(excess) {
        context.delete("pods", &pod.key, &DeleteOptions::default())?;
    }
    Ok(())
}
