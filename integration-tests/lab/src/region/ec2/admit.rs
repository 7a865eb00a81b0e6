//! Whether one launch may happen at all: existence, permission, compatibility, price.
//!
//! Invariant: the same checks for CreateFleet and RunInstances; each refusal carries EC2's code.

use jiff::Timestamp;

use super::super::catalogue::TypeFacts;
use super::super::config::RoleConfig;
use super::super::iam::Context;
use super::super::offer::Offer;
use super::super::simple::SPOT_ROLE;
use super::super::wire::{AwsError, Result};
use super::super::world::{Call, LaunchOrder, TemplateData, World};
use super::template_data::tags_for;

/// A launch that is being considered.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// Template id, name and version, when there is one.
    pub template: Option<(String, String, usize)>,
    /// Type, zone, market.
    pub offer: Offer,
    /// Subnet.
    pub subnet_id: String,
    /// Everything the template, override and call say.
    pub data: TemplateData,
    /// Most to pay for an hour of spot.
    pub max_price_micro_usd: Option<u64>,
}

impl Candidate {
    /// The order to launch it.
    pub fn order(&self, reservation_id: &str, client_token: Option<&str>) -> LaunchOrder {
        LaunchOrder {
            offer: self.offer.clone(),
            subnet_id: self.subnet_id.clone(),
            image_id: self.data.image_id.clone().unwrap_or_default(),
            tags: tags_for(&self.data.tags, "instance"),
            volume_tags: tags_for(&self.data.tags, "volume"),
            data: self.data.clone(),
            reservation_id: reservation_id.to_owned(),
            client_token: client_token.map(str::to_owned),
        }
    }
}

impl World {
    /// Checks that do not depend on how much is left: existence, permission, compatibility.
    ///
    /// # Errors
    /// EC2's code for the first check that fails.
    pub fn admit(&mut self, call: &Call<'_>, candidate: &Candidate) -> Result<()> {
        let facts = self.type_of(candidate)?;
        let architecture = facts.architecture();
        self.require_image(candidate)?;
        self.require_groups(candidate)?;
        self.require_profile(candidate, call.now)?;
        self.authorize_launch(call, candidate)?;
        self.require_offer(candidate)?;
        self.require_architecture(candidate, architecture)?;
        if candidate.offer.spot {
            self.require_spot_role(call)?;
            self.require_price(candidate, call.now)?;
        }
        Ok(())
    }

    pub(super) fn type_of(&self, candidate: &Candidate) -> Result<&TypeFacts> {
        let name = &candidate.offer.instance_type;
        self.types.get(name).ok_or_else(|| {
            AwsError::invalid_parameter(format!("Invalid value '{name}' for InstanceType."))
        })
    }

    fn require_image(&self, candidate: &Candidate) -> Result<()> {
        let id = candidate.data.image_id.as_deref();
        let id = id.ok_or_else(|| AwsError::missing_parameter("ImageId"))?;
        if self.config.images.iter().any(|image| image.id == id) {
            return Ok(());
        }
        let message = format!("The image id '[{id}]' does not exist");
        Err(AwsError::client("InvalidAMIID.NotFound", message))
    }

    fn require_groups(&self, candidate: &Candidate) -> Result<()> {
        let known =
            |id: &&String| !self.config.security_groups.iter().any(|group| group.id == **id);
        match candidate.data.group_ids.iter().find(known) {
            None => Ok(()),
            Some(id) => {
                let message = format!("The security group '{id}' does not exist");
                Err(AwsError::client("InvalidGroup.NotFound", message))
            }
        }
    }

    /// EC2 learns of a new profile some time after IAM.
    fn require_profile(&self, candidate: &Candidate, now: Timestamp) -> Result<()> {
        let Some(name) = &candidate.data.profile_name else { return Ok(()) };
        let profile = self.access.profiles.get(name);
        let fresh = self.access.fresh_profiles.get(name).is_some_and(|visible| *visible > now);
        match profile.filter(|_| !fresh) {
            None => Err(AwsError::invalid_parameter(format!(
                "Value ({name}) for parameter iamInstanceProfile.name is invalid. Invalid IAM \
                 Instance Profile name"
            ))),
            Some(profile) if profile.role.is_none() => Err(AwsError::invalid_parameter(format!(
                "IAM Instance Profile \"{}\" has no associated IAM Roles",
                self.profile_arn(name)
            ))),
            Some(_) => Ok(()),
        }
    }

    fn require_offer(&self, candidate: &Candidate) -> Result<()> {
        let Offer { instance_type, zone, spot } = &candidate.offer;
        let zones = &self.type_of(candidate)?.zones;
        let offered = zones.get(zone).is_some_and(|price| !spot || price.is_some());
        if offered {
            return Ok(());
        }
        let others: Vec<&str> = zones.keys().map(String::as_str).collect();
        Err(AwsError::client(
            "Unsupported",
            format!(
                "Your requested instance type ({instance_type}) is not supported in your requested \
                 Availability Zone ({zone}). Please retry your request by not specifying an \
                 Availability Zone or choosing {}.",
                others.join(", ")
            ),
        ))
    }

    fn require_architecture(&self, candidate: &Candidate, architecture: &str) -> Result<()> {
        let id = candidate.data.image_id.as_deref();
        let image = self.config.images.iter().find(|image| Some(image.id.as_str()) == id);
        match image {
            Some(image) if image.architecture != architecture => {
                Err(AwsError::invalid_parameter(format!(
                    "The architecture '{architecture}' of the specified instance type does not \
                     match the architecture '{}' of the specified AMI. Specify an instance type \
                     and an AMI that have matching architectures, and try again.",
                    image.architecture
                )))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// The spot service-linked role, made on first use when the caller may.
    fn require_spot_role(&mut self, call: &Call<'_>) -> Result<()> {
        if self.access.roles.contains_key(SPOT_ROLE) {
            return Ok(());
        }
        let path = "/aws-service-role/spot.amazonaws.com/";
        let arn = format!("arn:aws:iam::{}:role{path}{SPOT_ROLE}", self.config.account_id);
        let context = Context::default().with("iam:AWSServiceName", "spot.amazonaws.com");
        let allowed = self.check(call.caller, "iam:CreateServiceLinkedRole", &arn, context);
        let role =
            RoleConfig { name: SPOT_ROLE.to_owned(), path: path.to_owned(), policies: Vec::new() };
        if allowed.is_err() || self.access.put_role(&role).is_err() {
            return Err(AwsError::with_status(
                403,
                "AuthFailure.ServiceLinkedRoleCreationNotPermitted",
                "The provided credentials do not have permission to create the service-linked \
                 role for EC2 Spot Instances.",
            ));
        }
        Ok(())
    }

    fn require_price(&self, candidate: &Candidate, now: Timestamp) -> Result<()> {
        let price = self.price_of(&candidate.offer, now);
        match candidate.max_price_micro_usd {
            Some(limit) if limit < price => Err(AwsError::client(
                "SpotMaxPriceTooLow",
                format!(
                    "Your Spot request price of {} is lower than the minimum required Spot request \
                     fulfillment price of {}.",
                    super::prices::dollars(limit),
                    super::prices::dollars(price)
                ),
            )),
            Some(_) | None => Ok(()),
        }
    }
}
