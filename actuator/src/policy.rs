//! What each cluster may have of this region, whatever anybody asks for.
//!
//! Invariant: it comes from a file of the actuator's own, and no message changes it. What it does
//! not speak of is not limited; with a file, a cluster that it does not name may have nothing. A
//! file that cannot be used keeps what was there before.

mod class;
mod file;
mod spending;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::Deserialize;

pub use self::class::confine;
pub use self::file::{Policies, PolicyArgs};
pub use self::spending::{Fleet, Rates, Running};

/// Name that stands for every cluster that is not named.
const ANY: &str = "*";

/// The limits of all clusters of a region.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Policy {
    /// Account that the actuator must act in.
    #[serde(default)]
    account: Option<String>,
    /// Region that it must act in.
    #[serde(default)]
    region: Option<String>,
    /// Limits by the name of the cluster, or `*`.
    clusters: BTreeMap<String, Limits>,
}

/// What one cluster may have.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Limits {
    /// Ids of subnets.
    subnets: Option<BTreeSet<String>>,
    /// Ids of security groups.
    security_groups: Option<BTreeSet<String>>,
    /// Names of roles that nodes may have.
    roles: Option<BTreeSet<String>>,
    /// Names of instance profiles that nodes may have, beside those of the roles.
    instance_profiles: Option<BTreeSet<String>>,
    /// Owners of images: account ids, or aliases such as `amazon`.
    image_owners: Option<BTreeSet<String>>,
    /// Families of instance types, such as `m7i`.
    families: Option<BTreeSet<String>>,
    /// Nodes at the same time, those under way included.
    nodes: Option<usize>,
    /// What they may cost together, in US dollars an hour.
    dollars_per_hour: Option<Dollars>,
    /// Launches within a minute.
    launches_per_minute: Option<usize>,
    /// Terminations within a minute.
    terminations_per_minute: Option<usize>,
}

/// Dollars, in millionths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "f64")]
pub struct Dollars {
    /// Millionths of a US dollar.
    pub micro: i64,
}

/// Most dollars that can be told apart from one another: 2^53 millionths.
const DOLLARS_MAX: f64 = 9e9;

impl TryFrom<f64> for Dollars {
    type Error = String;

    fn try_from(dollars: f64) -> Result<Self, String> {
        if !(0.0..=DOLLARS_MAX).contains(&dollars) {
            return Err(format!("{dollars} is no amount of dollars"));
        }
        #[allow(clippy::cast_possible_truncation, reason = "within the bounds just checked")]
        Ok(Self { micro: (dollars * 1e6).round() as i64 })
    }
}

impl fmt::Display for Dollars {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "${}.{:04}", self.micro / 1_000_000, self.micro % 1_000_000 / 100)
    }
}

/// Why a cluster does not get something.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Denied {
    /// It may have nothing.
    #[error(
        "cluster {cluster} is not in this actuator's policy; add it to the clusters of the file, or \
         send the plan to the actuator that serves it"
    )]
    Cluster {
        /// Its name.
        cluster: String,
    },
    /// What it asks for is not among what it may have.
    #[error("{what} {asked} is not for cluster {cluster}, whose policy allows {allowed}")]
    Not {
        /// What kind of thing.
        what: &'static str,
        /// Which.
        asked: String,
        /// For whom.
        cluster: String,
        /// What there is instead.
        allowed: String,
    },
    /// It would have too much.
    #[error("cluster {cluster} would have {would} {what}, and its policy allows {most}")]
    Much {
        /// Of what.
        what: &'static str,
        /// Who.
        cluster: String,
        /// How much it would be.
        would: String,
        /// How much it may be.
        most: String,
    },
}

impl Policy {
    /// One that limits nothing.
    #[must_use]
    pub fn open() -> Self {
        let clusters = BTreeMap::from([(ANY.to_owned(), Limits::default())]);
        Self { account: None, region: None, clusters }
    }

    /// What a cluster may have.
    ///
    /// # Errors
    /// When it may have nothing.
    pub fn of(&self, cluster: &str) -> Result<&Limits, Denied> {
        let found = self.clusters.get(cluster).or_else(|| self.clusters.get(ANY));
        found.ok_or_else(|| Denied::Cluster { cluster: cluster.to_owned() })
    }

    /// Checks that it is about where the actuator acts.
    ///
    /// # Errors
    /// When it names another account or region.
    pub fn check_place(&self, account: &str, region: &str) -> Result<(), String> {
        for (what, named, own) in
            [("account", &self.account, account), ("region", &self.region, region)]
        {
            if named.as_ref().is_some_and(|named| named != own) {
                let named = named.as_deref().unwrap_or_default();
                return Err(format!(
                    "the policy is for {what} {named}, and this actuator acts in {own}"
                ));
            }
        }
        Ok(())
    }
}

/// Whether something is among what is allowed; anything is where nothing is said.
fn among(
    allowed: Option<&BTreeSet<String>>,
    (what, asked): (&'static str, &str),
    cluster: &str,
) -> Result<(), Denied> {
    match allowed {
        Some(allowed) if !allowed.contains(asked) => Err(Denied::Not {
            what,
            asked: asked.to_owned(),
            cluster: cluster.to_owned(),
            allowed: listed(allowed),
        }),
        _ => Ok(()),
    }
}

/// Names, in few words.
fn listed(names: &BTreeSet<String>) -> String {
    const SHOWN: usize = 8;
    let shown: Vec<&str> = names.iter().take(SHOWN).map(String::as_str).collect();
    match names.len() {
        0 => "none".to_owned(),
        count if count > SHOWN => format!("{} and {} more", shown.join(", "), count - SHOWN),
        _ => shown.join(", "),
    }
}

#[cfg(test)]
mod tests;
