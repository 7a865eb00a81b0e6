//! What has been let go on absence alone, for schedulers and watchers that come later.
//!
//! Invariant: noted before it takes effect, measured by this process's own clock, told with every
//! session and kept in the Lease; only what was noted less than a renewal ago is lost with the
//! process. A clock of another host makes a loss older than it is at most; never younger than none.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use longshore_proto::cluster::v1::Loss;
use longshore_proto::limits::{ABSENCE_WINDOW_SECONDS, LOSSES_MAX};
use tokio::time::Instant;

/// A loss is remembered for so long.
const WINDOW: Duration = Duration::from_secs(ABSENCE_WINDOW_SECONDS);
/// Annotation of the Lease that holds them: `claim=milliseconds since 1970`, separated by commas.
const ANNOTATION: &str = "longshore.dev/losses";

/// What has been let go on absence alone. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Losses(Arc<Mutex<BTreeMap<String, Instant>>>);

impl Losses {
    /// A claim is about to be let go because its instance is not there.
    pub fn note(&self, claim: &str) {
        self.put(claim, WINDOW);
    }

    /// What counts still, for a scheduler.
    #[must_use]
    pub fn told(&self) -> Vec<Loss> {
        let told = |(claim, age): (&String, Duration)| Loss {
            claim: claim.clone(),
            age: prost_types::Duration::try_from(age).ok(),
        };
        ages(&self.lock()).map(told).collect()
    }

    /// Writes what counts still among the annotations of the Lease.
    pub fn write(&self, annotations: &mut BTreeMap<String, String>, now_ms: i64) {
        let item = |(claim, age): (&String, Duration)| {
            let age_ms = i64::try_from(age.as_millis()).unwrap_or(i64::MAX);
            format!("{claim}={}", now_ms.saturating_sub(age_ms))
        };
        let items: Vec<_> = ages(&self.lock()).map(item).collect();
        if items.is_empty() {
            annotations.remove(ANNOTATION);
        } else {
            annotations.insert(ANNOTATION.to_owned(), items.join(","));
        }
    }

    /// Takes over what the holder of the Lease before this one has written there.
    pub fn recall(&self, annotations: &BTreeMap<String, String>, now_ms: i64) {
        let text = annotations.get(ANNOTATION).map_or("", String::as_str);
        for (claim, at) in text.split(',').filter_map(|item| item.split_once('=')) {
            let Ok(at_ms) = at.parse::<i64>() else { continue };
            let age = u64::try_from(now_ms.saturating_sub(at_ms)).unwrap_or(0);
            self.put(claim, WINDOW.saturating_sub(Duration::from_millis(age)));
        }
    }

    fn put(&self, claim: &str, rest: Duration) {
        let now = Instant::now();
        let mut known = self.lock();
        known.retain(|_, until| now < *until);
        if !rest.is_zero() && known.len() < LOSSES_MAX {
            known.entry(claim.to_owned()).or_insert(now + rest);
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Instant>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What counts still, and how old it is.
fn ages(known: &BTreeMap<String, Instant>) -> impl Iterator<Item = (&String, Duration)> {
    let now = Instant::now();
    let rest = move |until: &Instant| until.duration_since(now);
    let counting = known.iter().filter(move |(_, until)| !rest(until).is_zero());
    counting.map(move |(claim, until)| (claim, WINDOW.saturating_sub(rest(until))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(losses: &Losses) -> Vec<(String, i64)> {
        let told = losses.told().into_iter();
        told.map(|loss| (loss.claim, loss.age.unwrap().seconds)).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn a_loss_outlives_the_watcher_that_noted_it_and_ends_by_itself() {
        let (first, mut lease) = (Losses::default(), BTreeMap::new());
        first.note("a");
        tokio::time::advance(Duration::from_secs(100)).await;
        first.note("b");
        first.note("a");
        assert_eq!(told(&first), [("a".to_owned(), 100), ("b".to_owned(), 0)]);
        first.write(&mut lease, 1_000_000);
        // The next one's clock is a minute behind the first one's.
        let next = Losses::default();
        next.recall(&lease, 940_000);
        assert_eq!(told(&next), [("a".to_owned(), 40), ("b".to_owned(), 0)]);
        let ahead = Losses::default();
        ahead.recall(&lease, 1_000_000 + 520_000);
        assert_eq!(told(&ahead), [("b".to_owned(), 520)]);
        next.recall(&BTreeMap::from([(ANNOTATION.to_owned(), "x,y=z,=".to_owned())]), 0);
        assert_eq!(told(&next).len(), 2, "what cannot be read is nothing");
        tokio::time::advance(WINDOW).await;
        assert_eq!(told(&next), []);
        next.write(&mut lease, 0);
        assert!(lease.is_empty());
    }
}
