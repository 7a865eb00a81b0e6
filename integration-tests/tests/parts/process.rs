//! A child process is heard, can be asked to end, and does not outlive its handle.

use std::process::Command;
use std::time::Duration;

use anyhow::Result;
use longshore_it::parts::Process;

const LIMIT: Duration = Duration::from_secs(60);

fn shell(script: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", script]);
    command
}

#[tokio::test]
async fn its_lines_are_found_and_its_end_is_seen() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let script = "sleep 60 & trap 'echo stopping; kill $!; exit 3' TERM; echo ready; wait";
    let mut process = Process::start("loop", shell(script), dir.path())?;
    assert_eq!(process.wait_for_line("ready", LIMIT).await?, "ready");
    process.ensure_running()?;
    process.terminate()?;
    assert_eq!(process.wait_for_exit(LIMIT).await?.code(), Some(3));
    assert!(process.log()?.ends_with("stopping\n"));
    Ok(())
}

#[tokio::test]
async fn a_line_that_never_comes_is_an_error_with_the_log() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let mut process = Process::start("short", shell("echo only this"), dir.path())?;
    let error = process.wait_for_line("something else", LIMIT).await.unwrap_err().to_string();
    assert!(error.contains("ended without writing 'something else'"), "{error}");
    assert!(error.contains("only this"), "{error}");
    Ok(())
}
