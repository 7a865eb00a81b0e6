//! Catalogues of classes.

use longshore_proto::types::v1::CapacityType;

use super::*;
use crate::cloud::SpotPrice;
use crate::testing::{listing, resolved};

fn view(types: &[&str]) -> MarketView {
    let mut prices = Prices::default();
    prices.set_on_demand(types.iter().zip(100..).map(|(t, p)| ((*t).to_owned(), p)).collect());
    prices.set_spot(vec![SpotPrice {
        instance_type: "m5.large".to_owned(),
        zone: "a".to_owned(),
        micro_usd_per_hour: 40,
    }]);
    MarketView { listing: listing(types), prices }
}

fn built(view: &MarketView, class: &Resolved, closed: &Unavailable) -> Catalogue {
    build(view, class, closed, 0, "us-east-1")
}

#[test]
fn only_zones_with_a_subnet_and_types_with_an_image_and_a_price_are_listed() {
    let mut class = resolved();
    class.images.retain(|image| image.arch == "amd64");
    let catalogue = built(&view(&["m5.large", "m6g.large"]), &class, &Unavailable::default());
    let [m5] = catalogue.types.as_slice() else { panic!("{:?}", catalogue.types) };
    let shown: Vec<_> = m5
        .offerings
        .iter()
        .map(|o| (o.zone.as_str(), o.capacity_type(), o.price_micro_usd_per_hour))
        .collect();
    assert_eq!(
        shown,
        [
            ("a", CapacityType::OnDemand, 100),
            ("a", CapacityType::Spot, 40),
            ("b", CapacityType::OnDemand, 100),
        ]
    );
    assert_eq!(m5.offerings[0].zone_id, "id-a");
    assert_eq!(m5.labels["kubernetes.io/os"], "linux");
}

#[test]
fn a1_has_no_place_on_al2023() {
    let catalogue = built(&view(&["a1.large"]), &resolved(), &Unavailable::default());
    assert!(catalogue.types.is_empty());
}

#[test]
fn the_id_stands_for_content_and_not_for_prices_or_availability() {
    let class = resolved();
    let market = view(&["m5.large"]);
    let mut closed = Unavailable::default();
    let before = built(&market, &class, &closed);
    closed.close(OfferingKey::new("m5.large", "a", CapacityType::Spot), 0);
    let mut dearer = market.clone();
    dearer.prices.set_on_demand([("m5.large".to_owned(), 101)].into());
    let after = built(&dearer, &class, &closed);
    assert_eq!(before.catalogue_id, after.catalogue_id);
    assert!(!after.types[0].offerings[1].available);
    let changes = offering_changes(&before, &after);
    let prices: Vec<_> = changes.iter().map(|c| c.price_micro_usd_per_hour).collect();
    assert_eq!(prices, [101, 101]);

    let mut dense = class;
    dense.class.kubelet =
        Some(longshore_proto::types::v1::Kubelet { max_pods: Some(9), ..Default::default() });
    let other = built(&market, &dense, &closed);
    assert_ne!(other.catalogue_id, before.catalogue_id);
    assert_eq!(other.types[0].capacity.as_ref().unwrap().pods, 9);
}
