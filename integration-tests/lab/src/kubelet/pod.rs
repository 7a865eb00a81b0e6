//! One pod on its node: from bound to gone.
//!
//! Invariant: pure; the statuses are those a kubelet reports, in the order it reports them.

use std::time::Duration;

use k8s_openapi::api::core::v1::{Container, Pod};
use serde_json::{Value, json};

use super::{EXIT_CODE, KubeletConfig, READY_AFTER, RUNS_FOR, STOPS_AFTER};

/// How one pod behaves, by its annotations and the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Behaviour {
    /// From bound to running.
    pub starts_after: Duration,
    /// From running to ready.
    pub ready_after: Duration,
    /// From running to the exit of its containers; for ever when none.
    pub runs_for: Option<Duration>,
    /// Exit code when they end by themselves.
    pub exit_code: i32,
    /// From the request to stop to their exit.
    pub stops_after: Duration,
}

impl Behaviour {
    /// Reads a pod.
    pub fn of(pod: &Pod, config: &KubeletConfig) -> Self {
        let text = |name: &str| pod.metadata.annotations.as_ref()?.get(name).map(String::as_str);
        let duration = |name: &str| humantime::parse_duration(text(name)?).ok();
        let owners = pod.metadata.owner_references.iter().flatten();
        let is_of_job = owners.into_iter().any(|owner| owner.kind == "Job");
        Self {
            starts_after: config.pod_start_delay,
            ready_after: duration(READY_AFTER).unwrap_or_default(),
            runs_for: duration(RUNS_FOR).or(is_of_job.then_some(config.job_pod_duration)),
            exit_code: text(EXIT_CODE).and_then(|code| code.parse().ok()).unwrap_or(0),
            stops_after: duration(STOPS_AFTER).unwrap_or(config.pod_stop_delay),
        }
    }

    /// How long the pod takes to stop when its deletion grants this grace.
    pub fn stop_time(&self, grace_seconds: Option<i64>) -> Duration {
        let grace = grace_seconds.and_then(|seconds| u64::try_from(seconds).ok()).unwrap_or(0);
        self.stops_after.min(Duration::from_secs(grace))
    }
}

/// Addresses a pod is reported with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Addresses {
    /// The node's.
    pub host: String,
    /// The pod's.
    pub pod: String,
}

/// The status of a pod whose containers run, as a strategic merge patch.
pub fn running(pod: &Pod, addresses: &Addresses, is_ready: bool, now: &str) -> Value {
    let ready = if is_ready { "True" } else { "False" };
    let conditions = [
        ("PodReadyToStartContainers", "True"),
        ("Initialized", "True"),
        ("ContainersReady", ready),
        ("Ready", ready),
    ]
    .map(|(kind, status)| condition(kind, status, now));
    let state = json!({ "running": { "startedAt": now } });
    json!({ "status": {
        "phase": "Running",
        "startTime": now,
        "hostIP": addresses.host,
        "hostIPs": [{ "ip": addresses.host }],
        "podIP": addresses.pod,
        "podIPs": [{ "ip": addresses.pod }],
        "conditions": conditions,
        "containerStatuses": containers(pod, &state, is_ready),
    } })
}

/// The status of a pod whose containers have exited.
pub fn ended(pod: &Pod, exit_code: i32, now: &str) -> Value {
    let (phase, reason) =
        if exit_code == 0 { ("Succeeded", "Completed") } else { ("Failed", "Error") };
    let state = json!({ "terminated": {
        "exitCode": exit_code,
        "reason": reason,
        "finishedAt": now,
    } });
    let conditions = ["ContainersReady", "Ready"].map(|kind| condition(kind, "False", now));
    json!({ "status": {
        "phase": phase,
        "conditions": conditions,
        "containerStatuses": containers(pod, &state, false),
    } })
}

fn condition(kind: &str, status: &str, now: &str) -> Value {
    json!({ "type": kind, "status": status, "lastTransitionTime": now })
}

fn containers(pod: &Pod, state: &Value, is_ready: bool) -> Vec<Value> {
    let status = |container: &Container| {
        let image = container.image.clone().unwrap_or_default();
        json!({
            "name": container.name,
            "image": image,
            "imageID": format!("lab/{image}"),
            "containerID": format!("containerd://{}", pod.metadata.uid.clone().unwrap_or_default()),
            "ready": is_ready,
            "started": state["running"].is_object(),
            "restartCount": 0,
            "state": state,
        })
    };
    pod.spec.iter().flat_map(|spec| &spec.containers).map(status).collect()
}
