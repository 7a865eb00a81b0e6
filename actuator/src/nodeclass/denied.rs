//! Refused permissions in words: what was denied on what to whom, and what would allow it.
//!
//! Invariant: works with nothing but the error; each further permission makes the answer better.

use std::collections::BTreeSet;

use longshore_proto::types::v1::NodeClass;
use serde_json::Value;

use super::Place;
use crate::cloud::{Class, Cloud, CloudError, TAG_CLASS, TAG_CLUSTER_NAME, TAG_POOL};

/// Marks the encoded part of EC2's message.
const ENCODED: &str = "Encoded authorization failure message: ";
/// Tags that controller policies usually ask for.
const USUAL_TAGS: [&str; 4] = ["karpenter.sh/discovery", TAG_POOL, TAG_CLASS, TAG_CLUSTER_NAME];
/// Prefixes of condition keys that are about tags.
const TAG_CONDITIONS: [&str; 3] = ["aws:RequestTag/", "aws:ResourceTag/", "ec2:ResourceTag/"];

/// Turns errors into answers, with the help of a cloud that may be asked further questions.
#[derive(Clone, Copy)]
pub struct Explainer<'a> {
    /// Who may be asked.
    pub cloud: &'a dyn Cloud,
    /// Where, and as whom.
    pub place: &'a Place,
    /// The class it is about.
    pub class: &'a NodeClass,
}

impl Explainer<'_> {
    /// The error in words that say the way out.
    pub async fn explain(&self, error: &CloudError) -> String {
        match error.class {
            Class::Unauthorized => self.denial(error).await,
            Class::SpotRole => format!(
                "{error}. The service-linked role for spot is missing; make it with: aws iam \
                 create-service-linked-role --aws-service-name spot.amazonaws.com"
            ),
            Class::Capacity
            | Class::Addresses
            | Class::Quota
            | Class::Throttled
            | Class::Profile
            | Class::TemplateMissing
            | Class::TokenReused
            | Class::NotFound
            | Class::Exists
            | Class::Unknown
            | Class::Rejected => error.to_string(),
        }
    }

    async fn denial(&self, error: &CloudError) -> String {
        let encoded = encoded_part(&error.message);
        let document = match encoded {
            Some(encoded) => self.cloud.decode_denial(encoded).await.ok(),
            None => None,
        };
        let node_role = self.node_role().await;
        explain_denial(error, document.as_deref(), self, node_role.as_deref())
    }

    /// Name of the role that the class's nodes run as, when it can be known.
    async fn node_role(&self) -> Option<String> {
        if !self.class.role.is_empty() {
            return self.class.role.rsplit('/').next().map(str::to_owned);
        }
        if self.class.instance_profile.is_empty() {
            return None;
        }
        let profile = self.cloud.profile(&self.class.instance_profile).await;
        profile.ok().flatten().and_then(|profile| profile.role)
    }
}

/// A denial in words. `document` is the decoded failure, when it could be decoded.
#[must_use]
pub fn explain_denial(
    error: &CloudError,
    document: Option<&str>,
    explainer: &Explainer<'_>,
    node_role: Option<&str>,
) -> String {
    let decoded: Option<Value> = document.and_then(|text| serde_json::from_str(text).ok());
    let plain = error.message.split(ENCODED).next().unwrap_or_default().trim();
    let context = decoded.as_ref().map(|document| &document["context"]);
    let text = |field: &str| context.and_then(|c| c[field].as_str()).unwrap_or_default();
    let principal = context.and_then(|context| context["principal"]["arn"].as_str());
    let caller = principal.unwrap_or(&explainer.place.caller_arn);
    let mut parts = Vec::new();
    match context {
        Some(_) => {
            parts.push(format!("{} on {} is denied to {caller}", text("action"), text("resource")))
        }
        None => parts.push(format!("{} is denied to {caller}: {plain}", error.action)),
    }
    if runs_as_node(caller, node_role) {
        parts.push(
            "the controller runs as the node's role: IRSA is not in effect. Check the service \
             account's annotation eks.amazonaws.com/role-arn and the trust policy of that role"
                .to_owned(),
        );
        return parts.join("; ");
    }
    match context {
        Some(context) => parts.extend(conditions(context, &decoded, explainer)),
        None if error.message.contains(ENCODED) => parts.push(
            "allow sts:DecodeAuthorizationMessage to be told which conditions failed".to_owned(),
        ),
        None => {}
    }
    parts.join("; ")
}

/// The encoded part of a message.
fn encoded_part(message: &str) -> Option<&str> {
    let (_, rest) = message.split_once(ENCODED)?;
    rest.split_whitespace().next()
}

/// A node's own credentials carry its instance id as the session's name.
fn runs_as_node(caller_arn: &str, node_role: Option<&str>) -> bool {
    let mut parts = caller_arn.rsplit('/');
    let (session, role) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let instance = session
        .strip_prefix("i-")
        .is_some_and(|id| id.len() >= 8 && id.bytes().all(|digit| digit.is_ascii_hexdigit()));
    instance || (!role.is_empty() && node_role == Some(role))
}

/// Condition keys that were there, and tags that were not.
fn conditions(context: &Value, document: &Option<Value>, explainer: &Explainer<'_>) -> Vec<String> {
    let mut parts = Vec::new();
    let items = context["conditions"]["items"].as_array().cloned().unwrap_or_default();
    let present: Vec<_> = items.iter().map(shown_condition).collect();
    if !present.is_empty() {
        parts.push(format!("condition keys present: {}", present.join(", ")));
    }
    let explicit = document.as_ref().is_some_and(|d| d["explicitDeny"].as_bool() == Some(true));
    if explicit {
        parts.push("a statement denies it explicitly".to_owned());
        return parts;
    }
    let tags: BTreeSet<_> = items
        .iter()
        .filter_map(|item| item["key"].as_str())
        .filter_map(|key| TAG_CONDITIONS.iter().find_map(|prefix| key.strip_prefix(prefix)))
        .collect();
    let missing = missing_tags(&tags, explainer.class);
    if missing.is_empty() {
        parts.push("no identity policy of the caller allows it: add the action".to_owned());
    } else {
        parts.push(format!(
            "missing tag{}: {}; if the policy's condition asks for it, add it to {} spec.tags",
            if missing.len() == 1 { "" } else { "s" },
            missing.join(", "),
            explainer.class.name
        ));
    }
    parts
}

fn shown_condition(item: &Value) -> String {
    let values = item["values"]["items"].as_array().cloned().unwrap_or_default();
    let values: Vec<_> = values.iter().filter_map(|value| value["value"].as_str()).collect();
    format!("{}={}", item["key"].as_str().unwrap_or_default(), values.join("|"))
}

/// Tags that policies ask for, the class's selectors use, and the request did not carry.
fn missing_tags<'a>(present: &BTreeSet<&str>, class: &'a NodeClass) -> Vec<&'a str> {
    let selectors = class.subnet_terms.iter().chain(&class.security_group_terms);
    let selected = selectors.flat_map(|term| term.tags.keys()).map(String::as_str);
    let wanted: BTreeSet<&str> = selected.filter(|key| *key != "Name").chain(USUAL_TAGS).collect();
    wanted.into_iter().filter(|tag| !present.contains(tag)).collect()
}

#[cfg(test)]
mod tests;
