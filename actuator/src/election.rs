//! Who leads the region: one actuator per account and region, elected in etcd.
//!
//! Invariant: a process believes that it leads only while its lease can still be alive; the term is
//! the creation revision of its campaign key, which every write to the ledger compares.

use std::time::Duration;

use etcd_client::Client;
use longshore_runtime::backoff::{Backoff, BackoffPolicy};
use longshore_runtime::tasks::Supervisor;
use thiserror::Error;
use tokio::sync::watch;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::sync::CancellationToken;

use crate::etcd::{ANSWER_TIMEOUT, EtcdError, Members, answered};

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
    /// The etcd cluster.
    pub members: Members,
    /// Name of the election; the campaign keys lie under it.
    pub name: String,
    /// Address that others are sent to.
    pub advertise: String,
    /// Life of the lease; at least etcd's minimum of about two seconds.
    pub lease_seconds: u32,
    /// Revision of the latest term that this process gives up of itself.
    pub resigned: watch::Receiver<i64>,
}

/// Why a campaign or a term ended.
#[derive(Debug, Error)]
pub enum ElectionError {
    /// etcd cannot be asked.
    #[error(transparent)]
    Etcd(#[from] EtcdError),
    /// etcd ended the observation of the election.
    #[error("etcd closed the stream that says who leads")]
    Closed,
    /// The lease could not be renewed in time.
    #[error("the leader's lease has run out")]
    LeaseLost,
}

/// Campaigns, leads and campaigns again until the supervisor's token is cancelled; `standing`
/// follows.
pub async fn run(campaign: Campaign, standing: watch::Sender<Standing>, supervisor: &Supervisor) {
    let token = supervisor.token().clone();
    let mut backoff = Backoff::new(BackoffPolicy::NETWORK, supervisor.platform().entropy.clone());
    while !token.is_cancelled() {
        let began = Instant::now();
        // Boxed: clients of etcd are large.
        let Err(error) = Box::pin(one_term(&campaign, &standing, &token)).await else {
            backoff.reset();
            continue;
        };
        backoff.reset_if_healthy(began.elapsed());
        let why = error.to_string();
        tracing::warn!(%why, "election interrupted; trying again");
        standing.send_replace(Standing::Cut { why });
        tokio::select! {
            () = backoff.wait() => {}
            () = token.cancelled() => {}
        }
    }
}

/// One campaign and, when it is won, one term. Returns `Ok` when the token ended it.
async fn one_term(
    campaign: &Campaign,
    standing: &watch::Sender<Standing>,
    token: &CancellationToken,
) -> Result<(), ElectionError> {
    let mut client = campaign.members.any().await.map_err(EtcdError::from)?;
    // The lease lives from some time after this on.
    let asked = Instant::now();
    let lease = answered(client.lease_grant(i64::from(campaign.lease_seconds), None)).await?.id();
    let alive = keep_alive(campaign, client.clone(), lease, asked);
    let leadership = hold(campaign, client.clone(), lease, standing);
    let ended = tokio::select! {
        ended = alive => ended,
        ended = leadership => ended,
        () = resigned(campaign.resigned.clone(), standing) => Ok(()),
        () = token.cancelled() => Ok(()),
    };
    standing.send_if_modified(|now| {
        let led = matches!(now, Standing::Leading(_));
        if led {
            *now = Standing::Following { leader: String::new() };
        }
        led
    });
    // Gives the leadership up at once instead of letting the lease run out; the ledger's fence
    // makes it safe either way.
    let _ = timeout(ANSWER_TIMEOUT, client.lease_revoke(lease)).await;
    ended
}

/// Returns when the present term is given up.
async fn resigned(mut given_up: watch::Receiver<i64>, standing: &watch::Sender<Standing>) {
    let present = |revision: &i64| match &*standing.borrow() {
        Standing::Leading(term) => term.revision == *revision,
        Standing::Following { .. } | Standing::Cut { .. } => false,
    };
    if given_up.wait_for(present).await.is_err() {
        // Nobody is left to give it up.
        std::future::pending::<()>().await;
    }
}

/// Campaigns and, once elected, holds the leadership for as long as it is polled.
async fn hold(
    campaign: &Campaign,
    client: Client,
    lease: i64,
    standing: &watch::Sender<Standing>,
) -> Result<(), ElectionError> {
    let mut elections = client.election_client();
    let won = elections.campaign(campaign.name.as_str(), campaign.advertise.as_str(), lease);
    let mut answer = tokio::select! {
        answer = won => answer.map_err(EtcdError::from)?,
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
    let observed = client.election_client().observe(campaign.name.as_str()).await;
    let mut leaders = observed.map_err(EtcdError::from)?;
    while let Some(mut seen) = leaders.message().await.map_err(EtcdError::from)? {
        let Some(entry) = seen.take_kv() else { continue };
        let leader = String::from_utf8_lossy(entry.value()).into_owned();
        if leader != campaign.advertise {
            tracing::info!(leader, "standing by");
            standing.send_replace(Standing::Following { leader });
        }
    }
    Err(ElectionError::Closed)
}

/// Renews the lease, through another member when one is lost; returns when it may have run out.
async fn keep_alive(
    campaign: &Campaign,
    mut client: Client,
    lease: i64,
    mut renewed: Instant,
) -> Result<(), ElectionError> {
    let life = Duration::from_secs(u64::from(campaign.lease_seconds));
    loop {
        let error = match renew(&client, lease, life, &mut renewed).await {
            Err(ElectionError::Etcd(error)) => error,
            ended => return ended,
        };
        tracing::warn!(%error, "member of etcd lost; renewing the lease through another one");
        let other = timeout_at(renewed + life, campaign.members.any()).await;
        client = other.map_err(|_| ElectionError::LeaseLost)?.map_err(EtcdError::from)?;
    }
}

/// Renews the lease through one member. `renewed` is when it was last asked for what was granted.
async fn renew(
    client: &Client,
    lease: i64,
    life: Duration,
    renewed: &mut Instant,
) -> Result<(), ElectionError> {
    let mut leases = client.lease_client();
    let (mut keeper, mut answers) = answered(leases.keep_alive(lease)).await?;
    loop {
        let asked = Instant::now();
        keeper.keep_alive().await.map_err(EtcdError::from)?;
        let patience = ANSWER_TIMEOUT.min((*renewed + life).saturating_duration_since(asked));
        match timeout(patience, answers.message()).await {
            Ok(Ok(Some(answer))) if answer.ttl() > 0 => *renewed = asked,
            Ok(Ok(Some(_))) => return Err(ElectionError::LeaseLost),
            Ok(Err(error)) => return Err(EtcdError::from(error).into()),
            Ok(Ok(None)) | Err(_) => return Err(EtcdError::Silent(patience).into()),
        }
        tokio::time::sleep(life / RENEWALS_PER_LEASE).await;
    }
}
