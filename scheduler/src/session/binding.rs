//! Whether kube-scheduler is about to bind the pods that wait for nodes which have opened.
//!
//! Invariant: never true for longer than a minute after a node has opened, whatever else is bound
//! meanwhile.

/// Nobody is told meanwhile: kube-scheduler tries all pods for each node that opens, some hundreds
/// in a second.
const TRIED_WITHIN_MS: i64 = 60_000;
/// When nothing has opened or been bound for this long, what still waits is not being tried. On a
/// busy control plane kube-scheduler has paused for three seconds among two thousand pods.
const CALM_MS: i64 = 5_000;

/// What was last seen of it, by the session's clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct Binding {
    opened_ms: Option<i64>,
    bound_ms: Option<i64>,
}

impl Binding {
    /// A node has opened to pods.
    pub const fn opened(&mut self, now_ms: i64) {
        self.opened_ms = Some(now_ms);
    }

    /// A pod has been bound.
    pub const fn bound(&mut self, now_ms: i64) {
        self.bound_ms = Some(now_ms);
    }

    /// Until when it is under way if nothing more is seen; none when it is not.
    #[must_use]
    pub fn until_ms(&self, now_ms: i64) -> Option<i64> {
        let opened_ms = self.opened_ms?;
        let calm_ms = opened_ms.max(self.bound_ms.unwrap_or(opened_ms)).saturating_add(CALM_MS);
        let until_ms = calm_ms.min(opened_ms.saturating_add(TRIED_WITHIN_MS));
        (until_ms > now_ms).then_some(until_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_ends_some_seconds_after_the_last_pod_and_a_minute_after_the_last_node() {
        let mut binding = Binding::default();
        binding.bound(0);
        assert_eq!(binding.until_ms(1), None, "no node has opened");
        binding.opened(1_000);
        assert_eq!(binding.until_ms(1_500), Some(6_000));
        binding.bound(4_900);
        assert_eq!(binding.until_ms(6_000), Some(9_900));
        assert_eq!(binding.until_ms(9_900), None);
        binding.bound(60_900);
        assert_eq!(binding.until_ms(60_950), Some(61_000));
        assert_eq!(binding.until_ms(61_000), None);
    }
}
