//! Obstacles in words.
//!
//! Invariant: each text says what failed, how close it came, and what would admit the pod.

use std::fmt;

use crate::reason::{ClosestOffering, ClosestType, Obstacle, RuledOut, TopologyRule};
use crate::vocabulary::labels::NODE_POOL;
use crate::vocabulary::requirements::requirement::Requirement;
use crate::vocabulary::resources::display_amount;

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("nothing stands in the way"),
            Self::NotWaiting => f.write_str(
                "kube-scheduler has not marked it unschedulable; it is new, gated, preempting or ending",
            ),
            Self::OptedOut => write!(
                f,
                "it asks for nodes without the label {NODE_POOL}; drop that to have a node made for it"
            ),
            Self::Declared { why } => f.write_str(why),
            Self::Contradiction { key, wanted } => write_contradiction(f, key, wanted),
            Self::NoPool => f.write_str("there is no NodePool; create one"),
            Self::NoPoolAdmits => f.write_str("no NodePool can make a node for it"),
            Self::PoolNotReady { why } => write!(f, "not ready: {why}"),
            Self::NoCatalogue => {
                f.write_str("the region has not reported its instance types yet; wait for its actuator")
            }
            Self::FixedReplicas => f.write_str(
                "keeps spec.replicas nodes and makes none for pods; raise its replicas, or allow another \
                 NodePool",
            ),
            Self::TooManyReplicas { wanted, most } => write!(
                f,
                "asks for {wanted} replicas, more than the {most} that are kept; lower replicas"
            ),
            Self::Taint { taint } => write!(f, "taint {taint}; add a toleration for it to the pod"),
            Self::Requirement { key, wanted, offered } => {
                write_requirement(f, key, wanted, offered.as_ref())
            }
            Self::NoInstanceType { key, wanted, closest } => {
                write!(
                    f,
                    "no instance type has {key} {wanted} together with the other requirements; widen them"
                )?;
                closest.as_ref().map_or(Ok(()), |closest| write!(f, " (closest: {closest})"))
            }
            Self::Topology { rule, key, held_by } => {
                write_topology(f, *rule, key, held_by.as_deref())
            }
            Self::TooLarge { .. }
            | Self::DaemonSets { .. }
            | Self::Refused { .. }
            | Self::PlannerFails { .. }
            | Self::NoOffering { .. }
            | Self::Limit { .. }
            | Self::MinValues { .. }
            | Self::Reservations { .. }
            | Self::TooManyValues { .. } => f.write_str(&self.shortage().unwrap_or_default()),
        }
    }
}

impl Obstacle {
    /// What there is too little of, or too much.
    fn shortage(&self) -> Option<String> {
        let amount = |name: &str, amount: &i64| display_amount(name, *amount);
        if let Self::TooLarge { resource, requested, largest, instance_type } = self {
            return Some(format!(
                "requests {resource} {}, but the largest matching type {instance_type} has {} left for \
                 pods; request less or allow larger types",
                amount(resource, requested),
                amount(resource, largest)
            ));
        }
        if let Self::DaemonSets { resource, requested, largest, instance_type } = self {
            return Some(format!(
                "DaemonSets request {resource} {} of each node, but the largest matching type \
                 {instance_type} has {}; keep them away, have them request less, or allow larger types",
                amount(resource, requested),
                amount(resource, largest)
            ));
        }
        if let Self::Limit { resource, limit, used, needed } = self {
            return Some(format!(
                "limit {resource} {} is reached: {} in use, the smallest node adds {}; raise the limit",
                amount(resource, limit),
                amount(resource, used),
                amount(resource, needed)
            ));
        }
        if let Self::Refused { found } = self {
            return Some(format!(
                "the place planned for it was refused by the check ({found}) and is planned anew; report \
                 this if it stays"
            ));
        }
        if let Self::PlannerFails { said } = self {
            return Some(format!(
                "the planner fails on it ({said}) and leaves it out for ten minutes at a time, so that \
                 the rest is planned; report this, and change it meanwhile"
            ));
        }
        self.choice()
    }

    /// What there is too little to choose from, or too much.
    fn choice(&self) -> Option<String> {
        if let Self::NoOffering { types, closest } = self {
            let way_out = match closest {
                Some(closest) => closest.to_string(),
                None => {
                    "all are sold out, or their nodes did not come up: wait, or allow other types"
                        .to_owned()
                }
            };
            return Some(format!(
                "{types} instance types would fit, but none of them can be bought now in an allowed zone and \
                 capacity type; {way_out}"
            ));
        }
        if let Self::MinValues { key, wanted, reachable } = self {
            return Some(format!(
                "minValues of {key} is {wanted}, but only {reachable} remain for it; lower minValues or \
                 widen the requirements"
            ));
        }
        if let Self::Reservations { reservations } = self {
            return Some(format!(
                "nothing is left of the {reservations} reservations that would serve; wait, or allow other \
                 capacity types"
            ));
        }
        if let Self::TooManyValues { most } = self {
            return Some(format!(
                "the pool leaves labels open in more than {most} combinations; list fewer values, or \
                 split the pool"
            ));
        }
        None
    }
}

impl fmt::Display for ClosestOffering {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { instance_type, capacity_type, zone, ruled_out_by } = self;
        let bought = capacity_type.label();
        let ways = ruled_out_by.iter().map(|by| match by {
            RuledOut::Zone => format!("allow zone {zone}"),
            RuledOut::CapacityType => format!("allow capacity type {bought}"),
            RuledOut::Subnet => format!("give the node class a subnet in {zone}"),
        });
        let ways = ways.collect::<Vec<_>>().join(" and ");
        let ways = if ways.is_empty() { "widen the requirements" } else { &ways };
        write!(f, "{ways} (closest: {instance_type} {bought} in {zone})")
    }
}

impl fmt::Display for ClosestType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { instance_type, key, value, misses } = self;
        match value {
            Some(value) => write!(f, "{instance_type} has {key} {value}")?,
            None => write!(f, "{instance_type} has no {key}")?,
        }
        if *misses > 1 { write!(f, ", and misses {} more", misses - 1) } else { Ok(()) }
    }
}

fn write_contradiction(
    f: &mut fmt::Formatter<'_>,
    key: &str,
    wanted: &[Requirement],
) -> fmt::Result {
    f.write_str("node selector, node affinity and volumes contradict each other: ")?;
    if wanted.is_empty() {
        return write!(f, "what is asked of {key} leaves no value; widen it");
    }
    let texts: Vec<String> = wanted.iter().map(|wanted| format!("{key} {wanted}")).collect();
    write!(f, "no node has {}; change one of them", texts.join(" together with "))
}

fn write_requirement(
    f: &mut fmt::Formatter<'_>,
    key: &str,
    wanted: &Requirement,
    offered: Option<&Requirement>,
) -> fmt::Result {
    match offered {
        Some(offered) => {
            write!(f, "pod wants {key} {wanted}, pool allows {key} {offered}; change one of them")
        }
        None => write!(
            f,
            "pod wants {key} {wanted}, which the pool does not define; add it to the pool's labels or \
             requirements"
        ),
    }
}

fn write_topology(
    f: &mut fmt::Formatter<'_>,
    rule: TopologyRule,
    key: &str,
    held_by: Option<&str>,
) -> fmt::Result {
    match rule {
        TopologyRule::Spread => {
            write!(f, "topology spread over {key} leaves no domain within maxSkew")?;
            if let Some(domain) = held_by {
                write!(f, ", since {domain} has the fewest and can take no more")?;
            }
            f.write_str("; raise maxSkew or allow more domains")
        }
        TopologyRule::Affinity => write!(
            f,
            "pod affinity over {key} finds no domain with a matching pod where it could run; start such a \
             pod first, or allow the domain of one"
        ),
        TopologyRule::AntiAffinity => {
            write!(f, "pod anti-affinity over {key} leaves no free domain; allow more domains")
        }
    }
}
