//! Directives of the scheduler, carried out against the API server.
//!
//! Invariant: every directive is idempotent, is not started after it has expired, and is answered
//! exactly once for each time it is sent; no more than a fixed number are under way at once.
//! Answers are remembered within one session and never given in another. What a decision to end a
//! node rests on is looked at again here (`assume.rs`).

mod admission;
mod assume;
pub mod claim;
mod conditions;
mod counted;
pub mod disrupt;
mod drift;
pub mod event;
mod lanes;
pub mod launch;
pub mod nominate;
mod passes;
mod pin;
pub mod register;
pub mod release;
pub mod status;
mod turns;

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use longshore_proto::cluster::v1::directive::Action;
use longshore_proto::cluster::v1::{Directive, DirectiveResult, DirectiveStatus};
use longshore_runtime::platform::Platform;
use longshore_runtime::propagate;
use tracing::Instrument as _;

use self::admission::Admission;
use self::lanes::Arrived;
use self::passes::Passes;
use self::turns::Turns;
use crate::api::NodeClaim;
use crate::api::keys;
use crate::args::Placement;
use crate::counters::Counters;
use crate::events::{Events, Happening};
use crate::index::Store;
use crate::losses::Losses;
use crate::observe::reference;
use crate::patch::{code, time};

/// Results remembered, so that a directive that is sent again is answered again.
const REMEMBERED: usize = 4096;

/// What carries out directives. Clones share what is remembered.
#[derive(Clone)]
pub struct Directives {
    /// The API server.
    pub client: kube::Client,
    /// What is known of the cluster.
    pub store: Store,
    /// Where Events go.
    pub events: Events,
    /// What is counted.
    pub counters: Counters,
    /// Time of day and randomness.
    pub platform: Platform,
    /// What has been let go on absence alone.
    pub losses: Losses,
    placement: Placement,
    remembered: Arc<Mutex<Memory>>,
    admission: Admission,
    passes: Passes,
    turns: Turns,
    /// True once the missing right to nominate pods has been reported.
    nomination_refused: Arc<AtomicBool>,
    /// The same of the right to pin them.
    pinning_refused: Arc<AtomicBool>,
}

/// Answers of one session, the oldest forgotten first.
#[derive(Debug, Default)]
struct Memory {
    order: VecDeque<String>,
    results: BTreeMap<String, DirectiveResult>,
}

/// Why a directive was not carried out.
#[derive(Debug, thiserror::Error)]
pub enum DirectiveError {
    /// It will never be.
    #[error("{message}")]
    Refused {
        /// Machine-readable.
        reason: &'static str,
        /// For people.
        message: String,
    },
    /// The API server did not do it; it may later.
    #[error("{0}")]
    Api(#[from] kube::Error),
}

impl DirectiveError {
    /// A refusal.
    pub fn refused(reason: &'static str, message: impl Into<String>) -> Self {
        Self::Refused { reason, message: message.into() }
    }

    fn class(&self) -> (DirectiveStatus, &'static str) {
        match self {
            Self::Refused { reason, .. } => (DirectiveStatus::Refused, reason),
            Self::Api(error) => match code(error) {
                Some(403) => (DirectiveStatus::Failed, "FORBIDDEN"),
                Some(409) => (DirectiveStatus::Failed, "CONFLICT"),
                Some(400 | 422) => (DirectiveStatus::Refused, "INVALID"),
                Some(429) => (DirectiveStatus::Failed, "OVERLOADED"),
                _ => (DirectiveStatus::Failed, "API_SERVER"),
            },
        }
    }
}

/// Result of one directive.
pub type Outcome = Result<(), DirectiveError>;

impl Directives {
    /// What carries out directives against `client`.
    #[must_use]
    pub fn new(
        client: kube::Client,
        store: Store,
        events: Events,
        counters: Counters,
        platform: Platform,
    ) -> Self {
        Self {
            client,
            store,
            events,
            counters,
            platform,
            losses: Losses::default(),
            placement: Placement::default(),
            remembered: Arc::default(),
            admission: Admission::default(),
            passes: Passes::default(),
            turns: Turns::default(),
            nomination_refused: Arc::default(),
            pinning_refused: Arc::default(),
        }
    }

    /// The same, with planned pods brought to their nodes in this way.
    #[must_use]
    pub fn with(self, placement: Placement) -> Self {
        Self { placement, ..self }
    }

    /// The same, with what goes on absence alone noted here.
    #[must_use]
    pub fn noting(self, losses: Losses) -> Self {
        Self { losses, ..self }
    }

    /// The time now, at the resolution of the API.
    #[must_use]
    pub fn now(&self) -> Time {
        time(self.platform.clock.now_ms())
    }

    /// Whether planned pods are let onto closed nodes one by one, as far as is known.
    #[must_use]
    pub fn pins_pods(&self) -> bool {
        self.placement == Placement::Pin && !self.pinning_refused.load(Ordering::Relaxed)
    }

    /// Tells people what has come of a claim, under `kubectl describe`.
    pub(crate) fn say_of_claim(&self, claim: &NodeClaim, reason: &str, note: String) {
        let about = reference::<NodeClaim>(&claim.metadata);
        self.events.publish(Happening { about, warning: false, reason: reason.to_owned(), note });
    }

    /// Tells people that the node of a claim is in service.
    pub(crate) fn say_ready(&self, claim: &NodeClaim, node: &str) {
        self.say_of_claim(claim, keys::conditions::READY, format!("node {node} takes pods"));
    }

    async fn answer(&self, arrived: Arrived) -> DirectiveResult {
        let directive = &arrived.directive;
        if let Some(before) = self.recall(&directive.directive_id) {
            return before;
        }
        let result = if arrived.is_expired(self.platform.clock.now_ms()) {
            result(directive, DirectiveStatus::Expired, "EXPIRED", "it waited here for too long")
        } else {
            self.carry_out(directive).await
        };
        self.counters.directive(result.status());
        self.remember(result.clone());
        result
    }

    async fn carry_out(&self, directive: &Directive) -> DirectiveResult {
        let Some(action) = &directive.action else {
            let text = "a directive without an action";
            return result(directive, DirectiveStatus::Refused, "MALFORMED", text);
        };
        let span = span(action);
        propagate::set_parent(&span, traceparent(directive, action));
        span.in_scope(|| tracing::debug!("directive begun"));
        let outcome = self.act(action).instrument(span.clone()).await;
        match outcome {
            Ok(()) => {
                span.in_scope(|| tracing::debug!("directive carried out"));
                result(directive, DirectiveStatus::Done, "", "")
            }
            Err(error) => {
                let (status, reason) = error.class();
                let plan = &directive.plan_id;
                tracing::warn!(plan, reason, %error, "directive not carried out");
                result(directive, status, reason, &error.to_string())
            }
        }
    }

    async fn act(&self, action: &Action) -> Outcome {
        match action {
            Action::CreateClaim(a) => self.create_claim(a).await,
            Action::RecordLaunch(a) => self.record_launch(a).await,
            Action::RecordLaunchFailure(a) => self.record_launch_failure(a).await,
            Action::RegisterNode(a) => self.register_node(a).await,
            Action::NominatePods(a) => self.nominate_pods(a).await,
            Action::PinPods(a) => self.pin_pods(a).await,
            Action::DisruptClaim(a) => self.disrupt_claim(a).await,
            Action::DeleteClaim(a) => self.delete_claim(a).await,
            Action::ReleaseClaim(a) => self.release_claim(a).await,
            Action::SetNodeClassStatus(a) => self.set_node_class_status(a).await,
            Action::SetNodePoolStatus(a) => self.set_node_pool_status(a).await,
            Action::SetConditions(a) => self.set_conditions(a).await,
            Action::PublishEvent(a) => self.publish_event(a),
            Action::NoteDrift(a) => self.note_drift(a).await,
        }
    }

    fn recall(&self, id: &str) -> Option<DirectiveResult> {
        self.memory().results.get(id).cloned()
    }

    fn remember(&self, result: DirectiveResult) {
        let mut memory = self.memory();
        if memory.results.insert(result.directive_id.clone(), result.clone()).is_none() {
            memory.order.push_back(result.directive_id);
        }
        if memory.order.len() > REMEMBERED
            && let Some(oldest) = memory.order.pop_front()
        {
            memory.results.remove(&oldest);
        }
    }

    fn forget(&self) {
        *self.memory() = Memory::default();
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.remembered.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Warns of something that stays as it is, once.
fn report_once(reported: &AtomicBool, text: &str) {
    if !reported.swap(true, Ordering::Relaxed) {
        tracing::warn!("{text}");
    }
}

fn result(
    directive: &Directive,
    status: DirectiveStatus,
    reason: &str,
    message: &str,
) -> DirectiveResult {
    DirectiveResult {
        directive_id: directive.directive_id.clone(),
        status: status.into(),
        reason: reason.to_owned(),
        message: message.to_owned(),
    }
}

/// The trace a directive belongs to: its own, or that of the claim it creates.
fn traceparent<'a>(directive: &'a Directive, action: &'a Action) -> &'a str {
    let created =
        if let Action::CreateClaim(create) = action { create.claim.as_ref() } else { None };
    let own = created.map_or("", |claim| claim.traceparent.as_str());
    if directive.traceparent.is_empty() { own } else { &directive.traceparent }
}

/// Span of an action, with the name it is known by in traces.
fn span(action: &Action) -> tracing::Span {
    use tracing::info_span;
    match action {
        Action::CreateClaim(a) => {
            let claim = a.claim.as_ref().map_or("", |claim| &claim.name);
            info_span!("watcher.create_claim", claim, pods = a.pods.len())
        }
        Action::RecordLaunch(a) => {
            let (claim, instance_type) = (&a.claim, &a.instance_type);
            info_span!("watcher.record_launch", claim, instance_type, zone = a.zone)
        }
        Action::RecordLaunchFailure(a) => {
            info_span!("watcher.record_launch_failure", claim = a.claim, reason = a.reason)
        }
        Action::RegisterNode(a) => {
            let (claim, node) = (&a.claim, &a.node);
            info_span!("watcher.register_node", claim, node, pods = a.pods.len())
        }
        Action::NominatePods(a) => {
            info_span!("watcher.nominate_pods", node = a.node, pods = a.pods.len())
        }
        Action::PinPods(a) => {
            info_span!("watcher.pin_pods", claim = a.claim, pods = a.pods.len())
        }
        Action::DisruptClaim(a) => {
            let (claim, reason) = (&a.claim, &a.reason);
            info_span!("watcher.disrupt_claim", claim, reason, cancel = a.cancel)
        }
        Action::DeleteClaim(a) => {
            info_span!("watcher.delete_claim", claim = a.claim, reason = a.reason)
        }
        Action::ReleaseClaim(a) => info_span!("watcher.release_claim", claim = a.claim),
        Action::SetNodeClassStatus(a) => {
            info_span!("watcher.set_node_class_status", node_class = a.node_class)
        }
        Action::SetNodePoolStatus(a) => {
            info_span!("watcher.set_node_pool_status", pool = a.pool)
        }
        Action::SetConditions(a) => {
            let about = a.about.as_ref().map_or("", |about| &about.key);
            info_span!("watcher.set_conditions", about)
        }
        Action::PublishEvent(a) => info_span!("watcher.publish_event", reason = a.reason),
        Action::NoteDrift(a) => {
            let reason = a.drifted.as_ref().map_or("", |drifted| &drifted.reason);
            info_span!("watcher.note_drift", claim = a.claim, reason)
        }
    }
}
