//! What only `longshore doctor` asks: settings of the queue, roles, and who may join a cluster.
//!
//! Invariant: read only, and all of it optional; what does not exist is an answer, not an error.

use aws_sdk_sqs::types::QueueAttributeName;

use super::Aws;
use super::errors::from_sdk;
use crate::cloud::{Class, CloudError};

/// How an interruption queue is set up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueueSettings {
    /// How long a message is kept, in seconds.
    pub retention_seconds: Option<u32>,
    /// Whether SQS encrypts messages with a key of its own.
    pub encrypted_by_sqs: bool,
    /// The account's key that encrypts messages; empty for none.
    pub kms_key: String,
    /// Policy of the queue, as JSON text; empty for none.
    pub policy: String,
}

/// An entry by which EKS lets a role into a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccessEntry {
    /// `EC2_LINUX`, `STANDARD` and so on.
    pub kind: String,
    /// Kubernetes groups.
    pub groups: Vec<String>,
}

impl Aws {
    /// Settings of a queue.
    ///
    /// # Errors
    /// When AWS refuses or does not answer; [`Class::NotFound`] when there is no such queue.
    pub async fn queue_settings(&self, queue_url: &str) -> Result<QueueSettings, CloudError> {
        let request = self.sqs.get_queue_attributes().queue_url(queue_url);
        let answer = request.attribute_names(QueueAttributeName::All).send().await;
        let answer = answer.map_err(|failure| from_sdk("sqs:GetQueueAttributes", &failure))?;
        let text = |name: QueueAttributeName| {
            let value = answer.attributes().and_then(|attributes| attributes.get(&name));
            value.cloned().unwrap_or_default()
        };
        Ok(QueueSettings {
            retention_seconds: text(QueueAttributeName::MessageRetentionPeriod).parse().ok(),
            encrypted_by_sqs: text(QueueAttributeName::SqsManagedSseEnabled) == "true",
            kms_key: text(QueueAttributeName::KmsMasterKeyId),
            policy: text(QueueAttributeName::Policy),
        })
    }

    /// ARN of a role; none when there is no role of that name.
    ///
    /// # Errors
    /// When AWS refuses or does not answer.
    pub async fn role_arn(&self, name: &str) -> Result<Option<String>, CloudError> {
        match self.iam.get_role().role_name(name).send().await {
            Ok(answer) => Ok(answer.role().map(|role| role.arn().to_owned())),
            Err(failure) => absent(from_sdk("iam:GetRole", &failure)),
        }
    }

    /// The entry of a role in a cluster; none when EKS has none.
    ///
    /// # Errors
    /// When AWS refuses or does not answer.
    pub async fn access_entry(
        &self,
        cluster: &str,
        role_arn: &str,
    ) -> Result<Option<AccessEntry>, CloudError> {
        let request = self.eks.describe_access_entry().cluster_name(cluster);
        match request.principal_arn(role_arn).send().await {
            Ok(answer) => Ok(answer.access_entry().map(|entry| AccessEntry {
                kind: entry.r#type().unwrap_or_default().to_owned(),
                groups: entry.kubernetes_groups().to_vec(),
            })),
            Err(failure) => absent(from_sdk("eks:DescribeAccessEntry", &failure)),
        }
    }
}

fn absent<T>(error: CloudError) -> Result<Option<T>, CloudError> {
    if error.class == Class::NotFound { Ok(None) } else { Err(error) }
}
