//! Roles, credentials and instance profiles, and the question "may this caller do that?".
//!
//! Invariant: the only place where policies are evaluated.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::super::config::{ProfileConfig, RegionConfig, RoleConfig};
use super::super::iam::{self, Ask, Context, Denial, Policy, PolicyError, Verdict};
use super::super::wire::{AwsError, Protocol, Result as Reply, Service};
use super::{Call, World};

/// Who calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// Role name; empty for an unsigned call.
    pub role: String,
    /// ARN, `arn:aws:sts::…:assumed-role/ROLE/SESSION`.
    pub arn: String,
    /// Unique id, `AROA…:SESSION`.
    pub id: String,
}

/// A role with parsed policies.
#[derive(Clone, Debug)]
pub struct Role {
    /// Role name.
    pub name: String,
    /// IAM path.
    pub path: String,
    /// Unique id, `AROA…`.
    pub id: String,
    /// What it may do.
    pub policies: Vec<Policy>,
}

/// IAM's state.
#[derive(Clone, Debug, Default)]
pub struct Access {
    /// Roles by name.
    pub roles: BTreeMap<String, Role>,
    /// Instance profiles by name.
    pub profiles: BTreeMap<String, ProfileConfig>,
    /// Profiles that EC2 does not know of yet, with the moment from which it does.
    pub fresh_profiles: BTreeMap<String, Timestamp>,
    /// Role and session by access key id.
    pub keys: BTreeMap<String, (String, String)>,
}

impl Access {
    /// IAM as configured.
    ///
    /// # Errors
    /// When a policy document cannot be used.
    pub fn new(config: &RegionConfig) -> Result<Access, PolicyError> {
        let mut access = Access::default();
        for role in &config.roles {
            access.put_role(role)?;
        }
        for profile in &config.instance_profiles {
            access.profiles.insert(profile.name.clone(), profile.clone());
        }
        for principal in &config.principals {
            let acts_as = (principal.role.clone(), principal.session.clone());
            access.keys.insert(principal.access_key_id.clone(), acts_as);
        }
        Ok(access)
    }

    /// Adds a role or replaces one of the same name.
    ///
    /// # Errors
    /// When a policy document cannot be used.
    pub fn put_role(&mut self, role: &RoleConfig) -> Result<(), PolicyError> {
        let policies = role.policies.iter().map(Policy::parse).collect::<Result<_, _>>()?;
        let (name, path) = (role.name.clone(), role.path.clone());
        let id = unique_id("AROA", &name);
        self.roles.insert(name.clone(), Role { name, path, id, policies });
        Ok(())
    }
}

/// IAM's unique ids: a four-letter prefix and 17 upper-case characters.
pub fn unique_id(prefix: &str, name: &str) -> String {
    use sha2::{Digest, Sha256};
    const ALPHABET: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
    let digest = Sha256::digest(format!("{prefix} {name}"));
    let letters = digest[..17].iter().map(|byte| char::from(ALPHABET[usize::from(byte % 32)]));
    prefix.chars().chain(letters).collect()
}

impl World {
    /// The caller behind an access key id; an unsigned call is a caller without a role.
    pub fn caller(&self, service: Service, access_key_id: Option<&str>) -> Reply<Caller> {
        let Some(key) = access_key_id else {
            return Ok(Caller { role: String::new(), arn: "anonymous".into(), id: String::new() });
        };
        let (role, session) =
            self.access.keys.get(key).ok_or_else(|| unknown_credentials(service))?;
        let role_id = self.access.roles.get(role).map(|role| role.id.as_str()).unwrap_or_default();
        Ok(Caller {
            arn: format!("arn:aws:sts::{}:assumed-role/{role}/{session}", self.config.account_id),
            id: format!("{role_id}:{session}"),
            role: role.clone(),
        })
    }

    /// ARN of a role.
    pub fn role_arn(&self, role: &Role) -> String {
        format!("arn:aws:iam::{}:role{}{}", self.config.account_id, role.path, role.name)
    }

    /// Evaluates the caller's policies on one action and resource.
    pub fn check(
        &self,
        caller: &Caller,
        action: &str,
        resource: &str,
        context: Context,
    ) -> Result<(), Box<Denial>> {
        let context = self.common_context(caller).with_all(context);
        let policies = self.access.roles.get(&caller.role).map(|role| role.policies.as_slice());
        let ask = Ask { action, resource, context: &context };
        let statement = match iam::evaluate(policies.unwrap_or_default(), ask) {
            Verdict::Allowed => return Ok(()),
            Verdict::ImplicitDeny => None,
            Verdict::ExplicitDeny(statement) => Some(statement),
        };
        Err(Box::new(Denial::new((&caller.id, &caller.arn), ask, statement)))
    }

    /// Lets a call pass when its own action is allowed on `resource`.
    ///
    /// # Errors
    /// The refusal in the words of the service called.
    pub fn allow(&self, call: &Call<'_>, resource: &str, context: Context) -> Reply<()> {
        let action = call.request.api();
        self.check(call.caller, &action, resource, context)
            .map_err(|denial| self.refusal(call.request.service, &denial))
    }

    /// A refusal in the words of a service.
    pub fn refusal(&self, service: Service, denial: &Denial) -> AwsError {
        let sentence = denial.sentence();
        match service.protocol() {
            Protocol::Ec2Query => {
                let sealed = iam::encode(&denial.document, self.config.seed);
                let message = format!(
                    "You are not authorized to perform this operation. {sentence}. Encoded \
                     authorization failure message: {sealed}"
                );
                AwsError::with_status(403, "UnauthorizedOperation", message)
            }
            Protocol::Query(_) => AwsError::with_status(403, "AccessDenied", sentence),
            Protocol::RestJson => AwsError::with_status(403, "AccessDeniedException", sentence),
            Protocol::Json(_) => AwsError::client("AccessDeniedException", sentence),
        }
    }

    fn common_context(&self, caller: &Caller) -> Context {
        Context::default()
            .with("aws:RequestedRegion", &self.config.name)
            .with("aws:Region", &self.config.name)
            .with("aws:Account", &self.config.account_id)
            .with("aws:PrincipalAccount", &self.config.account_id)
            .with("aws:PrincipalArn", self.principal_role_arn(caller))
            .with("aws:SecureTransport", "true")
            .with("ec2:Region", &self.config.name)
    }

    fn principal_role_arn(&self, caller: &Caller) -> String {
        let role = self.access.roles.get(&caller.role);
        role.map_or_else(|| caller.arn.clone(), |role| self.role_arn(role))
    }
}

fn unknown_credentials(service: Service) -> AwsError {
    match service.protocol() {
        Protocol::Ec2Query => AwsError::with_status(
            401,
            "AuthFailure",
            "AWS was not able to validate the provided access credentials",
        ),
        Protocol::Query(_) => AwsError::with_status(
            403,
            "InvalidClientTokenId",
            "The security token included in the request is invalid.",
        ),
        Protocol::Json(_) | Protocol::RestJson => AwsError::with_status(
            403,
            "UnrecognizedClientException",
            "The security token included in the request is invalid.",
        ),
    }
}
