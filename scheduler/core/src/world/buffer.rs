//! CapacityBuffers: room that is kept free for pods to come.
//!
//! Invariant: a buffer's pods exist in plans only. They give way to every real pod and are never
//! nominated, bound or evicted.

use crate::vocabulary::ids::{ObjectKey, ShapeId};

/// Most pods of one buffer that room is sought for.
pub const BUFFER_PODS_MAX: i64 = 10_000;
/// Most pods of all buffers together that room is sought for; buffers come in order of name.
pub const BUFFERED_PODS_MAX: i64 = 50_000;
const _: () = assert!(BUFFER_PODS_MAX <= BUFFERED_PODS_MAX);

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
