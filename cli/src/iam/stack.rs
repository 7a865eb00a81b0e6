//! All that Longshore needs in an account, as a template of CloudFormation's: the actuator's policy
//! and role, roles of nodes, queues of interruptions.
//!
//! Invariant: pure. What is made for a cluster is as the documents of deploy/iam say it.

use serde_json::{Map, Value, json};

use crate::args::IamArgs;

const TRUST: &str = include_str!("../../../deploy/iam/controller-trust-pod-identity.json");
const NODE_TRUST: &str = include_str!("../../../deploy/iam/node-trust.json");
const QUEUE: &str = include_str!("../../../deploy/iam/interruption-queue.json");
const QUEUE_POLICY: &str = include_str!("../../../deploy/iam/interruption-queue-policy.json");
const RULES: &str = include_str!("../../../deploy/iam/interruption-rules.json");
/// What nodes of EKS may do.
const NODE_POLICIES: [&str; 4] = [
    "AmazonEC2ContainerRegistryReadOnly",
    "AmazonEKSWorkerNodePolicy",
    "AmazonEKS_CNI_Policy",
    "AmazonSSMManagedInstanceCore",
];

/// The resources beside the actuator's policies, which have these names among them.
pub(super) fn resources(
    args: &IamArgs,
    policies: &[String],
) -> serde_json::Result<Map<String, Value>> {
    let mut made = Made::default();
    // The actuator runs in the first of the clusters.
    if let Some(home) = args.clusters.first() {
        made.actuator(args, home, policies)?;
    }
    for (number, cluster) in args.clusters.iter().enumerate() {
        if args.node_roles.is_empty() {
            made.nodes(args, cluster, number)?;
        }
        if args.queues.is_empty() {
            made.queue(args, cluster, number)?;
        }
    }
    Ok(made.0)
}

/// Resources by their names.
#[derive(Default)]
struct Made(Map<String, Value>);

impl Made {
    fn put(&mut self, name: String, kind: &str, properties: Value) {
        self.0.insert(name, json!({ "Type": kind, "Properties": properties }));
    }

    fn actuator(
        &mut self,
        args: &IamArgs,
        home: &str,
        policies: &[String],
    ) -> serde_json::Result<()> {
        let attached: Vec<Value> = policies.iter().map(|name| json!({ "Ref": name })).collect();
        let role = json!({
            "AssumeRolePolicyDocument": document(TRUST, args, home)?,
            "ManagedPolicyArns": attached,
        });
        self.put("LongshoreActuatorRole".to_owned(), "AWS::IAM::Role", role);
        let association = json!({
            "ClusterName": home,
            "Namespace": args.namespace,
            "ServiceAccount": args.service_account,
            "RoleArn": arn("LongshoreActuatorRole"),
        });
        let kind = "AWS::EKS::PodIdentityAssociation";
        self.put("LongshoreActuatorAssociation".to_owned(), kind, association);
        Ok(())
    }

    fn nodes(&mut self, args: &IamArgs, cluster: &str, number: usize) -> serde_json::Result<()> {
        let role = format!("NodeRole{number}");
        let policies =
            NODE_POLICIES.map(|name| format!("arn:{}:iam::aws:policy/{name}", args.partition));
        let properties = json!({
            "RoleName": format!("KarpenterNodeRole-{cluster}"),
            "AssumeRolePolicyDocument": document(NODE_TRUST, args, cluster)?,
            "ManagedPolicyArns": policies,
        });
        let entry = json!({
            "ClusterName": cluster, "PrincipalArn": arn(&role), "Type": "EC2_LINUX",
        });
        self.put(role, "AWS::IAM::Role", properties);
        self.put(format!("NodeEntry{number}"), "AWS::EKS::AccessEntry", entry);
        Ok(())
    }

    fn queue(&mut self, args: &IamArgs, cluster: &str, number: usize) -> serde_json::Result<()> {
        let queue = format!("Queue{number}");
        let known = document(QUEUE, args, cluster)?;
        let mut properties = known["Attributes"].clone();
        properties["QueueName"] = known["QueueName"].clone();
        let policy = json!({
            "Queues": [{ "Ref": queue }],
            "PolicyDocument": document(QUEUE_POLICY, args, cluster)?,
        });
        self.put(format!("QueuePolicy{number}"), "AWS::SQS::QueuePolicy", policy);
        let rules = document(RULES, args, cluster)?;
        for (name, pattern) in rules.as_object().into_iter().flatten() {
            let logical = name.rsplit('-').next().unwrap_or_default();
            let target = json!({ "Id": "queue", "Arn": arn(&queue) });
            let rule = json!({ "Name": name, "EventPattern": pattern, "Targets": [target] });
            self.put(format!("{logical}{number}"), "AWS::Events::Rule", rule);
        }
        self.put(queue, "AWS::SQS::Queue", properties);
        Ok(())
    }
}

fn arn(resource: &str) -> Value {
    json!({ "Fn::GetAtt": [resource, "Arn"] })
}

/// A document with its names filled in.
fn document(text: &str, args: &IamArgs, cluster: &str) -> serde_json::Result<Value> {
    let names = [
        ("cluster", cluster),
        ("account", &args.account),
        ("region", &args.region),
        ("partition", &args.partition),
    ];
    let filled = names
        .iter()
        .fold(text.to_owned(), |text, (name, value)| text.replace(&format!("${{{name}}}"), value));
    serde_json::from_str(&filled)
}
