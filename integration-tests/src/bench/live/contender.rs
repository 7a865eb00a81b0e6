//! A contender as a process.
//!
//! Invariant: both are started as they are shipped, with the same rights, the same region and the
//! same cluster, and each is one process.

use std::time::Duration;

use anyhow::Result;
use serde::{Deserialize, Serialize};

use super::args::Contender;
use super::world::World;
use crate::parts::Process;
use crate::stage::karpenter::Karpenter;
use crate::stage::up;

/// How long it may take to end.
const STOP_LIMIT: Duration = Duration::from_secs(60);

/// What a process has used so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct Usage {
    /// Processor time in milliseconds.
    pub cpu_ms: u64,
    /// Largest resident set in bytes.
    pub peak_rss_bytes: u64,
}

/// A contender that runs.
pub struct Running(Process);

impl Running {
    /// Starts it, and waits until it serves; where nodes are to be repaired, Karpenter has its
    /// feature gate for that on, and Longshore repairs them by itself.
    ///
    /// # Errors
    /// When it is not there, or does not serve in time.
    pub async fn start(contender: Contender, world: &World, repairs: bool) -> Result<Self> {
        let (name, around) = (contender.text(), &world.around);
        match contender {
            Contender::Karpenter => {
                let gates = if repairs { "NodeRepair=true" } else { "" };
                let started = Karpenter::start_with(&name, around, &world.client, gates).await?;
                Ok(Self(started.process))
            }
            Contender::Longshore => {
                let mut process = Process::start(&name, up::command(&name, around)?, &around.dir)?;
                up::metrics(&mut process).await?;
                Ok(Self(process))
            }
        }
    }

    /// What it has used so far.
    ///
    /// # Errors
    /// When it has ended; the error holds the end of its log.
    pub fn usage(&mut self) -> Result<Usage> {
        self.0.ensure_running()?;
        Ok(Usage { cpu_ms: self.0.cpu_ms()?, peak_rss_bytes: self.0.peak_rss_bytes()? })
    }

    /// Asks it to end, and waits for that.
    ///
    /// # Errors
    /// When it has ended already, or does not end in time.
    pub async fn stop(mut self) -> Result<()> {
        self.0.terminate()?;
        self.0.wait_for_exit(STOP_LIMIT).await.map(drop)
    }
}
