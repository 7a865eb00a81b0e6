//! Node repair: a node with which something has been wrong for too long makes way for another.
//!
//! Invariant: the conditions that say so have been seen for a while by this very session, few nodes
//! of the pool ail, and the cluster's breaker agrees: of many that ail at once the cause is
//! elsewhere.

use std::collections::BTreeMap;

use longshore_proto::cluster::v1::DeleteClaim;
use longshore_proto::cluster::v1::directive::Action;
use longshore_proto::types::v1::NodeClaim;
use longshore_runtime::planted;

use super::{Due, World, absent, direct};

/// Why a claim goes.
const UNHEALTHY: &str = "Unhealthy";
/// How long this session must have seen it, in milliseconds: clocks and sessions differ.
pub(super) const SEEN_MS: i64 = 5 * 60 * 1000;
/// Most nodes of a pool that may ail for any to be replaced, in percent, rounded up.
const AILING_MAX_PERCENT: usize = 20;

/// Pools with so many ailing nodes that none is replaced, and how it stands with them.
#[must_use]
pub fn blocked(world: &World<'_>) -> BTreeMap<String, String> {
    let due = world.claims.values().filter(|claim| world.is_due(claim));
    let blocked = due.filter_map(|claim| {
        let (ailing, nodes) = world.ailing(&claim.pool);
        let message = format!(
            "{ailing} of {nodes} nodes ail, so none is replaced: of so many the cause is elsewhere; \
             see their conditions, or delete NodeClaims by hand"
        );
        (!few(ailing, nodes)).then(|| (claim.pool.clone(), message))
    });
    blocked.collect()
}

/// True when so few ail that they may be replaced.
const fn few(ailing: usize, nodes: usize) -> bool {
    ailing * 100 <= nodes * AILING_MAX_PERCENT + 99
}

impl World<'_> {
    /// The claim of a node that has ailed for too long goes at once: nothing on it can be relied
    /// on.
    pub(super) fn repairing(&self, claim: &NodeClaim) -> Option<Due> {
        let (what, _) = self.ailment(claim).filter(|_| self.is_due(claim))?;
        let (ailing, nodes) = self.ailing(&claim.pool);
        let lasted = self.lasted_ms("ailing", &claim.name) >= SEEN_MS || planted::is("S39");
        let few = few(ailing, nodes) || planted::is("S39a");
        if !lasted || !few || self.is_held(claim) {
            return None;
        }
        let delete = DeleteClaim {
            claim: claim.name.clone(),
            reason: UNHEALTHY.to_owned(),
            message: format!("its condition {what}, for longer than is put up with"),
            at_once: true,
            ..DeleteClaim::default()
        };
        absent(claim, direct(claim, Action::DeleteClaim(delete)))
    }

    /// What is wrong with a node in service.
    pub(super) fn ailment(&self, claim: &NodeClaim) -> Option<&(String, i64)> {
        let in_service = claim.initialize_time.is_some() && !claim.deleting;
        self.node(claim).filter(|_| in_service)?.ailing.as_ref()
    }

    /// True for a node that has ailed for as long as is put up with, of a pool that lets go of
    /// such.
    fn is_due(&self, claim: &NodeClaim) -> bool {
        let keeps = self.pools.get(&claim.pool).is_none_or(|pool| pool.keeps_ailing_nodes);
        !keeps && self.ailment(claim).is_some_and(|(_, repair_ms)| *repair_ms <= self.now_ms)
    }

    /// How many nodes of a pool ail, and how many are in service.
    fn ailing(&self, pool: &str) -> (usize, usize) {
        let own = self.claims.values().filter(|claim| claim.pool == pool);
        let own = own.filter(|claim| claim.initialize_time.is_some());
        let (mut ailing, mut nodes) = (0, 0);
        for claim in own {
            nodes += 1;
            ailing += usize::from(self.node(claim).is_some_and(|node| node.ailing.is_some()));
        }
        (ailing, nodes)
    }
}

#[cfg(test)]
mod tests {
    use super::few;

    #[test]
    fn a_fifth_of_a_pool_rounded_up_may_ail() {
        let table = [
            (1, 1, true),
            (1, 3, true),
            (2, 5, false),
            (2, 6, true),
            (4, 20, true),
            (5, 20, false),
        ];
        for (ailing, nodes, wanted) in table {
            assert_eq!(few(ailing, nodes), wanted, "{ailing} of {nodes}");
        }
    }
}
