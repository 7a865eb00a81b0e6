//! What a node class amounts to in this region: subnets, groups, images, profile, and why not.
//!
//! Invariant: resolving never fails as a whole; each part is there or is a condition that names the
//! field, shows what was found instead and says the way out.

mod conditions;
mod denied;
mod facts;
mod images;
mod network;
mod profile;
mod survey;

use std::collections::BTreeMap;
use std::sync::Arc;

use longshore_ec2_data::{AmiFamily, InstanceType};
use longshore_proto::cluster::v1::{
    ResolvedGroup, ResolvedImage, ResolvedReservation, ResolvedSubnet, SetNodeClassStatus,
};
use longshore_proto::time::timestamp;
use longshore_proto::types::v1::{ClusterFacts, NodeClass};

use crate::cloud::{CapacityReservation, Cloud, SecurityGroup, Subnet};
use crate::ec2::Alias;

use conditions::RESERVATIONS_READY;
pub use conditions::{Conditions, Problem, QUEUE_READY};
pub use denied::{Explainer, explain_denial};
pub use images::ClassImage;
pub use profile::explain_profile;
pub use survey::{LOOKUP_FAILED, Survey, survey};

/// A node class, resolved.
#[derive(Clone, Debug, PartialEq)]
pub struct Resolved {
    /// Cluster.
    pub cluster_id: String,
    /// Facts, completed by what EKS says.
    pub cluster: ClusterFacts,
    /// The specification.
    pub class: NodeClass,
    /// Operating system family.
    pub family: AmiFamily,
    /// Subnets, most free addresses first.
    pub subnets: Vec<Subnet>,
    /// Security groups, by id.
    pub security_groups: Vec<SecurityGroup>,
    /// Images, preferred first.
    pub images: Vec<ClassImage>,
    /// Capacity reservations, by id.
    pub reservations: Vec<CapacityReservation>,
    /// Instance profile.
    pub instance_profile: String,
    /// What is and what is not in order.
    pub conditions: Conditions,
}

/// Where and for whom node classes are resolved.
#[derive(Clone, Debug)]
pub struct Place {
    /// Region.
    pub region: String,
    /// ARN of the caller; empty when unknown.
    pub caller_arn: String,
}

impl Resolved {
    /// The image that a type boots; none when the class has no image for it.
    #[must_use]
    pub fn image_for(&self, instance_type: &InstanceType) -> Option<&ClassImage> {
        let runs = self.family != AmiFamily::Al2023 || instance_type.family() != "a1";
        self.images.iter().find(|image| runs && image.boots(instance_type))
    }

    /// Zone names to zone ids, of the zones with a subnet.
    #[must_use]
    pub fn zones(&self) -> BTreeMap<&str, &str> {
        self.subnets.iter().map(|s| (s.zone.as_str(), s.zone_id.as_str())).collect()
    }

    /// Keeps what an earlier resolution of the same class found wherever AWS has not answered this
    /// time: that says nothing about the class. Returns the conditions kept so.
    pub fn keep_found(&mut self, before: &Self) -> Vec<&'static str> {
        let version = &self.cluster.kubernetes_version;
        let upgraded = !version.is_empty() && *version != before.cluster.kubernetes_version;
        if self.class != before.class || self.cluster.name != before.cluster.name || upgraded {
            return Vec::new();
        }
        let unanswered = self.conditions.unanswered();
        let kept: Vec<_> = unanswered.filter(|kind| before.conditions.holds(kind)).collect();
        for kind in &kept {
            match *kind {
                "ValidationSucceeded" => self.cluster = before.cluster.clone(),
                "SubnetsReady" => self.subnets.clone_from(&before.subnets),
                "SecurityGroupsReady" => self.security_groups.clone_from(&before.security_groups),
                RESERVATIONS_READY => self.reservations.clone_from(&before.reservations),
                "AMIsReady" => self.images.clone_from(&before.images),
                "InstanceProfileReady" => {
                    self.instance_profile.clone_from(&before.instance_profile);
                }
                _ => continue,
            }
            self.conditions.set(kind, None);
        }
        kept
    }

    /// The status that the object gets.
    #[must_use]
    pub fn status(&self) -> SetNodeClassStatus {
        let mut images: Vec<_> = self.images.iter().map(resolved_image).collect();
        images.dedup();
        SetNodeClassStatus {
            node_class: self.class.name.clone(),
            conditions: self.conditions.to_wire(),
            subnets: self.subnets.iter().map(resolved_subnet).collect(),
            security_groups: self.security_groups.iter().map(resolved_group).collect(),
            images,
            instance_profile: self.instance_profile.clone(),
            capacity_reservations: self.reservations.iter().map(resolved_reservation).collect(),
        }
    }

    /// One instance more is in a reservation.
    pub fn draw(class: &mut Arc<Self>, reservation_id: &str) {
        let position = class.reservations.iter().position(|found| found.id == reservation_id);
        if let Some(at) = position {
            Arc::make_mut(class).reservations[at].available -= 1;
        }
    }
}

/// Resolves a node class.
pub async fn resolve(
    cloud: &dyn Cloud,
    place: &Place,
    cluster: (&str, &ClusterFacts),
    class: &NodeClass,
) -> Resolved {
    let explainer = Explainer { cloud, place, class };
    let mut conditions = Conditions::default();
    let (facts, problem) = facts::complete(&explainer, cluster.1).await;
    conditions.set("ValidationSucceeded", problem.or_else(|| facts::validate(class)));
    let subnets = network::subnets(&explainer).await;
    let groups = network::security_groups(&explainer).await;
    let images = images::find(&explainer, &facts).await;
    let profile = profile::find(&explainer, &facts).await;
    // Who selects none has nobody asked for them, and needs no right to ask.
    let reservations = match class.capacity_reservation_terms.is_empty() {
        true => Vec::new(),
        false => conditions.keep(RESERVATIONS_READY, network::reservations(&explainer).await),
    };
    Resolved {
        cluster_id: cluster.0.to_owned(),
        family: family(class),
        subnets: conditions.keep("SubnetsReady", subnets),
        security_groups: conditions.keep("SecurityGroupsReady", groups),
        images: conditions.keep("AMIsReady", images),
        reservations,
        instance_profile: conditions.keep("InstanceProfileReady", profile),
        cluster: facts,
        class: class.clone(),
        conditions,
    }
}

/// Family of a class: the field, else the alias's; the user's own image otherwise.
fn family(class: &NodeClass) -> AmiFamily {
    let named = AmiFamily::from_name(&class.ami_family);
    let alias = class.ami_terms.iter().find(|term| !term.alias.is_empty());
    let of_alias = alias.and_then(|term| Alias::parse(&term.alias).ok()).map(|alias| alias.family);
    named.or(of_alias).unwrap_or(if class.ami_terms.is_empty() {
        AmiFamily::Al2
    } else {
        AmiFamily::Custom
    })
}

/// Kubernetes' name of the object: `EC2NodeClass/default` is `default`.
#[must_use]
pub fn short_name(class: &NodeClass) -> &str {
    class.name.split_once('/').map_or(&class.name, |(_, name)| name)
}

fn resolved_subnet(subnet: &Subnet) -> ResolvedSubnet {
    ResolvedSubnet {
        id: subnet.id.clone(),
        zone: subnet.zone.clone(),
        zone_id: subnet.zone_id.clone(),
        free_addresses: subnet.free_addresses,
    }
}

fn resolved_group(group: &SecurityGroup) -> ResolvedGroup {
    ResolvedGroup { id: group.id.clone(), name: group.name.clone() }
}

fn resolved_reservation(found: &CapacityReservation) -> ResolvedReservation {
    ResolvedReservation {
        id: found.id.clone(),
        instance_type: found.instance_type.clone(),
        zone: found.zone.clone(),
        owner: found.owner.clone(),
        instance_match_criteria: found.match_criteria.clone(),
        end_time: found.end_ms.map(timestamp),
    }
}

fn resolved_image(image: &ClassImage) -> ResolvedImage {
    ResolvedImage { id: image.id.clone(), name: image.name.clone(), arch: image.arch.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::resolved;

    fn unanswered(kind: &'static str) -> Resolved {
        let mut fresh = Resolved { subnets: Vec::new(), images: Vec::new(), ..resolved() };
        fresh.conditions.set("SubnetsReady", None);
        fresh.conditions.set("AMIsReady", None);
        fresh.conditions.set(kind, Some(Problem::new(LOOKUP_FAILED, "no answer")));
        fresh
    }

    #[test]
    fn a_look_up_that_fails_keeps_what_was_found_before() {
        let mut before = resolved();
        before.conditions.set("SubnetsReady", None);
        before.conditions.set("AMIsReady", None);
        let mut fresh = unanswered("SubnetsReady");
        assert_eq!(fresh.keep_found(&before), ["SubnetsReady"]);
        assert_eq!((&fresh.subnets, fresh.images.len()), (&before.subnets, 0));
        assert_eq!(fresh.conditions.obstacle(), None);
        let mut changed = unanswered("AMIsReady");
        changed.class.hash = "other".to_owned();
        assert!(changed.keep_found(&before).is_empty(), "another class");
        let mut upgraded = unanswered("AMIsReady");
        upgraded.cluster.kubernetes_version = "1.99".to_owned();
        assert!(upgraded.keep_found(&before).is_empty(), "another version's images");
        let mut refused = unanswered("AMIsReady");
        refused.conditions.set("AMIsReady", Some(Problem::new("AMINotFound", "none")));
        assert!(refused.keep_found(&before).is_empty(), "an answer is an answer");
    }
}
