//! Facts of the cluster that nodes need, and what can be said of a class without asking anybody.
//!
//! Invariant: EKS is asked only for what the cluster did not say itself.

use longshore_proto::types::v1::{ClusterFacts, NodeClass};

use super::{Explainer, LOOKUP_FAILED, Problem};
use crate::cloud::{TAG_CLAIM, TAG_CLASS, TAG_CLUSTER_NAME, TAG_POOL};
use crate::ec2::Alias;
use longshore_ec2_data::AmiFamily;

/// Tags that belong to us.
const RESERVED_TAGS: [&str; 4] = [TAG_CLUSTER_NAME, TAG_POOL, TAG_CLAIM, TAG_CLASS];
const CLUSTER_TAG_PREFIX: &str = "kubernetes.io/cluster";

/// The facts with EKS's answers filled in, and what is still missing.
pub async fn complete(
    explainer: &Explainer<'_>,
    facts: &ClusterFacts,
) -> (ClusterFacts, Option<Problem>) {
    let mut facts = facts.clone();
    let mut failure = None;
    if !missing(&facts).is_empty() {
        match explainer.cloud.eks_cluster(&facts.name).await {
            Ok(eks) => {
                fill(&mut facts.endpoint, eks.endpoint);
                fill(&mut facts.ca_bundle, eks.ca_bundle);
                fill(&mut facts.service_cidr, eks.service_cidr);
                fill(&mut facts.kubernetes_version, eks.kubernetes_version);
            }
            Err(error) => failure = Some(explainer.explain(&error).await),
        }
    }
    fill(&mut facts.dns_ip, dns_of(&facts.service_cidr).unwrap_or_default());
    let missing = missing(&facts);
    if missing.is_empty() {
        return (facts, None);
    }
    let reason = if failure.is_some() { LOOKUP_FAILED } else { "ClusterFactsMissing" };
    let why = failure.unwrap_or_else(|| "EKS does not know them".to_owned());
    let message = format!(
        "cluster {}: {} unknown; set them for the watcher or let the actuator ask EKS ({why})",
        facts.name,
        missing.join(", ")
    );
    (facts, Some(Problem::new(reason, message)))
}

/// What is wrong with the class as it is written.
pub fn validate(class: &NodeClass) -> Option<Problem> {
    if let Some(tag) = class.tags.keys().find(|tag| reserved(tag)) {
        let message = format!(
            "{} spec.tags: {tag:?} is set by Longshore itself; remove it from the node class",
            class.name
        );
        return Some(Problem::new("TagValidationFailed", message));
    }
    if super::family(class).windows() {
        let message = format!(
            "{} spec.amiFamily: {} is not launched by Longshore; take AL2023, Bottlerocket, AL2 or \
             Custom",
            class.name, class.ami_family
        );
        return Some(Problem::new("UnsupportedFamily", message));
    }
    alias_conflict(class)
}

fn alias_conflict(class: &NodeClass) -> Option<Problem> {
    let term = class.ami_terms.iter().find(|term| !term.alias.is_empty())?;
    let alias = Alias::parse(&term.alias).ok()?;
    let family = AmiFamily::from_name(&class.ami_family)?;
    let agree = family == alias.family || family == AmiFamily::Custom;
    let message = format!(
        "{} spec.amiFamily {} and spec.amiSelectorTerms alias {:?} name different families; remove \
         amiFamily",
        class.name, class.ami_family, term.alias
    );
    (!agree).then(|| Problem::new("AliasFamilyMismatch", message))
}

fn reserved(tag: &str) -> bool {
    RESERVED_TAGS.contains(&tag) || tag.starts_with(CLUSTER_TAG_PREFIX)
}

fn missing(facts: &ClusterFacts) -> Vec<&'static str> {
    let needed = [
        ("endpoint", &facts.endpoint),
        ("certificate authority", &facts.ca_bundle),
        ("service range", &facts.service_cidr),
        ("Kubernetes version", &facts.kubernetes_version),
    ];
    needed.into_iter().filter(|(_, value)| value.is_empty()).map(|(name, _)| name).collect()
}

fn fill(slot: &mut String, value: String) {
    if slot.is_empty() {
        *slot = value;
    }
}

/// Address that EKS gives the cluster's DNS: the tenth of the service range.
fn dns_of(service_cidr: &str) -> Option<String> {
    let (base, _) = service_cidr.split_once('/')?;
    match base.parse::<std::net::IpAddr>().ok()? {
        std::net::IpAddr::V4(base) => {
            let address = u32::from(base).checked_add(10)?;
            Some(std::net::Ipv4Addr::from(address).to_string())
        }
        std::net::IpAddr::V6(base) => {
            let address = u128::from(base).checked_add(10)?;
            Some(std::net::Ipv6Addr::from(address).to_string())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use longshore_proto::types::v1::SelectorTerm;

    #[test]
    fn dns_is_the_tenth_address() {
        let table = [
            ("10.100.0.0/16", Some("10.100.0.10")),
            ("fd30:c00e::/108", Some("fd30:c00e::a")),
            ("", None),
        ];
        for (cidr, address) in table {
            assert_eq!(dns_of(cidr).as_deref(), address, "{cidr}");
        }
    }

    #[test]
    fn a_class_is_checked_as_it_is_written() {
        let alias = SelectorTerm { alias: "al2023@latest".to_owned(), ..SelectorTerm::default() };
        let class = NodeClass { ami_terms: vec![alias], ..NodeClass::default() };
        assert_eq!(validate(&class), None);
        let tags = [("kubernetes.io/cluster/dev".to_owned(), "owned".to_owned())].into();
        let tagged = NodeClass { tags, ..class.clone() };
        assert_eq!(validate(&tagged).unwrap().reason, "TagValidationFailed");
        let mixed = NodeClass { ami_family: "Bottlerocket".to_owned(), ..class };
        assert_eq!(validate(&mixed).unwrap().reason, "AliasFamilyMismatch");
    }
}
