//! Watches: one task for each kind of object, from the API server into the index.
//!
//! Invariant: a watch that fails is taken up again with back-off; an object that cannot be decoded
//! stops no other; a kind whose CRD was never installed counts as empty until it is, and one that
//! is no longer served keeps its objects. Without the kinds that every cluster has nothing is
//! begun.

mod feed;
mod guard;

use std::fmt::Debug;
use std::time::Duration;

use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::{
    Namespace, Node, ObjectReference, PersistentVolume, PersistentVolumeClaim, Pod,
};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::resource::v1::{DeviceClass, ResourceClaimTemplate, ResourceSlice};
use k8s_openapi::api::storage::v1::{CSINode, StorageClass, VolumeAttachment};
use kube::api::ObjectMeta;
use kube::runtime::watcher::Event;
use kube::{Api, Client, Resource};
use longshore_runtime::backoff::{Backoff, BackoffPolicy};
use longshore_runtime::entropy::Entropy;
use longshore_runtime::tasks::{OnError, Supervisor};
use tokio::time::Instant;

use crate::api::{
    AWSNodeTemplate, CapacityBuffer, EC2NodeClass, NodeClaim, NodeOverlay, NodePool, Provisioner,
};
use crate::index::{Index, Missing, Source, Store, Watched, name_of};
use feed::{Feed, Lost};
use guard::Guarded;

/// Pauses after a failed watch. The longest is also how late a newly installed CRD may be noticed.
const RETRY: BackoffPolicy =
    BackoffPolicy { minimum: Duration::from_millis(500), maximum: Duration::from_secs(15) };

/// How long a kind with objects may not be served before somebody is called.
const ABSENCE_LONG: Duration = Duration::from_secs(10 * 60);

/// Starts all watches.
pub fn spawn(supervisor: &Supervisor, client: &Client, store: &Store) {
    let watches = Watches { supervisor, client, store };
    watches.spawn::<Namespace>("watch namespaces");
    watches.spawn::<StorageClass>("watch storage classes");
    watches.spawn::<DeviceClass>("watch device classes");
    watches.spawn::<ResourceClaimTemplate>("watch claim templates");
    watches.spawn::<ResourceSlice>("watch devices of nodes");
    watches.spawn::<PersistentVolume>("watch volumes");
    watches.spawn::<PersistentVolumeClaim>("watch volume claims");
    watches.spawn::<NodePool>("watch node pools");
    watches.spawn::<Provisioner>("watch provisioners");
    watches.spawn::<EC2NodeClass>("watch node classes");
    watches.spawn::<AWSNodeTemplate>("watch node templates");
    watches.spawn::<NodeOverlay>("watch node overlays");
    watches.spawn::<NodeClaim>("watch node claims");
    watches.spawn::<Node>("watch nodes");
    watches.spawn::<CSINode>("watch what nodes can attach");
    watches.spawn::<VolumeAttachment>("watch attached volumes");
    watches.spawn::<DaemonSet>("watch daemon sets");
    watches.spawn::<PodDisruptionBudget>("watch disruption budgets");
    watches.spawn::<CapacityBuffer>("watch capacity buffers");
    watches.spawn::<Pod>("watch pods");
}

struct Watches<'a> {
    supervisor: &'a Supervisor,
    client: &'a Client,
    store: &'a Store,
}

impl Watches<'_> {
    fn spawn<K>(&self, task: &'static str)
    where
        K: Watched + Resource<DynamicType = ()>,
        K: Clone + Debug + Send + 'static,
    {
        let (client, store) = (self.client.clone(), self.store.clone());
        let jitter = self.supervisor.platform().entropy.clone();
        self.supervisor.spawn(task, OnError::Restart(RETRY), move || {
            watch::<K>(Api::all(client.clone()), store.clone(), jitter.clone())
        });
    }
}

async fn watch<K>(api: Api<Guarded<K>>, store: Store, jitter: Entropy) -> anyhow::Result<()>
where
    K: Watched + Resource<DynamicType = ()> + Clone + Debug + Send + 'static,
{
    let mut feed = Feed::new(api);
    let mut backoff = Backoff::new(RETRY, jitter);
    let mut absence = Absence::default();
    loop {
        let lost = feed.run(|event| {
            // That a list begins says nothing of whether all of it will come.
            if !matches!(event, Event::Init) {
                backoff.reset();
                absence = Absence::default();
            }
            take(&store, event);
        });
        let lost = lost.await;
        if lost.code() == Some(404) {
            absence.note::<K>(&store);
            // From the beginning: a watch that merely goes on says nothing when the kind is
            // served again, and what it is about would stay frozen.
            feed.restart();
        } else {
            tracing::warn!(kind = %K::kind(&()), error = %lost, "{}", advice(&lost));
        }
        backoff.wait().await;
    }
}

/// How long the API server has not known a kind.
#[derive(Default)]
struct Absence {
    since: Option<Instant>,
    said: bool,
}

impl Absence {
    fn note<K: Watched + Resource<DynamicType = ()>>(&mut self, store: &Store) {
        let kind = K::kind(&());
        let first = self.since.is_none();
        let since = *self.since.get_or_insert_with(Instant::now);
        // Again each time: the relist that has just failed was begun in the index.
        let missing = store.write(Index::missing::<K>);
        match missing {
            _ if !first => {}
            Missing::Kept => {
                tracing::warn!(%kind, "kind is no longer served; its objects stay as they were");
            }
            Missing::Empty => {
                tracing::info!(%kind, "kind is not installed; it counts as empty until it is");
            }
            Missing::Unknown => {
                tracing::warn!(%kind, "kind is not served; nothing is begun until it is, since none can do \
                     without it: install its CRD, or mend the API server");
            }
        }
        if missing != Missing::Empty
            && since.elapsed() > ABSENCE_LONG
            && !std::mem::replace(&mut self.said, true)
        {
            tracing::error!(
                %kind,
                "kind has not been served for {ABSENCE_LONG:?}, and nothing is ended that it may be about; \
                 install its CRD, or restart the watcher when it is gone for good"
            );
        }
    }
}

fn advice(lost: &Lost) -> &'static str {
    match lost.code() {
        Some(403) => {
            "watch refused; grant the service account get, list and watch on this kind, as the \
             chart's ClusterRole does"
        }
        // The history that the watch wanted is gone: it lists anew.
        Some(410) => "watch fell behind; listing again",
        _ => "watch failed; trying again",
    }
}

const fn is_node(source: Source) -> bool {
    matches!(source, Source::NodeClaim | Source::Node)
}

fn take<K>(store: &Store, event: Event<Guarded<K>>)
where
    K: Watched + Resource<DynamicType = ()>,
{
    match event {
        Event::Init => store.update(|index| index.begin::<K>()),
        Event::InitDone => {
            let relisted = store.write(|index| index.end::<K>());
            // The API server is the source: what it lists is true. But it is rarely so little.
            if relisted.seen == 0 && relisted.gone > 1 && is_node(K::SOURCE) {
                let (kind, gone) = (K::kind(&()), relisted.gone);
                tracing::warn!(%kind, gone, "a list came back empty where there were many objects");
            }
        }
        // Nobody is woken for each object of a list: its end is what they wait for.
        Event::InitApply(guarded) => store.update(|index| apply(index, guarded)),
        Event::Apply(guarded) => store.write(|index| apply(index, guarded)),
        Event::Delete(guarded) => {
            store.write(|index| index.forget::<K>(&name_of(guarded.meta())));
        }
    }
}

fn apply<K>(index: &mut Index, guarded: Guarded<K>)
where
    K: Watched + Resource<DynamicType = ()>,
{
    let reference = reference::<K>(guarded.meta());
    let node = guarded.0.as_ref().err().and_then(|it| it.node_name.clone());
    let object = guarded.0.map_err(|undecoded| undecoded.error);
    index.apply_at(reference, object, node.as_deref());
}

/// A reference to an object, for Events about it.
#[must_use]
pub fn reference<K: Resource<DynamicType = ()>>(meta: &ObjectMeta) -> ObjectReference {
    ObjectReference {
        api_version: Some(K::api_version(&()).into_owned()),
        kind: Some(K::kind(&()).into_owned()),
        namespace: meta.namespace.clone(),
        name: meta.name.clone(),
        uid: meta.uid.clone(),
        ..ObjectReference::default()
    }
}

#[cfg(test)]
mod tests;
