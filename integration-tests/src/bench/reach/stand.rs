//! Schedulers as they are shipped, above a region of paper: what the programs of this folder
//! measure.
//!
//! Invariant: the measured process is the real program, started anew, and ends with its stand.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;

use anyhow::Result;
use tempfile::TempDir;

use super::cluster::{Cluster, REGION, Size};
use super::region::Region;
use crate::stage::services::{Service, Surroundings};

/// A port picked by the system.
pub const ANY_PORT: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// Schedulers, and the clusters that they are told of.
pub struct Stand {
    /// The schedulers.
    pub schedulers: Vec<Service>,
    /// The clusters.
    pub clusters: Vec<Cluster>,
    region: Region,
    dir: TempDir,
}

impl Stand {
    /// Starts this many schedulers.
    ///
    /// # Errors
    /// When a program has not been built, or does not listen in time.
    pub async fn start(schedulers: usize, clusters: u32, size: Size) -> Result<Self> {
        let clusters: Vec<_> = (0..clusters).map(|number| Cluster::new(number, size)).collect();
        let dir = tempfile::tempdir()?;
        let region = Region::start(&clusters).await?;
        let surroundings = Surroundings::without_cluster(dir.path(), REGION, "");
        let mut started = Vec::new();
        for number in 0..schedulers {
            let (name, actuators) = (format!("scheduler-{number}"), [region.url.clone()]);
            started.push(surroundings.start_scheduler_as(&name, ANY_PORT, &actuators).await?);
        }
        Ok(Self { schedulers: started, clusters, region, dir })
    }

    /// URL of the region's actuator.
    #[must_use]
    pub fn region_url(&self) -> &str {
        &self.region.url
    }

    /// Folder for logs.
    #[must_use]
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }
}
