//! One member of etcd: whether it answers, and what becomes of a request to it.
//!
//! Invariant: a request waits while the member has no quorum, and is given up as etcd gives up:
//! after seven seconds, with an outcome that nobody knows.

use std::time::Duration;

use tokio::time::{Instant, sleep};
use tonic::Status;

use super::model::Refusal;
use super::{Etcd, Model};

/// After this etcd gives a request up that no quorum has answered.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(7);
/// Steps in which a waiting request looks whether there is a quorum.
const LOOK: Duration = Duration::from_millis(100);

/// A member.
#[derive(Clone)]
pub(super) struct Member {
    pub(super) etcd: Etcd,
    number: usize,
}

impl Member {
    /// One of the members, by its number.
    pub(super) const fn new(etcd: Etcd, number: usize) -> Self {
        Self { etcd, number }
    }

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
        effect: impl FnOnce(&mut Model, i64) -> Result<T, Refusal>,
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
