//! Who we are, what we may do, and the profiles that nodes run under.
//!
//! Invariant: all but [`Access::caller`] may be forbidden; whoever asks goes on without the answer.

use std::collections::BTreeMap;

use async_trait::async_trait;

use super::CloudError;

/// Identities and permissions.
#[async_trait]
pub trait Access: Send + Sync + 'static {
    /// Who is asking.
    async fn caller(&self) -> Result<Caller, CloudError>;
    /// The document behind an encoded authorization failure, as JSON text.
    async fn decode_denial(&self, encoded: &str) -> Result<String, CloudError>;
    /// An instance profile; none when there is none of that name.
    async fn profile(&self, name: &str) -> Result<Option<Profile>, CloudError>;
    /// Creates an instance profile that holds a role, or completes one that was left without.
    async fn create_profile(&self, profile: &NewProfile) -> Result<(), CloudError>;
    /// Names of the profiles that hold a role; NotFound when there is no such role.
    async fn profiles_of_role(&self, role: &str) -> Result<Vec<String>, CloudError>;
}

/// Who is asking.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// Twelve digits.
    pub account_id: String,
    /// `arn:aws:sts::…:assumed-role/ROLE/SESSION` or the like.
    pub arn: String,
}

/// An instance profile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    /// Name.
    pub name: String,
    /// Name of the role inside, when there is one.
    pub role: Option<String>,
}

/// An instance profile to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewProfile {
    /// Name.
    pub name: String,
    /// Role to put in, by name without path.
    pub role: String,
    /// True when the profile exists and only lacks the role.
    pub exists: bool,
    /// Tags.
    pub tags: BTreeMap<String, String>,
}
