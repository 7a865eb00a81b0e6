//! The interruption queue, and what spot needs besides.
//!
//! Invariant: a queue that nobody names is only told where our own pods run and a pool names spot.

use longshore_actuator::ec2::inspect::QueueSettings;

use super::ask::SPOT_ROLE;
use super::facts::{Facts, Kind};
use super::pools;
use super::{Finding, Severity};

/// Who has to be allowed to send.
const SENDER: &str = "events.amazonaws.com";
/// Longest useful life of a message in seconds: what it announces is over by then.
const RETENTION_SECONDS_MAX: u32 = 3600;
const SETTING: &str = "settings.interruptionQueue (LONGSHORE_INTERRUPTION_QUEUE)";

/// A queue that is absent, that nothing fills, or that is set up oddly.
pub fn check(facts: &Facts) -> Vec<Finding> {
    let Some(account) = facts.account() else { return Vec::new() };
    let Some(queue) = &account.queue else { return unnamed(facts).into_iter().collect() };
    let (name, region) = (&queue.name, &account.region);
    if queue.url == Ok(None) {
        return vec![Finding {
            severity: Severity::Problem,
            object: format!("Queue/{name}"),
            message: format!(
                "{SETTING} names it, and it does not exist in {region}: interruptions come \
                 without warning"
            ),
            evidence: format!("sqs:GetQueueUrl knows no queue {name:?}"),
            remedy: format!(
                "aws sqs create-queue --region {region} --queue-name {name} --attributes \
                 MessageRetentionPeriod=300,SqsManagedSseEnabled=true\n\
                 # then its policy and rules: deploy/iam/interruption-queue-policy.json and \
                 interruption-rules.json"
            ),
        }];
    }
    let Some((Ok(settings), Ok(Some(url)))) = queue.settings.as_ref().map(|it| (it, &queue.url))
    else {
        return Vec::new();
    };
    let faults = faults(settings).into_iter();
    let found = faults.map(|(severity, message, evidence, attributes)| Finding {
        severity,
        object: format!("Queue/{name}"),
        message: message.to_owned(),
        evidence,
        remedy: format!(
            "aws sqs set-queue-attributes --region {region} --queue-url {url} --attributes \
             {attributes}"
        ),
    });
    found.collect()
}

type Fault = (Severity, &'static str, String, &'static str);

fn faults(settings: &QueueSettings) -> Vec<Fault> {
    let mut faults: Vec<Fault> = Vec::new();
    if !settings.policy.contains(SENDER) {
        faults.push((
            Severity::Problem,
            "lets nobody fill it: EventBridge may not send to it",
            format!("its policy does not name {SENDER}"),
            "file://attributes.json   # with Policy: deploy/iam/interruption-queue-policy.json",
        ));
    }
    let kept = settings.retention_seconds.filter(|seconds| *seconds > RETENTION_SECONDS_MAX);
    if let Some(seconds) = kept {
        faults.push((
            Severity::Advice,
            "keeps messages for longer than they mean anything",
            format!("MessageRetentionPeriod is {seconds} s"),
            "MessageRetentionPeriod=300",
        ));
    }
    if !settings.kms_key.is_empty() {
        faults.push((
            Severity::Advice,
            "is encrypted with a key that the controller's policy does not cover: it cannot be \
             read unless kms:Decrypt is allowed",
            format!("KmsMasterKeyId is {}", settings.kms_key),
            "KmsMasterKeyId=,SqsManagedSseEnabled=true",
        ));
    } else if !settings.encrypted_by_sqs {
        faults.push((
            Severity::Advice,
            "is not encrypted",
            "SqsManagedSseEnabled is false".to_owned(),
            "SqsManagedSseEnabled=true",
        ));
    }
    faults
}

fn unnamed(facts: &Facts) -> Option<Finding> {
    let pools = pools::naming_spot(facts);
    let pod = facts.of(Kind::Pod).next()?;
    (!pools.is_empty()).then(|| Finding {
        severity: Severity::Advice,
        object: super::facts::name("Pod", pod),
        message: format!("{SETTING} is empty: spot interruptions come without warning"),
        evidence: format!("{} may launch spot", pools.join(", ")),
        remedy: "make a queue as deploy/iam/README.md says, and name it in the chart's values"
            .to_owned(),
    })
}

/// Spot in pools of an account that has never used it.
pub fn spot_role(facts: &Facts) -> Vec<Finding> {
    let absent = facts.account().and_then(|account| account.spot_role.as_ref());
    if absent != Some(&Ok(None)) {
        return Vec::new();
    }
    vec![Finding {
        severity: Severity::Problem,
        object: format!("Role/{SPOT_ROLE}"),
        message: "is not there: launches on spot fail".to_owned(),
        evidence: format!("{} may launch spot", pools::naming_spot(facts).join(", ")),
        remedy: "aws iam create-service-linked-role --aws-service-name spot.amazonaws.com"
            .to_owned(),
    }]
}
