//! What a process that does all has noted of its shared calls, in place of what etcd's ledger says;
//! and its terms.
//!
//! Invariant: a journal is read before anything that happens is judged. Instances that are in none
//! show by their tags whose they are, as they do to whoever takes over; so much of a ledger as is
//! in memory is not judged.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ConfigMap;
use longshore_actuator::cloud::TAG_CLAIM;
use longshore_actuator::ledger::{Key, LaunchRecord};
use longshore_standalone::journal;
use prost::Message as _;
use tokio::time::Instant;

use super::{Judge, NAMESPACE, Seen};

/// Resource id of ConfigMaps.
const CONFIG_MAPS: &str = "configmaps";

/// What has been read.
#[derive(Default)]
pub(super) struct Journals {
    /// Revision and entries of each site's journal.
    read: BTreeMap<usize, (u64, BTreeMap<Key, Vec<u8>>)>,
    /// Number of the present life of each process.
    lives: BTreeMap<String, i64>,
    /// The latest of these numbers.
    last: i64,
}

impl Judge {
    /// A process that does all begins a life.
    pub fn begins(&self, name: &str) {
        let mut state = self.lock();
        state.journals.last += 1;
        let number = state.journals.last;
        state.journals.lives.insert(name.to_owned(), number);
    }

    /// What the journal of a site says of a launch or a call.
    pub(super) fn noted(&self, site: usize, key: &Key) -> Option<Vec<u8>> {
        self.lock().journals.read.get(&site)?.1.get(key).cloned()
    }

    /// Reads the journal of a site when it has changed: it says whose instances of shared calls
    /// are.
    pub(super) fn read_journal(&self, site: usize) {
        let Some(cluster) = self.alone_at(site) else { return };
        let revision = cluster.handle.revision_of(CONFIG_MAPS);
        let known = self.lock().journals.read.get(&site).map_or(0, |(revision, _)| *revision);
        if revision == known {
            return;
        }
        let entries: BTreeMap<Key, Vec<u8>> = cluster.journal().into_iter().collect();
        let launches: Vec<LaunchRecord> = entries
            .iter()
            .filter(|(key, _)| matches!(key, Key::Launch(_)))
            .filter_map(|(_, value)| LaunchRecord::decode(&**value).ok())
            .collect();
        self.lock().journals.read.insert(site, (revision, entries));
        launches.iter().for_each(|launch| self.given(launch));
    }

    /// Looks at all journals, at who holds the Leases, and at instances that show by now whose they
    /// are.
    pub(super) fn look_at_journals(&self) {
        for cluster in self.clusters.iter().filter(|_| self.etcds.is_empty()) {
            self.read_journal(cluster.site);
            self.note_term(cluster);
            self.note_tags(cluster);
        }
    }

    /// A term is the life of the process that holds the Lease.
    fn note_term(&self, cluster: &Seen) {
        let holder = cluster.holder();
        let mut state = self.lock();
        let term = state.journals.lives.get(&holder).copied();
        if state.terms.get(&cluster.site).map(|(_, term)| *term) != term {
            state.terms.remove(&cluster.site);
            let began = term.map(|term| (Instant::now(), term));
            state.terms.extend(began.map(|began| (cluster.site, began)));
        }
    }

    /// Instances of shared calls that have their launch's tags.
    fn note_tags(&self, cluster: &Seen) {
        let Some(region) = self.regions.get(cluster.site) else { return };
        let open: Vec<String> = self.lock().unclaimed.keys().cloned().collect();
        let told: Vec<(String, String)> = region.with(|model, _| {
            let known = open.iter().filter_map(|id| model.instances.get(id));
            let told = known.filter(|found| !found.seen.tag(TAG_CLAIM).is_empty());
            let named = |id: &String, claim: &str| (id.clone(), claim.to_owned());
            told.map(|found| named(&found.seen.instance_id, found.seen.tag(TAG_CLAIM))).collect()
        });
        told.iter().for_each(|(id, claim)| self.is_for(&cluster.name, id, claim));
    }

    /// The cluster whose process is alone at a site.
    fn alone_at(&self, site: usize) -> Option<&Seen> {
        self.clusters.iter().find(|cluster| self.etcds.is_empty() && cluster.site == site)
    }
}

impl Seen {
    /// What its journal says.
    fn journal(&self) -> Vec<(Key, Vec<u8>)> {
        let mut found = None;
        self.handle.visit(CONFIG_MAPS, |object| {
            let metadata = &object["metadata"];
            if metadata["name"] == journal::NAME && metadata["namespace"] == NAMESPACE {
                found = serde_json::from_value::<ConfigMap>(object.clone()).ok();
            }
        });
        found.map_or_else(Vec::new, journal::entries)
    }
}
