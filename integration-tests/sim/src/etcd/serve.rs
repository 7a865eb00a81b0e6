//! etcd's key-value and lease services, as one member serves them.
//!
//! Invariant: thin; what a request does is the model's.

use futures::stream::{BoxStream, StreamExt as _};
use longshore_runtime::listener::Listener;
use tonic::transport::Server;
use tonic::{Request, Response, Status, Streaming};

use super::election::Elections;
use super::etcdserverpb::kv_server::{Kv, KvServer};
use super::etcdserverpb::lease_server::{Lease, LeaseServer};
use super::etcdserverpb::{
    LeaseGrantRequest, LeaseGrantResponse, LeaseKeepAliveRequest, LeaseKeepAliveResponse,
    LeaseRevokeRequest, LeaseRevokeResponse, RangeRequest, RangeResponse, TxnRequest, TxnResponse,
};
use super::member::Member;
use super::v3electionpb::election_server::ElectionServer;
use super::{Etcd, Model};

/// Largest request (`--max-request-bytes`).
const REQUEST_BYTES_MAX: usize = 1536 * 1024;

/// Serves as a member until the world ends.
pub(super) async fn serve(etcd: Etcd, number: usize, listener: Listener) {
    let member = Member::new(etcd, number);
    let served = Server::builder()
        .add_service(KvServer::new(member.clone()))
        .add_service(LeaseServer::new(member.clone()))
        .add_service(ElectionServer::new(Elections(member)))
        .serve_with_incoming(listener.into_incoming());
    if let Err(error) = served.await {
        tracing::error!(%error, "a member of etcd has ended");
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
        let grant = |model: &mut Model, now_ms| {
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
        let revoke = |model: &mut Model, _| {
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
                let renew = |model: &mut Model, now_ms| {
                    let ttl = model.renew(id, now_ms);
                    Ok(LeaseKeepAliveResponse { header: model.header(), id, ttl })
                };
                member.request(renew).await
            }
        });
        Ok(Response::new(answers.boxed()))
    }
}
