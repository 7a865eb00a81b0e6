//! A pod as controllers and scheduler see it.
//!
//! Invariant: built from one stored version and never changed.

use std::sync::Arc;

use serde_json::Value;

use super::shape::Shape;
use crate::cluster::object;
use crate::cluster::store::{Key, Stored};

/// A pod's life, in the order in which scale-down prefers to end it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Not running yet.
    Pending,
    /// The node stopped answering.
    Unknown,
    /// Containers run.
    Running,
    /// Ended well.
    Succeeded,
    /// Ended badly.
    Failed,
}

/// One pod.
#[derive(Clone, Debug)]
pub struct PodView {
    /// Namespace and name.
    pub key: Key,
    /// The stored object.
    pub stored: Arc<Stored>,
    /// Uid of the managing owner, empty without one.
    pub owner_uid: String,
    /// Node it is bound to, empty before.
    pub node: String,
    /// Node it is nominated for, empty without nomination.
    pub nominated: String,
    /// Where it is in its life.
    pub phase: Phase,
    /// True when it serves.
    pub is_ready: bool,
    /// True when its deletion has begun.
    pub is_deleting: bool,
    /// Priority.
    pub priority: i64,
    /// Demands.
    pub shape: Arc<Shape>,
}

impl PodView {
    /// Reads a pod; the shape is taken from an earlier view of the same spec and labels.
    pub fn of(stored: &Arc<Stored>, earlier: Option<&Self>) -> Self {
        let pod = &stored.value;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let unchanged = |view: &&Self| {
            let before = &view.stored.value["metadata"];
            let after = &pod["metadata"];
            before["uid"] == after["uid"]
                && before["generation"] == after["generation"]
                && before["labels"] == after["labels"]
        };
        let shape = earlier
            .filter(unchanged)
            .map_or_else(|| Arc::new(Shape::of(pod)), |view| Arc::clone(&view.shape));
        Self {
            key: Key::of(pod),
            stored: Arc::clone(stored),
            owner_uid: object::controller_of(pod).map(|o| text(&o["uid"])).unwrap_or_default(),
            node: text(&pod["spec"]["nodeName"]),
            nominated: text(&pod["status"]["nominatedNodeName"]),
            phase: phase(pod),
            is_ready: object::condition_is_true(pod, "Ready"),
            is_deleting: object::is_deleting(pod),
            priority: pod["spec"]["priority"].as_i64().unwrap_or(0),
            shape,
        }
    }

    /// The pod as JSON.
    pub fn value(&self) -> &Value {
        &self.stored.value
    }

    /// True when it will never run again.
    pub fn is_terminal(&self) -> bool {
        matches!(self.phase, Phase::Succeeded | Phase::Failed)
    }

    /// True when its owner counts it: neither ended nor leaving.
    pub fn is_active(&self) -> bool {
        !self.is_terminal() && !self.is_deleting
    }
}

fn phase(pod: &Value) -> Phase {
    match pod["status"]["phase"].as_str().unwrap_or_default() {
        "Running" => Phase::Running,
        "Succeeded" => Phase::Succeeded,
        "Failed" => Phase::Failed,
        "Unknown" => Phase::Unknown,
        _ => Phase::Pending,
    }
}
