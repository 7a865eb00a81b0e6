//! Filling: pods onto the hosts that are there, before anything is bought.
//!
//! Invariant: hosts that have room now come before those that will, and stronger titles before weaker ones; a
//! host that is full is not asked again.

use std::collections::BTreeSet;

use crate::pack::lp::prices;
use crate::pack::problem::Problem;
use crate::pack::problem::vector::{self, Vector, float};
use crate::place::state::{OnHost, Scene, Title};
use crate::place::{Placed, Placer};
use crate::topology::split_shapes::RowSpec;
use crate::vocabulary::taint::Taint;

impl Placer<'_, '_, '_> {
    /// Hosts that have room now are filled before those that will: kube-scheduler will not let a
    /// waiting pod wait for another node once there is room on an open one.
    pub(super) fn fill_hosts(
        &self,
        scene: &mut Scene,
        rows: &mut [RowSpec],
        problem: &Problem,
        placed: &mut Placed,
    ) {
        if !scene.open.contains(&true) {
            return;
        }
        let order = self.fill_order(rows, problem);
        let fit = self.model.hosts.partition_point(|host| host.fit);
        let least = least_request(problem);
        let soft = self.model.hosts.iter().any(|host| !host.taints.iter().all(Taint::repels));
        for hosts in [0..fit, fit..self.model.hosts.len()] {
            let mut roomy: Vec<usize> =
                hosts.filter(|host| scene.has_room(*host, &least)).collect();
            for title in Title::ALL {
                roomy.retain(|host| scene.has_room(*host, &least));
                let mut titled = roomy.clone();
                titled.retain(|host| scene.gives(*host, title));
                for row in &order {
                    if title == Title::None && !soft && !self.tells_hosts_apart(&rows[*row]) {
                        continue;
                    }
                    let mut there = scene.fill(self.model, &rows[*row], &titled, title);
                    if there.is_empty() {
                        continue;
                    }
                    rows[*row].count -= there.iter().map(|on| on.count).sum::<i64>();
                    there.iter_mut().for_each(|on| scene.correct(self.model, on));
                    drop_full(&mut titled, scene, &there, &least);
                    placed.hosts.extend(there);
                }
            }
        }
    }

    /// True when hosts may differ in how well they suit pods of the row.
    fn tells_hosts_apart(&self, row: &RowSpec) -> bool {
        row.alternatives != row.allowed || !self.model.topology.node_wishes.is_free(row.shape)
    }

    /// Highest priority first: kube-scheduler tries these before others, and no nomination keeps them from
    /// room. Then the most valuable rows; those that need company after all others.
    fn fill_order(&self, rows: &[RowSpec], problem: &Problem) -> Vec<usize> {
        let worth = prices::row_values(problem, &fill_prices(problem));
        let rules = &self.model.topology.node_rules;
        let mut order: Vec<usize> = (0..rows.len()).collect();
        order.sort_by(|a, b| {
            let company = |row: usize| rules.needs_company(rows[row].shape);
            let priority = |row: usize| self.model.shapes[rows[row].shape].priority;
            let value = worth[*b].total_cmp(&worth[*a]);
            let urgent = priority(*b).cmp(&priority(*a));
            company(*a).cmp(&company(*b)).then(urgent).then(value).then(a.cmp(b))
        });
        order
    }
}

/// Leaves out the hosts that have just become full; the others are as they were.
fn drop_full(hosts: &mut Vec<usize>, scene: &Scene, filled: &[OnHost], least: &[i64]) {
    let full = filled.iter().map(|on| on.host).filter(|host| !scene.has_room(*host, least));
    let full: BTreeSet<usize> = full.collect();
    if !full.is_empty() {
        hosts.retain(|host| !full.contains(host));
    }
}

/// Of each resource the least that a pod requests: what has less room takes none.
fn least_request(problem: &Problem) -> Vector {
    let requests = problem.rows.iter().filter(|row| row.count > 0).map(|row| &row.request);
    let least = |a: Vector, b: &Vector| a.iter().zip(b).map(|(a, b)| *a.min(b)).collect();
    requests.cloned().reduce(|a, b| least(a, &b)).unwrap_or_default()
}

/// What a unit of each resource is worth on hosts: its price when it can be bought, else its share of
/// all that is wanted.
fn fill_prices(problem: &Problem) -> Vec<f64> {
    let counts = problem.counts();
    let line: Vec<usize> = problem.skyline.iter().flatten().copied().collect();
    if !line.is_empty() {
        return prices::resource_prices(problem, &counts, &line);
    }
    let dims = problem.rows.first().map_or(0, |row| row.request.len());
    let mut wanted = vec![0; dims];
    for (row, count) in problem.rows.iter().zip(counts) {
        vector::add(&mut wanted, &row.request, count);
    }
    wanted.iter().map(|amount| 1.0 / float((*amount).max(1))).collect()
}
