//! Arguments of `iam`.
//!
//! Invariant: names are checked where they are given: they become part of ARNs.

use clap::{Args, ValueEnum};

pub(super) const EXAMPLES: &str = "\
Examples:
  longshore iam --account 111122223333 --region eu-central-1 --cluster prod > actuator.json
  aws iam create-policy --policy-name longshore-actuator --policy-document file://actuator.json

  longshore iam --account 111122223333 --region eu-central-1 --cluster prod,dev --format terraform

  longshore iam --account 111122223333 --region eu-central-1 --cluster prod \\
    --format stack > stack.json
  aws cloudformation deploy --stack-name longshore --template-file stack.json \\
    --capabilities CAPABILITY_NAMED_IAM";

/// Arguments of `iam`.
#[derive(Clone, Debug, Args)]
pub struct IamArgs {
    /// Clusters that the actuator serves, as EKS names them, comma-separated.
    #[arg(long = "cluster", value_name = "NAME", value_delimiter = ',', required = true,
        value_parser = plain)]
    pub clusters: Vec<String>,
    /// Account that it acts in.
    #[arg(long, value_name = "ID", value_parser = account)]
    pub account: String,
    /// Region that it acts in.
    #[arg(long, env = "LONGSHORE_REGION", value_name = "REGION", value_parser = plain)]
    pub region: String,
    /// Partition: aws, aws-cn or aws-us-gov.
    #[arg(long, value_name = "NAME", default_value = "aws", value_parser = plain)]
    pub partition: String,
    /// Roles that nodes may have, by name with their path; KarpenterNodeRole-CLUSTER of each
    /// cluster unless given.
    #[arg(long = "node-role", value_name = "NAME", value_delimiter = ',')]
    pub node_roles: Vec<String>,
    /// Interruption queues; those of Karpenter's guides unless given.
    #[arg(long = "queue", value_name = "NAME", value_delimiter = ',')]
    pub queues: Vec<String>,
    /// Also end instances that Karpenter launched before its first version.
    #[arg(long)]
    pub older_instances: bool,
    /// Namespace of the actuator's service account, for a stack.
    #[arg(long, value_name = "NAMESPACE", default_value = "kube-system", value_parser = plain)]
    pub namespace: String,
    /// The account that speaks to AWS, for a stack: the release's name, in split mode with
    /// -actuator behind it.
    #[arg(long, value_name = "NAME", default_value = "longshore", value_parser = plain)]
    pub service_account: String,
    /// How to print it.
    #[arg(long, value_enum, default_value_t)]
    pub format: IamFormat,
}

/// How a policy is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum IamFormat {
    /// The document.
    #[default]
    Json,
    /// A resource of Terraform's.
    Terraform,
    /// A template of CloudFormation's, in JSON.
    Cloudformation,
    /// A template of all that there has to be, for a first installation: the policy, a role with
    /// it for the service account in the first of the clusters (by Pod Identity), and for each
    /// cluster a role of nodes that may join, and a queue with its rules, unless --node-role and
    /// --queue name those that are there.
    Stack,
}

fn plain(text: &str) -> Result<String, String> {
    let fine = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let whole = !text.is_empty() && text.chars().all(fine);
    if whole { Ok(text.to_owned()) } else { Err("letters, digits, - and _ only".to_owned()) }
}

fn account(text: &str) -> Result<String, String> {
    let digits = text.len() == 12 && text.bytes().all(|byte| byte.is_ascii_digit());
    if digits { Ok(text.to_owned()) } else { Err("an account has 12 digits".to_owned()) }
}
