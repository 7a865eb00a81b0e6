//! Packs a workload file onto a catalogue file and prints nodes, price, bound and time.
//!
//!     cargo run --release -p longshore-core --example pack -- CATALOGUE.json WORKLOAD.json [EFFORT]
//!
//! The catalogue is a list of `{Name, Arch, Cpu, Mem, Pods, Price}` (allocatable millis and MiB,
//! dollars per hour), the workload a list of `[cpu_millis, memory_mib, count]`; EFFORT is greedy,
//! default or max. Invariant: prints what the public `plan` answers, nothing of its own.

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::Arc;

use longshore_core::catalogue::{CapacityType, Catalogue, InstanceType, Offering};
use longshore_core::labels;
use longshore_core::plan::{Effort, PlanInput, plan};
use longshore_core::pool::NodePool;
use longshore_core::resources::Resources;
use longshore_core::world::pod::{Pod, PodKey};
use longshore_core::world::shape::PodShape;
use longshore_core::world::view::{Change, ClusterView};
use serde_json::Value;

#[expect(clippy::print_stdout, reason = "a program for people")]
fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut next = || arguments.next().ok_or("usage: pack CATALOGUE.json WORKLOAD.json [EFFORT]");
    let (catalogue, workload) = (read(&next()?)?, read(&next()?)?);
    let effort = match next().as_deref() {
        Ok("greedy") => Effort::Greedy,
        Ok("max") => Effort::Max,
        _ => Effort::Default,
    };
    let input = input(&catalogue, &workload, effort).ok_or("the files have another form")?;
    #[expect(clippy::disallowed_types, reason = "the program measures, the planner does not")]
    let start = std::time::Instant::now();
    let plan = plan(&input);
    let took = start.elapsed();
    let dollars = |micros: i64| format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000);
    println!(
        "nodes {}  price {} $/h  bound {} $/h  gap {} ppm  unplaced {}  {:?}",
        plan.launches.len(),
        dollars(plan.launch_price_micro_usd_per_hour),
        dollars(plan.bound.price_micro_usd_per_hour),
        plan.gap_ppm,
        plan.unplaced.iter().map(|unplaced| unplaced.pods.len()).sum::<usize>(),
        took
    );
    let mut types: BTreeMap<&str, usize> = BTreeMap::new();
    for node in &plan.launches {
        *types.entry(node.candidates[0].instance_type.as_str()).or_default() += 1;
    }
    println!("{types:?}");
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "the program reads files, the planner does not")]
fn read(path: &str) -> Result<Value, Box<dyn Error>> {
    Ok(serde_json::from_str(&std::fs::read_to_string(path)?)?)
}

fn input(catalogue: &Value, workload: &Value, effort: Effort) -> Option<PlanInput> {
    let mut view = ClusterView::new();
    let pool = NodePool { name: "default".into(), catalogue: "all".into(), ..NodePool::default() };
    view.apply(Change::Pool(pool));
    for (kind, row) in workload.as_array()?.iter().enumerate() {
        let cpu_millis = row.get(0)?.as_i64()?;
        let requests = Resources::pod(cpu_millis, row.get(1)?.as_i64()? << 20);
        let id = format!("shape-{kind:03}").into();
        view.apply(Change::Shape(PodShape { id, requests, ..PodShape::default() }));
        for index in 0..row.get(2)?.as_i64()? {
            let name = format!("pod-{kind:03}-{index:06}");
            view.apply(Change::Pod(Pod {
                key: PodKey::new("default", &name),
                uid: name.as_str().into(),
                shape: format!("shape-{kind:03}").into(),
                unschedulable: true,
                ..Pod::default()
            }));
        }
    }
    let mut types = Catalogue { id: "all".into(), ..Catalogue::default() };
    for row in catalogue.as_array()? {
        types.put(instance(row)?);
    }
    let catalogues = BTreeMap::from([("all".into(), Arc::new(types))]);
    Some(PlanInput { world: view.snapshot(), catalogues, effort, ..PlanInput::default() })
}

fn instance(row: &Value) -> Option<InstanceType> {
    let whole = |key: &str| row.get(key)?.as_f64().map(floor);
    let capacity = Resources {
        cpu_millis: whole("Cpu")?,
        memory_bytes: whole("Mem")? << 20,
        pods: whole("Pods")?,
        ..Resources::default()
    };
    let offering = Offering {
        zone: "zone-a".into(),
        zone_id: "z1".into(),
        capacity_type: CapacityType::OnDemand,
        price_micro_usd_per_hour: floor(row.get("Price")?.as_f64()? * 1e6 + 0.5),
        available: true,
        reservation: None,
    };
    let arch = row.get("Arch").and_then(Value::as_str).unwrap_or("amd64").to_owned();
    Some(InstanceType {
        name: row.get("Name")?.as_str()?.into(),
        labels: BTreeMap::from([(labels::ARCH.to_owned(), arch)]),
        capacity,
        overhead: Resources::default(),
        offerings: vec![offering],
    })
}

#[expect(clippy::cast_possible_truncation, reason = "amounts in the files are small")]
fn floor(amount: f64) -> i64 {
    amount.floor() as i64
}
