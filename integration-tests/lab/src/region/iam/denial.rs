//! A refusal with the evidence that `sts:DecodeAuthorizationMessage` shows.
//!
//! Invariant: the encoded message carries everything itself and tells nothing undecoded; only the
//! region that made it can decode it.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::policy::Statement;
use super::{Ask, Context};

/// A refused action.
#[derive(Clone, Debug, PartialEq)]
pub struct Denial {
    /// ARN of the caller.
    pub principal_arn: String,
    /// Action refused, for example `ec2:RunInstances`.
    pub action: String,
    /// Resource it was refused on.
    pub resource: String,
    /// True when a statement denies it, false when none allows it.
    pub explicit: bool,
    /// The document that decoding gives.
    pub document: Value,
}

impl Denial {
    /// Records a refusal; `statement` is the one that denies, when one does.
    pub fn new(principal: (&str, &str), ask: Ask<'_>, statement: Option<&Statement>) -> Denial {
        let (id, arn) = principal;
        let matched: Vec<Value> = statement.into_iter().map(statement_json).collect();
        let document = json!({
            "allowed": false,
            "explicitDeny": statement.is_some(),
            "matchedStatements": {"items": matched},
            "failures": {"items": []},
            "context": {
                "principal": {"id": id, "arn": arn},
                "action": ask.action,
                "resource": ask.resource,
                "conditions": {"items": conditions_json(ask.context)},
            },
        });
        Denial {
            principal_arn: arn.to_owned(),
            action: ask.action.to_owned(),
            resource: ask.resource.to_owned(),
            explicit: statement.is_some(),
            document,
        }
    }

    /// AWS's sentence: who is not authorized to do what on what, and why.
    pub fn sentence(&self) -> String {
        let Denial { principal_arn, action, resource, explicit, .. } = self;
        let why = if *explicit {
            "with an explicit deny in an identity-based policy".to_owned()
        } else {
            format!("because no identity-based policy allows the {action} action")
        };
        format!(
            "User: {principal_arn} is not authorized to perform: {action} on resource: {resource} \
             {why}"
        )
    }
}

/// Seals a document so that only [`decode`] with the same key reads it.
pub fn encode(document: &Value, key: u64) -> String {
    let text = document.to_string();
    let mut bytes = Sha256::digest(text.as_bytes())[..8].to_vec();
    bytes.extend_from_slice(text.as_bytes());
    URL_SAFE_NO_PAD.encode(mask(bytes, key))
}

/// Reads a sealed document; `None` when it is not one of this region's.
pub fn decode(message: &str, key: u64) -> Option<Value> {
    let bytes = mask(URL_SAFE_NO_PAD.decode(message).ok()?, key);
    let (digest, text) = bytes.split_at_checked(8)?;
    let intact = &Sha256::digest(text)[..8] == digest;
    intact.then(|| serde_json::from_slice(text).ok())?
}

/// XORs with a key stream of SHA-256 blocks.
fn mask(mut bytes: Vec<u8>, key: u64) -> Vec<u8> {
    for (block, number) in bytes.chunks_mut(32).zip(0u64..) {
        let mut seed = key.to_be_bytes().to_vec();
        seed.extend_from_slice(&number.to_be_bytes());
        let stream = Sha256::digest(&seed);
        block.iter_mut().zip(stream).for_each(|(byte, pad)| *byte ^= pad);
    }
    bytes
}

fn items(values: &[String]) -> Value {
    json!({"items": values.iter().map(|value| json!({"value": value})).collect::<Vec<_>>()})
}

fn conditions_json(context: &Context) -> Vec<Value> {
    context.iter().map(|(key, values)| json!({"key": key, "values": items(values)})).collect()
}

fn statement_json(statement: &Statement) -> Value {
    let conditions: Vec<Value> = statement
        .conditions
        .iter()
        .map(|condition| json!({"key": condition.key, "values": items(&condition.values)}))
        .collect();
    json!({
        "statementId": statement.sid.clone().unwrap_or_default(),
        "effect": if statement.deny { "DENY" } else { "ALLOW" },
        "principals": {"items": []},
        "principalGroups": {"items": []},
        "actions": items(statement.actions.patterns()),
        "resources": items(statement.resources.patterns()),
        "conditions": {"items": conditions},
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sealed_documents_open_with_their_own_key_only() {
        let document = json!({"allowed": false, "text": "x".repeat(100)});
        let sealed = encode(&document, 7);
        assert!(!sealed.contains("allowed"));
        assert_eq!(decode(&sealed, 7), Some(document));
        assert_eq!(decode(&sealed, 8), None);
        assert_eq!(decode("not base64 !", 7), None);
    }
}
