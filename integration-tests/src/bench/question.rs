//! Files to the planner's input.
//!
//! Invariant: the way of `longshore plan`: the same readers, the scheduler's own translation.

use anyhow::Result;
use longshore_core::question::PlanInput;
use longshore_manifests::{inventory, manifest, neutral};
use longshore_proto::types::v1::object::Kind;
use longshore_proto::types::v1::{Catalogue, DaemonSet, Object, PodCount, PodShape};
use longshore_scheduler::compute::{self, Question};

use super::args::PackArgs;

/// The planner's input for a pair of files.
///
/// # Errors
/// When a file cannot be read or is of another form.
pub fn input(args: &PackArgs) -> Result<PlanInput> {
    let (mut objects, pods) = demand(args)?;
    if let Some(set) = args.daemonset {
        objects.extend(daemon_set(set));
    }
    let catalogue = catalogue(args)?;
    let effort = args.effort.to_wire();
    let question = Question { objects, pods, catalogue, effort, ..Question::default() };
    Ok(compute::input(&question)?)
}

fn demand(args: &PackArgs) -> Result<(Vec<Object>, Vec<PodCount>)> {
    if let Some(workload) = &args.workload {
        return Ok(neutral::objects(&neutral::demand(workload)?));
    }
    let found = inventory::take(manifest::read(&args.files)?)?;
    Ok((found.objects, found.pods))
}

fn catalogue(args: &PackArgs) -> Result<Catalogue> {
    let mut all = neutral::catalogue(&args.catalogue)?;
    if let Some(most) = args.max_cpu_milli {
        all.types.retain(|kind| kind.capacity.as_ref().is_some_and(|has| has.cpu_millis <= most));
    }
    Ok(all)
}

fn daemon_set(set: super::catalogues::DaemonSet) -> [Object; 2] {
    let shape_id = "daemon".to_owned();
    let shape = PodShape {
        shape_id: shape_id.clone(),
        namespace: "default".to_owned(),
        owner: "DaemonSet/daemon".to_owned(),
        daemon: true,
        requests: Some(neutral::pod_requests(set.cpu_millis, set.memory_mib)),
        ..PodShape::default()
    };
    let set = DaemonSet { namespace: "default".to_owned(), name: "daemon".to_owned(), shape_id };
    [Kind::PodShape(shape), Kind::DaemonSet(set)].map(|kind| Object { kind: Some(kind) })
}
