//! One kind as the API server tells of it: all objects that there are, then each change.
//!
//! Invariant: what comes between `Init` and `InitDone` is what there was at some time after the
//! list was asked for, brought up to its end by whatever changed meanwhile. A list comes as the
//! first events of a watch where the API server streams lists: it sends from its cache while the
//! watcher reads. kube's own watcher is not used for that: it asks for whatever state a cache is
//! at, and passes over what is deleted before the list is whole.

use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::BoxStream;
use kube::api::{ListParams, WatchEvent, WatchParams};
use kube::core::Status;
use kube::runtime::watcher::Event;
use kube::{Api, Resource, ResourceExt as _};
use serde::de::DeserializeOwned;
use tokio::time::{Instant, timeout};

use crate::bounded::LIST_PATIENCE;
use crate::patch;

/// Objects in one page of a list that is not streamed.
const PAGE_SIZE: u32 = 500;
/// How long a watch may say nothing: the API server ends it after 290 s.
const IDLE_MAX: Duration = Duration::from_secs(300);
/// A watch that ends sooner than this, and has told nothing, is not asked for again at once: a
/// server or proxy that ends each so would be asked as fast as it answers.
const BRIEF: Duration = Duration::from_secs(1);
/// Annotation of the bookmark at which a streamed list is whole.
const LIST_ENDS: &str = "k8s.io/initial-events-end";
/// Version for "no older than this request".
const NEWEST: &str = "";
/// Status by which an API server says that it does not stream lists.
const UNSERVED: u16 = 422;

/// Why nothing more is told for now.
#[derive(Debug, thiserror::Error)]
pub enum Lost {
    /// A list was refused or did not come.
    #[error("cannot list: {0}")]
    List(#[source] kube::Error),
    /// A watch was refused or broke off.
    #[error("cannot watch: {0}")]
    Watch(#[source] kube::Error),
    /// The API server ended a watch.
    #[error("the watch was ended: {0}")]
    Ended(Box<Status>),
    /// A watch told nothing and was over.
    #[error("a watch ended as soon as it began")]
    Brief,
    /// A list ended before it was whole.
    #[error("a list ended before it was whole")]
    Short,
    /// A list stopped before it was whole.
    #[error("nothing came for {LIST_PATIENCE:?} in the midst of a list")]
    Silent,
    /// A list or an object says no version from which to go on.
    #[error("an answer without a resourceVersion")]
    NoVersion,
}

impl Lost {
    /// HTTP status of a refusal; nothing for anything else.
    #[must_use]
    pub fn code(&self) -> Option<u16> {
        match self {
            Self::List(error) | Self::Watch(error) => patch::code(error),
            Self::Ended(status) => Some(status.code),
            Self::Brief | Self::Short | Self::Silent | Self::NoVersion => None,
        }
    }
}

/// Changes as they come.
type Changes<K> = BoxStream<'static, kube::Result<WatchEvent<K>>>;

/// Up to where a kind is known.
enum Known<K> {
    /// Nothing is: all of it has to be listed.
    Nothing,
    /// What there was at a version.
    Until(String),
    /// The same, and changes come from there on.
    Since(String, Changes<K>),
}

/// How a list is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// As the first events of a watch.
    Streamed,
    /// In pages, one after the other.
    Paged,
}

/// What the API server tells of a kind.
pub struct Feed<K> {
    api: Api<K>,
    known: Known<K>,
    /// How the next list is asked for.
    way: Way,
}

impl<K> Feed<K>
where
    K: Resource + DeserializeOwned + Clone + std::fmt::Debug + Send + 'static,
{
    /// A feed of all that `api` is about, from the beginning.
    #[must_use]
    pub const fn new(api: Api<K>) -> Self {
        Self { api, known: Known::Nothing, way: Way::Streamed }
    }

    /// Begins with a list again.
    pub fn restart(&mut self) {
        self.known = Known::Nothing;
    }

    /// Tells what there is and what changes, until it cannot; it goes on from there when it is
    /// called again.
    pub async fn run(&mut self, mut tell: impl FnMut(Event<K>) + Send) -> Lost {
        loop {
            if let Err(lost) = self.step(&mut tell).await {
                return lost;
            }
        }
    }

    /// The same until a watch is over, as each is in time.
    async fn step(&mut self, tell: &mut (impl FnMut(Event<K>) + Send)) -> Result<(), Lost> {
        let watch_began = matches!(self.known, Known::Until(_)).then(Instant::now);
        let (version, changes) = match std::mem::replace(&mut self.known, Known::Nothing) {
            Known::Nothing => self.list(tell).await?,
            Known::Until(version) => self.watch(version).await?,
            Known::Since(version, changes) => (version, changes),
        };
        let heard = self.follow(version, changes, tell).await?;
        let brief = watch_began.is_some_and(|began| began.elapsed() < BRIEF);
        if brief && !heard { Err(Lost::Brief) } else { Ok(()) }
    }

    /// Lists everything. A list that fails is asked for the other way next, so that no server or
    /// proxy that cannot do the one keeps the watcher waiting.
    async fn list(
        &mut self,
        tell: &mut (impl FnMut(Event<K>) + Send),
    ) -> Result<(String, Changes<K>), Lost> {
        if self.way == Way::Streamed {
            let listed = self.streamed(tell).await;
            let streams = listed.as_ref().err().and_then(Lost::code) != Some(UNSERVED);
            if streams {
                self.way = if listed.is_ok() { Way::Streamed } else { Way::Paged };
                return listed;
            }
        }
        self.way = Way::Streamed;
        let version = self.paged(tell).await?;
        self.watch(version).await
    }

    async fn streamed(
        &mut self,
        tell: &mut (impl FnMut(Event<K>) + Send),
    ) -> Result<(String, Changes<K>), Lost> {
        let changes = self.api.watch(&WatchParams::streaming_lists(), NEWEST).await;
        let mut changes = changes.map_err(Lost::List)?.boxed();
        tell(Event::Init);
        loop {
            let next = timeout(LIST_PATIENCE, changes.next()).await;
            match next.map_err(|_| Lost::Silent)?.ok_or(Lost::Short)?.map_err(Lost::List)? {
                WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                    tell(Event::InitApply(object));
                }
                WatchEvent::Deleted(object) => tell(Event::Delete(object)),
                WatchEvent::Bookmark(mark) if mark.metadata.annotations.contains_key(LIST_ENDS) => {
                    tell(Event::InitDone);
                    return Ok((mark.metadata.resource_version, changes));
                }
                WatchEvent::Bookmark(_) => {}
                WatchEvent::Error(status) => return Err(Lost::Ended(status)),
            }
        }
    }

    async fn paged(&mut self, tell: &mut (impl FnMut(Event<K>) + Send)) -> Result<String, Lost> {
        let mut parameters = ListParams::default().limit(PAGE_SIZE);
        loop {
            let page = self.api.list(&parameters).await.map_err(Lost::List)?;
            if parameters.continue_token.is_none() {
                tell(Event::Init);
            }
            page.items.into_iter().map(Event::InitApply).for_each(&mut *tell);
            parameters.continue_token = page.metadata.continue_.filter(|token| !token.is_empty());
            if parameters.continue_token.is_none() {
                let version = page.metadata.resource_version.filter(|version| !version.is_empty());
                let version = version.ok_or(Lost::NoVersion)?;
                tell(Event::InitDone);
                return Ok(version);
            }
        }
    }

    /// Asks for changes from a version on.
    async fn watch(&mut self, version: String) -> Result<(String, Changes<K>), Lost> {
        match self.api.watch(&WatchParams::default(), &version).await {
            Ok(changes) => Ok((version, changes.boxed())),
            Err(error) => {
                let lost = Lost::Watch(error);
                self.keep(&lost, Known::Until(version));
                Err(lost)
            }
        }
    }

    /// Tells changes until the watch is over; whether anything was heard.
    async fn follow(
        &mut self,
        mut version: String,
        mut changes: Changes<K>,
        tell: &mut (impl FnMut(Event<K>) + Send),
    ) -> Result<bool, Lost> {
        let mut heard = false;
        loop {
            let Ok(Some(change)) = timeout(IDLE_MAX, changes.next()).await else {
                self.known = Known::Until(version);
                return Ok(heard);
            };
            heard = true;
            let lost = match change {
                Ok(WatchEvent::Added(object) | WatchEvent::Modified(object)) => {
                    version = version_of(&object)?;
                    tell(Event::Apply(object));
                    continue;
                }
                Ok(WatchEvent::Deleted(object)) => {
                    version = version_of(&object)?;
                    tell(Event::Delete(object));
                    continue;
                }
                Ok(WatchEvent::Bookmark(mark)) => {
                    version = mark.metadata.resource_version;
                    continue;
                }
                Ok(WatchEvent::Error(status)) => Lost::Ended(status),
                Err(error) => Lost::Watch(error),
            };
            // What comes after something that cannot be read is told all the same.
            self.keep(&lost, Known::Since(version, changes));
            return Err(lost);
        }
    }

    /// Goes on from what is known, unless the API server has forgotten what was before.
    fn keep(&mut self, lost: &Lost, known: Known<K>) {
        self.known = if lost.code() == Some(410) { Known::Nothing } else { known };
    }
}

fn version_of<K: Resource>(object: &K) -> Result<String, Lost> {
    object.resource_version().filter(|version| !version.is_empty()).ok_or(Lost::NoVersion)
}

#[cfg(test)]
mod tests;
