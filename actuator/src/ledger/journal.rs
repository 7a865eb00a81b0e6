//! The ledger of a single actuator whose calls for several launches outlive it: everything in
//! memory, and a page of a journal for each such call.
//!
//! Invariant: a page is written before what it says counts, so whoever reads the journal finds
//! every call that may have been made, the launches that it is for, and which instance each was
//! given. What launches that are asked for alone came to is told by their own tokens and tags, as
//! ever.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use prost::Message;
use tokio::sync::Mutex;

use super::entry::{Batch, Key, StoreError};
use super::memory::MemoryStore;
use super::record::{BatchRecord, LaunchRecord};
use crate::election::Term;

/// Something that outlives the process and has one writer at a time. A page is at most a few
/// hundred KiB.
#[async_trait]
pub trait Journal: Send + Sync {
    /// All pages by name. From now on whoever opened it before can write no more.
    ///
    /// # Errors
    /// When it cannot be read.
    async fn open(&self) -> Result<BTreeMap<String, Vec<u8>>, StoreError>;

    /// Puts pages, and takes those away that have become nothing; all of them or none.
    ///
    /// # Errors
    /// When somebody else has opened it, or it cannot be written.
    async fn write(&self, pages: BTreeMap<String, Option<Vec<u8>>>) -> Result<(), StoreError>;
}

/// A call for several launches, and these as far as the call is concerned.
#[derive(Clone, PartialEq, Message)]
struct Page {
    #[prost(message, optional, tag = "1")]
    batch: Option<BatchRecord>,
    #[prost(message, repeated, tag = "2")]
    launches: Vec<LaunchRecord>,
}

/// Pages by the id of their call.
type Pages = BTreeMap<String, Page>;

/// Memory and journal. Clones share both.
#[derive(Clone)]
pub struct JournaledStore {
    memory: MemoryStore,
    journal: Arc<dyn Journal>,
    /// What the journal holds by what was written and answered; none before it was read.
    pages: Arc<Mutex<Option<Pages>>>,
}

impl fmt::Debug for JournaledStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JournaledStore").field("memory", &self.memory).finish_non_exhaustive()
    }
}

impl JournaledStore {
    /// A store in this memory and journal.
    #[must_use]
    pub fn new(memory: MemoryStore, journal: Arc<dyn Journal>) -> Self {
        Self { memory, journal, pages: Arc::default() }
    }

    /// All entries. The first time, what the journal holds is taken into memory; later memory is
    /// what counts, and a journal that holds something else, by a write whose answer was lost, is
    /// put right.
    ///
    /// # Errors
    /// When the journal cannot be read or put right.
    pub async fn load(&self) -> Result<Vec<(Key, Vec<u8>)>, StoreError> {
        let mut pages = self.pages.lock().await;
        let (read, entries) = read(self.journal.open().await?);
        match &*pages {
            Some(known) => self.put_right(known, &read).await?,
            None => {
                self.memory.put(entries);
                *pages = Some(read);
            }
        }
        Ok(self.memory.load())
    }

    /// Entries of the audit record after one, so many at the most: those of this process.
    #[must_use]
    pub fn audit(&self, after: &str, count: usize) -> Vec<Vec<u8>> {
        self.memory.audit(after, count)
    }

    /// Makes the journal hold these pages instead of those.
    async fn put_right(&self, known: &Pages, kept: &Pages) -> Result<(), StoreError> {
        let stray = kept.keys().filter(|name| !known.contains_key(*name));
        let stray = stray.map(|name| (name.clone(), None));
        let other = known.iter().filter(|(name, page)| kept.get(*name) != Some(page));
        let other = other.map(|(name, page)| (name.clone(), Some(page.encode_to_vec())));
        let right: BTreeMap<_, _> = stray.chain(other).collect();
        if right.is_empty() { Ok(()) } else { self.journal.write(right).await }
    }

    /// Records a batch, in the journal first.
    ///
    /// # Errors
    /// When the term is over, the fence has moved, or the journal cannot be written.
    pub async fn commit(&self, term: &Term, batch: Batch) -> Result<u64, StoreError> {
        let mut pages = self.pages.lock().await;
        // What memory would refuse must not be found in the journal.
        self.memory.check(term, &batch)?;
        let known = pages.get_or_insert_default();
        let changed = self.changed(known, &batch.entries)?;
        if !changed.is_empty() {
            let encode = |page: &Option<Page>| page.as_ref().map(Message::encode_to_vec);
            let written = changed.iter().map(|(name, page)| (name.clone(), encode(page)));
            self.journal.write(written.collect()).await?;
        }
        for (name, page) in changed {
            match page {
                Some(page) => known.insert(name, page),
                None => known.remove(&name),
            };
        }
        self.memory.commit(term, batch)
    }

    /// Pages as these entries make them; `None` for a call that is forgotten.
    fn changed(
        &self,
        known: &Pages,
        entries: &[(Key, Option<Vec<u8>>)],
    ) -> Result<BTreeMap<String, Option<Page>>, StoreError> {
        let mut changed: BTreeMap<String, Option<Page>> = BTreeMap::new();
        let mut launches = BTreeMap::new();
        for (key, value) in entries {
            let (Key::Launch(id), Some(value)) = (key, value) else { continue };
            let record: LaunchRecord = decode(key, value)?;
            let page = match changed.get(&record.batch_id) {
                Some(page) => page.as_ref(),
                None => known.get(&record.batch_id),
            };
            if let Some(page) = page.and_then(|page| page.with(&record)) {
                changed.insert(record.batch_id.clone(), Some(page));
            }
            launches.insert(id.as_str(), record);
        }
        for (key, value) in entries {
            let Key::Batch(id) = key else { continue };
            let page = match value {
                Some(value) => Some(self.page(decode(key, value)?, &launches)?),
                None => None,
            };
            changed.insert(id.clone(), page);
        }
        Ok(changed)
    }

    /// The first page of a call: its launches were marked before it or with it.
    fn page(
        &self,
        batch: BatchRecord,
        marked: &BTreeMap<&str, LaunchRecord>,
    ) -> Result<Page, StoreError> {
        let mut launches = Vec::with_capacity(batch.launch_ids.len());
        for id in &batch.launch_ids {
            let key = Key::Launch(id.clone());
            if let Some(record) = marked.get(id.as_str()) {
                launches.push(record.clone());
            } else if let Some(value) = self.memory.get(&key) {
                launches.push(decode(&key, &value)?);
            }
        }
        Ok(Page { batch: Some(batch), launches })
    }
}

impl Page {
    /// The page with a launch as it is now; none when nothing changes that matters: once it is
    /// known which instance is whose, tags say the rest.
    fn with(&self, record: &LaunchRecord) -> Option<Self> {
        let at = self.launches.iter().position(|own| own.launch_id() == record.launch_id())?;
        let own = &self.launches[at];
        if !own.instance_id.is_empty() || own == record {
            return None;
        }
        let mut page = self.clone();
        page.launches[at] = record.clone();
        Some(page)
    }
}

/// What the pages of a journal amount to, as whoever takes over reads them.
#[must_use]
pub fn entries(pages: BTreeMap<String, Vec<u8>>) -> Vec<(Key, Vec<u8>)> {
    read(pages).1
}

/// Pages, and the entries that they amount to. One that cannot be read stands for its call all the
/// same: nothing is done about its instances.
fn read(kept: BTreeMap<String, Vec<u8>>) -> (Pages, Vec<(Key, Vec<u8>)>) {
    let (mut pages, mut entries) = (BTreeMap::new(), Vec::new());
    let mut launches: BTreeMap<String, LaunchRecord> = BTreeMap::new();
    for (name, value) in kept {
        let Ok(page) = Page::decode(&*value) else {
            entries.push((Key::Batch(name), value));
            continue;
        };
        if let Some(batch) = &page.batch {
            entries.push((Key::Batch(name.clone()), batch.encode_to_vec()));
        }
        // One that got nothing of a call may be in a later one.
        for record in &page.launches {
            let known = launches.get(record.launch_id());
            if known.is_none_or(|known| known.attempts < record.attempts) {
                launches.insert(record.launch_id().to_owned(), record.clone());
            }
        }
        pages.insert(name, page);
    }
    let launches =
        launches.into_iter().map(|(id, record)| (Key::Launch(id), record.encode_to_vec()));
    entries.extend(launches);
    (pages, entries)
}

fn decode<M: Message + Default>(key: &Key, value: &[u8]) -> Result<M, StoreError> {
    let corrupt = |error: prost::DecodeError| StoreError::Corrupt {
        key: format!("{key:?}"),
        reason: error.to_string(),
    };
    M::decode(value).map_err(corrupt)
}

#[cfg(test)]
mod tests;
