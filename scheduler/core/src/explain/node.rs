//! Why a node of ours stays: what keeps it from going although it must, or from being consolidated.
//!
//! Invariant: judged by the planner's own clocks, budgets and counts, after what the plan itself
//! takes out of service; nothing here bears on what is planned.

mod text;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::answer::Plan;
use crate::disrupt::allowance::Allowance;
use crate::disrupt::candidate::{self, Candidate};
use crate::model::Model;
use crate::model::existing::ExistingNode;
use crate::question::{PlanInput, Spared};
use crate::vocabulary::ids::{ClaimName, NodeName, ObjectKey};
use crate::vocabulary::pool::{ConsolidationPolicy, DisruptionReason};
use crate::world::pod::{DoNotDisrupt, Pod};

/// What becomes of a node of ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeAnswer {
    /// Its claim.
    pub claim: ClaimName,
    /// The node.
    pub node: NodeName,
    /// Whether it goes.
    pub fate: Fate,
    /// What keeps it; empty while it goes.
    pub holds: Vec<Hold>,
}

/// Whether a node goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is on its way out; why, where that is known.
    Leaving(Option<DisruptionReason>),
    /// The plan takes it out of service.
    Goes(DisruptionReason),
    /// It has to go, and is kept.
    MustGo(DisruptionReason),
    /// It need not go.
    Stays,
}

/// One thing that keeps a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hold {
    /// What keeps it, as `Kind/name`.
    pub subject: String,
    /// By which rule.
    pub rule: HoldRule,
}

/// The rule by which a node is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HoldRule {
    /// It has not taken pods yet.
    NotInitialized,
    /// It was bought in place of a node that has not gone.
    Awaited,
    /// Its disruption has been called off.
    CalledOff {
        /// How long it is left alone from now, in milliseconds.
        for_ms: i64,
    },
    /// Something that it depends on cannot be read.
    Unreadable,
    /// An annotation on the subject.
    DoNotDisrupt {
        /// How long it holds from now, in milliseconds; none for ever.
        for_ms: Option<i64>,
    },
    /// The pod could not be placed again.
    NotPlaceable,
    /// A PodDisruptionBudget that allows no eviction.
    Budget {
        /// Pods on the node that it covers.
        pods: usize,
        /// True when it can never allow one.
        never: bool,
    },
    /// Several PodDisruptionBudgets cover the pod.
    TwoBudgets {
        /// Which.
        budgets: Vec<ObjectKey>,
    },
    /// The budgets of the pool are used up.
    PoolBudget {
        /// Nodes of the pool that are disrupted or not ready.
        disturbed: i64,
        /// How many may be.
        allowed: i64,
        /// For which reason.
        reason: DisruptionReason,
    },
    /// The first new nodes of the rollout have not proven themselves.
    Canary,
    /// The pool bounds how many pods are moved within an hour to save money.
    Evictions {
        /// Pods that would have to move.
        pods: usize,
        /// How many may at present.
        left: i64,
    },
    /// The pool removes only nodes without pods.
    WhenEmpty {
        /// Pods that would have to move.
        pods: usize,
    },
    /// The pool consolidates never.
    Never,
    /// The pool keeps a number of nodes.
    Replicas,
    /// Pods came or left too recently.
    NotQuiet {
        /// How much longer, in milliseconds.
        for_ms: i64,
    },
    /// Neither other nodes nor cheaper ones are worth moving its pods for.
    NothingBetter {
        /// Pods that would have to move.
        pods: usize,
        /// When less of a saving will do, in milliseconds from now; none when time changes nothing.
        less_after_ms: Option<i64>,
    },
    /// The plan puts pods there.
    Receives,
    /// The plan has more to do first, or was not asked to consolidate.
    NotInThisPlan,
}

/// What becomes of each node of ours, in order of claims.
#[must_use]
pub fn explain_nodes(input: &PlanInput, plan: &Plan) -> Vec<NodeAnswer> {
    let model = Model::new(input);
    let candidates = candidate::all(&model);
    let mut allowance = Allowance::new(&model);
    let disrupted = plan.disruptions.iter();
    let goes: BTreeMap<&ClaimName, DisruptionReason> =
        disrupted.flat_map(|it| it.claims.iter().map(|claim| (claim, it.reason))).collect();
    let goes = |claim: &ClaimName| goes.get(claim).copied();
    for candidate in &candidates {
        if let Some(reason) = goes(&candidate.claim.name) {
            allowance.spend(&[candidate], reason);
        }
    }
    let candidates: BTreeMap<&ClaimName, &Candidate<'_>> =
        candidates.iter().map(|candidate| (&candidate.claim.name, candidate)).collect();
    let targets = plan.places().filter_map(|placement| placement.target.name());
    let receivers = targets.collect();
    let looker = Looker { model: &model, allowance: &allowance, receivers };
    let answer = |existing: &ExistingNode<'_>| {
        let (node, claim) = (existing.node?, existing.claim.as_ref()?);
        let (fate, holds) = match (goes(&claim.name), candidates.get(&claim.name)) {
            (Some(reason), _) => (Fate::Goes(reason), Vec::new()),
            (None, _) if existing.leaving => (Fate::Leaving(claim.disrupted), Vec::new()),
            (None, Some(candidate)) => looker.look(candidate),
            (None, None) => {
                let rule = match (claim.initialized_ms, input.spared(&claim.name)) {
                    (None, _) => HoldRule::NotInitialized,
                    (Some(_), Some(Spared::UntilMs(until_ms))) => {
                        HoldRule::CalledOff { for_ms: until_ms - input.now_ms }
                    }
                    (Some(_), Some(Spared::Unreadable)) => HoldRule::Unreadable,
                    (Some(_), None) => HoldRule::Awaited,
                };
                (Fate::Stays, vec![hold("NodeClaim", &claim.name, rule)])
            }
        };
        Some(NodeAnswer { claim: claim.name.clone(), node: node.name.clone(), fate, holds })
    };
    let mut answers: Vec<_> = model.existing_nodes.iter().filter_map(answer).collect();
    answers.sort_by(|a, b| a.claim.cmp(&b.claim));
    answers
}

fn hold(kind: &str, name: impl std::fmt::Display, rule: HoldRule) -> Hold {
    Hold { subject: format!("{kind}/{name}"), rule }
}

/// Looks for what keeps nodes.
struct Looker<'g, 'a> {
    model: &'g Model<'a>,
    allowance: &'g Allowance<'a>,
    /// Nodes and claims on which the plan puts pods.
    receivers: BTreeSet<&'g str>,
}

impl Looker<'_, '_> {
    fn look(&self, candidate: &Candidate<'_>) -> (Fate, Vec<Hold>) {
        let (fate, reason) = match candidate.must_go {
            Some(reason) => (Fate::MustGo(reason), reason),
            None if candidate.pods.is_empty() => (Fate::Stays, DisruptionReason::Empty),
            None => (Fate::Stays, DisruptionReason::Underutilized),
        };
        let mut holds = Vec::new();
        if !candidate.overrides(reason) {
            holds.extend(self.refusals(candidate));
            holds.extend(self.budgets(candidate));
        }
        holds.extend(self.of_pool(candidate, reason));
        if candidate.must_go.is_none() {
            holds.extend(consolidation(candidate));
        }
        if holds.is_empty() {
            let receives = self.receivers.contains(candidate.node.name.as_str());
            let rule = if receives { HoldRule::Receives } else { unhindered(candidate) };
            holds.push(hold("Node", &candidate.node.name, rule));
        }
        (fate, holds)
    }

    /// Annotations, and pods that could not be placed again.
    fn refusals(&self, candidate: &Candidate<'_>) -> Vec<Hold> {
        let Candidate { node, claim, .. } = candidate;
        let always = || HoldRule::DoNotDisrupt { for_ms: None };
        let mut holds = Vec::new();
        if node.do_not_disrupt {
            holds.push(hold("Node", &node.name, always()));
        } else if claim.do_not_disrupt {
            holds.push(hold("NodeClaim", &claim.name, always()));
        }
        let now_ms = self.model.input.now_ms;
        for pod in self.model.input.world.pods_on(&node.name).filter(|pod| !pod.deleting) {
            let shape = self.model.shape_of(pod);
            let placeable = shape.is_some_and(|shape| {
                let fails = self.model.shapes[shape].unschedulable.is_some();
                !fails || self.model.stays_with_node(shape)
            });
            let rule = match pod.do_not_disrupt {
                DoNotDisrupt::Always => always(),
                DoNotDisrupt::UntilMs(until_ms) if until_ms > now_ms => {
                    HoldRule::DoNotDisrupt { for_ms: Some(until_ms - now_ms) }
                }
                DoNotDisrupt::No | DoNotDisrupt::UntilMs(_) if placeable => continue,
                DoNotDisrupt::No | DoNotDisrupt::UntilMs(_) => HoldRule::NotPlaceable,
            };
            holds.push(hold("Pod", &pod.key, rule));
        }
        holds
    }

    /// PodDisruptionBudgets.
    fn budgets(&self, candidate: &Candidate<'_>) -> Vec<Hold> {
        let mut holds = Vec::new();
        for (index, budget) in self.model.input.world.budgets.values().enumerate() {
            let minds = |(shape, pod): &&(usize, &Arc<Pod>)| {
                self.allowance.minding(*shape, pod).contains(&index)
            };
            let pods = candidate.pods.iter().filter(minds).count();
            if pods > 0 && self.allowance.evictions_left(index) <= 0 {
                let rule = HoldRule::Budget { pods, never: budget.fully_blocking };
                holds.push(hold("PodDisruptionBudget", &budget.key, rule));
            }
        }
        let keys: Vec<&ObjectKey> = self.model.input.world.budgets.keys().collect();
        for (shape, pod) in &candidate.pods {
            let cover = self.allowance.cover(*shape);
            if cover.len() > 1 && !pod.surges {
                let budgets = cover.iter().map(|index| keys[*index].clone()).collect();
                holds.push(hold("Pod", &pod.key, HoldRule::TwoBudgets { budgets }));
            }
        }
        holds
    }

    /// Budgets and rollout of the pool, and its bound on evictions.
    fn of_pool(&self, candidate: &Candidate<'_>, reason: DisruptionReason) -> Vec<Hold> {
        let name = &candidate.pool.name;
        let (disturbed, allowed) = self.allowance.of_pool(self.model, name, reason);
        let used_up = allowed.filter(|allowed| disturbed >= *allowed);
        let budget = used_up.map(|allowed| HoldRule::PoolBudget { disturbed, allowed, reason });
        let drifts = reason == DisruptionReason::Drifted;
        let canary = self.allowance.canaries_left(name).filter(|left| drifts && *left <= 0);
        let canary = canary.map(|_| HoldRule::Canary);
        let left = self.allowance.savings_left(name, reason);
        let left = left.filter(|left| candidate.pod_count() > *left);
        let pods = candidate.pods.len();
        let evictions = left.map(|left| HoldRule::Evictions { pods, left: left.max(0) });
        let rules = budget.into_iter().chain(canary).chain(evictions);
        rules.map(|rule| hold("NodePool", name, rule)).collect()
    }
}

/// What the pool's rules for saving money say of a node.
fn consolidation(candidate: &Candidate<'_>) -> Option<Hold> {
    let (pool, pods) = (candidate.pool, candidate.pods.len());
    let when_empty = pool.disruption.policy == ConsolidationPolicy::WhenEmpty;
    let rule = if pool.replicas.is_some() {
        HoldRule::Replicas
    } else if pool.disruption.consolidate_after_ms.is_none() {
        HoldRule::Never
    } else if when_empty && pods > 0 {
        HoldRule::WhenEmpty { pods }
    } else {
        let for_ms = candidate.quiet_in_ms().filter(|for_ms| *for_ms > 0)?;
        return Some(hold("Node", &candidate.node.name, HoldRule::NotQuiet { for_ms }));
    };
    Some(hold("NodePool", &pool.name, rule))
}

/// Why a node is there that nothing keeps.
fn unhindered(candidate: &Candidate<'_>) -> HoldRule {
    if candidate.must_go.is_some() || candidate.pods.is_empty() {
        return HoldRule::NotInThisPlan;
    }
    let less_after_ms = candidate.pays_in_ms().filter(|in_ms| *in_ms > 0);
    HoldRule::NothingBetter { pods: candidate.pods.len(), less_after_ms }
}
