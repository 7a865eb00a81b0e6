//! Waiting for a condition in another process: asked again and again, never longer than promised.
//!
//! Invariant: a wait ends at its deadline with an error that names what was waited for and what the
//! last attempt said.

use std::fmt::Display;
use std::future::Future;
use std::time::Duration;

use anyhow::{Result, bail};
use tokio::time::{Instant, MissedTickBehavior, interval, timeout_at};

/// Time between two attempts.
const PERIOD: Duration = Duration::from_millis(50);

/// Calls `attempt` until it returns `Ok(value)`, and returns that value.
///
/// # Errors
/// After `limit`: with `what` and the last attempt's error.
pub async fn until<T, E, F, A>(what: &str, limit: Duration, mut attempt: A) -> Result<T>
where
    E: Display,
    F: Future<Output = Result<T, E>>,
    A: FnMut() -> F,
{
    let deadline = Instant::now() + limit;
    let mut ticks = interval(PERIOD);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut last = "no answer".to_owned();
    loop {
        ticks.tick().await;
        match timeout_at(deadline, attempt()).await {
            Ok(Ok(value)) => return Ok(value),
            Ok(Err(error)) if Instant::now() < deadline => last = format!("{error:#}"),
            Ok(Err(error)) => bail!("{what}: not within {limit:?}; last: {error:#}"),
            Err(_) => bail!("{what}: not within {limit:?}; last: {last}"),
        }
    }
}
