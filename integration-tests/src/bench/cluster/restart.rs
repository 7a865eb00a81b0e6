//! A program that starts again while many pods wait.
//!
//! Invariant: the pods come while it is down; the clock starts before it does, and stops when nodes
//! are there, and when one plan has a place for every pod.

use std::time::Duration;

use anyhow::Result;
use tokio::time::Instant;

use super::ClusterArgs;
use super::fill;
use super::report::{LIMIT_BYTES, Measured, megabytes, seconds};
use super::stand::{Planned, Program, Stand};
use crate::bench::tell;

/// The programs that are started again.
pub const PROGRAMS: [Program; 3] = Program::ALL;

/// Measures.
///
/// # Errors
/// When a part does not start or ends, or nodes or plans do not come in time.
pub async fn measure(args: &ClusterArgs, program: Program) -> Result<Vec<Measured>> {
    let mut stand = Stand::start(args, true).await?;
    stand.start_program(Program::Watcher).await?;
    stand.whole().await?;
    stand.process(program)?.kill()?;
    fill::waiting(&stand.client, args.pending).await?;
    tell("  the pods wait; it starts");
    let began = Instant::now();
    stand.start_program(program).await?;
    let all = u64::from(args.pending);
    let full = |plan: Planned| plan.pods >= all && plan.held == 0 && plan.unplaced == 0;
    let times = stand.back(full).await?.map(|at| at.duration_since(began));
    let peaks = Program::ALL.map(|it| (it, stand.process(it).map(|it| it.peak_rss_bytes())));
    let mut memory = Vec::new();
    for (of, peak) in peaks {
        memory.push((of, peak??));
    }
    Ok(rows(args, program, times, &memory))
}

fn rows(
    args: &ClusterArgs,
    program: Program,
    [first, planned]: [Duration; 2],
    memory: &[(Program, u64)],
) -> Vec<Measured> {
    let name = format!("{} starts, {} pods wait", program.name(), args.pending);
    let text = |time: Duration| seconds(u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
    let own = memory.iter().find(|(of, _)| *of == program).map_or(0, |(_, bytes)| *bytes);
    let others = memory.iter().filter(|(of, _)| *of != program);
    let others = others.map(|(of, bytes)| format!("{} {}", of.name(), megabytes(*bytes)));
    let others = others.collect::<Vec<_>>().join(", ");
    let verdict = if own <= LIMIT_BYTES { "within" } else { "NOT within" };
    vec![
        Measured::new(format!("{name}: first node"), text(first)),
        Measured::new(format!("{name}: a plan for all"), text(planned)),
        Measured::new(format!("{name}: its largest memory"), megabytes(own))
            .with(format!("{verdict} {}; {others}", megabytes(LIMIT_BYTES))),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_held_against_its_limit() {
        #[derive(clap::Parser)]
        struct Line {
            #[command(flatten)]
            args: ClusterArgs,
        }
        let args = <Line as clap::Parser>::parse_from(["cluster", "--pending", "7"]).args;
        let memory = [(Program::Watcher, LIMIT_BYTES + 1), (Program::Scheduler, LIMIT_BYTES)];
        let times = [Duration::from_millis(1_500), Duration::from_secs(3)];
        let of = |program| rows(&args, program, times, &memory);
        let [first, .., own] = &of(Program::Watcher)[..] else { panic!("rows") };
        assert_eq!(first.row()[..2], ["watcher starts, 7 pods wait: first node", "1.50 s"]);
        assert_eq!(own.row()[2], "NOT within 512 MiB; scheduler 512 MiB");
        assert!(of(Program::Scheduler)[2].row()[2].starts_with("within 512 MiB"));
    }
}
