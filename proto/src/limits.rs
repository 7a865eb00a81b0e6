//! Sizes and windows of the protocol, each with its unit and derivation.
//!
//! Invariant: related limits are compared at compile time, so one cannot be changed alone.

/// Version of the Sync protocol that this build speaks.
pub const PROTOCOL_VERSION: u32 = 1;

/// True for a peer's version that this build works with: its own, the one before and the one after,
/// so that either side may be upgraded first. Each side speaks the smaller of the two.
#[must_use]
pub const fn is_spoken(version: u32) -> bool {
    version != 0 && version.abs_diff(PROTOCOL_VERSION) <= 1
}

/// Largest message either side sends or accepts. tonic's receiving default; stated so that both
/// ends agree even if the default moves.
pub const MESSAGE_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Target size of a snapshot chunk or delta: small enough that one object more (an object is at
/// most [`OBJECT_BYTES_MAX`]) still fits a message.
pub const CHUNK_BYTES_TARGET: usize = 1024 * 1024;

/// Largest single object. The API server refuses objects over 1.5 MiB, and projections shrink them.
pub const OBJECT_BYTES_MAX: usize = 2 * 1024 * 1024;

/// Most chunks and deltas in flight without Ack.
pub const SYNC_WINDOW: u32 = 64;

/// Most directives queued towards a watcher; a plan that needs more waits for results.
pub const DIRECTIVE_QUEUE: usize = 4096;

/// How long a directive may wait before it must not be started, in milliseconds: after that the
/// scheduler decides anew.
pub const DIRECTIVE_TTL_MS: u32 = 20_000;

/// How often an idle watcher sends a bookmark, in seconds.
pub const BOOKMARK_INTERVAL_SECONDS: u64 = 15;

/// What has gone on absence alone counts for this long against what still may, in seconds.
pub const ABSENCE_WINDOW_SECONDS: u64 = 10 * 60;

/// Most losses that a watcher remembers and tells: as many as may go within that time in a cluster
/// of 20,000 nodes. An annotation holds them, of which the API server takes 256 KiB in all.
pub const LOSSES_MAX: usize = 1000;

/// Most candidates in a launch: beyond about sixty overrides, EC2 Fleet requests grow slow.
pub const CANDIDATES_MAX: usize = 60;

/// Most launches in one ApplyPlan; a larger plan is sent in parts. One launch with sixty
/// candidates takes at most about 6 KiB.
pub const LAUNCHES_PER_APPLY_MAX: usize = 500;

/// Longest launch id, in bytes: EC2 client tokens hold 64, of which the attempt takes some.
pub const LAUNCH_ID_BYTES_MAX: usize = 48;

/// Most objects of a request, or launches, and fields that these have: a message full of the
/// smallest pods has 77,000.
pub const SHALLOW_PARTS_MAX: usize = 98_304;

/// Parts of any depth that a request may have whatever its size: as many as pods of a chunk of a
/// snapshot.
pub const PARTS_FREE: usize = 131_072;

/// Bytes of a request for each further part: with those that are free, a message full of pods.
pub const PARTS_PER_BYTES: usize = 16;

const _: () = assert!(CHUNK_BYTES_TARGET + OBJECT_BYTES_MAX < MESSAGE_BYTES_MAX);
const _: () = assert!(LAUNCHES_PER_APPLY_MAX * 6 * 1024 < MESSAGE_BYTES_MAX);
