//! CapacityBuffers in the index.
//!
//! Invariant: a buffer is in the view once what it refers to has been read, and as that was last
//! read; it holds on to the shape of its pods as a pod would.

use std::sync::Arc;

use longshore_proto::types::v1::ObjectKind;
use longshore_proto::types::v1::object::Kind;

use super::{Index, Key, Name, Source, Watched, name_of};
use crate::api::CapacityBuffer;
use crate::project::Fault;
use crate::project::buffer::{self, Referred};

/// A buffer as the index keeps it.
#[derive(Clone, Debug)]
pub struct BufferEntry {
    /// The object.
    pub object: Arc<CapacityBuffer>,
    /// What came of reading what it refers to; None before that was tried.
    pub outcome: Option<Outcome>,
    shape: Option<String>,
}

/// What came of reading what a buffer refers to.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// Room for this many pods.
    Resolved {
        /// How many.
        replicas: i64,
        /// Generation of the object with the template.
        generation: Option<i64>,
    },
    /// It cannot be used.
    Refused {
        /// Machine-readable.
        reason: &'static str,
        /// For people.
        message: String,
    },
}

/// What a buffer refers to, or why it was not found: a reason, and text for people.
pub type Found = Result<Referred, (&'static str, String)>;

impl Watched for CapacityBuffer {
    const SOURCE: Source = Source::CapacityBuffer;

    fn apply(self, index: &mut Index) -> Result<(), Fault> {
        let name = name_of(&self.metadata);
        let known = index.buffers.get(&name).cloned();
        let (outcome, shape) = known.map_or((None, None), |known| (known.outcome, known.shape));
        index.buffers.insert(name, BufferEntry { object: Arc::new(self), outcome, shape });
        Ok(())
    }

    fn forget(index: &mut Index, name: &Name) {
        index.hide_buffer(name);
        index.buffers.remove(name);
    }
}

impl Index {
    /// All buffers, by namespace and name.
    pub fn buffers(&self) -> impl Iterator<Item = &BufferEntry> {
        self.buffers.values()
    }

    /// True when what every buffer refers to has been looked for: before that, room that one keeps
    /// would seem to be free.
    #[must_use]
    pub fn has_resolved_buffers(&self) -> bool {
        self.buffers.values().all(|entry| entry.outcome.is_some())
    }

    /// Takes up what a buffer refers to.
    pub fn resolve_buffer(&mut self, object: &CapacityBuffer, found: Found) {
        let name = name_of(&object.metadata);
        if !self.buffers.contains_key(&name) {
            return;
        }
        let outcome = match found {
            Ok(referred) => self.show_buffer(&name, object, &referred),
            Err((reason, message)) => {
                self.hide_buffer(&name);
                Outcome::Refused { reason, message }
            }
        };
        if let Some(entry) = self.buffers.get_mut(&name) {
            entry.outcome = Some(outcome);
        }
    }

    fn show_buffer(
        &mut self,
        name: &Name,
        object: &CapacityBuffer,
        referred: &Referred,
    ) -> Outcome {
        let (row, shape) = match buffer::buffer(object, referred, &self.around) {
            Ok(read) => read,
            Err(fault) => {
                self.hide_buffer(name);
                let message = format!("{}: {}", fault.field, fault.problem);
                return Outcome::Refused { reason: "ResolutionFailed", message };
            }
        };
        let replicas = row.replicas;
        let id = row.shape_id.clone();
        self.use_shape(shape);
        self.view.put(Kind::CapacityBuffer(row));
        let entry = self.buffers.get_mut(name);
        if let Some(old) = entry.and_then(|entry| entry.shape.replace(id)) {
            self.drop_shape(&old);
        }
        Outcome::Resolved { replicas, generation: referred.generation }
    }

    fn hide_buffer(&mut self, name: &Name) {
        let (namespace, short) = name;
        self.view.remove(&Key::new(ObjectKind::CapacityBuffer, format!("{namespace}/{short}")));
        let entry = self.buffers.get_mut(name);
        if let Some(shape) = entry.and_then(|entry| entry.shape.take()) {
            self.drop_shape(&shape);
        }
    }
}
