//! STS and IAM.
//!
//! Invariant: the only writes are to instance profiles tagged for one cluster and node class.

use async_trait::async_trait;
use longshore_ec2_data::Dataset;

use super::Aws;
use super::errors::{error, from_sdk};
use crate::cloud::{Access, Caller, Class, CloudError, NewProfile, Profile};

#[async_trait]
impl Access for Aws {
    async fn caller(&self) -> Result<Caller, CloudError> {
        let answer = self.sts.get_caller_identity().send().await;
        let answer = answer.map_err(|failure| {
            let mut failure = from_sdk("sts:GetCallerIdentity", &failure);
            failure.message += &doubt(&self.region).unwrap_or_default();
            failure
        })?;
        Ok(Caller {
            account_id: answer.account().unwrap_or_default().to_owned(),
            arn: answer.arn().unwrap_or_default().to_owned(),
        })
    }

    async fn decode_denial(&self, encoded: &str) -> Result<String, CloudError> {
        let request = self.sts.decode_authorization_message().encoded_message(encoded);
        let answer = request
            .send()
            .await
            .map_err(|failure| from_sdk("sts:DecodeAuthorizationMessage", &failure))?;
        Ok(answer.decoded_message().unwrap_or_default().to_owned())
    }

    async fn profile(&self, name: &str) -> Result<Option<Profile>, CloudError> {
        match self.iam.get_instance_profile().instance_profile_name(name).send().await {
            Ok(answer) => Ok(answer.instance_profile().map(|profile| Profile {
                name: profile.instance_profile_name().to_owned(),
                role: profile.roles().first().map(|role| role.role_name().to_owned()),
            })),
            Err(failure) => match from_sdk("iam:GetInstanceProfile", &failure) {
                absent if absent.class == Class::NotFound => Ok(None),
                failure => Err(failure),
            },
        }
    }

    async fn create_profile(&self, profile: &NewProfile) -> Result<(), CloudError> {
        if !profile.exists {
            self.create_empty_profile(profile).await?;
        }
        let request = self
            .iam
            .add_role_to_instance_profile()
            .instance_profile_name(&profile.name)
            .role_name(&profile.role);
        request
            .send()
            .await
            .map_err(|failure| from_sdk("iam:AddRoleToInstanceProfile", &failure))?;
        Ok(())
    }

    async fn profiles_of_role(&self, role: &str) -> Result<Vec<String>, CloudError> {
        let request = self.iam.list_instance_profiles_for_role().role_name(role);
        let answer = request
            .send()
            .await
            .map_err(|failure| from_sdk("iam:ListInstanceProfilesForRole", &failure))?;
        let profiles = answer.instance_profiles().iter();
        Ok(profiles.map(|profile| profile.instance_profile_name().to_owned()).collect())
    }
}

/// What is odd about a region from which no answer came: it may not exist.
fn doubt(region: &str) -> Option<String> {
    let data = Dataset::embedded().ok()?;
    let known: Vec<&str> = data.regions().collect();
    if known.contains(&region) {
        return None;
    }
    let date = data.date();
    Some(format!(
        "; no region {region} was known on {date}: is --region right? Known are {}",
        known.join(", ")
    ))
}

impl Aws {
    async fn create_empty_profile(&self, profile: &NewProfile) -> Result<(), CloudError> {
        const ACTION: &str = "iam:CreateInstanceProfile";
        let tags = profile.tags.iter().map(|(key, value)| {
            let tag = aws_sdk_iam::types::Tag::builder().key(key).value(value);
            tag.build().map_err(|failure| error(ACTION, "InvalidTag", &failure.to_string(), ""))
        });
        let tags = tags.collect::<Result<Vec<_>, _>>()?;
        let request = self
            .iam
            .create_instance_profile()
            .instance_profile_name(&profile.name)
            .set_tags(Some(tags));
        let Err(failure) = request.send().await else { return Ok(()) };
        let failure = from_sdk(ACTION, &failure);
        if failure.class == Class::Exists { Ok(()) } else { Err(failure) }
    }
}
