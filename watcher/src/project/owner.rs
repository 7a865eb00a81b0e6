//! Owners of pods that create several of one kind: whose pod it is, and how many pods such an owner
//! wants.
//!
//! Invariant: where the next pod may not come, or may differ from the last in what decides where it
//! runs, there is no number.

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

/// Whoever creates Jobs' pods unless the Job says otherwise.
const JOB_CONTROLLER: &str = "kubernetes.io/job-controller";
/// Conditions of a Job that creates no more pods.
const JOB_ENDS: [&str; 4] = ["Complete", "Failed", "FailureTarget", "SuccessCriteriaMet"];

/// How a Deployment replaces its pods unless it says otherwise: some at a time.
const ROLLING_UPDATE: &str = "RollingUpdate";
/// Share of a Deployment's pods, in percent, that may be away meanwhile unless it says otherwise.
const UNAVAILABLE_PERCENT: usize = 25;

/// Kinds of owners that create many pods at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum OwnerKind {
    /// A ReplicaSet, of a Deployment mostly.
    ReplicaSet,
    /// A Job.
    Job,
    /// A StatefulSet; only those that create in parallel do.
    StatefulSet,
}

impl OwnerKind {
    /// True when a pod that is going is not replaced before it has gone.
    #[must_use]
    pub const fn waits_for_the_leaving(self) -> bool {
        matches!(self, Self::StatefulSet)
    }
}

/// An owner of pods.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Owner {
    /// UID.
    pub uid: String,
    /// Kind.
    pub kind: OwnerKind,
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// Name of the Deployment that a ReplicaSet belongs to; none for any other.
    pub deployment: Option<String>,
}

impl Owner {
    /// True for ReplicaSets of one Deployment, which replace each other's pods.
    #[must_use]
    pub fn is_of_the_same_deployment(&self, other: &Self) -> bool {
        self.deployment.is_some()
            && (&self.deployment, &self.namespace) == (&other.deployment, &other.namespace)
    }
}

/// The owner that may be creating more pods like this one; none for any other, and for pods with a
/// volume that is made for each of them, in a zone of its own.
#[must_use]
pub fn of(pod: &Pod) -> Option<Owner> {
    let owner = controller(pod)?;
    let kind = match (owner.api_version.as_str(), owner.kind.as_str()) {
        ("apps/v1", "ReplicaSet") => OwnerKind::ReplicaSet,
        ("apps/v1", "StatefulSet") => OwnerKind::StatefulSet,
        ("batch/v1", "Job") => OwnerKind::Job,
        _ => return None,
    };
    let mut volumes = pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten());
    if volumes.any(|volume| volume.ephemeral.is_some()) {
        return None;
    }
    Some(Owner {
        uid: owner.uid.clone(),
        kind,
        namespace: pod.metadata.namespace.clone().unwrap_or_default(),
        name: owner.name.clone(),
        deployment: deployment(pod).map(str::to_owned),
    })
}

/// An object that creates pods.
pub trait Creates {
    /// How many unfinished pods it wants there to be; None when it may create none now, or unlike
    /// ones.
    fn wanted(&self) -> Option<usize>;
}

impl Creates for ReplicaSet {
    fn wanted(&self) -> Option<usize> {
        let conditions = self.status.iter().flat_map(|status| status.conditions.iter().flatten());
        let fails = |kind: &str, status: &str| kind == "ReplicaFailure" && status == "True";
        if is_going(&self.metadata) || conditions.into_iter().any(|c| fails(&c.type_, &c.status)) {
            return None;
        }
        count(self.spec.as_ref()?.replicas)
    }
}

impl Creates for StatefulSet {
    fn wanted(&self) -> Option<usize> {
        let spec = self.spec.as_ref()?;
        let parallel = spec.pod_management_policy.as_deref() == Some("Parallel");
        let volumes = spec.volume_claim_templates.iter().flatten().next().is_some();
        if is_going(&self.metadata) || !parallel || volumes {
            return None;
        }
        count(spec.replicas)
    }
}

impl Creates for Job {
    fn wanted(&self) -> Option<usize> {
        let spec = self.spec.as_ref()?;
        let status = self.status.as_ref();
        let conditions = status.iter().flat_map(|status| status.conditions.iter().flatten());
        let ends = |kind: &str, status: &str| JOB_ENDS.contains(&kind) && status == "True";
        let ended = conditions.into_iter().any(|c| ends(&c.type_, &c.status));
        let other = spec.managed_by.as_deref().is_some_and(|by| by != JOB_CONTROLLER);
        if is_going(&self.metadata) || ended || other || spec.suspend == Some(true) {
            return None;
        }
        let succeeded = status.and_then(|status| status.succeeded).unwrap_or(0);
        let at_once = count(spec.parallelism)?;
        match spec.completions {
            Some(completions) => {
                let left = completions.saturating_sub(succeeded).max(0);
                Some(at_once.min(usize::try_from(left).unwrap_or(0)))
            }
            // A queue of work: once a pod has found it empty, none is created any more.
            None => (succeeded == 0).then_some(at_once),
        }
    }
}

fn is_going(meta: &ObjectMeta) -> bool {
    meta.deletion_timestamp.is_some()
}

/// How many pods of a Deployment stay at least while it replaces them; none when it replaces none
/// now, or all at once.
#[must_use]
pub fn staying(deployment: &Deployment) -> Option<usize> {
    let spec = deployment.spec.as_ref()?;
    let kind = spec.strategy.as_ref().and_then(|strategy| strategy.type_.as_deref());
    let recreates = kind.is_some_and(|kind| kind != ROLLING_UPDATE);
    if recreates || is_going(&deployment.metadata) || spec.paused == Some(true) {
        return None;
    }
    let wanted = count(spec.replicas)?;
    let rolling = spec.strategy.as_ref().and_then(|strategy| strategy.rolling_update.as_ref());
    let given = rolling.and_then(|rolling| rolling.max_unavailable.as_ref());
    let away =
        given.map_or_else(|| share(UNAVAILABLE_PERCENT, wanted), |given| amount(given, wanted));
    Some(wanted.saturating_sub(away))
}

/// A number, or a share rounded down; nothing where it cannot be read.
fn amount(given: &IntOrString, all: usize) -> usize {
    match given {
        IntOrString::Int(number) => usize::try_from(*number).unwrap_or(0),
        IntOrString::String(text) => {
            let percent = text.strip_suffix('%').and_then(|number| number.parse().ok());
            percent.map_or(0, |percent| share(percent, all))
        }
    }
}

fn share(percent: usize, all: usize) -> usize {
    all.saturating_mul(percent) / 100
}

/// Name of the Deployment whose ReplicaSet controls a pod; none for any other pod.
#[must_use]
pub fn deployment(pod: &Pod) -> Option<&str> {
    let owner = controller(pod).filter(|owner| owner.kind == "ReplicaSet")?;
    let hash = pod.metadata.labels.as_ref()?.get("pod-template-hash")?;
    owner.name.strip_suffix(hash.as_str())?.strip_suffix('-')
}

/// A number of pods; one where none is given.
fn count(given: Option<i32>) -> Option<usize> {
    usize::try_from(given.unwrap_or(1)).ok()
}

/// The owner that controls a pod.
#[must_use]
pub fn controller(pod: &Pod) -> Option<&OwnerReference> {
    pod.metadata.owner_references.iter().flatten().find(|o| o.controller == Some(true))
}

#[cfg(test)]
mod tests {
    use serde::de::DeserializeOwned;
    use serde_json::{Value, json};

    use super::*;

    fn wanted<K: Creates + DeserializeOwned>(spec: Value, status: Value) -> Option<usize> {
        let selector = json!({ "matchLabels": { "app": "a" } });
        let mut spec = spec;
        let fields = spec.as_object_mut().unwrap();
        fields.entry("selector").or_insert(selector);
        fields.entry("template").or_insert(json!({}));
        fields.entry("serviceName").or_insert(json!("a"));
        let object = json!({ "metadata": { "name": "a" }, "spec": spec, "status": status });
        serde_json::from_value::<K>(object).unwrap().wanted()
    }

    fn condition(kind: &str, status: &str) -> Value {
        json!({ "replicas": 0, "conditions": [{ "type": kind, "status": status }] })
    }

    #[test]
    fn a_replica_set_wants_its_replicas_unless_it_says_that_it_cannot_create_them() {
        let set = wanted::<ReplicaSet>;
        assert_eq!(set(json!({ "replicas": 120 }), json!({ "replicas": 3 })), Some(120));
        assert_eq!(set(json!({}), json!({ "replicas": 0 })), Some(1));
        assert_eq!(set(json!({ "replicas": 9 }), condition("ReplicaFailure", "True")), None);
        assert_eq!(set(json!({ "replicas": 9 }), condition("ReplicaFailure", "False")), Some(9));
    }

    #[test]
    fn a_stateful_set_wants_its_replicas_where_they_come_in_parallel_and_without_volumes() {
        let status = || json!({ "replicas": 0 });
        let set = wanted::<StatefulSet>;
        let parallel = json!({ "replicas": 7, "podManagementPolicy": "Parallel" });
        assert_eq!(set(parallel.clone(), status()), Some(7));
        assert_eq!(set(json!({ "replicas": 7 }), status()), None, "one after the other");
        let mut volumes = parallel;
        volumes["volumeClaimTemplates"] = json!([{ "metadata": { "name": "data" } }]);
        assert_eq!(set(volumes, status()), None);
    }

    #[test]
    fn a_job_wants_what_is_left_of_it_as_many_at_once_as_it_may() {
        let job = wanted::<Job>;
        let of = |parallelism: i64, completions: i64| json!({ "parallelism": parallelism, "completions": completions });
        assert_eq!(job(of(50, 80), json!({})), Some(50));
        assert_eq!(job(of(50, 80), json!({ "succeeded": 60 })), Some(20));
        assert_eq!(job(of(50, 80), json!({ "succeeded": 90 })), Some(0));
        assert_eq!(job(json!({ "parallelism": 50 }), json!({})), Some(50));
        assert_eq!(job(json!({ "parallelism": 50 }), json!({ "succeeded": 1 })), None);
        for end in JOB_ENDS {
            assert_eq!(job(of(50, 80), condition(end, "True")), None, "{end}");
        }
        let mut held = of(50, 80);
        held["suspend"] = json!(true);
        assert_eq!(job(held, json!({})), None);
        let mut foreign = of(50, 80);
        foreign["managedBy"] = json!("example.com/queue");
        assert_eq!(job(foreign, json!({})), None, "its pods may come elsewhere");
    }

    #[test]
    fn of_what_a_deployment_replaces_as_many_stay_as_it_says() {
        let staying = |fields: Value| {
            let mut spec = json!({ "replicas": 10, "selector": {}, "template": {} });
            let more = fields.as_object().unwrap().clone();
            spec.as_object_mut().unwrap().extend(more);
            let object = json!({ "metadata": { "name": "a" }, "spec": spec });
            super::staying(&serde_json::from_value(object).unwrap())
        };
        let rolling = |away: Value| json!({ "strategy": { "type": "RollingUpdate", "rollingUpdate": { "maxUnavailable": away } } });
        assert_eq!(staying(json!({})), Some(8), "a quarter goes, rounded down");
        assert_eq!(staying(rolling(json!("50%"))), Some(5));
        assert_eq!(staying(rolling(json!(3))), Some(7));
        assert_eq!(staying(rolling(json!(0))), Some(10));
        assert_eq!(staying(rolling(json!(20))), Some(0));
        assert_eq!(staying(rolling(json!("many"))), Some(10));
        assert_eq!(staying(json!({ "paused": true })), None);
        assert_eq!(staying(json!({ "strategy": { "type": "Recreate" } })), None);
    }

    #[test]
    fn an_owner_that_goes_wants_nothing() {
        let set = json!({
            "metadata": { "name": "a", "deletionTimestamp": "2026-01-01T00:00:00Z" },
            "spec": { "replicas": 9, "selector": {} },
        });
        assert_eq!(serde_json::from_value::<ReplicaSet>(set).unwrap().wanted(), None);
    }

    fn owned(api_version: &str, kind: &str, spec: Value) -> Option<Owner> {
        let owner = json!({ "apiVersion": api_version, "kind": kind, "name": "a", "uid": "u", "controller": true });
        let meta = json!({ "namespace": "n", "name": "a-1", "ownerReferences": [owner] });
        of(&serde_json::from_value(json!({ "metadata": meta, "spec": spec })).unwrap())
    }

    #[test]
    fn only_owners_that_create_many_like_pods_are_asked() {
        let plain = || json!({ "containers": [] });
        let found = owned("apps/v1", "ReplicaSet", plain()).unwrap();
        assert_eq!((found.uid.as_str(), found.namespace.as_str()), ("u", "n"));
        assert!(owned("batch/v1", "Job", plain()).is_some());
        assert!(owned("apps/v1", "StatefulSet", plain()).is_some());
        for (api_version, kind) in
            [("apps/v1", "DaemonSet"), ("v1", "ReplicationController"), ("example.com/v1", "Job")]
        {
            assert_eq!(owned(api_version, kind, plain()), None, "{kind}");
        }
        let own = json!({ "containers": [], "volumes": [{ "name": "v", "ephemeral": {} }] });
        assert_eq!(owned("apps/v1", "ReplicaSet", own), None, "a volume for each pod");
    }
}
