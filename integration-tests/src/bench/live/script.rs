//! Plays a case, and says when its phases began and ended.
//!
//! Invariant: a phase ends when the cluster shows its goal, or with its limit; after a fixed time
//! only where the case has no goal but that.

mod blockers;
mod nodes;
pub mod told;

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Result, ensure};
use k8s_openapi::api::apps::v1::Deployment;
use kube::Api;
use kube::api::{Patch, PatchParams};
use longshore_lab::instance::{Instance, InstanceSource as _, InstanceState};
use serde::{Deserialize, Serialize};
use tokio::time::interval;

use super::cases::{Act, Case, Goal, Phase, restarted};
use super::contender::{Running, Usage};
use super::recorder::Recorder;
use super::recorder::seen::Seen;
use super::world::{HOST, World};
use crate::stage::hands;
use told::Told;

/// A cluster that has not settled so long after its pods run is left, or after twice the time that
/// it has to be quiet for.
const SETTLE_LIMIT: Duration = Duration::from_secs(240);

/// A phase as it was played.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Span {
    /// Its name.
    pub name: String,
    /// What was waited for.
    pub goal: Goal,
    /// For how long at most.
    pub limit_s: u64,
    /// When it began, in milliseconds from the start of the recording.
    pub began_ms: u64,
    /// When its goal was reached.
    pub goal_ms: Option<u64>,
    /// When it ended.
    pub end_ms: u64,
    /// Whether nothing changed any more at its end.
    pub is_settled: bool,
    /// Pods that ran at the goal, or with the limit.
    pub running: usize,
    /// What the contender had used when it began, at its goal or limit, and at its end.
    pub usage: [Usage; 3],
    /// How many of its pods may be away at once; none where that is not counted.
    #[serde(default)]
    pub away: Option<u64>,
}

/// What has become of a case so far.
#[derive(Default)]
pub struct Course {
    /// Its phases, as far as it came.
    pub spans: Vec<Span>,
    /// What the contender told its users in phases that last a fixed time.
    pub told: Vec<Told>,
    /// Nodes that have to go, by what was done.
    doomed: Vec<String>,
}

/// Plays a case, and adds each phase that has ended. What does not reach its goal ends it.
///
/// # Errors
/// When the contender ends, or the cluster or the region cannot be told something.
pub async fn play(
    case: &Case,
    world: &World,
    recorder: &Recorder,
    contender: &mut Running,
    course: &mut Course,
) -> Result<()> {
    for phase in &case.phases {
        let (began_ms, before) = (recorder.clock.now_ms(), contender.usage()?);
        let reached = perform(phase, world, recorder, &mut course.doomed).await?;
        let goal_ms = reached.then(|| recorder.clock.now_ms());
        let (running, at_goal) = (recorder.look(|seen| seen.running), contender.usage()?);
        let limit = SETTLE_LIMIT.max(case.quiet * 2);
        let is_settled = reached && recorder.quiet(case.quiet, limit).await;
        course.spans.push(Span {
            name: phase.name.to_owned(),
            goal: phase.goal,
            limit_s: phase.limit.as_secs(),
            began_ms,
            goal_ms,
            end_ms: recorder.clock.now_ms(),
            is_settled,
            running,
            usage: [before, at_goal, contender.usage()?],
            away: phase.away,
        });
        if phase.goal.is_time() {
            let since = |at| recorder.clock.at_ms(at).is_some_and(|at_ms| at_ms >= began_ms);
            course.told.push(told::told(&world.client, phase.name, since).await?);
        } else if !reached {
            break;
        }
    }
    Ok(())
}

/// Acts, and waits for the goal; false when that is not reached within the limit.
async fn perform(
    phase: &Phase,
    world: &World,
    recorder: &Recorder,
    doomed: &mut Vec<String>,
) -> Result<bool> {
    let (old, mut nodes) = recorder.look(|seen| (seen.pods(), seen.nodes()));
    nodes.retain(|name| name != HOST.0);
    for act in &phase.acts {
        doomed.extend(carry_out(act, world).await?);
    }
    let reached = |seen: &Seen| {
        let all_run = seen.running == phase.goal.pods() && seen.waiting == 0;
        all_run
            && match phase.goal {
                Goal::Run(_) => true,
                Goal::Renewed(_) => !seen.has_any_of(&old),
                Goal::Rescued(_) => !seen.runs_on_any_of(doomed),
                Goal::Replaced(_) => !seen.has_node_of(&nodes),
                Goal::Cleared(_) => !seen.has_node_of(doomed),
                Goal::Elapse(_) => false,
            }
    };
    Ok(recorder.until(phase.limit, reached).await)
}

/// Acts, and names the nodes that are lost by it.
async fn carry_out(act: &Act, world: &World) -> Result<Vec<String>> {
    let client = &world.client;
    match act {
        Act::Apply(objects) => hands::apply(client, objects).await?,
        Act::Scale(name, replicas) => hands::scale(client, "default", name, *replicas).await?,
        Act::Drip { name, each, steps, every } => {
            let mut due = interval(*every);
            for step in 1..=*steps {
                due.tick().await;
                hands::scale(client, "default", name, step * each).await?;
            }
        }
        Act::Restart(name) => {
            let all: Api<Deployment> = Api::default_namespaced(client.clone());
            all.patch(name, &PatchParams::default(), &Patch::Merge(restarted())).await?;
        }
        Act::Block => blockers::place(client).await?,
        Act::Unblock => blockers::remove(client).await?,
        Act::InterruptInTen(share) => return interrupt(world, *share),
        Act::DeleteClaims => return nodes::delete_claims(client).await,
        Act::Ail => return nodes::ail(client).await,
    }
    Ok(Vec::new())
}

fn interrupt(world: &World, share: usize) -> Result<Vec<String>> {
    let runs = |it: &Instance| it.spot && it.state == InstanceState::Running;
    let all = world.region.instances().into_iter().filter(runs);
    let all: BTreeMap<String, Instance> = all.map(|it| (it.instance_id.clone(), it)).collect();
    let chosen = all.into_values().enumerate().filter(|(number, _)| number % 10 < share);
    let chosen: Vec<Instance> = chosen.map(|(_, instance)| instance).collect();
    ensure!(!chosen.is_empty(), "no spot instance runs; restrict the case's pool to spot");
    for instance in &chosen {
        world.region.interrupt_spot(&instance.instance_id)?;
    }
    Ok(chosen.into_iter().map(|instance| instance.private_dns_name).collect())
}
