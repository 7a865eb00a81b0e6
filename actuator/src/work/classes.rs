//! Resolving node classes: when they change, when somebody asks, and once a minute.
//!
//! Invariant: a class that fails to resolve does not delay the others.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt, stream};
use longshore_proto::types::v1::{ClusterFacts, NodeClass};
use longshore_runtime::planted;
use tokio::time::{Instant, timeout};

use crate::leader::{Classes, Leader};
use crate::nodeclass::{Resolved, resolve};
use crate::policy;

/// Classes resolved at the same time; each takes a handful of calls.
const CLASSES_AT_ONCE: usize = 4;
/// Time between two looks at everything.
const INTERVAL: Duration = Duration::from_secs(60);
/// Longest time for all look-ups of a class; they are made again at the next look.
const RESOLVED_WITHIN: Duration = Duration::from_secs(180);
/// How long what was found stays in use while AWS does not answer: subnets, groups, images and
/// profiles change by the week.
const KEEP_FOUND: Duration = Duration::from_secs(1800);

/// A class to resolve.
#[derive(Clone, PartialEq)]
struct Wanted {
    cluster_id: String,
    facts: ClusterFacts,
    class: NodeClass,
}

pub async fn run(leader: Arc<Leader>) -> anyhow::Result<()> {
    let mut version = leader.ledger.version();
    let mut resolved: Vec<Wanted> = Vec::new();
    let mut stale = BTreeMap::new();
    let mut due = tokio::time::Instant::now();
    loop {
        version.mark_unchanged();
        let wanted = wanted(&leader);
        let everything = tokio::time::Instant::now() >= due;
        if everything {
            due = tokio::time::Instant::now() + INTERVAL;
        }
        let work: Vec<_> =
            wanted.iter().filter(|w| everything || !resolved.contains(w)).cloned().collect();
        let vanished = resolved.iter().any(|known| !wanted.iter().any(|w| same(w, known)));
        if vanished || !work.is_empty() {
            resolve_all(&leader, work, &wanted, &mut stale).await;
        }
        resolved = wanted;
        tokio::select! {
            changed = version.changed() => changed?,
            () = leader.resolve.notified() => due = tokio::time::Instant::now(),
            () = tokio::time::sleep_until(due) => {}
        }
    }
}

fn same(a: &Wanted, b: &Wanted) -> bool {
    a.cluster_id == b.cluster_id && a.class.name == b.class.name
}

fn wanted(leader: &Leader) -> Vec<Wanted> {
    let book = leader.ledger.book();
    let clusters = book.clusters.iter();
    let classes = clusters.flat_map(|(cluster_id, cluster)| {
        cluster.node_classes.iter().map(|class| Wanted {
            cluster_id: cluster_id.clone(),
            facts: cluster.facts.clone().unwrap_or_default(),
            class: class.clone(),
        })
    });
    classes.collect()
}

async fn resolve_all(
    leader: &Leader,
    work: Vec<Wanted>,
    wanted: &[Wanted],
    stale: &mut BTreeMap<(String, String), Instant>,
) {
    let place = leader.place();
    let done: Vec<Option<Resolved>> = stream::iter(work)
        .map(|work| {
            let place = place.clone();
            async move {
                let cluster = (work.cluster_id.as_str(), &work.facts);
                let resolving = resolve(leader.cloud(), &place, cluster, &work.class);
                let resolved = timeout(RESOLVED_WITHIN, resolving).await.ok();
                let policy = leader.context.policies.now();
                let resolved = resolved.map(|mut resolved| {
                    policy::confine(&mut resolved, policy.of(&work.cluster_id));
                    resolved
                });
                if resolved.is_none() {
                    tracing::warn!(class = work.class.name, "AWS does not answer about the class");
                }
                resolved
            }
        })
        .buffer_unordered(CLASSES_AT_ONCE)
        .collect()
        .await;
    leader.classes.send_if_modified(|classes| {
        let before = classes.clone();
        classes.retain(|(cluster_id, name), _| {
            wanted.iter().any(|w| w.cluster_id == *cluster_id && w.class.name == *name)
        });
        take_over(classes, done.into_iter().flatten().collect(), stale);
        *classes != before
    });
}

/// Takes over resolutions. What AWS has not answered stays as it was found before, for a while:
/// `stale` says since when.
fn take_over(
    classes: &mut Classes,
    done: Vec<Resolved>,
    stale: &mut BTreeMap<(String, String), Instant>,
) {
    stale.retain(|key, _| classes.contains_key(key));
    for mut resolved in done {
        let key = (resolved.cluster_id.clone(), resolved.class.name.clone());
        let since = stale.get(&key).copied().unwrap_or_else(Instant::now);
        let mut kept = Vec::new();
        if let Some(before) = classes.get(&key).filter(|_| since.elapsed() < KEEP_FOUND)
            && !planted::is("S13a")
        {
            kept = resolved.keep_found(before);
        }
        if kept.is_empty() {
            stale.remove(&key);
        } else {
            tracing::warn!(
                class = key.1,
                ?kept,
                "AWS does not answer; what was found before is kept"
            );
            stale.insert(key.clone(), since);
        }
        if classes.get(&key).is_none_or(|known| **known != resolved) {
            classes.insert(key, Arc::new(resolved));
        }
    }
}
