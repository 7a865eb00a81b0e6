//! What the AWS account answered, beside what the cluster holds.
//!
//! Invariant: plain data. A refused call is an answer about who asked, never about what was asked
//! for, so no finding is made of it.

use std::collections::BTreeMap;

use longshore_actuator::cloud::{CloudError, Instance};
use longshore_actuator::ec2::inspect::{AccessEntry, QueueSettings};
use longshore_actuator::nodeclass::{LOOKUP_FAILED, Problem, Survey};
use longshore_proto::types::v1::NodeClass;

/// What came of a question.
pub type Asked<T> = Result<T, CloudError>;

/// Everything that was asked of AWS.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Account {
    /// Region.
    pub region: String,
    /// Name of the cluster; empty when it is not known.
    pub cluster: String,
    /// Who asked.
    pub caller_arn: String,
    /// Node classes, and what they point at.
    pub classes: Vec<(NodeClass, Survey)>,
    /// The interruption queue, when one is named.
    pub queue: Option<Queue>,
    /// ARN of the service-linked role for spot; asked when a pool names spot.
    pub spot_role: Option<Asked<Option<String>>>,
    /// Roles of nodes and of service accounts, by name.
    pub roles: BTreeMap<String, Role>,
    /// Instances that an autoscaler made; asked before a takeover.
    pub instances: Option<Asked<Vec<Instance>>>,
}

/// An interruption queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Queue {
    /// Name.
    pub name: String,
    /// Its URL; none when there is no such queue.
    pub url: Asked<Option<String>>,
    /// Its settings, when it is there.
    pub settings: Option<Asked<QueueSettings>>,
}

/// A role.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Role {
    /// Its ARN; none when there is no such role.
    pub arn: Asked<Option<String>>,
    /// Its access entry in the cluster; asked for roles of nodes when the cluster's name is known.
    pub entry: Option<Asked<Option<AccessEntry>>>,
}

impl Account {
    /// What is wrong with what node classes point at, with their names.
    pub fn problems(&self) -> impl Iterator<Item = (&str, &Problem)> {
        let all = self.classes.iter().flat_map(|(class, survey)| {
            let parts = [
                survey.subnets.as_ref().err(),
                survey.security_groups.as_ref().err(),
                survey.identity.as_ref().err(),
            ];
            parts.into_iter().flatten().map(|problem| (class.name.as_str(), problem))
        });
        all.filter(|(_, problem)| problem.reason != LOOKUP_FAILED)
    }

    /// Questions that were refused, with the way out.
    #[must_use]
    pub fn refused(&self) -> Vec<String> {
        let roles = self.roles.values().flat_map(|role| {
            [role.arn.as_ref().err(), role.entry.as_ref().and_then(|it| it.as_ref().err())]
        });
        let queue = self.queue.iter().flat_map(|queue| {
            [queue.url.as_ref().err(), queue.settings.as_ref().and_then(|it| it.as_ref().err())]
        });
        let spot = self.spot_role.as_ref().and_then(|it| it.as_ref().err());
        let instances = self.instances.as_ref().and_then(|it| it.as_ref().err());
        let errors = roles.chain(queue).chain([spot, instances]).flatten();
        let mut texts: Vec<String> = errors
            .map(|error| {
                format!("{} was refused ({}); allow it to look there", error.action, error.code)
            })
            .collect();
        let surveys = self.classes.iter().flat_map(|(_, survey)| {
            [survey.subnets.as_ref().err(), survey.security_groups.as_ref().err()]
        });
        let failed = surveys.flatten().filter(|problem| problem.reason == LOOKUP_FAILED);
        texts.extend(failed.map(|problem| problem.message.clone()));
        texts.sort();
        texts.dedup();
        texts
    }
}
