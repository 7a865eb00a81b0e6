//! Calls made from plans.

use longshore_proto::types::v1::CapacityType::{OnDemand, Reserved, Spot};

use super::*;
use crate::cloud::ReservationUse;
use crate::ec2::blueprint;
use crate::ledger::Move;
use crate::testing::{candidate, launch, listing, resolved};

const NOW_MS: i64 = 1_000;

struct Fixture {
    class: Resolved,
    types: BTreeMap<String, InstanceType>,
    closed: Unavailable,
    full_subnets: BTreeSet<String>,
}

impl Fixture {
    fn new() -> Self {
        Self {
            class: resolved(),
            types: listing(&["m5.large", "m6g.large"]).types,
            closed: Unavailable::default(),
            full_subnets: BTreeSet::new(),
        }
    }

    fn next(&self, record: &LaunchRecord) -> Result<Call, Failure> {
        let basis = Basis {
            class: &self.class,
            types: &self.types,
            closed: &self.closed,
            full_subnets: &self.full_subnets,
            now_ms: NOW_MS,
        };
        next_call(record, &basis)
    }
}

fn record(candidates: Vec<Candidate>) -> LaunchRecord {
    LaunchRecord::new(launch(candidates), "c-1", i64::MAX, 0)
}

fn source(image_id: &str) -> Source {
    Source { image_id: image_id.to_owned(), ..Source::default() }
}

fn shown(call: &Call) -> Vec<String> {
    let lines = call.offers.iter().flat_map(|(source, offers)| {
        let image = format!("{}{}", source.image_id, source.reservation_id);
        offers.iter().map(move |o| {
            format!("{image} {} {} {} {}", o.rank, o.instance_type, o.zone, o.subnet_id)
        })
    });
    lines.collect()
}

#[test]
fn candidates_become_overrides_by_image_and_nothing_else_does() {
    let plan = record(vec![
        candidate("m6g.large", "a", Spot),
        candidate("m5.large", "b", Spot),
        candidate("m5.large", "b", OnDemand),
        candidate("m5.large", "nowhere", Spot),
        candidate("unknown.large", "a", Spot),
    ]);
    let call = Fixture::new().next(&plan).unwrap();
    assert_eq!(call.capacity_type, Spot);
    assert_eq!(shown(&call), ["ami-amd64 1 m5.large b s-b", "ami-arm64 0 m6g.large a s-a2"]);
}

fn in_reservation(zone: &str, reservation_id: &str) -> Candidate {
    let reservation_id = reservation_id.to_owned();
    Candidate { reservation_id, ..candidate("m5.large", zone, Reserved) }
}

#[test]
fn what_is_reserved_is_asked_for_by_reservation_and_of_two_in_a_place_the_first() {
    let plan = record(vec![
        in_reservation("a", "+cr-1"),
        in_reservation("b", "+cr-2"),
        in_reservation("a", "+cr-3"),
        candidate("m5.large", "a", OnDemand),
    ]);
    let call = Fixture::new().next(&plan).unwrap();
    assert_eq!(call.capacity_type, Reserved);
    assert_eq!(
        shown(&call),
        ["ami-amd64+cr-1 0 m5.large a s-a2", "ami-amd64+cr-2 1 m5.large b s-b"]
    );
}

#[test]
fn only_a_class_that_selects_reservations_keeps_others_out_of_open_ones() {
    let mut class = resolved();
    let from = |class: &Resolved, reservation_id: &str| {
        let source = Source { reservation_id: reservation_id.to_owned(), ..source("ami-1") };
        blueprint::template(class, &launch(vec![]), &source).unwrap()
    };
    let before = from(&class, "");
    assert_eq!(before.reservations, ReservationUse::Open);
    class.class.capacity_reservation_terms.push(Default::default());
    let (none, one) = (from(&class, ""), from(&class, "cr-1"));
    assert_eq!(none.reservations, ReservationUse::Never);
    assert_eq!(one.reservations, ReservationUse::Only("cr-1".to_owned()));
    assert_ne!(before.name, none.name);
    assert_ne!(none.name, one.name);
}

#[test]
fn a_refused_capacity_type_is_followed_by_the_next() {
    let mut plan =
        record(vec![candidate("m5.large", "a", Spot), candidate("m5.large", "a", OnDemand)]);
    let fixture = Fixture::new();
    for expected in [Spot, OnDemand] {
        assert_eq!(fixture.next(&plan).unwrap().capacity_type, expected);
        plan = plan.after(&Move::Ask(expected, Box::default()), 1).unwrap();
        plan = plan.after(&Move::Refused { exhausted: true }, 2).unwrap();
    }
    let failure = fixture.next(&plan).unwrap_err();
    assert_eq!((failure.reason.as_str(), failure.retryable), ("INSUFFICIENT_CAPACITY", true));
    assert!(failure.message.contains("none of the 2 offerings"), "{}", failure.message);
}

#[test]
fn closed_offerings_are_left_out_unless_an_answer_is_owed() {
    let plan = record(vec![candidate("m5.large", "a", Spot), candidate("m5.large", "b", Spot)]);
    let mut fixture = Fixture::new();
    fixture.closed.close(OfferingKey::new("m5.large", "a", Spot), NOW_MS);
    assert_eq!(shown(&fixture.next(&plan).unwrap()), ["ami-amd64 1 m5.large b s-b"]);
    let asked = plan.after(&Move::Ask(Spot, Box::default()), 1).unwrap();
    assert_eq!(fixture.next(&asked).unwrap().offers[&source("ami-amd64")].len(), 2);
}

#[test]
fn a_full_subnet_gives_way_to_another_in_its_zone() {
    let plan = record(vec![candidate("m5.large", "a", Spot)]);
    let mut fixture = Fixture::new();
    fixture.full_subnets.insert("s-a2".to_owned());
    assert_eq!(shown(&fixture.next(&plan).unwrap()), ["ami-amd64 0 m5.large a s-a1"]);
}

#[test]
fn tags_say_whose_it_is_and_the_class_may_name_it() {
    let mut class = resolved();
    let plan = record(vec![]);
    assert_eq!(instance_tags(&class, &plan)["Name"], "claim-1");
    let tags = [("Name", "mine"), ("karpenter.sh/nodepool", "stolen")];
    class.class.tags = tags.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
    let tags = instance_tags(&class, &plan);
    let expected = [
        ("Name", "mine"),
        ("eks:eks-cluster-name", "dev"),
        ("karpenter.k8s.aws/ec2nodeclass", "default"),
        ("karpenter.sh/nodeclaim", "claim-1"),
        ("karpenter.sh/nodepool", "default"),
        ("kubernetes.io/cluster/dev", "owned"),
        ("longshore.dev/cluster-id", "c-1"),
        ("longshore.dev/launch-id", "l-1"),
    ];
    let shown: Vec<_> = tags.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
    assert_eq!(shown, expected);
}

#[test]
fn a_templates_name_follows_its_content() {
    let class = resolved();
    let name = |class: &Resolved, launch: &longshore_proto::types::v1::Launch, image: &str| {
        blueprint::template(class, launch, &source(image)).unwrap().name
    };
    let plain = launch(vec![]);
    let first = name(&class, &plain, "ami-1");
    let other_launch = longshore_proto::types::v1::Launch {
        launch_id: "l-2".to_owned(),
        claim: "claim-2".to_owned(),
        ..plain.clone()
    };
    assert_eq!(first, name(&class, &other_launch, "ami-1"));
    assert_ne!(first, name(&class, &plain, "ami-2"));
    let mut labelled = plain.clone();
    labelled.labels.insert("team".to_owned(), "a".to_owned());
    assert_ne!(first, name(&class, &labelled, "ami-1"));
    let mut profiled = class.clone();
    profiled.instance_profile = "other".to_owned();
    assert_ne!(first, name(&profiled, &plain, "ami-1"));
}
