//! The session with the scheduler: one bidirectional stream, opened by the watcher, for as long as
//! it lives; then the next one.
//!
//! Invariant: the epoch is in the Lease before it is in a Hello. The view is sent as a snapshot and
//! then as steps that fit each other; whatever goes wrong ends in a snapshot, never in a guess.

mod link;
pub mod sender;

use std::sync::Arc;
use std::time::Duration;

use longshore_proto::cluster::v1::cluster_service_client::ClusterServiceClient;
use longshore_proto::limits::MESSAGE_BYTES_MAX;
use longshore_proto::reason::{self, Reason};
use longshore_runtime::backoff::{Backoff, BackoffPolicy};
use longshore_runtime::client;
use longshore_runtime::tls::Server;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use crate::directives::Directives;
use crate::index::{Index, Store};
use crate::lease::{Lease, LeaseError};
use sender::Sender;

/// How long the cluster may take to be listed before it is said what is missing.
const LISTING_PATIENCE: Duration = Duration::from_secs(10);

/// Longest pause that a scheduler may ask for.
const GO_AWAY_DELAY_MAX: Duration = Duration::from_secs(60);
/// Pauses between sessions. No plan is made for the cluster meanwhile, and a scheduler that has
/// come back is found this late; an attempt costs a write of the Lease, which is written more often
/// than that as it is.
const RECONNECT: BackoffPolicy =
    BackoffPolicy { minimum: Duration::from_millis(200), maximum: Duration::from_secs(2) };

/// What sessions are made of.
#[derive(Clone)]
pub struct Sessions {
    /// Name of the cluster.
    pub cluster_id: String,
    /// Address of the scheduler. Each session has a connection of its own, which a balancer may
    /// lead elsewhere.
    pub endpoint: String,
    /// Account of the cluster's nodes; empty when unknown.
    pub account_id: String,
    /// Told when a session begins, for those who look at the cluster anew then.
    pub begun: Arc<Notify>,
    /// What is known of the cluster.
    pub store: Store,
    /// What carries out directives.
    pub directives: Directives,
    /// True while a session is open and the scheduler holds the whole view.
    pub connected: watch::Sender<bool>,
}

/// Why a session ended.
#[derive(Debug, thiserror::Error)]
pub enum Ended {
    /// The scheduler asked for it, after this pause.
    #[error("the scheduler asked to reconnect: {reason}")]
    GoAway {
        /// How long to wait.
        delay: Duration,
        /// Why.
        reason: String,
    },
    /// The stream failed.
    #[error("{}", explain(.0))]
    Status(#[from] Box<tonic::Status>),
    /// The scheduler ended the stream, or broke the protocol.
    #[error("{0}")]
    Protocol(&'static str),
    /// The scheduler's address cannot be used.
    #[error("--scheduler-endpoint: {0:#}")]
    Endpoint(anyhow::Error),
    /// The scheduler speaks another version of the protocol.
    #[error(
        "the scheduler speaks version {0} of the protocol; upgrade the older of watcher and scheduler"
    )]
    Version(u32),
    /// The epoch could not be persisted.
    #[error("cannot persist the session's epoch in the Lease: {0}")]
    Lease(#[from] crate::lease::LeaseError),
}

impl From<tonic::Status> for Ended {
    fn from(status: tonic::Status) -> Self {
        Self::Status(Box::new(status))
    }
}

impl Sessions {
    /// Runs one session after the other, for ever; dropped when the watcher no longer leads.
    ///
    /// # Errors
    /// [`Ended::Lease`] when the lease is lost.
    pub async fn run(&self, lease: &Lease) -> Result<(), Ended> {
        let mut idle_since = Instant::now();
        self.wait_until_listed().await;
        let mut backoff = Backoff::new(RECONNECT, self.directives.platform.entropy.clone());
        let mut sender = Sender::default();
        loop {
            let epoch = match lease.next_epoch().await {
                Ok(epoch) => epoch,
                // It is still held, and whoever watches over it says when it is not.
                Err(error @ (LeaseError::Api(_) | LeaseError::Slow)) => {
                    tracing::warn!("no session: {}", Ended::from(error));
                    backoff.wait().await;
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            let (ended, progressed) = match self.open((epoch, idle_since), &mut sender).await {
                Ok(link) => (link.run(self, &mut sender).await, true),
                Err(ended) => (ended, false),
            };
            self.connected.send_replace(false);
            if progressed {
                idle_since = Instant::now();
                backoff.reset();
            }
            if let Ended::GoAway { delay, reason } = ended {
                tracing::info!(reason, ?delay, "moving the session to another scheduler");
                tokio::time::sleep(delay.min(GO_AWAY_DELAY_MAX)).await;
            } else {
                tracing::warn!(epoch, "session ended: {ended}");
                backoff.wait().await;
            }
        }
    }

    async fn wait_until_listed(&self) {
        let whole = |index: &Index| index.is_complete() && index.has_resolved_buffers();
        while !self.store.until(LISTING_PATIENCE, whole).await {
            let unlisted = self.store.read(Index::unlisted);
            tracing::warn!(?unlisted, "still waiting for the cluster's objects to be listed");
        }
    }

    /// Opens a session of this epoch; nothing has been carried out for one since `idle_since`.
    async fn open(
        &self,
        (epoch, idle_since): (u64, Instant),
        sender: &mut Sender,
    ) -> Result<link::Link, Ended> {
        let platform = &self.directives.platform;
        let channel = client::channel_to(Server::Scheduler, &self.endpoint, platform)
            .map_err(Ended::Endpoint)?;
        let mut client = ClusterServiceClient::new(channel)
            .max_decoding_message_size(MESSAGE_BYTES_MAX)
            .max_encoding_message_size(MESSAGE_BYTES_MAX);
        let link = link::open(&mut client, self, (epoch, idle_since.elapsed()), sender).await?;
        self.begun.notify_one();
        self.store.update(Index::unplan_missing);
        Ok(link)
    }
}

/// What a status means, with the way out where there is one.
fn explain(status: &tonic::Status) -> String {
    let way_out = match reason::of_status(status) {
        Some((name, _)) if name == Reason::ProtocolVersion.as_str() => {
            "; upgrade the older of watcher and scheduler"
        }
        Some((name, _)) if name == Reason::SessionSuperseded.as_str() => {
            "; does another watcher run for a cluster of the same name?"
        }
        Some((name, _)) if name == Reason::Forbidden.as_str() => {
            "; is --tls-cert the certificate of this cluster?"
        }
        Some((name, _)) if name == Reason::StaleFence.as_str() => {
            "; the scheduler has seen a later session of this cluster"
        }
        _ if status.code() == tonic::Code::Unavailable => {
            "; is --scheduler-endpoint right, and does the scheduler run?"
        }
        _ => "",
    };
    format!("{}: {}{way_out}", status.code(), status.message())
}
