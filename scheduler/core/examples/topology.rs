//! Plans and checks a made-up cluster in which every workload has rules about other pods, and
//! prints how long each took.
//!
//!     cargo run --release -p longshore-core --example topology -- SHAPES PODS NODES
//!
//! Each third workload is spread over zones, each third keeps its pods apart on hosts, each third
//! follows another workload into its zone. Invariant: no randomness, so two runs do the same work.

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::Arc;

use longshore_core::capacity_group::CapacityGroup;
use longshore_core::catalogue::{CapacityType, Catalogue, InstanceType, Offering};
use longshore_core::check::check;
use longshore_core::labels::{self, Labels};
use longshore_core::plan;
use longshore_core::pool::NodePool;
use longshore_core::question::{Effort, PlanInput};
use longshore_core::resources::Resources;
use longshore_core::selector::LabelSelector;
use longshore_core::world::node::Node;
use longshore_core::world::pod::{Pod, PodKey};
use longshore_core::world::shape::{Namespaces, PodAffinityTerm, PodShape, TopologySpread};
use longshore_core::world::view::{Change, ClusterView};

const ZONES: [&str; 3] = ["zone-a", "zone-b", "zone-c"];

#[expect(clippy::print_stdout, reason = "a program for people")]
fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut number = || arguments.next().unwrap_or_default().parse::<usize>();
    let usage = "usage: topology SHAPES PODS NODES";
    let (shapes, pods) = (number().map_err(|_| usage)?, number().map_err(|_| usage)?);
    let input = input(shapes, pods, number().map_err(|_| usage)?);
    #[expect(clippy::disallowed_types, reason = "the program measures, the planner does not")]
    let start = std::time::Instant::now();
    let answer = plan(&input);
    let planned = start.elapsed();
    let violations = check(&answer, &input);
    println!(
        "launches {}  placed {}  unplaced {}  violations {}  planned in {planned:?}, checked in {:?}",
        answer.launches.len(),
        answer.placements.len(),
        answer.unplaced.iter().map(|unplaced| unplaced.pods.len()).sum::<usize>(),
        violations.len(),
        start.elapsed() - planned,
    );
    violations.iter().take(5).for_each(|violation| println!("{violation}"));
    Ok(())
}

fn input(shapes: usize, pods: usize, nodes: usize) -> PlanInput {
    let mut view = ClusterView::new();
    let pool = NodePool { name: "default".into(), catalogue: "all".into(), ..NodePool::default() };
    view.apply(Change::Pool(pool));
    for index in 0..shapes {
        view.apply(Change::Shape(shape(index, shapes)));
    }
    for index in 0..nodes {
        view.apply(Change::Node(node(index)));
    }
    // Nodes hold four pods each; the rest waits.
    for index in 0..pods {
        let bound = index < 4 * nodes;
        let name = format!("pod-{index:06}");
        view.apply(Change::Pod(Pod {
            key: PodKey::new("default", &name),
            uid: name.as_str().into(),
            shape: format!("shape-{:05}", index % shapes).into(),
            node: bound.then(|| format!("node-{:05}", index / 4).into()),
            unschedulable: !bound,
            ..Pod::default()
        }));
    }
    let mut all = Catalogue { id: "all".into(), ..Catalogue::default() };
    (1..=40).for_each(|size| all.put(instance(size)));
    let catalogues = BTreeMap::from([("all".into(), Arc::new(all))]);
    let effort = Effort::Greedy;
    PlanInput { world: view.snapshot(), catalogues, effort, ..PlanInput::default() }
}

fn shape(index: usize, shapes: usize) -> PodShape {
    let app = format!("app-{index:05}");
    let selector = LabelSelector::label("app", &app);
    let cpu_millis = 100 + 10 * i64::try_from(index % 50).unwrap_or(0);
    let mut shape = PodShape {
        id: format!("shape-{index:05}").into(),
        namespace: "default".to_owned(),
        labels: Labels::from([("app".to_owned(), app)]),
        requests: Resources::pod(cpu_millis, cpu_millis << 21),
        ..PodShape::default()
    };
    let term = |topology_key: &str, selector| PodAffinityTerm {
        topology_key: topology_key.to_owned(),
        selector: Some(selector),
        namespaces: Namespaces::Own,
        weight: 0,
    };
    match index % 3 {
        0 => shape.topology_spread.push(TopologySpread {
            max_skew: 1,
            topology_key: labels::ZONE.to_owned(),
            schedule_anyway: false,
            selector,
            min_domains: None,
            honor_node_affinity: true,
            honor_node_taints: false,
        }),
        1 => shape.required_anti_affinity.push(term(labels::HOSTNAME, selector)),
        _ => {
            let leader = format!("app-{:05}", (index + 2) % shapes);
            let leader = LabelSelector::label("app", &leader);
            shape.required_affinity.push(term(labels::ZONE, leader));
        }
    }
    shape
}

fn node(index: usize) -> Node {
    let label = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    let name = format!("node-{index:05}");
    Node {
        name: name.as_str().into(),
        labels: Labels::from([
            label(labels::ZONE, ZONES[index % 3]),
            label(labels::HOSTNAME, &name),
        ]),
        allocatable: Resources { pods: 110, ..Resources::pod(2_500, 6 << 30) },
        ready: true,
        ..Node::default()
    }
}

fn instance(size: i64) -> InstanceType {
    let offering = |zone: &&str| Offering {
        zone: (*zone).into(),
        zone_id: format!("id-{zone}").into(),
        capacity_type: CapacityType::OnDemand,
        price_micro_usd_per_hour: 50_000 * size,
        available: true,
        reservation: None,
        group: CapacityGroup::default(),
        interruptions_per_million_hours: None,
    };
    InstanceType {
        name: format!("m.{size}x").into(),
        labels: Labels::from([(labels::ARCH.to_owned(), "amd64".to_owned())]),
        capacity: Resources { pods: 110, ..Resources::pod(1_000 * size, size << 32) },
        overhead: Resources::default(),
        offerings: ZONES.iter().map(offering).collect(),
    }
}
