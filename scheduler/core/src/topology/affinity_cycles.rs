//! Affinity cycles: pods that wait for each other's company, none of which kube-scheduler would
//! bind first.
//!
//! Invariant: what is left to place can be bound in some order as far as required pod affinity
//! goes.

use crate::model::Model;
use crate::reason::{Obstacle, TopologyRule};
use crate::vocabulary::labels::HOSTNAME;
use crate::world::topology::{GroupRule, Topology};

/// A rule that its owners need company.
struct Bond<'r> {
    key: &'r str,
    /// Whether somebody is there already.
    occupied: bool,
    owns: Box<dyn Fn(usize) -> bool + 'r>,
    counts: Box<dyn Fn(usize) -> bool + 'r>,
}

/// For each shape what keeps its pods from ever being bound; none for almost all. `occupied` says
/// which node rules have a member on some node.
pub(crate) fn without_offer(
    model: &Model<'_>,
    topology: &Topology,
    wanted: &[i64],
    occupied: &[bool],
) -> Vec<Option<Obstacle>> {
    let bonds = bonds(topology, occupied);
    let mut refused: Vec<Option<Obstacle>> = vec![None; model.shapes.len()];
    if bonds.is_empty() {
        return refused;
    }
    let mut bound = vec![false; wanted.len()];
    // Each round binds those whose company is bound by now.
    loop {
        let holds = |shape: usize, bond: &Bond<'_>| {
            let comes = || (0..bound.len()).any(|other| bound[other] && (bond.counts)(other));
            !(bond.owns)(shape) || bond.occupied || (bond.counts)(shape) || comes()
        };
        let next: Vec<usize> = (0..wanted.len())
            .filter(|shape| wanted[*shape] > 0 && !bound[*shape])
            .filter(|shape| bonds.iter().all(|bond| holds(*shape, bond)))
            .collect();
        if next.is_empty() {
            break;
        }
        next.into_iter().for_each(|shape| bound[shape] = true);
    }
    for shape in (0..wanted.len()).filter(|shape| wanted[*shape] > 0 && !bound[*shape]) {
        let comes = |bond: &&Bond<'_>| (0..bound.len()).any(|o| bound[o] && (bond.counts)(o));
        let missing =
            bonds.iter().find(|bond| (bond.owns)(shape) && !bond.occupied && !comes(bond));
        let key = missing.map_or(HOSTNAME, |bond| bond.key).to_owned();
        let rule = TopologyRule::Affinity;
        refused[shape] = Some(Obstacle::Topology { rule, key, held_by: None });
    }
    refused
}

fn bonds<'t>(topology: &'t Topology, occupied: &[bool]) -> Vec<Bond<'t>> {
    let near = topology
        .groups
        .iter()
        .filter(|group| group.spec.preference.is_none() && group.spec.rule == GroupRule::Affinity);
    let wide = near.map(|group| Bond {
        key: &group.spec.key,
        occupied: !group.has_no_members(),
        owns: Box::new(|shape| group.spec.owners.contains(shape)),
        counts: Box::new(|shape| group.spec.members.contains(shape)),
    });
    let narrow = topology.node_rules.required_affinities().map(|(index, rule)| Bond {
        key: HOSTNAME,
        occupied: occupied[index],
        owns: Box::new(|shape| rule.owners[shape]),
        counts: Box::new(|shape| rule.members[shape]),
    });
    wide.chain(narrow).collect()
}
