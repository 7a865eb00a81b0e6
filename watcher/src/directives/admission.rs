//! Nodes that register at the same time are opened together.
//!
//! Invariant: no node is opened while the pods of another are being nominated. kube-scheduler retries
//! waiting pods whenever a node opens, and clears the nomination of one whose own node is still
//! closed; opening the group at once leaves no such moment.

use std::sync::Arc;

use tokio::sync::watch;

/// Nodes in each phase.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    nominating: usize,
    ready: usize,
}

/// Where registrations meet. Clones share one meeting.
#[derive(Clone, Debug)]
pub struct Admission(Arc<watch::Sender<Counts>>);

/// One node on its way through both phases; leaving early, by dropping it, holds nobody up.
pub struct Passage {
    counts: Arc<watch::Sender<Counts>>,
    ready: bool,
}

impl Default for Admission {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(Counts::default())))
    }
}

impl Admission {
    /// Begins to nominate, once the group before has been opened.
    pub async fn enter(&self) -> Passage {
        let mut counts = self.0.subscribe();
        let begin = |counts: &mut Counts| {
            let free = counts.ready == 0;
            counts.nominating += usize::from(free);
            free
        };
        while !self.0.send_if_modified(begin) {
            // Only fails without a sender, and this holds one.
            let _ = counts.wait_for(|counts| counts.ready == 0).await;
        }
        Passage { counts: Arc::clone(&self.0), ready: false }
    }
}

impl Passage {
    /// Waits until nobody nominates any more; then the node may be opened.
    pub async fn nominated(&mut self) {
        self.counts.send_modify(|counts| {
            counts.nominating -= 1;
            counts.ready += 1;
        });
        self.ready = true;
        let mut counts = self.counts.subscribe();
        // Only fails without a sender, and this holds one.
        let _ = counts.wait_for(|counts| counts.nominating == 0).await;
    }
}

impl Drop for Passage {
    fn drop(&mut self) {
        self.counts.send_modify(|counts| {
            let phase = if self.ready { &mut counts.ready } else { &mut counts.nominating };
            *phase -= 1;
        });
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn a_group_opens_together_and_the_next_waits_for_it() {
        let admission = Admission::default();
        let mut first = admission.enter().await;
        let mut second = admission.enter().await;
        assert!(first.nominated().now_or_never().is_none(), "the second still nominates");
        second.nominated().now_or_never().expect("both are nominated");
        assert!(admission.enter().now_or_never().is_none(), "the group is not open yet");
        drop((first, second));
        admission.enter().now_or_never().expect("the next group may begin");
    }

    #[tokio::test]
    async fn who_gives_up_holds_nobody_up() {
        let admission = Admission::default();
        let mut first = admission.enter().await;
        drop(admission.enter().await);
        first.nominated().now_or_never().expect("the other has left");
    }
}
