//! Launch templates: create, describe, delete.
//!
//! Invariant: names are unique; a name or id that does not exist is an error, never an empty list.

use super::super::clock::ec2_time;
use super::super::config::Tags;
use super::super::iam::Context;
use super::super::wire::{AwsError, Body, Element, Result, text};
use super::super::world::{Call, Template, World};
use super::filter::{Filters, page, paged, retain, tag_set};
use super::instances::wrapped;
use super::template_data::{read, tag_specifications, tags_for};

/// `CreateLaunchTemplate`.
pub fn create(world: &mut World, call: &Call<'_>) -> Result<Body> {
    let params = &call.request.params;
    let name = params.require("LaunchTemplateName")?.to_owned();
    let tags = tags_for(&tag_specifications(params), "launch-template");
    let any = world.ec2_arn("launch-template", "*");
    world.allow(call, &any, Context::default().with_request_tags(&tags))?;
    world.allow_tagging(call, &any, &tags)?;
    let data = read(params.at("LaunchTemplateData"))?;
    if params.flag("DryRun") {
        return Err(AwsError::dry_run());
    }
    let token = params.text("ClientToken").map(str::to_owned);
    if let Some(found) = world.templates.get(&name) {
        if token.is_some() && found.client_token == token {
            return Ok(wrapped("launchTemplate", fields(found)));
        }
        let message = "Launch template name already in use.";
        return Err(AwsError::client("InvalidLaunchTemplateName.AlreadyExistsException", message));
    }
    let template = Template {
        id: world.ids.ec2("lt"),
        name: name.clone(),
        created: call.now,
        created_by: call.caller.arn.clone(),
        tags,
        versions: vec![data],
        client_token: token,
    };
    let reply = wrapped("launchTemplate", fields(&template));
    world.templates.insert(name, template);
    Ok(reply)
}

/// `DescribeLaunchTemplates`.
pub fn describe(world: &mut World, call: &Call<'_>) -> Result<Body> {
    world.allow(call, "*", Context::default())?;
    let params = &call.request.params;
    let (names, ids) = (params.texts("LaunchTemplateName"), params.texts("LaunchTemplateId"));
    for name in &names {
        world.template(Some(name), None)?;
    }
    for id in &ids {
        world.template(None, Some(id))?;
    }
    let filters = Filters::of(params);
    let kept = retain(world.templates.values().collect(), |template: &&Template| {
        let named = (names.is_empty() || names.contains(&template.name))
            && (ids.is_empty() || ids.contains(&template.id));
        Ok(named && filters.keep(&template.tags, |name| attribute(template, name))?)
    })?;
    let (kept, next) = page(params, kept, 200)?;
    Ok(Body::Xml(paged("launchTemplates", kept.into_iter().map(fields), next)))
}

/// `DeleteLaunchTemplate`.
pub fn delete(world: &mut World, call: &Call<'_>) -> Result<Body> {
    let params = &call.request.params;
    let template =
        world.template(params.text("LaunchTemplateName"), params.text("LaunchTemplateId"))?;
    let reply = wrapped("launchTemplate", fields(template));
    let name = template.name.clone();
    let arn = world.ec2_arn("launch-template", &template.id);
    let context = Context::default().with_resource_tags(&template.tags);
    world.allow(call, &arn, context)?;
    if params.flag("DryRun") {
        return Err(AwsError::dry_run());
    }
    world.templates.remove(&name);
    Ok(reply)
}

impl World {
    /// A launch template by name or id.
    ///
    /// # Errors
    /// EC2's own code for a name, or an id, that does not exist.
    pub fn template(&self, name: Option<&str>, id: Option<&str>) -> Result<&Template> {
        let found = match (name, id) {
            (Some(name), _) => self.templates.get(name),
            (None, id) => self.templates.values().find(|found| Some(found.id.as_str()) == id),
        };
        found.ok_or_else(|| match (name, id) {
            (Some(name), _) => {
                let message = format!(
                    "The specified launch template, with template name {name}, does not exist."
                );
                AwsError::client("InvalidLaunchTemplateName.NotFoundException", message)
            }
            (None, id) => {
                let id = id.unwrap_or_default();
                let message = format!(
                    "The specified launch template, with template ID {id}, does not exist."
                );
                AwsError::client("InvalidLaunchTemplateId.NotFound", message)
            }
        })
    }

    /// Checks `ec2:CreateTags` for tags given while creating a resource.
    pub fn allow_tagging(&self, call: &Call<'_>, arn: &str, tags: &Tags) -> Result<()> {
        if tags.is_empty() {
            return Ok(());
        }
        let context = Context::default()
            .with_request_tags(tags)
            .with("ec2:CreateAction", &call.request.action);
        self.check(call.caller, "ec2:CreateTags", arn, context)
            .map_err(|denial| self.refusal(call.request.service, &denial))
    }
}

fn attribute(template: &Template, name: &str) -> Option<Vec<String>> {
    Some(vec![match name {
        "launch-template-name" => template.name.clone(),
        "create-time" => ec2_time(template.created),
        _ => return None,
    }])
}

fn fields(template: &Template) -> Vec<Element> {
    vec![
        text("launchTemplateId", &template.id),
        text("launchTemplateName", &template.name),
        text("createTime", ec2_time(template.created)),
        text("createdBy", &template.created_by),
        text("defaultVersionNumber", 1),
        text("latestVersionNumber", template.versions.len()),
        tag_set(&template.tags),
    ]
}
