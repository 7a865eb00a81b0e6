//! The latest of everything, by what it is about.
//!
//! Invariant: a catalogue is kept with its offerings as later updates left them, so that the state
//! needs no updates to be complete.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use longshore_proto::capacity::v1::region_change::Change;
use longshore_proto::capacity::v1::{Forgotten, OfferingUpdates, RegionChange};
use longshore_proto::types::v1::{Catalogue, OfferingUpdate};

/// What a change is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Subject {
    Region,
    Catalogue(String),
    NodeClass(String, String),
    Launch(String),
    Instance(String),
    Interruption(String, i32),
}

/// Everything shown. In the order of [`Subject`], so that a state names nothing before its parts.
#[derive(Debug, Default)]
pub struct Shown {
    latest: BTreeMap<Subject, Arc<RegionChange>>,
}

impl Shown {
    /// Takes a change over; returns it when it is news.
    pub fn apply(&mut self, change: RegionChange) -> Option<Arc<RegionChange>> {
        let news = Arc::new(change);
        match news.change.as_ref()? {
            Change::Offerings(updates) => self.update(updates).then_some(news),
            Change::Forgotten(forgotten) => {
                self.forget(forgotten);
                Some(news)
            }
            latest @ (Change::Region(_)
            | Change::Catalogue(_)
            | Change::NodeClass(_)
            | Change::Launch(_)
            | Change::Instance(_)
            | Change::Interruption(_)) => {
                let subject = subject(latest)?;
                let known = self.latest.get(&subject).is_some_and(|known| **known == *news);
                if known {
                    return None;
                }
                self.latest.insert(subject, Arc::clone(&news));
                Some(news)
            }
        }
    }

    /// The state.
    #[must_use]
    pub fn state(&self) -> Vec<Arc<RegionChange>> {
        self.latest.values().cloned().collect()
    }

    /// Drops the node classes of a cluster.
    pub fn forget_cluster(&mut self, cluster_id: &str) {
        self.latest.retain(|subject, _| match subject {
            Subject::NodeClass(cluster, _) => cluster != cluster_id,
            Subject::Region
            | Subject::Catalogue(_)
            | Subject::Launch(_)
            | Subject::Instance(_)
            | Subject::Interruption(..) => true,
        });
    }

    /// Drops catalogues other than these.
    pub fn keep_catalogues(&mut self, ids: &BTreeSet<String>) {
        self.latest.retain(|subject, _| match subject {
            Subject::Catalogue(id) => ids.contains(id),
            Subject::Region
            | Subject::NodeClass(..)
            | Subject::Launch(_)
            | Subject::Instance(_)
            | Subject::Interruption(..) => true,
        });
    }

    fn forget(&mut self, forgotten: &Forgotten) {
        for id in &forgotten.launch_ids {
            self.latest.remove(&Subject::Launch(id.clone()));
        }
        for id in &forgotten.instance_ids {
            self.latest.remove(&Subject::Instance(id.clone()));
            self.latest.retain(|subject, _| {
                !matches!(subject, Subject::Interruption(instance, _) if instance == id)
            });
        }
    }

    /// True when any offering changed.
    fn update(&mut self, updates: &OfferingUpdates) -> bool {
        let mut changed = false;
        for (subject, shown) in &mut self.latest {
            let Subject::Catalogue(id) = subject else { continue };
            if !updates.catalogue_id.is_empty() && updates.catalogue_id != *id {
                continue;
            }
            let Some(Change::Catalogue(catalogue)) = &mut Arc::make_mut(shown).change else {
                continue;
            };
            for update in &updates.updates {
                changed |= update_offering(catalogue, update);
            }
        }
        changed
    }
}

fn subject(change: &Change) -> Option<Subject> {
    Some(match change {
        Change::Region(_) => Subject::Region,
        Change::Catalogue(catalogue) => Subject::Catalogue(catalogue.catalogue_id.clone()),
        Change::NodeClass(resolution) => {
            let name = resolution.status.as_ref()?.node_class.clone();
            Subject::NodeClass(resolution.cluster_id.clone(), name)
        }
        Change::Launch(launch) => Subject::Launch(launch.launch_id.clone()),
        Change::Instance(instance) => Subject::Instance(instance.instance_id.clone()),
        Change::Interruption(announced) => {
            Subject::Interruption(announced.instance_id.clone(), announced.kind)
        }
        Change::Offerings(_) | Change::Forgotten(_) => return None,
    })
}

fn update_offering(catalogue: &mut Catalogue, update: &OfferingUpdate) -> bool {
    let position = catalogue.types.binary_search_by(|t| t.name.cmp(&update.instance_type));
    let Some(found) = position.ok().and_then(|at| catalogue.types.get_mut(at)) else {
        return false;
    };
    let meant = found.offerings.iter_mut().filter(|offering| {
        offering.zone == update.zone
            && offering.capacity_type == update.capacity_type
            && (update.reservation_id.is_empty()
                || update.reservation_id == offering.reservation_id)
    });
    let mut changed = false;
    for offering in meant {
        let before = offering.clone();
        offering.available = update.available;
        if update.price_micro_usd_per_hour > 0 {
            offering.price_micro_usd_per_hour = update.price_micro_usd_per_hour;
        }
        if !update.reservation_id.is_empty() {
            offering.reservation_count = update.reservation_count;
        }
        changed |= before != *offering;
    }
    changed
}
