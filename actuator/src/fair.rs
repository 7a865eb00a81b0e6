//! A queue in which clusters take turns.
//!
//! Invariant: bounded per cluster; however much one cluster has waiting, another's next item is
//! served after at most one item of each cluster.

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

    /// Adds an item.
    ///
    /// # Errors
    /// The item, when too many of the cluster wait already.
    pub fn push(&self, cluster_id: &str, item: T) -> Result<(), T> {
        let cluster_id = if planted::is("S15a") { "" } else { cluster_id };
        let mut lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        let lane = lanes.waiting.entry(cluster_id.to_owned()).or_default();
        if lane.len() >= WAITING_PER_CLUSTER {
            return Err(item);
        }
        lane.push_back(item);
        drop(lanes);
        self.ready.notify_one();
        Ok(())
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
        for n in 0..WAITING_PER_CLUSTER {
            queue.push("flood", n).unwrap();
        }
        assert_eq!(queue.push("flood", 0), Err(0));
        queue.push("modest", 7000).unwrap();
        queue.push("other", 8000).unwrap();
        let mut served = Vec::new();
        for _ in 0..5 {
            served.push(queue.pop().await);
        }
        assert_eq!(served, [0, 7000, 8000, 1, 2]);
    }
}
