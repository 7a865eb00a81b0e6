//! A region that works without further settings: one VPC over three zones, one cluster named `lab`.
//!
//! Invariant: what a test needs to find again has a constant here.

use longshore_ec2_data::DataError;
use serde_json::json;

use super::catalogue::{self, ZoneConfig};
use super::config::{
    ClusterConfig, PrincipalConfig, ProfileConfig, QueueConfig, Quotas, RegionConfig, RoleConfig,
    SecurityGroupConfig, SubnetConfig, Tags, Timing, Weather,
};
use super::images;

/// Name of the cluster, its queue, and the value of its discovery tag.
pub const CLUSTER: &str = "lab";
/// Access key id of the controller's role, which may do everything.
pub const CONTROLLER_KEY: &str = "AKIALABCONTROLLER";
/// Access key id that acts as the node role, as a controller without IRSA would.
pub const NODE_KEY: &str = "ASIALABNODEROLE";
/// Role of the controller.
pub const CONTROLLER_ROLE: &str = "LongshoreController-lab";
/// Role of the nodes.
pub const NODE_ROLE: &str = "KarpenterNodeRole-lab";
/// Instance profile that holds the node role.
pub const NODE_PROFILE: &str = "KarpenterNodeInstanceProfile-lab";
/// Service-linked role that spot requests need.
pub const SPOT_ROLE: &str = "AWSServiceRoleForEC2Spot";

/// The account.
pub const ACCOUNT: &str = "111122223333";
/// Zones that have a subnet.
const SUBNETS: u32 = 3;

impl RegionConfig {
    /// The region as the embedded data knows it; a private subnet in each of its first three zones,
    /// tagged `karpenter.sh/discovery=lab`; a node security group with the same tag; EKS images of
    /// all supported Kubernetes versions; a controller that may do everything; a node role and its
    /// profile.
    ///
    /// # Errors
    /// When there is no data for a region of that name.
    pub fn simple(region: &str) -> Result<RegionConfig, DataError> {
        let zones = catalogue::zones_of(region)?;
        Ok(RegionConfig {
            name: region.to_owned(),
            account_id: ACCOUNT.to_owned(),
            seed: 1,
            timing: Timing::default(),
            weather: Weather::default(),
            quotas: Quotas::default(),
            vpc_id: "vpc-0a1b2c3d4e5f60718".to_owned(),
            subnets: subnets(&zones),
            security_groups: security_groups(),
            images: images::released(),
            parameters: images::parameters(),
            roles: roles(),
            instance_profiles: vec![ProfileConfig {
                name: NODE_PROFILE.to_owned(),
                path: "/".to_owned(),
                role: Some(NODE_ROLE.to_owned()),
                tags: Tags::new(),
            }],
            principals: principals(),
            queues: vec![QueueConfig {
                name: CLUSTER.to_owned(),
                retention_s: 300,
                visibility_s: 30,
                receives_events: true,
            }],
            clusters: vec![cluster(region)],
            instance_types: catalogue::types_of(region)?,
            reservations: Vec::new(),
            placement_groups: Vec::new(),
            rate_limits: std::collections::BTreeMap::new(),
            zones,
        })
    }
}

fn subnets(zones: &[ZoneConfig]) -> Vec<SubnetConfig> {
    zones
        .iter()
        .zip(0u32..SUBNETS)
        .map(|(zone, index)| SubnetConfig {
            id: format!("subnet-{:017x}", 0xa0 + index),
            zone: zone.name.clone(),
            cidr: format!("10.0.{}.0/19", 32 * index),
            free_addresses: 8187,
            tags: tags(&[
                ("Name", &format!("lab-private-{}", zone.name)),
                ("karpenter.sh/discovery", CLUSTER),
            ]),
        })
        .collect()
}

fn security_groups() -> Vec<SecurityGroupConfig> {
    vec![
        SecurityGroupConfig {
            id: "sg-00000000000000001".to_owned(),
            name: "lab-node".to_owned(),
            tags: tags(&[("Name", "lab-node"), ("karpenter.sh/discovery", CLUSTER)]),
        },
        SecurityGroupConfig {
            id: "sg-00000000000000002".to_owned(),
            name: "default".to_owned(),
            tags: Tags::new(),
        },
    ]
}

fn roles() -> Vec<RoleConfig> {
    let everything = json!({
        "Version": "2012-10-17",
        "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}],
    });
    let node = json!({
        "Version": "2012-10-17",
        "Statement": [{
            "Effect": "Allow",
            "Action": ["ec2:Describe*", "ecr:GetAuthorizationToken", "eks:DescribeCluster"],
            "Resource": "*",
        }],
    });
    let role = |name: &str, path: &str, policies| RoleConfig {
        name: name.to_owned(),
        path: path.to_owned(),
        policies,
    };
    vec![
        role(CONTROLLER_ROLE, "/", vec![everything]),
        role(NODE_ROLE, "/", vec![node]),
        role(SPOT_ROLE, "/aws-service-role/spot.amazonaws.com/", Vec::new()),
    ]
}

fn principals() -> Vec<PrincipalConfig> {
    let principal = |key: &str, role: &str, session: &str| PrincipalConfig {
        access_key_id: key.to_owned(),
        role: role.to_owned(),
        session: session.to_owned(),
    };
    vec![
        principal(CONTROLLER_KEY, CONTROLLER_ROLE, "longshore"),
        principal(NODE_KEY, NODE_ROLE, "i-0123456789abcdef0"),
    ]
}

fn cluster(region: &str) -> ClusterConfig {
    ClusterConfig {
        name: CLUSTER.to_owned(),
        endpoint: format!("https://lab.gr7.{region}.eks.amazonaws.com"),
        certificate_authority: "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCg==".to_owned(),
        version: "1.34".to_owned(),
        service_cidr: "10.100.0.0/16".to_owned(),
        node_roles: vec![format!("arn:aws:iam::{ACCOUNT}:role/{NODE_ROLE}")],
    }
}

fn tags(pairs: &[(&str, &str)]) -> Tags {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}
