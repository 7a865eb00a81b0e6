//! Reads the owners of pods that kube-scheduler fails, for how many more of these are to come, and
//! how many others go for them.
//!
//! Invariant: an owner is read once for a burst, a few at a time, and none is watched; what cannot
//! be read is not asked for again because of that, and nothing is expected of it. Nothing is
//! expected in a namespace with a quota, which may stop pods that their owner wants.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::ResourceQuota;
use kube::api::ListParams;
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;

use crate::index::{Index, Store};
use crate::patch;
use crate::project::owner::{self, Creates, Owner, OwnerKind};

/// Owners that are read at the same time.
const READS_MAX: usize = 4;
/// How long the API server may take to tell of an owner: later, its pods have come.
const PATIENCE: Duration = Duration::from_secs(2);

/// Keeps the index told of what is to come, for ever.
pub async fn run(client: &Client, store: &Store) {
    let mut changes = store.changes();
    let mut reading = FuturesUnordered::new();
    loop {
        changes.mark_unchanged();
        while reading.len() < READS_MAX && store.read(Index::has_unread_owners) {
            let Some(owner) = store.update(Index::take_unread_owner) else { break };
            let replaces = store.read(|index| index.is_rollout(&owner));
            reading.push(read(client, owner, replaces));
        }
        let wait = store.read(Index::expects_until_ms).map(|at_ms| at_ms - store.now().steady_ms);
        if wait.is_some_and(|wait_ms| wait_ms <= 0) {
            store.write(Index::expect_less);
            continue;
        }
        let tired = async {
            match wait.and_then(|wait_ms| u64::try_from(wait_ms).ok()) {
                Some(wait_ms) => tokio::time::sleep(Duration::from_millis(wait_ms)).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            // At most so many are read as there are, and changes are looked at all at once.
            biased;
            Some((owner, Told { wanted, staying })) = reading.next() => {
                store.write(|index| {
                    staying.into_iter().for_each(|stay| index.deployment_read(&owner, stay));
                    index.owner_read(&owner, wanted);
                });
            }
            changed = changes.changed() => {
                // The sender lives in the store, so this cannot fail.
                let _ = changed;
            }
            () = tired => {}
        }
    }
}

/// What the API server tells of an owner.
#[derive(Default)]
struct Told {
    /// How many unfinished pods it wants; none when nothing is to be expected of it.
    wanted: Option<usize>,
    /// How many of those that its pods replace stay for now; none when it replaces none.
    staying: Option<usize>,
}

async fn read(client: &Client, owner: Arc<Owner>, replaces: bool) -> (Arc<Owner>, Told) {
    let asked = async {
        let staying = staying(client, &owner, replaces);
        futures::try_join!(wanted(client, &owner), is_free(client, &owner), staying)
    };
    let told = match tokio::time::timeout(PATIENCE, asked).await {
        Ok(Ok((wanted, free, staying))) => Told { wanted: wanted.filter(|_| free), staying },
        Ok(Err(error)) => {
            tracing::debug!(?owner, %error, "its pods are not foreseen");
            Told::default()
        }
        Err(_) => {
            tracing::debug!(?owner, "its pods are not foreseen: the API server is slow");
            Told::default()
        }
    };
    (owner, told)
}

async fn staying(client: &Client, owner: &Owner, replaces: bool) -> kube::Result<Option<usize>> {
    let Some(name) = owner.deployment.as_ref().filter(|_| replaces) else { return Ok(None) };
    let api: Api<Deployment> = Api::namespaced(client.clone(), &owner.namespace);
    Ok(api.get_opt(name).await?.as_ref().and_then(owner::staying))
}

async fn wanted(client: &Client, owner: &Owner) -> kube::Result<Option<usize>> {
    match owner.kind {
        OwnerKind::ReplicaSet => wanted_by::<ReplicaSet>(client, owner).await,
        OwnerKind::StatefulSet => wanted_by::<StatefulSet>(client, owner).await,
        OwnerKind::Job => wanted_by::<Job>(client, owner).await,
    }
}

async fn wanted_by<K>(client: &Client, owner: &Owner) -> kube::Result<Option<usize>>
where
    K: Creates + Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    K: Clone + Debug + DeserializeOwned,
{
    let api: Api<K> = Api::namespaced(client.clone(), &owner.namespace);
    let found = api.get_opt(&owner.name).await?;
    // Another of the same name is not the one whose pods these are.
    let same = found.filter(|found| found.meta().uid.as_deref() == Some(&owner.uid));
    Ok(same.and_then(|found| found.wanted()))
}

/// True when no quota of its namespace may stop an owner's pods.
async fn is_free(client: &Client, owner: &Owner) -> kube::Result<bool> {
    let api: Api<ResourceQuota> = Api::namespaced(client.clone(), &owner.namespace);
    match api.list(&ListParams::default().limit(1)).await {
        Ok(quotas) => Ok(quotas.items.is_empty()),
        // A server that has no quotas enforces none.
        Err(error) if patch::code(&error) == Some(404) => Ok(true),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests;
