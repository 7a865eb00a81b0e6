//! SSM: parameters that name images.
//!
//! Invariant: read-only; the region's parameters are those of its configuration and its releases.

use serde_json::{Value, json};

use super::iam::Context;
use super::wire::{AwsError, Body, Result};
use super::world::{Call, Handler, World};

/// SSM's largest page of GetParametersByPath.
const PAGE_MAX: usize = 10;

/// The APIs of SSM, and who answers them.
pub const APIS: &[(&str, Handler)] =
    &[("GetParameter", get), ("GetParameters", get_several), ("GetParametersByPath", get_by_path)];

fn get(world: &mut World, call: &Call<'_>) -> Result<Body> {
    let name = call.request.json["Name"].as_str().unwrap_or_default();
    allow(world, call, name)?;
    let value = world.config.parameters.get(name).ok_or_else(|| {
        AwsError::client("ParameterNotFound", format!("Parameter {name} not found."))
    })?;
    Ok(Body::Json(json!({"Parameter": parameter(world, name, value)})))
}

fn get_several(world: &mut World, call: &Call<'_>) -> Result<Body> {
    let names = call.request.json["Names"].as_array().cloned().unwrap_or_default();
    let names: Vec<&str> = names.iter().filter_map(Value::as_str).collect();
    for name in &names {
        allow(world, call, name)?;
    }
    let (found, missing): (Vec<&str>, Vec<&str>) =
        names.into_iter().partition(|name| world.config.parameters.contains_key(*name));
    let parameters: Vec<Value> = found
        .into_iter()
        .filter_map(|name| Some(parameter(world, name, world.config.parameters.get(name)?)))
        .collect();
    Ok(Body::Json(json!({"Parameters": parameters, "InvalidParameters": missing})))
}

fn get_by_path(world: &mut World, call: &Call<'_>) -> Result<Body> {
    let json = &call.request.json;
    let path = json["Path"].as_str().unwrap_or_default().trim_end_matches('/');
    allow(world, call, path)?;
    let recursive = json["Recursive"].as_bool().unwrap_or(false);
    let below = |name: &str| {
        let rest = name.strip_prefix(path).and_then(|rest| rest.strip_prefix('/'));
        rest.is_some_and(|rest| recursive || !rest.contains('/'))
    };
    let after = json["NextToken"].as_str().unwrap_or_default();
    let mut found =
        world.config.parameters.iter().filter(|(name, _)| below(name) && name.as_str() > after);
    let page: Vec<(&String, &String)> = found.by_ref().take(PAGE_MAX).collect();
    let last = page.last().map(|(name, _)| (*name).clone());
    let more = found.next().is_some();
    let parameters: Vec<Value> =
        page.into_iter().map(|(name, value)| parameter(world, name, value)).collect();
    let mut reply = json!({"Parameters": parameters});
    if let Some(token) = last.filter(|_| more) {
        reply["NextToken"] = json!(token);
    }
    Ok(Body::Json(reply))
}

fn allow(world: &World, call: &Call<'_>, name: &str) -> Result<()> {
    world.allow(call, &arn(world, name), Context::default())
}

/// AWS's own parameters belong to no account.
fn arn(world: &World, name: &str) -> String {
    let region = &world.config.name;
    let own = world.config.account_id.as_str();
    let account = if name.starts_with("/aws/") { "" } else { own };
    format!("arn:aws:ssm:{region}:{account}:parameter/{}", name.trim_start_matches('/'))
}

fn parameter(world: &World, name: &str, value: &str) -> Value {
    json!({
        "Name": name,
        "Type": "String",
        "Value": value,
        "Version": 1,
        "LastModifiedDate": 1_788_235_920.0,
        "ARN": arn(world, name),
        "DataType": "text",
    })
}
