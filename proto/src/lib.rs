//! Longshore's wire contract: generated messages and services, refusal reasons and limits.
//!
//! Invariant: no domain logic. What an element means is written once, in the `.proto` files.

pub mod codec;
pub mod content;
pub mod epoch;
pub mod launch_id;
pub mod limits;
pub mod provider_id;
pub mod reason;
pub mod reference;
pub mod time;

/// Mounts the generated code of one package.
macro_rules! package {
    ($(#[$doc:meta])* $name:ident, $path:literal) => {
        $(#[$doc])*
        pub mod $name {
            /// Version 1 of the package; its elements are described in the `.proto` files.
            #[allow(
                missing_docs,
                clippy::all,
                clippy::pedantic,
                clippy::restriction,
                reason = "generated from commented protos"
            )]
            pub mod v1 {
                tonic::include_proto!($path);
            }
        }
    };
}

package!(
    /// Objects of a view, the catalogue and the parts of a plan.
    types,
    "longshore.types.v1"
);
package!(
    /// The session between watcher and scheduler.
    cluster,
    "longshore.cluster.v1"
);
package!(
    /// Plans and explanations for any client.
    planning,
    "longshore.planning.v1"
);
package!(
    /// Plans applied and capacity watched, per region.
    capacity,
    "longshore.capacity.v1"
);

/// Descriptors of all packages, for gRPC reflection.
pub const DESCRIPTOR_SET: &[u8] =
    include_bytes!(concat!(env!("OUT_DIR"), "/longshore_descriptor.bin"));
