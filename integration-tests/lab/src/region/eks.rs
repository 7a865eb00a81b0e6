//! EKS: DescribeCluster, DescribeAccessEntry.
//!
//! Invariant: read-only.

use serde_json::json;

use super::iam::Context;
use super::wire::{AwsError, Body, Result};
use super::world::{Call, Handler, World};

/// The APIs of EKS, and who answers them.
pub const APIS: &[(&str, Handler)] =
    &[("DescribeCluster", describe_cluster), ("DescribeAccessEntry", describe_access_entry)];

fn describe_access_entry(world: &mut World, call: &Call<'_>) -> Result<Body> {
    let part = |index: usize| call.request.path.get(index).map(String::as_str).unwrap_or_default();
    let (name, role) = (part(0), part(2).replace("%3A", ":").replace("%2F", "/"));
    let config = &world.config;
    let plain = role.rsplit('/').next().unwrap_or_default();
    let (region, account) = (&config.name, &config.account_id);
    let arn =
        format!("arn:aws:eks:{region}:{account}:access-entry/{name}/role/{account}/{plain}/1");
    world.allow(call, &arn, Context::default())?;
    let missing =
        |message: String| AwsError::with_status(404, "ResourceNotFoundException", message);
    let found = config.clusters.iter().find(|cluster| cluster.name == name);
    let found = found.ok_or_else(|| missing(format!("No cluster found for name: {name}.")))?;
    if !found.node_roles.contains(&role) {
        let message = format!("The specified principalArn could not be found: {role}.");
        return Err(missing(message));
    }
    Ok(Body::Json(json!({"accessEntry": {
        "clusterName": name,
        "principalArn": role,
        "accessEntryArn": arn,
        "kubernetesGroups": ["system:nodes"],
        "username": "system:node:{{EC2PrivateDNSName}}",
        "type": "EC2_LINUX",
        "tags": {},
    }})))
}

fn describe_cluster(world: &mut World, call: &Call<'_>) -> Result<Body> {
    let name = call.request.path.first().map(String::as_str).unwrap_or_default();
    let config = &world.config;
    let arn = format!("arn:aws:eks:{}:{}:cluster/{name}", config.name, config.account_id);
    world.allow(call, &arn, Context::default())?;
    let found = config.clusters.iter().find(|cluster| cluster.name == name).ok_or_else(|| {
        let message = format!("No cluster found for name: {name}.");
        AwsError::with_status(404, "ResourceNotFoundException", message)
    })?;
    let subnets: Vec<&str> = config.subnets.iter().map(|subnet| subnet.id.as_str()).collect();
    Ok(Body::Json(json!({"cluster": {
        "name": name,
        "arn": arn,
        "status": "ACTIVE",
        "version": found.version,
        "endpoint": found.endpoint,
        "certificateAuthority": {"data": found.certificate_authority},
        "kubernetesNetworkConfig": {
            "serviceIpv4Cidr": found.service_cidr,
            "ipFamily": "ipv4",
        },
        "resourcesVpcConfig": {
            "vpcId": config.vpc_id,
            "subnetIds": subnets,
            "endpointPublicAccess": true,
            "endpointPrivateAccess": true,
        },
        "accessConfig": {"authenticationMode": "API_AND_CONFIG_MAP"},
        "platformVersion": "eks.1",
        "tags": {},
    }})))
}
