//! Subnets and security groups of node classes, as AWS has them.
//!
//! Invariant: what selects nothing is told in the actuator's own words.

use std::collections::BTreeSet;

use longshore_actuator::cloud::Subnet;
use longshore_actuator::nodeclass::Problem;
use longshore_proto::types::v1::{NodePool, Operator};
use longshore_watcher::api::keys::labels::ZONE;

use super::account::Account;
use super::facts::Facts;
use super::pools;
use super::{Finding, Severity};

/// Fewer free addresses than this last for a node or two: pods take addresses as well.
const FEW_ADDRESSES: i32 = 32;
/// Tags by which load balancers find subnets.
const BALANCER_ROLES: [&str; 2] = ["elb", "internal-elb"];
const BALANCER_PREFIX: &str = "kubernetes.io/role/";

/// Node classes whose subnets, security groups, role or profile are not there.
pub fn resolved(facts: &Facts) -> Vec<Finding> {
    let Some(account) = facts.account() else { return Vec::new() };
    account.problems().map(|(class, problem)| of_problem(account, class, problem)).collect()
}

/// Messages of the actuator say what is wrong, and after a semicolon the way out.
fn of_problem(account: &Account, class: &str, problem: &Problem) -> Finding {
    let text = problem.message.strip_prefix(class).unwrap_or(&problem.message).trim_start();
    let (message, remedy) = text.rsplit_once("; ").unwrap_or((text, "see the message"));
    let remedy = remedy.strip_prefix("tag them with: ").unwrap_or(remedy);
    Finding {
        severity: Severity::Problem,
        object: class.to_owned(),
        message: message.to_owned(),
        evidence: format!("{}, asked as {}", problem.reason, account.caller_arn),
        remedy: remedy.to_owned(),
    }
}

/// Subnets that are nearly full, or that load balancers do not find.
pub fn subnets(facts: &Facts) -> Vec<Finding> {
    let Some(account) = facts.account() else { return Vec::new() };
    let surveys = account.classes.iter().filter_map(|(_, survey)| survey.subnets.as_ref().ok());
    let mut all: Vec<&Subnet> = surveys.flatten().collect();
    all.sort_by(|a, b| a.id.cmp(&b.id));
    all.dedup_by(|a, b| a.id == b.id);
    let misspelt = all.iter().flat_map(|subnet| misspelt(subnet, &account.region));
    all.iter().filter_map(|subnet| nearly_full(subnet)).chain(misspelt).collect()
}

fn nearly_full(subnet: &Subnet) -> Option<Finding> {
    (subnet.free_addresses < FEW_ADDRESSES).then(|| Finding {
        severity: if subnet.free_addresses > 0 { Severity::Advice } else { Severity::Problem },
        object: format!("Subnet/{}", subnet.id),
        message: format!("is nearly full: nodes and pods in {} need addresses", subnet.zone),
        evidence: format!("{} free addresses", subnet.free_addresses),
        remedy: "add a subnet of that zone to the node class, or free addresses".to_owned(),
    })
}

fn misspelt(subnet: &Subnet, region: &str) -> Option<Finding> {
    let mut roles = subnet.tags.keys().filter_map(|key| key.strip_prefix(BALANCER_PREFIX));
    let role = roles.find(|role| !BALANCER_ROLES.contains(role))?;
    let near = |known: &&str| strsim::levenshtein(known, role);
    let meant = BALANCER_ROLES.into_iter().min_by_key(near).unwrap_or_default();
    let id = &subnet.id;
    Some(Finding {
        severity: Severity::Advice,
        object: format!("Subnet/{id}"),
        message: format!("has a tag that no load balancer looks for; {meant} is probably meant"),
        evidence: format!("tag {BALANCER_PREFIX}{role}"),
        remedy: format!(
            "aws ec2 create-tags --region {region} --resources {id} --tags \
             Key={BALANCER_PREFIX}{meant},Value=1\n\
             aws ec2 delete-tags --region {region} --resources {id} --tags \
             Key={BALANCER_PREFIX}{role}"
        ),
    })
}

/// Pools that name zones in which their node class has no subnet.
pub fn zones(facts: &Facts) -> Vec<Finding> {
    let Some(account) = facts.account() else { return Vec::new() };
    let found = pools::pools(facts).into_iter().filter_map(|(object, pool)| {
        let class = account.classes.iter().find(|(class, _)| class.name == pool.node_class);
        let subnets = class?.1.subnets.as_ref().ok()?;
        let there: BTreeSet<&str> = subnets.iter().map(|subnet| subnet.zone.as_str()).collect();
        let wanted = zones_of(&pool)?;
        let absent: Vec<&str> = wanted.difference(&there).copied().collect();
        (!absent.is_empty()).then(|| Finding {
            severity: if absent.len() == wanted.len() {
                Severity::Problem
            } else {
                Severity::Advice
            },
            message: format!(
                "requirement {ZONE} names {}, where {} has no subnet: no node comes up there",
                absent.join(", "),
                pool.node_class
            ),
            evidence: format!("subnets in {}", there.into_iter().collect::<Vec<_>>().join(", ")),
            remedy: format!(
                "make {} select a subnet there, or kubectl edit {} and name other zones",
                pool.node_class,
                object.to_lowercase()
            ),
            object,
        })
    });
    found.collect()
}

/// Zones that a pool names; none when it takes any.
fn zones_of(pool: &NodePool) -> Option<BTreeSet<&str>> {
    let mut requirements = pool.requirements.iter();
    let named = requirements.find(|it| it.key == ZONE && it.operator() == Operator::In)?;
    Some(named.values.iter().map(String::as_str).collect())
}
