//! DescribeSubnets, DescribeSecurityGroups, DescribeImages, DescribeCapacityReservations,
//! GetParameter, DescribeCluster.
//!
//! Invariant: results are in a stable order, so that equal answers give equal state.

use std::collections::BTreeMap;

use async_trait::async_trait;
use aws_sdk_ec2::types::{CapacityReservationType, Filter};
use longshore_proto::types::v1::SelectorTerm;

use super::Aws;
use super::errors::{RESERVATION_GONE, from_sdk};
use super::selector::{filter, tag_filters};
use crate::cloud::{
    CapacityReservation, Class, CloudError, EksCluster, Image, Network, SecurityGroup, Subnet,
};

#[async_trait]
impl Network for Aws {
    async fn subnets(&self, terms: &[SelectorTerm]) -> Result<Vec<Subnet>, CloudError> {
        let mut found = BTreeMap::new();
        for term in terms {
            let mut filters = tag_filters(term);
            filters.extend(by_id("subnet-id", term));
            let request = self.ec2.facts.describe_subnets().set_filters(Some(filters));
            let mut pages = request.into_paginator().send();
            while let Some(page) = pages.next().await {
                let page = page.map_err(|failure| from_sdk("ec2:DescribeSubnets", &failure))?;
                let subnets = page.subnets().iter().filter_map(subnet);
                found.extend(subnets.map(|subnet| (subnet.id.clone(), subnet)));
            }
        }
        Ok(found.into_values().collect())
    }

    async fn security_groups(
        &self,
        terms: &[SelectorTerm],
    ) -> Result<Vec<SecurityGroup>, CloudError> {
        let mut found = BTreeMap::new();
        for term in terms {
            let mut filters = tag_filters(term);
            filters.extend(by_id("group-id", term));
            filters.extend((!term.name.is_empty()).then(|| filter("group-name", &term.name)));
            let request = self.ec2.facts.describe_security_groups().set_filters(Some(filters));
            let mut pages = request.into_paginator().send();
            while let Some(page) = pages.next().await {
                let page =
                    page.map_err(|failure| from_sdk("ec2:DescribeSecurityGroups", &failure))?;
                for group in page.security_groups() {
                    let Some(id) = group.group_id() else { continue };
                    let name = group.group_name().unwrap_or_default().to_owned();
                    let tags = tag_map(group.tags());
                    found.insert(id.to_owned(), SecurityGroup { id: id.to_owned(), name, tags });
                }
            }
        }
        Ok(found.into_values().collect())
    }

    async fn images(&self, terms: &[SelectorTerm]) -> Result<Vec<Image>, CloudError> {
        let now = self.clock.now();
        let mut found = BTreeMap::new();
        for term in terms {
            let mut filters = tag_filters(term);
            filters.extend(by_id("image-id", term));
            filters.extend((!term.name.is_empty()).then(|| filter("name", &term.name)));
            filters.push(filter("state", "available"));
            let request = self.ec2.facts.describe_images().set_filters(Some(filters));
            let request = request.set_owners(owners(term)).include_deprecated(true);
            let answer =
                request.send().await.map_err(|failure| from_sdk("ec2:DescribeImages", &failure))?;
            let images = answer.images().iter().filter_map(|found| image(found, now));
            found.extend(images.map(|image| (image.id.clone(), image)));
        }
        let mut images: Vec<_> = found.into_values().collect();
        images.sort_by(|a, b| b.created.cmp(&a.created).then_with(|| a.id.cmp(&b.id)));
        Ok(images)
    }

    async fn capacity_reservations(
        &self,
        terms: &[SelectorTerm],
    ) -> Result<Vec<CapacityReservation>, CloudError> {
        let mut found = BTreeMap::new();
        for term in terms {
            let request = self
                .ec2
                .facts
                .describe_capacity_reservations()
                .set_filters(Some(of_reservations(term)))
                .set_capacity_reservation_ids((!term.id.is_empty()).then(|| vec![term.id.clone()]));
            let mut pages = request.into_paginator().send();
            while let Some(page) = pages.next().await {
                let page =
                    page.map_err(|failure| from_sdk("ec2:DescribeCapacityReservations", &failure));
                match page {
                    // One that is selected by id and has gone is none, and no error.
                    Err(absent) if absent.code == RESERVATION_GONE => break,
                    Err(failure) => return Err(failure),
                    Ok(page) => found.extend(
                        page.capacity_reservations()
                            .iter()
                            .filter_map(reservation)
                            .map(|found| (found.id.clone(), found)),
                    ),
                }
            }
        }
        Ok(found.into_values().collect())
    }

    async fn parameter(&self, name: &str) -> Result<Option<String>, CloudError> {
        match self.ssm.get_parameter().name(name).send().await {
            Ok(answer) => Ok(answer.parameter().and_then(|p| p.value()).map(str::to_owned)),
            Err(failure) => match from_sdk("ssm:GetParameter", &failure) {
                absent if absent.class == Class::NotFound => Ok(None),
                failure => Err(failure),
            },
        }
    }

    async fn eks_cluster(&self, name: &str) -> Result<EksCluster, CloudError> {
        let request = self.eks.describe_cluster().name(name);
        let answer =
            request.send().await.map_err(|failure| from_sdk("eks:DescribeCluster", &failure))?;
        let Some(cluster) = answer.cluster() else { return Ok(EksCluster::default()) };
        let text = |value: Option<&str>| value.unwrap_or_default().to_owned();
        let network = cluster.kubernetes_network_config();
        let authority = cluster.certificate_authority();
        Ok(EksCluster {
            endpoint: text(cluster.endpoint()),
            ca_bundle: text(authority.and_then(|authority| authority.data())),
            service_cidr: text(
                network.and_then(|n| n.service_ipv4_cidr().or(n.service_ipv6_cidr())),
            ),
            kubernetes_version: text(cluster.version()),
        })
    }
}

fn by_id(filter_name: &str, term: &SelectorTerm) -> Option<Filter> {
    (!term.id.is_empty()).then(|| filter(filter_name, &term.id))
}

fn of_reservations(term: &SelectorTerm) -> Vec<Filter> {
    let named =
        [("owner-id", &term.owner), ("instance-match-criteria", &term.instance_match_criteria)];
    let named = named.into_iter().filter(|(_, value)| !value.is_empty());
    let mut filters = tag_filters(term);
    filters.extend(named.map(|(name, value)| filter(name, value)));
    filters.push(filter("state", "active"));
    filters
}

/// One that can be launched into as on demand; a capacity block is bought otherwise, and what its
/// owner lends may be taken back at any time.
fn reservation(found: &aws_sdk_ec2::types::CapacityReservation) -> Option<CapacityReservation> {
    let block = found.reservation_type() == Some(&CapacityReservationType::CapacityBlock);
    if block || found.interruptible().unwrap_or_default() {
        return None;
    }
    let text = |value: Option<&str>| value.unwrap_or_default().to_owned();
    Some(CapacityReservation {
        id: found.capacity_reservation_id()?.to_owned(),
        instance_type: found.instance_type()?.to_owned(),
        zone: found.availability_zone()?.to_owned(),
        owner: text(found.owner_id()),
        match_criteria: text(found.instance_match_criteria().map(|criteria| criteria.as_str())),
        available: found.available_instance_count().unwrap_or_default().into(),
        end_ms: found.end_date().and_then(|end| end.to_millis().ok()),
    })
}

/// A name without an owner could be anybody's: only the account's own and Amazon's count.
fn owners(term: &SelectorTerm) -> Option<Vec<String>> {
    if !term.owner.is_empty() {
        return Some(vec![term.owner.clone()]);
    }
    (!term.name.is_empty()).then(|| vec!["self".to_owned(), "amazon".to_owned()])
}

/// Tags as a map.
pub(super) fn tag_map(tags: &[aws_sdk_ec2::types::Tag]) -> BTreeMap<String, String> {
    let pairs = tags.iter().filter_map(|tag| Some((tag.key()?, tag.value()?)));
    pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
}

fn subnet(found: &aws_sdk_ec2::types::Subnet) -> Option<Subnet> {
    Some(Subnet {
        id: found.subnet_id()?.to_owned(),
        zone: found.availability_zone()?.to_owned(),
        zone_id: found.availability_zone_id().unwrap_or_default().to_owned(),
        free_addresses: found.available_ip_address_count().unwrap_or_default(),
        tags: tag_map(found.tags()),
    })
}

fn image(found: &aws_sdk_ec2::types::Image, now: jiff::Timestamp) -> Option<Image> {
    let arch = match found.architecture()?.as_str() {
        "x86_64" => "amd64",
        "arm64" => "arm64",
        _ => return None,
    };
    let deprecated = found.deprecation_time().and_then(|t| t.parse::<jiff::Timestamp>().ok());
    Some(Image {
        id: found.image_id()?.to_owned(),
        name: found.name().unwrap_or_default().to_owned(),
        arch: arch.to_owned(),
        created: found.creation_date().unwrap_or_default().to_owned(),
        deprecated: deprecated.is_some_and(|time| time <= now),
        owners: [found.owner_id(), found.image_owner_alias()]
            .into_iter()
            .flatten()
            .map(str::to_owned)
            .collect(),
    })
}
