//! What happens to instances by itself when its time has come.
//!
//! Invariant: looked at before anything else is done to the region, so that nobody sees it late.

use longshore_proto::capacity::v1::InstancePhase;

use super::{LISTED_MS, Model, Record};

impl Model {
    pub(super) fn advance(&mut self, now_ms: i64) -> bool {
        let due = |record: &Record| {
            let moments = [record.due_ms, record.reclaimed_ms];
            moments.into_iter().flatten().any(|at| at <= now_ms)
        };
        let ids: Vec<String> = self
            .instances
            .iter()
            .filter(|(_, record)| due(record))
            .map(|(id, _)| id.clone())
            .collect();
        ids.iter().for_each(|id| self.change(id, now_ms));
        let before = self.instances.len();
        self.instances.retain(|_, record| {
            record.seen.phase != InstancePhase::Terminated
                || record.due_ms.is_none_or(|until| until > now_ms)
        });
        !ids.is_empty() || self.instances.len() != before
    }

    fn change(&mut self, instance_id: &str, now_ms: i64) {
        let listed = self.random.between(LISTED_MS.0, LISTED_MS.1);
        let Some(record) = self.instances.get_mut(instance_id) else { return };
        if record.reclaimed_ms.is_some_and(|at| at <= now_ms) {
            self.terminate(instance_id, true, now_ms);
            return;
        }
        record.due_ms = None;
        match record.seen.phase {
            InstancePhase::Pending => record.seen.phase = InstancePhase::Running,
            InstancePhase::ShuttingDown => {
                record.seen.phase = InstancePhase::Terminated;
                record.due_ms = Some(now_ms + i64::try_from(listed).unwrap_or_default());
            }
            InstancePhase::Unspecified
            | InstancePhase::Running
            | InstancePhase::Stopped
            | InstancePhase::Terminated => return,
        }
        self.announce_state(instance_id, now_ms);
    }

    pub(super) fn next_due(&self) -> Option<i64> {
        let moments = |record: &Record| [record.due_ms, record.reclaimed_ms];
        self.instances.values().flat_map(moments).flatten().min()
    }
}
