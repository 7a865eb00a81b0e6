//! The IAM API as far as instance profiles and role look-ups go.
//!
//! Invariant: a profile holds at most one role; errors carry IAM's codes.

use super::super::clock::{after, ec2_time};
use super::super::config::{ProfileConfig, Tags};
use super::super::wire::{AwsError, Body, Element, Params, Result, group, members, text};
use super::super::world::{Call, Handler, Role, World, unique_id};
use super::Context;

/// The APIs of IAM, and who answers them.
pub const APIS: &[(&str, Handler)] = &[
    ("GetInstanceProfile", get),
    ("CreateInstanceProfile", create),
    ("DeleteInstanceProfile", delete),
    ("AddRoleToInstanceProfile", add_role),
    ("RemoveRoleFromInstanceProfile", remove_role),
    ("TagInstanceProfile", tag),
    ("ListInstanceProfiles", list),
    ("ListInstanceProfilesForRole", list_for_role),
    ("GetRole", get_role),
];

fn get(world: &mut World, call: &Call<'_>) -> Result<Body> {
    let name = name(call)?;
    allow_on(world, call, &name, &Tags::new())?;
    let profile = world.profile(&name)?;
    Ok(Body::Xml(vec![group("InstanceProfile", profile_xml(world, profile))]))
}

fn create(world: &mut World, call: &Call<'_>) -> Result<Body> {
    let params = &call.request.params;
    let name = name(call)?;
    let path = params.text("Path").unwrap_or("/").to_owned();
    let tags = params.tags("Tags");
    let account = &world.config.account_id;
    let arn = format!("arn:aws:iam::{account}:instance-profile{path}{name}");
    world.allow(call, &arn, Context::default().with_request_tags(&tags))?;
    if world.access.profiles.contains_key(&name) {
        let message = format!("Instance Profile {name} already exists.");
        return Err(AwsError::with_status(409, "EntityAlreadyExists", message));
    }
    let profile = ProfileConfig { name: name.clone(), path, role: None, tags };
    let reply = group("InstanceProfile", profile_xml(world, &profile));
    let visible_at = after(call.now, world.config.timing.profile_visible_after_ms);
    world.access.fresh_profiles.insert(name.clone(), visible_at);
    world.access.profiles.insert(name, profile);
    Ok(Body::Xml(vec![reply]))
}

fn delete(world: &mut World, call: &Call<'_>) -> Result<Body> {
    let name = name(call)?;
    allow_on(world, call, &name, &Tags::new())?;
    if world.profile(&name)?.role.is_some() {
        let message = "Cannot delete entity, must remove roles from instance profile first.";
        return Err(AwsError::with_status(409, "DeleteConflict", message));
    }
    world.access.profiles.remove(&name);
    Ok(Body::Xml(Vec::new()))
}

fn add_role(world: &mut World, call: &Call<'_>) -> Result<Body> {
    let name = name(call)?;
    allow_on(world, call, &name, &Tags::new())?;
    let role = required(&call.request.params, "RoleName")?;
    let found = world.role(&role)?;
    let arn = world.role_arn(found);
    let context = Context::default().with("iam:PassedToService", "ec2.amazonaws.com");
    world
        .check(call.caller, "iam:PassRole", &arn, context)
        .map_err(|denial| world.refusal(call.request.service, &denial))?;
    let profile = world.profile_mut(&name)?;
    if profile.role.is_some() {
        let message = "Cannot exceed quota for InstanceSessionsPerInstanceProfile: 1";
        return Err(AwsError::with_status(409, "LimitExceeded", message));
    }
    profile.role = Some(role);
    Ok(Body::Xml(Vec::new()))
}

fn remove_role(world: &mut World, call: &Call<'_>) -> Result<Body> {
    let name = name(call)?;
    allow_on(world, call, &name, &Tags::new())?;
    let role = required(&call.request.params, "RoleName")?;
    let profile = world.profile_mut(&name)?;
    if profile.role.as_ref() != Some(&role) {
        let message = format!("The role with name {role} cannot be found.");
        return Err(AwsError::with_status(404, "NoSuchEntity", message));
    }
    profile.role = None;
    Ok(Body::Xml(Vec::new()))
}

fn tag(world: &mut World, call: &Call<'_>) -> Result<Body> {
    let name = name(call)?;
    let tags = call.request.params.tags("Tags");
    allow_on(world, call, &name, &tags)?;
    world.profile_mut(&name)?.tags.extend(tags);
    Ok(Body::Xml(Vec::new()))
}

fn list(world: &mut World, call: &Call<'_>) -> Result<Body> {
    world.allow(call, "*", Context::default())?;
    let prefix = call.request.params.text("PathPrefix").unwrap_or("/");
    Ok(profiles_xml(world, |profile| profile.path.starts_with(prefix)))
}

fn list_for_role(world: &mut World, call: &Call<'_>) -> Result<Body> {
    let role = required(&call.request.params, "RoleName")?;
    let arn = format!("arn:aws:iam::{}:role/{role}", world.config.account_id);
    world.allow(call, &arn, Context::default())?;
    world.role(&role)?;
    Ok(profiles_xml(world, |profile| profile.role.as_ref() == Some(&role)))
}

fn get_role(world: &mut World, call: &Call<'_>) -> Result<Body> {
    let name = required(&call.request.params, "RoleName")?;
    let known = world.access.roles.get(&name).map(|role| world.role_arn(role));
    let unknown = || format!("arn:aws:iam::{}:role/{name}", world.config.account_id);
    world.allow(call, &known.unwrap_or_else(unknown), Context::default())?;
    let role = world.role(&name)?;
    Ok(Body::Xml(vec![group("Role", role_xml(world, role))]))
}

impl World {
    /// ARN of an instance profile; of the default path when it does not exist.
    pub fn profile_arn(&self, name: &str) -> String {
        let path = self.access.profiles.get(name).map_or("/", |profile| &profile.path);
        format!("arn:aws:iam::{}:instance-profile{path}{name}", self.config.account_id)
    }

    fn profile(&self, name: &str) -> Result<&ProfileConfig> {
        self.access.profiles.get(name).ok_or_else(|| no_profile(name))
    }

    fn profile_mut(&mut self, name: &str) -> Result<&mut ProfileConfig> {
        self.access.profiles.get_mut(name).ok_or_else(|| no_profile(name))
    }

    fn role(&self, name: &str) -> Result<&Role> {
        self.access.roles.get(name).ok_or_else(|| {
            let message = format!("The role with name {name} cannot be found.");
            AwsError::with_status(404, "NoSuchEntity", message)
        })
    }
}

fn no_profile(name: &str) -> AwsError {
    let message = format!("Instance Profile {name} cannot be found.");
    AwsError::with_status(404, "NoSuchEntity", message)
}

fn name(call: &Call<'_>) -> Result<String> {
    required(&call.request.params, "InstanceProfileName")
}

fn required(params: &Params, name: &str) -> Result<String> {
    params.text(name).map(str::to_owned).ok_or_else(|| {
        AwsError::client("ValidationError", format!("1 validation error detected: {name} is null"))
    })
}

/// The call's own action on a profile, with its tags and those of the request.
fn allow_on(world: &World, call: &Call<'_>, name: &str, requested: &Tags) -> Result<()> {
    let mut context = Context::default().with_request_tags(requested);
    if let Some(profile) = world.access.profiles.get(name) {
        context = context.with_resource_tags(&profile.tags);
    }
    world.allow(call, &world.profile_arn(name), context)
}

fn profiles_xml(world: &World, keep: impl Fn(&ProfileConfig) -> bool) -> Body {
    let kept = world.access.profiles.values().filter(|profile| keep(profile));
    let listed = members("InstanceProfiles", kept.map(|profile| profile_xml(world, profile)));
    Body::Xml(vec![listed, text("IsTruncated", false)])
}

fn profile_xml(world: &World, profile: &ProfileConfig) -> Vec<Element> {
    let account = &world.config.account_id;
    let ProfileConfig { name, path, role, tags } = profile;
    let role = role.as_ref().and_then(|role| world.access.roles.get(role));
    let tags = tags.iter().map(|(key, value)| vec![text("Key", key), text("Value", value)]);
    vec![
        text("Path", path),
        text("InstanceProfileName", name),
        text("InstanceProfileId", unique_id("AIPA", name)),
        text("Arn", format!("arn:aws:iam::{account}:instance-profile{path}{name}")),
        text("CreateDate", ec2_time(jiff::Timestamp::UNIX_EPOCH)),
        members("Roles", role.map(|role| role_xml(world, role))),
        members("Tags", tags),
    ]
}

fn role_xml(world: &World, role: &Role) -> Vec<Element> {
    vec![
        text("Path", &role.path),
        text("RoleName", &role.name),
        text("RoleId", &role.id),
        text("Arn", world.role_arn(role)),
        text("CreateDate", ec2_time(jiff::Timestamp::UNIX_EPOCH)),
        text("AssumeRolePolicyDocument", "%7B%22Version%22%3A%222012-10-17%22%7D"),
    ]
}
