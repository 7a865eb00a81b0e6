//! What is said of node classes, of which all are in order.
//!
//! Invariant: only under one leader, and long enough after it was elected: a new one has found
//! nothing yet.

use std::time::Duration;

use super::{CLASSES, Judge, Seen};

/// How long a leader may take to look around, and its word to reach the cluster.
const LOOKED_AROUND: Duration = Duration::from_secs(300);
/// What is said of a class that AWS has not answered about.
const LOOKUP_FAILED: &str = "LookupFailed";

impl Judge {
    /// A class that was ready stays so when AWS does not answer.
    pub(super) fn note_classes(&self, cluster: &Seen) {
        let Some((since, term)) = self.lock().terms.get(&cluster.site).copied() else { return };
        // Images of another version are no substitute: after an upgrade a class waits for AWS.
        let upgraded = self.lock().upgrades.contains_key(&cluster.site);
        if upgraded || since.elapsed() < LOOKED_AROUND {
            return;
        }
        let mut said = Vec::new();
        cluster.handle.visit(CLASSES, |class| {
            let name = class["metadata"]["name"].as_str().unwrap_or_default().to_owned();
            let conditions = class["status"]["conditions"].as_array().into_iter().flatten();
            let conditions = conditions.filter(|one| one["status"] != "True");
            let reasons = conditions.map(|one| one["reason"].as_str().unwrap_or_default());
            let reasons: Vec<String> = reasons.map(ToOwned::to_owned).collect();
            said.push((name, reasons));
        });
        for (name, reasons) in said {
            let key = (cluster.label.clone(), name);
            if reasons.is_empty() {
                self.lock().ready.insert(key, term);
            } else if reasons.iter().any(|reason| reason == LOOKUP_FAILED)
                && self.lock().ready.remove(&key) == Some(term)
            {
                let text = format!("class {} of {}: {reasons:?}", key.1, key.0);
                self.violate("what was found of a class was forgotten", text);
            }
        }
    }
}
