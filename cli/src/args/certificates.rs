//! Arguments of `certificates` and `enroll`.
//!
//! Invariant: an identity is checked where it is given.

use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, Subcommand};
use longshore_authority::Who;
use longshore_runtime::identity::{Identity, IdentityError};

use super::Output;
use crate::kubernetes::ClusterAccess;

pub(super) const ENROLL_EXAMPLES: &str = "\
Examples:
  # where the schedulers run, for cluster prod that lives elsewhere
  longshore enroll 111122223333/eu-west-1/prod --namespace longshore > prod.yaml
  kubectl --context prod apply --namespace longshore --filename prod.yaml
  helm upgrade --install longshore deploy/chart --kube-context prod --namespace longshore \\
    --set mode=split,actuator.enabled=false,scheduler.endpoint=https://scheduler.example:7400 \\
    --set settings.clusterName=prod,tls.mode=secret";

const SIGN_EXAMPLES: &str = "\
Examples:
  longshore certificates authority --out-dir authority
  longshore certificates sign longshore://scheduler --authority-dir authority --out-dir scheduler
  longshore certificates sign longshore://client/grafana --authority-dir authority --out-dir grafana";

const RENEW_EXAMPLES: &str = "\
Example:
  longshore certificates renew --namespace longshore --authority longshore-authority \\
    longshore-scheduler=longshore://scheduler";

/// What to do about certificates.
#[derive(Clone, Debug, Subcommand)]
pub enum Certificates {
    /// Make an authority, as files: ca.crt, and ca.key, which signs and must be kept secret.
    #[command(after_help = SIGN_EXAMPLES)]
    Authority(AuthorityArgs),
    /// Sign a certificate with an authority's files: tls.crt, tls.key and ca.crt, as --tls-cert,
    /// --tls-key and --tls-ca take them.
    #[command(after_help = SIGN_EXAMPLES)]
    Sign(SignArgs),
    /// Keep an authority and certificates in Secrets of a namespace: make what is missing, and
    /// renew what is two thirds through its life. The chart runs it every day.
    #[command(after_help = RENEW_EXAMPLES)]
    Renew(RenewArgs),
}

/// Arguments of `certificates authority`.
#[derive(Clone, Debug, Args)]
pub struct AuthorityArgs {
    /// Where its files go; none of them may be there.
    #[arg(long, value_name = "DIR")]
    pub out_dir: PathBuf,
}

/// Arguments of `certificates sign`.
#[derive(Clone, Debug, Args)]
pub struct SignArgs {
    /// Who it is for: longshore://scheduler, longshore://cluster/ACCOUNT/REGION/NAME,
    /// longshore://actuator/ACCOUNT/REGION or longshore://client/NAME.
    #[arg(value_name = "URI")]
    pub identity: Identity,
    /// Names of hosts that it answers at, for clients other than ours; may be repeated.
    #[arg(long = "host", value_name = "HOST")]
    pub hosts: Vec<String>,
    /// Where the files of the authority are.
    #[arg(long, value_name = "DIR")]
    pub authority_dir: PathBuf,
    /// Where the files of the certificate go; those that are there are replaced.
    #[arg(long, value_name = "DIR")]
    pub out_dir: PathBuf,
    /// How many days it lasts.
    #[arg(long, value_name = "DAYS", default_value_t = 365,
        value_parser = clap::value_parser!(u16).range(1..=3_650))]
    pub days: u16,
}

/// Arguments of `certificates renew`.
#[derive(Clone, Debug, Args)]
pub struct RenewArgs {
    /// Certificates, by the names of their Secrets, with the names of hosts that they answer at.
    #[arg(value_name = "SECRET=URI[,HOST…]", required = true)]
    pub certificates: Vec<NamedIdentity>,
    /// Secret of the authority.
    #[arg(long, value_name = "SECRET")]
    pub authority: String,
    /// Namespace of all of them.
    #[arg(short, long, env = "LONGSHORE_NAMESPACE", value_name = "NAME")]
    pub namespace: String,
    /// The cluster.
    #[command(flatten)]
    pub access: ClusterAccess,
    /// How to print what was done.
    #[arg(short, long, value_enum, default_value_t)]
    pub output: Output,
}

/// Arguments of `enroll`.
#[derive(Clone, Debug, Args)]
pub struct EnrollArgs {
    /// The cluster that gets an identity; or the URI of whoever else does, such as
    /// longshore://actuator/ACCOUNT/REGION.
    #[arg(value_name = "ACCOUNT/REGION/NAME", value_parser = enrolled)]
    pub identity: Identity,
    /// Names of hosts that it answers at, for clients other than ours; may be repeated.
    #[arg(long = "host", value_name = "HOST")]
    pub hosts: Vec<String>,
    /// Secret of the authority.
    #[arg(long, value_name = "SECRET", default_value = "longshore-authority")]
    pub authority: String,
    /// Namespace of the authority.
    #[arg(short, long, env = "LONGSHORE_NAMESPACE", value_name = "NAME")]
    pub namespace: String,
    /// Name of the Secret that is printed.
    #[arg(long, value_name = "SECRET", default_value = "longshore-watcher-tls")]
    pub secret: String,
    /// How many days the certificate lasts: enroll again before they are over.
    #[arg(long, value_name = "DAYS", default_value_t = 365,
        value_parser = clap::value_parser!(u16).range(1..=3_650))]
    pub days: u16,
    /// The cluster of the authority.
    #[command(flatten)]
    pub access: ClusterAccess,
}

/// A certificate, by the name of its Secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedIdentity {
    /// Secret.
    pub secret: String,
    /// Whom it names.
    pub who: Who,
}

impl FromStr for NamedIdentity {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parts = text.split_once('=').filter(|(secret, _)| !secret.is_empty());
        let (secret, names) = parts.ok_or("write SECRET=URI, or SECRET=URI,HOST")?;
        let mut names = names.split(',');
        let identity = names.next().unwrap_or_default().parse();
        let identity = identity.map_err(|error: IdentityError| error.to_string())?;
        let who = Who { identity, hosts: names.map(str::to_owned).collect() };
        Ok(Self { secret: secret.to_owned(), who })
    }
}

fn enrolled(text: &str) -> Result<Identity, IdentityError> {
    if text.contains("://") { text.parse() } else { format!("longshore://cluster/{text}").parse() }
}
