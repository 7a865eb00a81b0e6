//! The clients of AWS's services in one region.
//!
//! Invariant: all share one configuration: where from, how long, how often. EC2 counts the requests
//! of each kind by themselves, and so do we: what is throttled of one kind costs the retries of no
//! other.

use std::time::Duration;

use aws_config::{BehaviorVersion, ConfigLoader, Region, SdkConfig};
use aws_sdk_ec2::config::retry::RetryPartition;
use aws_smithy_http_client::tls::Provider;
use aws_smithy_http_client::tls::rustls_provider::CryptoMode;
use aws_smithy_types::retry::RetryConfig;
use aws_smithy_types::timeout::TimeoutConfig;
use longshore_runtime::clock::Clock;

/// Longest time to connect.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// Longest time for one attempt; a long poll takes twenty seconds of it.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(40);
/// Longest time for one call with all its attempts.
const CALL_TIMEOUT: Duration = Duration::from_secs(100);
/// Attempts of the SDK at one call, with back-off in between; a client token makes them harmless.
const ATTEMPTS_MAX: u32 = 4;

/// AWS in one region.
#[derive(Clone, Debug)]
pub struct Aws {
    pub(super) region: String,
    pub(super) clock: Clock,
    pub(super) ec2: Ec2,
    pub(super) eks: aws_sdk_eks::Client,
    pub(super) iam: aws_sdk_iam::Client,
    pub(super) pricing: aws_sdk_pricing::Client,
    pub(super) sqs: aws_sdk_sqs::Client,
    pub(super) ssm: aws_sdk_ssm::Client,
    pub(super) sts: aws_sdk_sts::Client,
}

/// A client of EC2 for each of the buckets in which EC2 counts requests. Each has retries of its
/// own. The library's adaptive mode is not for bursts: each of many calls that are refused together
/// cuts the rate by a third.
#[derive(Clone, Debug)]
pub(super) struct Ec2 {
    /// CreateFleet.
    pub(super) fleets: aws_sdk_ec2::Client,
    /// CreateTags.
    pub(super) tags: aws_sdk_ec2::Client,
    /// TerminateInstances.
    pub(super) terminations: aws_sdk_ec2::Client,
    /// What makes, lists and deletes launch templates.
    pub(super) templates: aws_sdk_ec2::Client,
    /// DescribeInstances.
    pub(super) instances: aws_sdk_ec2::Client,
    /// What only reads, besides: types, prices, images, networks.
    pub(super) facts: aws_sdk_ec2::Client,
}

impl Ec2 {
    fn new(config: &SdkConfig) -> Self {
        let client = |requests: &'static str| {
            let bucket = RetryPartition::custom(requests).build();
            let own = aws_sdk_ec2::config::Builder::from(config).retry_partition(bucket);
            aws_sdk_ec2::Client::from_conf(own.build())
        };
        Self {
            fleets: client("fleets"),
            tags: client("tags"),
            terminations: client("terminations"),
            templates: client("templates"),
            instances: client("instances"),
            facts: client("facts"),
        }
    }
}

impl Aws {
    /// Clients for a region, from the standard `AWS_*` variables, profiles and instance metadata.
    pub async fn connect(region: &str, clock: &Clock) -> Self {
        Self::connect_with(region, clock, |loader| loader).await
    }

    /// Like [`Aws::connect`], with settings of the caller's own: an endpoint, credentials.
    pub async fn connect_with(
        region: &str,
        clock: &Clock,
        customize: impl FnOnce(ConfigLoader) -> ConfigLoader,
    ) -> Self {
        let http = aws_smithy_http_client::Builder::new()
            .tls_provider(Provider::Rustls(CryptoMode::Ring))
            .build_https();
        let timeouts = TimeoutConfig::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            .operation_attempt_timeout(ATTEMPT_TIMEOUT)
            .operation_timeout(CALL_TIMEOUT)
            .build();
        let loader = aws_config::defaults(BehaviorVersion::latest())
            .region(Region::new(region.to_owned()))
            .http_client(http)
            .timeout_config(timeouts)
            .retry_config(RetryConfig::standard().with_max_attempts(ATTEMPTS_MAX));
        Self::new(region, clock, &customize(loader).load().await)
    }

    fn new(region: &str, clock: &Clock, config: &SdkConfig) -> Self {
        let pricing = aws_sdk_pricing::config::Builder::from(config)
            .region(Region::new(pricing_region(region)))
            .build();
        Self {
            region: region.to_owned(),
            clock: clock.clone(),
            ec2: Ec2::new(config),
            eks: aws_sdk_eks::Client::new(config),
            iam: aws_sdk_iam::Client::new(config),
            pricing: aws_sdk_pricing::Client::from_conf(pricing),
            sqs: aws_sdk_sqs::Client::new(config),
            ssm: aws_sdk_ssm::Client::new(config),
            sts: aws_sdk_sts::Client::new(config),
        }
    }
}

/// Region whose Pricing endpoint speaks for another region; there are four.
fn pricing_region(region: &str) -> &'static str {
    match region.split('-').next().unwrap_or_default() {
        "ap" => "ap-south-1",
        "cn" => "cn-northwest-1",
        "eu" => "eu-central-1",
        _ => "us-east-1",
    }
}
