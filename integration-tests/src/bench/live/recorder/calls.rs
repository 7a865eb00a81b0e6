//! What the contender asked of AWS and of the API server, as marks.
//!
//! Invariant: counted by those who were asked: the region's record of calls, and the API server's
//! audit log, each request once.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use jiff::Timestamp;
use longshore_lab::region::CallRecord;
use serde::Deserialize;

use super::Clock;
use super::seen::{Mark, What};
use crate::parts::poll;

/// How long the API server may take to write down what it has answered.
const WRITTEN_LIMIT: Duration = Duration::from_secs(30);

/// Calls of AWS since the recording began.
#[must_use]
pub fn cloud(calls: &[CallRecord], clock: Clock) -> Vec<Mark> {
    let mark = |call: &CallRecord| {
        let what = What::Cloud { api: call.api.clone(), failed: call.error.is_some() };
        Some(Mark { at_ms: clock.at_ms(call.at)?, what })
    };
    calls.iter().filter_map(mark).collect()
}

/// Waits until the log of a contender that has ended grows no more.
///
/// # Errors
/// When it goes on growing.
pub async fn written(log: &Path) -> Result<()> {
    let mut last = u64::MAX;
    poll::until("the audit log is complete", WRITTEN_LIMIT, || {
        let length = std::fs::metadata(log).map(|it| it.len());
        let before = length.as_ref().map_or(last, |length| std::mem::replace(&mut last, *length));
        async move {
            let length = length?;
            ensure!(length == before, "{length} bytes, {before} before");
            anyhow::Ok(())
        }
    })
    .await
}

/// Requests to the API server since the recording began.
///
/// # Errors
/// When the log cannot be read.
pub fn api(log: &Path, clock: Clock) -> Result<Vec<Mark>> {
    let text = std::fs::read_to_string(log)?;
    parsed(&text, |at| clock.at_ms(at))
}

fn parsed(text: &str, at_ms: impl Fn(Timestamp) -> Option<u64>) -> Result<Vec<Mark>> {
    let mut marks = Vec::new();
    for line in text.lines() {
        let entry: Entry = serde_json::from_str(line).with_context(|| line.to_owned())?;
        let at_ms = at_ms(entry.request_received_timestamp);
        marks.extend(at_ms.and_then(|at_ms| entry.mark(at_ms)));
    }
    // They stand in order of their answers.
    marks.sort_by_key(|mark| mark.at_ms);
    Ok(marks)
}

/// A line of the audit log.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    stage: String,
    verb: String,
    object_ref: Option<ObjectRef>,
    response_status: Option<Status>,
    request_received_timestamp: Timestamp,
}

#[derive(Deserialize)]
struct ObjectRef {
    resource: String,
    subresource: Option<String>,
}

#[derive(Deserialize)]
struct Status {
    code: Option<u16>,
}

impl Entry {
    /// A watch is answered when it begins, anything else when it has ended.
    fn mark(self, at_ms: u64) -> Option<Mark> {
        let answered = if self.verb == "watch" { "ResponseStarted" } else { "ResponseComplete" };
        if self.stage != answered {
            return None;
        }
        let resource = match self.object_ref {
            Some(ObjectRef { resource, subresource: Some(part) }) => format!("{resource}/{part}"),
            Some(ObjectRef { resource, subresource: None }) => resource,
            None => "paths".to_owned(),
        };
        let code = self.response_status.and_then(|status| status.code);
        let failed = code.is_some_and(|code| code >= 400);
        Some(Mark { at_ms, what: What::Api { verb: self.verb, resource, failed } })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = r#"{"stage":"ResponseStarted","verb":"watch","objectRef":{"resource":"pods"},"responseStatus":{"code":200},"requestReceivedTimestamp":"1970-01-01T00:00:03.000000Z"}
{"stage":"ResponseComplete","verb":"create","objectRef":{"resource":"pods","subresource":"eviction"},"responseStatus":{"code":429},"requestReceivedTimestamp":"1970-01-01T00:00:02.500000Z"}
{"stage":"ResponseComplete","verb":"watch","objectRef":{"resource":"pods"},"responseStatus":{"code":200},"requestReceivedTimestamp":"1970-01-01T00:00:03.000000Z"}
{"stage":"ResponseComplete","verb":"get","requestReceivedTimestamp":"1970-01-01T00:00:00.500000Z"}
"#;

    #[test]
    fn each_request_counts_once() {
        let since = |at: Timestamp| u64::try_from(at.as_millisecond() - 1_000).ok();
        let marks = parsed(LOG, since).unwrap();
        let of = |at_ms, verb: &str, resource: &str, failed| {
            let (verb, resource) = (verb.to_owned(), resource.to_owned());
            Mark { at_ms, what: What::Api { verb, resource, failed } }
        };
        let expected =
            [of(1_500, "create", "pods/eviction", true), of(2_000, "watch", "pods", false)];
        assert_eq!(marks, expected, "and what came before the recording not at all");
        assert!(parsed("{", since).is_err());
    }
}
