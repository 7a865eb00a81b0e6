//! Process plumbing shared by the three services: telemetry, shutdown, supervised tasks, gRPC
//! set-up, and who may speak with whom.
//!
//! Invariant: knows no domain type. What lands here is needed by at least two services.

pub mod authorise;
pub mod backoff;
pub mod budget;
pub mod client;
pub mod clock;
pub mod endpoint;
pub mod entropy;
pub mod identity;
pub mod inner;
pub mod listener;
pub mod metrics;
pub mod net;
pub mod panics;
pub mod platform;
pub mod process;
pub mod propagate;
pub mod pulse;
pub mod receiving;
pub mod seldom;
pub mod server;
pub mod shutdown;
pub mod tasks;
pub mod telemetry;
pub mod tls;
pub mod workers;

pub use longshore_planted as planted;

/// The allocator of every program: musl's, which static ones would have, takes one lock for all
/// threads, and glibc's a fifth more processor time for small objects that come and go. How soon it
/// gives memory back is told by `MIMALLOC_PURGE_DELAY`, in milliseconds.
pub use mimalloc::MiMalloc as Allocator;
