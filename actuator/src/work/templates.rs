//! Deleting launch templates that nobody uses any more.
//!
//! Invariant: a template is deleted only when no leader has used it for a while; a launch that
//! needs it after all makes it again, since its name says what is in it.

use std::sync::Arc;
use std::time::Duration;

use crate::cloud::TemplateRef;
use crate::leader::{Leader, lock};

/// Time between two looks.
const INTERVAL: Duration = Duration::from_secs(600);
/// How long an unused template is kept, in milliseconds. Creating and deleting costs more than
/// keeping: accounts hold 5,000.
const KEEP_MS: i64 = 6 * 3_600_000;

pub async fn run(leader: Arc<Leader>) -> anyhow::Result<()> {
    loop {
        tokio::time::sleep(INTERVAL).await;
        for template in leader.cloud().templates().await? {
            if unused(&leader, &template, leader.now_ms()) {
                lock(&leader.templates).remove(&template.name);
                // One that cannot be deleted keeps no other from it.
                match leader.cloud().delete_template(&template.name).await {
                    Ok(()) => tracing::info!(template = template.name, "unused template deleted"),
                    Err(error) => tracing::warn!(%error, "unused launch template stays"),
                }
            }
        }
    }
}

fn unused(leader: &Leader, template: &TemplateRef, now_ms: i64) -> bool {
    let used = lock(&leader.templates).get(&template.name).map(|known| known.used_ms);
    // A leader that has not seen it used may just be new.
    let used = used.unwrap_or(template.created_ms).max(leader.since_ms);
    used + KEEP_MS <= now_ms
}
