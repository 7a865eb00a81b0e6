//! Longshore's wire contract: generated messages and services, refusal reasons and limits.
//!
//! Invariant: no domain logic. What an element means is written once, in the `.proto` files.

pub mod limits;
pub mod reason;

/// Package `longshore.types.v1`: objects, catalogue and plan.
pub mod types {
    /// Version 1.
    #[allow(
        missing_docs,
        clippy::all,
        clippy::pedantic,
        reason = "generated from commented protos"
    )]
    pub mod v1 {
        tonic::include_proto!("longshore.types.v1");
    }
}

/// Package `longshore.cluster.v1`: the session between watcher and scheduler.
pub mod cluster {
    /// Version 1.
    #[allow(
        missing_docs,
        clippy::all,
        clippy::pedantic,
        reason = "generated from commented protos"
    )]
    pub mod v1 {
        tonic::include_proto!("longshore.cluster.v1");
    }
}

/// Package `longshore.planning.v1`: plans and explanations for any client.
pub mod planning {
    /// Version 1.
    #[allow(
        missing_docs,
        clippy::all,
        clippy::pedantic,
        reason = "generated from commented protos"
    )]
    pub mod v1 {
        tonic::include_proto!("longshore.planning.v1");
    }
}

/// Package `longshore.capacity.v1`: plans applied and capacity watched, per region.
pub mod capacity {
    /// Version 1.
    #[allow(
        missing_docs,
        clippy::all,
        clippy::pedantic,
        reason = "generated from commented protos"
    )]
    pub mod v1 {
        tonic::include_proto!("longshore.capacity.v1");
    }
}

/// Descriptors of all packages, for gRPC reflection.
pub const DESCRIPTOR_SET: &[u8] =
    include_bytes!(concat!(env!("OUT_DIR"), "/longshore_descriptor.bin"));
