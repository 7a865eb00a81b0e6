//! etcd's election service: who has campaigned longest leads.
//!
//! Invariant: as etcd's own (`server/etcdserver/api/v3election`): a campaign whose caller goes away
//! resigns; one that is won says so even when its own lease has ended meanwhile, so that whoever
//! trusts the answer instead of comparing revisions is found out.

use futures::stream::{self, BoxStream, StreamExt as _};
use tonic::{Request, Response, Status};

use super::etcdserverpb::{KeyValue, PutRequest};
use super::member::Member;
use super::model::{Model, Refusal};
use super::v3electionpb::election_server::Election;
use super::v3electionpb::{
    CampaignRequest, CampaignResponse, LeaderKey, LeaderRequest, LeaderResponse,
};

/// A member as it serves elections.
pub(super) struct Elections(pub(super) Member);

#[tonic::async_trait]
impl Election for Elections {
    async fn campaign(
        &self,
        request: Request<CampaignRequest>,
    ) -> Result<Response<CampaignResponse>, Status> {
        let asked = request.into_inner();
        let prefix = folder(&asked.name);
        let key = [prefix.as_slice(), format!("{:x}", asked.lease).as_bytes()].concat();
        let rev = self.0.request(|model, _| enter(model, &key, &asked)).await?;
        let mut resign = Resign { member: self.0.clone(), key: key.clone(), rev, armed: true };
        let mut changes = self.0.etcd.changed.subscribe();
        loop {
            changes.mark_unchanged();
            let waits =
                |model: &Model| model.under(&prefix).any(|earlier| earlier.create_revision < rev);
            if self.0.answers() && !self.0.etcd.read(waits) {
                break;
            }
            if changes.changed().await.is_err() {
                return Err(Status::unavailable("etcdserver: stopped"));
            }
        }
        resign.armed = false;
        let header = self.0.etcd.read(Model::header);
        let leader = Some(LeaderKey { name: asked.name, key, rev, lease: asked.lease });
        Ok(Response::new(CampaignResponse { header, leader }))
    }

    type ObserveStream = BoxStream<'static, Result<LeaderResponse, Status>>;

    async fn observe(
        &self,
        request: Request<LeaderRequest>,
    ) -> Result<Response<Self::ObserveStream>, Status> {
        self.0.ready().await?;
        let watching = Watching {
            member: self.0.clone(),
            prefix: folder(&request.into_inner().name),
            cut: *self.0.etcd.cut.borrow(),
            told: 0,
        };
        let told = stream::unfold(watching, |mut watching| async move {
            let answer = watching.next().await?;
            Some((Ok(answer), watching))
        });
        Ok(Response::new(told.boxed()))
    }
}

/// The folder of an election's keys.
fn folder(name: &[u8]) -> Vec<u8> {
    [name, b"/"].concat()
}

/// Writes the campaign's key, or the new value into it; the revision that created it.
fn enter(model: &mut Model, key: &[u8], asked: &CampaignRequest) -> Result<i64, Refusal> {
    let present = |model: &Model| model.under(key).find(|entry| entry.key == key).cloned();
    let same = present(model).is_some_and(|entry| entry.value == asked.value);
    if !same {
        let (key, value) = (key.to_vec(), asked.value.clone());
        model.put(PutRequest { key, value, lease: asked.lease })?;
    }
    Ok(present(model).map_or(0, |entry| entry.create_revision))
}

/// Deletes the key of a campaign whose caller has gone.
struct Resign {
    member: Member,
    key: Vec<u8>,
    rev: i64,
    armed: bool,
}

impl Drop for Resign {
    fn drop(&mut self) {
        if self.armed && self.member.answers() {
            self.member.etcd.with(|model, _| {
                let own =
                    |entry: &KeyValue| entry.key == self.key && entry.create_revision == self.rev;
                if model.under(&self.key).any(own) {
                    model.delete(&self.key);
                }
            });
        }
    }
}

/// Who observes an election.
struct Watching {
    member: Member,
    prefix: Vec<u8>,
    /// Number of cuts when it began.
    cut: u64,
    /// Revision of the key that was told last.
    told: i64,
}

impl Watching {
    /// The next leader; none when the stream is over.
    async fn next(&mut self) -> Option<LeaderResponse> {
        let etcd = self.member.etcd.clone();
        let (mut changes, mut cuts) = (etcd.changed.subscribe(), etcd.cut.subscribe());
        loop {
            changes.mark_unchanged();
            if *cuts.borrow_and_update() != self.cut {
                return None;
            }
            if self.member.answers() {
                let (header, leader) =
                    etcd.read(|model| (model.header(), first(model, &self.prefix)));
                if let Some(kv) = leader.filter(|leader| leader.mod_revision != self.told) {
                    self.told = kv.mod_revision;
                    return Some(LeaderResponse { header, kv: Some(kv) });
                }
            }
            tokio::select! {
                biased;
                _ = cuts.changed() => {}
                _ = changes.changed() => {}
            }
        }
    }
}

/// Who leads: whose key is the oldest.
fn first(model: &Model, prefix: &[u8]) -> Option<KeyValue> {
    model.under(prefix).min_by_key(|entry| entry.create_revision).cloned()
}
