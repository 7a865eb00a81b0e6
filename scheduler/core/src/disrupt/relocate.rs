//! Trying to move the pods of some nodes elsewhere.
//!
//! Invariant: a trial that is not taken leaves the scene exactly as it was.

use crate::disrupt::Context;
use crate::disrupt::candidate::Candidate;
use crate::model::Model;
use crate::pack::problem::limits::Budget;
use crate::place::state::{OnHost, Scene};
use crate::place::{Placed, Placer, buffers};
use crate::question::Effort;
use crate::topology::preferences::Wishes;
use crate::topology::split_shapes::Given;
use crate::world::topology::{Group, GroupRule, GroupSpec};

/// Nodes taken out of the scene, with what it takes to put them back.
pub(crate) struct Relocation<'t, 'g, 'm, 'a> {
    context: &'t mut Context<'g, 'm, 'a>,
    gone: Vec<usize>,
    wanted: Vec<i64>,
    /// What buffers had on the nodes.
    buffered: Vec<OnHost>,
    groups: Vec<Group>,
    residents: Vec<Group>,
    budgets: Vec<Budget>,
    open: Vec<bool>,
}

impl<'t, 'g, 'm, 'a> Relocation<'t, 'g, 'm, 'a> {
    /// Takes the nodes out of the scene.
    pub(crate) fn of(context: &'t mut Context<'g, 'm, 'a>, gone: &[&Candidate<'a>]) -> Self {
        let scene = &mut context.scene;
        let wanted = wanted(context.model, gone);
        let (groups, budgets) = (scene.topology.groups.clone(), scene.budgets.clone());
        let residents = scene.residents.groups.clone();
        let open = scene.open.clone();
        let hosts = &context.model.hosts;
        for (host, open) in hosts.iter().zip(&mut scene.open) {
            // Only nodes that have settled take moved pods.
            let settled = host.claim.as_ref().is_none_or(|claim| claim.initialized_ms.is_some());
            *open &= host.node.is_some() && settled;
        }
        let mut buffered = Vec::new();
        for candidate in gone {
            scene.open[candidate.host] = false;
            for (shape, count) in buffers::on_host(context.model, scene, candidate.host) {
                let there = OnHost { host: candidate.host, shape, count, given: Given::new() };
                scene.put(context.model, &there, -1);
                buffered.push(there);
            }
            let host = &hosts[candidate.host];
            for (shape, _) in &candidate.pods {
                let gone = |spec: &GroupSpec| {
                    let domain = host.label(&spec.key).filter(|_| host.counts_for(&spec.filter));
                    domain.map(|domain| (domain, -1))
                };
                scene.topology.record(*shape, gone);
                scene.residents.record(*shape, gone);
            }
        }
        let gone = gone.iter().map(|candidate| candidate.host).collect();
        Self { context, gone, wanted, buffered, groups, residents, budgets, open }
    }

    /// Keeps the pods off these hosts.
    pub(crate) fn avoiding(self, hosts: impl Iterator<Item = usize>) -> Self {
        hosts.for_each(|host| self.context.scene.open[host] = false);
        self
    }

    /// All pods on other nodes that exist; nothing is bought.
    pub(crate) fn onto_hosts(self) -> Option<Placed> {
        self.attempt(false, |_| true)
    }

    /// The same, when `accept` takes it.
    pub(crate) fn onto_hosts_if(self, accept: impl FnOnce(&mut Placed) -> bool) -> Option<Placed> {
        self.attempt(false, accept)
    }

    /// All pods somewhere, whatever it costs.
    pub(crate) fn anywhere(self) -> Option<Placed> {
        self.attempt(true, |_| true)
    }

    /// All pods somewhere, when `accept` takes what would be bought, which it may narrow.
    pub(crate) fn if_worth(self, accept: impl FnOnce(&mut Placed) -> bool) -> Option<Placed> {
        self.attempt(true, accept)
    }

    fn attempt(self, buy: bool, accept: impl FnOnce(&mut Placed) -> bool) -> Option<Placed> {
        let Context { model, goods, effort, .. } = *self.context;
        let effort = if effort == Effort::Max { Effort::Default } else { Effort::Greedy };
        let placer = Placer { model, goods, effort, buy };
        let mut placed = placer.together(self.context.scene, &self.wanted, Wishes::All);
        if !self.buffered.is_empty() && placed.unplaced.is_empty() {
            let mut wanted = vec![0; model.shapes.len()];
            self.buffered.iter().for_each(|there| wanted[there.shape] += there.count);
            placed.add(buffers::unseen(&placer, self.context.scene, &wanted));
        }
        let scene = &mut *self.context.scene;
        scene.open = self.open;
        let broken = breaks_rules(&self.groups, &scene.topology.groups)
            || leaves_alone(&self.residents, scene);
        if placed.unplaced.is_empty() && !broken && accept(&mut placed) {
            for host in self.gone {
                scene.open[host] = false;
            }
            return Some(placed);
        }
        for there in &placed.hosts {
            scene.put(model, there, -1);
        }
        self.buffered.iter().for_each(|there| scene.put(model, there, 1));
        scene.topology.groups = self.groups;
        scene.residents.groups = self.residents;
        scene.budgets = self.budgets;
        None
    }
}

/// Pods that nodes would lose, by shape.
pub(crate) fn wanted(model: &Model<'_>, gone: &[&Candidate<'_>]) -> Vec<i64> {
    let mut wanted = vec![0; model.shapes.len()];
    for (shape, _) in gone.iter().flat_map(|candidate| &candidate.pods) {
        wanted[*shape] += 1;
    }
    wanted
}

/// True when some domain has more pods too many than before: moving a pod must not leave those that follow
/// it alone, nor bring a domain that others would have to level.
fn breaks_rules(before: &[Group], after: &[Group]) -> bool {
    let both = before.iter().zip(after).filter(|(_, group)| group.spec.wish.is_none());
    both.into_iter().any(|(before, after)| {
        let (floor, floor_before) = (after.floor(), before.floor());
        after.tallies().any(|(domain, here)| {
            let known = before.excess(before.tally(domain), floor_before);
            after.excess(here, floor) > known.max(0)
        })
    })
}

/// True when the last pods leave a domain that were company there, and others come that need some: by the time
/// these are bound, there may be company only elsewhere.
fn leaves_alone(before: &[Group], scene: &Scene) -> bool {
    let residents = before.iter().zip(&scene.residents.groups);
    residents.zip(&scene.topology.groups).any(|((before, stay), all)| {
        let spec = &stay.spec;
        let affinity = spec.wish.is_none() && spec.rule == GroupRule::Affinity;
        let lost = |domain: &str| {
            before.tally(domain).members > 0
                && stay.tally(domain).members == 0
                && all.tally(domain).owners > 0
        };
        affinity && !stay.is_unbegun() && stay.tallies().any(|(domain, _)| lost(domain))
    })
}
