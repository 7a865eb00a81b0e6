//! Questions as a client would ask them.

mod same;

use super::*;

const GIB: i64 = 1 << 30;

fn question(count: u32) -> Question {
    let amount = |cpu_millis, memory_bytes, pods| {
        Some(v1::Resources { cpu_millis, memory_bytes, pods, ..Default::default() })
    };
    let offering = v1::Offering {
        zone: "us-east-1a".to_owned(),
        capacity_type: v1::CapacityType::OnDemand.into(),
        price_micro_usd_per_hour: 83_200,
        available: true,
        ..Default::default()
    };
    let kind = v1::InstanceType {
        name: "t3.large".to_owned(),
        capacity: amount(2000, 8 * GIB, 35),
        overhead: amount(70, GIB, 0),
        offerings: vec![offering],
        ..Default::default()
    };
    let pool = v1::NodePool { name: "default".to_owned(), ..Default::default() };
    let shape = v1::PodShape {
        shape_id: "web".to_owned(),
        namespace: "default".to_owned(),
        requests: amount(250, GIB / 2, 1),
        ..Default::default()
    };
    let object = |kind| v1::Object { kind: Some(kind) };
    Question {
        objects: vec![object(Kind::NodePool(pool)), object(Kind::PodShape(shape))],
        pods: vec![v1::PodCount { shape_id: "web".to_owned(), count }],
        catalogue: v1::Catalogue {
            catalogue_id: "c".to_owned(),
            types: vec![kind],
            price_date: "2026-10-27".to_owned(),
        },
        ..Default::default()
    }
}

#[test]
fn counted_pods_come_back_as_counts_on_nodes() {
    let answer = compute(&question(14)).unwrap();
    assert_eq!(answer.nodes.len(), 2);
    assert_eq!(answer.placements.iter().map(|placement| placement.count).sum::<u32>(), 14);
    assert!(answer.placements.iter().all(|placement| placement.pod == "web"));
    assert_eq!(answer.price_micro_usd_per_hour, 2 * 83_200);
    assert_eq!(answer.cost_micro_usd_per_hour, 2 * 84_200, "each node has its fee");
    assert!(answer.bound.unwrap().price_micro_usd_per_hour <= answer.cost_micro_usd_per_hour);
    assert_eq!(answer.violations, Vec::<String>::new());
}

#[test]
fn what_cannot_be_placed_has_a_reason() {
    let mut question = question(3);
    let Some(Kind::PodShape(shape)) = &mut question.objects[1].kind else { panic!("a shape") };
    shape.requests.as_mut().unwrap().cpu_millis = 64_000;
    let answer = compute(&question).unwrap();
    assert_eq!(answer.unplaced.len(), 1);
    assert_eq!(answer.unplaced[0].count, 3);
    assert!(!answer.unplaced[0].reason.as_ref().unwrap().causes.is_empty());
}

#[test]
fn a_count_without_its_shape_is_refused_by_name() {
    let mut question = question(1);
    question.pods[0].shape_id = "other".to_owned();
    let error = compute(&question).unwrap_err().to_string();
    assert!(error.starts_with("PodCount other: shape_id"), "{error}");
}

#[test]
fn the_parts_of_an_answer_merged_are_the_answer() {
    let uids = |range: std::ops::Range<u32>| range.map(|n| format!("{n:036}")).collect::<Vec<_>>();
    let placement = |pod: String| v1::Placement { pod, count: 1, ..Default::default() };
    let group = |pods: Vec<String>| v1::Unplaced {
        count: u32::try_from(pods.len()).unwrap(),
        pods,
        shape_id: "web".to_owned(),
        ..Default::default()
    };
    let answer = planning::ComputePlanResponse {
        nodes: vec![v1::PlannedNode { pool: "p".repeat(2_000), ..Default::default() }; 3_000],
        placements: uids(0..60_000).into_iter().map(placement).collect(),
        unplaced: vec![group(uids(0..70_000)), group(uids(0..3))],
        price_micro_usd_per_hour: 7,
        ..Default::default()
    };
    let parts = parts(answer.clone());
    let mut merged = planning::ComputePlanResponse::default();
    for part in &parts {
        let bytes = prost::Message::encode_to_vec(part);
        assert!(bytes.len() < longshore_proto::limits::MESSAGE_BYTES_MAX / 2);
        prost::Message::merge(&mut merged, bytes.as_slice()).unwrap();
    }
    let named = |answer: &planning::ComputePlanResponse| {
        let counts: u32 = answer.unplaced.iter().map(|group| group.count).sum();
        let groups = answer.unplaced.iter().flat_map(|group| group.pods.clone());
        (counts, groups.collect::<Vec<_>>())
    };
    assert_eq!(named(&merged), named(&answer));
    merged.unplaced.clone_from(&answer.unplaced);
    assert_eq!(merged, answer);
    assert!(parts.len() > 10, "{} parts", parts.len());
}
