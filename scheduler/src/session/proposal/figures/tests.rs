//! Figures of a small cluster.

use longshore_core::explain::{Hold, HoldRule};
use longshore_core::vocabulary::catalogue::capacity_group::CapacityGroup;
use longshore_core::vocabulary::catalogue::{CapacityType, Catalogue, InstanceType, Offering};
use longshore_core::vocabulary::labels;
use longshore_core::vocabulary::pool::{BudgetNodes, DisruptionRules, NodeBudget};
use longshore_core::vocabulary::resources::Resources;
use longshore_core::world::pod::Pod;
use longshore_core::world::shape::PodShape;
use longshore_core::world::view::{Change, ClusterView};

use super::*;

fn pool() -> NodePool {
    let budget = NodeBudget { nodes: BudgetNodes::Count(1), reasons: [].into(), active: true };
    let drifted = [DisruptionReason::Drifted].into();
    let none = NodeBudget { nodes: BudgetNodes::Count(0), reasons: drifted, active: true };
    NodePool {
        name: "web".into(),
        limits: [("cpu".to_owned(), 100_000), ("nodes".to_owned(), 9)].into(),
        disruption: DisruptionRules { budgets: vec![budget, none], ..DisruptionRules::default() },
        catalogue: "c".into(),
        ..NodePool::default()
    }
}

fn claim(name: &str, leaving: bool) -> NodeClaim {
    NodeClaim {
        name: name.into(),
        pool: "web".into(),
        provider_id: format!("aws:///z1/i-{name}"),
        instance_type: Some("m7g.large".into()),
        zone: Some("z1".into()),
        capacity_type: Some(CapacityType::Spot),
        initialized_ms: Some(1),
        deleting: leaving,
        ..NodeClaim::default()
    }
}

fn node(name: &str) -> Node {
    Node {
        name: name.into(),
        provider_id: format!("aws:///z1/i-{name}"),
        labels: [(labels::NODE_POOL.to_owned(), "web".to_owned())].into(),
        capacity: Resources { cpu_millis: 2_000, pods: 29, ..Resources::default() },
        ready: true,
        ..Node::default()
    }
}

fn catalogue() -> Catalogue {
    let offering = Offering {
        zone: "z1".into(),
        zone_id: "use1-az1".into(),
        capacity_type: CapacityType::Spot,
        price_micro_usd_per_hour: 30_000,
        available: true,
        reservation: None,
        group: CapacityGroup::of("m7g.large", "z1"),
        interruptions_per_million_hours: None,
    };
    let mut catalogue = Catalogue::default();
    catalogue.put(InstanceType {
        name: "m7g.large".into(),
        offerings: vec![offering],
        ..InstanceType::default()
    });
    catalogue
}

#[test]
fn figures_are_those_of_pools_and_of_what_the_plan_says() {
    let mut view = ClusterView::new();
    view.apply(Change::Pool(pool()));
    for name in ["a", "b"] {
        view.apply(Change::Claim(claim(name, false)));
        view.apply(Change::Node(node(name)));
    }
    let mut input = PlanInput {
        world: view.snapshot(),
        catalogues: [("c".into(), Arc::new(catalogue()))].into(),
        ..PlanInput::default()
    };
    let figures = of(&input, &Plan::default(), None);
    let web = &figures.pools["web"];
    assert_eq!(web.limits, [("cpu".to_owned(), 100.0), ("nodes".to_owned(), 9.0)]);
    let usage = |name: &str| web.usage.iter().find(|(it, _)| it == name).map(|(_, it)| *it);
    assert_eq!((usage("cpu"), usage("pods"), usage("nodes")), (Some(4.0), Some(58.0), Some(2.0)));
    assert!((web.cost_usd_per_hour - 0.06).abs() < 1e-9, "{}", web.cost_usd_per_hour);
    assert_eq!(web.allowed, [("Empty", 1.0), ("Underutilized", 1.0), ("Drifted", 0.0)]);
    assert_eq!((figures.nodes, figures.waiting, figures.unplaced), (2.0, 0.0, 0.0));
    view.apply(Change::Claim(claim("b", true)));
    input.world = view.snapshot();
    let figures = of(&input, &Plan::default(), None);
    assert_eq!(figures.pools["web"].allowed[0], ("Empty", 0.0), "one is going");
}

#[test]
fn idle_room_is_paid_for_by_what_keeps_its_node() {
    let room = |cpu_millis, gib: i64| Resources {
        cpu_millis,
        memory_bytes: gib << 30,
        ..Resources::default()
    };
    let mut view = ClusterView::new();
    view.apply(Change::Pool(pool()));
    view.apply(Change::Shape(PodShape {
        id: "s".into(),
        requests: room(500, 6),
        ..PodShape::default()
    }));
    for name in ["a", "b", "c"] {
        view.apply(Change::Claim(claim(name, false)));
        view.apply(Change::Node(Node { allocatable: room(2_000, 8), ..node(name) }));
    }
    let on_a = Some("a".into());
    view.apply(Change::Pod(Pod {
        uid: "p".into(),
        shape: "s".into(),
        node: on_a,
        ..Pod::default()
    }));
    let input = PlanInput {
        world: view.snapshot(),
        catalogues: [("c".into(), Arc::new(catalogue()))].into(),
        ..PlanInput::default()
    };
    let answer = |name: &str, fate, rule| NodeAnswer {
        claim: name.into(),
        node: name.into(),
        fate,
        holds: vec![Hold { subject: "Pod/default/p".to_owned(), rule }],
    };
    let kept = [
        answer("a", Fate::Stays, HoldRule::NotPlaceable),
        answer("b", Fate::Goes(DisruptionReason::Empty), HoldRule::Never),
        answer("c", Fate::Stays, HoldRule::NotPlaceable),
    ];
    let figures = of(&input, &Plan::default(), Some(&kept));
    let idle = figures.idle_usd_per_hour.unwrap();
    assert_eq!(idle.keys().collect::<Vec<_>>(), ["leaving", "pod_not_placeable"]);
    assert!((idle["leaving"] - 0.03).abs() < 1e-9, "all of it: {idle:?}");
    let expected = 0.03 * 0.25 + 0.03;
    assert!((idle["pod_not_placeable"] - expected).abs() < 1e-9, "memory is the fuller: {idle:?}");
}
