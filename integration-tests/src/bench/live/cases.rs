//! What happens to the cluster in each case.
//!
//! Invariant: data; a case is the same for each contender, and each of its phases says what ends
//! it. What becomes of nodes that have to go is in `upkeep`.

pub mod manifests;
mod upkeep;

use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::args::CaseName;
use crate::stage::world::ROOT;
use crate::stage::{crowd, hands};
use manifests::{Pool, SMALL, apart, deployment, disruption_budget, requirement};
use manifests::{spread, supply, with};

/// How long a phase may take until all its pods run.
const LIMIT: Duration = Duration::from_secs(240);
/// The same of thousands of pods, most of which two processors bind and start in that time.
const LIMIT_MANY: Duration = Duration::from_secs(480);
/// A cluster is settled in which nothing has changed for so long.
const QUIET: Duration = Duration::from_secs(30);
/// The same where nodes stay for 30 s after a change.
const QUIET_EXAMPLE: Duration = Duration::from_secs(45);
/// The same of what is bought at once or bit by bit: Longshore may leave pods a minute and a half
/// where they came first, and whether it moves them then belongs to what the purchase was worth.
const QUIET_BURST: Duration = Duration::from_secs(100);
/// The same of a cluster that is left alone: as long as what happened before may have taken.
const QUIET_ALONE: Duration = Duration::from_secs(300);
/// The workload of cases that have one.
const APP: &str = "web";
const CPU: &str = "karpenter.k8s.aws/instance-cpu";
const ZONE: &str = "topology.kubernetes.io/zone";

/// A case.
#[derive(Clone, Debug)]
pub struct Case {
    /// Its name.
    pub name: CaseName,
    /// What happens, for readers.
    pub about: &'static str,
    /// Class and pool.
    pub supply: Vec<Value>,
    /// What happens, one after the other.
    pub phases: Vec<Phase>,
    /// How long nothing may change in a cluster that is settled.
    pub quiet: Duration,
    /// Whether nodes are to be repaired, which Karpenter does only with its feature gate.
    pub repairs: bool,
}

/// A part of a case with figures of its own.
#[derive(Clone, Debug)]
pub struct Phase {
    /// Its name.
    pub name: &'static str,
    /// What is done.
    pub acts: Vec<Act>,
    /// What is waited for.
    pub goal: Goal,
    /// For how long.
    pub limit: Duration,
    /// How many of its pods may be away at once; none where that is not counted.
    pub away: Option<u64>,
}

/// What a user, or AWS, does.
#[derive(Clone, Debug)]
pub enum Act {
    /// Applies manifests.
    Apply(Vec<Value>),
    /// Scales a Deployment.
    Scale(&'static str, u32),
    /// Scales a Deployment up in equal steps.
    Drip {
        /// Its name.
        name: &'static str,
        /// Pods of each step.
        each: u32,
        /// Steps.
        steps: u32,
        /// Time between two.
        every: Duration,
    },
    /// Restarts a Deployment: each pod is replaced, as `kubectl rollout restart` has it.
    Restart(&'static str),
    /// Interrupts so many in ten of the spot instances that run.
    InterruptInTen(usize),
    /// Puts what keeps a node on each node with pods of the cases' Deployment.
    Block,
    /// Takes that away again.
    Unblock,
    /// Deletes every NodeClaim.
    DeleteClaims,
    /// Has the network of a node be broken for an hour.
    Ail,
}

/// What ends a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case", tag = "kind", content = "pods")]
pub enum Goal {
    /// So many pods run, and none waits.
    Run(usize),
    /// The same, and none of those from before is left.
    Renewed(usize),
    /// The same, and none on an instance that was interrupted.
    Rescued(usize),
    /// The same, and none of the nodes from before is left.
    Replaced(usize),
    /// The same, and none of the nodes is left of which the case has said that they have to go.
    Cleared(usize),
    /// Nothing: with so many pods, the phase lasts as long as its limit.
    Elapse(usize),
}

impl Goal {
    /// Of how many pods it is.
    #[must_use]
    pub const fn pods(self) -> usize {
        match self {
            Self::Run(pods)
            | Self::Renewed(pods)
            | Self::Rescued(pods)
            | Self::Replaced(pods)
            | Self::Cleared(pods)
            | Self::Elapse(pods) => pods,
        }
    }

    /// Whether nothing but time is waited for.
    #[must_use]
    pub const fn is_time(self) -> bool {
        matches!(self, Self::Elapse(_))
    }
}

/// A case by its name.
///
/// # Errors
/// When the example that it is made of cannot be read.
pub fn case(name: CaseName) -> Result<Case> {
    Ok(match name {
        CaseName::One => at_once(name, "one pod of 250m and 512Mi", 1, Pool::default()),
        CaseName::Hundred => {
            let about = "a Deployment of 100 pods of 250m and 512Mi";
            Case { quiet: QUIET_BURST, ..at_once(name, about, 100, Pool::default()) }
        }
        CaseName::Drip => drip(),
        CaseName::TwoThousand => {
            let about = "a Deployment of 2,000 pods of 250m and 512Mi, types of 2 to 4 vCPUs";
            at_once(name, about, 2_000, small_types())
        }
        CaseName::TwoThousandThere => two_thousand_there(),
        CaseName::W2 => out_and_back(),
        CaseName::W2Example => w2_example()?,
        CaseName::PerfBasic => perf_basic(),
        CaseName::Mixed => mixed(),
        CaseName::Storm => storm(),
        CaseName::Rolling => rolling(),
        CaseName::Settle => settle(),
        CaseName::Rollout => upkeep::rollout(),
        CaseName::Expiry => upkeep::expiry(),
        CaseName::Blocked => upkeep::blocked(),
        CaseName::Repair => upkeep::repair(),
        CaseName::Unregistered => upkeep::unregistered(),
    })
}

fn at_once(name: CaseName, about: &'static str, pods: u32, pool: Pool) -> Case {
    let acts = vec![Act::Apply(vec![deployment(APP, pods, SMALL)])];
    made(name, about, supply(&pool), vec![phase("out", acts, Goal::Run(pods as usize))])
}

fn small_types() -> Pool {
    let more = vec![requirement(CPU, "Gt", &["1"]), requirement(CPU, "Lt", &["5"])];
    Pool { more, ..Pool::default() }
}

/// The second time nobody has anything to launch: so fast is the control plane itself.
fn two_thousand_there() -> Case {
    let out = vec![Act::Apply(vec![deployment(APP, 2_000, SMALL)])];
    let phases = vec![
        phase("out", out, Goal::Run(2_000)),
        phase("none", vec![Act::Scale(APP, 0)], Goal::Run(0)),
        phase("again", vec![Act::Scale(APP, 2_000)], Goal::Run(2_000)),
    ];
    let about = "the same, then none, then all again; no node may go (a budget of 0), so `again` is how fast \
                 kube-scheduler and the kubelets are without anybody's help";
    made(CaseName::TwoThousandThere, about, supply(&Pool { budget: "0", ..small_types() }), phases)
}

fn drip() -> Case {
    let drip = Act::Drip { name: APP, each: 5, steps: 20, every: Duration::from_millis(500) };
    let acts = vec![Act::Apply(vec![deployment(APP, 0, SMALL)]), drip];
    let about = "a Deployment scaled to 100 pods of 250m and 512Mi by 5 every half second";
    let phases = vec![phase("out", acts, Goal::Run(100))];
    let drip = made(CaseName::Drip, about, supply(&Pool::default()), phases);
    Case { quiet: QUIET_BURST, ..drip }
}

fn out_and_back() -> Case {
    let four = Act::Apply(vec![deployment(APP, 4, SMALL)]);
    let about = "4, then 100, then 4 pods of 250m and 512Mi";
    made(CaseName::W2, about, supply(&Pool::default()), four_hundred_four(four))
}

fn four_hundred_four(four: Act) -> Vec<Phase> {
    vec![
        phase("four", vec![four], Goal::Run(4)),
        phase("out", vec![Act::Scale(APP, 100)], Goal::Run(100)),
        phase("back", vec![Act::Scale(APP, 4)], Goal::Run(4)),
    ]
}

/// The pool and the Deployment of the example, with the lab's class.
fn w2_example() -> Result<Case> {
    let example = hands::manifests(&Path::new(ROOT).join("deploy/examples/w2-v1"))?;
    let of = |kind: &str| example.iter().filter(|it| it["kind"] == kind).cloned().collect();
    let (mut pools, workload): (Vec<Value>, Vec<Value>) = (of("NodePool"), of("Deployment"));
    pools.insert(0, crowd::class());
    let phases = four_hundred_four(Act::Apply(workload));
    let about = "the same with deploy/examples/w2-v1: m5, c5, t3 up to xlarge on demand, \
                 consolidateAfter 30s, budget 100 %";
    Ok(Case { quiet: QUIET_EXAMPLE, ..made(CaseName::W2Example, about, pools, phases) })
}

fn perf_basic() -> Case {
    let more = vec![requirement(CPU, "Lt", &["65"])];
    let apps =
        vec![deployment("small", 500, (900, 3_100)), deployment("large", 500, (3_500, 28_672))];
    let fewer = vec![Act::Scale("small", 350), Act::Scale("large", 350)];
    let phases = vec![
        phase("out", vec![Act::Apply(apps)], Goal::Run(1_000)),
        phase("back", fewer, Goal::Run(700)),
    ];
    let about = "500 pods of 900m and 3100Mi and 500 of 3500m and 28Gi, types of up to 64 vCPUs; then 350 \
                 of each";
    let supply = supply(&Pool { more, ..Pool::default() });
    Case { quiet: QUIET_BURST, ..made(CaseName::PerfBasic, about, supply, phases) }
}

/// 45 Deployments of 100 pods in five sizes, plain, spread over zones, or spread over hosts; 25 of
/// 20 pods that do not share a node.
fn mixed() -> Case {
    const SIZES: [(i64, i64); 5] =
        [(100, 256), (250, 512), (500, 1_024), (1_000, 4_096), (2_000, 4_096)];
    let sizes = || SIZES.into_iter().cycle();
    let mut apps = Vec::new();
    for (number, size) in (0..45).zip(sizes()) {
        let name = format!("app-{number:02}");
        let plain = deployment(&name, 100, size);
        apps.push(match number % 3 {
            0 => plain,
            1 => with(plain, "topologySpreadConstraints", spread(&name, ZONE, 1)),
            _ => {
                let hosts = spread(&name, "kubernetes.io/hostname", 10);
                with(plain, "topologySpreadConstraints", hosts)
            }
        });
    }
    for (number, size) in (0..25).zip(sizes()) {
        let name = format!("apart-{number:02}");
        apps.push(with(deployment(&name, 20, size), "affinity", apart(&name)));
    }
    let name = |app: &Value| app["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let mut all: Vec<Value> =
        apps.iter().map(|app| disruption_budget(&name(app), &json!("10%"))).collect();
    all.extend(apps);
    let about = "45 Deployments of 100 pods in five sizes, in turn plain, spread over zones (skew 1) and over \
                 hosts (skew 10), and 25 of 20 pods that do not share a node; a budget of 10 % for each";
    let out = phase("out", vec![Act::Apply(all)], Goal::Run(5_000));
    let phases = vec![Phase { limit: LIMIT_MANY, ..out }];
    made(CaseName::Mixed, about, supply(&Pool::default()), phases)
}

fn storm() -> Case {
    let pods = with(deployment(APP, 60, SMALL), "affinity", apart(APP));
    let phases = vec![
        phase("out", vec![Act::Apply(vec![pods])], Goal::Run(60)),
        phase("storm", vec![Act::InterruptInTen(3)], Goal::Rescued(60)),
    ];
    let about = "60 pods that do not share a node, on spot; then 18 of the instances are interrupted at once, \
                 with a notice of two minutes";
    made(CaseName::Storm, about, supply(&Pool { markets: &["spot"], ..Pool::default() }), phases)
}

fn rolling() -> Case {
    let phases = vec![
        phase("out", vec![Act::Apply(vec![deployment(APP, 500, SMALL)])], Goal::Run(500)),
        phase("update", vec![Act::Restart(APP)], Goal::Renewed(500)),
    ];
    let about = "a Deployment of 500 pods of 250m and 512Mi, which is then restarted; a quarter more, or less, \
                 meanwhile";
    made(CaseName::Rolling, about, supply(&Pool::default()), phases)
}

/// Thirty Deployments whose sizes and counts have nothing to do with each other.
fn settle() -> Case {
    const APPS: u32 = 30;
    let apps = (1..=APPS).map(|number| {
        // Multiples of primes, so that neither repeats with the other.
        let (count, step) = (5 + number * 11 % 31, i64::from(number));
        let size = (100 + step * 370 % 1_900, 128 + step * 1_130 % 5_000);
        deployment(&format!("app-{number:02}"), count, size)
    });
    let apps: Vec<Value> = apps.collect();
    let pods = apps.iter().filter_map(|app| app["spec"]["replicas"].as_u64()).sum::<u64>();
    let goal = Goal::Run(usize::try_from(pods).unwrap_or(usize::MAX));
    let about = "30 Deployments of 5 to 35 pods each, of as many sizes, left alone with a budget of 100 %: what \
                 is moved before nothing has moved for five minutes";
    let phases = vec![phase("out", vec![Act::Apply(apps)], goal)];
    let supply = supply(&Pool { budget: "100%", ..Pool::default() });
    Case { quiet: QUIET_ALONE, ..made(CaseName::Settle, about, supply, phases) }
}

fn made(name: CaseName, about: &'static str, supply: Vec<Value>, phases: Vec<Phase>) -> Case {
    Case { name, about, supply, phases, quiet: QUIET, repairs: false }
}

fn phase(name: &'static str, acts: Vec<Act>, goal: Goal) -> Phase {
    Phase { name, acts, goal, limit: LIMIT, away: None }
}

/// What restarts a Deployment.
#[must_use]
pub fn restarted() -> Value {
    let annotations = json!({ "kubectl.kubernetes.io/restartedAt": "now" });
    json!({ "spec": { "template": { "metadata": { "annotations": annotations } } } })
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum as _;

    use super::*;

    #[test]
    fn every_case_has_a_supply_and_as_many_pods_as_it_waits_for() {
        for name in CaseName::value_variants() {
            let case = case(*name).unwrap();
            let kinds: Vec<_> = case.supply.iter().map(|it| it["kind"].as_str().unwrap()).collect();
            assert_eq!(kinds, ["EC2NodeClass", "NodePool"], "{name:?}");
            let first = case.phases.first().unwrap();
            let pods: u64 = first.acts.iter().map(pods).sum();
            assert_eq!(pods, first.goal.pods() as u64, "{name:?}");
        }
    }

    fn pods(act: &Act) -> u64 {
        match act {
            Act::Apply(all) => all.iter().filter_map(|it| it["spec"]["replicas"].as_u64()).sum(),
            Act::Drip { each, steps, .. } => u64::from(each * steps),
            Act::Scale(_, pods) => u64::from(*pods),
            Act::Restart(_)
            | Act::InterruptInTen(_)
            | Act::Block
            | Act::Unblock
            | Act::DeleteClaims
            | Act::Ail => 0,
        }
    }
}
