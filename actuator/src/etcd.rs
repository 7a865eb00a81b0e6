//! Which member of the etcd cluster is spoken to.
//!
//! Invariant: a client leads to one member that has answered a linearizable read, so that it stands
//! in the quorum. Whoever meets an error on it asks for another; a dead member costs one error, not
//! one in every few calls as with a client that spreads its calls over all addresses.

mod args;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use etcd_client::{Channel, Client, ConnectOptions};
use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use longshore_runtime::client;
use longshore_runtime::net::Network;
use thiserror::Error;
use tokio::sync::Mutex;
use tokio::time::timeout;

pub use self::args::EtcdArgs;

/// Longest wait for etcd to answer one call. Shorter than a lease, so that a leader notices in
/// time.
pub const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);
/// Time between two signs of life on a connection with calls under way. etcd hangs up on clients
/// that ask more often than every five seconds.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(6);
/// Any key serves: what counts is that the member answers.
const PROBE_KEY: &str = "longshore/probe";

/// No member answers.
#[derive(Clone, Debug, Error)]
#[error("no member of etcd answers: {0}")]
pub struct NoMember(String);

/// Why a call was not answered.
#[derive(Debug, Error)]
pub enum EtcdError {
    /// There is nobody to ask.
    #[error(transparent)]
    NoMember(#[from] NoMember),
    /// etcd answered with an error, or the connection broke.
    #[error("etcd: {0}")]
    Refused(#[from] etcd_client::Error),
    /// The member did not answer in time.
    #[error("etcd did not answer within {0:?}")]
    Silent(Duration),
}

/// The members of an etcd cluster. Clones share the member chosen.
#[derive(Clone)]
pub struct Members {
    etcd: Arc<EtcdArgs>,
    network: Network,
    chosen: Arc<Mutex<Option<Client>>>,
}

impl fmt::Debug for Members {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Members").field("endpoints", &self.etcd.endpoints).finish_non_exhaustive()
    }
}

impl Members {
    /// The members of an etcd, reached over `network`.
    #[must_use]
    pub fn new(etcd: EtcdArgs, network: &Network) -> Self {
        Self { etcd: Arc::new(etcd), network: network.clone(), chosen: Arc::default() }
    }

    /// A client of the member that answers first.
    ///
    /// # Errors
    /// When none answers.
    pub async fn any(&self) -> Result<Client, NoMember> {
        let probes = self.etcd.endpoints.iter().map(|endpoint| self.probe(endpoint));
        let mut probes: FuturesUnordered<_> = probes.collect();
        let mut errors = Vec::new();
        while let Some(answer) = probes.next().await {
            match answer {
                Ok(client) => return Ok(client),
                Err(error) => errors.push(error),
            }
        }
        Err(NoMember(errors.join("; ")))
    }

    /// Asks the member chosen; chooses another one for the next call after an error.
    ///
    /// # Errors
    /// When nobody answers, or with an error.
    pub async fn ask<T>(
        &self,
        call: impl AsyncFnOnce(Client) -> Result<T, etcd_client::Error>,
    ) -> Result<T, EtcdError> {
        let client = self.chosen().await?;
        let answer = answered(call(client)).await;
        if answer.is_err() {
            *self.chosen.lock().await = None;
        }
        answer
    }

    /// A client of one member, once that has answered; else why not, with the address.
    async fn probe(&self, endpoint: &String) -> Result<Client, String> {
        let options = ConnectOptions::new()
            .with_connect_timeout(ANSWER_TIMEOUT)
            .with_keep_alive(KEEP_ALIVE_INTERVAL, ANSWER_TIMEOUT)
            .with_keep_alive_while_idle(false)
            .with_require_leader(true);
        let options = self.etcd.identified(options)?;
        let reached = answered(async {
            let mut client = connect(endpoint, &self.network, options).await?;
            client.get(PROBE_KEY, None).await?;
            Ok(client)
        });
        let anonymous = endpoint.starts_with("https:") && self.etcd.cert.is_none();
        let hint = if anonymous { " (shown no certificate; --etcd-cert says which)" } else { "" };
        reached.await.map_err(|error| format!("{endpoint}: {error}{hint}"))
    }

    async fn chosen(&self) -> Result<Client, NoMember> {
        let mut chosen = self.chosen.lock().await;
        if let Some(client) = chosen.as_ref() {
            return Ok(client.clone());
        }
        // Boxed: a client is large, and so is every future that holds one.
        let client = Box::pin(self.any()).await?;
        Ok(chosen.insert(client).clone())
    }
}

/// The answer to a call, when it comes in time.
///
/// # Errors
/// When it does not, or with etcd's error.
pub async fn answered<T>(
    call: impl Future<Output = Result<T, etcd_client::Error>>,
) -> Result<T, EtcdError> {
    match timeout(ANSWER_TIMEOUT, call).await {
        Ok(answer) => Ok(answer?),
        Err(_) => Err(EtcdError::Silent(ANSWER_TIMEOUT)),
    }
}

/// A client over TCP, or over the connections that a network of another kind gives.
async fn connect(
    endpoint: &String,
    network: &Network,
    options: ConnectOptions,
) -> Result<Client, etcd_client::Error> {
    if matches!(network, Network::System) {
        return Client::connect([endpoint], Some(options)).await;
    }
    let channel = client::channel(endpoint, network)
        .map_err(|error| etcd_client::Error::InvalidArgs(format!("{error:#}")))?;
    Client::from_channel(Channel::Tonic(channel), Some(options)).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

    use futures::future::BoxFuture;
    use longshore_runtime::net::{Stream, Transport};
    use tonic::codegen::http::Uri;

    fn at(endpoints: &[&str]) -> EtcdArgs {
        let endpoints = endpoints.iter().map(ToString::to_string).collect();
        EtcdArgs { endpoints, ..EtcdArgs::default() }
    }

    #[tokio::test]
    async fn says_of_each_member_why_it_does_not_answer() {
        let members = Members::new(at(&["http://127.0.0.1:1", "nonsense"]), &Network::System);
        let error = members.any().await.err().map(|error| error.to_string()).unwrap_or_default();
        assert!(error.contains("http://127.0.0.1:1: ") && error.contains("nonsense: "), "{error}");
    }

    struct Cut;

    impl Transport for Cut {
        fn connect(&self, uri: Uri) -> BoxFuture<'static, io::Result<Stream>> {
            let nowhere = io::Error::other(format!("no way to {:?}", uri.host()));
            Box::pin(async move { Err(nowhere) })
        }
    }

    #[tokio::test]
    async fn members_are_reached_over_the_network_that_was_given() {
        let network = Network::Given(Arc::new(Cut));
        let members = Members::new(at(&["http://etcd-1:2379"]), &network);
        let error = members.any().await.err().map(|error| error.to_string()).unwrap_or_default();
        assert!(error.contains("http://etcd-1:2379: "), "{error}");
    }
}
