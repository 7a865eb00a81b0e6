//! Status of pools and node classes.
//!
//! Invariant: a status that already says so is not written again; where the first API has no room
//! for a part of it, that part is left out.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition as ApiCondition, Time};
use kube::Api;
use longshore_proto::cluster::v1::{Condition, SetNodeClassStatus, SetNodePoolStatus};

use super::launch::list;
use super::{DirectiveError, Directives, Outcome};
use crate::api::ec2_node_class_status::{
    Ami, CapacityReservation, ReservationState, ReservationType, ResolvedRequirement,
    SecurityGroup, Subnet,
};
use crate::api::selector::InstanceMatchCriteria;
use crate::api::{AWSNodeTemplate, EC2NodeClass, NodePool, Provisioner};
use crate::names;
use crate::patch::{Part, Wanted, edit, set_condition, time};

impl Directives {
    pub(super) async fn set_node_pool_status(&self, set: &SetNodePoolStatus) -> Outcome {
        let name = set.pool.as_str();
        let at = self.now();
        let (pool, provisioner) = self.store.read(|index| {
            let pools = index.pools();
            (pools.pool(name).cloned(), pools.provisioner(name).cloned())
        });
        if let Some(pool) = pool {
            let api: Api<NodePool> = Api::all(self.client.clone());
            let known = Some(pool.as_ref().clone());
            edit(&api, name, Part::Status, known, |pool| pool_status(pool, set, &at)).await?;
        } else if let Some(provisioner) = provisioner {
            let api: Api<Provisioner> = Api::all(self.client.clone());
            let known = Some(provisioner.as_ref().clone());
            edit(&api, name, Part::Status, known, |p| provisioner_status(p, set, &at)).await?;
        } else {
            return Err(unknown("pool", name));
        }
        Ok(())
    }

    pub(super) async fn set_node_class_status(&self, set: &SetNodeClassStatus) -> Outcome {
        let Some((kind, name)) = set.node_class.split_once('/') else {
            return Err(unknown("node class", &set.node_class));
        };
        match kind {
            "EC2NodeClass" => self.set_ec2_node_class(name, set).await,
            "AWSNodeTemplate" => self.set_node_template(name, set).await,
            "Provisioner" => self.set_provisioner_class(name, set).await,
            _ => Err(unknown("node class", &set.node_class)),
        }
    }

    async fn set_ec2_node_class(&self, name: &str, set: &SetNodeClassStatus) -> Outcome {
        let known = self.store.read(|index| index.pools().class(name).cloned());
        let known = known.ok_or_else(|| unknown("node class", name))?;
        let api: Api<EC2NodeClass> = Api::all(self.client.clone());
        let at = self.now();
        let write = |class: &mut EC2NodeClass| {
            let generation = class.metadata.generation;
            let status = class.status.get_or_insert_default();
            status.subnets = subnets(set);
            status.security_groups = security_groups(set);
            status.amis = amis(set);
            status.capacity_reservations = capacity_reservations(set);
            status.instance_profile =
                Some(set.instance_profile.clone()).filter(|profile| !profile.is_empty());
            conditions(&mut status.conditions, &set.conditions, generation, &at);
        };
        edit(&api, name, Part::Status, Some(known.as_ref().clone()), write).await?;
        Ok(())
    }

    async fn set_node_template(&self, name: &str, set: &SetNodeClassStatus) -> Outcome {
        let known = self.store.read(|index| index.pools().template(name).cloned());
        let known = known.ok_or_else(|| unknown("node class", name))?;
        let api: Api<AWSNodeTemplate> = Api::all(self.client.clone());
        let write = |template: &mut AWSNodeTemplate| {
            let status = template.status.get_or_insert_default();
            status.subnets = subnets(set);
            status.security_groups = security_groups(set);
            status.amis = amis(set);
        };
        edit(&api, name, Part::Status, Some(known.as_ref().clone()), write).await?;
        Ok(())
    }

    async fn set_provisioner_class(&self, name: &str, set: &SetNodeClassStatus) -> Outcome {
        let known = self.store.read(|index| index.pools().provisioner(name).cloned());
        let known = known.ok_or_else(|| unknown("node class", name))?;
        let api: Api<Provisioner> = Api::all(self.client.clone());
        let at = self.now();
        let write = |provisioner: &mut Provisioner| {
            let generation = provisioner.metadata.generation;
            let status = provisioner.status.get_or_insert_default();
            // The pool's own Ready is another matter than its node class's.
            let of_class = set.conditions.iter().filter(|c| c.r#type != "Ready").cloned();
            conditions(&mut status.conditions, &of_class.collect::<Vec<_>>(), generation, &at);
        };
        edit(&api, name, Part::Status, Some(known.as_ref().clone()), write).await?;
        Ok(())
    }
}

fn unknown(what: &str, name: &str) -> DirectiveError {
    DirectiveError::refused("NOT_FOUND", format!("there is no {what} {name}"))
}

fn pool_status(pool: &mut NodePool, set: &SetNodePoolStatus, at: &Time) {
    let generation = pool.metadata.generation;
    let status = pool.status.get_or_insert_default();
    status.resources = list(set.resources.as_ref());
    status.nodes = set.nodes.into();
    conditions(&mut status.conditions, &set.conditions, generation, at);
}

fn provisioner_status(provisioner: &mut Provisioner, set: &SetNodePoolStatus, at: &Time) {
    let generation = provisioner.metadata.generation;
    let status = provisioner.status.get_or_insert_default();
    status.resources = list(set.resources.as_ref());
    conditions(&mut status.conditions, &set.conditions, generation, at);
}

/// Sets conditions as a directive has them.
pub(super) fn conditions(
    list: &mut Vec<ApiCondition>,
    wanted: &[Condition],
    generation: Option<i64>,
    at: &Time,
) {
    for condition in wanted {
        let wanted = Wanted {
            kind: &condition.r#type,
            status: condition.status,
            reason: &condition.reason,
            message: &condition.message,
        };
        set_condition(list, &wanted, generation, at);
    }
}

fn subnets(set: &SetNodeClassStatus) -> Vec<Subnet> {
    let subnet = |s: &longshore_proto::cluster::v1::ResolvedSubnet| Subnet {
        id: s.id.clone(),
        zone: s.zone.clone(),
        zone_id: Some(s.zone_id.clone()).filter(|id| !id.is_empty()),
    };
    set.subnets.iter().map(subnet).collect()
}

fn security_groups(set: &SetNodeClassStatus) -> Vec<SecurityGroup> {
    let group = |g: &longshore_proto::cluster::v1::ResolvedGroup| SecurityGroup {
        id: g.id.clone(),
        name: Some(g.name.clone()).filter(|name| !name.is_empty()),
    };
    set.security_groups.iter().map(group).collect()
}

/// On-demand capacity reservations that are active: of others the actuator says nothing. One
/// whose criteria are none that this version knows is left out, as the API server would refuse it.
fn capacity_reservations(set: &SetNodeClassStatus) -> Vec<CapacityReservation> {
    let reservation = |r: &longshore_proto::cluster::v1::ResolvedReservation| {
        let criteria = InstanceMatchCriteria::from_text(&r.instance_match_criteria)?;
        Some(CapacityReservation {
            id: r.id.clone(),
            availability_zone: r.zone.clone(),
            instance_type: r.instance_type.clone(),
            instance_match_criteria: criteria,
            owner_id: r.owner.clone(),
            reservation_type: ReservationType::Default,
            interruptible: None,
            state: ReservationState::Active,
            end_time: r.end_time.as_ref().map(|end| time(end.seconds.saturating_mul(1_000))),
        })
    };
    set.capacity_reservations.iter().filter_map(reservation).collect()
}

fn amis(set: &SetNodeClassStatus) -> Vec<Ami> {
    let ami = |image: &longshore_proto::cluster::v1::ResolvedImage| Ami {
        id: image.id.clone(),
        name: Some(image.name.clone()).filter(|name| !name.is_empty()),
        deprecated: None,
        requirements: vec![ResolvedRequirement {
            key: names::ARCH.to_owned(),
            operator: "In".to_owned(),
            values: vec![image.arch.clone()],
        }],
    };
    set.images.iter().map(ami).collect()
}
