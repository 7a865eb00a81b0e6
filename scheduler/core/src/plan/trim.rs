//! Trimming: pods whose rule no longer holds because others found no place are taken back.
//!
//! Invariant: when this ends, every rule over wide domains holds for what is placed, whatever limits or
//! missing capacity did to the rest. Nothing is trimmed when everything found a place.

use super::goods::Goods;
use super::model::Model;
use super::place::{Bought, Placed};
use super::rows::Refused;
use super::scene::{OnHost, Scene};
use crate::reason::Obstacle;
use crate::world::topology::{Group, GroupRule};

/// A domain with too many pods of some shape.
struct Excess {
    group: usize,
    shape: usize,
    domain: String,
    count: i64,
}

/// Takes back pods until every rule holds.
pub(crate) fn to_rules(
    model: &Model<'_>,
    goods: &Goods<'_, '_>,
    scene: &mut Scene,
    placed: &mut Placed,
) {
    if placed.unplaced.is_empty() || scene.topology.groups.is_empty() {
        return;
    }
    while let Some(excess) = find(model, goods, scene, placed) {
        let count = take_back(model, goods, scene, placed, &excess);
        if count == 0 {
            return;
        }
        let group = &scene.topology.groups[excess.group];
        let obstacle = Obstacle::Topology { rule: group.rule.kind(), key: group.key.clone() };
        placed.unplaced.push(Refused { shape: excess.shape, count, obstacle });
    }
    placed.nodes.retain(|node| !node.load.is_empty());
}

/// The first rule that does not hold for pods of this plan.
fn find(
    model: &Model<'_>,
    goods: &Goods<'_, '_>,
    scene: &Scene,
    placed: &Placed,
) -> Option<Excess> {
    for (index, group) in scene.topology.groups.iter().enumerate() {
        let floor = group.floor(group.universe.iter());
        for domain in group.tallies.keys() {
            let excess = excess_of(group, domain, floor);
            if excess <= 0 {
                continue;
            }
            for shape in (0..model.shapes.len()).filter(|shape| group.owners[*shape]) {
                let here = count((model, goods), placed, shape, group, domain);
                if here > 0 {
                    let (domain, count) = (domain.clone(), here.min(excess));
                    return Some(Excess { group: index, shape, domain, count });
                }
            }
        }
    }
    None
}

/// How many owners a domain has too many.
fn excess_of(group: &Group, domain: &str, floor: i64) -> i64 {
    let here = group.tally(domain);
    match group.rule {
        GroupRule::Spread { max_skew, .. } if here.owners > 0 => here.members - floor - max_skew,
        GroupRule::Affinity if here.members == 0 => here.owners,
        GroupRule::Spread { .. } | GroupRule::Affinity | GroupRule::AntiAffinity => 0,
    }
}

/// Pods of a shape that this plan has put in a domain.
fn count(
    (model, goods): (&Model<'_>, &Goods<'_, '_>),
    placed: &Placed,
    shape: usize,
    group: &Group,
    domain: &str,
) -> i64 {
    let hosts = placed
        .hosts
        .iter()
        .filter(|on| on.shape == shape && model.hosts[on.host].label(&group.key) == Some(domain));
    let nodes = placed.nodes.iter().filter(|node| is_in(goods, node, &group.key, domain));
    let loads = nodes.flat_map(|node| node.load.iter().map(|(s, n)| (*s, n * node.copies)));
    let new: i64 = loads.filter(|(other, _)| *other == shape).map(|(_, count)| count).sum();
    hosts.map(|on| on.count).sum::<i64>() + new
}

fn is_in(goods: &Goods<'_, '_>, node: &Bought, key: &str, domain: &str) -> bool {
    node.offers.first().is_some_and(|offer| goods.label(*offer, key) == Some(domain))
}

/// Takes pods back, newest nodes first, and says how many.
fn take_back(
    model: &Model<'_>,
    goods: &Goods<'_, '_>,
    scene: &mut Scene,
    placed: &mut Placed,
    excess: &Excess,
) -> i64 {
    let key = scene.topology.groups[excess.group].key.clone();
    let mut left = excess.count;
    let mut split = Vec::new();
    for node in placed.nodes.iter_mut().rev() {
        if !is_in(goods, node, &key, &excess.domain) {
            continue;
        }
        while left > 0 && node.load.iter().any(|(shape, _)| *shape == excess.shape) {
            let mut one = Bought { copies: 1, ..node.clone() };
            node.copies -= 1;
            left -= remove(&mut one, excess.shape, left);
            split.push(one);
            if node.copies == 0 {
                node.load.clear();
            }
        }
    }
    placed.nodes.retain(|node| node.copies > 0);
    placed.nodes.extend(split.into_iter().filter(|node| !node.load.is_empty()));
    for on in &mut placed.hosts {
        let here = model.hosts[on.host].label(&key) == Some(excess.domain.as_str());
        if left > 0 && on.shape == excess.shape && here {
            let count = on.count.min(left);
            scene.put(model, &OnHost { count, ..on.clone() }, -1);
            on.count -= count;
            left -= count;
        }
    }
    let taken = excess.count - left;
    uncount(scene, excess, taken);
    taken
}

fn remove(node: &mut Bought, shape: usize, most: i64) -> i64 {
    let mut taken = 0;
    for (other, count) in &mut node.load {
        if *other == shape {
            taken = most.min(*count);
            *count -= taken;
        }
    }
    node.load.retain(|(_, count)| *count > 0);
    taken
}

/// Counts the pods out of the domain; other keys of the shape are counted by the same pods elsewhere
/// and stay as they were, which only makes the rules stricter.
fn uncount(scene: &mut Scene, excess: &Excess, count: i64) {
    let key = scene.topology.groups[excess.group].key.clone();
    for index in scene.topology.groups_of(excess.shape).to_vec() {
        let group = &mut scene.topology.groups[index];
        if group.key == key {
            group.record(excess.shape, &excess.domain, -count);
        }
    }
}
