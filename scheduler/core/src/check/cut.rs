//! Cutting a refused plan down to what stands up to the check.
//!
//! Invariant: what comes out passes the check. Only what a violation names goes, with what cannot
//! be without it: a node without pods, a disruption without a place for each of its pods. Runs only
//! after a refusal.

pub(crate) mod part;

use std::collections::{BTreeMap, BTreeSet};

use crate::answer::{Placement, Plan, Target, Unplaced};
use crate::bound::LowerBound;
use crate::check::{Part, Violation, check};
use crate::planted;
use crate::question::PlanInput;
use crate::reason::{Obstacle, Reason};
use crate::vocabulary::ids::PodUid;
use crate::vocabulary::pool::DisruptionReason;

/// Most times that what is left is checked again. Each round takes out everything that is named at
/// once; what is refused after that many is given up whole.
const ROUNDS_MAX: usize = 16;

/// The part of a plan that passes [`check`], and what was found on the way there; nothing when it
/// passed as it was. Pods that lose their place are unplaced with a reason. A bound that is not
/// proved is left out.
#[must_use]
pub fn cut(mut plan: Plan, input: &PlanInput) -> (Plan, Vec<Violation>) {
    let mut found: Vec<Violation> = Vec::new();
    for round in 0..=ROUNDS_MAX {
        let violations = check(&plan, input);
        if violations.is_empty() {
            return (plan, found);
        }
        let mut blame = Blame::default();
        let named = violations.iter().all(|violation| !violation.about.is_empty());
        if named && round < ROUNDS_MAX && !planted::is("S16") {
            blame.add_all(&plan, input, &violations);
        } else {
            blame.add_everything(&plan, &violations[0]);
        }
        plan = blame.without(plan, input);
        found.extend(violations);
    }
    (plan, found)
}

/// What is to go, with what was found of it.
#[derive(Debug, Default)]
struct Blame {
    pods: BTreeMap<PodUid, String>,
    launches: BTreeMap<usize, String>,
    disruptions: BTreeSet<usize>,
    bound: bool,
}

impl Blame {
    fn add_all(&mut self, plan: &Plan, input: &PlanInput, violations: &[Violation]) {
        let mut there: BTreeMap<&Target, Vec<&PodUid>> = BTreeMap::new();
        for Placement { pod, target } in plan.places() {
            there.entry(target).or_default().push(pod);
        }
        for (violation, part) in violations.iter().flat_map(|v| v.about.iter().map(move |p| (v, p)))
        {
            let why = || violation.to_string();
            match part {
                Part::Bound => self.bound = true,
                Part::Pod(pod) => drop(self.pods.insert(pod.clone(), why())),
                Part::Launch(at) | Part::Place(Target::New(at)) => {
                    self.launches.insert(*at, why());
                }
                Part::Disruption(at) => drop(self.disruptions.insert(*at)),
                Part::Place(target) => {
                    let guests = there.get(target).into_iter().flatten();
                    self.pods.extend(guests.map(|pod| ((*pod).clone(), why())));
                }
                Part::Arrivals { target, shape, count } => {
                    let guests = there.get(target).into_iter().flatten().copied();
                    let same = |pod: &&PodUid| {
                        input.world.pods.get(*pod).is_some_and(|pod| pod.shape == *shape)
                    };
                    let same: BTreeSet<&PodUid> = guests.filter(same).collect();
                    let count = usize::try_from(*count).unwrap_or(usize::MAX);
                    let last = same.into_iter().rev().take(count);
                    self.pods.extend(last.map(|pod| (pod.clone(), why())));
                }
            }
        }
        self.close(plan);
    }

    fn add_everything(&mut self, plan: &Plan, violation: &Violation) {
        let why = violation.to_string();
        let pods = plan.placements.iter().map(|placement| (placement.pod.clone(), why.clone()));
        self.pods.extend(pods);
        self.launches.extend((0..plan.launches.len()).map(|at| (at, why.clone())));
        self.disruptions.extend(0..plan.disruptions.len());
        self.bound = true;
    }

    /// Adds what cannot be without what goes, until nothing more has to.
    fn close(&mut self, plan: &Plan) {
        for Placement { pod, target } in plan.places() {
            if let Target::New(at) = target
                && let Some(why) = self.launches.get(at)
            {
                self.pods.insert(pod.clone(), why.clone());
            }
        }
        for (at, disruption) in plan.disruptions.iter().enumerate() {
            // An interrupted node goes whether or not its pods have a place.
            let asked = disruption.reason != DisruptionReason::Interrupted;
            let lost = disruption.moves.iter().any(|step| self.pods.contains_key(&step.pod));
            let bare = disruption.replacements.iter().any(|at| self.launches.contains_key(at));
            if asked && (lost || bare) {
                self.disruptions.insert(at);
            }
        }
        let mut left: BTreeMap<usize, usize> = BTreeMap::new();
        for Placement { target, .. } in self.kept(plan) {
            if let Target::New(at) = target {
                *left.entry(*at).or_default() += 1;
            }
        }
        let standing = plan.standing(|at| !self.disruptions.contains(&at));
        let empty = |at: &usize| !standing[*at] && !left.contains_key(at);
        let empty: Vec<usize> = (0..plan.launches.len()).filter(empty).collect();
        for at in empty {
            self.launches.entry(at).or_insert_with(|| "no pods are left for it".to_owned());
        }
    }

    /// Placements and moves that stay.
    fn kept<'p>(&self, plan: &'p Plan) -> impl Iterator<Item = &'p Placement> {
        let disruptions = plan.disruptions.iter().enumerate();
        let going = disruptions.filter(|(at, _)| !self.disruptions.contains(at));
        let moves = going.flat_map(|(_, disruption)| &disruption.moves);
        plan.placements.iter().chain(moves).filter(|step| !self.pods.contains_key(&step.pod))
    }

    /// The plan without what is to blame, told as it is then.
    fn without(&self, mut plan: Plan, input: &PlanInput) -> Plan {
        let staying: BTreeSet<PodUid> = self.kept(&plan).map(|step| step.pod.clone()).collect();
        let placed: BTreeSet<PodUid> = plan.placements.iter().map(|p| p.pod.clone()).collect();
        let before = plan.launches.clone();
        self.keep_disruptions(&mut plan);
        plan.placements.retain(|placement| !self.pods.contains_key(&placement.pod));
        let kept = (0..before.len()).filter(|at| !self.launches.contains_key(at));
        let renamed: BTreeMap<usize, usize> =
            kept.enumerate().map(|(new, old)| (old, new)).collect();
        plan.launches = renamed.keys().map(|old| before[*old].clone()).collect();
        for launch in &mut plan.launches {
            launch.pods.retain(|pod| staying.contains(pod));
        }
        let moves = plan.disruptions.iter_mut().flat_map(|disruption| &mut disruption.moves);
        for Placement { target, .. } in plan.placements.iter_mut().chain(moves) {
            if let Target::New(at) = target {
                *at = renamed.get(at).copied().unwrap_or(usize::MAX);
            }
        }
        for disruption in &mut plan.disruptions {
            let new = disruption.replacements.iter().filter_map(|at| renamed.get(at).copied());
            disruption.replacements = new.collect();
        }
        self.unplace(&mut plan, input, &placed);
        let price: i64 = plan.launches.iter().map(|launch| launch.price()).sum();
        plan.fleet_price_micro_usd_per_hour +=
            price - before.iter().map(|launch| launch.price()).sum::<i64>();
        plan.launch_price_micro_usd_per_hour = price;
        plan.launch_cost_micro_usd_per_hour = plan.launches.iter().map(|l| l.cost()).sum();
        if self.bound || plan.launches != before {
            (plan.bound, plan.gap_ppm) = (LowerBound::default(), 0);
        }
        plan
    }

    /// Takes disruptions out; the price of nodes that stay counts again.
    fn keep_disruptions(&self, plan: &mut Plan) {
        let launches = &plan.launches;
        let mut back = 0;
        let mut at = 0;
        plan.disruptions.retain_mut(|disruption| {
            let kept = !self.disruptions.contains(&at);
            at += 1;
            disruption.moves.retain(|step| !self.pods.contains_key(&step.pod));
            if !kept && disruption.reason != DisruptionReason::Interrupted {
                let spent = disruption.replacements.iter().filter_map(|at| launches.get(*at));
                back += disruption.saving_micro_usd_per_hour;
                back += spent.map(|launch| launch.price()).sum::<i64>();
            }
            kept
        });
        plan.fleet_price_micro_usd_per_hour += back;
    }

    /// Says of pods that have lost their place why; those that only were to move stay where they
    /// are.
    fn unplace(&self, plan: &mut Plan, input: &PlanInput, placed: &BTreeSet<PodUid>) {
        let known: BTreeSet<PodUid> = plan.unplaced.iter().flat_map(|u| u.pods.clone()).collect();
        for (uid, why) in self.pods.iter().filter(|(uid, _)| !known.contains(*uid)) {
            let Some(pod) = input.world.pods.get(uid) else { continue };
            let Some(shape) = input.world.shapes.get(&pod.shape) else { continue };
            if pod.node.is_some() && !placed.contains(uid) {
                continue;
            }
            let at = plan.unplaced.partition_point(|unplaced| unplaced.shape < pod.shape);
            if plan.unplaced.get(at).is_none_or(|unplaced| unplaced.shape != pod.shape) {
                let reason =
                    Reason::leaf(shape.subject(), Obstacle::Refused { found: why.clone() });
                let (shape, pods) = (pod.shape.clone(), Vec::new());
                plan.unplaced.insert(at, Unplaced { shape, pods, reason });
            }
            plan.unplaced[at].pods.push(uid.clone());
            plan.unplaced[at].pods.sort_unstable();
        }
    }
}
