//! Trimming: pods whose rule no longer holds because others found no place are taken back.
//!
//! Invariant: when this ends, every rule over wide domains holds for what is placed, whatever limits or
//! missing capacity did to the rest. Nothing is trimmed when everything found a place.

use super::goods::Goods;
use super::model::Model;
use super::place::{Bought, Placed};
use super::rows::Refused;
use super::scene::{OnHost, Scene};
use crate::pack::rules::Tally;
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
    see_new_domains(model, goods, scene, placed);
    while let Some(excess) = find(model, goods, scene, placed) {
        let count = take_back(model, goods, scene, placed, &excess);
        if count == 0 {
            return;
        }
        let spec = &scene.topology.groups[excess.group].spec;
        let obstacle = Obstacle::Topology { rule: spec.rule.kind(), key: spec.key.clone() };
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
    let groups = scene.topology.groups.iter().enumerate();
    for (index, group) in groups.filter(|(_, group)| group.spec.wish.is_none()) {
        let floor = group.floor();
        for (domain, here) in group.tallies() {
            let excess = excess_of(group, here, floor);
            if excess <= 0 {
                continue;
            }
            let least = |shape: &usize| (model.shapes[*shape].priority, *shape);
            let mut owners: Vec<usize> = group.spec.owners.iter().collect();
            owners.sort_by_key(least);
            for shape in owners {
                let here = count((model, goods), placed, shape, (group, domain));
                if here > 0 {
                    let (domain, count) = (domain.to_owned(), here.min(excess));
                    return Some(Excess { group: index, shape, domain, count });
                }
            }
        }
    }
    None
}

/// Nodes bought for others may bring domains that a spread has to level, which does not ask whether its
/// own pods may go there.
fn see_new_domains(model: &Model<'_>, goods: &Goods<'_, '_>, scene: &mut Scene, placed: &Placed) {
    let spreads = scene.topology.groups.iter_mut().filter(|group| {
        group.spec.wish.is_none() && group.spec.rule.is_spread() && group.has_owners()
    });
    for group in spreads {
        let spec = std::rc::Rc::clone(&group.spec);
        let offers = placed.nodes.iter().filter_map(|node| node.offers.first());
        let counts = offers.filter(|offer| goods.counts_for(**offer, &spec.filter));
        group.widen(
            counts.filter_map(|offer| goods.label(*offer, &spec.key)).map(str::to_owned).collect(),
        );
        let counted = goods.places.counted(model, &spec.filter, &spec.key);
        group.widen(counted.iter().cloned().collect());
    }
}

/// How many owners a domain has too many.
fn excess_of(group: &Group, here: Tally, floor: i64) -> i64 {
    match group.spec.rule {
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
    (group, domain): (&Group, &str),
) -> i64 {
    let key = group.spec.key.as_str();
    let hosts = placed
        .hosts
        .iter()
        .filter(|on| on.shape == shape && model.hosts[on.host].label(key) == Some(domain));
    let nodes = placed.nodes.iter().filter(|node| is_in(goods, node, key, domain));
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
    let key = scene.topology.groups[excess.group].spec.key.clone();
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
    let key = scene.topology.groups[excess.group].spec.key.clone();
    scene.topology.record_in(excess.shape, &key, &excess.domain, -count);
}
