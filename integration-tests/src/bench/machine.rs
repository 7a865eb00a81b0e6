//! What the measuring machine and the measured source are.
//!
//! Invariant: says what it finds and nothing of who owns it; what it cannot find it calls unknown.

use std::process::Command;

/// The processor, the number of its cores and the memory.
#[must_use]
pub fn describe() -> String {
    let cpu = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = value(&cpu, "model name").unwrap_or("unknown processor");
    let cores = cpu.lines().filter(|line| line.starts_with("processor")).count();
    let memory = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let kib = value(&memory, "MemTotal").and_then(|text| text.split(' ').next()?.parse().ok());
    let gib = kib.map_or_else(|| "unknown".to_owned(), |kib: u64| (kib >> 20).to_string());
    format!("{model}, {cores} cores, {gib} GiB")
}

fn value<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    let line = text.lines().find(|line| line.starts_with(key))?;
    Some(line.split_once(':')?.1.trim())
}

/// The commit that was measured, with a mark when files differ from it; documents aside, which
/// measuring writes.
#[must_use]
pub fn commit() -> String {
    let Some(commit) = git(&["describe", "--always", "--exclude=*"]) else {
        return "unknown".to_owned();
    };
    match git(&["status", "--porcelain", "--untracked-files=no", "--", ".", ":!docs"]) {
        Some(differing) if differing.is_empty() => commit,
        _ => format!("{commit}-dirty"),
    }
}

/// What git says of these sources.
fn git(args: &[&str]) -> Option<String> {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
    let told = Command::new("git").args(["-C", root]).args(args).output().ok();
    let text = String::from_utf8(told.filter(|it| it.status.success())?.stdout).ok()?;
    Some(text.trim().to_owned())
}
