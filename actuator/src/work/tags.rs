//! Writing the tags of launches on instances that were launched together.
//!
//! Invariant: the ledger says whose an instance is, so nothing waits for its tags, and no failure
//! to write them fails anything else. They are written again until EC2 shows them.

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use longshore_runtime::tasks::Supervisor;
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::reconciling::Subject;
use crate::cloud::{Class, CloudError};
use crate::ec2::request::launch_tags;
use crate::leader::Leader;
use crate::ledger::Phase;
use crate::reconcile::tag_key;

/// Instances that are tagged at the same time. Each takes a call of its own, and EC2's bucket for
/// CreateTags holds a hundred and gets ten a second: what four do one after the other.
const TAGGED_AT_ONCE: usize = 4;
/// Longest time for a call; the client library tries it several times within.
const ANSWER_WITHIN: Duration = Duration::from_secs(60);
/// How long tags that were written may take to show, before they are written again.
const SHOWN_WITHIN: Duration = Duration::from_secs(20);
/// How long a refusal by policy stands before it is tried again: somebody has to change the policy
/// first.
const DENIED_FOR: Duration = Duration::from_secs(600);

pub fn start(leader: &Arc<Leader>, mut untagged: mpsc::Receiver<Subject>, supervisor: &Supervisor) {
    let leader = Arc::clone(leader);
    let token = supervisor.token().clone();
    supervisor.spawn_once("tags", async move {
        let mut some = Vec::with_capacity(TAGGED_AT_ONCE);
        loop {
            let next = untagged.recv_many(&mut some, TAGGED_AT_ONCE);
            if token.run_until_cancelled(next).await.is_none_or(|count| count == 0) {
                return Ok(());
            }
            let some = std::mem::take(&mut some);
            let tagging = join_all(some.iter().map(|subject| tag(&leader, subject)));
            if token.run_until_cancelled(tagging).await.is_none() {
                return Ok(());
            }
            let mut busy = leader.busy();
            for subject in &some {
                busy.remove(&tag_key(&subject.instance_id));
            }
        }
    });
}

/// Writes what an instance lacks, by what is recorded now.
async fn tag(leader: &Leader, subject: &Subject) {
    let Subject { instance_id, launch_id } = subject;
    let record = leader.record(launch_id).filter(|record| record.phase() == Phase::Launched);
    let Some(record) = record.filter(|record| record.instance_id == *instance_id) else { return };
    let tags = {
        let inventory = leader.inventory.borrow();
        inventory.get(instance_id).map(|instance| launch_tags(instance, &record))
    };
    let Some(tags) = tags else { return };
    let answer = timeout(ANSWER_WITHIN, leader.cloud().tag(instance_id, &tags)).await;
    let answer = answer.unwrap_or_else(|_| Err(CloudError::silent("ec2:CreateTags")));
    let key = tag_key(instance_id);
    match answer {
        Ok(()) => {
            leader.paces().settled(&key);
            leader.paces().rest(&key, SHOWN_WITHIN);
            leader.look.notify_one();
        }
        Err(error) if error.class == Class::Unauthorized => {
            tracing::error!(
                instance_id, %error,
                "an instance stays without the tags of its launch: allow ec2:CreateTags on instances"
            );
            leader.paces().rest(&key, DENIED_FOR);
        }
        Err(error) => {
            tracing::warn!(instance_id, %error, "instance is tagged again later");
            leader.paces().strike(&key);
        }
    }
}

#[cfg(test)]
mod tests;
