//! STS: who am I, what was I refused, and credentials of another role.
//!
//! Invariant: decoding is itself a permission; a message of another region does not decode.

use jiff::Timestamp;

use super::clock::{after, ec2_time};
use super::iam::{self, Context};
use super::wire::{AwsError, Body, Element, Params, Result, group, text};
use super::world::{Call, Handler, World, unique_id};

/// How long credentials live when nothing else is asked.
const SESSION_S: u32 = 3600;

/// The APIs of STS, and who answers them.
pub const APIS: &[(&str, Handler)] = &[
    ("GetCallerIdentity", caller_identity),
    ("DecodeAuthorizationMessage", decode_message),
    ("AssumeRole", assume_role),
    ("AssumeRoleWithWebIdentity", assume_role_with_web_identity),
];

/// Needs no permission, as in life.
fn caller_identity(world: &mut World, call: &Call<'_>) -> Result<Body> {
    if call.request.access_key_id.is_none() {
        let message = "Request is missing Authentication Token";
        return Err(AwsError::with_status(403, "MissingAuthenticationToken", message));
    }
    Ok(Body::Xml(vec![
        text("Arn", &call.caller.arn),
        text("UserId", &call.caller.id),
        text("Account", &world.config.account_id),
    ]))
}

fn decode_message(world: &mut World, call: &Call<'_>) -> Result<Body> {
    world.allow(call, "*", Context::default())?;
    let message = required(&call.request.params, "EncodedMessage")?;
    let document = iam::decode(message, world.config.seed).ok_or_else(|| {
        let message = "Message is not valid";
        AwsError::client("InvalidAuthorizationMessageException", message)
    })?;
    Ok(Body::Xml(vec![text("DecodedMessage", document)]))
}

fn assume_role(world: &mut World, call: &Call<'_>) -> Result<Body> {
    let arn = required(&call.request.params, "RoleArn")?;
    world.allow(call, arn, Context::default())?;
    Ok(Body::Xml(session(world, call)?))
}

fn assume_role_with_web_identity(world: &mut World, call: &Call<'_>) -> Result<Body> {
    required(&call.request.params, "WebIdentityToken")?;
    let mut fields = session(world, call)?;
    fields.push(text("Audience", "sts.amazonaws.com"));
    Ok(Body::Xml(fields))
}

/// Credentials that act as the role asked for.
fn session(world: &mut World, call: &Call<'_>) -> Result<Vec<Element>> {
    let params = &call.request.params;
    let arn = required(params, "RoleArn")?;
    let name = required(params, "RoleSessionName")?.to_owned();
    let found = world.access.roles.values().find(|role| world.role_arn(role) == arn);
    let role = found.cloned().ok_or_else(|| {
        let message = format!("Not authorized to perform {}", call.request.api());
        AwsError::with_status(403, "AccessDenied", message)
    })?;
    let key = unique_id("ASIA", &world.ids.uuid("credentials"))[..20].to_owned();
    world.access.keys.insert(key.clone(), (role.name.clone(), name.clone()));
    let lifetime_s = params.number("DurationSeconds")?.unwrap_or(SESSION_S);
    let credentials = vec![
        text("AccessKeyId", key),
        text("SecretAccessKey", world.ids.uuid("secret")),
        text("SessionToken", world.ids.uuid("session")),
        text("Expiration", expiration(call.now, lifetime_s)),
    ];
    let account = &world.config.account_id;
    let user = vec![
        text("AssumedRoleId", format!("{}:{name}", role.id)),
        text("Arn", format!("arn:aws:sts::{account}:assumed-role/{}/{name}", role.name)),
    ];
    Ok(vec![group("Credentials", credentials), group("AssumedRoleUser", user)])
}

fn expiration(now: Timestamp, lifetime_s: u32) -> String {
    ec2_time(after(now, lifetime_s.saturating_mul(1000)))
}

fn required<'a>(params: &'a Params, name: &str) -> Result<&'a str> {
    params.text(name).ok_or_else(|| {
        AwsError::client("ValidationError", format!("1 validation error detected: {name} is null"))
    })
}
