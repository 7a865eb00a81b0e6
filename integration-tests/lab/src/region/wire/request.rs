//! An HTTP request recognised as one AWS API call.
//!
//! Invariant: service and action come from the request alone: the signing scope, the target header,
//! or the path. Signatures are not verified; the access key id only says who is calling.

use bytes::Bytes;
use http::request::Parts;
use serde_json::Value;

use super::{AwsError, Params, Protocol, Result};

/// The services of the region.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Service {
    /// Elastic Compute Cloud.
    Ec2,
    /// Identity and Access Management.
    Iam,
    /// Security Token Service.
    Sts,
    /// Simple Queue Service.
    Sqs,
    /// Systems Manager parameters.
    Ssm,
    /// Price list.
    Pricing,
    /// Elastic Kubernetes Service.
    Eks,
}

/// One recognised call.
#[derive(Clone, Debug)]
pub struct Request {
    /// Service called.
    pub service: Service,
    /// API name, for example `CreateFleet`.
    pub action: String,
    /// Access key id that signed it; `None` when unsigned.
    pub access_key_id: Option<String>,
    /// Region it was signed for; `None` when unsigned.
    pub signed_region: Option<String>,
    /// Parameters of a Query call; empty for the others.
    pub params: Params,
    /// Body of a JSON call; `Null` for the others.
    pub json: Value,
    /// Path segments after the first, for REST calls.
    pub path: Vec<String>,
    /// `Host` header: the address under which the caller knows the region.
    pub host: String,
}

impl Service {
    /// Each of them.
    pub const ALL: [Service; 7] = [
        Service::Ec2,
        Service::Iam,
        Service::Sts,
        Service::Sqs,
        Service::Ssm,
        Service::Pricing,
        Service::Eks,
    ];

    /// How this service writes replies.
    pub fn protocol(self) -> Protocol {
        match self {
            Service::Ec2 => Protocol::Ec2Query,
            Service::Iam => Protocol::Query("https://iam.amazonaws.com/doc/2010-05-08/"),
            Service::Sts => Protocol::Query("https://sts.amazonaws.com/doc/2011-06-15/"),
            Service::Sqs => Protocol::Json("application/x-amz-json-1.0"),
            Service::Ssm | Service::Pricing => Protocol::Json("application/x-amz-json-1.1"),
            Service::Eks => Protocol::RestJson,
        }
    }

    /// Prefix of its IAM actions.
    pub fn prefix(self) -> &'static str {
        match self {
            Service::Ec2 => "ec2",
            Service::Iam => "iam",
            Service::Sts => "sts",
            Service::Sqs => "sqs",
            Service::Ssm => "ssm",
            Service::Pricing => "pricing",
            Service::Eks => "eks",
        }
    }

    fn of_target(target: &str) -> Option<Service> {
        match target {
            "AmazonSQS" => Some(Service::Sqs),
            "AmazonSSM" => Some(Service::Ssm),
            "AWSPriceListService" => Some(Service::Pricing),
            _ => None,
        }
    }

    fn of_version(version: &str) -> Option<Service> {
        match version {
            "2016-11-15" => Some(Service::Ec2),
            "2010-05-08" => Some(Service::Iam),
            "2011-06-15" => Some(Service::Sts),
            _ => None,
        }
    }
}

impl Request {
    /// Recognises a call; anything else is `UnknownOperationException`.
    pub fn parse(parts: &Parts, body: &Bytes) -> Result<Request> {
        let authorization = header(parts, "authorization");
        let recognised = match header(parts, "x-amz-target") {
            Some(target) => json_call(target, body),
            None if parts.method == http::Method::POST => query_call(body),
            None => rest_call(parts.uri.path()),
        };
        let mut request = recognised.ok_or_else(|| {
            let what = format!("No operation of this region matches {}", parts.uri.path());
            AwsError::with_status(404, "UnknownOperationException", what)
        })?;
        request.access_key_id = authorization.and_then(|text| scope(text, 0));
        request.signed_region = authorization.and_then(|text| scope(text, 2));
        request.host = header(parts, "host").unwrap_or_default().to_owned();
        Ok(request)
    }

    /// `service:Action`, the name by which calls are logged and faults are scripted.
    pub fn api(&self) -> String {
        format!("{}:{}", self.service.prefix(), self.action)
    }

    /// Parameters in one line, long ones cut, for the call log.
    pub fn summary(&self) -> String {
        let json = if self.json.is_null() { String::new() } else { self.json.to_string() };
        [self.params.to_string(), json, self.path.join("/")].concat()
    }

    fn new(service: Service, action: &str) -> Request {
        Request {
            service,
            action: action.to_owned(),
            access_key_id: None,
            signed_region: None,
            params: Params::default(),
            json: Value::Null,
            path: Vec::new(),
            host: String::new(),
        }
    }
}

fn header<'a>(parts: &'a Parts, name: &str) -> Option<&'a str> {
    parts.headers.get(name)?.to_str().ok()
}

/// A part of the signing scope: of `Credential=AKID/20260101/us-east-1/ec2/aws4_request`, 0 is
/// `AKID` and 2 the region.
fn scope(authorization: &str, part: usize) -> Option<String> {
    let (_, rest) = authorization.split_once("Credential=")?;
    let (scope, _) = rest.split_once(',')?;
    scope.split('/').nth(part).map(str::to_owned)
}

fn json_call(target: &str, body: &Bytes) -> Option<Request> {
    let (prefix, action) = target.rsplit_once('.')?;
    let json = serde_json::from_slice(body).ok()?;
    Some(Request { json, ..Request::new(Service::of_target(prefix)?, action) })
}

fn query_call(body: &Bytes) -> Option<Request> {
    let params = Params::parse(body);
    let service = Service::of_version(params.text("Version")?)?;
    let action = params.text("Action")?.to_owned();
    Some(Request { params, ..Request::new(service, &action) })
}

fn rest_call(path: &str) -> Option<Request> {
    let mut segments = path.trim_matches('/').split('/');
    let collection = segments.next()?;
    let path: Vec<String> = segments.map(str::to_owned).collect();
    let action = match (collection, path.get(1).map(String::as_str), path.len()) {
        ("clusters", None, 1) => "DescribeCluster",
        ("clusters", Some("access-entries"), 3) => "DescribeAccessEntry",
        _ => return None,
    };
    Some(Request { path, ..Request::new(Service::Eks, action) })
}
