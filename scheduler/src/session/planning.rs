//! The planning loop of one cluster: when to plan, and what the newest plan says.
//!
//! Invariant: at most one plan is computed at a time and the newest wins.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use longshore_core::answer::Target;
use longshore_core::catalogue::Catalogue;
use longshore_core::offers::Objective;
use longshore_core::question::{Effort, PlanInput, Spared};
use longshore_core::reason::Obstacle;
use longshore_core::vocabulary::ids::{
    CatalogueId, ClaimName, OverlayName, PodUid, PoolName, ShapeId,
};
use longshore_core::world::view::World;
use longshore_proto::provider_id::instance_id;
use longshore_runtime::backoff::{Backoff, BackoffPolicy};
use longshore_runtime::planted;
use longshore_runtime::platform::Platform;
use longshore_runtime::workers::{JobError, Urgency, Workers};
use tokio::time::Instant;

use super::cadence::{Cadence, Stir};
use super::foresight;
use super::overlays::Kept;
pub use super::proposal::Proposal;
use super::proposal::{self, Asked};
use super::quarantine::{Quarantine, Suspect};
use super::state::ClusterState;
use super::unclaimed::{self, Unclaimed};
use crate::counters::OfCluster;
use crate::region::directory::Region;
use crate::settings::Settings;

/// Waits after plans that failed: a world that makes the planner fail does so again until it
/// changes.
const FAILED_AGAIN: BackoffPolicy =
    BackoffPolicy { minimum: Duration::from_secs(1), maximum: Duration::from_secs(60) };

/// Places that are kept for pods to come, by node or claim and by shape.
type Places = BTreeMap<String, BTreeMap<ShapeId, i64>>;

/// What a job of the planner came to.
enum Done {
    /// A plan.
    Planned(Option<Box<Proposal>>),
    /// What the planner fails on, in this world, with what it said.
    Found(BTreeSet<Suspect>, Arc<World>, String),
}

/// State of the loop.
pub struct Planning {
    session_epoch: u64,
    settings: Settings,
    plans: u64,
    /// When to plan.
    pub cadence: Cadence,
    workers: Workers,
    running: Option<BoxFuture<'static, Result<Done, JobError>>>,
    /// Delays after plans that failed.
    failures: Backoff,
    /// What the planner said when it failed, until it is known on what.
    failed_with: Option<String>,
    /// What it fails on.
    quarantine: Quarantine,
    newest: Option<Proposal>,
    nominations: BTreeMap<String, Vec<String>>,
    /// Places that the newest plan keeps on each claim or its node for pods that are to come.
    kept: Places,
    /// Claims whose nodes have been told to open, until they are in service.
    opening: BTreeSet<ClaimName>,
    /// Instances that no pod is to wait for any more.
    given_up: BTreeSet<String>,
    /// What the newest plan knew to draw on limits without a claim.
    unclaimed: Unclaimed,
    /// What overlays make of the catalogues, and what is avoided of them.
    overlays: Kept,
    /// What metrics show of the cluster.
    pub shown: OfCluster,
    /// When the newest plan, or the one under way, was begun.
    began: Instant,
}

impl Planning {
    /// A loop that has not planned yet.
    #[must_use]
    pub fn new(session_epoch: u64, settings: Settings, platform: &Platform) -> Self {
        Self {
            session_epoch,
            cadence: Cadence::new(settings.burst_max),
            settings,
            plans: 0,
            workers: platform.workers.clone(),
            running: None,
            failures: Backoff::new(FAILED_AGAIN, platform.entropy.clone()),
            failed_with: None,
            quarantine: Quarantine::default(),
            newest: None,
            nominations: BTreeMap::new(),
            kept: BTreeMap::new(),
            opening: BTreeSet::new(),
            given_up: BTreeSet::new(),
            unclaimed: Unclaimed::new(),
            overlays: Kept::default(),
            shown: OfCluster::default(),
            began: Instant::now(),
        }
    }

    /// A pod may need a place, or what a user wants has changed; `traceparent` is the trace of the
    /// change, empty when untraced.
    pub fn want(&mut self, traceparent: &str) {
        self.cadence.stir(Stir::Demand, traceparent);
    }

    /// No pod is to wait for these instances any more.
    pub fn give_up(&mut self, instances: BTreeSet<String>) {
        if self.given_up != instances && !planted::is("S18") {
            self.given_up = instances;
            self.want("");
        }
    }

    /// Plans again when other instances than before have no claim: limits have room that had none,
    /// or none.
    pub fn see_unclaimed(&mut self, found: &Unclaimed) {
        if self.unclaimed != *found {
            self.want_if_idle();
        }
    }

    /// Plans again unless that is wanted or under way already.
    pub fn want_if_idle(&mut self) {
        if !self.cadence.is_wanted() && self.running.is_none() {
            self.want("");
        }
    }

    /// When the loop wants to run next; `None` when nothing is waited for.
    #[must_use]
    pub fn wake_at(&self) -> Option<Instant> {
        self.running.is_none().then(|| self.cadence.due_at()).flatten()
    }

    /// Launches of a proposal that wait for more pods, which could better them; until when.
    #[must_use]
    pub fn holds(&mut self, proposal: &Proposal) -> Option<(Vec<bool>, Duration)> {
        self.cadence.comes_after(proposal.ahead);
        let until = self.cadence.gathers_until()?;
        let held = proposal.certain.iter().map(|certain| !certain).collect();
        Some((held, until.saturating_duration_since(Instant::now())))
    }

    /// Pods that the newest plan wants on each claim or its node.
    #[must_use]
    pub const fn nominations(&self) -> &BTreeMap<String, Vec<String>> {
        &self.nominations
    }

    /// Claims whose nodes the newest plan knows to be fit, with the turn in which each opens.
    #[must_use]
    pub fn turns(&self) -> &BTreeMap<ClaimName, i64> {
        static NONE: BTreeMap<ClaimName, i64> = BTreeMap::new();
        self.newest.as_ref().map_or(&NONE, |newest| &newest.plan.turns)
    }

    /// A claim's node is told to open, to the pods that the newest plan wants there.
    pub fn opens(&mut self, claim: &str) {
        self.opening.insert(ClaimName::new(claim));
    }

    /// True when a node has been told to open while the plan was computed that the plan believes to
    /// be still unfit: it may have given that node's pods to others.
    #[must_use]
    pub fn has_overtaken(&self, proposal: &Proposal) -> bool {
        let known = |claim: &ClaimName| {
            proposal.opening.contains(claim) || proposal.plan.turns.contains_key(claim)
        };
        !self.opening.iter().all(known)
    }

    /// The claim that the newest plan wants a pod on.
    #[must_use]
    pub fn claim_of(&self, pod: &PodUid) -> Option<&str> {
        let wants = |pods: &Vec<String>| pods.iter().any(|uid| uid == pod.as_str());
        self.nominations.iter().find(|(_, pods)| wants(pods)).map(|(claim, _)| claim.as_str())
    }

    /// The newest plan.
    #[must_use]
    pub const fn newest(&self) -> Option<&Proposal> {
        self.newest.as_ref()
    }

    /// Pools that can make no node by the newest plan, and why; none before the first.
    #[must_use]
    pub fn closed(&self) -> Option<&BTreeMap<PoolName, Obstacle>> {
        self.newest.as_ref().map(|newest| &newest.closed)
    }

    /// Id of the newest plan; before the first, one that has done nothing. Effects do not wait for
    /// a plan.
    #[must_use]
    pub fn plan_id(&self, cluster_id: &str) -> String {
        let none = || format!("{cluster_id}-{}-0", self.session_epoch);
        self.newest.as_ref().map_or_else(none, |newest| newest.plan_id.clone())
    }

    /// The catalogue of a pool as overlays make it, and without what it avoids, when there is any.
    #[must_use]
    pub fn overlaid(&self, pool: &str) -> Option<&Catalogue> {
        self.overlays.overlaid().catalogues.get(pool).map(AsRef::as_ref)
    }

    /// What plans minimise.
    #[must_use]
    pub const fn objective(&self) -> &Objective {
        &self.settings.objective
    }

    /// Epoch of the session.
    #[must_use]
    pub const fn session_epoch(&self) -> u64 {
        self.session_epoch
    }

    /// Overlays without effect, each with the one that it contradicts.
    #[must_use]
    pub const fn conflicts(&self) -> &BTreeMap<OverlayName, OverlayName> {
        &self.overlays.overlaid().conflicts
    }

    /// Computes a plan off the loop when one is wanted and due.
    pub fn start_if_due(
        &mut self,
        state: &mut ClusterState,
        region: &Region,
        spared: BTreeMap<ClaimName, Spared>,
        now_ms: i64,
    ) {
        let due = self.wake_at().is_some_and(|at| at <= Instant::now());
        if !due || self.running.is_some() {
            return;
        }
        let mut coming = state.foresight().coming().clone();
        let (traceparents, consolidates) = self.cadence.begin(state.foresight().expects());
        self.plans += 1;
        self.began = Instant::now();
        let plan_id = format!("{}-{}-{}", state.cluster_id(), self.session_epoch, self.plans);
        let span = proposal::span(state.cluster_id(), &plan_id, &traceparents);
        let look_ms = region.read(|known| state.refresh(known, now_ms));
        if let Some(look_ms) = look_ms {
            let wait_ms = u64::try_from(look_ms - now_ms).unwrap_or(0);
            self.cadence.wake_after(Duration::from_millis(wait_ms));
        }
        self.opening.retain(|claim| state.is_starting(claim.as_str()));
        let input = PlanInput { consolidates, spared, ..self.input(state, region, now_ms) };
        let (input, left_out) = self.quarantine.applied(input, &mut coming);
        let (tenant, failed_with) = (state.cluster_id(), self.failed_with.take());
        self.running = Some(match failed_with {
            None => {
                let drift_hashes = state.drift_hashes();
                let looks = input.consolidates && self.cadence.looks_again();
                let asked = Asked { input, coming, plan_id, looks, span, left_out, drift_hashes };
                let propose = move || proposal::propose(asked, foresight::plan);
                let job = move || Done::Planned(propose().map(Box::new));
                Box::pin(self.workers.run(tenant, Urgency::Live, job))
            }
            // Many plans: other clusters come first.
            Some(said) => {
                let job = move || {
                    let at_fault = proposal::at_fault(&input, &coming, foresight::plan);
                    Done::Found(at_fault, input.world, said)
                };
                Box::pin(self.workers.run(tenant, Urgency::WhatIf, job))
            }
        });
    }

    /// The plan under way, when it is done. Waits for ever when none is under way.
    pub async fn finished(&mut self) -> Option<Proposal> {
        let Some(running) = &mut self.running else { return std::future::pending().await };
        let outcome = running.await;
        self.running = None;
        self.cadence.ended();
        match outcome {
            Ok(Done::Planned(proposal)) => {
                self.shown.scheduled(self.began.elapsed());
                self.failures.reset();
                self.cadence.release();
                return proposal.map(|proposal| *proposal);
            }
            Ok(Done::Found(at_fault, world, said)) => {
                self.quarantine.hold(at_fault, &world, &said);
                self.cadence.release();
                self.want("");
            }
            Err(error) => self.failed(&error),
        }
        None
    }

    /// A plan has not come about: the same world is likely to fail again, so the next one waits.
    fn failed(&mut self, error: &JobError) {
        let wait = self.failures.next_delay();
        tracing::error!(%error, ?wait, "the planner failed; it plans anew after a wait");
        if planted::is("S20s") {
            return;
        }
        if let JobError::Panicked(said) = error {
            self.failed_with = Some(said.clone());
        }
        self.cadence.hold(wait);
        self.cadence.wake_after(wait);
    }

    /// Takes a plan as the newest and remembers which pods it wants on which claim. `launched`
    /// names the claims of its launches, in order; a launch that was skipped has none.
    pub fn adopt(
        &mut self,
        mut proposal: Proposal,
        launched: &[Option<String>],
        state: &ClusterState,
        now_ms: i64,
    ) {
        let by_node = state.claims_by_node();
        let claim = |target: &Target| match target {
            Target::Claim(claim) => Some(claim.to_string()),
            Target::New(index) => launched.get(*index).cloned().flatten(),
            Target::Node(node) => by_node.get(node.as_str()).cloned(),
        };
        self.nominations.clear();
        for placement in &proposal.plan.placements {
            if let Some(claim) = claim(&placement.target) {
                self.nominations.entry(claim).or_default().push(placement.pod.to_string());
            }
        }
        let kept = std::mem::take(&mut proposal.kept).into_iter();
        self.kept = kept.filter_map(|(on, places)| Some((claim(&on)?, places))).collect();
        if let Some(wake_ms) = proposal.plan.wake_ms {
            let wait_ms = u64::try_from(wake_ms - now_ms).unwrap_or(0);
            self.cadence.wake_after(Duration::from_millis(wait_ms));
        }
        self.newest = Some(proposal);
    }

    /// Everything the next plan depends on.
    pub fn input(&mut self, state: &ClusterState, region: &Region, now_ms: i64) -> PlanInput {
        let claims = state.claims();
        let ids = claims.values().map(|claim| instance_id(&claim.provider_id));
        let (catalogues, interrupted) = region.read(|known| {
            self.unclaimed = unclaimed::by_pool(state.cluster_id(), &claims, known);
            let announced =
                ids.filter(|id| known.interruption(id).is_some()).map(ToOwned::to_owned);
            let announced = announced.chain(self.given_up.iter().cloned()).collect();
            let catalogues = known
                .catalogues
                .iter()
                .map(|(id, catalogue)| (CatalogueId::new(id), Arc::clone(catalogue)))
                .collect();
            (catalogues, announced)
        });
        self.overlays.refresh(state.view().world(), &catalogues, state.avoided());
        let (earlier, kept) = self.earlier(state);
        self.settings.applied(PlanInput {
            world: state.foresight().with_ends(state.view().snapshot(), now_ms),
            catalogues,
            overlaid: self.overlays.overlaid().catalogues.clone(),
            interrupted_instances: interrupted,
            unclaimed: self.unclaimed.clone(),
            earlier,
            kept,
            opening: self.opening.clone(),
            pinned: state.pins_pods,
            now_ms,
            effort: Effort::Default,
            ..PlanInput::default()
        })
    }

    /// Where the newest plan wants each pod, and the places that it keeps, by the name that each
    /// claim or its node has by now.
    fn earlier(&self, state: &ClusterState) -> (BTreeMap<PodUid, String>, Places) {
        let nodes: BTreeMap<String, String> =
            state.claims_by_node().into_iter().map(|(node, claim)| (claim, node)).collect();
        let name = |claim: &String| nodes.get(claim).unwrap_or(claim).clone();
        let by_claim = self
            .nominations
            .iter()
            .flat_map(|(claim, pods)| pods.iter().map(move |pod| (PodUid::new(pod), name(claim))));
        let kept = self.kept.iter().map(|(claim, places)| (name(claim), places.clone()));
        (by_claim.collect(), kept.collect())
    }
}

#[cfg(test)]
mod tests;
