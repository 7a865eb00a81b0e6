//! Permissions of a launch: every resource it touches, the tags it sets, the role it passes.
//!
//! Invariant: the refusal names the first resource refused, in a fixed order, as EC2's does.

use super::super::config::Tags;
use super::super::iam::Context;
use super::super::offer::market_name;
use super::super::wire::Result;
use super::super::world::{Call, Template, World};
use super::admit::Candidate;
use super::template_data::tags_for;

impl World {
    /// Checks every permission a launch needs, resource by resource, as EC2 does.
    pub(super) fn authorize_launch(&self, call: &Call<'_>, candidate: &Candidate) -> Result<()> {
        for (arn, context) in self.touched(candidate) {
            self.check(call.caller, "ec2:RunInstances", &arn, context)
                .map_err(|denial| self.refusal(call.request.service, &denial))?;
        }
        for kind in ["instance", "volume", "network-interface", "spot-instances-request"] {
            let tags = tags_for(&candidate.data.tags, kind);
            if !tags.is_empty() {
                let context = Context::default()
                    .with_request_tags(&tags)
                    .with("ec2:CreateAction", "RunInstances");
                self.check(call.caller, "ec2:CreateTags", &self.ec2_arn(kind, "*"), context)
                    .map_err(|denial| self.refusal(call.request.service, &denial))?;
            }
        }
        self.authorize_role(call, candidate)
    }

    fn authorize_role(&self, call: &Call<'_>, candidate: &Candidate) -> Result<()> {
        let profile = candidate.data.profile_name.as_ref();
        let role = profile.and_then(|name| self.access.profiles.get(name)?.role.as_ref());
        let Some(role) = role.and_then(|name| self.access.roles.get(name)) else { return Ok(()) };
        let context = Context::default().with("iam:PassedToService", "ec2.amazonaws.com");
        self.check(call.caller, "iam:PassRole", &self.role_arn(role), context)
            .map_err(|denial| self.refusal(call.request.service, &denial))
    }

    /// Resources a launch touches, with what conditions can know of each.
    fn touched(&self, candidate: &Candidate) -> Vec<(String, Context)> {
        let base = self.launch_context(candidate);
        let with_tags = |tags: &Tags| base.clone().with_resource_tags(tags);
        let mut touched = Vec::new();
        if let Some(template) = self.template_of(candidate) {
            let arn = self.ec2_arn("launch-template", &template.id);
            touched.push((arn, with_tags(&template.tags)));
        }
        if let Some(subnet) = self.subnet(&candidate.subnet_id) {
            touched.push((self.ec2_arn("subnet", &subnet.id), with_tags(&subnet.tags)));
        }
        for group in &self.config.security_groups {
            if candidate.data.group_ids.contains(&group.id) {
                touched.push((self.ec2_arn("security-group", &group.id), with_tags(&group.tags)));
            }
        }
        let image = candidate.data.image_id.as_deref().unwrap_or_default();
        let image_arn = format!("arn:aws:ec2:{}::image/{image}", self.config.name);
        touched.push((image_arn, base.clone()));
        for kind in ["instance", "volume", "network-interface"] {
            let tags = tags_for(&candidate.data.tags, kind);
            touched.push((self.ec2_arn(kind, "*"), base.clone().with_request_tags(&tags)));
        }
        let spot_tags = tags_for(&candidate.data.tags, "spot-instances-request");
        if candidate.offer.spot && !spot_tags.is_empty() {
            let context = base.with_request_tags(&spot_tags);
            touched.push((self.ec2_arn("spot-instances-request", "*"), context));
        }
        touched
    }

    fn template_of(&self, candidate: &Candidate) -> Option<&Template> {
        let (_, name, _) = candidate.template.as_ref()?;
        self.templates.get(name)
    }

    fn launch_context(&self, candidate: &Candidate) -> Context {
        let market = market_name(candidate.offer.spot);
        let mut context = Context::default()
            .with("ec2:InstanceType", &candidate.offer.instance_type)
            .with("ec2:AvailabilityZone", &candidate.offer.zone)
            .with("ec2:InstanceMarketType", market)
            .with("ec2:Vpc", self.ec2_arn("vpc", &self.config.vpc_id))
            .with("ec2:Subnet", self.ec2_arn("subnet", &candidate.subnet_id));
        if let Some((id, _, _)) = &candidate.template {
            context = context
                .with("ec2:LaunchTemplate", self.ec2_arn("launch-template", id))
                .with("ec2:IsLaunchTemplateResource", "true");
        }
        if let Some(name) = &candidate.data.profile_name {
            context = context.with("ec2:InstanceProfile", self.profile_arn(name));
        }
        context
    }
}
