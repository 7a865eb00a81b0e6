//! Calls for several launches, and whose their instances are.
//!
//! Invariant: whose an instance is, the ledger says once; until then it counts for one of the
//! claims that its call was recorded for, and for each of them at most once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use longshore_actuator::cloud::TAG_CLUSTER;
use longshore_actuator::ledger::{BatchRecord, Key, LaunchRecord};
use prost::Message as _;

use super::{Judge, State};
use crate::region::Record;

impl Judge {
    /// Ids of the launches that a call with this token is recorded for; none for one of a single
    /// launch.
    pub(super) fn launches_of(&self, site: usize, token: &str) -> Vec<String> {
        self.stored(site, &Key::Batch(token.to_owned())).map_or_else(Vec::new, |value| {
            BatchRecord::decode(&*value).unwrap_or_default().launch_ids
        })
    }

    /// Claims that a call with this token is recorded for. They are recorded before it is made, and
    /// for good.
    fn claims_of(&self, site: usize, token: &str) -> Arc<Vec<String>> {
        let key = (site, token.to_owned());
        if let Some(known) = self.lock().joint.get(&key) {
            return Arc::clone(known);
        }
        let launches = self.launches_of(site, token);
        let records = launches.iter().filter_map(|id| self.launch_record(site, id));
        let claims: Vec<String> = records.map(|record| record.claim().to_owned()).collect();
        let claims = Arc::new(claims);
        if !claims.is_empty() {
            self.lock().joint.insert(key, Arc::clone(&claims));
        }
        claims
    }

    fn launch_record(&self, site: usize, launch_id: &str) -> Option<LaunchRecord> {
        let key = Key::Launch(launch_id.to_owned());
        LaunchRecord::decode(&*self.stored(site, &key)?).ok()
    }

    /// What is recorded for a launch or a call, wherever the site's ledger is.
    fn stored(&self, site: usize, key: &Key) -> Option<Vec<u8>> {
        let end = match key {
            Key::Launch(id) => format!("/launch/{id}"),
            Key::Batch(id) => format!("/batch/{id}"),
            Key::Cluster(_) | Key::Fence(_) | Key::Audit(_) => return None,
        };
        let Some(etcd) = self.etcds.get(site) else { return self.noted(site, key) };
        etcd.read(|model| {
            let mut entries = model.under(b"/longshore/v1/");
            entries.find(|entry| entry.key.ends_with(end.as_bytes())).map(|e| e.value.clone())
        })
    }

    /// An instance of a call for several launches.
    pub(super) fn launched_together(&self, site: usize, record: &Record) {
        let id = &record.seen.instance_id;
        let claims = self.claims_of(site, &record.token);
        let owner = (record.seen.tag(TAG_CLUSTER).to_owned(), String::new());
        self.lock().owners.insert(id.clone(), owner);
        let label = self.cluster_key(site, record);
        self.journal.note(&format!(
            "EC2: {id} launched for one of {} of {label}: {} {}",
            claims.join(" "),
            record.seen.instance_type,
            record.seen.zone
        ));
        if claims.is_empty() {
            let text = format!("{id} of {label} by {}", record.token);
            self.violate("a call was made that is not recorded", text);
        }
        let mut state = self.lock();
        state.alive.entry((label.clone(), String::new())).or_default().insert(id.clone());
        state.unclaimed.insert(id.clone(), Arc::clone(&claims));
        let too_many = state.unmatched(&label);
        drop(state);
        if let Some(cluster) = self.cluster_of(site, record) {
            claims.iter().for_each(|claim| self.has_a_claim(cluster, record, claim));
            self.within_limits(cluster, record, record.cpu_millis);
        }
        if let Some(one) = too_many {
            let text = format!("{one} of {label} has no claim of its call left to be for");
            self.violate("launched twice", text);
        }
    }

    /// The ledger says whose an instance is.
    pub(super) fn given(&self, record: &LaunchRecord) {
        let (id, claim) = (&record.instance_id, record.claim());
        if !id.is_empty() && !claim.is_empty() {
            self.is_for(&record.cluster_id, id, claim);
        }
    }

    /// An instance is for a claim of a cluster.
    pub(super) fn is_for(&self, cluster_id: &str, id: &str, claim: &str) {
        let (cluster, owner) = self.owner(id);
        if !owner.is_empty() && (owner != claim || cluster != cluster_id) {
            let text = format!("{id} of claim {owner} is recorded for claim {claim}");
            self.violate("an instance was given to two launches", text);
        }
        let mut state = self.lock();
        if state.unclaimed.remove(id).is_none() {
            return;
        }
        state.owners.insert(id.to_owned(), (cluster, claim.to_owned()));
        let mut labels = state.alive.iter_mut();
        let label = labels.find_map(|((label, claim), ids)| {
            (claim.is_empty() && ids.remove(id)).then(|| label.clone())
        });
        let label = label.unwrap_or_default();
        let alive = state.alive.entry((label.clone(), claim.to_owned())).or_default();
        alive.insert(id.to_owned());
        let count = alive.len();
        let too_many = state.unmatched(&label);
        drop(state);
        self.journal.note(&format!("ledger: {id} is for claim {claim} of {label}"));
        if count > 1 || too_many.is_some() {
            let text = format!("claim {claim} of {label} has {count} living instances");
            self.violate("launched twice", text);
        }
    }

    /// An instance is ended of which only the call is known: no launch may wait for its answer.
    pub(super) fn nobody_waits(&self, site: usize, record: &Record) {
        let launches = self.launches_of(site, &record.token);
        let records = launches.iter().filter_map(|id| self.launch_record(site, id));
        if let Some(waits) = records.into_iter().find(|found| found.waits_for(&record.token)) {
            let (id, launch) = (&record.seen.instance_id, waits.launch_id());
            let text = format!("{id} is ended; launch {launch} waits for its call");
            self.violate("ended while a launch may get it", text);
        }
    }
}

impl State {
    /// True for an instance that is, or may be, a claim's: its call was made for it, and nobody was
    /// told yet.
    pub(super) fn may_be_of(&self, instance_id: &str, claim: &str) -> bool {
        self.unclaimed.get(instance_id).is_some_and(|claims| claims.iter().any(|it| it == claim))
    }

    /// An instance of a cluster that can be for no claim, when each claim is given at most one.
    fn unmatched(&self, label: &str) -> Option<String> {
        let open = self.alive.get(&(label.to_owned(), String::new()))?;
        let of_label = self.alive.range((label.to_owned(), String::new())..);
        let of_label = of_label.take_while(|((at, _), _)| at == label);
        let held: BTreeSet<&String> =
            of_label.filter(|(_, ids)| !ids.is_empty()).map(|((_, claim), _)| claim).collect();
        // By the call: all of its instances may be for the same claims.
        let mut calls: BTreeMap<&Vec<String>, Vec<&String>> = BTreeMap::new();
        for (id, claims) in open.iter().filter_map(|id| Some((id, self.unclaimed.get(id)?))) {
            calls.entry(claims.as_ref()).or_default().push(id);
        }
        let calls: Vec<(Vec<&String>, Vec<&String>)> = calls
            .into_iter()
            .map(|(claims, ids)| (claims.iter().filter(|c| !held.contains(c)).collect(), ids))
            .collect();
        one_too_many(&calls).cloned()
    }
}

/// An instance that no claim is left for, of calls with the claims that each may be for and its
/// instances.
fn one_too_many<'a>(calls: &[(Vec<&'a String>, Vec<&'a String>)]) -> Option<&'a String> {
    let mut wanted = calls.iter().flat_map(|(claims, _)| claims);
    let mut seen = BTreeSet::new();
    if wanted.all(|claim| seen.insert(claim)) {
        // No two calls are for the same claim, so that they need only be counted.
        return calls.iter().find_map(|(claims, ids)| ids.get(claims.len()).copied());
    }
    let each = |(claims, ids): &(Vec<&'a String>, Vec<&'a String>)| {
        let wishes = ids.iter().map(|id| (*id, claims.clone()));
        wishes.collect::<Vec<_>>()
    };
    let wishes: BTreeMap<&String, Vec<&String>> = calls.iter().flat_map(each).collect();
    let mut taken = BTreeMap::new();
    let mut ids = wishes.keys().copied();
    ids.find(|id| !place(id, &wishes, &mut taken, &mut BTreeSet::new()))
}

/// Finds a claim for an instance, moving others where that helps: an augmenting path (Kuhn, 1955).
fn place<'a>(
    id: &'a String,
    wishes: &BTreeMap<&'a String, Vec<&'a String>>,
    taken: &mut BTreeMap<&'a String, &'a String>,
    seen: &mut BTreeSet<&'a String>,
) -> bool {
    for claim in wishes.get(id).into_iter().flatten() {
        if !seen.insert(claim) {
            continue;
        }
        let holder = taken.get(claim).copied();
        if holder.is_none_or(|holder| place(holder, wishes, taken, seen)) {
            taken.insert(claim, id);
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_instance_of_a_call_has_a_claim_of_its_own_or_is_one_too_many() {
        let text = |text: &str| text.to_owned();
        let wish = |id: &str, claims: &[&str]| {
            let claims: Vec<String> = claims.iter().map(|claim| text(claim)).collect();
            (text(id), Arc::new(claims))
        };
        let mut state = State {
            unclaimed: [wish("i-1", &["a", "b"]), wish("i-2", &["a"]), wish("i-3", &["b", "c"])]
                .into(),
            ..State::default()
        };
        let open = ["i-1", "i-2", "i-3"].map(text).into();
        state.alive.insert((text("x"), String::new()), open);
        assert_eq!(state.unmatched("x"), None, "i-2 a, i-1 b, i-3 c");
        assert!(state.may_be_of("i-1", "b") && !state.may_be_of("i-2", "b"));
        state.alive.insert((text("x"), text("c")), [text("i-9")].into());
        assert_eq!(state.unmatched("x"), Some(text("i-3")), "c has one already");
        assert_eq!(state.unmatched("y"), None);
        let apart =
            ["i-4", "i-5", "i-6"].map(|id| wish(id, if id == "i-6" { &["f"] } else { &["d"] }));
        state.unclaimed.extend(apart);
        state.alive.insert((text("z"), String::new()), ["i-4", "i-6"].map(text).into());
        assert_eq!(state.unmatched("z"), None);
        state.alive.insert((text("z"), String::new()), ["i-4", "i-5", "i-6"].map(text).into());
        assert_eq!(state.unmatched("z"), Some(text("i-5")), "both are for d");
    }
}
