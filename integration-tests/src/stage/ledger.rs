//! What an actuator says of its region over gRPC: who leads, and what became of launches.
//!
//! Invariant: read through `CapacityService.Watch` only, as a scheduler reads it.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use longshore_proto::capacity::v1::capacity_service_client::CapacityServiceClient;
use longshore_proto::capacity::v1::region_change::Change;
use longshore_proto::capacity::v1::{InstanceState, LaunchState, WatchRequest, WatchResponse};
use longshore_proto::limits::MESSAGE_BYTES_MAX;
use tonic::Streaming;

/// The books of a region at one moment.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    /// Term of the leader that told them.
    pub term: u64,
    /// Launches by id.
    pub launches: BTreeMap<String, LaunchState>,
    /// Instances by EC2 id.
    pub instances: BTreeMap<String, InstanceState>,
}

impl Ledger {
    fn note(&mut self, response: WatchResponse) {
        for change in response.changes.into_iter().filter_map(|change| change.change) {
            match change {
                Change::Region(info) => self.term = info.term,
                Change::Launch(launch) => {
                    self.launches.insert(launch.launch_id.clone(), launch);
                }
                Change::Instance(instance) => {
                    self.instances.insert(instance.instance_id.clone(), instance);
                }
                Change::Forgotten(gone) => {
                    self.launches.retain(|id, _| !gone.launch_ids.contains(id));
                    self.instances.retain(|id, _| !gone.instance_ids.contains(id));
                }
                Change::Catalogue(_)
                | Change::Offerings(_)
                | Change::NodeClass(_)
                | Change::Interruption(_) => {}
            }
        }
    }
}

/// Everything that the leading actuator at `url` reports.
///
/// # Errors
/// When nobody answers there, or whoever answers does not lead.
pub async fn read(url: &str) -> Result<Ledger> {
    let mut stream = watch(url).await?;
    let mut ledger = Ledger::default();
    loop {
        let response = next(&mut stream).await?;
        let is_whole = response.snapshot_end;
        ledger.note(response);
        if is_whole {
            return Ok(ledger);
        }
    }
}

/// The term of the leading actuator at `url`.
///
/// # Errors
/// When nobody answers there, or whoever answers does not lead.
pub async fn term(url: &str) -> Result<u64> {
    let mut stream = watch(url).await?;
    let mut ledger = Ledger::default();
    while ledger.term == 0 {
        ledger.note(next(&mut stream).await?);
    }
    Ok(ledger.term)
}

async fn watch(url: &str) -> Result<Streaming<WatchResponse>> {
    let client = CapacityServiceClient::connect(url.to_owned()).await?;
    let mut client = client.max_decoding_message_size(MESSAGE_BYTES_MAX);
    let answer = client.watch(WatchRequest { cluster_ids: Vec::new() }).await;
    Ok(answer.with_context(|| format!("{url} does not lead"))?.into_inner())
}

async fn next(stream: &mut Streaming<WatchResponse>) -> Result<WatchResponse> {
    stream.message().await?.context("the stream ended before it was complete")
}
