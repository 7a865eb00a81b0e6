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
use super::objective::least_price;

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
    let settings = least_price();
    let question = Question { objects, pods, catalogue, effort, settings, ..Question::default() };
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

#[cfg(test)]
mod tests {
    use std::fs;

    use clap::Parser as _;
    use longshore_core::{check, plan};

    use super::*;
    use crate::bench::args::{Args, Command};

    const TYPE: &str = r#"[{"Name": "a.large", "Arch": "amd64", "Cpu": 1930, "Mem": 3114, "Pods": 29, "Price": 0.085}]"#;

    /// As the peer's plans are judged too, which know of no fee.
    #[test]
    fn the_bound_is_one_of_the_price() -> Result<()> {
        let dir = tempfile::tempdir()?;
        let (types, pods) = (dir.path().join("types.json"), dir.path().join("pods.json"));
        fs::write(&types, TYPE)?;
        fs::write(&pods, "[[250, 512, 10]]")?;
        let words = ["bench".as_ref(), "pack".as_ref(), "--catalogue".as_ref(), types.as_os_str()];
        let words = words.into_iter().chain(["--workload".as_ref(), pods.as_os_str()]);
        let Command::Pack(args) = Args::try_parse_from(words)?.command else {
            anyhow::bail!("another command")
        };
        let input = input(&args)?;
        let plan = plan(&input);
        assert!(plan.bound.cost_micro_usd_per_hour <= plan.launch_price_micro_usd_per_hour);
        assert_eq!(check::check(&plan, &input), []);
        Ok(())
    }
}
