//! NodePools on the wire and in the planner.

use std::collections::BTreeSet;
use std::str::FromStr;

use croner::Cron;
use croner::errors::CronError;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use longshore_core::vocabulary::pool::{
    BudgetNodes, ConsolidationPolicy, DisruptionReason, DisruptionRules, NodeBudget, NodePool,
};
use longshore_proto::time::duration_ms;
use longshore_proto::types::v1;

use super::{WireError, requirement};

/// What a pool's node class and region add to it.
#[derive(Clone, Debug, Default)]
pub struct Supply {
    /// Catalogue the node class buys from.
    pub catalogue: String,
    /// Zones it has subnets in; none means every zone.
    pub zones: Option<BTreeSet<String>>,
    /// Why nothing may be launched; none when it is ready.
    pub not_ready: Option<String>,
}

/// Reads a pool as it stands at `now_ms`, which decides which budgets are active.
///
/// # Errors
/// When a requirement, taint or budget cannot be read.
pub fn pool(wire: &v1::NodePool, supply: &Supply, now_ms: i64) -> Result<NodePool, WireError> {
    read(wire, supply, now_ms).map_err(|error| error.of("NodePool", &wire.name))
}

fn read(wire: &v1::NodePool, supply: &Supply, now_ms: i64) -> Result<NodePool, WireError> {
    let zones = supply.zones.as_ref();
    let requirements = requirement::requirements(&wire.requirements)
        .map_err(|error| error.within("requirements"))?;
    Ok(NodePool {
        name: wire.name.as_str().into(),
        weight: wire.weight,
        node_class: wire.node_class.clone(),
        labels: wire.labels.clone(),
        annotations: wire.annotations.clone(),
        taints: requirement::taints(&wire.taints)?,
        startup_taints: requirement::taints(&wire.startup_taints)?,
        requirements,
        limits: wire.limits.as_ref().map(|limits| limits.values.clone()).unwrap_or_default(),
        disruption: disruption(wire.disruption.as_ref(), now_ms)?,
        expire_after_ms: wire.expire_after.as_ref().map(duration_ms),
        termination_grace_ms: wire.termination_grace_period.as_ref().map(duration_ms),
        catalogue: supply.catalogue.as_str().into(),
        zones: zones.map(|zones| zones.iter().map(|zone| zone.as_str().into()).collect()),
        replicas: wire.replicas.map(|replicas| replicas.max(0)),
        dense_spread: wire.dense_spread,
        canary: None,
        not_ready: supply.not_ready.clone(),
    })
}

fn disruption(wire: Option<&v1::Disruption>, now_ms: i64) -> Result<DisruptionRules, WireError> {
    let Some(wire) = wire else { return Ok(DisruptionRules::default()) };
    let policy = match wire.policy() {
        v1::ConsolidationPolicy::WhenEmpty => ConsolidationPolicy::WhenEmpty,
        v1::ConsolidationPolicy::WhenEmptyOrUnderutilized
        | v1::ConsolidationPolicy::Unspecified => ConsolidationPolicy::WhenEmptyOrUnderutilized,
    };
    let budgets: Result<_, _> = wire.budgets.iter().map(|wire| budget(wire, now_ms)).collect();
    Ok(DisruptionRules {
        policy,
        consolidate_after_ms: wire.consolidate_after.as_ref().map(duration_ms),
        budgets: budgets.map_err(|error: WireError| error.within("disruption"))?,
        evictions_left: wire.evictions_per_hour.map(|most| most.max(0)),
    })
}

fn budget(wire: &v1::NodeBudget, now_ms: i64) -> Result<NodeBudget, WireError> {
    Ok(NodeBudget {
        nodes: budget_nodes(&wire.nodes)?,
        reasons: wire
            .reasons
            .iter()
            .map(|reason| disruption_reason(reason))
            .collect::<Result<_, _>>()?,
        active: is_active(wire, now_ms)?,
    })
}

/// Reads a count or percentage of nodes.
///
/// # Errors
/// When it is neither.
pub fn budget_nodes(text: &str) -> Result<BudgetNodes, WireError> {
    let wrong = || {
        let problem = format!("{text:?} is neither a count such as 5 nor a percentage such as 10%");
        WireError::field("budgets.nodes", problem)
    };
    let (digits, of): (_, fn(i64) -> BudgetNodes) = match text.strip_suffix('%') {
        Some(digits) => (digits, BudgetNodes::Percent),
        None => (text, BudgetNodes::Count),
    };
    let number: u32 = digits.parse().map_err(|_| wrong())?;
    Ok(of(i64::from(number)))
}

fn disruption_reason(text: &str) -> Result<DisruptionReason, WireError> {
    match text {
        "Empty" => Ok(DisruptionReason::Empty),
        "Underutilized" => Ok(DisruptionReason::Underutilized),
        "Drifted" => Ok(DisruptionReason::Drifted),
        _ => {
            let problem = format!("{text:?} is unknown; use Empty, Underutilized or Drifted");
            Err(WireError::field("budgets.reasons", problem))
        }
    }
}

/// A budget with a schedule counts from each hit of the schedule for its duration, in UTC.
fn is_active(wire: &v1::NodeBudget, now_ms: i64) -> Result<bool, WireError> {
    if wire.schedule.is_empty() {
        return Ok(true);
    }
    let length_ms = wire.duration.as_ref().map_or(0, duration_ms);
    let hit_ms = next_hit_ms(&wire.schedule, now_ms.saturating_sub(length_ms))?;
    Ok(hit_ms.is_some_and(|hit_ms| hit_ms <= now_ms))
}

/// When a budget of the pool begins or ceases to count, in milliseconds since 1970; none when that
/// never changes.
#[must_use]
pub fn next_edge_ms(wire: &v1::NodePool, now_ms: i64) -> Option<i64> {
    let budgets = wire.disruption.iter().flat_map(|disruption| &disruption.budgets);
    let edges = budgets.filter(|budget| !budget.schedule.is_empty()).filter_map(|budget| {
        let length_ms = budget.duration.as_ref().map_or(0, duration_ms);
        let before_ms = now_ms.saturating_sub(length_ms);
        let hit_ms = next_hit_ms(&budget.schedule, before_ms).ok().flatten()?;
        Some(if hit_ms > now_ms { hit_ms } else { hit_ms.saturating_add(length_ms) })
    });
    edges.min()
}

/// The first hit of a schedule after a time, in milliseconds since 1970. Hits are whole seconds.
fn next_hit_ms(schedule: &str, after_ms: i64) -> Result<Option<i64>, WireError> {
    let from_ms = after_ms.div_euclid(1000).saturating_add(1).saturating_mul(1000);
    let wrong = |problem: String| WireError::field("budgets.schedule", problem);
    let cron = Cron::from_str(schedule).map_err(|error| wrong(not_cron(schedule, &error)))?;
    let from = Timestamp::from_millisecond(from_ms).map_err(|error| wrong(error.to_string()))?;
    let hit = cron.find_next_occurrence(&from.to_zoned(TimeZone::UTC), true);
    Ok(hit.ok().map(|hit| hit.timestamp().as_millisecond()))
}

fn not_cron(schedule: &str, error: &CronError) -> String {
    format!("{schedule:?} is not a cron expression ({error}); write five fields: 0 9 * * mon-fri")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budget_of(nodes: &str, schedule: &str) -> v1::NodeBudget {
        v1::NodeBudget {
            nodes: nodes.to_owned(),
            schedule: schedule.to_owned(),
            duration: Some(prost_types::Duration { seconds: 3600, nanos: 0 }),
            ..Default::default()
        }
    }

    #[test]
    fn a_schedule_opens_its_window_for_the_duration() {
        let hour_ms = 3_600_000;
        let nine = budget_of("0", "0 9 * * *");
        for (hour_tenths, active) in [(89, false), (90, true), (99, true), (101, false)] {
            let now_ms = hour_tenths * hour_ms / 10;
            assert_eq!(budget(&nine, now_ms).unwrap().active, active, "at {hour_tenths}/10 h");
        }
        let disruption = v1::Disruption { budgets: vec![nine.clone()], ..Default::default() };
        let pool = v1::NodePool { disruption: Some(disruption), ..Default::default() };
        // What it is at one edge, it is until the next.
        for (now_ms, edge_ms) in [
            (0, 9 * hour_ms),
            (9 * hour_ms - 1, 9 * hour_ms),
            (9 * hour_ms, 10 * hour_ms),
            (10 * hour_ms - 1, 10 * hour_ms),
            (10 * hour_ms, 33 * hour_ms),
        ] {
            assert_eq!(next_edge_ms(&pool, now_ms), Some(edge_ms), "at {now_ms} ms");
            let active = |at_ms| budget(&nine, at_ms).unwrap().active;
            assert_eq!(active(edge_ms - 1), active(now_ms));
            assert_ne!(active(edge_ms), active(now_ms));
        }
        assert_eq!(next_edge_ms(&v1::NodePool::default(), 0), None);
    }

    #[test]
    fn wrong_budgets_name_the_field() {
        for (wrong, field) in [
            (budget_of("ten", ""), "budgets.nodes"),
            (budget_of("-1", ""), "budgets.nodes"),
            (budget_of("1", "whenever"), "budgets.schedule"),
        ] {
            assert_eq!(budget(&wrong, 0).unwrap_err().field, field);
        }
        assert_eq!(budget(&budget_of("10%", ""), 0).unwrap().nodes, BudgetNodes::Percent(10));
    }
}
