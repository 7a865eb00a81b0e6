//! The workloads are what their names say.

use super::*;

fn pods(content: &Content) -> usize {
    match content {
        Content::Rows(rows) => rows.iter().map(|row| row.count as usize).sum(),
        Content::Manifests(list) => list["items"].as_array().map_or(0, Vec::len) - 1,
    }
}

#[test]
fn every_name_has_the_number_of_pods_in_it_and_always_the_same() {
    for name in NAMES {
        let content = named(name).unwrap();
        let number = name.rsplit_once('-').map_or("", |(_, number)| number);
        let expected = match name {
            "classes-100" => 10_000,
            "poison" => 40_000,
            _ => number.parse().unwrap_or(1000),
        };
        assert_eq!(pods(&content), expected, "{name}");
        assert_eq!(format!("{content:?}"), format!("{:?}", named(name).unwrap()), "{name}");
    }
    assert!(named("nothing").is_err());
}

#[test]
fn a_fifth_of_diverse_pods_has_each_constraint() {
    let Content::Manifests(list) = named("diverse-100").unwrap() else { panic!("no manifests") };
    let items = list["items"].as_array().unwrap();
    let with = |path: &str| items.iter().filter(|item| item.pointer(path).is_some()).count();
    assert_eq!(with("/spec/topologySpreadConstraints"), 40);
    assert_eq!(with("/spec/affinity/podAffinity"), 20);
    assert_eq!(with("/spec/affinity/podAntiAffinity"), 20);
}

#[test]
fn distinct_pods_are_distinct() {
    let Content::Rows(rows) = named("distinct-20000").unwrap() else { panic!("no rows") };
    assert!(rows.iter().all(|row| row.count == 1));
    assert!(rows.is_sorted() && rows.windows(2).all(|two| two[0] != two[1]));
}
