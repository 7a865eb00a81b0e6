//! What a user types, and what is answered.
//!
//! Invariant: everything that is run here is in the transcript, with all of its answer.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::time::Instant;

use anyhow::{Context, Result, ensure};

/// A shell in a folder, with a transcript.
pub struct Shell {
    dir: PathBuf,
    env: BTreeMap<&'static str, String>,
    begun: Instant,
    transcript: Mutex<File>,
}

impl Shell {
    /// A shell in `dir`, which finds programs in these folders first.
    #[expect(clippy::disallowed_methods, reason = "a shell finds programs as this process does")]
    pub fn new(dir: &Path, programs: &[PathBuf]) -> Result<Self> {
        let path = std::env::join_paths(programs)?;
        let own = std::env::var("PATH").unwrap_or_default();
        let transcript = File::create(dir.join("transcript.txt"))?;
        Ok(Self {
            dir: dir.to_owned(),
            env: BTreeMap::from([("PATH", format!("{}:{own}", path.to_string_lossy()))]),
            begun: Instant::now(),
            transcript: Mutex::new(transcript),
        })
    }

    /// Sets a variable.
    pub fn set(&mut self, name: &'static str, value: impl ToString) {
        self.env.insert(name, value.to_string());
    }

    /// The folder that it is in.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Runs a command line and returns what it printed.
    pub fn run(&self, line: &str) -> Result<String> {
        self.write(&format!("\n[{:>4} s] $ {line}\n", self.begun.elapsed().as_secs()))?;
        let answer = self.quiet(line);
        let said = answer.as_ref().map_or_else(ToString::to_string, Clone::clone);
        self.write(&said)?;
        answer
    }

    /// The same for a look at something, which nobody reads afterwards.
    pub fn quiet(&self, line: &str) -> Result<String> {
        let mut command = Command::new("bash");
        // Answers and complaints in the order in which they came.
        command.args(["-euo", "pipefail", "-c", &format!("exec 2>&1; {line}")]);
        command.current_dir(&self.dir).envs(&self.env);
        let output = command.output()?;
        let out = String::from_utf8_lossy(&output.stdout).into_owned();
        ensure!(output.status.success(), "`{line}`: {}\n{out}", output.status);
        Ok(out)
    }

    /// Writes something else into the transcript.
    #[expect(clippy::print_stdout, reason = "who waits for it sees how far it is")]
    pub fn write(&self, text: &str) -> Result<()> {
        print!("{text}");
        let mut file = self.transcript.lock().ok().context("a writer died")?;
        Ok(file.write_all(text.as_bytes())?)
    }
}
