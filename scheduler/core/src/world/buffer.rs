//! CapacityBuffers: room that is kept free for pods to come.
//!
//! Invariant: a buffer's pods exist in plans only. They give way to every real pod and are never
//! nominated, bound or evicted.

use crate::vocabulary::ids::{ObjectKey, ShapeId};

/// A CapacityBuffer, resolved to pods.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CapacityBuffer {
    /// Namespace and name.
    pub key: ObjectKey,
    /// Shape of its pods; no real pod has it.
    pub shape: ShapeId,
    /// How many of them there must be room for.
    pub replicas: i64,
}
