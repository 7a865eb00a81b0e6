//! The queue that EventBridge rules send announcements to.
//!
//! Invariant: a message that is not discarded comes back.

use async_trait::async_trait;

use super::CloudError;

/// Receives announcements.
#[async_trait]
pub trait Messages: Send + Sync + 'static {
    /// URL of a queue; NotFound when there is none of that name.
    async fn queue_url(&self, name: &str) -> Result<String, CloudError>;
    /// Waits up to twenty seconds for at most ten messages.
    async fn receive(&self, queue_url: &str) -> Result<Vec<QueueMessage>, CloudError>;
    /// Discards a message.
    async fn discard(&self, queue_url: &str, receipt: &str) -> Result<(), CloudError>;
}

/// A message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueMessage {
    /// What [`Messages::discard`] wants.
    pub receipt: String,
    /// Text.
    pub body: String,
}
