//! Carries out what the lifecycle asks for: launches and terminations to the actuator, the rest to
//! the watcher.
//!
//! Invariant: no opinion of its own; each step of [`super::lifecycle`] becomes one request.

use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{Hash, Hasher};

use longshore_core::ids::{ClaimName, NodeName};
use longshore_proto::cluster::v1::RecordLaunchFailure;
use longshore_proto::cluster::v1::directive::Action;
use longshore_proto::limits::LAUNCHES_PER_APPLY_MAX;
use longshore_proto::types::v1::{ClusterFacts, Launch, NodeClaim, NodeClass, Termination};
use longshore_runtime::planted;
use prost::Message;

use super::dispatch::{Order, Parcel};
use super::lifecycle::{self, Due, Evidence, World};
use super::outage;
use super::outbox::Origin;
use super::sightings::Sightings;
use super::status::{self, Written};
use super::verdict::{self, Bench, Verdict};
use super::{Session, buffers, candidates, holds, overlays, pools, unclaimed};
use crate::region::RegionState;
use crate::region::directory::Region;

/// How long a request to the actuator rests until its effect is seen, in milliseconds.
const REST_MS: i64 = 10_000;
/// How long a claim waits for its node class to become ready, in milliseconds.
const CLASS_PATIENCE_MS: i64 = 5 * 60 * 1000;
/// Least time between two looks at what people are to be told, in milliseconds.
const STATUS_EVERY_MS: i64 = 500;

/// Effects for the actuator, gathered over one pass.
#[derive(Default)]
struct Gathered {
    now_ms: i64,
    launches: Vec<Launch>,
    keys: Vec<String>,
    /// Terminations with the keys of their needs.
    ends: (Vec<Termination>, Vec<String>),
    /// The same of instances that another autoscaler launched.
    adopted: (Vec<Termination>, Vec<String>),
}

impl Session {
    /// Moves every claim one step on.
    pub(super) fn live(&mut self, region: &Region, now_ms: i64) {
        let claims = self.state.claims();
        let steps = self.steps(&claims, region, now_ms);
        let cluster_id = self.state.cluster_id();
        let unclaimed = region.read(|known| unclaimed::by_pool(cluster_id, &claims, known));
        self.planning.see_unclaimed(&unclaimed);
        self.describe_cluster(region, now_ms);
        let mut gathered = Gathered { now_ms, ..Gathered::default() };
        // What is only being launched makes the cluster no larger to lose from.
        let nodes = claims.values().filter(|claim| claim.register_time.is_some()).count();
        for Due { step, evidence } in steps {
            if let Evidence::Absence(name) = &evidence
                && !self.safety.admits(name, nodes)
            {
                continue;
            }
            match step {
                lifecycle::Step::Launch(name) => {
                    self.launch(&claims, &name, region, &mut gathered);
                }
                lifecycle::Step::Terminate(termination) => {
                    self.terminate(termination, &mut gathered);
                }
                lifecycle::Step::Direct { claim, action } => {
                    self.note(&claim, &action, now_ms);
                    self.direct(&claims, &claim, *action, now_ms);
                }
            }
        }
        let unreadable = self.state.tombstones().choice();
        self.safety.conclude(self.state.cluster_id(), unreadable);
        self.send(gathered, region);
    }

    /// What claims and instances need next, the most urgent first.
    fn steps(
        &mut self,
        claims: &BTreeMap<String, NodeClaim>,
        region: &Region,
        session_ms: i64,
    ) -> Vec<Due> {
        let (verdicts, asked) = (self.verdicts(), self.safety.asked());
        let mut sightings = std::mem::take(&mut self.safety.sightings);
        let (mut steps, blocked) = region.read(|state| {
            let mut world = World {
                cluster_id: self.state.cluster_id(),
                claims,
                watched: self.state.watched(),
                nodes: self.state.nodes_by_provider(),
                nominations: self.planning.nominations(),
                turns: self.planning.turns(),
                pins_pods: self.state.pins_pods,
                any_order: self.planning.newest().is_some_and(|newest| newest.plan.any_order),
                region: state,
                pools: self.state.pools(),
                tombstones: self.state.tombstones(),
                sightings: &Sightings::default(),
                verdicts: &verdicts,
                asked: &asked,
                settled: self.safety.is_settled(session_ms),
                now_ms: self.now_ms(),
                session_ms,
            };
            sightings.observe(lifecycle::passing(&world), session_ms);
            world.sightings = &sightings;
            (lifecycle::steps(&world), lifecycle::blocked(&world))
        });
        self.safety.repair_blocked = blocked;
        let given_up = lifecycle::given_up(claims, &sightings, session_ms);
        self.planning.give_up(given_up);
        self.safety.unknown = lifecycle::unknown(claims, &sightings, session_ms);
        self.safety.sightings = sightings;
        steps.sort_by_key(|due| due.step.urgency());
        steps
    }

    /// What becomes of nodes that are marked to go.
    fn verdicts(&mut self) -> BTreeMap<String, Verdict> {
        let marked = self.state.watched().values();
        let marked = marked.filter(|claim| !claim.deleting && !claim.disruption_reason.is_empty());
        let names: Vec<ClaimName> = marked.map(|claim| claim.name.as_str().into()).collect();
        let Some(newest) = self.planning.newest().filter(|_| !names.is_empty()) else {
            return BTreeMap::new();
        };
        let places = newest.plan.placements.iter();
        let places = places.map(|placement| (&placement.pod, &placement.target)).collect();
        let world = self.state.view().world();
        let bench = Bench {
            world,
            plan: &newest.plan,
            places: &places,
            tainted: &newest.tainted,
            now_ms: self.now_ms(),
        };
        let of_claim = |name: &ClaimName| {
            let claim = world.claims.get(name)?;
            let provider = &self.state.watched().get(name.as_str())?.provider_id;
            let node = self.state.nodes_by_provider().get(provider)?;
            // Its taint keeps new pods away; without it nothing that is seen would last.
            let open = node.disrupted && !self.is_guarded(&node.name.as_str().into());
            let verdict = match open {
                true => bench.verdict(claim, &node.name.as_str().into()),
                false => Verdict::Wait,
            };
            Some((name.to_string(), verdict, node.disrupted && !newest.tainted.contains(name)))
        };
        let found: Vec<_> = names.iter().filter_map(of_claim).collect();
        if found.iter().any(|(_, _, unplanned)| *unplanned) {
            self.planning.want_if_idle();
        }
        found.into_iter().map(|(name, verdict, _)| (name, verdict)).collect()
    }

    /// True when a drain of the node would move pods of a namespace of which a budget cannot be
    /// read.
    pub(super) fn is_guarded(&self, node: &NodeName) -> bool {
        let (stones, world) = (self.state.tombstones(), self.state.view().world());
        verdict::moved(world, node).any(|pod| stones.guards(&pod.key.namespace))
    }

    /// Takes note of what is about to be asked.
    fn note(&mut self, claim: &str, action: &Action, now_ms: i64) {
        if matches!(action, Action::RegisterNode(_)) {
            self.planning.opens(claim);
        }
        if matches!(action, Action::DisruptClaim(disrupt) if disrupt.cancel) {
            self.safety.spare(claim, now_ms);
        }
    }

    /// Notes whether the region is within reach, and tells people when that has changed.
    pub(super) fn watch_region(&mut self) {
        let found = outage::of(self.state.facts(), &self.regions);
        outage::tell(self.state.cluster_id(), self.outage.as_ref(), found.as_ref());
        self.outage = found;
    }

    /// Writes the status of pools and node classes, and says what could not be read or served.
    /// Looks at everything, and so not on every pass; the timer behind every signal makes up for
    /// it.
    pub(super) fn publish_status(&mut self, now_ms: i64) {
        if now_ms < self.status_due_ms {
            return;
        }
        self.status_due_ms = now_ms + STATUS_EVERY_MS;
        let region = self.region();
        let mut written = self
            .planning
            .closed()
            .map_or_else(Vec::new, |closed| pools::written(&self.state, closed, self.problems()));
        written.extend(overlays::written(&self.state, self.planning.conflicts()));
        written.extend(
            self.planning.newest().iter().flat_map(|newest| buffers::written(&newest.plan)),
        );
        if let Some(region) = region {
            written.extend(region.read(|state| status::node_classes(&self.state, state)));
        } else if let Some(outage) = &self.outage {
            written = pools::written(&self.state, &BTreeMap::new(), self.problems());
            written.extend(status::stranded(&self.state, outage));
        }
        written.extend(status::expiring(&self.state, self.now_ms()));
        let statuses: BTreeSet<&str> = written.iter().map(|written| written.key.as_str()).collect();
        self.outbox.forget_gone(&statuses);
        let pods = &self.state.view().world().pods;
        self.outbox.forget_pods(|uid| pods.contains_key(uid));
        written.extend(status::refusals(self.state.take_refused()));
        let frozen = self.safety.freeze().map(|freeze| status::frozen(freeze, &self.state));
        written.extend(frozen.into_iter().flatten());
        written.extend(self.safety.unknown.iter().map(|claim| status::unknown(claim)));
        written.extend(status::stopped(&self.state));
        written.extend(status::unrepaired(&self.safety.repair_blocked));
        let origin = Origin { now_ms, ..Default::default() };
        for Written { key, content, action } in written {
            self.outbox.direct_once(&key, &content, action, origin);
        }
        for holds::Due { claim, action } in self.holds.due(now_ms) {
            if self.outbox.direct(&format!("held/{claim}"), "", action, origin) {
                self.holds.told(&claim);
            }
        }
        for note in self.state.drift_notes() {
            let claim = note.claim.clone();
            let key = format!("drift/{claim}");
            self.outbox.direct(&key, &claim, Action::NoteDrift(note), origin);
        }
        self.tell_unplaced(origin);
    }

    fn problems(&self) -> pools::Problems<'_> {
        pools::Problems { outage: self.outage.as_ref(), freeze: self.safety.freeze() }
    }

    /// Tells the actuator about the cluster whenever that, or the leader, has changed.
    fn describe_cluster(&mut self, region: &Region, now_ms: i64) {
        let Some(facts) = self.state.facts() else { return };
        let node_classes: Vec<_> = self.state.node_classes().values().cloned().collect();
        let key = region.read(|state| description_key(facts, &node_classes, state));
        if !self.outbox.is_free(&key, now_ms) {
            return;
        }
        let order = Order::Cluster { facts: Box::new(facts.clone()), node_classes };
        // Said once for each leader and content; an error report frees the key again.
        self.post(Parcel { order, keys: vec![key], client: region.client.clone() }, i64::MAX);
    }

    fn launch(
        &mut self,
        claims: &BTreeMap<String, NodeClaim>,
        name: &str,
        region: &Region,
        gathered: &mut Gathered,
    ) {
        let (key, now_ms) = (format!("launch/{name}"), gathered.now_ms);
        let Some(claim) = claims.get(name) else { return };
        if !self.outbox.is_free(&key, now_ms) || !self.state.may_launch(name, now_ms) {
            return;
        }
        match region.read(|state| self.request(claim, state)) {
            candidates::Request::Wait => self.give_up_waiting(claims, name, now_ms),
            candidates::Request::Launch(launch) => {
                if self.safety.launching(name, now_ms) {
                    self.count_launch(name);
                }
                gathered.launches.push(*launch);
                gathered.keys.push(key);
            }
            candidates::Request::Impossible(failure) => {
                let action = Action::RecordLaunchFailure(failure);
                self.direct(claims, name, action, now_ms);
            }
        }
    }

    /// A claim whose node class has broken since it was made makes way for one of another pool.
    fn give_up_waiting(&mut self, claims: &BTreeMap<String, NodeClaim>, name: &str, now_ms: i64) {
        let lasted_ms = self.safety.sightings.lasted_ms(&format!("launching/{name}"), now_ms);
        if lasted_ms <= CLASS_PATIENCE_MS || planted::is("S18") {
            return;
        }
        let failure = RecordLaunchFailure {
            claim: name.to_owned(),
            reason: "NODE_CLASS_NOT_READY".to_owned(),
            message:
                "its node class has not been ready for five minutes, so nothing can be launched; \
                      see the conditions of the class"
                    .to_owned(),
            delete: true,
        };
        self.direct(claims, name, Action::RecordLaunchFailure(failure), now_ms);
    }

    fn request(&self, claim: &NodeClaim, region: &RegionState) -> candidates::Request {
        let class = self.state.node_classes().get(&claim.node_class);
        let overlaid = self.planning.overlaid(&claim.pool);
        candidates::request(
            self.state.cluster_id(),
            claim,
            class,
            candidates::Offered { region, overlaid, objective: self.planning.objective() },
        )
    }

    fn terminate(&self, termination: Termination, gathered: &mut Gathered) {
        let Termination { instance_id, launch_id, .. } = &termination;
        let id = if instance_id.is_empty() { launch_id } else { instance_id };
        let key = format!("terminate/{id}");
        if self.outbox.is_free(&key, gathered.now_ms) {
            let adopted = termination.launch_id.is_empty();
            let ends = if adopted { &mut gathered.adopted } else { &mut gathered.ends };
            ends.0.push(termination);
            ends.1.push(key);
        }
    }

    fn direct(
        &mut self,
        claims: &BTreeMap<String, NodeClaim>,
        claim: &str,
        action: Action,
        now_ms: i64,
    ) {
        let traceparent = claims.get(claim).map_or("", |claim| claim.traceparent.as_str());
        let key = format!("{}/{claim}", lifecycle::need(&action));
        let deletes = if let Action::DeleteClaim(delete) = &action {
            Some(delete.reason.clone())
        } else {
            None
        };
        let origin = Origin { plan_id: "", traceparent, now_ms };
        if self.outbox.direct(&key, claim, action, origin)
            && let Some(reason) = deletes
        {
            self.state.deleting(claim, &reason, now_ms);
            self.planning.want("");
        }
    }

    fn send(&mut self, gathered: Gathered, region: &Region) {
        let Gathered { now_ms, mut launches, mut keys, ends, adopted } = gathered;
        let plan_id = self.planning.plan_id(self.state.cluster_id());
        if !adopted.0.is_empty() {
            // An actuator of the version before refuses these, and all that comes with them.
            let plan_id = format!("{plan_id}-adopted");
            let order = Order::Plan { plan_id, launches: Vec::new(), terminations: adopted.0 };
            let client = region.client.clone();
            self.post(Parcel { order, keys: adopted.1, client }, now_ms + REST_MS);
        }
        let mut terminations = ends.0;
        keys.extend(ends.1);
        let mut keys = Some(keys);
        while !launches.is_empty() || !terminations.is_empty() {
            let rest = launches.split_off(launches.len().min(LAUNCHES_PER_APPLY_MAX));
            let order = Order::Plan {
                plan_id: plan_id.clone(),
                launches: std::mem::replace(&mut launches, rest),
                terminations: std::mem::take(&mut terminations),
            };
            let keys = keys.take().unwrap_or_default();
            self.post(Parcel { order, keys, client: region.client.clone() }, now_ms + REST_MS);
        }
    }

    /// Hands a parcel to the dispatcher; when its queue is full the needs simply stay.
    fn post(&mut self, parcel: Parcel, rest_until_ms: i64) {
        let keys = parcel.keys.clone();
        if self.parcels.try_send(parcel).is_ok() {
            for key in keys {
                self.outbox.rest(&key, rest_until_ms);
            }
        }
    }
}

/// Need of a leader to know the cluster: another one for each leader and each content.
fn description_key(facts: &ClusterFacts, classes: &[NodeClass], region: &RegionState) -> String {
    let mut hasher = DefaultHasher::new();
    facts.encode_to_vec().hash(&mut hasher);
    classes.iter().for_each(|class| class.encode_to_vec().hash(&mut hasher));
    let term = region.info.as_ref().map_or(0, |info| info.term);
    format!("cluster/{term}/{}/{:x}", region.stream, hasher.finish())
}
