//! ResourceSlices: the devices that each node has.
//!
//! Invariant: counts what any claim may be given: devices of complete pools in their newest
//! generation, on one node, without taints, and not parts of each other.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::resource::v1::{Device, ResourceSlice};

use super::expression::{Attribute, Selection};

/// Driver and pool.
type Pool = (String, String);

/// The part of a ResourceSlice that placement needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slice {
    /// Its node; empty when its devices are not on one.
    pub node: String,
    pool: Pool,
    generation: i64,
    /// Slices that its pool has.
    siblings: i64,
    /// Attributes that are text, of each device that counts.
    devices: Vec<BTreeMap<Attribute, String>>,
}

/// All slices of a cluster.
#[derive(Clone, Debug, Default)]
pub struct Slices {
    slices: BTreeMap<String, Slice>,
    by_pool: BTreeMap<Pool, BTreeSet<String>>,
    by_node: BTreeMap<String, BTreeSet<String>>,
}

impl From<&ResourceSlice> for Slice {
    fn from(from: &ResourceSlice) -> Self {
        let spec = &from.spec;
        let counted = spec.devices.iter().flatten().filter(|device| is_whole(device));
        Self {
            node: spec.node_name.clone().unwrap_or_default(),
            pool: (spec.driver.clone(), spec.pool.name.clone()),
            generation: spec.pool.generation,
            siblings: spec.pool.resource_slice_count,
            devices: counted.map(|device| attributes(&spec.driver, device)).collect(),
        }
    }
}

/// True for a device that one claim has to itself, and that is open to every claim.
fn is_whole(device: &Device) -> bool {
    let mut taints = device.taints.iter().flatten();
    let tainted = taints.any(|taint| matches!(taint.effect.as_str(), "NoSchedule" | "NoExecute"));
    let part = device.consumes_counters.as_ref().is_some_and(|counters| !counters.is_empty());
    !tainted && !part && device.allow_multiple_allocations != Some(true)
}

fn attributes(driver: &str, device: &Device) -> BTreeMap<Attribute, String> {
    let texts = device.attributes.iter().flatten();
    let texts = texts.filter_map(|(key, attribute)| Some((key, attribute.string.clone()?)));
    let named = texts.map(|(key, text)| {
        let (domain, name) = key.split_once('/').unwrap_or((driver, key));
        ((domain.to_owned(), name.to_owned()), text)
    });
    named.collect()
}

impl Slices {
    /// Adds or replaces a slice; gives the nodes whose devices may have changed.
    pub fn put(&mut self, name: &str, slice: Slice) -> BTreeSet<String> {
        if self.slices.get(name) == Some(&slice) {
            return BTreeSet::new();
        }
        let mut concerned = self.remove(name);
        self.by_pool.entry(slice.pool.clone()).or_default().insert(name.to_owned());
        self.by_node.entry(slice.node.clone()).or_default().insert(name.to_owned());
        concerned.extend(self.nodes_of(&slice.pool));
        concerned.insert(slice.node.clone());
        self.slices.insert(name.to_owned(), slice);
        concerned
    }

    /// Removes a slice; gives the nodes whose devices may have changed.
    pub fn remove(&mut self, name: &str) -> BTreeSet<String> {
        let Some(slice) = self.slices.get(name).cloned() else { return BTreeSet::new() };
        let concerned = self.nodes_of(&slice.pool);
        self.slices.remove(name);
        drop_from(&mut self.by_pool, &slice.pool, name);
        drop_from(&mut self.by_node, &slice.node, name);
        concerned
    }

    /// Nodes that have slices.
    pub fn nodes(&self) -> impl Iterator<Item = &String> {
        self.by_node.keys()
    }

    /// Devices of a node that a selection is of.
    #[must_use]
    pub fn count(&self, node: &str, selection: &Selection) -> i64 {
        let names = self.by_node.get(node).filter(|_| !node.is_empty()).into_iter().flatten();
        let slices = names.filter_map(|name| self.slices.get(name));
        let current = slices.filter(|s| s.pool.0 == selection.driver && self.is_current(s));
        let devices = current.flat_map(|slice| &slice.devices);
        let wanted = &selection.attributes;
        let has = |device: &BTreeMap<Attribute, String>| {
            wanted.iter().all(|(key, text)| device.get(key) == Some(text))
        };
        i64::try_from(devices.filter(|device| has(device)).count()).unwrap_or(i64::MAX)
    }

    fn in_pool(&self, pool: &Pool) -> impl Iterator<Item = &Slice> {
        let names = self.by_pool.get(pool).into_iter().flatten();
        names.filter_map(|name| self.slices.get(name))
    }

    fn nodes_of(&self, pool: &Pool) -> BTreeSet<String> {
        self.in_pool(pool).map(|slice| slice.node.clone()).collect()
    }

    /// True for a slice of the newest generation of a pool of which all slices are there.
    fn is_current(&self, slice: &Slice) -> bool {
        let newest = self.in_pool(&slice.pool).map(|other| other.generation).max();
        let same = self.in_pool(&slice.pool).filter(|s| Some(s.generation) == newest).count();
        newest == Some(slice.generation) && i64::try_from(same) == Ok(slice.siblings)
    }
}

fn drop_from<K: Ord>(index: &mut BTreeMap<K, BTreeSet<String>>, key: &K, name: &str) {
    let Some(names) = index.get_mut(key) else { return };
    names.remove(name);
    if names.is_empty() {
        index.remove(key);
    }
}
