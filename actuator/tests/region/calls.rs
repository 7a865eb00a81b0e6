//! Kinds of calls, and what one costs the others.

use std::collections::BTreeMap;

use futures::future::join_all;
use longshore_actuator::cloud::Fleet as _;
use longshore_lab::region::{AwsError, CONTROLLER_KEY, Fault, Region, RegionConfig};
use longshore_runtime::clock::Clock;

use crate::world::{REGION, aws};

/// Calls that fail: the library gives up retries for all who share a bucket after 34 such calls.
const CALLS: u32 = 40;

#[tokio::test]
async fn what_fails_in_one_call_costs_no_other_its_retries() {
    let region = Region::start(RegionConfig::simple(REGION).unwrap()).await.unwrap();
    let aws = aws(&region, CONTROLLER_KEY, &Clock::system()).await;
    let broken = Fault::Error(AwsError::with_status(500, "InternalError", "again, please"));
    region.fail_next_calls("ec2:CreateTags", 4 * CALLS, &broken);
    let tags = BTreeMap::new();
    let tagged = join_all((0..CALLS).map(|_| aws.tag("i-1", &tags))).await;
    assert!(tagged.iter().all(Result::is_err));
    region.fail_next("ec2:DescribeInstances", broken);
    aws.instances().await.expect("it is asked again");
}
