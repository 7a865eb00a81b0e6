//! Policies as people write them, and what they let through.

use longshore_proto::types::v1::{Candidate, CapacityType, Launch};

use super::file::parsed;
use super::*;
use crate::catalogue::Prices;

const TEXT: &str = "
account: '111122223333'
region: us-east-1
clusters:
  prod:
    subnets: [subnet-1, subnet-2]
    families: [c5, m5]
    nodes: 3
    dollarsPerHour: 0.2
    launchesPerMinute: 2
  dev: {}
";

fn policy() -> Policy {
    parsed(TEXT).unwrap()
}

fn launch(instance_types: &[&str]) -> Launch {
    let candidates = instance_types.iter().map(|name| Candidate {
        instance_type: (*name).to_owned(),
        zone: "us-east-1a".to_owned(),
        capacity_type: CapacityType::OnDemand.into(),
        ..Candidate::default()
    });
    Launch { candidates: candidates.collect(), ..Launch::default() }
}

#[test]
fn only_clusters_that_are_named_may_have_anything() {
    let policy = policy();
    assert!(policy.of("prod").is_ok() && policy.of("dev").is_ok());
    let denied = policy.of("other").unwrap_err();
    assert!(denied.to_string().contains("cluster other is not in this actuator's policy"));
    assert!(Policy::open().of("other").is_ok());
    assert!(policy.check_place("111122223333", "us-east-1").is_ok());
    let wrong = policy.check_place("444455556666", "us-east-1").unwrap_err();
    assert!(wrong.contains("account 111122223333"), "{wrong}");
}

#[test]
fn what_is_misspelt_is_said() {
    let wrong = [
        "clusters: {prod: {subnet: [a]}}",
        "clusters: {prod: {dollarsPerHour: -1}}",
        "clusters: {prod: {nodes: many}}",
        "cluster: {}",
        "",
    ];
    for text in wrong {
        assert!(parsed(text).is_err(), "{text}");
    }
}

#[test]
fn launches_stay_within_families_nodes_and_dollars() {
    let (policy, prices) = (policy(), Prices::embedded("us-east-1"));
    let limits = policy.of("prod").unwrap();
    let mut has = Fleet::default();
    let mut asks = |types: &[&str]| limits.launch("prod", &launch(types), &mut has, &prices);
    let foreign = asks(&["c5.large", "p5.48xlarge"]).unwrap_err().to_string();
    assert_eq!(foreign, "instance family p5 is not for cluster prod, whose policy allows c5, m5");
    // The dearer of the two counts: 0.096 dollars an hour.
    assert_eq!(asks(&["c5.large", "m5.large"]), Ok(()));
    assert_eq!(asks(&["c5.large"]), Ok(()));
    let dear = asks(&["c5.large"]).unwrap_err().to_string();
    assert_eq!(
        dear,
        "cluster prod would have $0.2660 of nodes an hour, and its policy allows $0.2000"
    );
    assert_eq!(has.nodes, 2, "what is refused is not there");
}

#[test]
fn no_more_nodes_than_allowed() {
    let prices = Prices::default();
    let limits = Limits { nodes: Some(1), ..Limits::default() };
    let mut has = Fleet::default();
    assert!(limits.launch("c", &launch(&["c5.large"]), &mut has, &prices).is_ok());
    let denied = limits.launch("c", &launch(&["c5.large"]), &mut has, &prices).unwrap_err();
    assert_eq!(denied.to_string(), "cluster c would have 2 nodes, and its policy allows 1");
}

#[test]
fn haste_is_bounded_by_the_minute() {
    let policy = policy();
    let (limits, mut rates) = (policy.of("prod").unwrap(), Rates::default());
    let mut at = |now_ms| rates.launch(limits, "prod", now_ms).is_ok();
    assert_eq!(
        [at(0), at(30_000), at(59_999), at(60_000), at(60_001)],
        [true, true, false, true, false]
    );
    assert!(rates.launch(policy.of("dev").unwrap(), "dev", 0).is_ok(), "each for itself");
    assert!((0..100).all(|now_ms| rates.terminate(limits, "prod", now_ms).is_ok()), "no limit");
}
