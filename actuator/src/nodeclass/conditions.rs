//! Conditions of a node class.
//!
//! Invariant: `Ready` is true exactly when every other condition that launches depend on is.

use longshore_proto::cluster::v1::Condition;

use super::LOOKUP_FAILED;

/// Condition about the interruption queue; launches do not depend on it.
pub const QUEUE_READY: &str = "InterruptionQueueReady";

/// Condition about capacity reservations; only where some are selected.
pub const RESERVATIONS_READY: &str = "CapacityReservationsReady";

/// Why a part is not in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// CamelCase, stable.
    pub reason: &'static str,
    /// For people: what, where, and the way out.
    pub message: String,
}

impl Problem {
    /// A problem.
    pub fn new(reason: &'static str, message: impl Into<String>) -> Self {
        Self { reason, message: message.into() }
    }
}

/// Conditions in the order they were found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Conditions {
    found: Vec<(&'static str, Option<Problem>)>,
}

impl Conditions {
    /// Sets a condition: true without a problem, false with one.
    pub fn set(&mut self, kind: &'static str, problem: Option<Problem>) {
        match self.found.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, known)) => *known = problem,
            None => self.found.push((kind, problem)),
        }
    }

    /// Sets a condition from a result and returns what there is.
    pub fn keep<T: Default>(&mut self, kind: &'static str, found: Result<T, Problem>) -> T {
        match found {
            Ok(value) => {
                self.set(kind, None);
                value
            }
            Err(problem) => {
                self.set(kind, Some(problem));
                T::default()
            }
        }
    }

    /// Parts of which AWS has said nothing.
    pub fn unanswered(&self) -> impl Iterator<Item = &'static str> {
        let failed = |problem: &Option<Problem>| {
            problem.as_ref().is_some_and(|problem| problem.reason == LOOKUP_FAILED)
        };
        self.found.iter().filter(move |(_, problem)| failed(problem)).map(|(kind, _)| *kind)
    }

    /// True when a part was found in order.
    #[must_use]
    pub fn holds(&self, kind: &str) -> bool {
        self.found.iter().any(|(known, problem)| *known == kind && problem.is_none())
    }

    /// The first problem that keeps launches from succeeding, with its condition.
    #[must_use]
    pub fn obstacle(&self) -> Option<(&'static str, &Problem)> {
        let required = self.found.iter().filter(|(kind, _)| *kind != QUEUE_READY);
        required.into_iter().find_map(|(kind, problem)| Some((*kind, problem.as_ref()?)))
    }

    /// The conditions with `Ready`, as the object shows them.
    #[must_use]
    pub fn to_wire(&self) -> Vec<Condition> {
        let ready = self.obstacle().map(|(kind, problem)| Problem {
            reason: problem.reason,
            message: format!("{kind}: {}", problem.message),
        });
        let all = self.found.iter().map(|(kind, problem)| condition(kind, problem.as_ref()));
        all.chain([condition("Ready", ready.as_ref())]).collect()
    }
}

fn condition(kind: &str, problem: Option<&Problem>) -> Condition {
    let (reason, message) = match problem {
        Some(problem) => (problem.reason, problem.message.as_str()),
        None => (kind, ""),
    };
    Condition {
        r#type: kind.to_owned(),
        status: Some(problem.is_none()),
        reason: reason.to_owned(),
        message: message.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ready_follows_what_launches_need() {
        let mut conditions = Conditions::default();
        conditions.set("SubnetsReady", None);
        conditions.set(QUEUE_READY, Some(Problem::new("QueueNotFound", "no queue")));
        assert_eq!(conditions.to_wire().last().unwrap().status, Some(true));
        conditions.set("SubnetsReady", Some(Problem::new("SubnetsNotFound", "none")));
        let ready = conditions.to_wire().pop().unwrap();
        assert_eq!((ready.status, ready.message.as_str()), (Some(false), "SubnetsReady: none"));
        assert_eq!(ready.reason, "SubnetsNotFound");
    }
}
