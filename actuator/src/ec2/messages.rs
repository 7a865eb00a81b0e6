//! SQS.
//!
//! Invariant: long polls only, so that an idle queue costs three calls a minute.

use async_trait::async_trait;

use super::Aws;
use super::errors::from_sdk;
use crate::cloud::{CloudError, Messages, QueueMessage};

/// Most messages SQS hands out at a time.
const LETTERS_MAX: i32 = 10;
/// Longest wait that SQS allows, in seconds.
const WAIT_SECONDS: i32 = 20;
/// How long a received message stays hidden, in seconds; handling takes far less.
const HIDDEN_SECONDS: i32 = 20;

#[async_trait]
impl Messages for Aws {
    async fn queue_url(&self, name: &str) -> Result<String, CloudError> {
        let answer = self.sqs.get_queue_url().queue_name(name).send().await;
        let answer = answer.map_err(|failure| from_sdk("sqs:GetQueueUrl", &failure))?;
        Ok(answer.queue_url().unwrap_or_default().to_owned())
    }

    async fn receive(&self, queue_url: &str) -> Result<Vec<QueueMessage>, CloudError> {
        let request = self
            .sqs
            .receive_message()
            .queue_url(queue_url)
            .max_number_of_messages(LETTERS_MAX)
            .wait_time_seconds(WAIT_SECONDS)
            .visibility_timeout(HIDDEN_SECONDS);
        let answer = request.send().await;
        let answer = answer.map_err(|failure| from_sdk("sqs:ReceiveMessage", &failure))?;
        let messages = answer.messages().iter().map(|message| QueueMessage {
            receipt: message.receipt_handle().unwrap_or_default().to_owned(),
            body: message.body().unwrap_or_default().to_owned(),
        });
        Ok(messages.collect())
    }

    async fn discard(&self, queue_url: &str, receipt: &str) -> Result<(), CloudError> {
        let request = self.sqs.delete_message().queue_url(queue_url).receipt_handle(receipt);
        request.send().await.map_err(|failure| from_sdk("sqs:DeleteMessage", &failure))?;
        Ok(())
    }
}
