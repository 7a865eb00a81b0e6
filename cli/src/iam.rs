//! `longshore iam`: the rights that an actuator needs, and no more.
//!
//! Invariant: pure. Whoever takes the actuator over can launch for the clusters that are named,
//! from its own launch templates, with the tags by which it knows its own; and can tag and end only
//! what carries these tags already.

mod forms;
mod stack;

use serde_json::{Value, json};

use self::forms::{MANAGED_CHARS_MAX, document, length, parts, text};
use crate::args::IamArgs;
use crate::terminal::{Answer, Ending};

/// Tag with the name of the cluster: one key for all of them, so that a condition can list values.
const CLUSTER: &str = "eks:eks-cluster-name";
/// Tag with the pool, on all that is made for one.
const POOL: &str = "karpenter.sh/nodepool";
/// Tags that may be written on instances that are there.
const WRITTEN: [&str; 4] =
    ["Name", "karpenter.sh/nodeclaim", "longshore.dev/launch-id", "longshore.dev/cluster-id"];

/// Prints the policy.
#[must_use]
pub fn run(args: &IamArgs) -> Answer {
    let parts = parts(statements(args), args);
    let longest = parts.iter().map(|part| length(&part.document)).max().unwrap_or_default();
    let long = (longest > MANAGED_CHARS_MAX).then(|| {
        format!(
            "note: {longest} characters, and a managed policy may have {MANAGED_CHARS_MAX}; the other \
             formats make several of it, or make one for each half of the clusters"
        )
    });
    match text(&parts, args) {
        Ok(text) => Answer { text, remarks: long.into_iter().collect(), ..Answer::default() },
        Err(error) => Answer::error(Ending::Failed, &error),
    }
}

/// The policy document.
#[must_use]
pub fn policy(args: &IamArgs) -> Value {
    document(statements(args))
}

fn statements(args: &IamArgs) -> Vec<Value> {
    [launching(args), owning(args), reading(args), access(args)].concat()
}

/// ARNs of EC2 in the region, whoever owns them: subnets and images may be shared.
fn ec2(args: &IamArgs, kinds: &[&str]) -> Vec<String> {
    let IamArgs { partition, region, .. } = args;
    kinds.iter().map(|kind| format!("arn:{partition}:ec2:{region}:*:{kind}/*")).collect()
}

/// What is launched, from what.
fn launching(args: &IamArgs) -> Vec<Value> {
    let IamArgs { partition, region, clusters, .. } = args;
    let images =
        ["image", "snapshot"].map(|kind| format!("arn:{partition}:ec2:{region}::{kind}/*"));
    let shared = ec2(args, &["subnet", "security-group", "capacity-reservation"]);
    let made = ["instance", "volume", "network-interface", "fleet", "launch-template"];
    let with_tags = json!({
        "StringEquals": { format!("aws:RequestTag/{CLUSTER}"): clusters },
        "StringLike": { format!("aws:RequestTag/{POOL}"): "*" },
    });
    let created = json!({
        "StringEquals": {
            format!("aws:RequestTag/{CLUSTER}"): clusters,
            "ec2:CreateAction": ["RunInstances", "CreateFleet", "CreateLaunchTemplate"],
        },
        "StringLike": { format!("aws:RequestTag/{POOL}"): "*" },
    });
    let run = ["ec2:RunInstances", "ec2:CreateFleet"];
    let make = ["ec2:RunInstances", "ec2:CreateFleet", "ec2:CreateLaunchTemplate"];
    let sources = [images.to_vec(), shared, ec2(args, &["spot-instances-request"])].concat();
    vec![
        allow("LaunchFrom", &run, json!(sources)),
        limited("LaunchFromOwnTemplates", &run, json!(ec2(args, &["launch-template"])), &own(args)),
        limited("LaunchWithTags", &make, json!(ec2(args, &made)), &with_tags),
        limited("TagWhatIsMade", &["ec2:CreateTags"], json!(ec2(args, &made)), &created),
    ]
}

/// A condition that something carries the tags of our own.
fn own(args: &IamArgs) -> Value {
    json!({
        "StringEquals": { format!("aws:ResourceTag/{CLUSTER}"): args.clusters },
        "StringLike": { format!("aws:ResourceTag/{POOL}"): "*" },
    })
}

/// What may be done to what is our own.
fn owning(args: &IamArgs) -> Vec<Value> {
    let mut tagging = own(args);
    tagging["ForAllValues:StringEquals"] = json!({ "aws:TagKeys": WRITTEN });
    let end = ["ec2:TerminateInstances", "ec2:DeleteLaunchTemplate"];
    let mut statements = vec![
        limited("TagOwnInstances", &["ec2:CreateTags"], json!(ec2(args, &["instance"])), &tagging),
        limited("EndOwn", &end, json!(ec2(args, &["instance", "launch-template"])), &own(args)),
    ];
    if args.older_instances {
        let older = |(number, cluster): (usize, &String)| {
            let condition = json!({
                "StringEquals": { format!("aws:ResourceTag/kubernetes.io/cluster/{cluster}"): "owned" },
                "StringLike": { "aws:ResourceTag/karpenter.sh/provisioner-name": "*" },
            });
            let sid = format!("EndOlder{number}");
            limited(&sid, &["ec2:TerminateInstances"], json!(ec2(args, &["instance"])), &condition)
        };
        statements.extend(args.clusters.iter().enumerate().map(older));
    }
    statements
}

/// What is read.
fn reading(args: &IamArgs) -> Vec<Value> {
    let IamArgs { partition, region, account, clusters, queues, .. } = args;
    let describe = [
        "DescribeCapacityReservations",
        "DescribeImages",
        "DescribeInstanceTypeOfferings",
        "DescribeInstanceTypes",
        "DescribeInstances",
        "DescribeLaunchTemplates",
        "DescribeSecurityGroups",
        "DescribeSpotPriceHistory",
        "DescribeSubnets",
    ];
    let describe = describe.map(|call| format!("ec2:{call}"));
    let describe: Vec<&str> = describe.iter().map(String::as_str).collect();
    let here = json!({ "StringEquals": { "aws:RequestedRegion": region } });
    let parameters = format!("arn:{partition}:ssm:{region}::parameter/aws/service/*");
    let named = clusters
        .iter()
        .map(|name| format!("arn:{partition}:eks:{region}:{account}:cluster/{name}"));
    // As the guides of both ages of Karpenter name them.
    let guides = clusters
        .iter()
        .flat_map(|name| [name.clone(), format!("Karpenter-{name}-SpotInterruptionQueue")]);
    let queues: Vec<String> = if queues.is_empty() { guides.collect() } else { queues.clone() };
    let queues = queues.iter().map(|name| format!("arn:{partition}:sqs:{region}:{account}:{name}"));
    let entries = clusters
        .iter()
        .map(|name| format!("arn:{partition}:eks:{region}:{account}:access-entry/{name}/*"));
    let known: Vec<String> = named.clone().chain(entries).collect();
    let why = ["iam:ListInstanceProfiles", "iam:ListInstanceProfilesForRole", "iam:GetRole"];
    let receive =
        ["sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueUrl", "sqs:GetQueueAttributes"];
    vec![
        limited("Describe", &describe, json!("*"), &here),
        allow("ReadPublishedImages", &["ssm:GetParameter"], json!(parameters)),
        allow("ReadPrices", &["pricing:GetProducts"], json!("*")),
        allow("FindClusters", &["eks:DescribeCluster"], json!(named.collect::<Vec<_>>())),
        allow("ReadInterruptions", &receive, json!(queues.collect::<Vec<_>>())),
        allow("CheckThatNodesMayJoin", &["eks:DescribeAccessEntry"], json!(known)),
        allow("SayWhatIsWrong", &why, json!("*")),
        allow("SayWhatWasDenied", &["sts:DecodeAuthorizationMessage"], json!("*")),
    ]
}

/// Roles of nodes, and the profiles that carry them.
fn access(args: &IamArgs) -> Vec<Value> {
    let IamArgs { partition, region, account, clusters, node_roles, .. } = args;
    let usual = clusters.iter().map(|name| format!("KarpenterNodeRole-{name}"));
    let roles: Vec<String> =
        if node_roles.is_empty() { usual.collect() } else { node_roles.clone() };
    let roles = roles.iter().map(|name| format!("arn:{partition}:iam::{account}:role/{name}"));
    let to_ec2 = json!({
        "StringEquals": { "iam:PassedToService": ["ec2.amazonaws.com", "ec2.amazonaws.com.cn"] },
    });
    let profiles = json!(format!("arn:{partition}:iam::{account}:instance-profile/*"));
    let tagged = |whose: &[&str]| {
        let equals = whose.iter().flat_map(|whose| {
            [
                (format!("aws:{whose}/{CLUSTER}"), json!(clusters)),
                (format!("aws:{whose}/topology.kubernetes.io/region"), json!(region)),
            ]
        });
        let like = whose
            .iter()
            .map(|whose| (format!("aws:{whose}/karpenter.k8s.aws/ec2nodeclass"), json!("*")));
        json!({
            "StringEquals": equals.collect::<serde_json::Map<_, _>>(),
            "StringLike": like.collect::<serde_json::Map<_, _>>(),
        })
    };
    let change = [
        "iam:AddRoleToInstanceProfile",
        "iam:RemoveRoleFromInstanceProfile",
        "iam:DeleteInstanceProfile",
    ];
    let (request, resource) = (tagged(&["RequestTag"]), tagged(&["ResourceTag"]));
    let both = tagged(&["ResourceTag", "RequestTag"]);
    vec![
        limited("PassNodeRoles", &["iam:PassRole"], json!(roles.collect::<Vec<_>>()), &to_ec2),
        limited("CreateProfiles", &["iam:CreateInstanceProfile"], profiles.clone(), &request),
        limited("TagProfiles", &["iam:TagInstanceProfile"], profiles.clone(), &both),
        limited("ChangeOwnProfiles", &change, profiles.clone(), &resource),
        allow("ReadProfiles", &["iam:GetInstanceProfile"], profiles),
    ]
}

fn allow(sid: &str, actions: &[&str], resources: Value) -> Value {
    json!({ "Sid": sid, "Effect": "Allow", "Action": actions, "Resource": resources })
}

fn limited(sid: &str, actions: &[&str], resources: Value, condition: &Value) -> Value {
    let mut statement = allow(sid, actions, resources);
    statement["Condition"] = condition.clone();
    statement
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::args::IamFormat;

    fn args(clusters: &[&str]) -> IamArgs {
        IamArgs {
            clusters: clusters.iter().map(ToString::to_string).collect(),
            account: "111122223333".to_owned(),
            region: "eu-central-1".to_owned(),
            partition: "aws".to_owned(),
            node_roles: Vec::new(),
            queues: Vec::new(),
            older_instances: false,
            namespace: "kube-system".to_owned(),
            service_account: "longshore".to_owned(),
            format: IamFormat::Json,
        }
    }

    #[test]
    fn nothing_that_changes_anything_is_allowed_without_a_condition_or_a_name() {
        let policy = policy(&args(&["prod", "dev"]));
        let reads = ["Get", "List", "Describe", "Decode", "Receive", "DeleteMessage"];
        for statement in policy["Statement"].as_array().unwrap() {
            let all: Vec<&str> =
                statement["Action"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
            let only_reads =
                all.iter().all(|action| reads.iter().any(|read| action.contains(read)));
            let sources = statement["Sid"] == "LaunchFrom";
            assert!(only_reads || sources || statement["Condition"].is_object(), "{statement}");
        }
    }

    /// Rust sources of the actuator and of this program.
    fn sources() -> String {
        let top = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut folders = vec![top.join("src"), top.join("../actuator/src")];
        let mut text = String::new();
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
                match entry.file_type().unwrap().is_dir() {
                    true => folders.push(entry.path()),
                    false => text += &std::fs::read_to_string(entry.path()).unwrap(),
                }
            }
        }
        text
    }

    #[test]
    fn no_more_of_ec2_is_allowed_than_is_called() {
        let (policy, sources) = (policy(&args(&["prod"])), sources());
        let statements = policy["Statement"].as_array().unwrap().iter();
        let actions = statements.flat_map(|it| it["Action"].as_array().unwrap());
        let calls = actions.filter_map(|action| action.as_str()?.strip_prefix("ec2:"));
        let is_called = |call: &&str| sources.contains(&format!(".{}()", snake_case(call)));
        // EC2 asks for RunInstances where CreateFleet is called.
        let needless: Vec<_> = calls.filter(|it| *it != "RunInstances" && !is_called(it)).collect();
        assert!(needless.is_empty(), "{needless:?}");
    }

    fn snake_case(call: &str) -> String {
        let spell = |letter: char| match letter.is_uppercase() {
            true => format!("_{}", letter.to_lowercase()),
            false => letter.to_string(),
        };
        call.chars().map(spell).collect::<String>().trim_start_matches('_').to_owned()
    }

    #[test]
    fn many_clusters_take_one_statement_each_right() {
        let (one, ten) = (args(&["a"]), args(&["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"]));
        let count = |args: &IamArgs| policy(args)["Statement"].as_array().map(Vec::len);
        assert_eq!(count(&one), count(&ten));
        assert_eq!(run(&one).remarks, Vec::<String>::new());
        assert_eq!(run(&ten).remarks.len(), 1, "one document has a limit");
        let stack = IamArgs { format: IamFormat::Stack, ..ten };
        let statements: usize = parts(statements(&stack), &stack)
            .iter()
            .filter_map(|part| part.document["Statement"].as_array().map(Vec::len))
            .sum();
        assert_eq!((run(&stack).remarks.len(), Some(statements)), (0, count(&one)));
        let older = IamArgs { older_instances: true, ..one };
        assert!(policy(&older).to_string().contains("kubernetes.io/cluster/a"));
    }

    #[test]
    fn a_stack_has_what_is_not_there_already() {
        let kinds = |args: IamArgs| -> Vec<String> {
            let text = run(&IamArgs { format: IamFormat::Stack, ..args }).text;
            assert!(!text.contains("${"), "a name is not filled in: {text}");
            let stack: Value = serde_json::from_str(&text).unwrap();
            let all = stack["Resources"].as_object().unwrap().values();
            all.map(|resource| resource["Type"].as_str().unwrap().to_owned()).collect()
        };
        let count = |kinds: &[String], kind: &str| kinds.iter().filter(|it| *it == kind).count();
        let all = kinds(args(&["prod", "dev"]));
        assert_eq!(count(&all, "AWS::IAM::Role"), 3, "{all:?}");
        assert_eq!(count(&all, "AWS::EKS::PodIdentityAssociation"), 1, "{all:?}");
        assert_eq!(count(&all, "AWS::EKS::AccessEntry"), 2, "{all:?}");
        assert_eq!((count(&all, "AWS::SQS::Queue"), count(&all, "AWS::Events::Rule")), (2, 10));
        let there = IamArgs {
            node_roles: vec!["nodes".to_owned()],
            queues: vec!["notices".to_owned()],
            ..args(&["prod"])
        };
        let few = kinds(there);
        assert_eq!((few.len(), count(&few, "AWS::IAM::Role")), (3, 1), "{few:?}");
    }

    #[test]
    fn each_format_holds_the_same_policy() {
        let of = |format| run(&IamArgs { format, ..args(&["prod"]) }).text;
        let json: Value = serde_json::from_str(&of(IamFormat::Json)).unwrap();
        let template: Value = serde_json::from_str(&of(IamFormat::Cloudformation)).unwrap();
        let resource = &template["Resources"]["LongshoreActuatorPolicy"]["Properties"];
        assert_eq!(resource["PolicyDocument"], json);
        let stack: Value = serde_json::from_str(&of(IamFormat::Stack)).unwrap();
        assert_eq!(stack["Resources"]["LongshoreActuatorPolicy"]["Properties"], *resource);
        let terraform = of(IamFormat::Terraform);
        let inner = terraform.split("<<-POLICY\n").nth(1).unwrap().split("\n  POLICY").next();
        assert_eq!(serde_json::from_str::<Value>(inner.unwrap()).unwrap(), json);
    }
}
