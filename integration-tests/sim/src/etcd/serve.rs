//! etcd's key-value and lease services, as one member serves them.
//!
//! Invariant: thin. A request waits while the member has no quorum, and is given up as etcd gives
//! up: after seven seconds, with an outcome that nobody knows.

use std::time::Duration;

use futures::stream::{BoxStream, StreamExt as _};
use longshore_runtime::net::Listener;
use tokio::time::{Instant, sleep};
use tonic::transport::Server;
use tonic::{Request, Response, Status, Streaming};

use super::Etcd;
use super::election::Elections;
use super::etcdserverpb::kv_server::{Kv, KvServer};
use super::etcdserverpb::lease_server::{Lease, LeaseServer};
use super::etcdserverpb::{
    LeaseGrantRequest, LeaseGrantResponse, LeaseKeepAliveRequest, LeaseKeepAliveResponse,
    LeaseRevokeRequest, LeaseRevokeResponse, RangeRequest, RangeResponse, TxnRequest, TxnResponse,
};
use super::model::Refusal;
use super::v3electionpb::election_server::ElectionServer;

/// After this etcd gives a request up that no quorum has answered.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(7);
/// Steps in which a waiting request looks whether there is a quorum.
const LOOK: Duration = Duration::from_millis(100);
/// Largest request (`--max-request-bytes`).
const REQUEST_BYTES_MAX: usize = 1536 * 1024;

/// Serves as a member until the world ends.
pub(super) async fn serve(etcd: Etcd, number: usize, listener: Listener) {
    let member = Member { etcd, number };
    let served = Server::builder()
        .add_service(KvServer::new(member.clone()))
        .add_service(LeaseServer::new(member.clone()))
        .add_service(ElectionServer::new(Elections(member)))
        .serve_with_incoming(listener.into_incoming());
    if let Err(error) = served.await {
        tracing::error!(%error, "a member of etcd has ended");
    }
}

/// A member.
#[derive(Clone)]
pub(super) struct Member {
    pub(super) etcd: Etcd,
    number: usize,
}

impl Member {
    /// Waits for a quorum.
    pub(super) async fn ready(&self) -> Result<(), Status> {
        let until = Instant::now() + REQUEST_TIMEOUT;
        while !self.etcd.answers(self.number) {
            if Instant::now() >= until {
                return Err(Status::unavailable("etcdserver: request timed out"));
            }
            sleep(LOOK).await;
        }
        Ok(())
    }

    /// True while it stands in a quorum.
    pub(super) fn answers(&self) -> bool {
        self.etcd.answers(self.number)
    }

    /// One request: waits for a quorum, takes effect, is answered or not.
    pub(super) async fn request<T>(
        &self,
        effect: impl FnOnce(&mut super::Model, i64) -> Result<T, Refusal>,
    ) -> Result<T, Status> {
        self.ready().await?;
        if self.etcd.refuses() {
            return Err(Status::unavailable("etcdserver: too many requests"));
        }
        let outcome = self.etcd.with(effect).map_err(status);
        if self.etcd.loses() {
            return Err(Status::unavailable("etcdserver: leader changed"));
        }
        outcome
    }
}

#[tonic::async_trait]
impl Kv for Member {
    async fn range(
        &self,
        request: Request<RangeRequest>,
    ) -> Result<Response<RangeResponse>, Status> {
        let request = request.into_inner();
        self.request(|model, _| model.range(&request)).await.map(Response::new)
    }

    async fn txn(&self, request: Request<TxnRequest>) -> Result<Response<TxnResponse>, Status> {
        let request = request.into_inner();
        if prost::Message::encoded_len(&request) > REQUEST_BYTES_MAX {
            return Err(Status::invalid_argument("etcdserver: request is too large"));
        }
        self.request(|model, _| model.txn(&request)).await.map(Response::new)
    }
}

#[tonic::async_trait]
impl Lease for Member {
    async fn lease_grant(
        &self,
        request: Request<LeaseGrantRequest>,
    ) -> Result<Response<LeaseGrantResponse>, Status> {
        let asked = request.into_inner();
        let grant = |model: &mut super::Model, now_ms| {
            let (id, ttl) = model.grant(asked.id, asked.ttl, now_ms)?;
            Ok(LeaseGrantResponse { header: model.header(), id, ttl, error: String::new() })
        };
        self.request(grant).await.map(Response::new)
    }

    async fn lease_revoke(
        &self,
        request: Request<LeaseRevokeRequest>,
    ) -> Result<Response<LeaseRevokeResponse>, Status> {
        let id = request.into_inner().id;
        let revoke = |model: &mut super::Model, _| {
            model.revoke(id)?;
            Ok(LeaseRevokeResponse { header: model.header() })
        };
        self.request(revoke).await.map(Response::new)
    }

    type LeaseKeepAliveStream = BoxStream<'static, Result<LeaseKeepAliveResponse, Status>>;

    async fn lease_keep_alive(
        &self,
        request: Request<Streaming<LeaseKeepAliveRequest>>,
    ) -> Result<Response<Self::LeaseKeepAliveStream>, Status> {
        let member = self.clone();
        let answers = request.into_inner().then(move |asked| {
            let member = member.clone();
            async move {
                let id = asked?.id;
                let renew = |model: &mut super::Model, now_ms| {
                    let ttl = model.renew(id, now_ms);
                    Ok(LeaseKeepAliveResponse { header: model.header(), id, ttl })
                };
                member.request(renew).await
            }
        });
        Ok(Response::new(answers.boxed()))
    }
}

/// A refusal in etcd's own words and codes.
fn status(refusal: Refusal) -> Status {
    match refusal {
        Refusal::NoLease => Status::not_found("etcdserver: requested lease not found"),
        Refusal::LeaseTaken => Status::failed_precondition("etcdserver: lease already exists"),
        Refusal::TooManyOperations => {
            Status::invalid_argument("etcdserver: too many operations in txn request")
        }
        Refusal::DuplicateKey => {
            Status::invalid_argument("etcdserver: duplicate key given in txn request")
        }
        Refusal::OtherRevision => Status::unimplemented("the simulated etcd keeps no history"),
    }
}
