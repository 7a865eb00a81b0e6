//! The life of a launch: PENDING, LAUNCHED, TERMINATING, then TERMINATED; or PENDING, then FAILED.
//! An instance that is found after all brings its launch back.
//!
//! Invariant: pure. A move that the phase does not allow is an error and changes nothing; a move
//! made twice changes nothing the second time; finished launches move only
//! when their instance is found alive.

use longshore_proto::capacity::v1::InterruptionKind;
use longshore_proto::types::v1::CapacityType;
use thiserror::Error;

use super::record::{InterruptionRecord, LaunchRecord, OrderRecord, Phase};

/// One step in the life of a launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Move {
    /// EC2 is about to be asked for exactly this, with the next client token.
    Ask(CapacityType, Box<OrderRecord>),
    /// EC2 is about to be asked for this and for other launches in one call, which is recorded by
    /// this id.
    AskTogether(CapacityType, String),
    /// EC2 answered that it launches nothing of what was asked.
    Refused {
        /// True when the capacity type is not worth asking for again.
        exhausted: bool,
    },
    /// EC2 has launched an instance.
    Launched {
        /// Its id.
        instance_id: String,
        /// Request id of the answer; empty when the instance was found by its tag.
        ec2_request_id: String,
    },
    /// Nothing was and nothing will be launched.
    Fail(Failure),
    /// The launch is not wanted any more.
    Cancel,
    /// The instance is not wanted any more.
    Terminate {
        /// Trace that asked for it.
        traceparent: String,
    },
    /// The instance is gone.
    Gone {
        /// True when this is concluded from absence alone.
        vanished: bool,
    },
    /// The instance is there, whatever was recorded. One of a failed launch is not wanted.
    Found {
        /// Its id.
        instance_id: String,
    },
    /// EC2 announced something about the instance.
    Interrupted {
        /// What.
        kind: InterruptionKind,
        /// Milliseconds since 1970.
        time_ms: i64,
    },
}

/// Why a launch failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Machine-readable.
    pub reason: String,
    /// For people: what failed and the way out.
    pub message: String,
    /// Whether another plan with other candidates may succeed.
    pub retryable: bool,
}

/// A move that the phase does not allow.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("launch {launch_id} is {phase:?} and cannot make the move {attempted:?}")]
pub struct IllegalMove {
    /// The launch.
    pub launch_id: String,
    /// Its phase.
    pub phase: Phase,
    /// What was tried.
    pub attempted: Box<Move>,
}

impl LaunchRecord {
    /// The record after a move.
    ///
    /// # Errors
    /// When the phase does not allow it.
    pub fn after(&self, step: &Move, now_ms: i64) -> Result<Self, IllegalMove> {
        let mut next = self.clone();
        let legal = match step {
            Move::Ask(capacity_type, order) => next.ask(*capacity_type, Some(order.as_ref()), ""),
            Move::AskTogether(capacity_type, batch_id) => next.ask(*capacity_type, None, batch_id),
            Move::Refused { exhausted } => next.refuse(*exhausted),
            Move::Launched { instance_id, ec2_request_id } => {
                next.launched(instance_id, ec2_request_id)
            }
            Move::Fail(failure) => next.fail(failure),
            Move::Cancel => next.cancel(),
            Move::Terminate { traceparent } => next.terminate(traceparent),
            Move::Gone { vanished } => next.gone(*vanished),
            Move::Found { instance_id } => next.found(instance_id),
            Move::Interrupted { kind, time_ms } => next.interrupted(*kind, *time_ms),
        };
        if !legal {
            return Err(IllegalMove {
                launch_id: self.launch_id().to_owned(),
                phase: self.phase(),
                attempted: Box::new(step.clone()),
            });
        }
        if next != *self {
            next.changed_ms = now_ms;
        }
        Ok(next)
    }

    fn ask(&mut self, asked: CapacityType, order: Option<&OrderRecord>, batch_id: &str) -> bool {
        if !self.may_be_asked() {
            return false;
        }
        self.attempts += 1;
        self.set_asked(asked);
        self.order = order.cloned();
        batch_id.clone_into(&mut self.batch_id);
        true
    }

    /// True when EC2 may be asked for it: it is wanted, and no call is under way.
    #[must_use]
    pub fn may_be_asked(&self) -> bool {
        self.phase() == Phase::Pending && !self.outcome_unknown() && !self.cancelled
    }

    fn refuse(&mut self, exhausted: bool) -> bool {
        if !self.outcome_unknown() {
            return false;
        }
        if exhausted {
            self.refused.push(self.asked);
        }
        self.answered();
        true
    }

    fn launched(&mut self, instance_id: &str, ec2_request_id: &str) -> bool {
        if self.phase() != Phase::Pending {
            return self.instance_id == instance_id && self.phase() != Phase::Failed;
        }
        instance_id.clone_into(&mut self.instance_id);
        ec2_request_id.clone_into(&mut self.ec2_request_id);
        self.answered();
        self.forget_candidates();
        self.set_phase(if self.cancelled { Phase::Terminating } else { Phase::Launched });
        true
    }

    fn fail(&mut self, failure: &Failure) -> bool {
        if self.phase() != Phase::Pending {
            return false;
        }
        failure.reason.clone_into(&mut self.reason);
        failure.message.clone_into(&mut self.message);
        self.retryable = failure.retryable;
        self.answered();
        self.forget_candidates();
        self.set_phase(Phase::Failed);
        true
    }

    fn cancel(&mut self) -> bool {
        match self.phase() {
            Phase::Pending => self.cancelled = true,
            Phase::Launched => {
                self.ending = true;
                self.set_phase(Phase::Terminating);
            }
            Phase::Terminating | Phase::Terminated | Phase::Failed => {}
        }
        true
    }

    fn terminate(&mut self, traceparent: &str) -> bool {
        match self.phase() {
            Phase::Launched => {
                traceparent.clone_into(&mut self.termination_traceparent);
                self.ending = true;
                self.set_phase(Phase::Terminating);
                true
            }
            Phase::Terminating | Phase::Terminated => true,
            Phase::Pending | Phase::Failed => false,
        }
    }

    fn gone(&mut self, vanished: bool) -> bool {
        match self.phase() {
            Phase::Launched | Phase::Terminating => {
                self.vanished = vanished;
                self.set_phase(Phase::Terminated);
                true
            }
            Phase::Terminated => true,
            Phase::Pending | Phase::Failed => false,
        }
    }

    fn interrupted(&mut self, kind: InterruptionKind, time_ms: i64) -> bool {
        if matches!(self.phase(), Phase::Pending | Phase::Failed) {
            return false;
        }
        let known = self.interruptions.iter().any(|record| record.kind() == kind);
        if !known && self.phase() != Phase::Terminated {
            self.interruptions.push(InterruptionRecord { kind: kind.into(), time_ms });
        }
        true
    }

    fn found(&mut self, instance_id: &str) -> bool {
        match self.phase() {
            Phase::Pending => false,
            Phase::Failed => {
                instance_id.clone_into(&mut self.instance_id);
                self.ending = true;
                self.set_phase(Phase::Terminating);
                true
            }
            Phase::Terminated if self.instance_id == instance_id => {
                self.vanished = false;
                let unwanted = self.ending || self.cancelled;
                self.set_phase(if unwanted { Phase::Terminating } else { Phase::Launched });
                true
            }
            Phase::Launched | Phase::Terminating | Phase::Terminated => {
                self.instance_id == instance_id
            }
        }
    }

    /// No call is under way any more.
    fn answered(&mut self) {
        self.set_asked(CapacityType::Unspecified);
        self.order = None;
    }

    /// Sixty candidates outweigh everything else in a record and are of no use after the launch.
    fn forget_candidates(&mut self) {
        if let Some(launch) = &mut self.launch {
            launch.candidates = Vec::new();
        }
    }
}

#[cfg(test)]
mod tests;
