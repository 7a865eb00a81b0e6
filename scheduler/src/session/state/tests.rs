//! A view kept in step by deltas gives the plan of a view that was read at once.

use std::collections::BTreeMap;

use longshore_core::answer::Plan;
use longshore_core::ids::CatalogueId;
use longshore_core::plan;
use longshore_core::question::PlanInput;
use longshore_core::vocabulary::pool::DisruptionReason;
use longshore_proto::capacity::v1 as capacity;
use longshore_proto::cluster::v1 as cluster;
use longshore_proto::cluster::v1::sync_request::Message;
use prost::Message as _;

use super::super::protocol::{Receiver, Step};
use super::*;
use crate::random::{self, CATALOGUE, CLASS, Random};
use crate::region::RegionState;

/// Deltas in all, and how many lie between two comparisons.
const DELTAS: u64 = 10_000;
const EVERY: u64 = 500;
/// Nodes and pods that there may be.
const SIZE: (u64, u64) = (24, 300);
const NOW_MS: i64 = 3_600_000;

fn region() -> RegionState {
    use capacity::region_change::Change as RegionChange;
    let mut state = RegionState::default();
    let subnet =
        |zone: &str| cluster::ResolvedSubnet { zone: zone.to_owned(), ..Default::default() };
    let status = cluster::SetNodeClassStatus {
        node_class: CLASS.to_owned(),
        subnets: ["z-a", "z-b", "z-c"].map(subnet).to_vec(),
        ..Default::default()
    };
    let resolution = capacity::NodeClassResolution {
        cluster_id: "c".to_owned(),
        catalogue_id: CATALOGUE.to_owned(),
        ready: true,
        status: Some(status),
        ..Default::default()
    };
    let catalogue = random::catalogue(&mut Random::new(0));
    for change in [RegionChange::Catalogue(catalogue), RegionChange::NodeClass(resolution)] {
        state.apply(capacity::RegionChange { change: Some(change) });
    }
    state
}

/// One end of Sync, as a session holds it.
struct End {
    receiver: Receiver,
    state: ClusterState,
}

impl End {
    fn new() -> Self {
        Self { receiver: Receiver::default(), state: ClusterState::new("c".to_owned(), 0) }
    }

    fn receive(&mut self, message: Message) {
        let request = cluster::SyncRequest { message: Some(message) };
        let step = self.receiver.receive(request).unwrap();
        if let Step::Reset { changes, .. } = step {
            self.state.reset(changes, NOW_MS);
        } else if let Step::Apply { changes, .. } = step {
            self.state.apply(changes, NOW_MS);
        } else {
            panic!("{step:?}");
        }
    }

    fn snapshot(&mut self, revision: u64, changes: Vec<v1::ObjectChange>) {
        let chunk = cluster::SnapshotChunk { revision, changes, last: true };
        self.receive(Message::SnapshotChunk(chunk));
    }

    fn plan(&mut self, region: &RegionState) -> Plan {
        self.state.refresh(region, NOW_MS);
        let catalogues = region.catalogues.iter();
        let input = PlanInput {
            world: self.state.view().snapshot(),
            catalogues: catalogues.map(|(id, all)| (CatalogueId::new(id), all.clone())).collect(),
            now_ms: NOW_MS,
            ..PlanInput::default()
        };
        let plan = plan(&input);
        assert_eq!(longshore_core::check::check(&plan, &input), Vec::new());
        plan
    }
}

/// A plan as it would go over the wire.
fn bytes(plan: &Plan) -> Vec<u8> {
    longshore_proto::planning::v1::ComputePlanResponse {
        nodes: plan.launches.iter().map(wire::plan::planned_node).collect(),
        placements: wire::plan::placements(plan),
        unplaced: plan.unplaced.iter().map(wire::plan::unplaced).collect(),
        price_micro_usd_per_hour: plan.launch_price_micro_usd_per_hour,
        bound: Some(wire::plan::bound(&plan.bound)),
        gap_ppm: plan.gap_ppm,
        ..Default::default()
    }
    .encode_to_vec()
}

#[test]
fn ten_thousand_deltas_lead_to_the_plan_of_a_snapshot() {
    let (region, mut random) = (region(), Random::new(7));
    let mut known: BTreeMap<(i32, String), Kind> = BTreeMap::new();
    for kind in random::objects(&mut random, (12, 100)) {
        let reference = reference::of(&kind);
        known.insert((reference.kind, reference.key), kind);
    }
    let mut kept = End::new();
    kept.snapshot(1, known.values().cloned().map(random::upsert).collect());
    let (mut plans, mut refused) = (std::collections::BTreeSet::new(), 0);
    let (mut drifted, mut replaced) = (0, 0);
    for delta in 0..DELTAS {
        let changes = random::change(&mut random, SIZE);
        for change in changes.iter().filter_map(|change| change.change.clone()) {
            match change {
                WireChange::Remove(gone) => drop(known.remove(&(gone.kind, gone.key))),
                WireChange::Upsert(object) => {
                    let kind = object.kind.unwrap();
                    let reference = reference::of(&kind);
                    known.insert((reference.kind, reference.key), kind);
                }
            }
        }
        let (base_revision, revision) = (delta + 1, delta + 2);
        let delta = cluster::Delta { base_revision, revision, changes, ..Default::default() };
        kept.receive(Message::Delta(delta));
        if (revision - 1).is_multiple_of(EVERY) {
            let mut fresh = End::new();
            let mut all: Vec<_> = known.values().cloned().map(random::upsert).collect();
            random.shuffle(&mut all);
            fresh.snapshot(revision, all);
            assert_eq!(kept.state.digest(), fresh.state.digest(), "revision {revision}");
            let (step_by_step, at_once) = (kept.plan(&region), fresh.plan(&region));
            assert_eq!(step_by_step, at_once, "revision {revision}");
            assert_eq!(kept.state.view().world(), fresh.state.view().world());
            refused += fresh.state.take_refused().len();
            drifted += fresh.state.drifted().len();
            let reasons = at_once.disruptions.iter().map(|disruption| disruption.reason);
            replaced += reasons.filter(|reason| *reason == DisruptionReason::Drifted).count();
            plans.insert(bytes(&step_by_step));
            assert!(plans.contains(&bytes(&at_once)), "revision {revision}");
        }
    }
    assert_eq!(plans.len(), usize::try_from(DELTAS / EVERY).unwrap(), "the plans are all alike");
    assert!(refused > 0, "nothing was ever unreadable");
    assert!(replaced > 0 && drifted > replaced, "{replaced} of {drifted} drifted ones replaced");
}

#[test]
fn what_cannot_be_read_is_kept_as_such_until_it_can() {
    let upsert = |kind| v1::ObjectChange {
        change: Some(WireChange::Upsert(v1::Object { kind: Some(kind) })),
    };
    let about = v1::ObjectRef { kind: v1::ObjectKind::NodeClaim.into(), key: "a".to_owned() };
    let stone = v1::UnreadableObject {
        key: format!("{}/a", about.kind),
        about: Some(about),
        ..Default::default()
    };
    let mut state = ClusterState::new("c".to_owned(), 0);
    state.apply(vec![upsert(Kind::Unreadable(stone.clone()))], NOW_MS);
    assert!(state.tombstones().hides_claim("a"));
    state.reset(vec![upsert(Kind::Unreadable(stone.clone()))], NOW_MS);
    assert!(state.tombstones().hides_claim("a"), "a snapshot has it, too");
    let gone = v1::ObjectRef { kind: v1::ObjectKind::Unreadable.into(), key: stone.key };
    state.apply(vec![v1::ObjectChange { change: Some(WireChange::Remove(gone)) }], NOW_MS);
    assert!(!state.tombstones().hides_claim("a"));
    assert_eq!(state.digest().0, 0, "both sides count it");

    let claim = v1::NodeClaim { name: "b".to_owned(), ..Default::default() };
    let mut pod = v1::Pod { uid: "u".to_owned(), node_name: "n".to_owned(), ..Default::default() };
    state.apply(vec![upsert(Kind::Pod(pod.clone()))], NOW_MS);
    let malformed = !state.tombstones().holds(&claim, Some("n"));
    pod.shape_id = "s".to_owned();
    pod.phase = v1::PodPhase::Running.into();
    (pod.namespace, pod.name) = ("default".to_owned(), "p".to_owned());
    state.apply(vec![upsert(Kind::Pod(pod))], NOW_MS);
    assert!(!state.tombstones().holds(&claim, Some("n")), "it can be read now");
    assert!(!malformed, "a malformed pod holds its node");
}

#[test]
fn a_node_stays_as_long_known_as_it_was_over_a_snapshot() {
    let node = v1::Node {
        name: "n".to_owned(),
        provider_id: "aws:///z/i-1".to_owned(),
        ready: true,
        ..Default::default()
    };
    let mut state = ClusterState::new("c".to_owned(), 0);
    let changes = || vec![random::upsert(Kind::Node(node.clone()))];
    state.apply(changes(), 10);
    state.reset(changes(), 20);
    let joined = &state.nodes_by_provider()["aws:///z/i-1"];
    assert_eq!((joined.seen_ms, joined.fit_ms), (10, Some(10)));
}

#[test]
fn a_clock_that_is_ahead_makes_no_node_late() {
    let node = v1::Node {
        name: "n".to_owned(),
        provider_id: "aws:///z/i-1".to_owned(),
        create_time: Some(wire::timestamp(NOW_MS)),
        ..Default::default()
    };
    for (ahead_ms, made_ms) in [(0, NOW_MS + 10), (600_000, NOW_MS + 600_010), (-600_000, NOW_MS)] {
        let mut state = ClusterState::new("c".to_owned(), NOW_MS + ahead_ms);
        for seen_ms in [10, 5_000] {
            let change = || vec![random::upsert(Kind::Node(node.clone()))];
            // As a session begins, and then again.
            state.reset(change(), seen_ms);
            state.apply(change(), seen_ms);
            let shown = &state.view().world().nodes["n"];
            assert_eq!(shown.created_ms, made_ms, "{ahead_ms}");
        }
    }
}

#[test]
fn claims_with_their_effects_are_kept_over_every_change() {
    let claim = |name: &str| v1::NodeClaim { name: name.to_owned(), ..Default::default() };
    let mut state = ClusterState::new("c".to_owned(), 0);
    let shown = |state: &ClusterState| -> Vec<(String, bool)> {
        state.claims().iter().map(|(name, claim)| (name.clone(), claim.deleting)).collect()
    };
    let row = |name: &str, deleting| (name.to_owned(), deleting);
    state.apply(vec![random::upsert(Kind::NodeClaim(claim("a")))], 0);
    state.creating(claim("b"), 0);
    state.deleting("a", "Empty", 0);
    let before = state.claims();
    assert_eq!(shown(&state), [row("a", true), row("b", false)]);
    state.refused("a");
    assert_eq!(shown(&state), [row("a", false), row("b", false)]);
    assert!(before["a"].deleting, "who looks sees what was when they began");
    state.reset(vec![random::upsert(Kind::NodeClaim(claim("c")))], 0);
    assert_eq!(shown(&state), [row("b", false), row("c", false)]);
    state.expire(i64::MAX);
    assert_eq!(shown(&state), [row("c", false)]);
    let gone = v1::ObjectRef { kind: v1::ObjectKind::NodeClaim.into(), key: "c".to_owned() };
    state.apply(vec![v1::ObjectChange { change: Some(WireChange::Remove(gone)) }], 0);
    assert!(state.claims().is_empty());
}
