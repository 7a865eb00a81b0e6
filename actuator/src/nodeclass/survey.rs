//! What a node class points at, for whoever only wants to look.
//!
//! Invariant: read only: unlike resolving, it never makes an instance profile.

use longshore_proto::types::v1::{ClusterFacts, NodeClass};

use super::{Explainer, Place, Problem, network, profile};
use crate::cloud::{Class, Cloud, SecurityGroup, Subnet};

/// Reason of a problem that is AWS's answer: what was asked for may well be in order.
pub const LOOKUP_FAILED: &str = "LookupFailed";

/// What a node class points at, each part there or with what is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Survey {
    /// Subnets, most free addresses first.
    pub subnets: Result<Vec<Subnet>, Problem>,
    /// Security groups, by id.
    pub security_groups: Result<Vec<SecurityGroup>, Problem>,
    /// The role or instance profile that nodes run under.
    pub identity: Result<(), Problem>,
}

/// Looks at what a node class points at.
pub async fn survey(
    cloud: &dyn Cloud,
    place: &Place,
    facts: &ClusterFacts,
    class: &NodeClass,
) -> Survey {
    let explainer = Explainer { cloud, place, class };
    Survey {
        subnets: network::subnets(&explainer).await,
        security_groups: network::security_groups(&explainer).await,
        identity: identity(&explainer, facts).await,
    }
}

async fn identity(explainer: &Explainer<'_>, facts: &ClusterFacts) -> Result<(), Problem> {
    let class = explainer.class;
    if class.role.is_empty() || !class.instance_profile.is_empty() {
        return profile::find(explainer, facts).await.map(drop);
    }
    let role = class.role.rsplit('/').next().unwrap_or(&class.role);
    match explainer.cloud.profiles_of_role(role).await {
        Err(error) if error.class == Class::NotFound => {
            let message = format!(
                "{} spec.role: there is no role {role:?}; name the role of the nodes, or make it \
                 as deploy/iam/README.md says",
                class.name
            );
            Err(Problem::new("InstanceProfileFailed", message))
        }
        // Not being allowed to look says nothing about the role.
        Ok(_) | Err(_) => Ok(()),
    }
}
