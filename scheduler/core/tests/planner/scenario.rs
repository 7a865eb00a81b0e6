//! Reads a world from lines of text. One line is one object or one number of pods; words after the
//! name come in pairs of property and value.
//!
//! Invariant: whatever is not understood fails the test with its line.

use std::collections::BTreeMap;
use std::sync::Arc;

use longshore_core::capacity_group::CapacityGroup;
use longshore_core::catalogue::{CapacityType, Catalogue, InstanceType, Offering, Reservation};
use longshore_core::labels;
use longshore_core::offers::overlaid;
use longshore_core::pool::{ConsolidationPolicy, NodePool};
use longshore_core::question::{MinValuesPolicy, PlanInput};
use longshore_core::resources::Resources;
use longshore_core::selector::LabelSelector;
use longshore_core::world::budget::{DaemonSet, DisruptionBudget};
use longshore_core::world::claim::NodeClaim;
use longshore_core::world::node::Node;
use longshore_core::world::pod::{DoNotDisrupt, Pod, PodKey, PodPhase};
use longshore_core::world::shape::PodShape;
use longshore_core::world::view::{Change, ClusterView};

use super::objects;
use super::shapes;
use super::words::*;

/// A world under construction.
#[derive(Default)]
pub struct Scenario {
    pub changes: Vec<Change>,
    catalogue: Catalogue,
    input: PlanInput,
    pods: BTreeMap<String, usize>,
}

/// The world of a text.
pub fn read(text: &str) -> Scenario {
    let mut scenario = Scenario {
        catalogue: Catalogue { id: "all".into(), ..Catalogue::default() },
        ..Scenario::default()
    };
    for line in text.lines().map(|line| line.split('#').next().unwrap().trim()) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let Some((kind, rest)) = words.split_first() else { continue };
        match *kind {
            "now" => scenario.input.now_ms = millis(rest[0]),
            "type" => scenario.put_type(rest),
            "pool" => scenario.put_pool(rest),
            "shape" => scenario.put_shape(rest),
            "pods" => scenario.put_pods(rest),
            "node" => scenario.put_node(rest),
            "claim" => scenario.put_claim(rest),
            "pdb" => scenario.put_budget(rest),
            "pinned" => scenario.input.pinned = true,
            "premium" => scenario.input.preference_premium_percent = rest[0].parse().unwrap(),
            "objective" => scenario.input.objective = objects::objective(rest),
            "kept" => objects::keep(&mut scenario.input, rest),
            "unclaimed" => scenario.put_unclaimed(rest),
            "min-values" => scenario.input.min_values = MinValuesPolicy::BestEffort,
            "overlay" => scenario.changes.push(Change::Overlay(objects::overlay(rest))),
            "buffer" => scenario.changes.push(Change::Buffer(objects::buffer(rest))),
            "interrupted" => drop(scenario.input.interrupted_instances.insert(rest[0].to_owned())),
            _ => panic!("unknown line: {line}"),
        }
    }
    scenario
}

impl Scenario {
    /// The question, with the objects applied in the given order.
    pub fn input(&self, order: impl Iterator<Item = usize>) -> PlanInput {
        let mut view = ClusterView::new();
        for index in order {
            view.apply(self.changes[index].clone());
        }
        let catalogues = BTreeMap::from([("all".into(), Arc::new(self.catalogue.clone()))]);
        let overlaid = overlaid(view.world(), &catalogues).catalogues;
        PlanInput { world: view.snapshot(), catalogues, overlaid, ..self.input.clone() }
    }

    /// Pool, type and number of instances that no claim stands for.
    fn put_unclaimed(&mut self, words: &[&str]) {
        let of_pool = self.input.unclaimed.entry(words[0].into()).or_default();
        of_pool.insert(words[1].into(), words[2].parse().unwrap());
    }

    fn put_type(&mut self, words: &[&str]) {
        let mut instance = InstanceType { name: words[0].into(), ..InstanceType::default() };
        let (family, size) = words[0].split_once('.').unwrap();
        instance.labels = label_map(&[
            (labels::ARCH, "amd64"),
            (labels::OS, "linux"),
            ("karpenter.k8s.aws/instance-family", family),
            ("karpenter.k8s.aws/instance-size", size),
        ]);
        let (mut zones, mut prices) = (vec!["a"], Vec::new());
        let (mut special, mut reservations) = (Vec::new(), Vec::new());
        let mut interruptions = None;
        for (property, value) in pairs(&words[1..]) {
            match property {
                "cpu" => instance.capacity.cpu_millis = cpu(value),
                "mem" => instance.capacity.memory_bytes = bytes(value),
                "pods" => instance.capacity.pods = value.parse().unwrap(),
                "reserved" => instance.overhead = overhead(value),
                "arch" => drop(instance.labels.insert(labels::ARCH.to_owned(), value.to_owned())),
                "label" => instance.labels.extend(labels_of(value)),
                "zones" => zones = value.split(',').collect(),
                "od" => prices.push((CapacityType::OnDemand, true, price(value))),
                "spot" => prices.push((CapacityType::Spot, true, price(value))),
                "sold-out" => prices.push((CapacityType::OnDemand, false, price(value))),
                "gpu" => instance.capacity.set("nvidia.com/gpu", value.parse().unwrap()),
                "disk" => instance.capacity.ephemeral_storage_bytes = bytes(value),
                "cap" => set(&mut instance.capacity, value),
                "zone-price" => special.push(value.split_once('=').unwrap()),
                "interruptions" => interruptions = Some(value.parse().unwrap()),
                "reserve" => reservations.push(value),
                _ => panic!("type: unknown {property}"),
            }
        }
        for zone in zones {
            let sold = prices.iter().map(|terms| sold(zone, *terms, interruptions));
            instance.offerings.extend(sold);
        }
        // Another price in one zone, for all capacity types.
        for (zone, price) in special {
            let there = instance.offerings.iter_mut().filter(|o| o.zone.as_str() == zone);
            there.for_each(|offering| {
                offering.price_micro_usd_per_hour = super::words::price(price)
            });
        }
        instance.offerings.extend(reservations.into_iter().map(reserved));
        self.catalogue.put(instance);
    }

    fn put_pool(&mut self, words: &[&str]) {
        let mut pool =
            NodePool { name: words[0].into(), catalogue: "all".into(), ..NodePool::default() };
        for (property, value) in pairs(&words[1..]) {
            match property {
                "weight" => pool.weight = value.parse().unwrap(),
                "label" => pool.labels.extend(labels_of(value)),
                "taint" => pool.taints.push(taint(value)),
                "startup-taint" => pool.startup_taints.push(taint(value)),
                "need" => {
                    let (key, requirement) = requirement(value);
                    pool.requirements.add(&key, requirement);
                }
                "zones" => pool.zones = Some(value.split(',').map(Into::into).collect()),
                "limit" => {
                    let (name, amount) = value.split_once('=').unwrap();
                    pool.limits.insert(name.to_owned(), quantity(name, amount));
                }
                "after" => pool.disruption.consolidate_after_ms = Some(millis(value)),
                "policy" => {
                    pool.disruption.policy = match value {
                        "empty" => ConsolidationPolicy::WhenEmpty,
                        _ => ConsolidationPolicy::WhenEmptyOrUnderutilized,
                    }
                }
                "spread" => pool.dense_spread = value == "dense",
                "evictions" => pool.disruption.evictions_left = Some(value.parse().unwrap()),
                "canary" => pool.canary = Some(objects::canary(value)),
                "replicas" => pool.replicas = Some(value.parse().unwrap()),
                "budget" => pool.disruption.budgets.push(budget(value)),
                "not-ready" => pool.not_ready = Some(value.replace('_', " ")),
                _ => panic!("pool: unknown {property}"),
            }
        }
        self.changes.push(Change::Pool(pool));
    }

    fn put_shape(&mut self, words: &[&str]) {
        let mut shape = PodShape {
            id: words[0].into(),
            namespace: "default".to_owned(),
            owner: format!("Deployment/{}", words[0]),
            labels: label_map(&[("app", words[0])]),
            requests: Resources { pods: 1, ..Resources::default() },
            ..PodShape::default()
        };
        for (property, value) in pairs(&words[1..]) {
            shapes::property(&mut shape, property, value);
        }
        if shape.is_daemon {
            shape.owner = format!("DaemonSet/{}", words[0]);
            let key = PodKey::new("default", words[0]);
            self.changes.push(Change::DaemonSet(DaemonSet { key, shape: shape.id.clone() }));
        }
        self.changes.push(Change::Shape(shape));
    }

    fn put_pods(&mut self, words: &[&str]) {
        let mut template = Pod { shape: words[0].into(), unschedulable: true, ..Pod::default() };
        let mut earlier = None;
        for (property, value) in pairs(&words[2..]) {
            match property {
                "on" => {
                    template.node = Some(value.into());
                    template.phase = PodPhase::Running;
                    template.unschedulable = false;
                }
                "untried" => template.unschedulable = value != "yes",
                "deleting" => template.deleting = value == "yes",
                "ends" => template.ends_ms = Some(millis(value)),
                "failing" => template.failing = value == "yes",
                "surges" => template.surges = value == "yes",
                "created" => template.created_ms = millis(value),
                "preempting" => {
                    template.nominated_node = Some(value.into());
                    template.preempting = true;
                }
                "nominated" => template.nominated_node = Some(value.into()),
                "planned" => earlier = Some(value.to_owned()),
                "hold" => {
                    template.do_not_disrupt = match value {
                        "ever" => DoNotDisrupt::Always,
                        until => DoNotDisrupt::UntilMs(millis(until)),
                    }
                }
                _ => panic!("pods: unknown {property}"),
            }
        }
        for _ in 0..words[1].parse::<usize>().unwrap() {
            let number = self.pods.entry(words[0].to_owned()).or_default();
            let name = format!("{}-{number:04}", words[0]);
            *number += 1;
            let wish = earlier.iter().map(|host: &String| (name.as_str().into(), host.clone()));
            self.input.earlier.extend(wish);
            let key = PodKey::new("default", &name);
            let name = name.as_str();
            self.changes.push(Change::Pod(Pod { key, uid: name.into(), ..template.clone() }));
        }
    }

    /// A node; with `pool` also the initialised claim that made it.
    fn put_node(&mut self, words: &[&str]) {
        let name = words[0];
        let mut node = Node {
            name: name.into(),
            provider_id: format!("aws:///a/i-{name}"),
            ready: true,
            ..Node::default()
        };
        let mut claim = NodeClaim {
            name: format!("{name}-claim").into(),
            provider_id: node.provider_id.clone(),
            node: Some(name.into()),
            registered_ms: Some(0),
            initialized_ms: Some(0),
            ..NodeClaim::default()
        };
        let mut bought = CapacityType::OnDemand;
        let (mut dropped, mut allocatable) = (Vec::new(), Vec::new());
        for (property, value) in pairs(&words[1..]) {
            match property {
                "type" => claim.instance_type = Some(value.into()),
                "zone" => claim.zone = Some(value.into()),
                "bought" => bought = CapacityType::from_label(value).unwrap(),
                "pool" => claim.pool = value.into(),
                "label" => node.labels.extend(labels_of(value)),
                "taint" => node.taints.push(taint(value)),
                "drop-label" => dropped.push(topology_key(value)),
                "alloc" => allocatable.push(value),
                "initialized" => claim.initialized_ms = (value != "no").then(|| millis(value)),
                "created" => {
                    (node.created_ms, claim.created_ms) = (millis(value), millis(value));
                }
                "last-pod" => claim.last_pod_event_ms = Some(millis(value)),
                "expire" => claim.expire_after_ms = Some(millis(value)),
                "grace" => claim.termination_grace_ms = Some(millis(value)),
                "replacement" => claim.replacement = value == "yes",
                "replaced-by" => claim.replaced_by.push(format!("{value}-claim").as_str().into()),
                "state" => objects::node_state(&mut node, &mut claim, value),
                _ => panic!("node: unknown {property}"),
            }
        }
        self.settle(&mut node, &mut claim, bought);
        dropped.iter().for_each(|key| drop(node.labels.remove(key)));
        allocatable.into_iter().for_each(|value| set(&mut node.allocatable, value));
        self.changes.push(Change::Node(node));
        if !claim.pool.is_empty() {
            self.changes.push(Change::Claim(claim));
        }
    }

    /// Fills in what follows from type, zone and capacity type.
    fn settle(&self, node: &mut Node, claim: &mut NodeClaim, bought: CapacityType) {
        let kind = claim.instance_type.clone().unwrap();
        let zone = claim.zone.get_or_insert("a".into()).clone();
        let instance = &self.catalogue.types[&kind];
        node.allocatable = instance.allocatable();
        node.labels.extend(instance.labels.clone());
        node.labels.extend(label_map(&[
            (labels::INSTANCE_TYPE, kind.as_str()),
            (labels::ZONE, zone.as_str()),
            (labels::CAPACITY_TYPE, bought.label()),
            (labels::NODE_POOL, claim.pool.as_str()),
        ]));
        node.labels.extend(CapacityGroup::of(kind.as_str(), zone.as_str()).labels());
        claim.capacity_type = Some(bought);
        claim.allocatable = node.allocatable.clone();
    }

    /// A claim that has not been launched.
    fn put_claim(&mut self, words: &[&str]) {
        let mut claim = NodeClaim { name: words[0].into(), ..NodeClaim::default() };
        for (property, value) in pairs(&words[1..]) {
            match property {
                "pool" => claim.pool = value.into(),
                "cpu" => claim.requests.cpu_millis = cpu(value),
                "mem" => claim.requests.memory_bytes = bytes(value),
                "pods" => claim.requests.pods = value.parse().unwrap(),
                "need" => {
                    let (key, requirement) = requirement(value);
                    claim.requirements.add(&key, requirement);
                }
                "label" => claim.labels.extend(labels_of(value)),
                "taint" => claim.taints.push(taint(value)),
                "launched" => {
                    let parts: Vec<&str> = value.split('/').collect();
                    claim.provider_id = format!("aws:///a/i-{}", words[0]);
                    claim.instance_type = Some(parts[0].into());
                    claim.zone = Some(parts[1].into());
                    claim.capacity_type = CapacityType::from_label(parts[2]);
                    claim.allocatable = self.catalogue.types[parts[0]].allocatable();
                }
                _ => panic!("claim: unknown {property}"),
            }
        }
        self.changes.push(Change::Claim(claim));
    }

    fn put_budget(&mut self, words: &[&str]) {
        let mut budget = DisruptionBudget {
            key: PodKey::new("default", words[0]),
            ..DisruptionBudget::default()
        };
        for (property, value) in pairs(&words[1..]) {
            match property {
                "app" => budget.selector = Some(LabelSelector::label("app", value)),
                "allowed" => budget.disruptions_allowed = value.parse().unwrap(),
                "blocking" => budget.fully_blocking = value == "yes",
                "unready" => budget.lets_unready_go = value == "go",
                _ => panic!("pdb: unknown {property}"),
            }
        }
        self.changes.push(Change::Budget(budget));
    }
}

/// `70m/500Mi`.
fn overhead(text: &str) -> Resources {
    let (cpu_part, memory) = text.split_once('/').unwrap();
    Resources { pods: 0, ..Resources::pod(cpu(cpu_part), bytes(memory)) }
}

/// `name=amount`.
fn set(resources: &mut Resources, text: &str) {
    let (name, amount) = text.split_once('=').unwrap();
    resources.set(name, quantity(name, amount));
}

/// What a type is sold as in a zone; only spot is interrupted.
fn sold(
    zone: &str,
    (capacity_type, available, price): (CapacityType, bool, i64),
    interruptions: Option<i64>,
) -> Offering {
    Offering {
        zone: zone.into(),
        zone_id: format!("id-{zone}").into(),
        capacity_type,
        price_micro_usd_per_hour: price,
        available,
        reservation: None,
        group: CapacityGroup::default(),
        interruptions_per_million_hours: interruptions
            .filter(|_| capacity_type == CapacityType::Spot),
    }
}

/// `zone/id=remaining@price`.
fn reserved(text: &str) -> Offering {
    let (place, terms) = text.split_once('=').unwrap();
    let (zone, id) = place.split_once('/').unwrap();
    let (remaining, price_there) = terms.split_once('@').unwrap();
    Offering {
        zone: zone.into(),
        zone_id: format!("id-{zone}").into(),
        capacity_type: CapacityType::Reserved,
        price_micro_usd_per_hour: price(price_there),
        available: true,
        reservation: Some(Reservation { id: id.into(), remaining: remaining.parse().unwrap() }),
        group: CapacityGroup::default(),
        interruptions_per_million_hours: None,
    }
}
