//! The instance profile that a class's nodes run under.
//!
//! Invariant: a profile we make is named after its content and tagged for one cluster and class; it
//! is never changed afterwards, so that nodes that use it keep their role.

use longshore_proto::types::v1::ClusterFacts;
use sha2::{Digest, Sha256};

use super::{Explainer, LOOKUP_FAILED, Problem, short_name};
use crate::cloud::{Class, CloudError, NewProfile, TAG_CLASS, TAG_CLUSTER_NAME};

/// Longest name that IAM takes.
const PROFILE_NAME_MAX: usize = 128;
/// Hexadecimal digits of the hash in a profile's name.
const HASH_DIGITS: usize = 16;

/// Name of the class's instance profile, made when the class names a role.
pub async fn find(explainer: &Explainer<'_>, facts: &ClusterFacts) -> Result<String, Problem> {
    let class = explainer.class;
    if !class.launch_template.is_empty() {
        return Ok(String::new());
    }
    if !class.instance_profile.is_empty() {
        return given(explainer, &class.instance_profile, field(&class.name)).await;
    }
    if !class.role.is_empty() {
        return managed(explainer, facts).await;
    }
    if !facts.default_instance_profile.is_empty() {
        let setting = "settings.defaultInstanceProfile";
        return given(explainer, &facts.default_instance_profile, setting).await;
    }
    let message = "neither a role nor an instance profile is named; set spec.role to the node role";
    Err(Problem::new("InstanceProfileNotFound", message))
}

/// Field of the object that holds the profile's name.
fn field(class: &str) -> &'static str {
    if class.starts_with("Provisioner/") {
        "spec.provider.instanceProfile"
    } else {
        "spec.instanceProfile"
    }
}

async fn given(
    explainer: &Explainer<'_>,
    name: &str,
    field: &'static str,
) -> Result<String, Problem> {
    match explainer.cloud.profile(name).await {
        Ok(None) => {
            let message = describe_invalid(explainer, name, field).await;
            Err(Problem::new("InstanceProfileNotFound", message))
        }
        Ok(Some(profile)) if profile.role.is_none() => {
            let message = format!(
                "{} {field}: instance profile {name:?} holds no role; add one with: aws iam \
                 add-role-to-instance-profile --instance-profile-name {name} --role-name ROLE",
                explainer.class.name
            );
            Err(Problem::new("InstanceProfileEmpty", message))
        }
        // Not being allowed to look is no reason not to try: EC2 has the last word.
        Ok(Some(_)) | Err(_) => Ok(name.to_owned()),
    }
}

/// What to say of a profile that EC2 or IAM does not know.
pub async fn explain_profile(explainer: &Explainer<'_>, name: &str) -> String {
    let class = explainer.class;
    if !class.instance_profile.is_empty() {
        return describe_invalid(explainer, name, field(&class.name)).await;
    }
    if class.role.is_empty() {
        return describe_invalid(explainer, name, "settings.defaultInstanceProfile").await;
    }
    format!(
        "{} spec.role: EC2 does not know the instance profile {name:?}, which is made for role {:?}; \
         it is looked up and, if it is gone, made anew within a minute",
        class.name, class.role
    )
}

async fn describe_invalid(explainer: &Explainer<'_>, name: &str, field: &str) -> String {
    let class = &explainer.class.name;
    match explainer.cloud.profiles_of_role(name).await {
        Ok(profiles) => {
            let way_out = match profiles.as_slice() {
                [] => format!("no profile holds that role; set spec.role: {name} instead"),
                some => format!("profiles that hold that role: {}", some.join(", ")),
            };
            format!(
                "{class} {field}: {name:?} is a role, not an instance profile: a role of that name \
                 is not an instance profile of that name; {way_out}"
            )
        }
        Err(error) if error.class == Class::NotFound => {
            format!("{class} {field}: there is neither an instance profile nor a role {name:?}")
        }
        Err(_) => format!(
            "{class} {field}: {name:?} is not an instance profile; if it is a role's name, a role \
             of that name is not an instance profile. Allow iam:ListInstanceProfilesForRole to be \
             told the profiles that hold it"
        ),
    }
}

async fn managed(explainer: &Explainer<'_>, facts: &ClusterFacts) -> Result<String, Problem> {
    let wanted = wanted(explainer, facts);
    let known = match explainer.cloud.profile(&wanted.name).await {
        Ok(known) => known,
        Err(error) if error.class == Class::Unauthorized => None,
        Err(error) => return Err(unanswered(explainer, &error).await),
    };
    match known {
        Some(profile) if profile.role.as_deref() == Some(wanted.role.as_str()) => Ok(wanted.name),
        Some(profile) if profile.role.is_some() => {
            let message = format!(
                "instance profile {} holds role {:?} in place of {:?}; somebody has changed it: \
                 delete it and it is made anew",
                wanted.name, profile.role, wanted.role
            );
            Err(failed(explainer, message))
        }
        found => {
            let profile = NewProfile { exists: found.is_some(), ..wanted };
            create(explainer, profile).await
        }
    }
}

async fn create(explainer: &Explainer<'_>, profile: NewProfile) -> Result<String, Problem> {
    match explainer.cloud.create_profile(&profile).await {
        Ok(()) => Ok(profile.name),
        // A profile holds one role at most: somebody else has just added it.
        Err(error) if error.class == Class::Quota => Ok(profile.name),
        Err(error) if error.class == Class::NotFound => {
            let message = format!("there is no role {:?}", profile.role);
            Err(failed(explainer, message))
        }
        Err(error) => Err(unanswered(explainer, &error).await),
    }
}

/// IAM did not do as asked; unless it has refused, that says nothing about the profile.
async fn unanswered(explainer: &Explainer<'_>, error: &CloudError) -> Problem {
    let problem = failed(explainer, explainer.explain(error).await);
    if matches!(error.class, Class::Throttled | Class::Unknown) {
        return Problem { reason: LOOKUP_FAILED, ..problem };
    }
    problem
}

fn failed(explainer: &Explainer<'_>, why: String) -> Problem {
    let message = format!("{} spec.role: {why}", explainer.class.name);
    Problem::new("InstanceProfileFailed", message)
}

fn wanted(explainer: &Explainer<'_>, facts: &ClusterFacts) -> NewProfile {
    let class = explainer.class;
    // IAM adds roles by name; a path would make equal roles look different.
    let role = class.role.rsplit('/').next().unwrap_or(&class.role);
    let content = [&explainer.place.region, &facts.name, &class.name, role].join("\n");
    let hash = hex(&content);
    let stem: String = facts.name.chars().take(PROFILE_NAME_MAX - HASH_DIGITS - 1).collect();
    let ours = [
        (format!("kubernetes.io/cluster/{}", facts.name), "owned".to_owned()),
        (TAG_CLUSTER_NAME.to_owned(), facts.name.clone()),
        (TAG_CLASS.to_owned(), short_name(class).to_owned()),
        ("topology.kubernetes.io/region".to_owned(), explainer.place.region.clone()),
    ];
    NewProfile {
        name: format!("{stem}_{hash}"),
        role: role.to_owned(),
        exists: false,
        tags: class.tags.clone().into_iter().chain(ours).collect(),
    }
}

fn hex(text: &str) -> String {
    let digest = Sha256::digest(text);
    let digits: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    digits.chars().take(HASH_DIGITS).collect()
}
