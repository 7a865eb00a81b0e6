//! Arguments of the command.
//!
//! Invariant: nothing else reads arguments or the environment.

use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};
use longshore_runtime::process::ProcessArgs;
use longshore_runtime::server::AccessArgs;
use longshore_runtime::tls::TlsArgs;
use longshore_scheduler::settings::SettingsArgs;
use longshore_watcher::args::ClusterArgs;

use crate::kubernetes::ClusterAccess;

/// Longshore: nodes for Kubernetes, at the lowest price that works.
#[derive(Clone, Debug, Parser)]
#[command(name = "longshore", version, propagate_version = true, after_help = EXIT_CODES)]
pub struct Args {
    /// Plain text even on a terminal.
    #[arg(long, global = true, display_order = 900, env = "NO_COLOR", hide_env_values = true,
        value_parser = not_empty)]
    pub no_color: bool,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

const EXIT_CODES: &str = "\
Exit codes: 0 all is well; 1 a network or server failed; 2 the input cannot be used; 3 the answer is
complete and something in it needs attention (a pod that cannot be placed, a finding of doctor).";

/// What to do.
#[derive(Clone, Debug, Subcommand)]
pub enum Command {
    /// Say what would be launched for the pods of some manifests, and at what price.
    ///
    /// Needs no cluster and no cloud account: instance types and prices are compiled in, with
    /// their date. The plan is the one that the scheduler would make.
    #[command(after_help = PLAN_EXAMPLES, override_usage = PLAN_USAGE)]
    Plan(PlanArgs),
    /// Look over a cluster and its AWS account for what keeps nodes from coming up, and print what
    /// mends it.
    #[command(after_help = DOCTOR_HELP)]
    Doctor(Box<DoctorArgs>),
    /// Ask a running scheduler why something is as it is.
    #[command(subcommand)]
    Explain(Explain),
    /// Run watcher, scheduler and actuator in one process, for one cluster in one region.
    ///
    /// No etcd is needed: the cluster's Lease elects one of several copies. The others stand by,
    /// without a call to AWS, and one takes over some 15 s after the leader has died. Cluster and
    /// cloud credentials meet in this process; run the three services apart to keep them apart.
    #[command(after_help = UP_EXAMPLES)]
    Up(Box<UpArgs>),
    /// Show what was launched and ended for clusters of a region, what failed and what was refused:
    /// who asked, by which plan, and what it costs.
    #[command(after_help = audit::EXAMPLES)]
    Audit(AuditArgs),
    /// Give a further cluster its identity, and print what to apply there.
    ///
    /// The authority is read where the schedulers run; the certificate says that its holder is the
    /// watcher of that cluster, and no other. It is printed as a Secret, with its key.
    #[command(after_help = certificates::ENROLL_EXAMPLES)]
    Enroll(EnrollArgs),
    /// Print the rights in AWS that an actuator needs for its clusters, and no more.
    #[command(after_help = iam::EXAMPLES)]
    Iam(IamArgs),
    /// Print what completes this command in a shell.
    #[command(after_help = "Example:\n  source <(longshore completions bash)")]
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
    /// Make and renew the certificates by which Longshore's processes know each other.
    #[command(subcommand)]
    Certificates(Certificates),
}

const PLAN_USAGE: &str = "\
longshore plan [OPTIONS] --filename <FILE|DIR>... [--catalogue <FILE>]
       longshore plan [OPTIONS] --catalogue <FILE> --workload <FILE>";

const DOCTOR_HELP: &str = "\
Examples:
  longshore doctor
  AWS_PROFILE=prod longshore doctor --context prod --cluster-name prod
  longshore doctor --no-aws --output json

  # before Karpenter is removed: pools, claims and nodes, and what becomes of each
  longshore doctor --takeover --cluster-name prod

Taking a cluster over: run --takeover, mend what it names, end Karpenter (helm uninstall karpenter, or
scale its Deployment to 0 to be able to go back), install Longshore. Nodes, claims and instances become
Longshore's by their own labels and tags, and no pod is touched. Longshore may be installed before: it
does nothing while Karpenter's Lease is alive. A row says no where an object stays as it is; Longshore
never ends such a node.

The Kubernetes API and AWS are asked, as whoever runs this, and only to read. Region, cluster name
and queue are taken from Longshore's own pods when they run there. Without credentials for AWS,
subnets, security groups, roles, access entries and the queue are not looked at, and the report
says so. The EventBridge rules that fill the queue are not looked at in any case.";

const UP_EXAMPLES: &str = "\
Examples:
  longshore up --cluster-name prod
  LONGSHORE_CLUSTER_NAME=prod LONGSHORE_INTERRUPTION_QUEUE=prod-interruptions longshore up";

/// Arguments of `doctor`.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct DoctorArgs {
    /// The cluster.
    #[command(flatten)]
    pub access: ClusterAccess,
    /// Name of the cluster in EKS; else as Longshore's own pods have it.
    #[arg(long, env = "LONGSHORE_CLUSTER_NAME", value_name = "NAME")]
    pub cluster_name: Option<String>,
    /// Region; else as Longshore's own pods have it, else that of the nodes, else $AWS_REGION.
    #[arg(long, env = "LONGSHORE_REGION", value_name = "REGION")]
    pub region: Option<String>,
    /// Region as the surroundings name it.
    #[arg(long, env = "AWS_REGION", hide = true)]
    pub aws_region: Option<String>,
    /// Interruption queue; else as Longshore's own pods have it.
    #[arg(long, env = "LONGSHORE_INTERRUPTION_QUEUE", value_name = "NAME")]
    pub interruption_queue: Option<String>,
    /// Ask only the Kubernetes API.
    #[arg(long)]
    pub no_aws: bool,
    /// Instead of the checks: what of Karpenter's would be taken over, what not, and why.
    #[arg(long)]
    pub takeover: bool,
    /// Instead of the checks: who may call which method of Longshore's services. Asks nobody.
    #[arg(long, conflicts_with = "takeover")]
    pub rights: bool,
    /// How to print the findings.
    #[arg(short, long, value_enum, default_value_t)]
    pub output: Output,
}

/// What to explain.
#[derive(Clone, Debug, Subcommand)]
pub enum Explain {
    /// Where a pod goes, or why it cannot be placed.
    #[command(after_help = "Example:\n  longshore explain pod shop/checkout-7d9f \
                            --cluster prod \\\n    --scheduler https://longshore-scheduler:7400")]
    Pod(ExplainPodArgs),
    /// Why a node stays, or what it waits for while it goes.
    #[command(after_help = "Example:\n  longshore explain node ip-10-0-1-2.ec2.internal \
                            --cluster prod \\\n    --scheduler https://longshore-scheduler:7400")]
    Node(ExplainNodeArgs),
}

/// Arguments of `explain pod`.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct ExplainPodArgs {
    /// The pod.
    #[arg(value_name = "NAMESPACE/NAME")]
    pub pod: String,
    /// Who is asked, and how.
    #[command(flatten)]
    pub asked: AskArgs,
}

/// Arguments of `explain node`.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct ExplainNodeArgs {
    /// The node, or its NodeClaim.
    #[arg(value_name = "NAME")]
    pub node: String,
    /// Who is asked, and how.
    #[command(flatten)]
    pub asked: AskArgs,
}

/// Who is asked for an explanation, and how.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct AskArgs {
    /// Address of the scheduler.
    #[arg(long, env = "LONGSHORE_SCHEDULER_ENDPOINT", value_name = "URL")]
    pub scheduler: String,
    /// Name of the cluster, as its watcher gives it.
    #[arg(long, env = "LONGSHORE_CLUSTER_NAME", value_name = "NAME")]
    pub cluster: String,
    /// How to print the answer.
    #[arg(short, long, value_enum, default_value_t)]
    pub output: Output,
    /// Who asks.
    #[command(flatten)]
    pub tls: TlsArgs,
}

/// Arguments of `up`.
#[derive(Clone, Debug, clap::Args)]
pub struct UpArgs {
    /// Name of the cluster, as tags and user data spell it.
    #[arg(long, env = "LONGSHORE_CLUSTER_NAME", value_name = "NAME")]
    pub cluster_name: String,
    /// The cluster, and the place in it.
    #[command(flatten)]
    pub cluster: ClusterArgs,
    /// Region of the cluster; else $AWS_REGION, else that of its nodes.
    #[arg(long, env = "LONGSHORE_REGION", value_name = "REGION")]
    pub region: Option<String>,
    /// Region as the surroundings of a pod name it.
    #[arg(long, env = "AWS_REGION", hide = true)]
    pub aws_region: Option<String>,
    /// Where metrics and health are served; nowhere when absent.
    #[arg(long, env = "LONGSHORE_METRICS_LISTEN", value_name = "ADDRESS")]
    pub metrics_listen: Option<SocketAddr>,
    /// Address at which others have plans computed and explained, and look on at the region and at
    /// what was done in it; none when absent.
    #[arg(long, env = "LONGSHORE_LISTEN", value_name = "ADDRESS")]
    pub listen: Option<SocketAddr>,
    /// Service without a selector, in the namespace of the Lease, behind which the copy that works
    /// puts itself: the others do not answer.
    #[arg(long, env = "LONGSHORE_SERVICE", value_name = "NAME", requires_all = ["listen", "address"])]
    pub service: Option<String>,
    /// Address at which the cluster reaches this copy, for the Service.
    #[arg(long, env = "LONGSHORE_ADDRESS", value_name = "IP")]
    pub address: Option<IpAddr>,
    /// Whom it answers there.
    #[command(flatten)]
    pub access: AccessArgs,
    /// Time between two listings of instances while any is starting or ending; six times that
    /// otherwise.
    #[arg(long, env = "LONGSHORE_INVENTORY_INTERVAL", default_value = "5s", value_name = "TIME")]
    pub inventory_interval: humantime::Duration,
    /// How plans are made.
    #[command(flatten)]
    pub settings: SettingsArgs,
    /// What every process is told.
    #[command(flatten)]
    pub process: ProcessArgs,
}

const PLAN_EXAMPLES: &str = "\
Examples:
  # what do these pods cost, and on which nodes?
  longshore plan -f manifests/

  # and on top of what already runs
  kubectl get nodes,pods,daemonsets,nodepools,ec2nodeclasses,nodeclaims -A -o json > cluster.json
  longshore plan -f cluster.json -f new-deployment.yaml

  # why is one of them not placed, or where does it go?
  longshore plan -f manifests/ --explain shop/checkout

  # bare numbers: types of any provider, pods as [[cpu thousandths, MiB, count], …]
  longshore plan --catalogue types.json --workload pods.json --output json

  # manifests on types of any provider
  longshore plan -f manifests/ --catalogue types.json

Prices are Linux prices; those marked * are estimates. Subnets are unknown here: every zone of the
region counts, unless a pool's requirements name zones.";

/// Arguments of `plan`.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct PlanArgs {
    /// Manifests (YAML, JSON, `kubectl get -o json|yaml`): a file, a directory, or - for standard
    /// input. May be repeated.
    #[arg(
        short,
        long = "filename",
        value_name = "FILE|DIR",
        required_unless_present = "workload",
        conflicts_with = "workload"
    )]
    pub files: Vec<PathBuf>,
    /// How to print the plan.
    #[arg(short, long, value_enum, default_value_t)]
    pub output: Output,
    /// Region; else that of the pools' zone requirements, else that of the nodes, else us-east-1.
    #[arg(long, value_name = "REGION")]
    pub region: Option<String>,
    /// Also say where this pod or workload goes, or why it cannot: NAME, NAMESPACE/NAME or
    /// KIND/NAME.
    #[arg(long, value_name = "POD")]
    pub explain: Option<String>,
    /// Also say what each step of the planner came to.
    #[arg(long)]
    pub steps: bool,
    /// Instance types as bare numbers, instead of those of EC2: what every pool buys, whatever its
    /// node class, on demand in test-zone-1, test-zone-2 and test-zone-3 at one price.
    #[arg(long, value_name = "FILE")]
    pub catalogue: Option<PathBuf>,
    /// Pods as bare numbers, instead of manifests: JSON, or a trace in CSV with the columns
    /// cpu_milli and memory_mib and a line for each pod, whose GPUs are ignored.
    #[arg(long, value_name = "FILE", requires = "catalogue")]
    pub workload: Option<PathBuf>,
    /// How plans are made.
    #[command(flatten)]
    pub settings: SettingsArgs,
}

/// How to print an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// For people.
    #[default]
    Table,
    /// For programs.
    Json,
}

/// As `NO_COLOR` is defined: set to anything but the empty text.
fn not_empty(text: &str) -> Result<bool, Infallible> {
    Ok(!text.is_empty())
}

mod audit;
mod certificates;
#[cfg(test)]
mod documented;
mod iam;

pub use self::audit::AuditArgs;
pub use self::certificates::{
    AuthorityArgs, Certificates, EnrollArgs, NamedIdentity, RenewArgs, SignArgs,
};
pub use self::iam::{IamArgs, IamFormat};

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_arguments_are_consistent() {
        Args::command().debug_assert();
    }

    #[test]
    fn manifests_and_numbers_exclude_each_other() {
        let parse = |line: &str| Args::try_parse_from(line.split(' '));
        assert!(parse("longshore plan -f a -f b --region us-east-1").is_ok());
        assert!(parse("longshore plan --catalogue a --workload b").is_ok());
        assert!(parse("longshore plan -f a --catalogue b").is_ok());
        assert!(parse("longshore plan --catalogue a").is_err());
        assert!(parse("longshore plan --workload a").is_err());
        assert!(parse("longshore plan -f a --catalogue a --workload b").is_err());
        assert!(parse("longshore plan").is_err());
        assert!(parse("longshore plan -f a --no-color").unwrap().no_color);
    }
}
