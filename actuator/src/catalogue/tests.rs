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

fn reservation(id: &str, zone: &str, available: i64) -> CapacityReservation {
    CapacityReservation {
        id: id.to_owned(),
        instance_type: "m5.large".to_owned(),
        zone: zone.to_owned(),
        owner: String::new(),
        match_criteria: "targeted".to_owned(),
        available,
        end_ms: None,
    }
}

#[test]
fn what_the_class_has_reserved_is_sold_for_next_to_nothing() {
    let mut class = resolved();
    class.reservations =
        vec![reservation("cr-1", "a", 2), reservation("cr-2", "a", 0), reservation("cr-3", "z", 5)];
    let market = view(&["m5.large", "m5.xlarge"]);
    let before = built(&market, &class, &Unavailable::default());
    let of = |catalogue: &Catalogue, at: usize| -> Vec<(String, i64)> {
        let offerings = catalogue.types[at].offerings.iter();
        let reserved = offerings.filter(|o| o.capacity_type() == CapacityType::Reserved);
        reserved
            .map(|o| {
                assert_eq!((o.price_micro_usd_per_hour, o.available), (1, true));
                (format!("{} {}", o.reservation_id, o.zone), o.reservation_count)
            })
            .collect()
    };
    assert_eq!(of(&before, 0), [("cr-1 a".to_owned(), 2), ("cr-2 a".to_owned(), 0)]);
    assert_eq!(of(&before, 1), [], "another type");
    let mut class = std::sync::Arc::new(class);
    Resolved::draw(&mut class, "cr-1");
    let after = built(&market, &class, &Unavailable::default());
    assert_eq!(after.catalogue_id, before.catalogue_id, "what is left is no content");
    let changes = offering_changes(&before, &after);
    let told: Vec<_> =
        changes.iter().map(|u| (u.reservation_id.as_str(), u.reservation_count)).collect();
    assert_eq!(told, [("cr-1", 1)]);
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
