//! What was fetched from a cluster, as plain JSON.
//!
//! Invariant: what could not be read is told apart from what is not there.

use std::collections::BTreeMap;

use k8s_openapi::jiff::Timestamp;
use serde_json::Value;

use super::account::Account;

/// Kinds that are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs, reason = "each is the Kubernetes kind of its name")]
pub enum Kind {
    CustomResourceDefinition,
    NodePool,
    EC2NodeClass,
    NodeClaim,
    Provisioner,
    AWSNodeTemplate,
    ConfigMap,
    ServiceAccount,
    Pod,
    Node,
    Deployment,
    HorizontalPodAutoscaler,
    PodDisruptionBudget,
    Lease,
    Machine,
}

/// What came of asking for a kind.
#[derive(Clone, Debug, PartialEq)]
pub enum Fetched {
    /// The objects.
    Objects(Vec<Value>),
    /// The cluster does not know the kind.
    UnknownKind,
    /// It could not be read, and why.
    Unread(String),
}

/// Everything that was fetched.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Facts {
    kinds: BTreeMap<Kind, Fetched>,
    account: Option<Account>,
    now: Timestamp,
}

impl Facts {
    /// Adds what came of asking for a kind.
    pub fn put(&mut self, kind: Kind, fetched: Fetched) {
        self.kinds.insert(kind, fetched);
    }

    /// Adds what AWS answered.
    pub fn put_account(&mut self, account: Account) {
        self.account = Some(account);
    }

    /// Adds the time at which this was fetched, by this machine's clock.
    pub const fn put_now(&mut self, now: Timestamp) {
        self.now = now;
    }

    /// When this was fetched, by this machine's clock.
    #[must_use]
    pub const fn now(&self) -> Timestamp {
        self.now
    }

    /// What AWS answered; none when it could not be asked.
    #[must_use]
    pub const fn account(&self) -> Option<&Account> {
        self.account.as_ref()
    }

    /// Objects of a kind; none when they could not be read.
    pub fn of(&self, kind: Kind) -> impl Iterator<Item = &Value> {
        let objects = match self.kinds.get(&kind) {
            Some(Fetched::Objects(objects)) => objects.as_slice(),
            Some(Fetched::UnknownKind | Fetched::Unread(_)) | None => &[],
        };
        objects.iter()
    }

    /// True when the kind was read, or is certain not to exist.
    #[must_use]
    pub fn read(&self, kind: Kind) -> bool {
        matches!(self.kinds.get(&kind), Some(Fetched::Objects(_) | Fetched::UnknownKind))
    }

    /// Kinds that could not be read, with the way out.
    #[must_use]
    pub fn unread(&self) -> Vec<String> {
        let unread = self.kinds.iter().filter_map(|(kind, fetched)| match fetched {
            Fetched::Unread(why) => Some(format!(
                "{kind:?} objects could not be read ({why}); checks that need them saw none: give \
                 this user get and list on them"
            )),
            Fetched::Objects(_) | Fetched::UnknownKind => None,
        });
        unread.collect()
    }
}

/// Name of an object, as `Kind/name` or `Kind/namespace/name`.
#[must_use]
pub fn name(kind: &str, object: &Value) -> String {
    let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
    match text("namespace") {
        "" => format!("{kind}/{}", text("name")),
        namespace => format!("{kind}/{namespace}/{}", text("name")),
    }
}

/// A label of an object.
#[must_use]
pub fn label<'a>(object: &'a Value, key: &str) -> Option<&'a str> {
    object["metadata"]["labels"][key].as_str()
}

/// An annotation of an object.
#[must_use]
pub fn annotation<'a>(object: &'a Value, key: &str) -> Option<&'a str> {
    object["metadata"]["annotations"][key].as_str()
}

/// Entries of a list.
pub fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// True when a condition of the object is true.
#[must_use]
pub fn is_true(object: &Value, condition: &str) -> bool {
    list(&object["status"]["conditions"])
        .any(|it| it["type"] == condition && it["status"] == "True")
}
