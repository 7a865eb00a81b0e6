//! How the policy is printed: as a document, or as managed policies within something else.
//!
//! Invariant: whatever the form, the statements are those of the policy, each once and in order.

use serde_json::{Map, Value, json};

use super::stack;
use crate::args::{IamArgs, IamFormat};

/// Most characters of a managed policy, blanks not counted (IAM quotas).
pub(super) const MANAGED_CHARS_MAX: usize = 6_144;

/// A managed policy.
pub(super) struct Part {
    /// From one on.
    number: usize,
    pub(super) document: Value,
}

impl Part {
    /// What its names end with: nothing where there may be no other.
    fn suffix(&self) -> String {
        if self.number == 1 { String::new() } else { self.number.to_string() }
    }

    fn managed_name(&self, args: &IamArgs) -> String {
        format!("LongshoreActuator{}-{}", self.suffix(), args.region)
    }

    /// Its name within a template.
    fn logical_name(&self) -> String {
        format!("LongshoreActuatorPolicy{}", self.suffix())
    }
}

/// The policy, in as many managed policies as it takes; whole where a document is asked for.
pub(super) fn parts(statements: Vec<Value>, args: &IamArgs) -> Vec<Part> {
    if args.format == IamFormat::Json {
        return vec![Part { number: 1, document: document(statements) }];
    }
    let (mut parts, mut part) = (Vec::new(), Vec::new());
    for statement in statements {
        part.push(statement);
        if part.len() > 1 && length(&document(part.clone())) > MANAGED_CHARS_MAX {
            let next = part.split_off(part.len() - 1);
            parts.push(std::mem::replace(&mut part, next));
        }
    }
    parts.push(part);
    let numbered = parts.into_iter().zip(1..);
    numbered.map(|(part, number)| Part { number, document: document(part) }).collect()
}

/// A document of some statements.
pub(super) fn document(statements: Vec<Value>) -> Value {
    json!({ "Version": "2012-10-17", "Statement": statements })
}

/// Its length as IAM counts it.
pub(super) fn length(document: &Value) -> usize {
    document.to_string().chars().filter(|letter| !letter.is_whitespace()).count()
}

/// The parts, as they are asked for.
pub(super) fn text(parts: &[Part], args: &IamArgs) -> serde_json::Result<String> {
    match args.format {
        IamFormat::Json => {
            let documents = parts.iter().map(|part| serde_json::to_string_pretty(&part.document));
            documents.map(|document| Ok(document? + "\n")).collect()
        }
        IamFormat::Terraform => parts.iter().map(|part| terraform(part, args)).collect(),
        IamFormat::Cloudformation => template(parts, args, Map::new()),
        IamFormat::Stack => {
            let names: Vec<String> = parts.iter().map(Part::logical_name).collect();
            template(parts, args, stack::resources(args, &names)?)
        }
    }
}

fn terraform(part: &Part, args: &IamArgs) -> serde_json::Result<String> {
    let resource = format!("longshore_actuator{}", part.suffix());
    Ok(format!(
        "resource \"aws_iam_policy\" \"{resource}\" {{\n  name   = \"{}\"\n  policy = \
         <<-POLICY\n{}\n  POLICY\n}}\n",
        part.managed_name(args),
        serde_json::to_string_pretty(&part.document)?
    ))
}

/// A template of CloudFormation's with the policy and more.
fn template(
    parts: &[Part],
    args: &IamArgs,
    mut resources: Map<String, Value>,
) -> serde_json::Result<String> {
    let mut outputs = Map::new();
    for part in parts {
        let name = part.logical_name();
        let properties = json!({
            "ManagedPolicyName": part.managed_name(args),
            "PolicyDocument": part.document,
        });
        outputs.insert(format!("{name}Arn"), json!({ "Value": { "Ref": name } }));
        let resource = json!({ "Type": "AWS::IAM::ManagedPolicy", "Properties": properties });
        resources.insert(name, resource);
    }
    let template = json!({
        "AWSTemplateFormatVersion": "2010-09-09",
        "Resources": resources,
        "Outputs": outputs,
    });
    Ok(serde_json::to_string_pretty(&template)? + "\n")
}
