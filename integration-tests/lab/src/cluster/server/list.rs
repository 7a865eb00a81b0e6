//! Listing objects in pages.
//!
//! Invariant: all pages of one list report the revision of the first, so that a watch from there
//! replays whatever changed between the pages.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use super::{ApiError, Key, Server, Stored, Target};
use crate::cluster::selector::{FieldSelector, LabelSelector};

/// Which objects are meant.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// Demands on labels.
    pub labels: LabelSelector,
    /// Demands on fields.
    pub fields: FieldSelector,
}

impl Selection {
    /// True when the object satisfies both selectors.
    pub fn matches(&self, object: &Value) -> bool {
        self.labels.matches_object(object) && self.fields.matches(object)
    }
}

/// How to list.
#[derive(Clone, Debug, Default)]
pub struct ListOptions {
    /// Which objects.
    pub selection: Selection,
    /// Most objects in a page; all when absent or zero.
    pub limit: Option<usize>,
    /// Token of the page before.
    pub continue_token: Option<String>,
}

/// One page.
#[derive(Clone, Debug)]
pub struct Page {
    /// Revision the list was begun at.
    pub revision: u64,
    /// The objects.
    pub items: Vec<Arc<Stored>>,
    /// Token of the next page.
    pub continue_token: Option<String>,
    /// Objects that later pages hold, counted only for lists without selectors.
    pub remaining: Option<usize>,
}

impl Server {
    /// Lists a collection; the target's name is not regarded.
    ///
    /// # Errors
    /// BadRequest for a token this server did not give.
    pub fn list(&self, target: &Target, options: &ListOptions) -> Result<Page, ApiError> {
        let state = self.lock();
        let (revision, after) = match options.continue_token.as_deref() {
            None | Some("") => (state.store.revision(), None),
            Some(token) => read_token(token).map(|(revision, key)| (revision, Some(key)))?,
        };
        let limit = options.limit.filter(|limit| *limit > 0).unwrap_or(usize::MAX);
        let id = target.resource.id();
        let mut rows = state
            .store
            .list(&id, &target.key.namespace, after)
            .filter(|(_, stored)| options.selection.matches(&stored.value));
        let items: Vec<_> =
            rows.by_ref().take(limit).map(|(_, stored)| Arc::clone(stored)).collect();
        let remaining = rows.count();
        let last = items.last().map(|stored| Key::of(&stored.value));
        Ok(Page {
            revision,
            continue_token: last.filter(|_| remaining > 0).map(|key| token(revision, &key)),
            remaining: (remaining > 0).then_some(remaining),
            items,
        })
    }
}

fn token(revision: u64, key: &Key) -> String {
    URL_SAFE_NO_PAD.encode(json!([revision, key.namespace, key.name]).to_string())
}

fn read_token(token: &str) -> Result<(u64, Key), ApiError> {
    let refused = || ApiError::BadRequest("continue key is not valid".into());
    let bytes = URL_SAFE_NO_PAD.decode(token).map_err(|_| refused())?;
    let (revision, namespace, name) = serde_json::from_slice(&bytes).map_err(|_| refused())?;
    Ok((revision, Key { namespace, name }))
}
