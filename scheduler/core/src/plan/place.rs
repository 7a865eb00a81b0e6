//! Placing: rows onto hosts first, then onto new nodes, then once more without preferences.
//!
//! Invariant: every wanted pod ends on a host, on a new node or among the unplaced, exactly once.

use super::goods::Goods;
use super::market::Offer;
use super::model::Model;
use super::rows::{Allotter, Refused, RowSpec};
use super::scene::{OnHost, Scene, Title};
use super::trim;
use super::types::Effort;
use crate::pack::prices;
use crate::pack::problem::{Bin, Packed, Problem, Row};
use crate::pack::skyline::skylines;
use crate::pack::solve;
use crate::pack::vector::{self, float};
use crate::reason::{Obstacle, TopologyRule};
use crate::vocabulary::labels::HOSTNAME;

/// Where everything goes.
#[derive(Debug, Default)]
pub(crate) struct Placed {
    /// Pods on hosts.
    pub(crate) hosts: Vec<OnHost>,
    /// Nodes to buy.
    pub(crate) nodes: Vec<Bought>,
    /// Pods without a place.
    pub(crate) unplaced: Vec<Refused>,
}

/// Equal nodes to buy.
#[derive(Clone, Debug)]
pub(crate) struct Bought {
    /// Offers that can carry the load, cheapest first; the first is what the plan counts on.
    pub(crate) offers: Vec<usize>,
    /// Pods on each, by shape.
    pub(crate) load: Vec<(usize, i64)>,
    /// How many nodes.
    pub(crate) copies: i64,
}

impl Placed {
    /// Adds what was placed, and what was not, after this.
    pub(crate) fn add(&mut self, later: Self) {
        self.hosts.extend(later.hosts);
        self.nodes.extend(later.nodes);
        self.unplaced.extend(later.unplaced);
    }

    /// Adds the pods on new nodes to counts by shape.
    pub(crate) fn count_launched(&self, launched: &mut [i64]) {
        for node in &self.nodes {
            for (shape, count) in &node.load {
                launched[*shape] += count * node.copies;
            }
        }
    }
}

/// Places a number of pods of each shape.
pub(crate) struct Placer<'g, 'm, 'a> {
    /// The world.
    pub(crate) model: &'m Model<'a>,
    /// What can be bought.
    pub(crate) goods: &'g Goods<'m, 'a>,
    /// How hard to try.
    pub(crate) effort: Effort,
    /// Whether nodes may be bought.
    pub(crate) buy: bool,
}

impl Placer<'_, '_, '_> {
    /// Places all that is wanted, as well as the scene allows.
    pub(crate) fn place(&self, scene: &mut Scene, wanted: &[i64]) -> Placed {
        let mut placed = Placed::default();
        self.pass(scene, wanted, true, &mut placed);
        let mut again = vec![0; wanted.len()];
        placed.unplaced.retain(|refused| {
            let wishes = !self.model.shapes[refused.shape].preferred_node_terms.is_empty();
            again[refused.shape] += if wishes { refused.count } else { 0 };
            !wishes
        });
        if again.iter().any(|count| *count > 0) {
            self.pass(scene, &again, false, &mut placed);
        }
        placed
    }

    fn pass(&self, scene: &mut Scene, wanted: &[i64], prefer: bool, placed: &mut Placed) {
        let Self { model, goods, .. } = *self;
        let topology = &mut scene.topology;
        let (mut rows, refused) = Allotter { model, goods, topology, wanted, prefer }.allot();
        placed.unplaced.extend(refused);
        let offers = if self.buy { goods.offers.as_slice() } else { &[] };
        let mut problem = self.problem(&rows, scene, offers);
        self.fill_hosts(scene, &mut rows, &problem, placed);
        for (row, spec) in problem.rows.iter_mut().zip(&rows) {
            row.count = spec.count;
        }
        let outcome = solve::solve(&problem, self.effort, &scene.begun);
        scene.budgets = outcome.ledger.budgets().to_vec();
        for packed in &outcome.packed {
            placed.nodes.push(self.bought(&problem, packed));
            for (row, _) in &packed.load {
                let shape = problem.rows[*row].shape;
                model.topology.node_rules.mark_begun(shape, &mut scene.begun);
            }
        }
        for (row, count) in rows.iter().zip(outcome.left).filter(|(_, count)| *count > 0) {
            scene.uncount(row, count);
            let company = model.topology.node_rules.needs_company(row.shape);
            let alone =
                Obstacle::Topology { rule: TopologyRule::Affinity, key: HOSTNAME.to_owned() };
            let obstacle = if company { alone } else { Obstacle::NoPoolAdmits };
            placed.unplaced.push(Refused { shape: row.shape, count, obstacle });
        }
        trim::to_rules(model, goods, scene, placed);
    }

    /// Hosts that have room now are filled before those that will: kube-scheduler will not let a
    /// waiting pod wait for another node once there is room on an open one.
    fn fill_hosts(
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
        for hosts in [0..fit, fit..self.model.hosts.len()] {
            for title in [Title::Wanted, Title::Inherited, Title::None] {
                for row in &order {
                    let there = scene.fill(self.model, &rows[*row], hosts.clone(), title);
                    rows[*row].count -= there.iter().map(|on| on.count).sum::<i64>();
                    placed.hosts.extend(there);
                }
            }
        }
    }

    /// Most valuable rows first; those that need company after all others.
    fn fill_order(&self, rows: &[RowSpec], problem: &Problem) -> Vec<usize> {
        let worth = prices::row_values(problem, &fill_prices(problem));
        let rules = &self.model.topology.node_rules;
        let mut order: Vec<usize> = (0..rows.len()).collect();
        order.sort_by(|a, b| {
            let company = |row: usize| rules.needs_company(rows[row].shape);
            let value = worth[*b].total_cmp(&worth[*a]);
            company(*a).cmp(&company(*b)).then(value).then(a.cmp(b))
        });
        order
    }

    fn problem(&self, rows: &[RowSpec], scene: &Scene, offers: &[Offer<'_>]) -> Problem {
        let Self { model, goods, .. } = *self;
        let answers: Vec<_> =
            rows.iter().map(|row| goods.ask_all(row.shape, &row.alternatives)).collect();
        let mut groups = indexmap::IndexSet::new();
        let bin = |(at, offer): (usize, &Offer<'_>)| {
            let admits: Vec<bool> = answers.iter().map(|a| goods.admits(a, at)).collect();
            let facts = &goods.facts[at];
            Bin {
                price: goods.price(at),
                room: facts.room.clone(),
                group: groups.insert_full(admits).0,
                tier: model.market.stalls[offer.stall].tier,
                budget: offer.stall,
                charge: facts.charge.clone(),
                reservation: facts.reservation,
                start: facts.start,
            }
        };
        let bins: Vec<Bin> = offers.iter().enumerate().map(bin).collect();
        let row = |spec: &RowSpec| Row {
            shape: spec.shape,
            request: model.requests[spec.shape].clone(),
            count: spec.count,
        };
        Problem {
            rows: rows.iter().map(row).collect(),
            skyline: skylines(&bins, model.market.tiers),
            bins,
            admits: groups.into_iter().collect(),
            budgets: scene.budgets.clone(),
            rules: model.topology.node_rules.clone(),
            starts: goods.starts.clone(),
        }
    }

    fn bought(&self, problem: &Problem, packed: &Packed) -> Bought {
        let offers = super::substitutes::offers(self.goods, self.model, problem, packed);
        let shape = |row: usize| problem.rows[row].shape;
        let mut load: Vec<(usize, i64)> = Vec::new();
        for (row, count) in &packed.load {
            match load.iter_mut().find(|(known, _)| *known == shape(*row)) {
                Some((_, sum)) => *sum += count,
                None => load.push((shape(*row), *count)),
            }
        }
        load.sort_unstable();
        Bought { offers, load, copies: packed.copies }
    }
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
