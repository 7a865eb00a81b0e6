//! The room, counts and limits that are left while a plan grows.
//!
//! Invariant: everything placed can be taken back exactly, so that moves can be tried.

use std::collections::BTreeMap;

use super::goods::Goods;
use super::model::Model;
use super::rows::{RowSpec, begun};
use crate::pack::ledger::Budget;
use crate::pack::rules::NodeState;
use crate::pack::vector::{self, Vector};
use crate::vocabulary::requirement::Requirement;
use crate::world::topology::Topology;

/// What changes while planning.
#[derive(Debug)]
pub(crate) struct Scene {
    /// Free room of each host.
    pub(crate) rooms: Vec<Vector>,
    /// Node rules of each host.
    pub(crate) states: Vec<NodeState>,
    /// Hosts that take pods.
    pub(crate) open: Vec<bool>,
    /// Pods that this plan has put on each host, by shape.
    pub(crate) added: Vec<BTreeMap<usize, i64>>,
    /// Waiting pods that are wanted on each host already, by shape.
    wanted: Vec<BTreeMap<usize, i64>>,
    /// Rules over wide domains.
    pub(crate) topology: Topology,
    /// Node rules that have a member somewhere.
    pub(crate) begun: Vec<bool>,
    /// What limits allow.
    pub(crate) budgets: Vec<Budget>,
}

/// Pods of a row on a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OnHost {
    /// Index of the host.
    pub(crate) host: usize,
    /// Shape of the pods.
    pub(crate) shape: usize,
    /// How many.
    pub(crate) count: i64,
}

impl Scene {
    /// The world before the plan.
    pub(crate) fn new(model: &Model<'_>, goods: &Goods<'_, '_>) -> Self {
        Self {
            rooms: model.hosts.iter().map(|host| host.room.clone()).collect(),
            states: model.hosts.iter().map(|host| host.state.clone()).collect(),
            open: model.hosts.iter().map(|host| host.open).collect(),
            added: vec![BTreeMap::new(); model.hosts.len()],
            wanted: wanted(model),
            topology: model.topology.clone(),
            begun: begun(model),
            budgets: goods.budgets.clone(),
        }
    }

    /// Puts as many pods of a row as possible on hosts and returns where: first on those where they
    /// are wanted already, so that planning again moves nothing, then on all in their order.
    pub(crate) fn fill(&mut self, model: &Model<'_>, row: &RowSpec) -> Vec<OnHost> {
        let mut left = row.count;
        let mut placed: Vec<OnHost> = Vec::new();
        for host in 0..self.rooms.len() {
            if let Some(wanted) = self.wanted[host].get(&row.shape).copied() {
                let there = self.fill_one(model, row, host, left.min(wanted));
                left -= there.as_ref().map_or(0, |there| there.count);
                placed.extend(there);
            }
        }
        for host in 0..self.rooms.len() {
            if left == 0 {
                break;
            }
            let there = self.fill_one(model, row, host, left);
            left -= there.as_ref().map_or(0, |there| there.count);
            placed.extend(there);
        }
        placed
    }

    /// Puts at most `most` pods of a row on one host.
    fn fill_one(
        &mut self,
        model: &Model<'_>,
        row: &RowSpec,
        host: usize,
        most: i64,
    ) -> Option<OnHost> {
        let request = &model.requests[row.shape];
        if !self.open[host] || !vector::fits(request, &self.rooms[host]) {
            return None;
        }
        let free_of_rules = model.topology.node_rules.is_free(row.shape);
        let allowed = if free_of_rules { i64::MAX } else { self.allowance(model, row, host) };
        let count = vector::copies(request, &self.rooms[host]).min(most).min(allowed);
        if count <= 0 || !model.hosts[host].admits(model.shapes[row.shape], &row.alternatives) {
            return None;
        }
        let there = OnHost { host, shape: row.shape, count };
        self.put(model, &there, 1);
        Some(there)
    }

    /// Puts pods on a host, or takes them back with `sign` -1.
    pub(crate) fn put(&mut self, model: &Model<'_>, there: &OnHost, sign: i64) {
        let OnHost { host, shape, count } = *there;
        vector::add(&mut self.rooms[host], &model.requests[shape], -sign * count);
        *self.added[host].entry(shape).or_default() += sign * count;
        self.added[host].retain(|_, count| *count != 0);
        let rules = &model.topology.node_rules;
        if !rules.is_free(shape) {
            rules.record(shape, sign * count, &mut self.states[host]);
            if sign > 0 {
                rules.mark_begun(shape, &mut self.begun);
            }
        }
    }

    /// Counts pods of a row that found no place out of the domains they were given.
    pub(crate) fn uncount(&mut self, row: &RowSpec, count: i64) {
        for index in self.topology.groups_of(row.shape).to_vec() {
            let group = &mut self.topology.groups[index];
            let given = row.alternatives.first().and_then(|wanted| wanted.get(&group.key));
            if let Some(domain) = given.and_then(Requirement::single).map(str::to_owned) {
                group.record(row.shape, &domain, -count);
            }
        }
    }

    fn allowance(&self, model: &Model<'_>, row: &RowSpec, host: usize) -> i64 {
        let rules = &model.topology.node_rules;
        let first = rules.may_begin(row.shape, &self.begun);
        rules.allowance(row.shape, &self.states[host], first)
    }
}

/// Waiting pods by the host they are wanted on and by shape.
fn wanted(model: &Model<'_>) -> Vec<BTreeMap<usize, i64>> {
    let names = model.hosts.iter().map(|host| host.target.name());
    let hosts: BTreeMap<&str, usize> =
        names.enumerate().filter_map(|(at, name)| Some((name?, at))).collect();
    let mut wanted = vec![BTreeMap::new(); model.hosts.len()];
    for (shape, pods) in model.demand.iter().enumerate() {
        for host in pods.iter().filter_map(|pod| hosts.get(model.wish(pod)?)) {
            *wanted[*host].entry(shape).or_default() += 1;
        }
    }
    wanted
}
