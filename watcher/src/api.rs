//! The Kubernetes API surface: the objects users write and the ones Longshore keeps.
//!
//! Invariant: these are the groups, kinds, fields and rules of Karpenter v1.14 (and of its first
//! API, which many clusters still hold), so that existing manifests are accepted unchanged. Every
//! type decodes leniently: an unknown field is never an error here, [`advice`] reports it instead.
//!
//! The schemas under `deploy/crds` are generated from these types by [`crd`].

pub mod advice;
pub mod aws_node_template;
pub mod capacity_buffer;
pub mod crd;
pub mod ec2_node_class;
pub mod ec2_node_class_status;
pub mod hash;
pub mod instance_options;
pub mod keys;
pub mod kubelet;
pub mod node_claim;
pub mod node_overlay;
pub mod node_pool;
pub mod primitive;
pub mod provisioner;
pub mod reference;
pub mod requirement;
mod schema;
pub mod selector;
pub mod taint;

pub use advice::{UnknownField, Warning, unknown_fields, unread_fields, warnings};
pub use aws_node_template::{AWSNodeTemplate, AWSNodeTemplateSpec};
pub use capacity_buffer::{CapacityBuffer, CapacityBufferSpec};
pub use crd::Kind;
pub use ec2_node_class::{EC2NodeClass, EC2NodeClassSpec};
pub use ec2_node_class_status::EC2NodeClassStatus;
pub use node_claim::{NodeClaim, NodeClaimSpec, NodeClaimStatus};
pub use node_overlay::{NodeOverlay, NodeOverlaySpec};
pub use node_pool::{NodePool, NodePoolSpec, NodePoolStatus};
pub use primitive::{DurationOrNever, PlainDuration, Quantity, ResourceList};
pub use provisioner::{Provisioner, ProvisionerSpec};
pub use reference::NodeClassReference;
pub use requirement::{Operator, Requirement};
pub use taint::{Taint, TaintEffect};
