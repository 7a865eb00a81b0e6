//! Who leads the region: one actuator per account and region, elected in etcd.
//!
//! Invariant: a process believes that it leads only while its lease can still be alive; the term is
//! the creation revision of its campaign key, which every write to the ledger compares.

use std::time::Duration;

use etcd_client::{Client, ConnectOptions};
use longshore_runtime::backoff::{Backoff, BackoffPolicy};
use thiserror::Error;
use tokio::sync::watch;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

/// Longest wait for etcd to answer one call.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);
/// Time between two signs of life on a connection with calls under way. etcd hangs up on clients
/// that ask more often than every five seconds.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(6);
/// Renewals in the life of a lease.
const RENEWALS_PER_LEASE: u32 = 3;

/// A term of leadership.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Term {
    /// Campaign key.
    pub key: Vec<u8>,
    /// Its creation revision; grows from leader to leader.
    pub revision: i64,
}

/// What a process knows of the leadership.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// This process leads.
    Leading(Term),
    /// Another process leads; its address, empty while unknown.
    Following {
        /// `http://host:port` as it advertised itself.
        leader: String,
    },
    /// etcd does not answer.
    Cut {
        /// For people.
        why: String,
    },
}

/// How to campaign.
#[derive(Clone, Debug)]
pub struct Campaign {
    /// Addresses of etcd.
    pub endpoints: Vec<String>,
    /// Name of the election; the campaign keys lie under it.
    pub name: String,
    /// Address that others are sent to.
    pub advertise: String,
    /// Life of the lease; at least etcd's minimum of about two seconds.
    pub lease_seconds: u32,
}

/// Why a campaign or a term ended.
#[derive(Debug, Error)]
pub enum ElectionError {
    /// etcd answered with an error.
    #[error("etcd: {0}")]
    Etcd(#[from] etcd_client::Error),
    /// etcd did not answer.
    #[error("etcd did not answer within {0:?}")]
    Silent(Duration),
    /// The lease could not be renewed in time.
    #[error("the leader's lease has run out")]
    LeaseLost,
}

/// Campaigns, leads and campaigns again until the token is cancelled; `standing` follows.
pub async fn run(campaign: Campaign, standing: watch::Sender<Standing>, token: CancellationToken) {
    let mut backoff = Backoff::new(BackoffPolicy::NETWORK);
    while !token.is_cancelled() {
        let Err(error) = one_term(&campaign, &standing, &token).await else {
            backoff.reset();
            continue;
        };
        let why = format!("{error}; endpoints {}", campaign.endpoints.join(", "));
        tracing::warn!(%why, "election interrupted; trying again");
        standing.send_replace(Standing::Cut { why });
        tokio::select! {
            () = backoff.wait() => {}
            () = token.cancelled() => {}
        }
    }
}

/// A client that knows all endpoints; connects when first used.
///
/// # Errors
/// When an endpoint is not an address.
pub async fn connect(endpoints: &[String]) -> Result<Client, etcd_client::Error> {
    let options = ConnectOptions::new()
        .with_connect_timeout(ANSWER_TIMEOUT)
        .with_keep_alive(KEEP_ALIVE_INTERVAL, ANSWER_TIMEOUT)
        .with_keep_alive_while_idle(false)
        .with_require_leader(true);
    Client::connect(endpoints, Some(options)).await
}

/// One campaign and, when it is won, one term. Returns `Ok` when the token ended it.
async fn one_term(
    campaign: &Campaign,
    standing: &watch::Sender<Standing>,
    token: &CancellationToken,
) -> Result<(), ElectionError> {
    let mut client = answered(connect(&campaign.endpoints)).await?;
    let lease = answered(client.lease_grant(i64::from(campaign.lease_seconds), None)).await?.id();
    let alive = keep_alive(&client, lease, campaign.lease_seconds);
    let office = hold(campaign, client.clone(), lease, standing);
    let ended = tokio::select! {
        ended = alive => ended,
        ended = office => ended,
        () = token.cancelled() => Ok(()),
    };
    standing.send_if_modified(|now| {
        let led = matches!(now, Standing::Leading(_));
        if led {
            *now = Standing::Following { leader: String::new() };
        }
        led
    });
    // Gives the office up at once instead of letting the lease run out; the ledger's fence makes
    // it safe either way.
    let _ = timeout(ANSWER_TIMEOUT, client.lease_revoke(lease)).await;
    ended
}

/// Campaigns and, once elected, holds the office for as long as it is polled.
async fn hold(
    campaign: &Campaign,
    client: Client,
    lease: i64,
    standing: &watch::Sender<Standing>,
) -> Result<(), ElectionError> {
    let mut elections = client.election_client();
    let won = elections.campaign(campaign.name.as_str(), campaign.advertise.as_str(), lease);
    let mut answer = tokio::select! {
        answer = won => answer?,
        ended = follow(campaign, client, standing) => return ended,
    };
    let Some(leader) = answer.take_leader() else { return Err(ElectionError::LeaseLost) };
    let term = Term { key: leader.key().to_vec(), revision: leader.rev() };
    tracing::info!(term = term.revision, election = campaign.name, "leading the region");
    standing.send_replace(Standing::Leading(term));
    std::future::pending().await
}

/// Keeps `standing` at the current leader's address.
async fn follow(
    campaign: &Campaign,
    client: Client,
    standing: &watch::Sender<Standing>,
) -> Result<(), ElectionError> {
    let mut leaders = client.election_client().observe(campaign.name.as_str()).await?;
    while let Some(mut seen) = leaders.message().await? {
        let Some(entry) = seen.take_kv() else { continue };
        let leader = String::from_utf8_lossy(entry.value()).into_owned();
        if leader != campaign.advertise {
            tracing::info!(leader, "standing by");
            standing.send_replace(Standing::Following { leader });
        }
    }
    Err(ElectionError::Silent(ANSWER_TIMEOUT))
}

/// Renews the lease; returns when it may have run out.
async fn keep_alive(client: &Client, lease: i64, lease_seconds: u32) -> Result<(), ElectionError> {
    let life = Duration::from_secs(u64::from(lease_seconds));
    let mut leases = client.lease_client();
    let (mut keeper, mut answers) = answered(leases.keep_alive(lease)).await?;
    let mut renewed = Instant::now();
    loop {
        let asked = Instant::now();
        keeper.keep_alive().await?;
        match tokio::time::timeout_at(renewed + life, answers.message()).await {
            Ok(Ok(Some(answer))) if answer.ttl() > 0 => renewed = asked,
            Ok(Err(error)) => return Err(error.into()),
            _ => return Err(ElectionError::LeaseLost),
        }
        tokio::time::sleep(life / RENEWALS_PER_LEASE).await;
    }
}

async fn answered<T>(
    call: impl Future<Output = Result<T, etcd_client::Error>>,
) -> Result<T, ElectionError> {
    match timeout(ANSWER_TIMEOUT, call).await {
        Ok(answer) => Ok(answer?),
        Err(_) => Err(ElectionError::Silent(ANSWER_TIMEOUT)),
    }
}
