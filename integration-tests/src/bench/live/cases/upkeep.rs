//! Cases about nodes that have to go, or never come: rollouts, expiry, drains that something
//! blocks, repair, and registrations that never happen.
//!
//! Invariant: data; each pod has a node of its own, so that nodes and pods are as many, and what
//! Longshore alone knows is left at its defaults.

use std::time::Duration;

use longshore_lab::region::RELEASES;
use serde_json::{Value, json};

use super::manifests::{Pool, SMALL, apart, class_of, deployment, disruption_budget, supply, with};
use super::{APP, Act, Case, Goal, Phase, made, phase};
use crate::bench::live::args::CaseName;

/// Forty nodes one after the other, a quarter of a minute each, and half as long again.
const LIMIT_ROLLOUT: Duration = Duration::from_secs(900);
/// Until nodes expire, and as long again to replace them.
const LIMIT_EXPIRY: Duration = Duration::from_secs(600);
/// So old may nodes become: longer than it takes to replace them all, so that none goes twice.
const EXPIRE_AFTER: &str = "4m";
/// For so long something keeps the nodes: longer than a pod's grace of 30 s, so that a pod that
/// should have ended is late.
const BLOCKED: Duration = Duration::from_secs(90);
/// Both look at what is wrong with a node for minutes.
const LIMIT_REPAIR: Duration = Duration::from_secs(600);
/// Long enough for whatever is bought again within minutes. Both give a node up a quarter of an
/// hour after its launch and not before, and would have to be watched for half an hour past that.
const UNREGISTERED: Duration = Duration::from_secs(360);
/// A script that joins no cluster.
const JOINS_NOTHING: &str = "#!/bin/sh\nexit 0\n";

/// Forty nodes to another release.
pub fn rollout() -> Case {
    let [old, new] = RELEASES;
    let pods = vec![disruption_budget(APP, &json!(1)), alone(40)];
    let rollout =
        phase("rollout", vec![Act::Apply(vec![class_of(new.al2023)])], Goal::Replaced(40));
    let phases = vec![
        phase("out", vec![Act::Apply(pods)], Goal::Run(40)),
        Phase { limit: LIMIT_ROLLOUT, away: Some(1), ..rollout },
    ];
    let about = "40 nodes with a pod each, a budget of 10 % and a PodDisruptionBudget with maxUnavailable 1; \
                 then the EC2NodeClass names another image release, and `rollout` ends when all run and no \
                 node has the old image. Longshore's canaries are left at their defaults: it looks at the \
                 first new node for 30 s before others follow, which the figures contain";
    made(CaseName::Rollout, about, of_class(class_of(old.al2023), &Pool::default()), phases)
}

/// Twenty nodes past their age.
pub fn expiry() -> Case {
    let expire = phase("expire", Vec::new(), Goal::Replaced(20));
    let phases = vec![
        phase("out", vec![Act::Apply(vec![alone(20)])], Goal::Run(20)),
        Phase { limit: LIMIT_EXPIRY, away: Some(0), ..expire },
    ];
    let about = "20 nodes with a pod each, expireAfter 4m, a budget of 20 %; `expire` begins when the cluster \
                 is settled, waits for most of the four minutes, and ends when all run on nodes that were not \
                 there then. The pods have no budget: each that is away counts";
    let pool = Pool { budget: "20%", expire_after: EXPIRE_AFTER, ..Pool::default() };
    made(CaseName::Expiry, about, supply(&pool), phases)
}

/// Twenty nodes that are to go, and something keeps each.
pub fn blocked() -> Case {
    let held = phase("held", vec![Act::Block, Act::DeleteClaims], Goal::Elapse(20));
    let phases = vec![
        phase("out", vec![Act::Apply(vec![alone(20)])], Goal::Run(20)),
        Phase { limit: BLOCKED, ..held },
        phase("freed", vec![Act::Unblock], Goal::Cleared(20)),
    ];
    let about = "20 nodes with a pod each, whose NodeClaims are deleted while something keeps each node, in \
                 turn: a pod annotated do-not-disrupt, a PodDisruptionBudget that allows none, two \
                 PodDisruptionBudgets on one pod, a pod with a finalizer, a volume that stays attached, and \
                 a DaemonSet's pod that does not tolerate the taint; `held` lasts 90 s, then all of it is \
                 taken away, and `freed` ends when the last of the 20 nodes is gone and all run elsewhere";
    made(CaseName::Blocked, about, supply(&Pool::default()), phases)
}

/// One of ten nodes ails.
pub fn repair() -> Case {
    let repair = phase("repair", vec![Act::Ail], Goal::Cleared(10));
    let phases = vec![
        phase("out", vec![Act::Apply(vec![alone(10)])], Goal::Run(10)),
        Phase { limit: LIMIT_REPAIR, ..repair },
    ];
    let about = "10 nodes with a pod each; then one of them says NetworkingReady=False, for an hour already, and \
                 `repair` ends when it is gone and all run. Karpenter has its feature gate NodeRepair on; \
                 Longshore has to have seen for five minutes what is wrong";
    let repair = made(CaseName::Repair, about, supply(&Pool::default()), phases);
    Case { repairs: true, ..repair }
}

/// Nodes that never register.
pub fn unregistered() -> Case {
    let mut class = class_of(RELEASES[0].al2023);
    class["spec"]["amiFamily"] = json!("Custom");
    class["spec"]["userData"] = json!(JOINS_NOTHING);
    let out = phase("out", vec![Act::Apply(vec![alone(20)])], Goal::Elapse(20));
    let phases = vec![Phase { limit: UNREGISTERED, ..out }];
    let about = "20 pods that do not share a node, of a class whose user data joins no cluster, watched for six \
                 minutes: whether more is bought for pods whose nodes do not come up shows within minutes, \
                 and neither gives such a node up before a quarter of an hour";
    made(CaseName::Unregistered, about, of_class(class, &Pool::default()), phases)
}

/// A Deployment whose pods do not share a node.
fn alone(pods: u32) -> Value {
    with(deployment(APP, pods, SMALL), "affinity", apart(APP))
}

/// This class, and a pool.
fn of_class(class: Value, pool: &Pool) -> Vec<Value> {
    let others = supply(pool).into_iter().filter(|it| it["kind"] != "EC2NodeClass");
    [class].into_iter().chain(others).collect()
}
