//! NodeOverlays.

use longshore_proto::types::v1::node_overlay::PriceChange;

use super::read;
use crate::api::NodeOverlay;
use crate::project::overlay::overlay;

fn object(spec: &str) -> NodeOverlay {
    let requirements = "[{ key: karpenter.k8s.aws/instance-family, operator: In, values: [m] }]";
    read(&format!(
        "{{ metadata: {{ name: o }}, spec: {{ requirements: {requirements}, {spec} }} }}"
    ))
}

#[test]
fn prices_are_read_exactly() {
    let table = [
        ("price: '0.0523'", PriceChange::PriceMicroUsdPerHour(52_300)),
        ("price: '0'", PriceChange::PriceMicroUsdPerHour(0)),
        ("priceAdjustment: '+0.5'", PriceChange::AddedMicroUsdPerHour(500_000)),
        ("priceAdjustment: '-.25'", PriceChange::AddedMicroUsdPerHour(-250_000)),
        ("priceAdjustment: '+150%'", PriceChange::AddedPpm(1_500_000)),
        ("priceAdjustment: '-12.5%'", PriceChange::AddedPpm(-125_000)),
    ];
    for (spec, expected) in table {
        assert_eq!(overlay(&object(spec)).unwrap().price_change, Some(expected), "{spec}");
    }
    assert_eq!(overlay(&object("weight: 3")).unwrap().price_change, None);
}

#[test]
fn capacity_names_extended_resources() {
    let read = overlay(&object("weight: 7, capacity: { example.com/fuse: '4' }")).unwrap();
    assert_eq!((read.name.as_str(), read.weight), ("o", 7));
    assert_eq!(read.capacity, [("example.com/fuse".to_owned(), 4)].into());
    assert_eq!(read.requirements[0].values, ["m"]);
}

#[test]
fn what_cannot_be_meant_is_refused_by_field() {
    let table = [
        ("price: '1', priceAdjustment: '+1'", "spec.price: cannot be combined with"),
        ("price: '-1'", "spec.price: \"-1\" is not a quantity"),
        ("priceAdjustment: cheap", "spec.priceAdjustment: \"cheap\" is not a quantity"),
        ("capacity: { cpu: '1' }", "spec.capacity[cpu]: \"cpu\" is unknown"),
        ("capacity: { example.com/x: '-1' }", "spec.capacity[example.com/x]: \"-1\" is negative"),
    ];
    for (spec, expected) in table {
        let fault = overlay(&object(spec)).unwrap_err().to_string();
        assert!(fault.starts_with(&format!("NodeOverlay/o: {expected}")), "{fault}");
    }
}
