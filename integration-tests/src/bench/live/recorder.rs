//! Writes down what happens in a cluster and its region, as it happens.
//!
//! Invariant: nothing is polled: pods, nodes and claims are watched, and the region says when an
//! instance changes. A watch that had to begin again may have missed something, which is a fault of
//! the recording.

pub mod calls;
pub mod seen;

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, anyhow};
use futures::StreamExt as _;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{ApiResource, DynamicObject, GroupVersionKind};
use kube::runtime::watcher::Event;
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, Client, Resource, ResourceExt as _};
use longshore_lab::instance::InstanceSource as _;
use longshore_lab::region::RegionHandle;
use serde::de::DeserializeOwned;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout, timeout_at};

use seen::{ClaimState, Mark, Seen};

/// When a recording began, on both clocks.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    began: Instant,
    wall: Timestamp,
}

impl Clock {
    fn start() -> Self {
        Self { began: Instant::now(), wall: Timestamp::now() }
    }

    /// Milliseconds since then.
    #[must_use]
    pub fn now_ms(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Milliseconds from then to a moment of the wall clock; none for earlier ones.
    #[must_use]
    pub fn at_ms(&self, at: Timestamp) -> Option<u64> {
        u64::try_from(at.duration_since(self.wall).as_millis()).ok()
    }
}

/// A recording under way; it ends with this.
pub struct Recorder {
    /// Its clock.
    pub clock: Clock,
    seen: watch::Sender<Seen>,
    _tasks: JoinSet<()>,
}

impl Recorder {
    /// Begins to record pods of the namespace `default`, nodes, NodeClaims and instances.
    #[must_use]
    pub fn start(client: &Client, region: &Arc<RegionHandle>) -> Self {
        let (clock, seen) = (Clock::start(), watch::Sender::new(Seen::default()));
        let mut tasks = JoinSet::new();
        let pods: Api<Pod> = Api::default_namespaced(client.clone());
        tasks.spawn(follow(pods, (clock, seen.clone()), Seen::pod));
        let nodes: Api<Node> = Api::all(client.clone());
        tasks.spawn(follow(nodes, (clock, seen.clone()), Seen::node));
        let kind = GroupVersionKind::gvk("karpenter.sh", "v1", "NodeClaim");
        let resource = ApiResource::from_gvk_with_plural(&kind, "nodeclaims");
        let claims: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
        tasks.spawn(follow(claims, (clock, seen.clone()), claim));
        tasks.spawn(instances(Arc::clone(region), clock, seen.clone()));
        Self { clock, seen, _tasks: tasks }
    }

    /// Waits until what is there is as wanted; false when it is not, after `limit`.
    pub async fn until(&self, limit: Duration, wanted: impl Fn(&Seen) -> bool) -> bool {
        let mut seen = self.seen.subscribe();
        timeout(limit, seen.wait_for(wanted)).await.is_ok_and(|seen| seen.is_ok())
    }

    /// Waits until nothing has changed for a time; false when something still does, after `limit`.
    pub async fn quiet(&self, quiet: Duration, limit: Duration) -> bool {
        let (mut seen, deadline) = (self.seen.subscribe(), Instant::now() + limit);
        loop {
            let silent_at = Instant::now() + quiet;
            match timeout_at(silent_at.min(deadline), seen.changed()).await {
                Err(_) => return silent_at <= deadline,
                Ok(Err(_)) => return false,
                Ok(Ok(())) => {}
            }
        }
    }

    /// Looks at what is there.
    pub fn look<T>(&self, at: impl FnOnce(&Seen) -> T) -> T {
        at(&self.seen.borrow())
    }

    /// All marks so far.
    ///
    /// # Errors
    /// When something may be missing.
    pub fn marks(&self) -> Result<Vec<Mark>> {
        let seen = self.seen.borrow();
        match &seen.fault {
            Some(fault) => Err(anyhow!("{fault}; measure again")),
            None => Ok(seen.marks.clone()),
        }
    }
}

/// Tells of every object of a kind, now and later.
async fn follow<K>(
    api: Api<K>,
    (clock, seen): (Clock, watch::Sender<Seen>),
    note: impl Fn(&mut Seen, u64, &K, bool) -> bool,
) where
    K: Resource + Clone + DeserializeOwned + std::fmt::Debug + Send + 'static,
{
    let mut lists = 0_u32;
    let mut events = watcher(api, watcher::Config::default()).default_backoff().boxed();
    while let Some(event) = events.next().await {
        let at_ms = clock.now_ms();
        let found = match event {
            Ok(Event::Apply(object) | Event::InitApply(object)) => Some((object, false)),
            Ok(Event::Delete(object)) => Some((object, true)),
            Ok(Event::Init) => {
                lists += 1;
                None
            }
            Ok(Event::InitDone) | Err(_) => None,
        };
        if let Some((object, is_gone)) = found {
            seen.send_if_modified(|it| note(it, at_ms, &object, is_gone));
        }
        if lists > 1 {
            let fault = "a watch had to begin again, and may have missed something";
            seen.send_modify(|it| it.fault = Some(fault.to_owned()));
        }
    }
}

fn claim(seen: &mut Seen, at_ms: u64, claim: &DynamicObject, is_gone: bool) -> bool {
    let is = match claim.metadata.deletion_timestamp {
        _ if is_gone => ClaimState::Gone,
        Some(_) => ClaimState::Ending,
        None => ClaimState::Made,
    };
    seen.claim(at_ms, &claim.name_any(), is)
}

async fn instances(region: Arc<RegionHandle>, clock: Clock, seen: watch::Sender<Seen>) {
    let mut changes = region.changes();
    loop {
        changes.mark_unchanged();
        let (all, price) = (region.instances(), region.spend_micro_usd_per_hour());
        seen.send_if_modified(|it| it.instances(clock.now_ms(), &all, price));
        if changes.changed().await.is_err() {
            return;
        }
    }
}
