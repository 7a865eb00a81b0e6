//! A journal of paper.
//!
//! Invariant: it does with each write what it was told, and forgets nothing else.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;

use crate::ledger::{Journal, StoreError};

/// A journal in memory that counts writes and fails when told to.
#[derive(Clone, Default)]
pub struct Paper {
    /// What is written there.
    pub pages: Arc<Mutex<BTreeMap<String, Vec<u8>>>>,
    /// What became of each write.
    pub writes: Arc<Mutex<Vec<Fate>>>,
    /// What is to become of the next writes, the last one first.
    pub fates: Arc<Mutex<Vec<Fate>>>,
}

/// What becomes of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Written and answered.
    Done,
    /// Written, and the answer lost.
    Lost,
    /// Not written, and no answer.
    Failed,
    /// Not written: it is too much.
    Refused,
}

#[async_trait]
impl Journal for Paper {
    async fn open(&self) -> Result<BTreeMap<String, Vec<u8>>, StoreError> {
        Ok(self.pages.lock().unwrap().clone())
    }

    async fn write(&self, pages: BTreeMap<String, Option<Vec<u8>>>) -> Result<(), StoreError> {
        let fate = self.fates.lock().unwrap().pop().unwrap_or(Fate::Done);
        self.writes.lock().unwrap().push(fate);
        let mut kept = self.pages.lock().unwrap();
        for (name, page) in pages.into_iter().filter(|_| matches!(fate, Fate::Done | Fate::Lost)) {
            match page {
                Some(page) => kept.insert(name, page),
                None => kept.remove(&name),
            };
        }
        match fate {
            Fate::Done => Ok(()),
            Fate::Refused => Err(StoreError::Refused("no room".to_owned())),
            Fate::Lost | Fate::Failed => Err(StoreError::Unavailable("on purpose".to_owned())),
        }
    }
}

impl Paper {
    /// Number of writes so far.
    pub fn writes(&self) -> usize {
        self.writes.lock().unwrap().len()
    }
}
