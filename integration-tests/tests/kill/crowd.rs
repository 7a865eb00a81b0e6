//! A crowd of pods that each need a node of their own, so that launches can be counted.
//!
//! Invariant: as many launches are planned as there are pods, no more and no fewer.

use std::time::Duration;

use anyhow::{Result, ensure};
use longshore_it::parts::poll;
use longshore_it::stage::fleet::{Fleet, FleetConfig};
use longshore_it::stage::{crowd, eyes, hands};
use longshore_lab::region::{CLUSTER, Fault, RegionConfig, RegionHandle};
use serde_json::Value;

/// Name of the call that launches.
pub const CREATE_FLEET: &str = "ec2:CreateFleet";
/// Most time for anything on a busy machine.
pub const LIMIT: Duration = Duration::from_secs(150);
/// Within this somebody has to lead again after a death: the lease of 3 s runs out first.
pub const TAKEOVER_LIMIT: Duration = Duration::from_secs(5);
/// How late the region's answer to a launch is: time enough to kill somebody in between.
const ANSWER_DELAY_MS: u32 = 700;
/// Shortest time an instance takes to boot.
const BOOT_MS: u32 = 500;

/// A fleet with node class and pool, and a crowd to come.
pub struct Crowd {
    /// The services and their world.
    pub fleet: Fleet,
    pods: u32,
}

impl Crowd {
    /// Starts a fleet whose region answers launches slowly. Logs stay in the target folder.
    pub async fn start(name: &str, pods: u32, adjust: fn(&mut FleetConfig)) -> Result<Self> {
        let dir = crate::kept_dir(&format!("kill-{name}-"))?;
        let region = RegionConfig::simple("us-east-1")?;
        let mut config = FleetConfig::new(region, CLUSTER, &dir);
        config.region.timing.boot_min_ms = BOOT_MS;
        config.region.timing.boot_max_ms = 2 * BOOT_MS;
        adjust(&mut config);
        let fleet = Box::pin(Fleet::start(config)).await?;
        fleet.region.fail_next_calls(CREATE_FLEET, 2 * pods, &Fault::Slow(ANSWER_DELAY_MS));
        hands::apply(&fleet.client, &supply()).await?;
        Ok(Self { fleet, pods })
    }

    /// Lets the crowd come.
    pub async fn arrive(&self) -> Result<()> {
        hands::apply(&self.fleet.client, &[workload(self.pods)]).await
    }

    /// Lets more pods come.
    pub async fn grow(&mut self, more: u32) -> Result<()> {
        self.pods += more;
        hands::scale(&self.fleet.client, "default", "crowd", self.pods).await
    }

    /// Waits until this many launches have been asked of EC2; by then not every pod may run.
    pub async fn launching(&self, at_least: usize) -> Result<()> {
        let seen = poll::until("launches are under way", LIMIT, || async {
            let calls = self.launches();
            ensure!(calls >= at_least, "{calls} instances asked for");
            Ok::<_, anyhow::Error>(())
        });
        seen.await?;
        let sight = eyes::look(&self.fleet.client, "default", "app=crowd").await?;
        ensure!(sight.running < usize::try_from(self.pods)?, "too late to be in the middle");
        Ok(())
    }

    /// How many instances EC2 has been asked for, repetitions included.
    pub fn launches(&self) -> usize {
        asked_for(&self.fleet.region)
    }

    /// Waits until every pod runs and all books agree; then nothing was launched in vain.
    pub async fn settled(&self) -> Result<()> {
        self.settled_after(usize::try_from(self.pods)?).await
    }

    /// The same where so many launches are no more than it takes.
    pub async fn settled_after(&self, launches: usize) -> Result<()> {
        let pods = usize::try_from(self.pods)?;
        let client = &self.fleet.client;
        let settled = poll::until("every pod runs and the books agree", LIMIT, || async {
            let sight = eyes::look(client, "default", "app=crowd").await?;
            ensure!(sight.running == pods, "{} run, {} wait", sight.running, sight.pending);
            self.fleet.reconciled().await
        });
        let logs = self.fleet.log_dir().display();
        let books = settled.await.map_err(|error| error.context(format!("logs in {logs}")))?;
        ensure!(
            books.launches == launches,
            "{} launches for {pods} pods; logs in {logs}",
            books.launches
        );
        ensure!(books.duplicates == 0 && books.leaks == 0, "{books:?}; logs in {logs}");
        Ok(())
    }
}

/// How many instances a region has been asked for, repetitions included.
pub fn asked_for(region: &RegionHandle) -> usize {
    region.calls_of(CREATE_FLEET).iter().map(|call| call.instances).sum()
}

/// Node class and pool.
pub fn supply() -> [Value; 2] {
    crowd::supply(&[crowd::families(&["c5", "m5"])])
}

/// A Deployment whose pods each need a node of their own.
pub fn workload(pods: u32) -> Value {
    crowd::workload("crowd", pods)
}
