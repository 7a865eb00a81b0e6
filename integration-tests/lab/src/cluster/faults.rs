//! Scripted refusals and delays of the API server.
//!
//! Invariant: without a script every request passes at once.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::error::ApiError;

/// What is done to a request before it is served.
#[derive(Clone, Debug)]
pub enum Verdict {
    /// Serve it.
    Pass,
    /// Answer with this instead.
    Refuse(ApiError),
}

/// A right that is taken away. Matches when every field given is equal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Denial {
    /// Kubernetes verb: `get`, `create`, `update`, `patch`, `delete`.
    pub verb: String,
    /// Plural name of the resource.
    pub resource: String,
    /// Subresource; empty for the object itself.
    pub subresource: String,
}

#[derive(Debug, Default)]
struct Script {
    denials: Vec<Denial>,
    delay: Duration,
    failures: Vec<Failure>,
}

#[derive(Clone, Debug)]
struct Failure {
    path_contains: String,
    error: ApiError,
    times_left: u32,
}

/// The script, changed while the server runs.
#[derive(Debug, Default)]
pub struct Faults {
    script: Mutex<Script>,
}

impl Faults {
    /// Takes a right away from everybody.
    pub fn deny(&self, denial: Denial) {
        self.lock().denials.push(denial);
    }

    /// Delays every request from now on.
    pub fn delay_requests(&self, delay: Duration) {
        self.lock().delay = delay;
    }

    /// Fails the next `times` requests whose path contains the text.
    pub fn fail(&self, path_contains: &str, times: u32, error: ApiError) {
        let failure = Failure { path_contains: path_contains.to_owned(), error, times_left: times };
        self.lock().failures.push(failure);
    }

    /// Ends all faults.
    pub fn clear(&self) {
        *self.lock() = Script::default();
    }

    /// True when the right was taken away.
    pub fn is_denied(&self, verb: &str, resource: &str, subresource: &str) -> bool {
        let matches = |denial: &Denial| {
            denial.verb == verb && denial.resource == resource && denial.subresource == subresource
        };
        self.lock().denials.iter().any(matches)
    }

    pub(super) async fn judge(&self, method: &str, path: &str) -> Verdict {
        let delay = self.lock().delay;
        if !delay.is_zero() {
            tokio::time::sleep(delay).await;
        }
        if let Some(error) = self.take_failure(path) {
            return Verdict::Refuse(error);
        }
        let (resource, subresource) = named(path);
        let verb = verb(method);
        if !self.is_denied(verb, resource, subresource) {
            return Verdict::Pass;
        }
        let full = if subresource.is_empty() {
            resource.to_owned()
        } else {
            format!("{resource}/{subresource}")
        };
        Verdict::Refuse(ApiError::Forbidden(format!(
            "{resource} is forbidden: User \"lab\" cannot {verb} resource \"{full}\" at the \
             cluster scope"
        )))
    }

    fn take_failure(&self, path: &str) -> Option<ApiError> {
        let mut script = self.lock();
        let failures = script.failures.iter_mut();
        let failure = failures
            .filter(|failure| failure.times_left > 0)
            .find(|failure| path.contains(&failure.path_contains))?;
        failure.times_left -= 1;
        Some(failure.error.clone())
    }

    fn lock(&self) -> MutexGuard<'_, Script> {
        self.script.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn verb(method: &str) -> &'static str {
    match method {
        "POST" => "create",
        "PUT" => "update",
        "PATCH" => "patch",
        "DELETE" => "delete",
        _ => "get",
    }
}

/// Plural and subresource a path names.
fn named(path: &str) -> (&str, &str) {
    let segments: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
    let skipped = if segments.first() == Some(&"apis") { 3 } else { 2 };
    let rest = segments.get(skipped..).unwrap_or_default();
    let rest = match rest {
        ["namespaces", _, inner @ ..] if !inner.is_empty() => inner,
        _ => rest,
    };
    (rest.first().copied().unwrap_or_default(), rest.get(2).copied().unwrap_or_default())
}
