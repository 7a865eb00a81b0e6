//! What can be seen of a fleet from outside.
//!
//! Invariant: asked of the services, the cluster and the region themselves, past the proxies.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use longshore_lab::instance::InstanceSource as _;
use longshore_lab::region::CallRecord;
use tokio::time::timeout;

use super::super::agreement::{self, Books};
use super::super::eyes;
use super::super::ledger::{self, Ledger};
use super::{Fleet, Leader, actuator_name};
use crate::demo::audit;

/// How long an actuator may take to say whether it leads.
const ANSWER_LIMIT: Duration = Duration::from_secs(2);

impl Fleet {
    /// Where a scheduler listens, in all of its lives.
    ///
    /// # Errors
    /// When there is no such scheduler.
    pub fn scheduler_address(&self, index: usize) -> Result<SocketAddr> {
        Ok(self.schedulers.get(index).context("no such scheduler")?.address)
    }

    /// Where schedulers reach the actuators.
    #[must_use]
    pub fn actuator_urls(&self) -> Vec<String> {
        self.actuators.iter().map(|actuator| actuator.url.clone()).collect()
    }

    /// The actuator that leads, and its term.
    ///
    /// # Errors
    /// When none does; the message says what each answered.
    pub async fn leader(&self) -> Result<Leader> {
        let mut answers = Vec::new();
        for (index, actuator) in self.actuators.iter().enumerate() {
            // One that is frozen accepts the connection and says nothing.
            let asked = timeout(ANSWER_LIMIT, ledger::term(&actuator.service.url())).await;
            match asked.map_err(|_| anyhow!("no answer")).flatten() {
                Ok(term) => return Ok(Leader { actuator: index, term }),
                Err(error) => answers.push(format!("actuator {index}: {error:#}")),
            }
        }
        Err(anyhow!("nobody leads: {}", answers.join("; ")))
    }

    /// The watcher that works: the one that the cluster's Lease names.
    ///
    /// # Errors
    /// When none of the fleet's watchers holds it.
    pub async fn working_watcher(&self) -> Result<usize> {
        let holder = eyes::lease_holder(&self.client).await?;
        let found = self.watchers.iter().position(|watcher| watcher.name == holder);
        found.with_context(|| format!("the Lease is held by {holder:?}"))
    }

    /// What the leading actuator reports.
    ///
    /// # Errors
    /// When none leads.
    pub async fn ledger(&self) -> Result<Ledger> {
        let leader = self.leader().await?;
        let actuator = self.actuators.get(leader.actuator).context("no such actuator")?;
        ledger::read(&actuator.service.url()).await
    }

    /// The scheduler that holds the cluster's newest session.
    ///
    /// # Errors
    /// When none has had one yet.
    pub fn session_holder(&self) -> Result<usize> {
        let mut newest: Option<(u64, usize)> = None;
        for (index, scheduler) in self.schedulers.iter().enumerate() {
            let log = scheduler.process.log()?;
            let epochs = log.lines().filter_map(|line| line.split("watcher connected").nth(1));
            let epochs = epochs.filter_map(|rest| rest.split("epoch=").nth(1)?.split(' ').next());
            newest = newest.max(epochs.filter_map(|it| Some((it.parse().ok()?, index))).max());
        }
        newest.map(|(_, index)| index).context("no watcher has connected yet")
    }

    /// Every call of AWS that an actuator made, in all of its lives.
    #[must_use]
    pub fn calls_by(&self, actuator: usize) -> Vec<CallRecord> {
        let session = format!("/{}", actuator_name(actuator));
        let mut calls = self.region.calls();
        calls.retain(|call| call.principal.ends_with(&session));
        calls
    }

    /// Instances, ledger, NodeClaims and Nodes agree; returns the counts over all instances.
    ///
    /// # Errors
    /// When they do not; the message names every disagreement.
    pub async fn reconciled(&self) -> Result<audit::Books> {
        let instances = self.region.instances();
        let ledger = self.ledger().await?;
        let claims = eyes::claims(&self.client).await?;
        let nodes = eyes::list(&self.client, "", "v1", "Node").await?;
        let books =
            Books { instances: &instances, ledger: &ledger, claims: &claims, nodes: &nodes };
        books.agree()?;
        let claimed: BTreeSet<String> = agreement::provider_ids(&claims).collect();
        Ok(audit::books(&instances, &claimed))
    }
}
