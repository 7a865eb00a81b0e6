//! How many pods of each shape are where, once the plan has been carried out.
//!
//! Invariant: counted from the nodes as the checker sees them; every domain of a topology key is
//! counted out once, however many rules ask.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use crate::check::Part;
use crate::check::nodes::{NodeAfter, Nodes};
use crate::vocabulary::ids::ShapeId;
use crate::vocabulary::labels::HOSTNAME;
use crate::world::shape::PodShape;

/// A number of pods.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Count {
    pub(super) all: i64,
    /// Those that the plan brings.
    pub(super) arrived: i64,
    /// Those that are ending.
    pub(super) ending: i64,
}

/// Pods by index of shape.
type Crowd = BTreeMap<usize, Count>;
/// Crowds by domain.
type Areas = BTreeMap<String, Crowd>;

/// All nodes with their pods counted.
pub(super) struct Census<'a> {
    pub(super) nodes: Vec<&'a NodeAfter<'a>>,
    pub(super) crowds: Vec<Crowd>,
    pub(super) shapes: Vec<&'a PodShape>,
    areas: RefCell<BTreeMap<String, Rc<Areas>>>,
    domains: RefCell<BTreeMap<String, Rc<Vec<Vec<String>>>>>,
}

impl<'a> Census<'a> {
    pub(super) fn of(nodes: &'a Nodes<'a>) -> Self {
        let nodes: Vec<&NodeAfter<'_>> = nodes.all.values().collect();
        let mut known: BTreeMap<&ShapeId, usize> = BTreeMap::new();
        let mut shapes: Vec<&PodShape> = Vec::new();
        let mut crowds = Vec::with_capacity(nodes.len());
        for node in &nodes {
            let mut crowd = Crowd::new();
            for (uid, shape) in &node.pods {
                let kind = *known.entry(&shape.id).or_insert_with(|| {
                    shapes.push(shape);
                    shapes.len() - 1
                });
                let count = crowd.entry(kind).or_default();
                count.all += 1;
                count.arrived += i64::from(node.arrived.contains(uid));
                count.ending += i64::from(node.ending.contains(uid));
            }
            crowds.push(crowd);
        }
        let (areas, domains) = (RefCell::default(), RefCell::default());
        Self { nodes, crowds, shapes, areas, domains }
    }

    pub(super) fn name(&self, node: usize) -> &str {
        &self.nodes[node].name
    }

    /// Pods of a shape that the plan brings to a node, some of them.
    pub(super) fn arrivals(&self, node: usize, kind: usize, count: i64) -> Part {
        let (target, shape) = (self.nodes[node].target.clone(), self.shapes[kind].id.clone());
        Part::Arrivals { target, shape, count }
    }

    /// For each shape, whether `which` holds.
    pub(super) fn select(&self, which: impl Fn(&PodShape) -> bool) -> Vec<bool> {
        self.shapes.iter().map(|shape| which(shape)).collect()
    }

    /// Domains that each node may be in.
    pub(super) fn domains(&self, key: &str) -> Rc<Vec<Vec<String>>> {
        if let Some(known) = self.domains.borrow().get(key) {
            return Rc::clone(known);
        }
        let domains = Rc::new(self.nodes.iter().map(|node| domains_of(node, key)).collect());
        self.domains.borrow_mut().insert(key.to_owned(), Rc::clone(&domains));
        domains
    }

    /// Pods of the selected shapes in one domain.
    pub(super) fn sum(&self, key: &str, domain: &str, selected: &[bool]) -> Count {
        let areas = self.areas(key);
        let crowd = areas.get(domain).into_iter().flatten();
        let counts = crowd.filter(|(kind, _)| selected[**kind]).map(|(_, count)| count);
        counts.fold(Count::default(), |sum, count| Count {
            all: sum.all + count.all,
            arrived: sum.arrived + count.arrived,
            ending: sum.ending + count.ending,
        })
    }

    fn areas(&self, key: &str) -> Rc<Areas> {
        if let Some(known) = self.areas.borrow().get(key) {
            return Rc::clone(known);
        }
        let mut areas = Areas::new();
        for (crowd, domains) in self.crowds.iter().zip(self.domains(key).iter()) {
            for domain in domains {
                let area = areas.entry(domain.clone()).or_default();
                for (kind, count) in crowd {
                    let sum = area.entry(*kind).or_default();
                    sum.all += count.all;
                    sum.arrived += count.arrived;
                    sum.ending += count.ending;
                }
            }
        }
        let areas = Rc::new(areas);
        self.areas.borrow_mut().insert(key.to_owned(), Rc::clone(&areas));
        areas
    }
}

fn domains_of(node: &NodeAfter<'_>, key: &str) -> Vec<String> {
    if key == HOSTNAME {
        return vec![node.name.clone()];
    }
    let forms = node.forms.iter();
    let mut domains: Vec<String> = forms.filter_map(|form| form.labels.get(key).cloned()).collect();
    domains.sort_unstable();
    domains.dedup();
    domains
}
