//! A queue in which clusters take turns.
//!
//! Invariant: bounded per cluster; however much one cluster has waiting, another's next item is
//! served after at most one item of each cluster, and what is taken along with it.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::sync::{Mutex, PoisonError};

use longshore_runtime::planted;
use tokio::sync::Notify;

/// Items that may wait for one cluster: more than its largest plan has launches.
const WAITING_PER_CLUSTER: usize = 1024;

/// Items by cluster.
#[derive(Debug)]
pub struct Fair<T> {
    lanes: Mutex<Lanes<T>>,
    ready: Notify,
}

#[derive(Debug)]
struct Lanes<T> {
    waiting: BTreeMap<String, VecDeque<T>>,
    served: String,
}

impl<T> Default for Fair<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Fair<T> {
    /// An empty queue.
    #[must_use]
    pub fn new() -> Self {
        let lanes = Lanes { waiting: BTreeMap::new(), served: String::new() };
        Self { lanes: Mutex::new(lanes), ready: Notify::new() }
    }

    /// Adds items that came together, so that whoever serves one finds the others. Returns those
    /// that there is no room for.
    #[must_use]
    pub fn push_all(&self, cluster_id: &str, items: Vec<T>) -> Vec<T> {
        let cluster_id = if planted::is("S15a") { "" } else { cluster_id };
        let mut lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        let lane = lanes.waiting.entry(cluster_id.to_owned()).or_default();
        let mut items = items.into_iter();
        let room = WAITING_PER_CLUSTER.saturating_sub(lane.len());
        lane.extend(items.by_ref().take(room));
        if lane.is_empty() {
            lanes.waiting.remove(cluster_id);
        }
        drop(lanes);
        self.ready.notify_one();
        items.collect()
    }

    /// Takes items of a cluster that wait, at most so many of those that are `like` what is served
    /// at present.
    pub fn take(&self, cluster_id: &str, most: usize, like: impl Fn(&T) -> bool) -> Vec<T> {
        let mut lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(lane) = lanes.waiting.get_mut(cluster_id) else { return Vec::new() };
        let mut taken = Vec::new();
        for item in std::mem::take(lane) {
            if taken.len() < most && like(&item) {
                taken.push(item);
            } else {
                lane.push_back(item);
            }
        }
        if lane.is_empty() {
            lanes.waiting.remove(cluster_id);
        }
        taken
    }

    /// The next item, once there is one. For one caller at a time.
    pub async fn pop(&self) -> T {
        loop {
            if let Some(item) = self.next() {
                return item;
            }
            self.ready.notified().await;
        }
    }

    fn next(&self) -> Option<T> {
        let mut lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        let after = (Bound::Excluded(lanes.served.clone()), Bound::Unbounded);
        let next = lanes.waiting.range(after).next().or_else(|| lanes.waiting.iter().next());
        let cluster_id = next?.0.clone();
        let lane = lanes.waiting.get_mut(&cluster_id)?;
        let item = lane.pop_front();
        if lane.is_empty() {
            lanes.waiting.remove(&cluster_id);
        }
        lanes.served = cluster_id;
        item
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn clusters_take_turns_and_each_has_its_own_bound() {
        let queue = Fair::new();
        assert!(queue.push_all("flood", (1..WAITING_PER_CLUSTER).collect()).is_empty());
        assert_eq!(queue.push_all("flood", vec![0, 1, 2]), [1, 2]);
        assert!(queue.push_all("modest", vec![7000]).is_empty());
        assert!(queue.push_all("other", vec![8000]).is_empty());
        let mut served = Vec::new();
        for _ in 0..5 {
            served.push(queue.pop().await);
        }
        assert_eq!(served, [1, 7000, 8000, 2, 3]);
    }

    #[tokio::test]
    async fn what_is_like_the_one_that_is_served_is_taken_along() {
        let queue = Fair::new();
        assert!(queue.push_all("c", vec![1, 2, 3, 4, 5, 7]).is_empty());
        assert!(queue.push_all("d", vec![11, 13]).is_empty());
        assert_eq!(queue.pop().await, 1);
        assert_eq!(queue.take("c", 2, |n| n % 2 == 1), [3, 5]);
        assert!(queue.take("nobody", 2, |_| true).is_empty());
        let mut left = Vec::new();
        for _ in 0..5 {
            left.push(queue.pop().await);
        }
        assert_eq!(left, [11, 2, 13, 4, 7]);
        assert!(queue.push_all("c", Vec::new()).is_empty());
        assert!(queue.next().is_none());
    }
}
