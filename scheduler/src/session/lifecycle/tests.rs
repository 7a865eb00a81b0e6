//! Tables: state of claim and region in, next step out.

mod lasting;
mod leaving;
mod opening;
mod repair;
mod unclaimed;

use super::*;
use longshore_proto::capacity::v1 as capacity;
use longshore_proto::capacity::v1::region_change::Change;
use longshore_proto::capacity::v1::{InstancePhase, InstanceState};
use longshore_proto::capacity::v1::{Interruption, LaunchState};
use longshore_proto::cluster::v1::ReleaseClaim;
use longshore_proto::types::v1::{ObjectKind, ObjectRef, UnreadableObject};
use prost_types::Timestamp;

const NOW_MS: i64 = 1_000_000_000;
/// Milliseconds of the session.
const SESSION_MS: i64 = 3_600_000;

fn joined() -> Joined {
    let fit_ms = Some(SESSION_MS);
    Joined {
        name: "ip-1".to_owned(),
        fit_ms,
        seen_ms: SESSION_MS,
        ready: true,
        open: true,
        disrupted: false,
        ailing: None,
    }
}

struct Case {
    claim: NodeClaim,
    region: RegionState,
    nodes: BTreeMap<String, Joined>,
    tombstones: Tombstones,
    sightings: Sightings,
    verdict: Option<Verdict>,
    asked: BTreeSet<String>,
    settled: bool,
    /// Further claims.
    others: Vec<NodeClaim>,
    pools: BTreeMap<String, NodePool>,
    /// The claim as it was seen last, where more was asked for since.
    watched: Option<NodeClaim>,
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
        Self {
            claim,
            region,
            nodes: BTreeMap::new(),
            tombstones: Tombstones::default(),
            sightings: Sightings::default(),
            verdict: None,
            asked: BTreeSet::new(),
            settled: true,
            others: Vec::new(),
            pools: BTreeMap::new(),
            watched: None,
        }
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

    fn put(&mut self, instance: InstanceState) {
        let change = Some(Change::Instance(instance));
        self.region.apply(capacity::RegionChange { change });
    }

    /// Lets a state last, as the session has seen it.
    fn lasting(mut self, key: &str, lasted_ms: i64) -> Self {
        self.sightings.observe(BTreeSet::from([key.to_owned()]), SESSION_MS - lasted_ms);
        self
    }

    fn vanished(mut self) -> Self {
        let mut instance = self.region.instances["i-1"].clone();
        instance.phase = InstancePhase::Terminated.into();
        instance.vanished = true;
        self.put(instance);
        self
    }

    fn unready(mut self) -> Self {
        self.nodes.values_mut().for_each(|node| (node.ready, node.fit_ms) = (false, None));
        self
    }

    fn closed(mut self) -> Self {
        self.nodes.values_mut().for_each(|node| node.open = false);
        self
    }

    fn unreadable(mut self, kind: ObjectKind, key: &str) -> Self {
        let about = ObjectRef { kind: kind.into(), key: key.to_owned() };
        let key = format!("{}/{key}", about.kind);
        self.tombstones.put(UnreadableObject { key, about: Some(about), ..Default::default() });
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
        self.put(instance);
        self
    }

    fn provided(mut self) -> Self {
        self.claim.provider_id = "aws:///z/i-1".to_owned();
        self
    }

    fn node(mut self) -> Self {
        self.nodes.insert("aws:///z/i-1".to_owned(), joined());
        self
    }

    fn steps(&self) -> Vec<Step> {
        self.dues().into_iter().map(|due| due.step).collect()
    }

    fn dues(&self) -> Vec<Due> {
        self.seen(steps)
    }

    fn seen<T>(&self, look: impl Fn(&World<'_>) -> T) -> T {
        let all = self.others.iter().chain([&self.claim]);
        let claims = all.map(|claim| (claim.name.clone(), claim.clone())).collect();
        let nominations = BTreeMap::from([(self.claim.name.clone(), vec!["pod".to_owned()])]);
        let watched = self.watched.as_ref().unwrap_or(&self.claim).clone();
        look(&World {
            cluster_id: "c",
            claims: &claims,
            watched: &BTreeMap::from([(watched.name.clone(), watched)]),
            nodes: &self.nodes,
            nominations: &nominations,
            turns: &BTreeMap::from([(ClaimName::new(&self.claim.name), 0)]),
            pins_pods: false,
            any_order: false,
            region: &self.region,
            pools: &self.pools,
            tombstones: &self.tombstones,
            sightings: &self.sightings,
            verdicts: &self.verdict.iter().map(|v| (self.claim.name.clone(), v.clone())).collect(),
            asked: &self.asked,
            settled: self.settled,
            now_ms: NOW_MS,
            session_ms: SESSION_MS,
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
                | Action::PinPods(_)
                | Action::SetNodeClassStatus(_)
                | Action::SetConditions(_)
                | Action::PublishEvent(_)
                | Action::NoteDrift(_)
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
fn a_failed_launch_is_recorded_and_the_claim_goes_when_another_may_succeed() {
    let mut failed = Case::new().launch(LaunchPhase::Failed);
    assert_eq!(failed.only().as_deref(), Some("failure true"));
    failed.region.launches.get_mut("l1").unwrap().retryable = false;
    assert_eq!(failed.only().as_deref(), Some("failure false"));
    let failed = failed.lasting("launching/default-a", LAUNCH_RETRY_MS + 1);
    assert_eq!(failed.only().as_deref(), Some("failure true"));
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
    let within = |kind| {
        let step = interrupted(&NodeClaim::default(), kind);
        let Step::Direct { action, .. } = step else { panic!("{step:?}") };
        let Action::DeleteClaim(delete) = *action else { panic!("{action:?}") };
        delete.drain_within.map(|within| within.seconds)
    };
    assert_eq!(within(InterruptionKind::Spot), Some(110));
    assert_eq!(within(InterruptionKind::ScheduledChange), None, "there is time");
    let gone = running().instance(InstancePhase::Terminated);
    assert_eq!(gone.only().as_deref(), Some("delete InstanceTerminated"));
}

#[test]
fn an_instance_that_the_region_does_not_know_is_waited_for_however_old_its_claim_is() {
    for launch_id in ["l1", ""] {
        let mut unlisted = Case::new().provided();
        unlisted.claim.launch_id = launch_id.to_owned();
        unlisted.claim.register_time = Some(Timestamp::default());
        unlisted.claim.create_time = Some(Timestamp { seconds: 0, nanos: 0 });
        assert_eq!(unlisted.only(), None, "of a running node");
        unlisted.claim.deleting = true;
        assert_eq!(unlisted.only(), None, "the drain is not over");
        unlisted.claim.drained = true;
        assert_eq!(unlisted.only().as_deref(), Some("terminate i-1"), "no release");
    }
}

#[test]
fn a_vanished_instance_is_believed_when_the_cluster_agrees() {
    let running = || {
        let case = Case::new().launch(LaunchPhase::Launched).instance(InstancePhase::Running);
        let mut case = case.provided().node().vanished();
        case.claim.register_time = Some(Timestamp::default());
        case.claim.initialize_time = Some(Timestamp::default());
        case
    };
    assert_eq!(running().only(), None, "its node is well");
    let mut gone = running().unready();
    assert_eq!(gone.only().as_deref(), Some("delete InstanceTerminated"));
    assert_eq!(gone.dues()[0].evidence, Evidence::Absence("default-a".to_owned()));
    gone.settled = false;
    assert_eq!(gone.only(), None, "the view is young");
    gone = running();
    gone.nodes.clear();
    assert_eq!(gone.only().as_deref(), Some("delete InstanceTerminated"));
    assert_eq!(gone.unreadable(ObjectKind::Node, "").only(), None, "nodes cannot be read");
    let mut deleting = running();
    (deleting.claim.deleting, deleting.claim.drained) = (true, true);
    assert_eq!(deleting.only(), None, "its node is well");
    deleting = deleting.unready();
    assert_eq!(deleting.only().as_deref(), Some("release"));
    assert_eq!(deleting.dues()[0].evidence, Evidence::Absence("default-a".to_owned()));
    deleting = deleting.unreadable(ObjectKind::NodeClaim, "default-a");
    assert_eq!(deleting.only(), None, "something about it cannot be read");
}

#[test]
fn a_claim_of_another_autoscaler_is_not_launched_but_recorded() {
    let mut case = Case::new();
    case.claim.launch_id = String::new();
    assert_eq!(case.only(), None);
    let mut adopted = Case::new().instance(InstancePhase::Running);
    adopted.claim.launch_id = String::new();
    assert_eq!(adopted.only().as_deref(), Some("record aws:///z/i-1"));
    let case = case.lasting("launching/default-a", LAUNCH_TTL_MS + 1);
    assert_eq!(case.only().as_deref(), Some("delete NotLaunched"));
}

#[test]
fn what_must_not_wait_goes_first() {
    let claim = NodeClaim::default();
    let told = |step: Step| step.urgency();
    assert_eq!(told(delete(&claim, "Interrupted", "")), 0);
    assert_eq!(told(direct(&claim, Action::ReleaseClaim(ReleaseClaim::default()))), 0);
    assert_eq!(told(direct(&claim, Action::RegisterNode(RegisterNode::default()))), 1);
    assert_eq!(told(Step::Launch(String::new())), 1);
}

#[test]
fn silence_proves_nothing() {
    let mut case = Case::new();
    case.region.synced = false;
    assert!(case.steps().is_empty());
}
