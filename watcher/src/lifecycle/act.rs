//! Carrying out the steps of the lifecycle.
//!
//! Invariant: each is idempotent, and says why when it did not succeed.

use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{DeleteParams, EvictParams, Preconditions};
use kube::{Api, ResourceExt as _};
use longshore_proto::types::v1::BlockingRule;
use longshore_runtime::propagate;
use tracing::Instrument as _;

use super::drain::Volumes;
use super::{Step, drain_end, initialize, traceparent};
use crate::api::keys::{conditions, finalizers};
use crate::api::{EC2NodeClass, NodeClaim};
use crate::counters::Places;
use crate::directives::Directives;
use crate::directives::disrupt::set_taint;
use crate::events::Happening;
use crate::index::pods::{PodEntry, PodRow};
use crate::names;
use crate::observe::reference;
use crate::patch::{
    Part, Precondition, Wanted, code, edit, edit_node, found, remove_finalizer, set_condition, time,
};

/// Why a step did not succeed.
#[derive(Debug, thiserror::Error)]
pub(super) enum Refusal {
    /// A disruption budget allows no eviction now.
    #[error("a PodDisruptionBudget allows no eviction now")]
    Budget,
    /// The API server did not do it.
    #[error("{0}")]
    Api(#[from] kube::Error),
}

/// Cause of a refusal by a disruption budget, in the API server's answer.
const BUDGET_CAUSE: &str = "DisruptionBudget";
/// What it says where two budgets cover a pod.
const TWO_BUDGETS: &str = "more than one PodDisruptionBudget";

/// How a step went.
pub(super) type Outcome = Result<(), Refusal>;

impl Directives {
    /// Carries out a step.
    pub(super) async fn carry_out_step(&self, step: Step) -> Outcome {
        let outcome = match &step {
            Step::DeleteClaim { claim } => self.delete(claim).await,
            Step::ReleaseNode { node } => self.release_node(node).await,
            Step::ReleaseClass { class } => self.release_class(class).await,
            Step::SetDeadline { claim, deadline_ms } => {
                self.set_deadline(claim, *deadline_ms).await
            }
            Step::Cordon { node } => self.cordon(node).await,
            Step::Evict { pod, claim } => self.evict(pod, claim).await,
            Step::Surge { pod } => self.surge(pod).await,
            Step::ForceDelete { pod, grace_seconds } => self.force(pod, *grace_seconds).await,
            Step::Blocked { claim, reason, note, .. } => {
                self.say_blocked(claim, reason, note);
                Ok(())
            }
            Step::NoteBlockers { claim, blockers } => {
                self.store.write(|index| index.set_blockers(claim, blockers.clone()));
                Ok(())
            }
            Step::SayKept { claim, kind, reason, message }
            | Step::Await { claim, kind, reason, message } => {
                self.set(claim, &[Wanted { kind, status: None, reason, message }]).await
            }
            Step::MarkDrained { claim, volumes } => self.mark_drained(claim, volumes).await,
            Step::Initialize { claim, node } => self.initialize(claim, node).await,
            Step::SetConsolidatable { claim, holds } => {
                self.set_consolidatable(claim, *holds).await
            }
            Step::Touch { claim, node, at_ms } => self.touch(claim, node, *at_ms).await,
            Step::Running { claim, places } => {
                self.finish_trace(claim, *places);
                Ok(())
            }
        };
        if let Err(Refusal::Api(error)) = &outcome {
            tracing::warn!(step = step.key(), %error, "not done yet; trying again");
        }
        outcome
    }

    async fn delete(&self, claim: &str) -> Outcome {
        found(self.claims().delete(claim, &DeleteParams::default()).await)?;
        Ok(())
    }

    async fn release_node(&self, name: &str) -> Outcome {
        let free = |node: &mut Node| remove_finalizer(node, names::TERMINATION);
        edit_node(&self.nodes(), name, self.known_node(name), Precondition::Itself, free).await?;
        Ok(())
    }

    async fn release_class(&self, name: &str) -> Outcome {
        let free = |class: &mut EC2NodeClass| {
            remove_finalizer(class, finalizers::NODE_CLASS_TERMINATION);
        };
        let classes: Api<EC2NodeClass> = Api::all(self.client.clone());
        edit(&classes, name, Part::Main, None, free).await?;
        Ok(())
    }

    async fn set_deadline(&self, name: &str, deadline_ms: Option<i64>) -> Outcome {
        let note = |claim: &mut NodeClaim| match deadline_ms {
            Some(deadline_ms) => drain_end::note(claim, deadline_ms),
            None => drain_end::take_off(claim),
        };
        edit(&self.claims(), name, Part::Main, self.known_claim(name), note).await?;
        Ok(())
    }

    async fn cordon(&self, name: &str) -> Outcome {
        let close = |node: &mut Node| {
            set_taint(node, true);
            node.spec.get_or_insert_default().unschedulable = Some(true);
            let (key, value) = (names::EXCLUDE_FROM_LOAD_BALANCERS, names::EXCLUDED_BY_AUTOSCALER);
            node.labels_mut().insert(key.to_owned(), value.to_owned());
        };
        edit_node(&self.nodes(), name, self.known_node(name), Precondition::Itself, close).await?;
        Ok(())
    }

    async fn evict(&self, pod: &PodRow, claim: &str) -> Outcome {
        let options = DeleteParams { preconditions: exactly(pod), ..DeleteParams::default() };
        let params = EvictParams { delete_options: Some(options), ..EvictParams::default() };
        let answer = self.pods(pod).evict(&pod.name, &params).await;
        self.count_eviction(claim, &answer);
        match answer {
            Ok(_) => {
                self.counters.evictions.inc();
                self.store.update(|index| index.grant_eviction(&pod.uid));
                self.say_of(pod, false, "Evicted", format!("its node is going: NodeClaim {claim}"));
                Ok(())
            }
            Err(error) if matches!(code(&error), Some(404 | 409)) => Ok(()),
            Err(error) => match refused_by(&error) {
                Some(rule) => {
                    let note = way_out(rule, &error);
                    self.store.update(|index| index.refuse_eviction(&pod.uid, rule, &note));
                    self.say_of(pod, true, "FailedDraining", note);
                    Err(Refusal::Budget)
                }
                None => Err(error.into()),
            },
        }
    }

    async fn force(&self, pod: &PodRow, grace_seconds: u32) -> Outcome {
        let params = DeleteParams {
            preconditions: exactly(pod),
            grace_period_seconds: Some(grace_seconds),
            ..DeleteParams::default()
        };
        match self.pods(pod).delete(&pod.name, &params).await {
            Ok(_) => {
                let note = format!(
                    "deleted with {grace_seconds} s of grace: the terminationGracePeriod of its \
                     node ends"
                );
                self.say_of(pod, true, "Evicted", note);
                Ok(())
            }
            Err(error) if matches!(code(&error), Some(404 | 409)) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    async fn initialize(&self, claim_name: &str, node_name: &str) -> Outcome {
        let Some(claim) = self.known_claim(claim_name) else { return Ok(()) };
        let span = initialize::span(&claim, node_name);
        let at = self.now();
        let work = async {
            let (nodes, known) = (self.nodes(), self.known_node(node_name));
            let mark = initialize::mark;
            let marked = edit_node(&nodes, node_name, known, Precondition::Service, mark).await?;
            let Some(node) = marked else { return Ok(()) };
            let complete = |claim: &mut NodeClaim| initialize::complete(claim, &node, &at);
            edit(&self.claims(), claim_name, Part::Status, Some(claim.clone()), complete).await?;
            self.say_ready(&claim, node_name);
            Ok(())
        };
        work.instrument(span).await
    }

    async fn set_consolidatable(&self, name: &str, holds: bool) -> Outcome {
        if holds {
            return self.set(name, &[Wanted::met(conditions::CONSOLIDATABLE)]).await;
        }
        let known = self.known_claim(name);
        edit(&self.claims(), name, Part::Status, known, not_consolidatable).await?;
        Ok(())
    }

    async fn touch(&self, name: &str, node: &str, at_ms: i64) -> Outcome {
        let stamp = |claim: &mut NodeClaim| {
            not_consolidatable(claim);
            claim.status.get_or_insert_default().last_pod_event_time = Some(time(at_ms));
        };
        edit(&self.claims(), name, Part::Status, self.known_claim(name), stamp).await?;
        self.store.update(|index| index.untouch(node, at_ms));
        Ok(())
    }

    fn finish_trace(&self, name: &str, places: Places) {
        self.store.update(|index| index.plan_done(name));
        self.counters.placed(places);
        let Places { planned, realised, free } = places;
        let claim = self.known_claim(name);
        let span =
            tracing::info_span!("watcher.pods_running", claim = name, planned, realised, free);
        propagate::set_parent(&span, claim.as_ref().map_or("", traceparent));
        span.in_scope(|| {
            tracing::info!(claim = name, planned, realised, free, "planned pods run");
        });
    }

    async fn mark_drained(&self, claim: &str, volumes: &Volumes) -> Outcome {
        let kind = conditions::VOLUMES_DETACHED;
        let detached = match volumes {
            Volumes::Detached => Wanted::met(kind),
            Volumes::Attached(message) => {
                Wanted { kind, status: None, reason: "AwaitingVolumeDetachment", message }
            }
            Volumes::GivenUp(message) => {
                Wanted { kind, status: Some(false), reason: "WaitedLongEnough", message }
            }
        };
        self.set(claim, &[Wanted::met(conditions::DRAINED), detached]).await?;
        if !matches!(volumes, Volumes::Attached(_)) {
            self.count_drained(claim);
        }
        Ok(())
    }

    async fn set(&self, name: &str, wanted: &[Wanted<'_>]) -> Outcome {
        let at = self.now();
        let set = |claim: &mut NodeClaim| {
            let generation = claim.metadata.generation;
            let status = claim.status.get_or_insert_default();
            for wanted in wanted {
                set_condition(&mut status.conditions, wanted, generation, &at);
            }
        };
        edit(&self.claims(), name, Part::Status, self.known_claim(name), set).await?;
        Ok(())
    }

    fn pods(&self, pod: &PodRow) -> Api<Pod> {
        Api::namespaced(self.client.clone(), &pod.namespace)
    }

    pub(super) fn say_of(&self, pod: &PodRow, warning: bool, reason: &str, note: String) {
        let about = self.store.read(|index| index.pod(&pod.uid).map(PodEntry::reference));
        let Some(about) = about else { return };
        self.events.publish(Happening { about, warning, reason: reason.to_owned(), note });
    }

    fn say_blocked(&self, claim: &str, reason: &str, note: &str) {
        let Some(claim) = self.known_claim(claim) else { return };
        self.events.publish(Happening {
            about: reference::<NodeClaim>(&claim.metadata),
            warning: true,
            reason: reason.to_owned(),
            note: note.to_owned(),
        });
    }
}

/// Takes the condition back with which a quiet node is marked.
fn not_consolidatable(claim: &mut NodeClaim) {
    let status = claim.status.get_or_insert_default();
    status.conditions.retain(|condition| condition.type_ != conditions::CONSOLIDATABLE);
}

/// The rule by which an eviction is refused; nothing when the API server is merely busy, or fails.
fn refused_by(error: &kube::Error) -> Option<BlockingRule> {
    let kube::Error::Api(status) = error else { return None };
    let causes = status.details.iter().flat_map(|details| &details.causes);
    match status.code {
        429 if causes.into_iter().any(|cause| cause.reason == BUDGET_CAUSE) => {
            Some(BlockingRule::Budget)
        }
        500 if status.message.contains(TWO_BUDGETS) => Some(BlockingRule::TwoBudgets),
        _ => None,
    }
}

fn way_out(rule: BlockingRule, error: &kube::Error) -> String {
    let until = match rule {
        BlockingRule::TwoBudgets => {
            "no pod with two PodDisruptionBudgets is ever evicted: change the selector of one of \
             them, or the node stays"
        }
        BlockingRule::Unspecified
        | BlockingRule::DoNotDisrupt
        | BlockingRule::Budget
        | BlockingRule::Stuck
        | BlockingRule::VolumeAttached
        | BlockingRule::Unreadable => {
            "the node stays until its PodDisruptionBudget allows the eviction, or"
        }
    };
    let text = if let kube::Error::Api(status) = error { &status.message } else { "" };
    let text = text.trim_end_matches('.');
    format!("{text}; {until} until the claim's terminationGracePeriod ends")
}

/// Only this pod, not one that has taken its name.
fn exactly(pod: &PodRow) -> Option<Preconditions> {
    Some(Preconditions { uid: Some(pod.uid.to_string()), ..Preconditions::default() })
}
