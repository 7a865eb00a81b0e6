//! Tables: state of claim and region in, next step out.

use super::*;
use longshore_proto::capacity::v1::{Interruption, LaunchState};
use prost_types::Timestamp;

const NOW_MS: i64 = 1_000_000_000;

struct Case {
    claim: NodeClaim,
    region: RegionState,
    nodes: BTreeMap<String, Joined>,
}

impl Case {
    fn new() -> Self {
        let claim = NodeClaim {
            name: "default-a".to_owned(),
            launch_id: "l1".to_owned(),
            create_time: Some(Timestamp { seconds: NOW_MS / 1000, nanos: 0 }),
            ..Default::default()
        };
        let mut region = RegionState::default();
        region.synced = true;
        Self { claim, region, nodes: BTreeMap::new() }
    }

    fn launch(mut self, phase: LaunchPhase) -> Self {
        let launch = LaunchState {
            launch_id: "l1".to_owned(),
            phase: phase.into(),
            instance_id: if phase == LaunchPhase::Launched { "i-1" } else { "" }.to_owned(),
            retryable: true,
            ..Default::default()
        };
        self.region.launches.insert("l1".to_owned(), launch);
        self
    }

    fn instance(mut self, phase: InstancePhase) -> Self {
        let instance = InstanceState {
            instance_id: "i-1".to_owned(),
            cluster_id: "c".to_owned(),
            claim: "default-a".to_owned(),
            zone: "z".to_owned(),
            phase: phase.into(),
            ..Default::default()
        };
        self.region.instances.insert("i-1".to_owned(), instance);
        self
    }

    fn provided(mut self) -> Self {
        self.claim.provider_id = "aws:///z/i-1".to_owned();
        self
    }

    fn node(mut self) -> Self {
        let node = Joined { name: "ip-1".to_owned(), fit_ms: Some(NOW_MS), create_ms: NOW_MS };
        self.nodes.insert("aws:///z/i-1".to_owned(), node);
        self
    }

    fn steps(&self) -> Vec<Step> {
        let claims = BTreeMap::from([(self.claim.name.clone(), self.claim.clone())]);
        let nominations = BTreeMap::from([(self.claim.name.clone(), vec!["pod".to_owned()])]);
        steps(&World {
            cluster_id: "c",
            claims: &claims,
            nodes: &self.nodes,
            nominations: &nominations,
            turns: &BTreeMap::from([(ClaimName::new(&self.claim.name), 0)]),
            pins_pods: false,
            region: &self.region,
            now_ms: NOW_MS,
        })
    }

    fn only(&self) -> Option<String> {
        let steps = self.steps();
        assert!(steps.len() <= 1, "{steps:?}");
        steps.first().map(|step| match step {
            Step::Launch(_) => "launch".to_owned(),
            Step::Terminate(termination) => format!("terminate {}", termination.instance_id),
            Step::Direct { action, .. } => match action.as_ref() {
                Action::RecordLaunch(record) => format!("record {}", record.provider_id),
                Action::RecordLaunchFailure(failure) => format!("failure {}", failure.delete),
                Action::RegisterNode(register) => format!("register {:?}", register.pods),
                Action::DeleteClaim(delete) => format!("delete {}", delete.reason),
                Action::ReleaseClaim(_) => "release".to_owned(),
                Action::DisruptClaim(disrupt) => format!("cancel {}", disrupt.cancel),
                other @ (Action::CreateClaim(_)
                | Action::NominatePods(_)
                | Action::SetNodeClassStatus(_)
                | Action::SetConditions(_)
                | Action::PublishEvent(_)
                | Action::SetNodePoolStatus(_)) => panic!("no step of a claim's life: {other:?}"),
            },
        })
    }
}

#[test]
fn a_claim_goes_from_launch_to_service() {
    assert_eq!(Case::new().only().as_deref(), Some("launch"));
    assert_eq!(Case::new().launch(LaunchPhase::Pending).only(), None);
    let launched = Case::new().launch(LaunchPhase::Launched).instance(InstancePhase::Pending);
    assert_eq!(launched.only().as_deref(), Some("record aws:///z/i-1"));
    let waiting = launched.provided();
    assert_eq!(waiting.only(), None);
    let mut joined = waiting.node();
    assert_eq!(joined.only().as_deref(), Some("register [\"pod\"]"));
    joined.claim.register_time = Some(Timestamp::default());
    assert_eq!(joined.only(), None);
}

#[test]
fn a_node_is_registered_when_it_may_take_pods_or_has_had_its_time() {
    let launched = Case::new().launch(LaunchPhase::Launched).instance(InstancePhase::Pending);
    let mut joined = launched.provided().node();
    let mut node = |fit_ms, age_ms| {
        let node = joined.nodes.get_mut("aws:///z/i-1").unwrap();
        (node.fit_ms, node.create_ms) = (fit_ms, NOW_MS - age_ms);
        joined.only()
    };
    assert_eq!(node(None, 0), None);
    assert_eq!(node(None, START_PATIENCE_MS - 1), None);
    assert!(node(None, START_PATIENCE_MS).is_some());
    assert!(node(Some(NOW_MS), 0).is_some());
}

#[test]
fn a_fit_node_opens_when_a_plan_knows_it_and_it_is_its_turn() {
    let claim = |name: &str| NodeClaim { name: name.to_owned(), ..Default::default() };
    let mut claims = BTreeMap::from(["a", "b"].map(|name| (name.to_owned(), claim(name))));
    let node = Joined { name: "n".to_owned(), fit_ms: Some(NOW_MS), create_ms: NOW_MS };
    let opens = |pins_pods, claims: &BTreeMap<String, NodeClaim>, turns: &[(&str, i64)], now_ms| {
        let world = World {
            cluster_id: "c",
            claims,
            nodes: &BTreeMap::new(),
            nominations: &BTreeMap::new(),
            turns: &turns.iter().map(|(name, turn)| (ClaimName::new(name), *turn)).collect(),
            pins_pods,
            region: &RegionState::default(),
            now_ms,
        };
        world.may_open(&claims["a"], &node)
    };
    assert!(!opens(false, &claims, &[], NOW_MS), "no plan knows the node yet");
    assert!(opens(false, &claims, &[], NOW_MS + OPEN_PATIENCE_MS), "no plan comes");
    assert!(opens(false, &claims, &[("a", 0), ("b", 0)], NOW_MS));
    assert!(opens(false, &claims, &[("a", 2)], NOW_MS), "b may be long in coming");
    let both = [("a", 2), ("b", 1)];
    assert!(!opens(false, &claims, &both, NOW_MS), "b opens first");
    assert!(opens(true, &claims, &both, NOW_MS), "pods find their nodes in any order");
    assert!(!opens(true, &claims, &[], NOW_MS), "no plan has pods for it yet");
    assert!(opens(false, &claims, &both, NOW_MS + OPEN_PATIENCE_MS));
    claims.get_mut("b").unwrap().register_time = Some(Timestamp::default());
    assert!(opens(false, &claims, &both, NOW_MS), "b is open");
}

#[test]
fn a_failed_launch_is_recorded_and_the_claim_goes_when_another_may_succeed() {
    let mut failed = Case::new().launch(LaunchPhase::Failed);
    assert_eq!(failed.only().as_deref(), Some("failure true"));
    failed.region.launches.get_mut("l1").unwrap().retryable = false;
    assert_eq!(failed.only().as_deref(), Some("failure false"));
    failed.claim.create_time =
        Some(Timestamp { seconds: (NOW_MS - LAUNCH_RETRY_MS) / 1000 - 1, nanos: 0 });
    assert_eq!(failed.only().as_deref(), Some("failure true"));
}

#[test]
fn a_deleted_claim_is_drained_then_terminated_then_released() {
    let running = Case::new().launch(LaunchPhase::Launched).instance(InstancePhase::Running);
    let mut deleting = running.provided().node();
    deleting.claim.deleting = true;
    assert_eq!(deleting.only(), None, "the watcher is still draining");
    deleting.claim.drained = true;
    assert_eq!(deleting.only().as_deref(), Some("terminate i-1"));
    let mut ending = deleting.instance(InstancePhase::ShuttingDown);
    assert_eq!(ending.only(), None);
    ending = ending.instance(InstancePhase::Terminated);
    assert_eq!(ending.only().as_deref(), Some("release"));
}

#[test]
fn a_claim_too_many_goes_wherever_it_stands() {
    let excess = |mut case: Case| {
        case.claim.disruption_reason = EXCESS.to_owned();
        case.only()
    };
    let launched = || Case::new().launch(LaunchPhase::Launched).instance(InstancePhase::Running);
    for case in [Case::new(), launched(), launched().provided(), launched().provided().node()] {
        assert_eq!(excess(case).as_deref(), Some("delete Excess"));
    }
}

#[test]
fn nothing_is_released_while_a_launch_may_still_succeed() {
    let mut case = Case::new().launch(LaunchPhase::Pending);
    case.claim.deleting = true;
    assert_eq!(case.only(), None);
    let mut unlaunched = Case::new();
    unlaunched.claim.deleting = true;
    assert_eq!(unlaunched.only().as_deref(), Some("release"));
}

#[test]
fn interruptions_and_vanished_instances_end_the_claim() {
    let running = || {
        let case = Case::new().launch(LaunchPhase::Launched).instance(InstancePhase::Running);
        case.provided().node()
    };
    let announced = |kind: InterruptionKind| {
        let mut case = running();
        case.claim.register_time = Some(Timestamp::default());
        let interruption = Interruption { kind: kind.into(), ..Default::default() };
        case.region.interruptions.insert("i-1".to_owned(), interruption);
        case.only()
    };
    assert_eq!(announced(InterruptionKind::Spot).as_deref(), Some("delete Interrupted"));
    assert_eq!(announced(InterruptionKind::Rebalance), None);
    let gone = running().instance(InstancePhase::Terminated);
    assert_eq!(gone.only().as_deref(), Some("delete InstanceTerminated"));
}

#[test]
fn an_unlisted_instance_is_given_up_once_ec2_would_have_listed_it() {
    let mut unlisted = Case::new().provided();
    assert_eq!(unlisted.only(), None);
    let created = Timestamp { seconds: (NOW_MS - LISTED_WITHIN_MS) / 1000 - 1, nanos: 0 };
    unlisted.claim.create_time = Some(created);
    assert_eq!(unlisted.only().as_deref(), Some("delete InstanceTerminated"));
}

#[test]
fn a_disrupted_claim_waits_for_its_replacements() {
    let mut case = Case::new().launch(LaunchPhase::Launched).instance(InstancePhase::Running);
    case = case.provided().node();
    case.claim.register_time = Some(Timestamp::default());
    case.claim.disruption_reason = "Empty".to_owned();
    assert_eq!(case.only().as_deref(), Some("delete Empty"));
    case.claim.replaced_by = vec!["default-b".to_owned()];
    assert_eq!(case.only().as_deref(), Some("cancel true"), "the replacement is gone");
}

#[test]
fn old_instances_without_a_claim_are_ended_and_young_ones_are_left() {
    let mut case = Case::new().instance(InstancePhase::Running);
    case.claim.name = "other".to_owned();
    case.claim.launch_id = "l2".to_owned();
    case.claim.deleting = true;
    let orphan = case.region.instances.get_mut("i-1").unwrap();
    orphan.launch_time = Some(Timestamp { seconds: NOW_MS / 1000, nanos: 0 });
    assert_eq!(case.steps().len(), 1, "only the release of the claim");
    let orphan = case.region.instances.get_mut("i-1").unwrap();
    orphan.launch_time = Some(Timestamp { seconds: 0, nanos: 0 });
    assert!(case.steps().iter().any(|step| matches!(step, Step::Terminate(_))));
}

#[test]
fn silence_proves_nothing() {
    let mut case = Case::new();
    case.region.synced = false;
    assert!(case.steps().is_empty());
}
