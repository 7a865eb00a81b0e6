//! Subnets, security groups and capacity reservations of a class.
//!
//! Invariant: an empty result says which tags were asked for and which values there are.

use std::collections::{BTreeMap, BTreeSet};

use longshore_proto::types::v1::SelectorTerm;

use super::{Explainer, LOOKUP_FAILED, Problem};
use crate::cloud::{CapacityReservation, CloudError, SecurityGroup, Subnet};

/// Values shown when nothing matched.
const SHOWN_VALUES_MAX: usize = 5;

/// What kind of object a selector is about, in words.
struct Kind {
    field: &'static str,
    noun: &'static str,
    reason: &'static str,
    example_id: &'static str,
}

const SUBNETS: Kind = Kind {
    field: "spec.subnetSelectorTerms",
    noun: "subnet",
    reason: "SubnetsNotFound",
    example_id: "subnet-…",
};
const GROUPS: Kind = Kind {
    field: "spec.securityGroupSelectorTerms",
    noun: "security group",
    reason: "SecurityGroupsNotFound",
    example_id: "sg-…",
};

const RESERVATION_FIELD: &str = "spec.capacityReservationSelectorTerms";

/// Subnets, most free addresses first.
pub async fn subnets(explainer: &Explainer<'_>) -> Result<Vec<Subnet>, Problem> {
    let terms = &explainer.class.subnet_terms;
    let found = answer(explainer, SUBNETS.field, explainer.cloud.subnets(terms).await).await?;
    if found.is_empty() {
        let everything = explainer.cloud.subnets(&[SelectorTerm::default()]).await;
        let tags = everything.unwrap_or_default().into_iter().map(|subnet| subnet.tags);
        return Err(none(explainer, &SUBNETS, terms, tags.collect()));
    }
    let mut found = found;
    found.sort_by(|a, b| b.free_addresses.cmp(&a.free_addresses).then_with(|| a.id.cmp(&b.id)));
    if found.iter().all(|subnet| subnet.free_addresses == 0) {
        let ids: Vec<_> = found.iter().map(|subnet| subnet.id.as_str()).collect();
        let message = format!(
            "{} {}: no free address in {}; select larger subnets or free addresses",
            explainer.class.name,
            SUBNETS.field,
            ids.join(", ")
        );
        return Err(Problem::new("SubnetsFull", message));
    }
    Ok(found)
}

/// Security groups, by id.
pub async fn security_groups(explainer: &Explainer<'_>) -> Result<Vec<SecurityGroup>, Problem> {
    let terms = &explainer.class.security_group_terms;
    if terms.is_empty() && !explainer.class.launch_template.is_empty() {
        return Ok(Vec::new());
    }
    let found =
        answer(explainer, GROUPS.field, explainer.cloud.security_groups(terms).await).await?;
    if found.is_empty() {
        let everything = explainer.cloud.security_groups(&[SelectorTerm::default()]).await;
        let tags = everything.unwrap_or_default().into_iter().map(|group| group.tags);
        return Err(none(explainer, &GROUPS, terms, tags.collect()));
    }
    Ok(found)
}

/// Capacity reservations, by id. That none are there is no fault of the class: they are bought and
/// cancelled, and nodes are launched without.
pub async fn reservations(explainer: &Explainer<'_>) -> Result<Vec<CapacityReservation>, Problem> {
    let terms = &explainer.class.capacity_reservation_terms;
    let found = explainer.cloud.capacity_reservations(terms).await;
    answer(explainer, RESERVATION_FIELD, found).await
}

async fn answer<T>(
    explainer: &Explainer<'_>,
    field: &str,
    found: Result<T, CloudError>,
) -> Result<T, Problem> {
    match found {
        Ok(found) => Ok(found),
        Err(error) => {
            let why = explainer.explain(&error).await;
            let message = format!("{} {field}: {why}", explainer.class.name);
            Err(Problem::new(LOOKUP_FAILED, message))
        }
    }
}

fn none(
    explainer: &Explainer<'_>,
    kind: &Kind,
    terms: &[SelectorTerm],
    existing: Vec<BTreeMap<String, String>>,
) -> Problem {
    let name = &explainer.class.name;
    let region = &explainer.place.region;
    if terms.is_empty() {
        let message = format!("{name} {} is empty; say which {}s to use", kind.field, kind.noun);
        return Problem::new(kind.reason, message);
    }
    let asked = terms.iter().map(shown).collect::<Vec<_>>().join(" or ");
    let keys: BTreeSet<_> = terms.iter().flat_map(|term| term.tags.keys()).collect();
    let present = keys.iter().map(|key| values_of(key, &existing)).collect::<Vec<_>>().join("; ");
    let remedy = keys.iter().next().map_or_else(String::new, |key| {
        let value = terms.iter().find_map(|term| term.tags.get(*key)).map_or("", String::as_str);
        let id = kind.example_id;
        format!(
            "; tag them with: aws ec2 create-tags --region {region} --resources {id} --tags \
             Key={key},Value={value}"
        )
    });
    let total = existing.len();
    let message = format!(
        "{name} {}: no {} in {region} has {asked}. Of {total} there: {}{remedy}",
        kind.field,
        kind.noun,
        if present.is_empty() { "none of that id or name".to_owned() } else { present },
    );
    Problem::new(kind.reason, message)
}

fn shown(term: &SelectorTerm) -> String {
    let mut parts: Vec<_> = term.tags.iter().map(|(key, value)| format!("{key}={value}")).collect();
    parts.sort();
    parts.extend((!term.id.is_empty()).then(|| format!("id {}", term.id)));
    parts.extend((!term.name.is_empty()).then(|| format!("name {}", term.name)));
    parts.join(" and ")
}

fn values_of(key: &str, existing: &[BTreeMap<String, String>]) -> String {
    let values: BTreeSet<_> = existing.iter().filter_map(|tags| tags.get(key)).collect();
    if values.is_empty() {
        return format!("no tag {key}");
    }
    let shown: Vec<_> = values.iter().take(SHOWN_VALUES_MAX).map(|v| v.as_str()).collect();
    format!("{key} is {}", shown.join(", "))
}
