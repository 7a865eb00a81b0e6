//! One task per actuator endpoint: follows its Watch stream and keeps the region's state in step.
//!
//! Invariant: a standby's refusal and a broken stream are both answered by trying again; the state
//! of a lost leader stays readable but unsynced until the next leader has told everything.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use anyhow::Context;
use longshore_proto::capacity::v1 as capacity;
use longshore_proto::capacity::v1::capacity_service_client::CapacityServiceClient;
use longshore_proto::capacity::v1::region_change::Change;
use longshore_proto::limits::MESSAGE_BYTES_MAX;
use longshore_proto::reason::{self, Reason};
use longshore_runtime::backoff::BackoffPolicy;
use longshore_runtime::client;
use longshore_runtime::identity::Identity;
use longshore_runtime::propagate::InjectContext;
use longshore_runtime::tasks::{NotYet, OnError, Supervisor};
use longshore_runtime::tls::{OtherEnd, Server};
use tokio::time::{Instant, timeout};
use tonic::Status;

use super::RegionState;
use super::directory::{CapacityClient, Region, Regions};

/// Retry of a link. A standby is asked again soon: failover is only as fast as this.
const RETRY: BackoffPolicy =
    BackoffPolicy { minimum: Duration::from_millis(100), maximum: Duration::from_secs(1) };

/// How long an actuator may take between two parts of its initial state.
const INITIAL_PATIENCE: Duration = Duration::from_secs(60);
/// What is said of one that takes longer.
const SILENT: &str = "the actuator has opened a stream and says nothing";

/// A region whose state is kept in step for as long as this lives: also a panic leaves it marked as
/// lost.
struct Followed<'a> {
    regions: &'a Regions,
    region: &'a Region,
}

impl Drop for Followed<'_> {
    fn drop(&mut self) {
        self.region.state.write().unwrap_or_else(PoisonError::into_inner).lose(Instant::now());
        self.regions.changed_in(self.region);
    }
}

impl Regions {
    /// Follows one actuator for as long as the supervisor lives.
    ///
    /// # Errors
    /// When the endpoint is not a URL.
    pub fn follow(&self, supervisor: &Supervisor, endpoint: String) -> anyhow::Result<()> {
        let platform = supervisor.platform();
        let (channel, found) = client::identified(Server::Actuator, &endpoint, platform)?;
        let client = CapacityServiceClient::with_interceptor(channel, InjectContext)
            .max_decoding_message_size(MESSAGE_BYTES_MAX);
        let regions = self.clone();
        supervisor.spawn("region link", OnError::Restart(RETRY), move || {
            let (regions, client, endpoint) = (regions.clone(), client.clone(), endpoint.clone());
            let found = found.clone();
            async move {
                let outcome = watch(&regions, &endpoint, client, &found).await;
                let outcome = outcome.with_context(|| format!("actuator {endpoint}"));
                let outcome =
                    outcome.inspect_err(|error| regions.fails(&endpoint, format!("{error:#}")));
                outcome.map_err(quiet)
            }
        });
        Ok(())
    }
}

/// Follows one stream to its end, which is always an error: the supervisor starts the next.
async fn watch(
    regions: &Regions,
    endpoint: &str,
    mut client: CapacityClient,
    found: &OtherEnd,
) -> anyhow::Result<()> {
    let request = capacity::WatchRequest { cluster_ids: Vec::new() };
    let asked = timeout(INITIAL_PATIENCE, client.watch(request)).await.context(SILENT)?;
    let mut stream = asked.map_err(describe)?.into_inner();
    let mut fresh = RegionState::default();
    loop {
        let response = timeout(INITIAL_PATIENCE, stream.message()).await.context(SILENT)?;
        let response =
            response.map_err(describe)?.context("stream ended before the initial state")?;
        response.changes.into_iter().for_each(|change| fresh.apply(change));
        if response.snapshot_end {
            break;
        }
    }
    let info = fresh.info.clone().context("the actuator did not name its region")?;
    if let Some(identity) = found.identity() {
        speaks_for(&identity, &info)?;
    }
    fresh.synced = true;
    fresh.stream = regions.next_stream();
    tracing::info!(
        region = info.region,
        term = info.term,
        instances = fresh.instances.len(),
        "actuator leads; state received"
    );
    let state = Arc::new(RwLock::new(fresh));
    let region = regions.put(&info, client, state);
    let region = region.context("another actuator leads with a larger term")?;
    regions.serves(endpoint, &info.region);
    regions.changed();
    let followed = Followed { regions, region: &region };
    let ended = follow(regions, &region, &mut stream).await;
    drop(followed);
    Err(ended).with_context(|| format!("region {}", info.region))
}

/// An actuator answers for the account and the region in its certificate, and for no others:
/// whoever has taken one over would have the nodes of all regions sent to it.
fn speaks_for(identity: &Identity, info: &capacity::RegionInfo) -> anyhow::Result<()> {
    let says = Identity::Actuator { account: info.account_id.clone(), region: info.region.clone() };
    anyhow::ensure!(
        *identity == says,
        "it is {identity}, and answers for {says}: start it in the region of its certificate, or \
         give it one of the region it is in"
    );
    Ok(())
}

async fn follow(
    regions: &Regions,
    region: &Region,
    stream: &mut tonic::Streaming<capacity::WatchResponse>,
) -> anyhow::Error {
    loop {
        match stream.message().await {
            Ok(Some(response)) => {
                let mut state = region.state.write().unwrap_or_else(PoisonError::into_inner);
                for change in response.changes {
                    log_interruption(&change);
                    state.apply(change);
                }
            }
            Ok(None) => return anyhow::anyhow!("stream ended"),
            Err(status) => return describe(status),
        }
        regions.changed_in(region);
    }
}

fn log_interruption(change: &capacity::RegionChange) {
    if let Some(Change::Interruption(interruption)) = &change.change {
        tracing::info!(
            instance = interruption.instance_id,
            kind = interruption.kind().as_str_name(),
            "interruption announced"
        );
    }
}

/// What an actuator answered, its typed reason first.
#[derive(Debug, thiserror::Error)]
#[error("{reason}: {message}")]
struct Refusal {
    reason: String,
    message: String,
}

/// A status as an error.
fn describe(status: Status) -> anyhow::Error {
    let reason = reason::of_status(&status);
    let reason = reason.map_or_else(|| status.code().to_string(), |(name, _)| name);
    Refusal { reason, message: status.message().to_owned() }.into()
}

/// A standby that says what it is, is no failure: it waits to lead, and the link with it.
fn quiet(error: anyhow::Error) -> anyhow::Error {
    let standby = error.downcast_ref::<Refusal>();
    let standby = standby.is_some_and(|refusal| refusal.reason == Reason::NotLeader.as_str());
    if standby { error.context(NotYet) } else { error }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_answer_of_a_standby_is_no_news() {
        let answer =
            |reason: Reason| -> anyhow::Result<()> { Err(describe(reason.status("wait"))) };
        let told = |reason| quiet(answer(reason).context("actuator a").unwrap_err());
        assert!(told(Reason::NotLeader).is::<NotYet>());
        assert!(!told(Reason::Draining).is::<NotYet>());
        assert!(!quiet(anyhow::anyhow!("stream ended")).is::<NotYet>());
        assert_eq!(
            format!("{:#}", answer(Reason::NotLeader).context("actuator a").unwrap_err()),
            "actuator a: NOT_LEADER: wait"
        );
    }
}
