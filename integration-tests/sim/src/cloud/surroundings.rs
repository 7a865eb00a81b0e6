//! Networks, images, identities and profiles of a region.
//!
//! Invariant: what the region's configuration says, whatever happens to instances.

use std::collections::BTreeMap;

use async_trait::async_trait;
use longshore_actuator::cloud::{
    Access, Caller, CapacityReservation, Class, CloudError, EksCluster, Image, Network, NewProfile,
    Profile, SecurityGroup, Subnet,
};
use longshore_proto::types::v1::SelectorTerm;

use super::{CloudClient, error};
use crate::region::Happening;

/// Whether any term selects something with these tags and this id.
fn selects(terms: &[SelectorTerm], id: &str, tags: &BTreeMap<String, String>) -> bool {
    terms.iter().any(|term| {
        let by_id = term.id.is_empty() || term.id == id;
        let tagged = |(key, value): (&String, &String)| {
            tags.get(key).is_some_and(|found| value == "*" || found == value)
        };
        by_id && term.tags.iter().all(tagged)
    })
}

#[async_trait]
impl Network for CloudClient {
    async fn subnets(&self, terms: &[SelectorTerm]) -> Result<Vec<Subnet>, CloudError> {
        let terms = terms.to_vec();
        self.look_up("ec2:DescribeSubnets", move |model, _| {
            let zone_id = |name: &str| {
                let found = model.config.zones.iter().find(|zone| zone.name == name);
                found.map(|zone| zone.id.clone()).unwrap_or_default()
            };
            let found = model.config.subnets.iter();
            let found = found.filter(|subnet| selects(&terms, &subnet.id, &subnet.tags));
            let subnet = |subnet: &longshore_lab::region::SubnetConfig| Subnet {
                id: subnet.id.clone(),
                zone: subnet.zone.clone(),
                zone_id: zone_id(&subnet.zone),
                free_addresses: 4000,
                tags: subnet.tags.clone(),
            };
            Ok(found.map(subnet).collect())
        })
        .await
    }

    async fn security_groups(
        &self,
        terms: &[SelectorTerm],
    ) -> Result<Vec<SecurityGroup>, CloudError> {
        let terms = terms.to_vec();
        self.look_up("ec2:DescribeSecurityGroups", move |model, _| {
            let found = model.config.security_groups.iter();
            let found = found.filter(|group| selects(&terms, &group.id, &group.tags));
            let group = |group: &longshore_lab::region::SecurityGroupConfig| SecurityGroup {
                id: group.id.clone(),
                name: group.name.clone(),
                tags: group.tags.clone(),
            };
            Ok(found.map(group).collect())
        })
        .await
    }

    async fn images(&self, terms: &[SelectorTerm]) -> Result<Vec<Image>, CloudError> {
        let terms = terms.to_vec();
        self.look_up("ec2:DescribeImages", move |model, _| {
            let found = model.config.images.iter();
            let found = found.filter(|image| selects(&terms, &image.id, &image.tags));
            let arch = |name: &str| if name == "x86_64" { "amd64" } else { "arm64" };
            let image = |image: &longshore_lab::region::ImageConfig| Image {
                id: image.id.clone(),
                name: image.name.clone(),
                arch: arch(&image.architecture).to_owned(),
                created: image.creation_date.clone(),
                deprecated: false,
                owners: vec![image.owner_id.clone()],
            };
            Ok(found.map(image).collect())
        })
        .await
    }

    async fn capacity_reservations(
        &self,
        _: &[SelectorTerm],
    ) -> Result<Vec<CapacityReservation>, CloudError> {
        Ok(Vec::new())
    }

    async fn parameter(&self, name: &str) -> Result<Option<String>, CloudError> {
        let name = name.to_owned();
        self.look_up("ssm:GetParameter", move |model, _| {
            model.tell(&Happening::Read(name.clone()));
            Ok(model.config.parameters.get(&name).cloned())
        })
        .await
    }

    async fn eks_cluster(&self, _: &str) -> Result<EksCluster, CloudError> {
        self.look_up("eks:DescribeCluster", |model, _| {
            let found = model.config.clusters.first();
            Ok(found.map_or_else(EksCluster::default, |cluster| EksCluster {
                endpoint: cluster.endpoint.clone(),
                ca_bundle: cluster.certificate_authority.clone(),
                service_cidr: cluster.service_cidr.clone(),
                kubernetes_version: cluster.version.clone(),
            }))
        })
        .await
    }
}

#[async_trait]
impl Access for CloudClient {
    async fn caller(&self) -> Result<Caller, CloudError> {
        self.call("sts:GetCallerIdentity", |model, _| {
            let account_id = model.config.account_id.clone();
            let arn = format!("arn:aws:sts::{account_id}:assumed-role/longshore/sim");
            Ok(Caller { account_id, arn })
        })
        .await
    }

    async fn decode_denial(&self, _: &str) -> Result<String, CloudError> {
        Err(error("sts:DecodeAuthorizationMessage", Class::Rejected, "InvalidAuthorizationMessage"))
    }

    async fn profile(&self, name: &str) -> Result<Option<Profile>, CloudError> {
        let name = name.to_owned();
        self.look_up("iam:GetInstanceProfile", move |model, _| {
            let role = longshore_lab::region::NODE_ROLE.to_owned();
            Ok(model.has_profile(&name).then_some(Profile { name, role: Some(role) }))
        })
        .await
    }

    async fn create_profile(&self, profile: &NewProfile) -> Result<(), CloudError> {
        let name = profile.name.clone();
        self.call("iam:CreateInstanceProfile", move |model, now_ms| {
            model.make_profile(&name, now_ms);
            Ok(())
        })
        .await
    }

    async fn profiles_of_role(&self, _: &str) -> Result<Vec<String>, CloudError> {
        self.call("iam:ListInstanceProfilesForRole", |_, _| Ok(Vec::new())).await
    }
}
