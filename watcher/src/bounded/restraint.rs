//! What the API server asks for when it has too much to do: that its callers wait.
//!
//! Invariant: a call that was turned away was not carried out, so it may be made again; until the
//! time is over that the API server named, no call is made. An eviction that a budget refuses is an
//! answer and holds nobody.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::header::RETRY_AFTER;
use http::{Request, Response, StatusCode};
use kube::client::Body;
use tokio::time::Instant;

/// How long calls wait where the API server names no time; as long as its fairness names mostly.
const REST: Duration = Duration::from_secs(1);
/// Longest that they wait, whatever it names.
const REST_MAX: Duration = Duration::from_secs(10);

/// Until when calls wait. Clones share it.
#[derive(Clone, Debug, Default)]
pub(super) struct Restraint(Arc<Mutex<Option<Instant>>>);

impl Restraint {
    fn until(&self) -> Option<Instant> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until calls may be made.
    pub(super) async fn pass(&self) {
        while let Some(until) = self.until().filter(|until| *until > Instant::now()) {
            tokio::time::sleep_until(until).await;
        }
    }

    /// True when a call was turned away; all calls wait from then on.
    pub(super) fn heeds(&self, request: &Request<Body>, response: &Response<Body>) -> bool {
        let evicts = request.uri().path().ends_with("/eviction");
        if response.status() != StatusCode::TOO_MANY_REQUESTS || evicts {
            return false;
        }
        let named = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok());
        let seconds = named.and_then(|text| text.parse().ok());
        let rest = seconds.map_or(REST, Duration::from_secs).min(REST_MAX);
        let until = Instant::now() + rest;
        let mut own = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *own = Some(own.map_or(until, |known| known.max(until)));
        true
    }
}

/// The same request once more; none for a body that is read as it comes.
pub(super) fn again(request: &Request<Body>) -> Option<Request<Body>> {
    let mut copy = Request::new(request.body().try_clone()?);
    copy.method_mut().clone_from(request.method());
    copy.uri_mut().clone_from(request.uri());
    copy.headers_mut().clone_from(request.headers());
    *copy.version_mut() = request.version();
    *copy.extensions_mut() = request.extensions().clone();
    Some(copy)
}
