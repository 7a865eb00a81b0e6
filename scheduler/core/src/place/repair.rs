//! Trimming: pods whose rule no longer holds because others found no place are taken back.
//!
//! Invariant: when this ends, every rule over wide domains holds for what is placed, whatever limits or
//! missing capacity did to the rest. Nothing is trimmed when everything found a place, unless nodes for
//! others have brought a new domain.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::Model;
use crate::offers::priced::Goods;
use crate::offers::priced::min_values;
use crate::pack::problem::vector;
use crate::place::state::{OnHost, Scene};
use crate::place::{Bought, Placed};
use crate::reason::Obstacle;
use crate::topology::split_shapes::{Given, Refused};
use crate::world::topology::{Group, GroupRule, GroupSpec};

/// A domain with too many pods of some shape.
struct Excess {
    key: String,
    domain: String,
    shape: usize,
    count: i64,
    obstacle: Obstacle,
}

impl Excess {
    /// True when pods with this shape and these domains are among those that are too many.
    fn covers(&self, shape: usize, given: &Given) -> bool {
        let there = |(key, domain): &(String, String)| *key == self.key && *domain == self.domain;
        shape == self.shape && given.iter().any(there)
    }
}

/// Takes back pods until every rule holds.
pub(crate) fn to_rules(
    model: &Model<'_>,
    goods: &Goods<'_, '_>,
    scene: &mut Scene,
    placed: &mut Placed,
) {
    see_new_domains(model, goods, scene, placed);
    see_pods_alike(goods, scene, placed);
    while let Some(excess) = find(model, scene, placed) {
        let count = take_back(model, scene, placed, &excess);
        if count == 0 {
            break;
        }
        let Excess { shape, obstacle, .. } = excess;
        placed.unplaced.push(Refused { shape, count, obstacle });
        while let Some(refused) = take_lonely(model, goods, scene, placed) {
            placed.unplaced.push(refused);
        }
    }
    give_back(goods, scene, placed);
    placed.hosts.retain(|on| on.count > 0);
}

/// Nodes on which nothing is left are not bought: what they drew on limits is free again.
fn give_back(goods: &Goods<'_, '_>, scene: &mut Scene, placed: &mut Placed) {
    let empty = placed.nodes.iter().filter(|node| node.load.is_empty());
    for (node, offer) in empty.filter_map(|node| Some((node, *node.offers.first()?))) {
        let stall = goods.offers[offer].stall;
        vector::add(&mut scene.budgets[stall].left, goods.charge(offer), node.copies);
        if let Some(reservation) = goods.facts[offer].reservation {
            scene.budgets[reservation].left[0] += node.copies;
        }
    }
    placed.nodes.retain(|node| !node.load.is_empty());
}

/// Nodes bought for others may bring domains that a spread has to level, which does not ask whether its
/// own pods may go there.
fn see_new_domains(
    model: &Model<'_>,
    goods: &Goods<'_, '_>,
    scene: &mut Scene,
    placed: &mut Placed,
) {
    let spreads = scene.topology.groups.iter_mut().filter(|group| {
        group.spec.wish.is_none() && group.spec.rule.is_spread() && group.has_owners()
    });
    let planned = planned(placed);
    let mut sold: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    for group in spreads {
        let spec = std::rc::Rc::clone(&group.spec);
        group.widen(standing(model, goods, &planned, &spec).into_iter().collect());
        let sold = sold.entry(spec.key.clone()).or_insert_with(|| {
            (0..goods.offers.len()).filter_map(|offer| goods.label(offer, &spec.key)).collect()
        });
        let known = sold.iter().all(|domain| group.universe().contains(*domain));
        if !known && is_tight(group) {
            placed.nodes.iter_mut().for_each(|node| keep_out(goods, group, node));
        }
    }
}

/// Offers that the plan counts on.
pub(crate) fn planned(placed: &Placed) -> BTreeSet<usize> {
    placed.nodes.iter().filter_map(|node| node.offers.first().copied()).collect()
}

/// Domains that a spread sees on nodes that are there or planned.
pub(crate) fn standing(
    model: &Model<'_>,
    goods: &Goods<'_, '_>,
    planned: &BTreeSet<usize>,
    spec: &GroupSpec,
) -> BTreeSet<String> {
    let counts = planned.iter().filter(|offer| goods.counts_for(**offer, &spec.filter));
    let new = counts.filter_map(|offer| goods.label(*offer, &spec.key)).map(str::to_owned);
    let counted = goods.places.counted(model, &spec.filter, &spec.key);
    new.chain(counted.iter().cloned()).collect()
}

/// Drops substitutes of a node where a spread would see the pods that it counts on that node, and on the
/// node as planned not, or the other way round.
fn see_pods_alike(goods: &Goods<'_, '_>, scene: &Scene, placed: &mut Placed) {
    let groups = scene.topology.groups.iter().map(|group| &group.spec);
    let spreads = groups.filter(|spec| spec.wish.is_none() && spec.rule.is_spread());
    for spec in spreads {
        let holds = |node: &&mut Bought| node.load.iter().any(|(it, _)| spec.members.contains(*it));
        for node in placed.nodes.iter_mut().filter(holds) {
            let Some(first) = node.offers.first().copied() else { continue };
            let seen = goods.counts_for(first, &spec.filter);
            let alike = |offer: &usize| goods.counts_for(*offer, &spec.filter) == seen;
            keep(goods, node, alike);
        }
    }
}

/// Drops all other substitutes, unless `minValues` needs them; whether they were dropped.
fn keep(goods: &Goods<'_, '_>, node: &mut Bought, wanted: impl Fn(&usize) -> bool) -> bool {
    let Some(first) = node.offers.first() else { return true };
    let kept: Vec<usize> = node.offers.iter().copied().filter(wanted).collect();
    let stall = goods.offers[*first].stall;
    let may = min_values::obstacle(goods, stall, kept.iter().copied()).is_none();
    if may {
        node.offers = kept;
    }
    may
}

/// True when one more domain, being empty, would leave some domain too full.
fn is_tight(group: &Group) -> bool {
    let GroupRule::Spread { max_skew, .. } = group.spec.rule else { return false };
    group.tallies().any(|(_, here)| here.owners > 0 && here.members > max_skew)
}

/// Drops substitutes that would bring another domain; where that cannot be, it is one to level.
fn keep_out(goods: &Goods<'_, '_>, group: &mut Group, node: &mut Bought) {
    let key = &group.spec.key;
    let label = |offer: &usize| goods.label(*offer, key).map(str::to_owned);
    let brings = |offer: &usize| {
        let new = label(offer).is_some_and(|domain| !group.universe().contains(&domain));
        new && goods.counts_for(*offer, &group.spec.filter)
    };
    let new: Vec<String> = node.offers.iter().filter(|it| brings(it)).filter_map(label).collect();
    if !new.is_empty() && !keep(goods, node, |offer| !brings(offer)) {
        group.widen(new);
    }
}

/// The first rule that does not hold for pods of this plan; of its pods those of the least priority.
fn find(model: &Model<'_>, scene: &Scene, placed: &Placed) -> Option<Excess> {
    for group in scene.topology.groups.iter().filter(|group| group.spec.wish.is_none()) {
        let floor = group.floor();
        for (domain, here) in group.tallies() {
            let most = group.excess(here, floor);
            if most <= 0 {
                continue;
            }
            let (key, rule) = (group.spec.key.clone(), group.spec.rule.kind());
            let held_by = group.emptiest();
            let obstacle = Obstacle::Topology { rule, key: key.clone(), held_by };
            let mut excess =
                Excess { key, domain: domain.to_owned(), shape: 0, count: 0, obstacle };
            let mut owners: Vec<usize> = group.spec.owners.iter().collect();
            owners.sort_by_key(|shape| (model.shapes[*shape].priority, *shape));
            for shape in owners {
                excess.shape = shape;
                excess.count = count(placed, &excess).min(most);
                if excess.count > 0 {
                    return Some(excess);
                }
            }
        }
    }
    None
}

/// Pods that this plan has put where there are too many.
fn count(placed: &Placed, excess: &Excess) -> i64 {
    let hosts = placed.hosts.iter().filter(|on| excess.covers(on.shape, &on.given));
    let new = placed.nodes.iter().flat_map(|node| {
        let there = node.counted.iter().filter(|part| excess.covers(part.shape, &part.given));
        there.map(|part| part.count * node.copies)
    });
    hosts.map(|on| on.count).sum::<i64>() + new.sum::<i64>()
}

/// Takes pods back, newest nodes first, and says how many.
fn take_back(model: &Model<'_>, scene: &mut Scene, placed: &mut Placed, excess: &Excess) -> i64 {
    let mut left = excess.count;
    let mut split = Vec::new();
    for node in placed.nodes.iter_mut().rev() {
        while left > 0 && node.copies > 0 {
            let mut one = Bought { copies: 1, ..node.clone() };
            let taken = remove(&mut one, scene, excess, left);
            if taken == 0 {
                break;
            }
            left -= taken;
            node.copies -= 1;
            split.push(one);
        }
    }
    placed.nodes.retain(|node| node.copies > 0);
    placed.nodes.extend(split);
    for on in placed.hosts.iter_mut().filter(|on| excess.covers(on.shape, &on.given)) {
        let count = on.count.min(left);
        scene.put(model, &OnHost { count, ..on.clone() }, -1);
        scene.uncount(on.shape, &on.given, count);
        on.count -= count;
        left -= count;
    }
    excess.count - left
}

/// Takes back the first pods that have lost their company on a node.
fn take_lonely(
    model: &Model<'_>,
    goods: &Goods<'_, '_>,
    scene: &mut Scene,
    placed: &mut Placed,
) -> Option<Refused> {
    let rules = &model.topology.node_rules;
    let obstacle = Obstacle::lonely();
    for node in &mut placed.nodes {
        let Some(offer) = node.offers.first() else { continue };
        let mut state = goods.starts[goods.facts[*offer].start].clone();
        node.load.iter().for_each(|(shape, count)| rules.record(*shape, *count, &mut state));
        let lonely = |(shape, _): &&(usize, i64)| !rules.has_company(*shape, &state);
        let Some((shape, count)) = node.load.iter().find(lonely).copied() else { continue };
        node.load.retain(|(other, _)| *other != shape);
        for part in node.counted.iter_mut().filter(|part| part.shape == shape) {
            scene.uncount(shape, &part.given, part.count * node.copies);
            part.count = 0;
        }
        return Some(Refused { shape, count: count * node.copies, obstacle });
    }
    let lonely =
        |on: &&mut OnHost| on.count > 0 && !rules.has_company(on.shape, &scene.states[on.host]);
    let on = placed.hosts.iter_mut().find(lonely)?;
    scene.put(model, on, -1);
    scene.uncount(on.shape, &on.given, on.count);
    let count = std::mem::take(&mut on.count);
    Some(Refused { shape: on.shape, count, obstacle })
}

/// Takes at most `most` of the pods off one node, and counts them out of all their domains.
fn remove(node: &mut Bought, scene: &mut Scene, excess: &Excess, most: i64) -> i64 {
    let mut taken = 0;
    for part in node.counted.iter_mut().filter(|part| excess.covers(part.shape, &part.given)) {
        let count = part.count.min(most - taken);
        part.count -= count;
        taken += count;
        scene.uncount(part.shape, &part.given, count);
    }
    for (_, count) in node.load.iter_mut().filter(|(shape, _)| *shape == excess.shape) {
        *count -= taken;
    }
    node.load.retain(|(_, count)| *count > 0);
    taken
}
