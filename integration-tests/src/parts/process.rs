//! A child process with a log file, that can be killed, frozen and waited for.
//!
//! Invariant: the process does not outlive its [`Process`], and everything it wrote is in its log.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use rustix::process::{Pid, Signal, kill_process};

use super::{binary, poll};

/// Unit of processor time in /proc: the kernel shows it to programs in hundredths of a second,
/// whatever it counts in itself.
const MS_PER_TICK: u64 = 10;
/// How many lines of its log an error about a process shows.
const LOG_TAIL_LINES: usize = 15;

/// A running child process.
pub struct Process {
    name: String,
    child: Child,
    log: PathBuf,
    /// Bytes that earlier processes of this name had written.
    inherited: usize,
}

impl Process {
    /// Starts `command` with standard output and error going to `DIR/NAME.log` (appended, so that a
    /// restarted process continues its log).
    ///
    /// # Errors
    /// When the log cannot be opened or the program cannot be started.
    pub fn start(name: &str, mut command: Command, dir: &Path) -> Result<Self> {
        let log = dir.join(format!("{name}.log"));
        let out = File::options().create(true).append(true).open(&log);
        let out = out.with_context(|| format!("cannot write {}", log.display()))?;
        let inherited = usize::try_from(out.metadata()?.len())?;
        let child = command
            .stdin(Stdio::null())
            .stdout(out.try_clone()?)
            .stderr(out)
            .spawn()
            .with_context(|| format!("cannot start {name}"))?;
        Ok(Self { name: name.to_owned(), child, log, inherited })
    }

    /// Starts a program of this workspace, with its log in `dir`.
    ///
    /// # Errors
    /// When the program has not been built or cannot be started.
    pub fn start_ours<A: AsRef<OsStr>>(program: &str, args: &[A], dir: &Path) -> Result<Self> {
        let mut command = binary::workspace_command(program)?;
        command.args(args).env("RUST_BACKTRACE", "1");
        Self::start(program, command, dir)
    }

    /// Largest resident set of the process so far, in bytes.
    ///
    /// # Errors
    /// Where the system does not tell.
    pub fn peak_rss_bytes(&self) -> Result<u64> {
        peak_rss_bytes(&self.child.id().to_string())
    }

    /// Resident set of the process now, in bytes.
    ///
    /// # Errors
    /// Where the system does not tell.
    pub fn rss_bytes(&self) -> Result<u64> {
        status_bytes(&self.child.id().to_string(), "VmRSS:")
    }

    /// Processor time that the process has used so far, in milliseconds, its own and the system's
    /// for it.
    ///
    /// # Errors
    /// Where the system does not tell.
    pub fn cpu_ms(&self) -> Result<u64> {
        let path = format!("/proc/{}/stat", self.child.id());
        let stat = fs::read_to_string(&path)?;
        let ticks = cpu_ticks(&stat).with_context(|| format!("no times in {path}"))?;
        Ok(ticks * MS_PER_TICK)
    }

    /// The file that holds what the process wrote.
    #[must_use]
    pub fn log_path(&self) -> &Path {
        &self.log
    }

    /// What this process wrote so far.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub fn log(&self) -> Result<String> {
        let bytes = fs::read(&self.log);
        let bytes = bytes.with_context(|| format!("cannot read {}", self.log.display()))?;
        let own = bytes.get(self.inherited..).unwrap_or_default();
        Ok(String::from_utf8_lossy(own).into_owned())
    }

    /// The exit status, once the process has ended.
    ///
    /// # Errors
    /// When the operating system does not say.
    pub fn exit_status(&mut self) -> Result<Option<ExitStatus>> {
        Ok(self.child.try_wait()?)
    }

    /// An error with the end of the log if the process has ended, for use while waiting for it.
    ///
    /// # Errors
    /// When the process has ended.
    pub fn ensure_running(&mut self) -> Result<()> {
        match self.exit_status()? {
            None => Ok(()),
            Some(status) => Err(self.with_log_tail(&format!("ended ({status})"))),
        }
    }

    /// Waits for a line that contains `text`, and returns that line.
    ///
    /// # Errors
    /// When the process ends, or `limit` passes, without such a line.
    pub async fn wait_for_line(&mut self, text: &str, limit: Duration) -> Result<String> {
        let what = format!("{} writes '{text}'", self.name);
        let found = poll::until(&what, limit, || {
            let line = self.find_line(text);
            async move { line }
        });
        found.await?.ok_or_else(|| self.with_log_tail(&format!("ended without writing '{text}'")))
    }

    /// Waits for the process to end by itself, for instance after [`Process::terminate`].
    ///
    /// # Errors
    /// When it has not ended after `limit`.
    pub async fn wait_for_exit(&mut self, limit: Duration) -> Result<ExitStatus> {
        let what = format!("{} ends", self.name);
        let ended = poll::until(&what, limit, || {
            let status = self.exit_status();
            async move { status?.ok_or_else(|| anyhow!("it still runs")) }
        });
        ended.await.map_err(|error| self.with_log_tail(&error.to_string()))
    }

    /// Asks the process to end (SIGTERM), as Kubernetes does.
    ///
    /// # Errors
    /// When the process has ended already.
    pub fn terminate(&self) -> Result<()> {
        self.signal(Signal::TERM)
    }

    /// Freezes the process (SIGSTOP): its connections stay open and nothing answers.
    ///
    /// # Errors
    /// When the process has ended.
    pub fn freeze(&self) -> Result<()> {
        self.signal(Signal::STOP)
    }

    /// Lets a frozen process go on (SIGCONT).
    ///
    /// # Errors
    /// When the process has ended.
    pub fn thaw(&self) -> Result<()> {
        self.signal(Signal::CONT)
    }

    /// Kills the process without warning (SIGKILL) and waits until it is gone.
    ///
    /// # Errors
    /// When the operating system refuses.
    pub fn kill(&mut self) -> Result<()> {
        self.child.kill().and_then(|()| self.child.wait().map(drop))?;
        Ok(())
    }

    fn signal(&self, signal: Signal) -> Result<()> {
        kill_process(Pid::from_child(&self.child), signal)
            .with_context(|| format!("cannot signal {}", self.name))
    }

    /// `Some(line)` once there is one; `None` when the process has ended without it.
    fn find_line(&mut self, text: &str) -> Result<Option<String>> {
        // Asked first: what a process wrote before it ended must still be found.
        let ended = self.exit_status()?.is_some();
        match self.log()?.lines().find(|line| line.contains(text)) {
            Some(line) => Ok(Some(line.to_owned())),
            None if ended => Ok(None),
            None => Err(anyhow!("{}", self.with_log_tail("runs"))),
        }
    }

    fn with_log_tail(&self, what: &str) -> anyhow::Error {
        let log = self.log().unwrap_or_default();
        let skip = log.lines().count().saturating_sub(LOG_TAIL_LINES);
        let tail: Vec<&str> = log.lines().skip(skip).collect();
        anyhow!("{} {what}; end of {}:\n{}", self.name, self.log.display(), tail.join("\n"))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended already: then there is nothing left to do.
        let _ = self.kill();
    }
}

/// utime and stime of proc(5), fields 14 and 15. They are counted from behind the name, which may
/// hold spaces.
fn cpu_ticks(stat: &str) -> Option<u64> {
    let mut after_name = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let user: u64 = after_name.next()?.parse().ok()?;
    let system: u64 = after_name.next()?.parse().ok()?;
    Some(user + system)
}

/// Largest resident set of a process so far, in bytes; `self` for this one.
///
/// # Errors
/// Where the system does not tell.
pub fn peak_rss_bytes(process: &str) -> Result<u64> {
    status_bytes(process, "VmHWM:")
}

/// A size in a process's status, in bytes.
fn status_bytes(process: &str, name: &str) -> Result<u64> {
    let path = format!("/proc/{process}/status");
    let status = fs::read_to_string(&path)?;
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB"));
    let kib: u64 = kib.with_context(|| format!("no {name} in {path}"))?.trim().parse()?;
    Ok(kib << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processor_time_is_read_behind_any_name() {
        let stat = "7 (a ) b) S 1 7 7 0 -1 4194304 10 0 0 0 123 45 0 0 20 0 1 0 99 1 1";
        assert_eq!(cpu_ticks(stat), Some(168));
        assert_eq!(cpu_ticks("7 (a) S 1"), None);
    }
}
