//! Telling people what has become of their CapacityBuffers.
//!
//! Invariant: a status that already says so is not written again; conditions of other types stay.

use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::{Api, ResourceExt as _};

use crate::api::CapacityBuffer;
use crate::api::capacity_buffer::{ACTIVE_CAPACITY, CapacityBufferStatus};
use crate::directives::Directives;
use crate::index::Index;
use crate::index::buffers::{BufferEntry, Outcome};
use crate::patch::{Part, Wanted, edit, set_condition};

/// How long after a change people are told.
const SETTLE: Duration = Duration::from_millis(200);
/// Whether the buffer can be provisioned for at all.
const READY: &str = "ReadyForProvisioning";

/// Tells people, for as long as the watcher leads.
pub async fn run(directives: &Directives) {
    let mut changes = directives.store.changes();
    loop {
        changes.mark_unchanged();
        for entry in
            directives.store.read(|index: &Index| index.buffers().cloned().collect::<Vec<_>>())
        {
            if let Some(outcome) = &entry.outcome {
                directives.say_of_buffer(&entry, outcome).await;
            }
        }
        if changes.changed().await.is_err() {
            return;
        }
        tokio::time::sleep(SETTLE).await;
    }
}

impl Directives {
    async fn say_of_buffer(&self, entry: &BufferEntry, outcome: &Outcome) {
        let object = entry.object.as_ref();
        let namespace = object.namespace().unwrap_or_default();
        let api: Api<CapacityBuffer> = Api::namespaced(self.client.clone(), &namespace);
        let generation = object.metadata.generation;
        let template = object.spec.pod_template_ref.clone();
        let at = self.now();
        let write = |buffer: &mut CapacityBuffer| {
            let status = buffer.status.get_or_insert_default();
            status.pod_template_ref.clone_from(&template);
            say(status, outcome, generation, &at);
        };
        let known = Some(object.clone());
        if let Err(error) = edit(&api, &object.name_any(), Part::Status, known, write).await {
            tracing::debug!(%error, buffer = object.name_any(), "status not written");
        }
    }
}

fn say(status: &mut CapacityBufferStatus, outcome: &Outcome, generation: Option<i64>, at: &Time) {
    let wanted = match outcome {
        Outcome::Resolved { replicas, generation } => {
            status.replicas = Some(i32::try_from(*replicas).unwrap_or(i32::MAX));
            status.provisioning_strategy = Some(ACTIVE_CAPACITY.to_owned());
            status.pod_template_generation =
                generation.filter(|_| status.pod_template_ref.is_some());
            Wanted { reason: "Resolved", ..Wanted::met(READY) }
        }
        Outcome::Refused { reason, message } => {
            status.replicas = None;
            status.pod_template_generation = None;
            Wanted { kind: READY, status: Some(false), reason, message }
        }
    };
    set_condition(&mut status.conditions, &wanted, generation, at);
    if wanted.status == Some(false) {
        let none = Wanted {
            kind: "Provisioning",
            status: Some(false),
            reason: "NotReadyForProvisioning",
            message: "",
        };
        set_condition(&mut status.conditions, &none, generation, at);
    }
}
