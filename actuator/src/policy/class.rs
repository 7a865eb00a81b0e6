//! What a node class may amount to for its cluster.
//!
//! Invariant: a class that asks for what its cluster may not have is not ready, and says so where
//! people look for it; it is not made smaller silently.

use super::{Denied, Limits, among, listed};
use crate::nodeclass::{ClassImage, Problem, Resolved};

/// Reason of a condition that the policy has set.
const REASON: &str = "DeniedByPolicy";

/// Sets the conditions of what a class asks for and may not have.
pub fn confine(resolved: &mut Resolved, limits: Result<&Limits, Denied>) {
    match limits {
        Err(denied) => deny(resolved, "ValidationSucceeded", denied),
        Ok(limits) => {
            let found = limits.of_class(resolved);
            found.into_iter().for_each(|(kind, denied)| deny(resolved, kind, denied));
        }
    }
}

fn deny(resolved: &mut Resolved, kind: &'static str, denied: Denied) {
    resolved.conditions.set(kind, Some(Problem::new(REASON, denied.to_string())));
}

impl Limits {
    /// What of a class is denied, by condition.
    fn of_class(&self, resolved: &Resolved) -> Vec<(&'static str, Denied)> {
        let cluster = &resolved.cluster_id;
        let subnets = resolved
            .subnets
            .iter()
            .find_map(|it| among(self.subnets.as_ref(), ("subnet", &it.id), cluster).err());
        let groups = resolved.security_groups.iter().find_map(|it| {
            among(self.security_groups.as_ref(), ("security group", &it.id), cluster).err()
        });
        let images = resolved.images.iter().find_map(|it| self.image(it, cluster));
        let found = [
            ("ValidationSucceeded", self.template(resolved)),
            ("SubnetsReady", subnets),
            ("SecurityGroupsReady", groups),
            ("AMIsReady", images),
            ("InstanceProfileReady", self.profile(resolved)),
        ];
        found.into_iter().filter_map(|(kind, denied)| Some((kind, denied?))).collect()
    }

    /// A launch template of the user's own says of itself what its instances are and may do.
    fn template(&self, resolved: &Resolved) -> Option<Denied> {
        let looked_into = self.security_groups.is_some()
            || self.roles.is_some()
            || self.instance_profiles.is_some()
            || self.image_owners.is_some();
        let name = &resolved.class.launch_template;
        (looked_into && !name.is_empty()).then(|| Denied::Not {
            what: "launch template",
            asked: name.clone(),
            cluster: resolved.cluster_id.clone(),
            allowed: "none, as they cannot be looked into".to_owned(),
        })
    }

    fn image(&self, image: &ClassImage, cluster: &str) -> Option<Denied> {
        let allowed = self.image_owners.as_ref()?;
        let known = image.owners.iter().any(|owner| allowed.contains(owner));
        (!known).then(|| Denied::Not {
            what: "image",
            asked: format!("{} of {}", image.id, image.owners.join("/")),
            cluster: cluster.to_owned(),
            allowed: format!("those of {}", listed(allowed)),
        })
    }

    /// A role is as good as its name; a profile that is named itself may hold any role.
    fn profile(&self, resolved: &Resolved) -> Option<Denied> {
        let (role, cluster) = (&resolved.class.role, &resolved.cluster_id);
        if !role.is_empty() {
            return among(self.roles.as_ref(), ("role", role), cluster).err();
        }
        let profiles = self.instance_profiles.as_ref().or(self.roles.as_ref());
        among(profiles, ("instance profile", &resolved.instance_profile), cluster).err()
    }
}
