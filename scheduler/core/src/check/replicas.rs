//! Pools with replicas have as many nodes.
//!
//! Invariant: nothing goes as excess that leaves a pool with less than its replicas; nothing is
//! launched beyond them but what replaces a node that must go.

use std::collections::BTreeSet;

use crate::answer::{NewNode, Plan};
use crate::check::{Findings, Part, Rule};
use crate::question::PlanInput;
use crate::vocabulary::ids::{ClaimName, PoolName};
use crate::vocabulary::pool::DisruptionReason;
use crate::world::claim::NodeClaim;

pub(super) fn check(plan: &Plan, input: &PlanInput, findings: &mut Findings) {
    let gone: BTreeSet<&ClaimName> = plan.disruptions.iter().flat_map(|d| &d.claims).collect();
    let excess = plan.disruptions.iter().filter(|d| d.reason == DisruptionReason::Excess);
    let excess: Vec<&NodeClaim> = excess
        .flat_map(|d| &d.claims)
        .filter_map(|name| input.world.claims.get(name).map(AsRef::as_ref))
        .collect();
    for pool in input.world.pools.values() {
        let claims = input.world.claims.values().filter(|claim| claim.pool == pool.name);
        let staying: Vec<_> =
            claims.filter(|claim| stays(input, claim) && !gone.contains(&claim.name)).collect();
        let count = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
        let due = count(staying.iter().filter(|claim| is_due(input, claim)).count());
        let staying = count(staying.len());
        let trimmed = excess.iter().any(|claim| claim.pool == pool.name);
        let launches = plan.launches.iter().enumerate();
        let launches = launches.filter(|(_, launch)| launch.pool == pool.name);
        let (standing, dynamic): (Vec<_>, Vec<_>) =
            launches.partition(|(_, launch)| launch.standing);
        let parts = |some: &[(usize, &NewNode)]| some.iter().map(|it| Part::Launch(it.0)).collect();
        let Some(replicas) = pool.replicas else {
            let buffered = input.world.buffers.values().any(|buffer| buffer.replicas > 0);
            findings.require(!trimmed, Rule::Replicas, || {
                (
                    out_of(plan, input, &pool.name, usize::MAX),
                    format!("{} has no replicas", pool.name),
                )
            });
            findings.require(buffered || standing.is_empty(), Rule::Replicas, || {
                (parts(&standing), format!("{} gets nodes that nobody waits for", pool.name))
            });
            continue;
        };
        findings.require(dynamic.is_empty(), Rule::Replicas, || {
            (parts(&dynamic), format!("{} makes no nodes for pods", pool.name))
        });
        findings.require(!trimmed || staying >= replicas, Rule::Replicas, || {
            let lacking = usize::try_from(replicas - staying).unwrap_or(usize::MAX);
            let about = out_of(plan, input, &pool.name, lacking);
            (about, format!("{}: {staying} nodes stay of {replicas}", pool.name))
        });
        let more = count(standing.len());
        let most = replicas.saturating_add(due);
        findings.require(more == 0 || staying + more <= most, Rule::Replicas, || {
            let room = usize::try_from(most.saturating_sub(staying)).unwrap_or(0);
            let about = parts(&standing[room.min(standing.len())..]);
            (about, format!("{}: {staying} nodes and {more} more for {replicas}", pool.name))
        });
    }
}

/// The last disruptions that take a node of the pool for excess, so many of them.
fn out_of(plan: &Plan, input: &PlanInput, pool: &PoolName, count: usize) -> Vec<Part> {
    let of_pool = |name: &ClaimName| input.world.claims.get(name).is_some_and(|c| c.pool == *pool);
    let all = plan.disruptions.iter().enumerate().rev();
    let excess = all.filter(|(_, d)| d.reason == DisruptionReason::Excess);
    let excess = excess.filter(|(_, disruption)| disruption.claims.iter().any(of_pool));
    excess.take(count).map(|(at, _)| Part::Disruption(at)).collect()
}

fn stays(input: &PlanInput, claim: &NodeClaim) -> bool {
    let nodes = &input.world.nodes;
    let node = nodes.values().find(|node| {
        claim.node.as_ref() == Some(&node.name)
            || (!claim.provider_id.is_empty() && claim.provider_id == node.provider_id)
    });
    let taken = |id: &str| input.interrupted_instances.iter().any(|taken| id.ends_with(taken));
    !claim.is_leaving() && node.is_none_or(|node| !node.deleting && !taken(&node.provider_id))
}

fn is_due(input: &PlanInput, claim: &NodeClaim) -> bool {
    claim.drifted || claim.expires_ms().is_some_and(|expires_ms| expires_ms <= input.now_ms)
}
