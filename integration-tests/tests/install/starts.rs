//! How long programs take from their start to serving.
//!
//! Invariant: from the kernel's word on when a process began, to the time that the container
//! runtime puts before the line in which it says that it serves.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use jiff::Timestamp;
use rustix::time::{ClockId, clock_gettime};

use super::site::Site;

/// What is said once requests are answered: at the gRPC port, else at that of metrics and health.
const SERVES: [&str; 2] = ["\"listening\"", "serving metrics and health"];
/// Unit of times in /proc.
const TICKS_PER_SECOND: u64 = 100;
/// Field of proc(5)'s stat with the start, counted from behind the name.
const START_FIELD: usize = 19;

/// Every pod whose program is `program` was serving within `limit` of its start.
pub fn within(site: &Site, namespace: &str, program: &str, limit: Duration) -> Result<()> {
    let mut seen = 0;
    for (pod, began) in running(program)? {
        let logs = format!("kubectl logs --timestamps --namespace {namespace} {pod}");
        let log = site.shell.quiet(&logs)?;
        let says = |what: &str| log.lines().find(|line| line.contains(what));
        let line = SERVES.iter().find_map(|what| says(what));
        let line = line.with_context(|| format!("{pod} does not serve: {log}"))?;
        let serves: Timestamp = line.split_whitespace().next().unwrap_or_default().parse()?;
        let took = serves.duration_since(began);
        site.note(&format!("{pod} serves {} ms after its start", took.as_millis()))?;
        ensure!(took.unsigned_abs() < limit, "{pod} took {took:?}");
        seen += 1;
    }
    ensure!(seen > 0, "no {program} runs in {namespace}");
    Ok(())
}

/// Pods of this machine that run a program, and when it began.
fn running(program: &str) -> Result<Vec<(String, Timestamp)>> {
    let mut found = Vec::new();
    for process in std::fs::read_dir("/proc")? {
        let process = process?.path();
        // Of one that has ended meanwhile there is nothing to read.
        if let Some(pod) = pod(&process, program)
            && let Some(began) = began(&process)
        {
            found.push((pod, began));
        }
    }
    Ok(found)
}

fn pod(process: &Path, program: &str) -> Option<String> {
    let exe = std::fs::read_link(process.join("exe")).ok()?;
    let environment = std::fs::read(process.join("environ")).ok()?;
    let environment = String::from_utf8_lossy(&environment);
    let name = environment.split('\0').find_map(|entry| entry.strip_prefix("HOSTNAME="))?;
    (exe.file_name()? == program).then(|| name.to_owned())
}

fn began(process: &Path) -> Option<Timestamp> {
    let stat = std::fs::read_to_string(process.join("stat")).ok()?;
    let ticks = stat.rsplit_once(')')?.1.split_whitespace().nth(START_FIELD)?;
    let after_boot = Duration::from_millis(ticks.parse::<u64>().ok()? * 1_000 / TICKS_PER_SECOND);
    let since_boot = clock_gettime(ClockId::Boottime);
    let since_boot = Duration::new(
        u64::try_from(since_boot.tv_sec).ok()?,
        u32::try_from(since_boot.tv_nsec).ok()?,
    );
    Timestamp::now().checked_sub(since_boot.checked_sub(after_boot)?).ok()
}
