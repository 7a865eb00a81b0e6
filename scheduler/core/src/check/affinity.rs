//! Required pod affinity, by binding pods in an order in which kube-scheduler could bind them.
//!
//! Invariant: pods that need no company are bound before those that do, and nobody begins a company
//! while somebody can join one. A node that could end up in several domains is company in none of
//! them.

use std::collections::{BTreeMap, BTreeSet};

use crate::check::census::Census;
use crate::check::{Findings, Rule};
use crate::world::shape::PodShape;

/// A shape with required affinity, and where it has found company so far.
struct Follower {
    kind: usize,
    keys: Vec<String>,
    /// For each shape, whether its pods meet all terms at once: only then they count.
    meets: Vec<bool>,
    /// Domains of each key with such a pod.
    company: Vec<BTreeSet<String>>,
    /// True once such a pod is anywhere that a key knows.
    occupied: bool,
}

/// Pods of one follower that the plan brings to one node.
#[derive(Clone, Copy)]
struct Waiting {
    node: usize,
    follower: usize,
}

pub(super) fn check(census: &Census<'_>, findings: &mut Findings) {
    let mut order = Order::new(census);
    let mut waiting = order.bind_others();
    while !waiting.is_empty() {
        let before = waiting.len();
        waiting.retain(|group| !(order.may_join(*group) && order.bind(*group)));
        if waiting.len() < before {
            continue;
        }
        waiting.retain(|group| !(order.may_begin(*group) && order.bind(*group)));
        if waiting.len() == before {
            break;
        }
    }
    for group in waiting {
        let Follower { kind, keys, .. } = &order.followers[group.follower];
        let (shape, node) = (&census.shapes[*kind].id, census.name(group.node));
        let detail = format!("{shape} on {node}: no company in {}", keys.join(" and "));
        findings.add(Rule::Affinity, (vec![census.arrivals(group.node, *kind, i64::MAX)], detail));
    }
}

/// The state of binding.
struct Order<'c, 'a> {
    census: &'c Census<'a>,
    followers: Vec<Follower>,
    /// For each shape, the followers for which its pods are company.
    led: Vec<Vec<usize>>,
}

impl<'c, 'a> Order<'c, 'a> {
    fn new(census: &'c Census<'a>) -> Self {
        let mut followers = Vec::new();
        let mut led = vec![Vec::new(); census.shapes.len()];
        for (kind, shape) in census.shapes.iter().enumerate() {
            let terms = &shape.required_affinity;
            if terms.is_empty() {
                continue;
            }
            let meets_all =
                |other: &PodShape| terms.iter().all(|term| term.selects(&shape.namespace, other));
            let meets = census.select(meets_all);
            for (other, led) in led.iter_mut().enumerate() {
                if meets[other] {
                    led.push(followers.len());
                }
            }
            let keys: BTreeSet<&str> = terms.iter().map(|t| t.topology_key.as_str()).collect();
            let keys: Vec<String> = keys.into_iter().map(str::to_owned).collect();
            let company = vec![BTreeSet::new(); keys.len()];
            followers.push(Follower { kind, keys, meets, company, occupied: false });
        }
        Self { census, followers, led }
    }

    /// Binds what was there before and what needs nobody; returns what is left to bind.
    fn bind_others(&mut self) -> Vec<Waiting> {
        let census = self.census;
        let of_kind = self.followers.iter().enumerate().map(|(at, f)| (f.kind, at));
        let of_kind: BTreeMap<usize, usize> = of_kind.collect();
        let mut waiting = Vec::new();
        for (node, crowd) in census.crowds.iter().enumerate() {
            for (kind, count) in crowd {
                let follower = of_kind.get(kind).filter(|_| count.arrived > 0);
                waiting.extend(follower.map(|follower| Waiting { node, follower: *follower }));
                if follower.is_none() || count.all > count.arrived {
                    self.add(node, *kind);
                }
            }
        }
        waiting
    }

    /// True when every key of the pods has company in the domain of their node.
    fn may_join(&self, Waiting { node, follower }: Waiting) -> bool {
        let Follower { keys, company, .. } = &self.followers[follower];
        keys.iter().zip(company).all(|(key, company)| {
            let domains = &self.census.domains(key)[node];
            domains.len() == 1 && company.contains(&domains[0])
        })
    }

    /// True when the pods meet their own terms, and nobody is anywhere whom they would have to
    /// join.
    fn may_begin(&self, Waiting { node, follower }: Waiting) -> bool {
        let Follower { kind, keys, meets, occupied, .. } = &self.followers[follower];
        let certain = keys.iter().all(|key| self.census.domains(key)[node].len() == 1);
        meets[*kind] && !occupied && certain
    }

    fn bind(&mut self, group: Waiting) -> bool {
        self.add(group.node, self.followers[group.follower].kind);
        true
    }

    /// Pods of a shape are on a node: company for those who look for them.
    fn add(&mut self, node: usize, kind: usize) {
        for follower in &self.led[kind] {
            let Follower { keys, company, occupied, .. } = &mut self.followers[*follower];
            for (key, company) in keys.iter().zip(company) {
                let domains = &self.census.domains(key)[node];
                *occupied |= !domains.is_empty();
                if let [certain] = domains.as_slice() {
                    company.insert(certain.clone());
                }
            }
        }
    }
}
