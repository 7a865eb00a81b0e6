//! Workloads to the pods they ask for.
//!
//! Invariant: the shape of a workload's pods comes from the watcher's projection; only their number
//! is decided here.

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::batch::v1::{Job, JobSpec, JobStatus};
use k8s_openapi::api::core::v1::PodTemplateSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use longshore_proto::types::v1::PodShape;
use longshore_watcher::project::buffer::Referred;
use longshore_watcher::project::shape;
use longshore_watcher::project::{Fault, Problem, Surroundings};

/// An object that makes pods.
#[derive(Clone, Debug)]
pub enum Workload {
    /// A Deployment.
    Deployment(Box<Deployment>),
    /// A StatefulSet.
    StatefulSet(Box<StatefulSet>),
    /// A ReplicaSet.
    ReplicaSet(Box<ReplicaSet>),
    /// A Job.
    Job(Box<Job>),
}

/// Namespace, and owner as `Kind/name`: what the pods of one workload have in common.
pub type Owner = (String, String);

impl Workload {
    /// Its kind.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Deployment(_) => "Deployment",
            Self::StatefulSet(_) => "StatefulSet",
            Self::ReplicaSet(_) => "ReplicaSet",
            Self::Job(_) => "Job",
        }
    }

    fn meta(&self) -> &ObjectMeta {
        match self {
            Self::Deployment(object) => &object.metadata,
            Self::StatefulSet(object) => &object.metadata,
            Self::ReplicaSet(object) => &object.metadata,
            Self::Job(object) => &object.metadata,
        }
    }

    fn namespace(&self) -> &str {
        self.meta().namespace.as_deref().unwrap_or("default")
    }

    /// The workload itself, as `Kind/name` in its namespace.
    #[must_use]
    pub fn itself(&self) -> Owner {
        let name = self.meta().name.as_deref().unwrap_or_default();
        (self.namespace().to_owned(), format!("{}/{name}", self.kind()))
    }

    /// Who its pods are said to belong to: the Deployment, for a ReplicaSet that has one.
    #[must_use]
    pub fn owner(&self) -> Owner {
        let owners = self.meta().owner_references.iter().flatten();
        let mut deployments =
            owners.filter(|o| o.controller == Some(true) && o.kind == "Deployment");
        match deployments.next() {
            Some(owner) => (self.namespace().to_owned(), format!("Deployment/{}", owner.name)),
            None => self.itself(),
        }
    }

    /// Shape of its pods.
    ///
    /// # Errors
    /// Requests that cannot be read.
    pub fn shape(&self, around: &Surroundings) -> Result<PodShape, Fault> {
        if let Self::StatefulSet(set) = self {
            return shape::stateful_set(set, around);
        }
        let (namespace, owner) = self.owner();
        let (kind, name) = owner.split_once('/').unwrap_or((self.kind(), &owner));
        let workload = shape::Workload { kind, namespace: &namespace, name };
        shape::template(&workload, &self.template(), around)
    }

    /// The workload as something that a capacity buffer refers to; none for a Job, which none may.
    #[must_use]
    pub fn referred(&self) -> Option<Referred> {
        let replicas = match self {
            Self::Deployment(object) => object.spec.as_ref().and_then(|spec| spec.replicas),
            Self::StatefulSet(object) => object.spec.as_ref().and_then(|spec| spec.replicas),
            Self::ReplicaSet(object) => object.spec.as_ref().and_then(|spec| spec.replicas),
            Self::Job(_) => return None,
        };
        Some(Referred::workload(self.template(), replicas, self.meta().generation))
    }

    fn template(&self) -> PodTemplateSpec {
        let template = match self {
            Self::Deployment(object) => object.spec.as_ref().map(|spec| spec.template.clone()),
            Self::StatefulSet(object) => object.spec.as_ref().map(|spec| spec.template.clone()),
            Self::ReplicaSet(object) => object.spec.as_ref().and_then(|spec| spec.template.clone()),
            Self::Job(object) => object.spec.as_ref().map(|spec| spec.template.clone()),
        };
        template.unwrap_or_default()
    }

    /// How many pods it wants to have.
    ///
    /// # Errors
    /// A number below zero.
    pub fn pods(&self) -> Result<u32, Fault> {
        let (field, count) = match self {
            Self::Deployment(object) => ("replicas", object.spec.as_ref().and_then(|s| s.replicas)),
            Self::StatefulSet(object) => {
                ("replicas", object.spec.as_ref().and_then(|s| s.replicas))
            }
            Self::ReplicaSet(object) => ("replicas", object.spec.as_ref().and_then(|s| s.replicas)),
            Self::Job(object) => ("parallelism", Some(active(object))),
        };
        let count = count.unwrap_or(1);
        u32::try_from(count).map_err(|_| {
            let (namespace, owner) = self.itself();
            let object = owner.replacen('/', &format!("/{namespace}/"), 1);
            let problem = Problem::Negative(count.to_string());
            Fault { object, field: format!("spec.{field}"), problem }
        })
    }
}

/// Pods that a Job keeps running at a time: its parallelism, but no more than are left to do.
fn active(job: &Job) -> i32 {
    let none = (JobSpec::default(), JobStatus::default());
    let spec = job.spec.as_ref().unwrap_or(&none.0);
    let status = job.status.as_ref().unwrap_or(&none.1);
    let over = status.conditions.iter().flatten();
    let over = over
        .into_iter()
        .any(|c| matches!(c.type_.as_str(), "Complete" | "Failed") && c.status == "True");
    if over || spec.suspend == Some(true) {
        return 0;
    }
    let parallelism = spec.parallelism.unwrap_or(1);
    let left = spec.completions.map(|all| all.saturating_sub(status.succeeded.unwrap_or(0)));
    left.map_or(parallelism, |left| parallelism.min(left.max(0)))
}

#[cfg(test)]
mod tests {
    use longshore_watcher::api::crd::decode;
    use serde_json::{Value, json};

    use super::*;

    fn job(spec: Value, status: Value) -> Workload {
        let object = json!({"metadata": {"name": "j"}, "spec": spec, "status": status});
        Workload::Job(Box::new(decode(object).unwrap()))
    }

    #[test]
    fn a_job_runs_what_is_left_of_it() {
        let template = json!({"spec": {"containers": []}});
        let with = |mut spec: Value, status: Value| {
            spec["template"] = template.clone();
            job(spec, status).pods()
        };
        assert_eq!(with(json!({}), json!({})), Ok(1));
        assert_eq!(with(json!({"parallelism": 4}), json!({})), Ok(4));
        assert_eq!(
            with(json!({"parallelism": 4, "completions": 6}), json!({"succeeded": 4})),
            Ok(2)
        );
        assert_eq!(with(json!({"parallelism": 4, "suspend": true}), json!({})), Ok(0));
        let done = json!({"conditions": [{"type": "Complete", "status": "True"}]});
        assert_eq!(with(json!({"parallelism": 4}), done), Ok(0));
        let fault = with(json!({"parallelism": -1}), json!({})).unwrap_err().to_string();
        assert!(
            fault.starts_with("Job/default/j: spec.parallelism: \"-1\" is negative"),
            "{fault}"
        );
    }

    #[test]
    fn a_replica_set_stands_for_its_deployment() {
        let object = json!({"metadata": {"name": "web-5d", "namespace": "shop", "ownerReferences": [
            {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web",
             "uid": "u", "controller": true},
        ]}});
        let set = Workload::ReplicaSet(Box::new(decode(object).unwrap()));
        assert_eq!(set.itself(), ("shop".to_owned(), "ReplicaSet/web-5d".to_owned()));
        assert_eq!(set.owner(), ("shop".to_owned(), "Deployment/web".to_owned()));
        assert_eq!(set.shape(&Surroundings::default()).unwrap().owner, "Deployment/web");
    }
}
